// Only what can be seen is drawn; the rest when it comes into sight, or when the page is printed.

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
  window.addEventListener("beforeprint", () => stale && run());
}
