// The page: decode the data, connect the controls, mount the parts.

import { accuracyAt, isOfAnotherNet, lineOf, pointsOf } from "./accuracy.js";
import { mountAccuracy } from "./accuracy_chart.js";
import { UNITS, bytesAt, commandFor, stopAt } from "./budget.js";
import { decodePage } from "./decode.js";
import { describePatch, mountDetails } from "./details.js";
import { byId, element, forgetStyles, table } from "./elements.js";
import { mountExtremes } from "./extremes.js";
import { grouped, humanBytes, plural } from "./format.js";
import { mountMap } from "./map.js";
import { mountBalance, mountHistogram, mountSorted } from "./score_charts.js";
import { sharedRows } from "./selection.js";
import { mountSheet } from "./sheet.js";
import { loadSprite } from "./sprite.js";
import { createState } from "./state.js";
import { createView } from "./view.js";

const set = decodePage(JSON.parse(byId("data").textContent));
const views = createView(set);
const state = createState(initialState(), requestAnimationFrame);

/** Half of the images per class, or of the patches where there is no whole image per class. */
function initialState() {
  const unit = views.stopsFor(0, "ipc").length > 1 ? "ipc" : "fraction";
  const stop = Math.max(0, Math.ceil(views.stopsFor(0, unit).length / 2) - 1);
  return { ranking: 0, unit, stop, focus: views.ordered(0).order[0], selected: null, way: 0, theme: 0, touched: false };
}

function fillWords() {
  byId("name").textContent = set.name;
  byId("summary").textContent = set.summary;
  byId("explain").textContent =
    "They are ranked: keep as many of the best as you have room for. Move the slider to see which patches stay, and what dropping the others costs in test accuracy.";
  byId("map-hint").textContent =
    `Laid out by ${set.map.of} (t-SNE). Kept patches are in colour, the others faded. Drag to select an area; selections show in every chart.`;
  byId("facts").replaceChildren(...set.facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
  byId("cite").replaceChildren(...set.cite.map((entry) => element("pre", { tabindex: "0" }, entry)));
  byId("colophon").textContent = [`Made with ${set.by}. This page is one file and loads nothing from the network.`, ...set.notes].join(" ");
}

/** Without scores in the file there is nothing to show of them. */
function hideWithoutScores() {
  for (const part of document.querySelectorAll("[data-needs-scores]")) part.hidden = !set.metrics.length;
}

/** What makes a patch one of the best, in words. */
function explainBest() {
  state.watch(["ranking"], (current) => {
    const { ranking } = views.view(current);
    const metric = set.metricOf[ranking.metric];
    const end = (metric?.easy === "low") === (ranking.prefer === "easy") ? "lowest" : "highest";
    byId("best").textContent = metric?.summary && metric.name !== "random" ? `Best: ${end} ${metric.name}, the ${metric.summary}.` : "";
  });
}

function connectControls() {
  const { unit, ranking, slider, value } = Object.fromEntries(["unit", "ranking", "slider", "value"].map((id) => [id, byId(id)]));
  ranking.replaceChildren(...set.rankings.map((each, i) => element("option", { value: i }, each.label)));
  ranking.disabled = set.rankings.length < 2;
  const options = () =>
    Object.entries(UNITS)
      .filter(([name]) => views.stopsFor(state.get().ranking, name).length)
      .map(([name, words]) => element("option", { value: name }, words.name));
  unit.replaceChildren(...options());

  /** Change ranking or unit, and keep about as many patches. */
  function change(changes) {
    const before = views.view(state.get()).count;
    const next = { ...state.get(), ...changes };
    if (!views.stopsFor(next.ranking, next.unit).length) next.unit = "patches";
    state.set({ ...changes, unit: next.unit, stop: stopAt(views.stopsFor(next.ranking, next.unit), before) });
  }
  unit.addEventListener("change", () => change({ unit: unit.value }));
  ranking.addEventListener("change", () => {
    change({ ranking: Number(ranking.value) });
    unit.replaceChildren(...options());
  });
  slider.addEventListener("input", () => state.set({ stop: Number(slider.value) }));
  value.addEventListener("change", () => {
    const wanted = Number.parseFloat(value.value.replaceAll(",", ""));
    const { stops } = views.view(state.get());
    const asCounts = stops.map((stop) => ({ count: stop.value }));
    if (Number.isFinite(wanted)) state.set({ stop: stopAt(asCounts, wanted) });
    showControls(state.get());
  });

  function showControls(current) {
    const { stops, stop, count } = views.view(current);
    slider.min = 0;
    slider.max = stops.length - 1;
    slider.value = current.stop;
    unit.value = current.unit;
    ranking.value = current.ranking;
    value.value = grouped(stop.value);
    const words = (each) => `${current.unit === "bytes" ? humanBytes(each.value) : grouped(each.value)}${current.unit === "fraction" ? " %" : ""}`;
    byId("least").textContent = words(stops[0]);
    byId("most").textContent = words(stops.at(-1));
    slider.setAttribute("aria-valuetext", `${words(stop)}${current.unit === "bytes" || current.unit === "fraction" ? "" : ` ${UNITS[current.unit][stop.value === 1 ? "one" : "name"]}`}, ${plural(count, "patch")}`);
  }
  state.watch(["ranking", "unit", "stop"], showControls);
}

function showNumbers(current) {
  const { count, ranking, stop } = views.view(current);
  const { bytes, exact } = bytesAt(count, set, ranking);
  const { bytes: whole } = bytesAt(set.patches, set, ranking);
  byId("patches").textContent = grouped(count);
  byId("of").textContent = `of ${grouped(set.patches)}`;
  byId("bytes").textContent = `${exact ? "" : "≈ "}${humanBytes(bytes)}`;
  byId("share").textContent = `of ${humanBytes(whole)}`;
  byId("command").textContent = commandFor(current.unit, stop, ranking);
  const [accuracy, spread] = accuracyWords(current, count, ranking);
  byId("accuracy").textContent = accuracy;
  byId("spread").textContent = spread;
}

/** The accuracy at a size, and what it is worth. */
function accuracyWords(current, count, ranking) {
  const way = set.accuracy[current.way];
  const line = lineOf(way, ranking.rule);
  const found = line && accuracyAt(pointsOf(way, line, set.patches), count);
  if (found && isOfAnotherNet(line, ranking)) return [`≈ ${found.mean.toFixed(0)} %`, "of a similar ranking"];
  if (found?.measured) return [`${found.mean.toFixed(1)} %`, found.runs > 1 ? `± ${found.std.toFixed(1)} std, ${found.runs} runs` : "1 run"];
  if (found) return [`≈ ${found.mean.toFixed(0)} %`, "between measured sizes"];
  const recorded = !way && count === set.patches ? set.recorded[0] : null;
  if (recorded) return [`${recorded.mean.toFixed(1)} %`, recorded.std === null ? "" : `± ${recorded.std.toFixed(1)} std`];
  return ["–", "not measured"];
}

function connectCopy() {
  const [button, command] = [byId("copy"), byId("command")];
  button.addEventListener("click", async () => {
    const done = await copyText(command);
    button.textContent = done ? "Copied" : "Press Ctrl-C";
    setTimeout(() => {
      button.textContent = "Copy";
    }, 1500);
  });
}

/** Copy the text of an element; where the browser refuses, it stays selected for the user to copy. */
async function copyText(source) {
  getSelection().selectAllChildren(source);
  try {
    await navigator.clipboard.writeText(source.textContent);
    return true;
  } catch {
    return document.execCommand("copy");
  }
}

function connectComparison() {
  const others = set.rankings.map((ranking, index) => ({ ranking, index })).filter(({ ranking, index }) => index > 0 && ranking.order);
  byId("comparison").hidden = !others.length;
  if (!others.length) return;
  state.watch(["ranking", "unit", "stop"], (current) => {
    const { order, count } = views.view(current);
    const rows = others.map(({ ranking, index }) => {
      const shared = sharedRows(order, views.ordered(index).order, count);
      return [ranking.label, `${grouped(shared)} of ${grouped(count)} (${Math.round((100 * shared) / count)} %)`, grouped(Math.round(count ** 2 / set.patches))];
    });
    byId("comparison-table").replaceChildren(table(["ranking", "also kept by it", "by chance"], rows, "Overlap with other rankings"));
  });
}

async function start() {
  fillWords();
  hideWithoutScores();
  explainBest();
  connectControls();
  connectCopy();
  state.watch(["ranking", "unit", "stop", "way"], showNumbers);
  const sprite = await loadSprite(byId("sprite"), set.sprite);
  const real = set.real ? await loadSprite(byId("real"), set.real.sprite) : null;
  const describe = (row) => describePatch(set, views, state.get(), row);
  mountSheet(byId("rows"), set, sprite, views, state, describe);
  mountDetails(
    {
      ...{ panel: byId("details"), large: byId("large"), real: byId("real-large"), realText: byId("real-text"), kept: byId("details-kept") },
      ...{ who: byId("details-class"), facts: byId("details-facts"), curve: byId("curve") },
    },
    ...[set, sprite, real, views, state],
  );
  const mapTools = { more: byId("zoom-in"), less: byId("zoom-out"), all: byId("zoom-all"), clear: byId("clear"), text: byId("selected") };
  mountMap(byId("map"), mapTools, set, sprite, views, state, describe);
  mountHistogram(
    { svg: byId("histogram"), title: byId("histogram-title"), caption: byId("histogram-caption"), numbers: byId("histogram-table") },
    ...[set, views, state],
  );
  mountAccuracy(
    {
      ...{ svg: byId("accuracy-chart"), caption: byId("accuracy-legend"), numbers: byId("accuracy-table") },
      ...{ select: byId("way"), label: byId("way-label"), text: byId("way-text") },
    },
    ...[set, views, state],
  );
  mountBalance({ svg: byId("balance"), caption: byId("balance-legend"), numbers: byId("balance-table") }, set, views, state);
  mountSorted({ svg: byId("sorted"), title: byId("sorted-title"), caption: byId("sorted-caption"), numbers: byId("sorted-table") }, set, views, state);
  mountExtremes(byId("extremes"), byId("extremes-hint"), set, sprite, views, state);
  connectComparison();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    forgetStyles();
    state.set({ theme: state.get().theme + 1 });
  });
  document.documentElement.dataset.ready = "true";
  performance.mark("ready");
}

start();
