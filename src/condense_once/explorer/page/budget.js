// Budgets: the sizes that the slider stops at, in each unit, and the command that makes the subset.

export const UNITS = {
  ipc: { name: "images per class", one: "image per class" },
  patches: { name: "patches", one: "patch" },
  fraction: { name: "% of all", one: "% of all" },
  bytes: { name: "bytes", one: "byte" },
};

/** The stops of the slider in a unit, smallest first: a value in the unit and how many patches that keeps. */
export function stopsOf(unit, set, ranking) {
  return { ipc: ipcStops, patches: patchStops, fraction: percentStops, bytes: byteStops }[unit](set, ranking);
}

function ipcStops(set, ranking) {
  const there = [...set.sizes].filter((size) => size > 0);
  const cells = set.factor ** 2;
  const perImage = cells * (ranking.balanced ? there.length : set.classes.length);
  const most = Math.floor(ranking.balanced ? Math.min(...there) / cells : set.patches / perImage);
  return Array.from({ length: most }, (_, i) => ({ value: i + 1, count: (i + 1) * perImage }));
}

function patchStops(set) {
  return Array.from({ length: set.patches }, (_, i) => ({ value: i + 1, count: i + 1 }));
}

function percentStops(set) {
  const stops = Array.from({ length: 100 }, (_, i) => ({ value: i + 1, count: Math.floor(((i + 1) * set.patches) / 100) }));
  return stops.filter((stop) => stop.count > 0);
}

/** With balance only whole rounds of all classes, as a limit in bytes keeps no others. */
function byteStops(set, ranking) {
  const { counts, bytes } = ranking.sizes ?? set.rankings[0].sizes;
  const rounds = ranking.balanced ? wholeRounds(set.sizes) : null;
  return [...counts]
    .map((count, i) => ({ value: bytes[i], count }))
    .filter((stop) => rounds === null || rounds.has(stop.count));
}

/** How many patches there are after each round of all classes that still have some. */
export function wholeRounds(sizes) {
  const totals = new Set();
  for (let round = 1; round <= Math.max(...sizes); round += 1) {
    totals.add(sizes.reduce((total, size) => total + Math.min(size, round), 0));
  }
  return totals;
}

/** The index of the last stop that keeps at most `count` patches, or of the first. */
export function stopAt(stops, count) {
  let low = 0;
  let high = stops.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (stops[middle].count <= count) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The bytes of a file of so many patches, and whether that is exact. */
export function bytesAt(count, set, ranking) {
  const { counts, bytes } = ranking.sizes ?? set.rankings[0].sizes;
  let right = counts.findIndex((known) => known >= count);
  if (right < 0) right = counts.length - 1;
  if (counts[right] === count) return { bytes: bytes[right], exact: ranking.sizes !== null };
  const left = Math.max(0, right - 1);
  const way = right === left ? 0 : (count - counts[left]) / (counts[right] - counts[left]);
  return { bytes: Math.round(bytes[left] + way * (bytes[right] - bytes[left])), exact: false };
}

/** The command that writes the subset of a stop. */
export function commandFor(unit, stop, ranking) {
  const total = [`--total ${stop.count}`, `${stop.count}-patches`];
  const [option, name] = {
    ipc: [`--ipc ${stop.value}`, `ipc${stop.value}`],
    patches: total,
    fraction: [`--fraction ${stop.value}%`, `${stop.value}-percent`],
    // the files of other rules are a few bytes larger or smaller, so their number of patches is given
    bytes: ranking.sizes ? [`--bytes ${stop.value} --lossless`, `${stop.value}-bytes`] : total,
  }[unit];
  return `${ranking.command} ${option} -o ${name}.safetensors`;
}
