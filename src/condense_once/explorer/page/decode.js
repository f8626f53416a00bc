// The data of the page: JSON with packed arrays, as written by contents.py.

const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array };

/** A typed array of its little-endian bytes. */
export function unpackArray(packed) {
  const text = atob(packed.base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return new TYPES[packed.type](bytes.buffer);
}

/** The set and its rankings, with all arrays unpacked. */
export function decodePage(contents) {
  const labels = unpackArray(contents.labels);
  const sizes = new Uint32Array(contents.classes.length);
  for (const label of labels) sizes[label] += 1;
  const metrics = contents.metrics.map((metric) => ({ ...metric, scores: unpackArray(metric.scores) }));
  return {
    ...contents,
    patches: labels.length,
    labels,
    sizes,
    origin: unpackArray(contents.origin),
    places: contents.places && { image: unpackArray(contents.places.image), cell: unpackArray(contents.places.cell) },
    metrics,
    metricOf: Object.fromEntries(metrics.map((metric) => [metric.name, metric])),
    rankings: contents.rankings.map((ranking) => ({
      ...ranking,
      order: ranking.order && unpackArray(ranking.order),
      sizes: ranking.sizes && { counts: unpackArray(ranking.sizes.counts), bytes: unpackArray(ranking.sizes.bytes) },
    })),
    map: { ...contents.map, x: unpackArray(contents.map.x), y: unpackArray(contents.map.y) },
    real: contents.real && { ...contents.real, similarity: unpackArray(contents.real.similarity) },
    errors: contents.errors && { ...contents.errors, values: unpackArray(contents.errors.values) },
  };
}
