// Figures and times for people; times are in the viewer's own zone.

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

/** Return a number for an axis: 0.25, 1,200, 3.1e-7. */
export function short(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-4)) {
    return value.toExponential(1).replace(".0e", "e").replace("e+", "e").replace("-", "−");
  }
  const text = Number(value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 6 });
  return text.replace("-", "−");
}

/** Return a share in per cent: 12 %. */
export function percent(share) {
  return `${Math.round(100 * share)} %`;
}

/** Return a score over its limit: more than a thousand times is no information. */
export const excess = (value) => (value < 1000 ? figure(value) : "over 1,000");

/** Return a wall time as 2026-11-27 14:05:30. */
export function moment(seconds) {
  return new Date(seconds * 1000).toLocaleString("sv"); // Swedes write it so
}

/** Return a time of day: 14:05, or 14:05:30. */
export function clock(seconds, precise = false) {
  return moment(seconds).slice(11, precise ? 19 : 16);
}

/** Return a date: 27 Nov. */
export function day(seconds) {
  const at = new Date(seconds * 1000);
  return `${at.getDate()} ${at.toLocaleString("en", { month: "short" })}`;
}

/** Return both: 27 Nov 14:05. */
export function stamp(seconds, precise = false) {
  return `${day(seconds)} ${clock(seconds, precise)}`;
}
