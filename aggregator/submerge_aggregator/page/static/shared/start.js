// What every view begins with: the group that it is about, the way out of a session, and how it is
// asked again: for what has changed, and for what somebody looks at.

import { get, post } from "./ask.js";
import { make, place, tell } from "./elements.js";

/** Return the group that the address names, or the first one. */
export async function start() {
  const { groups } = await patiently(() => get(["api", ""]));
  const given = new URLSearchParams(location.search).get("group");
  const group = groups.includes(given) ? given : groups[0];
  const choice = place("group");
  choice.replaceChildren(
    ...groups.map((each) => make("option", { value: each, selected: each === group }, each)),
  );
  choice.addEventListener("change", () => {
    location.search = `?group=${encodeURIComponent(choice.value)}`;
  });
  for (const link of document.querySelectorAll("a[data-keeps-group]")) {
    link.search = `?group=${encodeURIComponent(group)}`;
  }
  place("logout").addEventListener("click", async () => {
    await post(["logout"]);
    location.reload();
  });
  document.addEventListener("visibilitychange", ask);
  ask();
  return group;
}

// The page may be opened while the aggregator begins.
async function patiently(ask) {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      tell(place("link"), error.message); // else the page stays blank
      if (error.status && error.status !== 503) {
        throw error;
      }
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
}

/** Have the address say what somebody has chosen: a page that is loaded again shows the same. */
export function remember(name, value) {
  const query = new URLSearchParams(location.search);
  query.set(name, value);
  history.replaceState(null, "", `?${query}`);
}

// -- what has changed: asked for every two seconds, only while a page is looked at
//
// The answer has a short text for each thing that is shown. A view asks again for what differs from
// what it has; so a page that was hidden, or left open while the aggregator began again, goes on.

const EVERY_MS = 2000;
// One question that is lost is not worth a word.
const MOST_LOST = 2;

const heard = new Map();
const asked = [];
let [waiting, lost] = [null, 0];

/** Call `again` at once, and whenever the named thing has changed; at most once at a time. */
export function follow(name, again) {
  asked.push({ name, again, has: undefined, busy: false });
  look();
}

async function ask() {
  clearTimeout(waiting);
  if (document.visibilityState === "hidden") {
    return;
  }
  try {
    const marks = await get(["data", "marks"]);
    lost = 0;
    tell(place("link"), marks.link === "up" ? "" : marks.link);
    Object.entries(marks).forEach(([name, mark]) => heard.set(name, mark));
    look();
  } catch (error) {
    lost += 1;
    if (lost >= MOST_LOST) {
      tell(place("link"), error.status ? error.message : "the aggregator does not answer: trying on");
    }
  }
  clearTimeout(waiting);
  waiting = setTimeout(ask, EVERY_MS);
}

function look() {
  asked.forEach(async (each) => {
    const mark = heard.get(each.name) ?? "";
    if (each.busy || each.has === mark) {
      return;
    }
    each.busy = true;
    try {
      await each.again();
      each.has = mark;
    } catch (error) {
      tell(place("link"), error.message);
    }
    each.busy = false;
  });
}

// -- questions that are asked again and again while somebody looks at the answer

const SLOWEST_S = 30;

/**
 * Call `again` every `everyS` while `element` is on the screen; at once when it comes into sight.
 *
 * `again` may throw: `problem` gets the error, and undefined when it goes well again. Who is refused
 * asks less often.
 */
export function whileLooked(element, everyS, again, problem) {
  let [seen, busy, waiting, pauseS] = [false, false, null, everyS];

  async function ask() {
    clearTimeout(waiting);
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
