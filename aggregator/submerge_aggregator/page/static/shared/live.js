// What has changed: one stream of events, held only while the page is looked at.
//
// An event has a short text for each thing that is shown. A view asks again for what differs from
// what it has; so a page that was hidden, or left open while the aggregator began again, goes on.

import { get } from "./ask.js";

const heard = new Map();
const asked = new Map();
let stream = null;

/** Call `again` at once, and whenever the named thing has changed; at most once at a time. */
export function follow(name, again) {
  asked.set(name, [...(asked.get(name) ?? []), { again, has: undefined, busy: false }]);
  look(name);
}

/** Begin to listen. */
export function listen() {
  document.addEventListener("visibilitychange", open);
  open();
}

function open() {
  if (document.visibilityState === "hidden") {
    stream?.close();
    stream = null;
  } else if (stream === null || stream.readyState === EventSource.CLOSED) {
    stream = new EventSource("/events");
    stream.addEventListener("marks", (event) => take(JSON.parse(event.data)));
    stream.addEventListener("error", lost);
  }
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

// The browser asks for another stream by itself, unless it got an answer that is none.
let waiting = null;
function lost() {
  clearTimeout(waiting);
  if (stream?.readyState === EventSource.CLOSED) {
    waiting = setTimeout(open, 2000);
    // It does not say why it was refused; if the session is over, this leads to the login.
    get(["api", ""]).catch(() => {});
  } else {
    // A stream ends every now and then: only one that does not come back is worth a word.
    waiting = setTimeout(() => show("the aggregator does not answer: trying on"), 4000);
    stream?.addEventListener("open", () => clearTimeout(waiting), { once: true });
  }
}

function show(text) {
  const place = document.getElementById("link");
  if (place && place.textContent !== text) {
    place.textContent = text;
  }
}
