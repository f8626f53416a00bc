import assert from "node:assert/strict";
import { test } from "node:test";

import { accuracyAt, isOfAnotherNet, lineOf, pointsOf } from "../../../src/condense_once/explorer/page/accuracy.js";

const way = {
  lines: [
    { rule: "yoco", points: [[10, 30, 1, 3], [40, 40, 1, 3]] },
    { rule: "random", points: [[10, 20, 1, 3], [160, 60, 0.5, 3]] },
  ],
};

test("the whole set belongs to every line", () => {
  assert.equal(pointsOf(way, way.lines[0], 160).at(-1).mean, 60);
  assert.equal(pointsOf(way, way.lines[0], 999).length, 2);
});

test("a measured size is told from one between two", () => {
  const points = pointsOf(way, way.lines[0], 160);
  assert.equal(accuracyAt(points, 40).measured, true);
  assert.deepEqual([accuracyAt(points, 20).mean, accuracyAt(points, 20).measured], [35, false]);
});

test("nothing is said of sizes below the smallest and above the largest that were measured", () => {
  const points = pointsOf(way, way.lines[0], 999);
  assert.equal(accuracyAt(points, 9), null);
  assert.equal(accuracyAt(points, 41), null);
  assert.equal(accuracyAt([], 5), null);
});

test("a rule that was not measured has no line", () => {
  assert.equal(lineOf(way, "el2n"), null);
  assert.equal(lineOf(undefined, "yoco"), null);
});

test("patches that another network has ranked are others, if both networks are known", () => {
  assert.equal(isOfAnotherNet({ net: "a" }, { net: "b" }), true);
  assert.equal(isOfAnotherNet({ net: "a" }, { net: "a" }), false);
  assert.equal(isOfAnotherNet({ net: null }, { net: "b" }), false);
  assert.equal(isOfAnotherNet(null, { net: "b" }), false);
});
