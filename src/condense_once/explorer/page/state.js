// What the page shows at the moment, and who wants to know when that changes.

/** A state that tells its listeners once per frame which fields have changed. */
export function createState(initial, nextFrame) {
  const listeners = [];
  let current = initial;
  let changed = new Set();
  function flush() {
    const fields = changed;
    changed = new Set();
    for (const listener of listeners) listener(current, fields);
  }
  return {
    get: () => current,
    set(changes) {
      const fields = Object.keys(changes).filter((name) => current[name] !== changes[name]);
      if (!fields.length) return;
      current = { ...current, ...changes };
      if (!changed.size) nextFrame(flush);
      for (const name of fields) changed.add(name);
    },
    /** Call `listener` now, and again whenever one of the fields changes. */
    watch(fields, listener) {
      listeners.push((state, changes) => {
        if (fields.some((name) => changes.has(name))) listener(state);
      });
      listener(current);
    },
  };
}
