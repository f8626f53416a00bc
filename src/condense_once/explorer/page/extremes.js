// The easiest and the hardest patches of each class by the metric of the ranking.

import { element, sharpCanvas } from "./elements.js";
import { orderByScores } from "./selection.js";
import { watchVisible } from "./visibility.js";

const SHOWN = 6; // at either end
const [SIDE, GAP] = [40, 28];

/** The first and the last rows of an order, without overlap. */
export function endsOf(rows, shown) {
  const middle = Math.ceil(rows.length / 2);
  return [rows.slice(0, middle).slice(0, shown), rows.slice(middle).slice(-shown)];
}

export function mountExtremes(place, hint, set, sprite, views, state) {
  const there = set.classes.map((_, label) => label).filter((label) => set.sizes[label] > 0);
  const canvases = new Map();
  let ends = new Map();
  const visible = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) if (entry.isIntersecting && ends.size) draw(Number(entry.target.dataset.label));
    },
    { rootMargin: "200px" },
  );

  for (const label of there) {
    const canvas = element("canvas", { role: "img", "data-label": label });
    sharpCanvas(canvas, 2 * SHOWN * SIDE + GAP, SIDE / sprite.aspect);
    canvas.addEventListener("pointerdown", (event) => {
      const [easy, hard] = ends.get(label);
      const wide = SIDE * SHOWN;
      const column = Math.floor(event.offsetX / SIDE);
      const back = Math.floor((2 * wide + GAP - event.offsetX) / SIDE);
      const row = event.offsetX < wide ? easy[column] : hard[hard.length - 1 - back];
      if (row !== undefined) state.set({ focus: row, touched: true });
    });
    canvases.set(label, canvas);
    place.append(element("div", { class: "extreme" }, element("span", { class: "class-name", title: set.classes[label] }, set.classes[label]), canvas));
    visible.observe(canvas);
  }

  function draw(label) {
    const canvas = canvases.get(label);
    const high = SIDE / sprite.aspect;
    const context = sharpCanvas(canvas, 2 * SHOWN * SIDE + GAP, high);
    const [easy, hard] = ends.get(label);
    easy.forEach((row, i) => sprite.draw(context, row, i * SIDE, 0, SIDE - 2, high - 2));
    const start = 2 * SHOWN * SIDE + GAP - hard.length * SIDE;
    hard.forEach((row, i) => sprite.draw(context, row, start + i * SIDE, 0, SIDE - 2, high - 2));
  }

  watchVisible(state, place, ["ranking"], (current) => {
    const { ranking } = views.view(current);
    const metric = set.metricOf[ranking.metric] ?? set.metrics[0];
    if (!metric) return;
    const members = set.classes.map(() => []);
    for (const row of orderByScores(metric.scores, set.origin, metric.easy === "low")) members[set.labels[row]].push(row);
    ends = new Map(there.map((label) => [label, endsOf(members[label], SHOWN)]));
    hint.textContent = `By ${metric.name}${metric.summary ? ` (${metric.summary})` : ""}: easiest on the left, hardest on the right.`;
    for (const label of there) {
      canvases.get(label).setAttribute("aria-label", `The easiest and the hardest patches of ${set.classes[label]}`);
      draw(label);
    }
  });
}
