// What has changed: asked for every two seconds, only while a page is looked at.
//
// The answer has a short text for each thing that is shown. A view asks again for what differs from
// what it has; so a page that was hidden, or left open while the aggregator began again, goes on.

import { get } from "./ask.js";

const EVERY_MS = 2000;
// One question that is lost is not worth a word.
const MOST_LOST = 2;

const heard = new Map();
const asked = new Map();
let [waiting, lost] = [null, 0];

/** Call `again` at once, and whenever the named thing has changed; at most once at a time. */
export function follow(name, again) {
  asked.set(name, [...(asked.get(name) ?? []), { again, has: undefined, busy: false }]);
  look(name);
}

/** Begin to listen. */
export function listen() {
  document.addEventListener("visibilitychange", ask);
  ask();
}

async function ask() {
  clearTimeout(waiting);
  if (document.visibilityState === "hidden") {
    return;
  }
  try {
    take(await get(["data", "marks"]));
    lost = 0;
  } catch (error) {
    lost += 1;
    if (lost >= MOST_LOST) {
      show(error.status ? error.message : "the aggregator does not answer: trying on");
    }
  }
  clearTimeout(waiting);
  waiting = setTimeout(ask, EVERY_MS);
}

function take(marks) {
  show(marks.link === "up" ? "" : marks.link);
  for (const [name, mark] of Object.entries(marks)) {
    heard.set(name, mark);
    look(name);
  }
}

async function look(name) {
  for (const each of asked.get(name) ?? []) {
    const mark = heard.get(name) ?? "";
    if (each.busy || each.has === mark) {
      continue;
    }
    each.busy = true;
    try {
      await each.again();
      each.has = mark;
    } catch (error) {
      show(error.message);
    }
    each.busy = false;
  }
}

function show(text) {
  const place = document.getElementById("link");
  if (place && place.textContent !== text) {
    place.textContent = text;
  }
}
