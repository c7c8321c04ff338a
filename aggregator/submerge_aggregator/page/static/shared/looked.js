// Questions that are asked again and again, but only while somebody looks at the answer.
//
// The tab is visible, and the element is on the screen. Who is refused asks less often.

const SLOWEST_S = 30;

/**
 * Call `again` every `everyS` while `element` is looked at; at once when it comes into sight.
 *
 * `again` may throw: `problem` gets the error, and undefined when it goes well again.
 */
export function whileLooked(element, everyS, again, problem) {
  let seen = false;
  let busy = false;
  let waiting = null;
  let pauseS = everyS;

  async function ask() {
    clearTimeout(waiting);
    waiting = null;
    if (busy || !seen || document.visibilityState !== "visible") {
      return;
    }
    busy = true;
    try {
      await again();
      pauseS = everyS;
      problem(undefined);
    } catch (error) {
      pauseS = Math.min(SLOWEST_S, 2 * pauseS);
      problem(error);
    }
    busy = false;
    waiting = setTimeout(ask, 1000 * pauseS);
  }

  new IntersectionObserver((entries) => {
    seen = entries.at(-1).isIntersecting;
    ask();
  }).observe(element);
  document.addEventListener("visibilitychange", ask);
  return ask;
}
