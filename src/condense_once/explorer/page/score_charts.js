// Charts of the scores: their histogram, the scores of each class in order, and the balance of classes.

import { bottomAxis, clearChart, leftAxis, legend, scale } from "./charts.js";
import { fillWhenOpen, shape, styled, table } from "./elements.js";
import { niceTicks, plural, scoreText } from "./format.js";
import { countsPerClass } from "./selection.js";
import { watchVisible } from "./visibility.js";

const BINS = 28;

/** Equal bins over the range of some scores; `of` is the bin of every row. */
export function binScores(scores, bins = BINS) {
  let [low, high] = [Infinity, -Infinity];
  for (const score of scores) [low, high] = [Math.min(low, score), Math.max(high, score)];
  const width = (high - low) / bins || 1;
  const of = Uint8Array.from(scores, (score) => Math.max(0, Math.min(bins - 1, Math.floor((score - low) / width))));
  return { low, width, bins, of };
}

/** How many rows, and how many kept ones, are in each bin. */
export function countBins({ of, bins }, keeps) {
  const [all, kept] = [new Uint32Array(bins), new Uint32Array(bins)];
  of.forEach((bin, row) => {
    all[bin] += 1;
    if (keeps(row)) kept[bin] += 1;
  });
  return { all, kept };
}

export function mountHistogram({ svg, title, caption, numbers }, set, views, state) {
  const [width, height, left, right, top, bottom] = [420, 300, 44, 10, 10, 48];
  const cache = new Map();
  let dragged = null;

  function binned(metric) {
    if (!cache.has(metric.name)) cache.set(metric.name, binScores(metric.scores));
    return cache.get(metric.name);
  }

  function select(metric, first, last) {
    const { of, low, width: step } = binned(metric);
    const [from, to] = [Math.min(first, last), Math.max(first, last)];
    const rows = Uint8Array.from(of, (bin) => (bin >= from && bin <= to ? 1 : 0));
    const text = `${metric.name} from ${scoreText(low + from * step)} to ${scoreText(low + (to + 1) * step)}`;
    state.set({ selected: rows.includes(1) ? { rows, text } : null });
  }

  function draw(current) {
    const { ranking, keeps } = views.view(current);
    const metric = set.metricOf[ranking.metric] ?? set.metrics[0];
    if (!metric) return;
    const bins = binned(metric);
    const { all, kept } = countBins(bins, keeps);
    title.textContent = `Scores by ${metric.name}: ${metric.easy === "low" ? "low is easy" : "high is easy"}`;
    caption.textContent = `${metric.summary ? `${metric.name}: ${metric.summary}. ` : ""}Click a bar, or drag over several, to select these patches.`;
    const x = scale([0, bins.bins], [left, width - right]);
    const most = Math.max(...all);
    const y = scale([0, most], [height - bottom, top]);
    const bar = (bin, count, kind) =>
      shape("rect", { x: x(bin) + 0.5, width: x(1) - x(0) - 1, y: y(count), height: y(0) - y(count), class: kind });
    const ticks = niceTicks(bins.low, bins.low + bins.width * bins.bins, 4);
    const place = scale([bins.low, bins.low + bins.width * bins.bins], [left, width - right]);
    const focused = document.activeElement?.dataset?.bin;
    clearChart(svg, width, height);
    svg.append(
      leftAxis(niceTicks(0, most, 4).filter(Number.isInteger), y, left, width - right),
      bottomAxis(ticks, place, height - bottom, metric.name),
      ...[...all].map((count, bin) => bar(bin, count, "dropped")),
      ...[...kept].map((count, bin) => bar(bin, count, "chosen-bar")),
    );
    if (current.focus !== null) {
      const at = place(metric.scores[current.focus]);
      svg.append(shape("path", { d: `M${at} ${height - bottom}v${top - height + bottom}`, class: "focus-line" }));
    }
    const inside = current.selected?.rows;
    for (let bin = 0; bin < bins.bins; bin += 1) {
      const from = scoreText(bins.low + bin * bins.width);
      const hit = shape("rect", {
        ...{ x: x(bin), width: x(1) - x(0), y: top, height: height - bottom - top, class: "hit", "data-bin": bin },
        ...{ role: "button", tabindex: String(bin) === (focused ?? "0") ? "0" : "-1" },
        "aria-label": `${metric.name} from ${from}: ${plural(all[bin], "patch")}, ${kept[bin]} kept`,
      });
      hit.addEventListener("pointerdown", () => {
        dragged = bin;
      });
      hit.addEventListener("pointerup", () => {
        if (dragged !== null) select(metric, dragged, bin);
        dragged = null;
      });
      hit.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (event.key === "Enter" || event.key === " ") select(metric, bin, bin);
        else if (event.key === "Escape") state.set({ selected: null });
        else if (step) svg.querySelector(`[data-bin="${bin + step}"]`)?.focus();
        else return;
        event.preventDefault();
      });
      svg.append(hit);
    }
    if (inside) {
      const chosen = new Uint32Array(bins.bins);
      bins.of.forEach((bin, row) => {
        chosen[bin] += inside[row];
      });
      svg.append(...[...chosen].map((count, bin) => (count ? bar(bin, count, "marked") : null)).filter(Boolean));
    }
    if (focused !== undefined) svg.querySelector(`[data-bin="${focused}"]`)?.focus();
    fillWhenOpen(numbers, () =>
      table(
        ["from", "patches", "kept"],
        [...all].map((count, bin) => [scoreText(bins.low + bin * bins.width), count, kept[bin]]),
        `Histogram of ${metric.name}`,
      ),
    );
  }

  watchVisible(state, svg, ["ranking", "unit", "stop", "focus", "selected", "theme"], draw);
}

export function mountBalance({ svg, caption, numbers }, set, views, state) {
  const there = set.classes.map((_, label) => label).filter((label) => set.sizes[label] > 0);
  const short = there.length > 30;
  const [width, left, right, bar] = [420, short ? 14 : 96, 36, short ? 4 : 9];
  const step = 2 * bar + (short ? 3 : 8);
  const height = there.length * step + 14;
  clearChart(svg, width, height);
  watchVisible(state, svg, ["ranking", "unit", "stop", "selected", "theme"], (current) => {
    const { count } = views.view(current);
    const [balanced, free] = [true, false].map((how) =>
      countsPerClass(views.ordered(current.ranking, how).order, count, set.labels, set.classes.length),
    );
    const x = scale([0, Math.max(1, ...balanced, ...free)], [left, width - right]);
    clearChart(svg, width, height, `Patches per class at ${plural(count, "patch")}: balanced ${range(balanced, there)}, not balanced ${range(free, there)}.`);
    there.forEach((label, i) => {
      const y = 6 + i * step;
      const chosen = current.selected?.label === label;
      if (!short) svg.append(shape("text", { x: left - 8, y: y + bar + 4, "text-anchor": "end", class: chosen ? "strong" : "" }, shortName(set.classes[label])));
      const draw = (counts, top, kind, tall) =>
        svg.append(shape("rect", { x: left, y: top, height: tall, width: Math.max(0, x(counts[label]) - left), class: kind }));
      draw(balanced, y, "chosen-bar", bar - 1);
      draw(free, y + bar, "other-bar", bar - 1);
      if (!short) {
        svg.append(shape("text", { x: x(balanced[label]) + 4, y: y + bar - 1, class: "value" }, String(balanced[label])));
        svg.append(shape("text", { x: x(free[label]) + 4, y: y + 2 * bar, class: "value" }, String(free[label])));
      }
    });
    caption.replaceChildren(
      ...legend([
        { colour: styled("--accent"), text: "balanced" },
        { colour: styled("--other"), text: "not balanced: the best scores, whatever the class" },
      ]),
    );
    fillWhenOpen(numbers, () =>
      table(["class", "balanced", "not balanced"], there.map((label) => [set.classes[label], balanced[label], free[label]]), "Patches per class"),
    );
  });
}

function range(counts, labels) {
  const values = labels.map((label) => counts[label]);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low === high ? `${low}` : `${low} to ${high}`;
}

function shortName(name) {
  return name.length > 14 ? `${name.slice(0, 13)}…` : name;
}

export function mountSorted({ svg, title, caption, numbers }, set, views, state) {
  const [width, height, left, right, top, bottom] = [420, 300, 52, 12, 10, 48];
  const most = Math.max(...set.sizes);
  let background = null; // the lines of all classes, drawn once for each ranking

  function drawBackground(metric, members) {
    let [low, high] = [Infinity, -Infinity];
    for (const score of metric.scores) [low, high] = [Math.min(low, score), Math.max(high, score)];
    const x = scale([1, Math.max(2, most)], [left, width - right]);
    const y = scale([low, high], [height - bottom, top]);
    const path = (rows) => rows.map((row, i) => `${i ? "L" : "M"}${x(i + 1).toFixed(1)} ${y(metric.scores[row]).toFixed(1)}`).join("");
    const axes = [leftAxis(niceTicks(low, high, 5), y, left, width - right), bottomAxis(niceTicks(1, most, 6).filter(Number.isInteger), x, height - bottom, "rank in its class")];
    const lines = members.filter((rows) => rows.length).map((rows) => shape("path", { d: path(rows), class: "faint-line" }));
    return { members, path, group: shape("g", {}, ...axes, ...lines) };
  }

  watchVisible(state, svg, ["ranking", "unit", "stop", "focus", "selected"], (current) => {
    const { ranking, members, counts } = views.view(current);
    const metric = set.metricOf[ranking.metric] ?? set.metrics[0];
    if (!metric) return;
    if (background?.members !== members) background = drawBackground(metric, members);
    const { path, group } = background;
    const chosen = current.selected?.label ?? set.labels[current.focus ?? 0];
    title.textContent = `Scores by ${metric.name} in each class, in rank order`;
    clearChart(svg, width, height);
    svg.append(
      group,
      shape("path", { d: path(members[chosen]), class: "dropped-line" }),
      shape("path", { d: path(members[chosen].slice(0, counts[chosen])), class: "kept-line" }),
    );
    caption.textContent = `Thick: ${set.classes[chosen]}, ${counts[chosen]} of ${members[chosen].length} kept. Thin: the other classes.`;
    fillWhenOpen(numbers, () =>
      table(
        ["rank", ...set.classes],
        Array.from({ length: most }, (_, i) => [i + 1, ...members.map((rows) => (i < rows.length ? scoreText(metric.scores[rows[i]]) : ""))]),
        `Scores by ${metric.name}, in rank order of each class`,
      ),
    );
  });
}
