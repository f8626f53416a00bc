import assert from "node:assert/strict";
import { test } from "node:test";

import { unpackArray } from "../../../src/condense_once/explorer/page/decode.js";
import { endsOf } from "../../../src/condense_once/explorer/page/extremes.js";
import { nearestRow, neighbourOf } from "../../../src/condense_once/explorer/page/map.js";
import { binScores, countBins } from "../../../src/condense_once/explorer/page/score_charts.js";
import { stripShape } from "../../../src/condense_once/explorer/page/sheet.js";
import { createState } from "../../../src/condense_once/explorer/page/state.js";
import { scale } from "../../../src/condense_once/explorer/page/charts.js";

test("arrays are little-endian", () => {
  assert.deepEqual([...unpackArray({ type: "u2", base64: btoa("\x01\x00\x00\x02") })], [1, 512]);
});

test("every score is in a bin, also when all are the same", () => {
  const bins = binScores(Float32Array.of(0, 0.5, 1), 2);
  assert.deepEqual([...bins.of], [0, 1, 1]);
  assert.deepEqual([...countBins(bins, (row) => row === 2).kept], [0, 1]);
  assert.deepEqual([...binScores(Float32Array.of(3, 3), 2).of], [0, 0]);
});

test("the two ends of an order do not overlap", () => {
  assert.deepEqual(endsOf([0, 1, 2], 2), [[0, 1], [2]]);
  assert.deepEqual(endsOf([0, 1, 2, 3, 4, 5], 2), [[0, 1], [4, 5]]);
  assert.deepEqual(endsOf([0], 2), [[0], []]);
});

test("the map finds the nearest patch within reach, and the one on top of two", () => {
  const [xs, ys] = [Float32Array.of(0, 10, 10), Float32Array.of(0, 0, 0)];
  assert.equal(nearestRow(xs, ys, 2, 0, 5, () => false), 0);
  assert.equal(nearestRow(xs, ys, 10, 0, 5, (row) => row === 2), 2);
  assert.equal(nearestRow(xs, ys, 50, 0, 5, () => false), -1);
});

test("an arrow key goes to the next patch in its direction, or nowhere", () => {
  const [xs, ys] = [Uint16Array.of(0, 10, 30, 5), Uint16Array.of(0, 2, 0, 40)];
  assert.equal(neighbourOf(xs, ys, 0, [1, 0]), 1);
  assert.equal(neighbourOf(xs, ys, 0, [0, 1]), 3);
  assert.equal(neighbourOf(xs, ys, 0, [-1, 0]), -1);
});

test("a strip is one line where it fits and even lines where it does not", () => {
  assert.deepEqual(stripShape(1000, 40, 400), { side: 25, columns: 40 });
  assert.deepEqual(stripShape(340, 40, 400), { side: 24, columns: 14 });
  assert.equal(stripShape(1000, 200, 20000).columns <= 100, true);
});

test("listeners hear once per frame, and only of what they watch", () => {
  const frames = [];
  const state = createState({ stop: 1, focus: 0 }, (frame) => frames.push(frame));
  const heard = [];
  state.watch(["stop"], (current) => heard.push(current.stop));
  state.set({ stop: 2 });
  state.set({ stop: 3 });
  state.set({ stop: 3, focus: 5 });
  frames.forEach((frame) => frame());
  assert.deepEqual(heard, [1, 3]);
  assert.equal(frames.length, 1);
  state.set({ focus: 6 });
  frames[1]();
  assert.deepEqual(heard, [1, 3]);
});

test("scales map a domain to pixels", () => {
  assert.equal(scale([0, 10], [0, 100])(5), 50);
  assert.equal(Math.round(scale([1, 100], [0, 100], true)(10)), 50);
});
