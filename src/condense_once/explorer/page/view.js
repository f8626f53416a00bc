// What follows from the state: the order of the patches, how many are kept, and where each stands.

import { stopsOf } from "./budget.js";
import { countsPerClass, orderOf, rankInClass, rankOverall } from "./selection.js";

/** A function from the state to the patches it shows; orders are computed once for each ranking. */
export function createView(set) {
  const orders = new Map();
  const stops = new Map();
  const classes = set.classes.length;

  function once(cache, key, make) {
    if (!cache.has(key)) cache.set(key, make());
    return cache.get(key);
  }

  /** The order of a ranking, with or without balance. */
  function ordered(index, balanced = set.rankings[index].balanced) {
    return once(orders, `${index} ${balanced}`, () => {
      const ranking = set.rankings[index];
      // a stored order with balance does not tell the one without; the scores do
      const byScores = balanced !== ranking.balanced && set.metricOf[ranking.metric];
      const order = orderOf(set, byScores ? { ...ranking, order: null } : ranking, balanced);
      const members = Array.from({ length: classes }, () => []);
      for (const row of order) members[set.labels[row]].push(row);
      return { order, members, rank: rankOverall(order), classRank: rankInClass(order, set.labels, classes) };
    });
  }

  function stopsFor(index, unit) {
    return once(stops, `${index} ${unit}`, () => stopsOf(unit, set, set.rankings[index]));
  }

  function view(state) {
    const found = stopsFor(state.ranking, state.unit);
    const stop = found[Math.min(state.stop, found.length - 1)];
    const placed = ordered(state.ranking);
    return {
      ...placed,
      ranking: set.rankings[state.ranking],
      stops: found,
      stop,
      count: stop.count,
      counts: countsPerClass(placed.order, stop.count, set.labels, classes),
      keeps: (row) => placed.rank[row] < stop.count,
    };
  }

  return { view, ordered, stopsFor };
}
