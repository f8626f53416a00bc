// Which patches a ranking keeps: the same rows as `resize` and `select` of the library, which the tests compare.

/** Rows from best to worst, `ascending` or descending by score; ties go to the smaller origin. */
export function orderByScores(scores, origin, ascending) {
  const rows = Uint32Array.from(scores, (_, row) => row);
  const sign = ascending ? 1 : -1;
  return rows.sort((a, b) => sign * (scores[a] - scores[b]) || origin[a] - origin[b]);
}

/** The same rows with classes taking turns: the best of each class, then the second best of each, and so on. */
export function takeTurns(order, labels, classes) {
  const members = Array.from({ length: classes }, () => []);
  for (const row of order) members[labels[row]].push(row);
  const rounds = Math.max(0, ...members.map((rows) => rows.length));
  const turns = new Uint32Array(order.length);
  let next = 0;
  for (let round = 0; round < rounds; round += 1) {
    for (const rows of members) {
      if (round < rows.length) turns[next++] = rows[round];
    }
  }
  return turns;
}

/** All rows of a set, best first by a ranking; any number of them from the start is what it keeps. */
export function orderOf(set, ranking, balanced = ranking.balanced) {
  let order = ranking.order;
  if (!order) {
    const { scores, easy } = set.metricOf[ranking.metric];
    order = orderByScores(scores, set.origin, (easy === "low") === (ranking.prefer === "easy"));
  }
  return balanced ? takeTurns(order, set.labels, set.classes.length) : order;
}

/** For every row, how many of its class come before it in an order. */
export function rankInClass(order, labels, classes) {
  const seen = new Uint32Array(classes);
  const rank = new Uint32Array(order.length);
  for (const row of order) rank[row] = seen[labels[row]]++;
  return rank;
}

/** For every row, how many of all come before it. */
export function rankOverall(order) {
  const rank = new Uint32Array(order.length);
  order.forEach((row, place) => {
    rank[row] = place;
  });
  return rank;
}

/** How many of the first `count` rows are in each class. */
export function countsPerClass(order, count, labels, classes) {
  const counts = new Uint32Array(classes);
  for (let place = 0; place < count; place += 1) counts[labels[order[place]]] += 1;
  return counts;
}

/** How many of their first `count` rows two orders share. */
export function sharedRows(order, other, count) {
  const kept = new Set(order.subarray(0, count));
  return other.subarray(0, count).reduce((shared, row) => shared + (kept.has(row) ? 1 : 0), 0);
}
