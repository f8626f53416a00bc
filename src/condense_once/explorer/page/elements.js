// Elements of the page. Text is only ever set as text, so that names from a file stay names.

const SVG = "http://www.w3.org/2000/svg";

export function byId(id) {
  return document.getElementById(id);
}

/** An HTML element with properties and children; strings become text. */
export function element(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** An SVG element. */
export function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** A table of a header and rows; the first cell of a row is its header. */
export function table(header, rows, caption) {
  const line = ([first, ...others]) =>
    element("tr", {}, element("th", { scope: "row" }, String(first)), ...others.map((cell) => element("td", {}, String(cell))));
  return element(
    "table",
    {},
    element("caption", { class: "visually-hidden" }, caption),
    element("thead", {}, element("tr", {}, ...header.map((cell) => element("th", { scope: "col" }, String(cell))))),
    element("tbody", {}, ...rows.map(line)),
  );
}

/** Fill the table under a chart now, if it is open, or when it is opened. */
export function fillWhenOpen(place, make) {
  const details = place.closest("details");
  const fill = () => details.open && place.replaceChildren(make());
  details.ontoggle = fill;
  fill();
}

const values = new Map();

/** The value of a colour of the style sheet. */
export function styled(name) {
  if (!values.has(name)) values.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return values.get(name);
}

/** Read the colours again: the page has become light or dark. */
export function forgetStyles() {
  values.clear();
}

/** Make a canvas as sharp as the screen, `width`×`height` in its pixels of CSS; returns a context in these. */
export function sharpCanvas(canvas, width, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.imageSmoothingQuality = "medium";
  return context;
}

/** Whether a key event is one of the arrows or the like that move a selection; returns the step in a grid of columns. */
export function stepOf(event, columns) {
  return { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns, Home: -Infinity, End: Infinity }[event.key] ?? null;
}
