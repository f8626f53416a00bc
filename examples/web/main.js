// The page: a slider, and the patches that it keeps.
import { RemoteSet } from "./reader.js";

const place = (id) => document.getElementById(id);
const url = new URLSearchParams(location.search).get("set") ?? "ranked.safetensors";
let latest = 0; // an answer that comes after the next question is not drawn

function canvasOf({ label, image }, classes) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height, canvas.title] = [image.width, image.height, classes[label]];
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

function draw(set, patches) {
  const { classes } = set.header;
  const rows = classes.map((name, label) => {
    const row = document.createElement("section");
    const title = document.createElement("h2");
    title.textContent = name;
    row.append(title, ...patches.filter((patch) => patch.label === label).map((patch) => canvasOf(patch, classes)));
    return row;
  });
  place("patches").replaceChildren(...rows);
  const kib = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;
  place("state").textContent = `${patches.length} of ${set.header.patches} patches; fetched ${kib(set.fetched)} of ${kib(set.size)}`;
}

function fail(error) {
  place("state").textContent = error.message;
  place("state").className = "error";
}

async function show(set) {
  const asked = (latest += 1);
  const count = Math.min(set.header.patches, Number(place("slider").value) * set.header.classes.length);
  const patches = await set.take(count);
  if (asked === latest) draw(set, patches);
}

try {
  const set = await RemoteSet.open(url);
  if (!set.header.ranking) throw new Error(`${set.header.name} is not ranked; rank it first.`);
  place("name").textContent = set.header.name;
  place("slider").max = Math.ceil(set.header.patches / set.header.classes.length);
  place("slider").addEventListener("input", () => show(set).catch(fail));
  await show(set);
} catch (error) {
  fail(error);
}
