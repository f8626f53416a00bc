// What can be seen is drawn at once; the rest when there is time, when it comes into sight, or when the page is printed.

const requestIdle = globalThis.requestIdleCallback ?? globalThis.setTimeout; // Safari has no such callback

/** Call `listener` whenever one of the fields has changed and `element` is in sight or about to be. */
export function watchVisible(state, element, fields, listener) {
  let visible = false;
  let stale = true;
  function run() {
    stale = false;
    listener(state.get());
  }
  new IntersectionObserver(
    (entries) => {
      visible = entries.at(-1).isIntersecting;
      if (visible && stale) run();
    },
    { rootMargin: "200px" },
  ).observe(element);
  state.watch(fields, () => {
    stale = true;
    if (visible) run();
  });
  const catchUp = () => stale && run();
  requestIdle(catchUp); // so that nothing moves when it comes into sight
  window.addEventListener("beforeprint", catchUp);
}
