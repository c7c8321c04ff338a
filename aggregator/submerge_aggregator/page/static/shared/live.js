// What has changed: one stream of events, held only while a page is looked at.
//
// An event has a short text for each thing that is shown. A view asks again for what differs from
// what it has; so a page that was hidden, or left open while the aggregator began again, goes on.
//
// A browser has six connections to one host, and a stream keeps one of them. So all pages of a
// browser share a stream: one holds it, and tells the others. They take turns by a lock.

import { get } from "./ask.js";

const NAME = "submerge-events";
const SILENT_MS = 4000;
const AGAIN_MS = 2000;

const heard = new Map();
const asked = new Map();
const others = new BroadcastChannel(NAME);

/** Call `again` at once, and whenever the named thing has changed; at most once at a time. */
export function follow(name, again) {
  asked.set(name, [...(asked.get(name) ?? []), { again, has: undefined, busy: false }]);
  look(name);
}

/** Begin to listen. */
export function listen() {
  others.addEventListener("message", ({ data }) => (data.marks ? take(data.marks) : show(data.link)));
  document.addEventListener("visibilitychange", open);
  open();
}

// -- turns

let turn = null;

function open() {
  if (document.visibilityState === "hidden") {
    turn?.abort();
    turn = null;
  } else if (turn === null) {
    turn = new AbortController();
    const { signal } = turn;
    const hold = () => holds(signal);
    // A name without TLS that is not this machine's address has no locks: each page has its own then.
    (navigator.locks?.request(NAME, { signal }, hold) ?? hold()).catch(() => {});
  }
}

// The lock is held until this has ended: when the page is hidden, or gone.
function holds(signal) {
  return new Promise((end) => {
    const stream = signal.aborted ? null : eventStream();
    const close = () => {
      stream?.close();
      end();
    };
    signal.aborted ? close() : signal.addEventListener("abort", close);
  });
}

// -- the stream

function eventStream() {
  let [source, silent, again] = [null, null, null];

  // A stream ends every now and then, and the browser asks for another by itself, again and again:
  // only one that does not come back is worth a word.
  function lost() {
    silent ??= setTimeout(() => tell("the aggregator does not answer: trying on"), SILENT_MS);
    if (source.readyState === EventSource.CLOSED) {
      again = setTimeout(begin, AGAIN_MS);
      // It does not say why it was refused; if the session is over, this leads to the login.
      get(["api", ""]).catch(() => {});
    }
  }

  function found() {
    clearTimeout(silent);
    silent = null;
  }

  function begin() {
    source = new EventSource("/events");
    source.addEventListener("marks", (event) => {
      const marks = JSON.parse(event.data);
      others.postMessage({ marks });
      take(marks);
    });
    source.addEventListener("open", found);
    source.addEventListener("error", lost);
  }

  function close() {
    source.close();
    found();
    clearTimeout(again);
  }

  begin();
  return { close };
}

function tell(link) {
  others.postMessage({ link });
  show(link);
}

// -- what was heard

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
