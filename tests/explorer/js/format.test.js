import assert from "node:assert/strict";
import { test } from "node:test";

import { grouped, humanBytes, meanText, niceTicks, ordinal, plural, scoreText } from "../../../src/condense_once/explorer/page/format.js";

test("numbers are written as the command line writes them", () => {
  assert.equal(humanBytes(999), "999 B");
  assert.equal(humanBytes(315392), "308.0 KiB");
  assert.equal(grouped(1234567), "1,234,567");
  assert.equal(plural(1, "patch"), "1 patch");
  assert.equal(plural(2000, "patch"), "2,000 patches");
  assert.equal(plural(2, "class"), "2 classes");
});

test("ordinals end as they are spoken", () => {
  assert.deepEqual([1, 2, 3, 4, 11, 12, 21, 112, 1002].map(ordinal), ["1st", "2nd", "3rd", "4th", "11th", "12th", "21st", "112th", "1,002nd"]);
});

test("a single run has no standard deviation", () => {
  assert.equal(meanText({ mean: 36.24, std: 0.35, runs: 3 }), "36.2 ± 0.3");
  assert.equal(meanText({ mean: 36.24, std: 0, runs: 1 }), "36.2");
});

test("scores have four digits", () => {
  assert.deepEqual([0.069351, 12.5, 0].map(scoreText), ["0.06935", "12.5", "0"]);
});

test("ticks are round and inside the range, also of a range without width", () => {
  assert.deepEqual(niceTicks(0.07, 1.08, 4), [0.5, 1]);
  assert.deepEqual(niceTicks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(niceTicks(3, 3, 5), [3]);
});
