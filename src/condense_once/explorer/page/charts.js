// What all charts share: axes, scales, a legend.

import { element, shape } from "./elements.js";

/** A linear or logarithmic function from a domain to pixels. */
export function scale([low, high], [from, to], logarithmic = false) {
  const place = logarithmic ? Math.log : (value) => value;
  const [a, b] = [place(low), place(high)];
  return (value) => from + ((place(value) - a) / (b - a || 1)) * (to - from);
}

/** An empty chart of `width`×`height` user units, which fills the width of its place. */
export function clearChart(svg, width, height, label) {
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  if (label) svg.setAttribute("aria-label", label);
  svg.replaceChildren();
  return svg;
}

/** Grid lines with numbers on the left, at these values. */
export function leftAxis(ticks, y, left, right, text = String) {
  return shape(
    "g",
    { class: "axis" },
    ...ticks.map((tick) => shape("line", { x1: left, x2: right, y1: y(tick), y2: y(tick), class: "grid" })),
    ...ticks.map((tick) => shape("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, text(tick))),
  );
}

/** Numbers below, at these values, and the name of the axis. */
export function bottomAxis(ticks, x, top, name, text = String) {
  const last = ticks.length ? (x(ticks[0]) + x(ticks.at(-1))) / 2 : 0;
  return shape(
    "g",
    { class: "axis" },
    ...ticks.map((tick) => shape("line", { x1: x(tick), x2: x(tick), y1: top, y2: top + 4, class: "tick" })),
    ...ticks.map((tick) => shape("text", { x: x(tick), y: top + 18, "text-anchor": "middle" }, text(tick))),
    shape("text", { x: last, y: top + 36, "text-anchor": "middle", class: "axis-name" }, name),
  );
}

/** Entries of a colour, a marker's outline and a text. */
export function legend(entries) {
  return entries.map(({ colour, text, marker = "square" }) =>
    element(
      "span",
      { class: "entry" },
      filledIcon(colour, marker),
      text,
    ),
  );
}

function filledIcon(colour, marker) {
  const svg = shape("svg", { viewBox: "-7 -7 14 14", class: "icon", "aria-hidden": "true" });
  svg.append(markerShape(marker, 0, 0, colour, 5));
  return svg;
}

/** A marker; shapes differ, so that colours need not be told apart. */
export function markerShape(kind, x, y, fill, r = 4) {
  const paths = {
    square: `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
    up: `M${x} ${y - r * 1.2}l${r * 1.2} ${r * 2.1}h${-r * 2.4}z`,
    down: `M${x} ${y + r * 1.2}l${r * 1.2} ${-r * 2.1}h${-r * 2.4}z`,
    diamond: `M${x} ${y - r * 1.3}l${r * 1.3} ${r * 1.3}l${-r * 1.3} ${r * 1.3}l${-r * 1.3} ${-r * 1.3}z`,
  };
  return paths[kind] ? shape("path", { d: paths[kind], fill }) : shape("circle", { cx: x, cy: y, r, fill });
}

export const MARKERS = ["circle", "square", "up", "diamond", "down"];

/** The colours of the library's figures; black becomes the colour of text, which is light on a dark page. */
export function lineColour(colours, number, text) {
  const colour = colours[number % colours.length];
  return colour === "#000000" ? text : colour;
}
