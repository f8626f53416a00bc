// The map: every patch at the position of its features; kept ones in colour on top, the others faded.

import { sharpCanvas, styled } from "./elements.js";
import { plural } from "./format.js";
import { copyThumbnail } from "./sprite.js";
import { watchVisible } from "./visibility.js";

const FADED = 0.16;
const [WHOLE, FADE] = [0xffffffff, ((Math.round(FADED * 255) << 24) | 0xffffff) >>> 0]; // masks of alpha, blue, green, red
const MARGIN = 24;
const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

/** Side of a picture on a map of so many, before zooming. */
export function pictureSide(width, height, patches) {
  return Math.max(7, Math.min(40, 0.85 * Math.sqrt((width * height) / patches)));
}

/** The patch nearest to a point, within `reach`; of two at the same place the one on top. */
export function nearestRow(xs, ys, x, y, reach, isAbove) {
  let best = -1;
  let distance = reach * reach;
  for (let row = 0; row < xs.length; row += 1) {
    const d = (xs[row] - x) ** 2 + (ys[row] - y) ** 2;
    if (d < distance || (d === distance && best >= 0 && isAbove(row, best))) [best, distance] = [row, d];
  }
  return best;
}

/** The nearest patch in one direction, within 45 degrees of it. */
export function neighbourOf(xs, ys, from, [dx, dy]) {
  let best = -1;
  let least = Infinity;
  for (let row = 0; row < xs.length; row += 1) {
    const along = (xs[row] - xs[from]) * dx + (ys[row] - ys[from]) * dy;
    const across = Math.abs((xs[row] - xs[from]) * dy) + Math.abs((ys[row] - ys[from]) * dx);
    if (row === from || along <= 0 || across > along) continue;
    if (along + across < least) [best, least] = [row, along + across];
  }
  return best;
}

export function mountMap(canvas, buttons, set, sprite, views, state, describe) {
  const xs = new Float32Array(set.patches);
  const ys = new Float32Array(set.patches);
  let [width, height] = [0, 0];
  let zoom = 1;
  let centre = [0.5, 0.5];
  let drag = null;
  let thumbnails = null;

  function place() {
    const [wide, high] = [width - 2 * MARGIN, height - 2 * MARGIN];
    for (let row = 0; row < set.patches; row += 1) {
      xs[row] = width / 2 + zoom * wide * (set.map.x[row] / 65535 - centre[0]);
      ys[row] = height / 2 + zoom * high * (set.map.y[row] / 65535 - centre[1]);
    }
  }

  function draw() {
    if (!width) return; // not laid out yet
    const current = state.get();
    const { order, count } = views.view(current);
    const side = pictureSide(width, height, set.patches) * Math.sqrt(zoom);
    const [wide, high] = sprite.aspect >= 1 ? [side, side / sprite.aspect] : [side * sprite.aspect, side];
    const context = sharpCanvas(canvas, width, height);
    const picture = (row) => {
      const [x, y] = [xs[row] - wide / 2, ys[row] - high / 2];
      if (x < width && y < height && x + wide > 0 && y + high > 0) sprite.draw(context, row, x, y, wide, high);
    };
    if (!drawThumbnails(context, order, count, wide, high)) {
      context.globalAlpha = FADED;
      for (let i = order.length - 1; i >= count; i -= 1) picture(order[i]);
      context.globalAlpha = 1;
      for (let i = count - 1; i >= 0; i -= 1) picture(order[i]);
    }
    const outline = (row, colour, line) => {
      context.strokeStyle = colour;
      context.lineWidth = line;
      context.strokeRect(xs[row] - wide / 2, ys[row] - high / 2, wide, high);
    };
    if (current.selected) current.selected.rows.forEach((chosen, row) => chosen && outline(row, styled("--mark"), 2));
    if (current.focus !== null) {
      context.globalAlpha = 1;
      picture(current.focus);
      outline(current.focus, styled("--page"), 5);
      outline(current.focus, styled("--focus"), 3);
    }
    if (drag?.to) {
      context.setLineDash([4, 3]);
      context.strokeStyle = styled("--text");
      context.lineWidth = 1;
      context.strokeRect(drag.from[0], drag.from[1], drag.to[0] - drag.from[0], drag.to[1] - drag.from[1]);
      context.setLineDash([]);
    }
  }

  /** Copy pixels, which for thousands of small pictures is many times faster than drawing images. */
  function drawThumbnails(context, order, count, wide, high) {
    const ratio = canvas.width / width;
    const [w, h] = [Math.round(wide * ratio), Math.round(high * ratio)];
    if (thumbnails?.wide !== w || thumbnails.high !== h) thumbnails = sprite.thumbnails(w, h) ?? { wide: w, high: h, pixels: null };
    if (!thumbnails.pixels) return false;
    const image = context.createImageData(canvas.width, canvas.height);
    const target = new Uint32Array(image.data.buffer);
    for (let i = order.length - 1; i >= 0; i -= 1) {
      const row = order[i];
      const [x, y] = [Math.round(xs[row] * ratio - w / 2), Math.round(ys[row] * ratio - h / 2)];
      copyThumbnail(thumbnails, row, target, canvas.width, canvas.height, x, y, i < count ? WHOLE : FADE);
    }
    context.putImageData(image, 0, 0);
    return true;
  }

  function measure() {
    width = canvas.parentElement.clientWidth;
    height = Math.round(Math.min(width * 0.72, Math.max(320, window.innerHeight * 0.75)));
    sharpCanvas(canvas, width, height);
    place();
  }

  function zoomTo(next, around = [0.5, 0.5]) {
    const before = zoom;
    zoom = Math.max(1, Math.min(16, next));
    centre = centre.map((at, axis) => {
      const moved = at + (around[axis] - 0.5) * (1 / before - 1 / zoom);
      return Math.max(0.5 / zoom, Math.min(1 - 0.5 / zoom, moved));
    });
    place();
    draw();
  }

  const keeps = (row) => views.view(state.get()).keeps(row);
  const reach = () => pictureSide(width, height, set.patches) * Math.sqrt(zoom);
  const at = (event) => [event.offsetX, event.offsetY];

  canvas.addEventListener("pointerdown", (event) => {
    const found = nearestRow(xs, ys, ...at(event), reach(), (row, other) => keeps(row) && !keeps(other));
    if (found >= 0) state.set({ focus: found, touched: true });
    if (event.pointerType !== "mouse" || event.button !== 0) return;
    drag = { from: at(event), to: null };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) {
      const found = nearestRow(xs, ys, ...at(event), reach(), (row, other) => keeps(row) && !keeps(other));
      if (found >= 0 && event.pointerType === "mouse") state.set({ focus: found });
      return;
    }
    const to = at(event);
    if (drag.to || Math.hypot(to[0] - drag.from[0], to[1] - drag.from[1]) > 6) {
      drag.to = to;
      draw();
    }
  });
  canvas.addEventListener("pointerup", () => {
    const done = drag;
    drag = null;
    if (!done?.to) return;
    const [left, right] = [done.from[0], done.to[0]].sort((a, b) => a - b);
    const [top, bottom] = [done.from[1], done.to[1]].sort((a, b) => a - b);
    const rows = Uint8Array.from(xs, (x, row) => (x >= left && x <= right && ys[row] >= top && ys[row] <= bottom ? 1 : 0));
    state.set({ selected: rows.includes(1) ? { rows, text: "an area of the map" } : null });
    draw();
  });
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
      event.preventDefault();
      zoomTo(zoom * Math.exp(-event.deltaY / 200), [event.offsetX / width, event.offsetY / height]);
    },
    { passive: false },
  );
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "+" || event.key === "=") zoomTo(zoom * 1.5);
    else if (event.key === "-") zoomTo(zoom / 1.5);
    else if (event.key === "Escape") state.set({ selected: null });
    else if (ARROWS[event.key]) {
      event.preventDefault();
      const next = neighbourOf(set.map.x, set.map.y, state.get().focus, ARROWS[event.key]);
      if (next >= 0) state.set({ focus: next, touched: true });
    }
  });
  buttons.more.addEventListener("click", () => zoomTo(zoom * 1.5));
  buttons.less.addEventListener("click", () => zoomTo(zoom / 1.5));
  buttons.all.addEventListener("click", () => zoomTo(1));
  buttons.clear.addEventListener("click", () => state.set({ selected: null }));

  state.watch(["ranking", "unit", "stop", "focus", "selected"], (current) => {
    const { count } = views.view(current);
    const chosen = current.selected?.rows.reduce((sum, one) => sum + one, 0) ?? 0;
    const among = chosen ? current.selected.rows.reduce((sum, one, row) => sum + (one && keeps(row) ? 1 : 0), 0) : 0;
    buttons.clear.disabled = !current.selected;
    buttons.text.textContent = current.selected ? `${current.selected.text}: ${plural(chosen, "patch")}, ${among} kept` : "";
    const focused = current.focus === null ? "" : ` Chosen: ${describe(current.focus)}.`;
    canvas.setAttribute("aria-label", `Map of ${plural(set.patches, "patch")}, ${count} kept. Arrow keys go to the next patch.${focused}`);
  });
  measure();
  watchVisible(state, canvas, ["ranking", "unit", "stop", "focus", "selected", "theme"], draw);
  new ResizeObserver(() => {
    if (width === canvas.parentElement.clientWidth) return;
    measure();
    draw();
  }).observe(canvas.parentElement);
}
