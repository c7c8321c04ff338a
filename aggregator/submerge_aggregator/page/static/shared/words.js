// Figures and times for people.

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

/** Return a duration: 42 s, 5 min, 3 h, 12 d. */
export function ago(seconds) {
  const size = Math.max(0, seconds);
  const [unit, name] = UNITS.find(([each]) => size >= each * 1.5) ?? [1, "s"];
  return `${Math.round(size / unit)} ${name}`;
}

const WHOLE = new Intl.NumberFormat("en");

/** Return a whole number with separators, and what is counted: 1 node, 1,200 nodes. */
export function count(n, noun = "") {
  return noun ? `${WHOLE.format(n)} ${noun}${n === 1 ? "" : "s"}` : WHOLE.format(n);
}

/** Return a number with four digits. */
export function figure(value) {
  return Number(value.toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4 });
}

/** Return a score over its limit: more than a thousand times is no information. */
export const excess = (value) => (value < 1000 ? figure(value) : "over 1,000");

/** Return a wall time in the viewer's own zone. */
export function moment(seconds) {
  const at = new Date(seconds * 1000);
  const two = (n) => String(n).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}
