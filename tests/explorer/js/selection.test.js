import assert from "node:assert/strict";
import { test } from "node:test";

import { countsPerClass, orderByScores, orderOf, rankInClass, rankOverall, sharedRows, takeTurns } from "../../../src/condense_once/explorer/page/selection.js";

const labels = Uint16Array.of(0, 0, 0, 1);
const scores = Float32Array.of(0.3, 0.1, 0.2, 0.9);
const origin = Uint32Array.of(0, 1, 2, 3);

test("rows are ordered by score, in either direction", () => {
  assert.deepEqual([...orderByScores(scores, origin, true)], [1, 2, 0, 3]);
  assert.deepEqual([...orderByScores(scores, origin, false)], [3, 0, 2, 1]);
});

test("ties go to the smaller origin, not to the earlier row", () => {
  const same = Float32Array.of(0.5, 0.5, 0.1);
  assert.deepEqual([...orderByScores(same, Uint32Array.of(7, 2, 9), true)], [2, 1, 0]);
  assert.deepEqual([...orderByScores(same, Uint32Array.of(7, 2, 9), false)], [1, 0, 2]);
});

test("classes take turns until they have no more", () => {
  assert.deepEqual([...takeTurns(Uint32Array.of(1, 2, 0, 3), labels, 2)], [1, 3, 2, 0]);
  assert.deepEqual([...takeTurns(Uint32Array.of(3, 0), labels, 5)], [0, 3]);
});

test("a stored order is kept, and a metric for which high is easy is turned round", () => {
  const set = { labels, origin, classes: ["a", "b"], metricOf: { aum: { scores, easy: "high" } } };
  assert.deepEqual([...orderOf(set, { order: origin, balanced: false })], [0, 1, 2, 3]);
  assert.deepEqual([...orderOf(set, { order: null, metric: "aum", prefer: "easy", balanced: false })], [3, 0, 2, 1]);
  assert.deepEqual([...orderOf(set, { order: null, metric: "aum", prefer: "hard", balanced: true })], [1, 3, 2, 0]);
});

test("ranks are those within a class and among all", () => {
  const order = Uint32Array.of(1, 3, 2, 0);
  assert.deepEqual([...rankInClass(order, labels, 2)], [2, 0, 1, 0]);
  assert.deepEqual([...rankOverall(order)], [3, 0, 2, 1]);
});

test("counts and overlaps are of the first rows only", () => {
  assert.deepEqual([...countsPerClass(Uint32Array.of(1, 3, 2, 0), 3, labels, 3)], [2, 1, 0]);
  assert.equal(sharedRows(Uint32Array.of(0, 1, 2), Uint32Array.of(2, 0, 1), 2), 1);
});
