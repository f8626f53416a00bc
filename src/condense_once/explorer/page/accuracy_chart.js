// Test accuracy over size, one line per rule, with error bars and the chosen size.

import { accuracyAt, isOfAnotherNet, lineOf, pointsOf } from "./accuracy.js";
import { MARKERS, bottomAxis, clearChart, leftAxis, legend, lineColour, markerShape, scale } from "./charts.js";
import { element, fillWhenOpen, shape, styled, table } from "./elements.js";
import { grouped, meanText, niceTicks, plural } from "./format.js";
import { watchVisible } from "./visibility.js";

const [WIDTH, HEIGHT] = [760, 340];
const [LEFT, RIGHT, TOP, BOTTOM] = [52, 24, 16, 52];

export function mountAccuracy(places, set, views, state) {
  const { svg, caption, numbers, select, label, text } = places;
  select.replaceChildren(...set.accuracy.map((way, i) => element("option", { value: i }, way.label)));
  label.hidden = set.accuracy.length < 2;
  select.addEventListener("change", () => state.set({ way: Number(select.value) }));
  if (!set.accuracy.length) {
    showNothing(places, set);
    return;
  }
  watchVisible(state, svg, ["ranking", "unit", "stop", "way", "theme"], (current) => {
    const way = set.accuracy[current.way];
    const { count, ranking } = views.view(current);
    const line = lineOf(way, ranking.rule);
    const other = isOfAnotherNet(line, ranking) ? `For ${line.rule}, the patches were ranked by ${line.net}; in this file they were by ${ranking.net}.` : "";
    text.textContent = [set.accuracy.length < 2 ? `Measured with ${way.label}.` : "", other].join(" ").trim();
    draw(svg, way, count, ranking);
    caption.replaceChildren(...legend(entries(way)));
    fillWhenOpen(numbers, () => numbersTable(way));
  });

  function style(way, number) {
    return { colour: lineColour(set.colours, number, styled("--text")), marker: MARKERS[number % MARKERS.length] };
  }

  function entries(way) {
    return way.lines.map((line, i) => {
      const { colour, marker } = style(way, i);
      const summary = set.rules[line.rule];
      return { colour, marker, text: summary && line.label === line.rule ? `${line.rule}: ${summary}` : line.label };
    });
  }

  function draw(chart, way, count, ranking) {
    const lines = way.lines.map((line) => pointsOf(way, line, set.patches));
    const all = lines.flat();
    const sizes = [...new Set(all.map((point) => point.patches))].sort((a, b) => a - b);
    const domain = [Math.min(count, sizes[0]), Math.max(count, sizes.at(-1))];
    const x = scale(domain, [LEFT + 14, WIDTH - RIGHT - 14], true);
    const [low, high] = [Math.min(...all.map((p) => p.mean - p.std)), Math.max(...all.map((p) => p.mean + p.std))];
    const ticks = niceTicks(Math.max(0, low - 2), high + 2, 5);
    const y = scale([Math.min(low - 2, ticks[0]), Math.max(high + 2, ticks.at(-1))], [HEIGHT - BOTTOM, TOP]);
    clearChart(chart, WIDTH, HEIGHT, chartText(way, count, ranking));
    chart.append(leftAxis(ticks, y, LEFT, WIDTH - RIGHT), bottomAxis(sizes, x, HEIGHT - BOTTOM, "patches kept", grouped));
    chart.append(shape("text", { x: LEFT - 40, y: TOP - 4, class: "axis-name" }, "%"));
    chart.append(shape("line", { x1: x(count), x2: x(count), y1: TOP, y2: HEIGHT - BOTTOM, class: "chosen" }));
    lines.forEach((points, i) => {
      const { colour, marker } = style(way, i);
      const own = way.lines[i].rule === ranking.rule;
      const path = points.map((p, k) => `${k ? "L" : "M"}${x(p.patches)} ${y(p.mean)}`).join("");
      chart.append(shape("path", { d: path, fill: "none", stroke: colour, "stroke-width": own ? 3 : 1.75 }));
      for (const p of points) {
        const at = x(p.patches);
        if (p.runs > 1) {
          const [top, bottom] = [y(p.mean + p.std), y(p.mean - p.std)];
          const bar = `M${at} ${top}V${bottom}M${at - 4} ${top}h8M${at - 4} ${bottom}h8`;
          chart.append(shape("path", { d: bar, stroke: colour, "stroke-width": 1.25, fill: "none" }));
        }
        const dot = markerShape(marker, at, y(p.mean), colour, own ? 5 : 4);
        dot.append(shape("title", {}, `${way.lines[i].label}, ${plural(p.patches, "patch")}: ${meanText(p)} % (n = ${p.runs})`));
        chart.append(dot);
      }
    });
    const line = lineOf(way, ranking.rule);
    const found = line && accuracyAt(pointsOf(way, line, set.patches), count);
    if (found) chart.append(shape("circle", { cx: x(count), cy: y(found.mean), r: 8, class: "chosen-point" }));
  }

  function chartText(way, count, ranking) {
    const line = lineOf(way, ranking.rule);
    const found = line && accuracyAt(pointsOf(way, line, set.patches), count);
    const here = found ? ` At ${plural(count, "patch")} about ${found.mean.toFixed(1)} %.` : "";
    return `Test accuracy over size for ${way.lines.map((each) => each.label).join(", ")}.${here}`;
  }

  function numbersTable(way) {
    const sizes = [...new Set(way.lines.flatMap((line) => line.points.map((p) => p[0])))].sort((a, b) => a - b);
    const rows = sizes.map((size) => [
      grouped(size),
      ...way.lines.map((line) => {
        const point = pointsOf(way, line, set.patches).find((p) => p.patches === size);
        return point ? `${meanText(point)} (n = ${point.runs})` : "";
      }),
    ]);
    return table(["patches", ...way.lines.map((line) => line.label)], rows, "Test accuracy in percent, mean and standard deviation");
  }
}

function showNothing({ svg, caption, numbers, text }, set) {
  svg.setAttribute("hidden", "");
  numbers.closest("details").hidden = true;
  caption.textContent = "";
  const whole = set.recorded.map((entry) => `${meanText({ ...entry, runs: entry.std === null ? 1 : 2 })} % (${entry.how})`);
  const known = whole.length ? `Recorded in the file for the whole set: ${whole.join("; ")}. ` : "";
  text.textContent = `${known}To see accuracies here, run a study of this set and pass its store: condense-once report … --store studies.sqlite.`;
}
