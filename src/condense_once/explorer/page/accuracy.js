// Accuracies over size: what was measured, and what lies between.

/** The line of a ranking among those measured in one way, if there is one. */
export function lineOf(way, rule) {
  return way?.lines.find((line) => line.rule === rule) ?? null;
}

/** Whether a line was measured on patches that another network has ranked. */
export function isOfAnotherNet(line, ranking) {
  return Boolean(line?.net && ranking.net && line.net !== ranking.net);
}

/** The points of a line; where all patches are kept rules are the same, so any line's point there completes it. */
export function pointsOf(way, line, patches) {
  const last = line.points.at(-1);
  if (last && last[0] === patches) return line.points.map(asPoint);
  const whole = way.lines.flatMap((other) => other.points).find((point) => point[0] === patches);
  return [...line.points, ...(whole ? [whole] : [])].map(asPoint);
}

function asPoint([patches, mean, std, runs]) {
  return { patches, mean, std, runs };
}

/** The accuracy at a size: measured, or between two measured sizes, or nothing. */
export function accuracyAt(points, count) {
  const exact = points.find((point) => point.patches === count);
  if (exact) return { ...exact, measured: true };
  const right = points.findIndex((point) => point.patches > count);
  if (right <= 0) return null;
  const [low, high] = [points[right - 1], points[right]];
  const way = Math.log(count / low.patches) / Math.log(high.patches / low.patches);
  return { mean: low.mean + way * (high.mean - low.mean), measured: false, between: [low, high] };
}
