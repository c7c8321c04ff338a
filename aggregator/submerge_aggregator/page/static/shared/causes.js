// Alarms in words. Causes and marks are as in `submerge.protocol.alarm_status` (a test compares).

import { make, named } from "./elements.js";
import { ago, figure } from "./words.js";

export const VERDICTS = { accepted: "normal", rejected: "a fault" };

export const CAUSES = {
  spe: "channels disagree more than usual (squared prediction error)",
  t2: "channels agree, but lie further out than usual (Hotelling's T2)",
  linear: "channels disagree more than usual, in the readings themselves",
  distance: "readings lie further from normal than usual",
  ewma: "readings lie further from normal than usual",
  smoothed: "readings stay a little further from normal, row after row",
  channel: "one channel differs from what the others predict",
  stuck: "a channel keeps its value while the others move",
  silent: "a channel says nothing for longer than ever before",
  duty: "a channel with two states stays at one for longer than ever before",
  jump: "a channel is further from where it was than ever before",
};
export const BESIDE = { silent: "", duty: ", else ", jump: ", where it was " };

const MARKS = {
  settled: "settled at a new level",
  provisional: "provisional",
  repeated: "repeated, told three times",
};

/** Return the marks of an alarm, each with its words. */
export function marks(alarm) {
  return Object.entries(MARKS).filter(([mark]) => alarm[mark]);
}

/** Return whether it is an incident: alarms of several nodes as one. */
export function isIncident(alarm) {
  return Boolean(alarm.parts?.length);
}

/** Return alarms in their order, but those of an incident below it, as they began. */
export function underIncidents(alarms) {
  const whole = new Set(alarms.filter(isIncident).map(({ id }) => id));
  const partsOf = ({ id }) =>
    alarms.filter(({ incident }) => incident === id).toSorted((a, b) => a.began - b.began);
  return alarms
    .filter(({ incident }) => !whole.has(incident))
    .flatMap((each) => (isIncident(each) ? [each, ...partsOf(each)] : [each]));
}

// As `submerge up` has it: a further channel is named only if it has such a part of the first's share.
const FAINT = 0.1;

/** Return the names of the channels to blame for an alarm, the first one first. */
export function blamed(alarm) {
  const shares = Object.entries(alarm.top);
  return shares.filter(([, share]) => share >= FAINT * shares[0][1]).map(([name]) => name);
}

/** Return what the first channel to blame reads, and the others by their names.
 *
 * What is expected of a healthy channel follows the broken one beside it, and may be impossible.
 */
export function reading(alarm, units) {
  const [first = "", ...others] = blamed(alarm);
  const off = alarm.deviations[first];
  const more = alarm.cause in BESIDE ? Math.round(1 / alarm.top[first]) - others.length - 1 : 0;
  const also = others.length ? ["; also ", named(others.join(", "), 120), more > 0 ? ` and ${more} more` : ""] : [];
  if (!off) {
    return [named(first), alarm.cause === "silent" ? " says nothing" : "", ...also];
  }
  const said = beside(off.value, off.expected, units.get(first), BESIDE[alarm.cause]);
  return [named(first), alarm.cause === "duty" ? ` ${stateOf(off)} at ` : " ", ...said, ...also];
}

// At which of its two states a channel stays: it is on or off where the lower is nothing.
const stateOf = ({ value, expected: other }) =>
  (Math.abs(Math.min(value, other)) <= Math.abs(value - other) / 8 ? ["off", "on"] : ["low", "high"])[Number(value > other)];

/** Return a value beside what the others say, as elements; a figure and its unit stay together. */
export function beside(value, expected, unit, words = ", where the others say ") {
  const amount = (of) =>
    make("strong", { class: "amount" }, figure(of), ...(unit ? [" ", named(unit, 12)] : []));
  return [amount(value), words, amount(expected)];
}

// Three reports are missing, unless a configuration says otherwise.
const SILENT_S = 900;

/** Return why an open alarm may not be as it is told, in words. */
export function doubts(alarm) {
  const said = [];
  if (alarm.open && alarm.silent_s > SILENT_S) {
    said.push(`${alarm.reported_by} silent for ${ago(alarm.silent_s)}`);
  }
  if (alarm.denied_by?.length) {
    said.push(`denied by ${alarm.denied_by.join(", ")}, which is not believed`);
  }
  return said;
}
