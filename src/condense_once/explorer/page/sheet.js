// The contact sheet: one strip of patches per class, best first; those that are not kept are faded.

import { element, sharpCanvas, stepOf, styled } from "./elements.js";
import { plural } from "./format.js";

const FADED = 0.13;
const [SMALLEST, LARGEST] = [18, 46]; // sides of a picture in one line
const CROWDED = 2000; // from here on pictures are smaller

/** Side of a picture and pictures per line, for strips of `most` pictures in `width` pixels. */
export function stripShape(width, most, patches) {
  if (width / most >= SMALLEST) return { side: Math.min(LARGEST, Math.floor(width / most)), columns: most };
  const side = patches > CROWDED ? 13 : 22;
  const lines = Math.ceil(most / Math.max(1, Math.floor(width / side)));
  const columns = Math.ceil(most / lines);
  return { side: Math.floor(width / columns), columns };
}

/** Draw the strips into `place` and keep them up to date. */
export function mountSheet(place, set, sprite, views, state, describe) {
  const strips = set.classes.map((name, label) => (set.sizes[label] ? makeStrip(name, label) : null)).filter(Boolean);
  const most = Math.max(...set.sizes);
  let look = stripShape(place.clientWidth, most, set.patches);
  place.replaceChildren(...strips.map((strip) => strip.row));

  const visible = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        const strip = strips.find((each) => each.row === entry.target);
        strip.visible = entry.isIntersecting;
        if (strip.visible && strip.stale) draw(strip);
      }
    },
    { rootMargin: "300px" },
  );
  for (const strip of strips) visible.observe(strip.row);

  function makeStrip(name, label) {
    const canvas = element("canvas", { "aria-hidden": "true" });
    const option = element("span", { role: "option", id: `option-${label}`, "aria-selected": "true", class: "visually-hidden" });
    const list = element("div", { class: "strip", role: "listbox", tabindex: "0", "aria-activedescendant": `option-${label}` }, canvas, option);
    const button = element("button", { type: "button", class: "class-name", "aria-pressed": "false", title: name }, name);
    const kept = element("span", { class: "kept" });
    const row = element("div", { class: "class-row", "data-label": label }, button, list, kept);
    const strip = { label, name, canvas, option, list, button, kept, row, visible: false, stale: true, drawn: null, current: 0 };
    button.addEventListener("click", () => selectClass(strip));
    list.addEventListener("keydown", (event) => move(strip, event));
    list.addEventListener("focus", () => focusPlace(strip, strip.current));
    canvas.addEventListener("pointermove", (event) => event.pointerType === "mouse" && point(strip, event));
    canvas.addEventListener("pointerdown", (event) => point(strip, event));
    return strip;
  }

  function selectClass(strip) {
    const already = strip.button.getAttribute("aria-pressed") === "true";
    const rows = Uint8Array.from(set.labels, (label) => (label === strip.label ? 1 : 0));
    state.set({ selected: already ? null : { rows, text: `class ${strip.name}`, label: strip.label } });
  }

  function members(strip) {
    return views.view(state.get()).members[strip.label];
  }

  function move(strip, event) {
    const step = stepOf(event, look.columns);
    if (step === null) return;
    event.preventDefault();
    focusPlace(strip, strip.current + step);
  }

  function point(strip, event) {
    const pointed = Math.floor(event.offsetY / height()) * look.columns + Math.floor(event.offsetX / look.side);
    if (pointed < members(strip).length) focusPlace(strip, pointed);
  }

  function focusPlace(strip, wanted) {
    const rows = members(strip);
    strip.current = Math.max(0, Math.min(rows.length - 1, wanted));
    state.set({ focus: rows[strip.current], touched: true });
  }

  function height() {
    return Math.round(look.side / sprite.aspect);
  }

  /** Draw a strip: all of it if its order or look has changed, else only the patches that changed. */
  function draw(strip) {
    const current = state.get();
    const { members: all, counts } = views.view(current);
    const rows = all[strip.label];
    const next = {
      ...{ rows, selected: current.selected, theme: current.theme, look },
      ...{ count: counts[strip.label], focus: rows.indexOf(current.focus) },
    };
    const { drawn } = strip;
    strip.drawn = next;
    strip.stale = false;
    if (drawn && ["rows", "selected", "theme", "look"].every((name) => drawn[name] === next[name])) {
      const context = strip.canvas.getContext("2d");
      const [from, to] = [drawn.count, next.count].sort((one, other) => one - other);
      for (let i = from; i < to; i += 1) paint(context, next, i);
      for (const i of [drawn.focus, next.focus]) if (i >= 0) paint(context, next, i);
      return;
    }
    const context = sharpCanvas(strip.canvas, look.columns * look.side, Math.ceil(rows.length / look.columns) * height());
    for (let i = 0; i < rows.length; i += 1) paint(context, next, i);
  }

  function paint(context, { rows, count, focus, selected }, i) {
    const high = height();
    const [x, y] = [(i % look.columns) * look.side, Math.floor(i / look.columns) * high];
    context.clearRect(x, y, look.side, high);
    context.globalAlpha = i < count ? 1 : FADED;
    sprite.draw(context, rows[i], x, y, look.side - 1, high - 1);
    context.globalAlpha = 1;
    const outline = (colour, wide) => {
      context.strokeStyle = colour;
      context.lineWidth = wide;
      context.strokeRect(x + wide / 2, y + wide / 2, look.side - 1 - wide, high - 1 - wide);
    };
    if (selected?.rows[rows[i]]) outline(styled("--mark"), 2);
    if (i === focus) outline(styled("--focus"), Math.min(3, look.side / 6));
  }

  function update(current) {
    const { counts, members: all } = views.view(current);
    for (const strip of strips) {
      const { label, name, row, list, kept } = strip;
      const text = `${counts[label]} of ${plural(all[label].length, "patch")} kept`;
      row.dataset.kept = counts[label];
      kept.textContent = counts[label];
      list.setAttribute("aria-label", `${name}: ${text}`);
      const found = all[label].indexOf(current.focus);
      if (found >= 0) {
        strip.current = found;
        strip.option.textContent = describe(current.focus);
      }
      strip.button.setAttribute("aria-pressed", String(current.selected?.label === label));
      strip.stale = true;
      if (strip.visible) draw(strip);
    }
  }

  state.watch(["ranking", "unit", "stop", "focus", "selected", "theme"], update);
  new ResizeObserver(() => {
    const next = stripShape(strips[0].list.clientWidth, most, set.patches);
    if (next.side === look.side && next.columns === look.columns && !strips[0].stale) return;
    look = next;
    const tall = Math.ceil(most / look.columns) * height();
    for (const strip of strips) strip.list.style.minHeight = `${tall}px`;
    update(state.get());
  }).observe(strips[0].list);
  window.addEventListener("beforeprint", () => strips.forEach(draw));
}
