// One patch: its picture, where it stands, and how the network's error on it fell.

import { clearChart, leftAxis, scale } from "./charts.js";
import { element, shape } from "./elements.js";
import { ordinal, plural, scoreText } from "./format.js";

/** A patch in one line of text. */
export function describePatch(set, views, state, row) {
  const { classRank, members, keeps } = views.view(state);
  const label = set.labels[row];
  const rank = `${ordinal(classRank[row] + 1)} of ${members[label].length}`;
  return `${set.classes[label]}, ${rank}, ${keeps(row) ? "kept" : "not kept"}`;
}

export function mountDetails(places, set, sprite, real, views, state) {
  state.watch(["ranking", "unit", "stop", "focus", "theme"], (current) => {
    const row = current.focus;
    if (row === null) return;
    const text = describePatch(set, views, current, row);
    portrait(places.large, sprite, row, text);
    if (real) {
      portrait(places.real, real, row, "The real image of its class that is most like it");
      places.realText.textContent = `most similar real image (correlation ${set.real.similarity[row].toFixed(2)})`;
    }
    places.real.closest("figure").hidden = !real;
    places.who.textContent = set.classes[set.labels[row]];
    places.panel.classList.toggle("touched", current.touched);
    const kept = views.view(current).keeps(row);
    places.panel.classList.toggle("is-dropped", !kept);
    places.kept.textContent = kept ? "kept at this size" : "not kept at this size";
    places.facts.replaceChildren(...facts(current, row).map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
    drawCurve(row);
  });

  function portrait(canvas, pictures, row, text) {
    const context = canvas.getContext("2d");
    const high = canvas.width / pictures.aspect;
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.imageSmoothingQuality = "high";
    pictures.draw(context, row, 0, Math.max(0, (canvas.height - high) / 2), canvas.width, Math.min(high, canvas.height));
    canvas.setAttribute("aria-label", text);
  }

  function facts(current, row) {
    const { classRank, rank, members, ranking } = views.view(current);
    const label = set.labels[row];
    const found = [
      ["rank in its class", `${ordinal(classRank[row] + 1)} of ${members[label].length}`],
      ["kept in subsets of", `${plural(rank[row] + 1, "patch")} or more in all`],
    ];
    const metric = set.metricOf[ranking.metric];
    if (metric) found.push([`score by ${metric.name}`, `${scoreText(metric.scores[row])} (${metric.easy} is easy)`]);
    const { places: mosaics, origin } = set;
    found.push(["stored in", mosaics ? `image ${mosaics.image[row] + 1} of its class, cell ${mosaics.cell[row] + 1} of ${set.factor ** 2}` : `index ${origin[row]}`]);
    return found;
  }

  function drawCurve(row) {
    const { errors } = set;
    places.curve.closest("figure").hidden = !errors;
    if (!errors) return;
    const [width, height] = [240, 84];
    const shown = errors.epochs.length;
    const x = scale([0, Math.max(1, errors.epochs.at(-1))], [30, width - 6]);
    const y = scale([0, errors.worst], [height - 16, 6]);
    const path = errors.epochs
      .map((epoch, i) => `${i ? "L" : "M"}${x(epoch).toFixed(1)} ${y((errors.values[row * shown + i] / 255) * errors.worst).toFixed(1)}`)
      .join("");
    clearChart(places.curve, width, height, "Error of the network on this patch in every epoch");
    places.curve.append(
      leftAxis([0, 0.7, 1.4], y, 30, width - 6),
      shape("path", { d: path, class: "kept-line" }),
      shape("text", { x: width - 6, y: height - 2, "text-anchor": "end", class: "value" }, `epoch ${errors.epochs.at(-1) + 1}`),
    );
  }
}
