import assert from "node:assert/strict";
import { test } from "node:test";

import { bytesAt, commandFor, stopAt, stopsOf, wholeRounds } from "../../../src/condense_once/explorer/page/budget.js";

const sizes = { counts: Uint32Array.of(1, 3, 5, 6), bytes: Float64Array.of(100, 300, 480, 600) };
const balanced = { balanced: true, sizes, command: "condense-once resize x" };
const free = { balanced: false, sizes, command: "condense-once resize x" };
const set = { classes: ["a", "b", "c"], sizes: Uint32Array.of(3, 0, 3), factor: 1, patches: 6, rankings: [balanced] };

test("images per class end at the smallest class, without empty classes, if classes are balanced", () => {
  assert.deepEqual(stopsOf("ipc", set, balanced), [{ value: 1, count: 2 }, { value: 2, count: 4 }, { value: 3, count: 6 }]);
  assert.deepEqual(stopsOf("ipc", set, free), [{ value: 1, count: 3 }, { value: 2, count: 6 }]);
});

test("a set with less than a whole image per class has no such stops", () => {
  assert.deepEqual(stopsOf("ipc", { ...set, factor: 2 }, balanced), []);
});

test("percentages round down and never keep nothing", () => {
  const stops = stopsOf("fraction", set, balanced);
  assert.deepEqual(stops[0], { value: 17, count: 1 });
  assert.deepEqual(stops.at(-1), { value: 100, count: 6 });
});

test("bytes stop at whole rounds if classes are balanced", () => {
  assert.deepEqual([...wholeRounds(Uint32Array.of(3, 0, 1))], [2, 3, 4]);
  assert.deepEqual(stopsOf("bytes", set, balanced), [{ value: 600, count: 6 }]);
  assert.equal(stopsOf("bytes", set, free).length, 4);
});

test("changing the unit goes to the next smaller stop, or to the smallest", () => {
  const stops = [{ count: 4 }, { count: 8 }, { count: 12 }];
  assert.deepEqual([1, 4, 7, 8, 99].map((count) => stopAt(stops, count)), [0, 0, 0, 1, 2]);
});

test("bytes between known sizes are interpolated, and said to be", () => {
  assert.deepEqual(bytesAt(3, set, balanced), { bytes: 300, exact: true });
  assert.deepEqual(bytesAt(4, set, balanced), { bytes: 390, exact: false });
  assert.deepEqual(bytesAt(3, set, { ...free, sizes: null }), { bytes: 300, exact: false });
});

test("the command names the budget in its unit; files of other rules differ by a few bytes, so they are counted", () => {
  const stop = { value: 5, count: 200 };
  assert.equal(commandFor("ipc", stop, balanced), "condense-once resize x --ipc 5 -o ipc5.safetensors");
  assert.equal(commandFor("fraction", stop, balanced), "condense-once resize x --fraction 5% -o 5-percent.safetensors");
  assert.equal(commandFor("bytes", stop, balanced), "condense-once resize x --bytes 5 --lossless -o 5-bytes.safetensors");
  assert.equal(commandFor("bytes", stop, { ...free, sizes: null }), "condense-once resize x --total 200 -o 200-patches.safetensors");
});
