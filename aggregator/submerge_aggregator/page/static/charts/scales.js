// Scales: from values to places, and the round values that an axis names.

import { clock, day } from "../shared/words.js";

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;
const STEPS = [
  1, 5, 15, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY,
];

/** Return a function from [low, high] to [from, to]; a range of nothing goes to its middle. */
export function linear([low, high], [from, to]) {
  const width = high - low;
  return (value) => (width > 0 ? from + ((value - low) / width) * (to - from) : (from + to) / 2);
}

/** Return round values from low to high, about so many. */
export function ticks(low, high, wanted = 5) {
  if (!(high > low) || !Number.isFinite(high - low)) {
    return Number.isFinite(low) ? [low] : [];
  }
  const rough = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((each) => each * power >= rough * 0.999) ?? 10);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => tidy((first + i) * step, step));
}

function tidy(value, step) {
  const digits = Math.max(0, 1 - Math.floor(Math.log10(step)));
  return digits > 20 ? value : Number(value.toFixed(digits)) || 0;
}

/** Return a range that holds all values, and a little more; null if there is none. */
export function extent(values, { zero = false, room = 0.05 } = {}) {
  let [low, high] = zero ? [0, 0] : [Infinity, -Infinity];
  for (const value of values) {
    if (Number.isFinite(value)) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  if (low > high) {
    return null;
  }
  const more = high > low ? (high - low) * room : Math.max(Math.abs(high) * 0.1, 1e-9);
  return [zero && low === 0 ? 0 : low - more, zero && high === 0 ? 0 : high + more];
}

/** Return what a time axis names between two Unix times, in the viewer's zone, about so many. */
export function timeTicks(from, to, wanted = 6) {
  if (!(to > from) || !Number.isFinite(to - from)) {
    return [];
  }
  const rough = (to - from) / Math.max(1, wanted);
  const step = STEPS.find((each) => each >= rough) ?? Math.ceil(rough / (28 * DAY)) * 28 * DAY;
  const midnight = onClock(from, 0);
  const found = [];
  // Two hours before it: a day on which clocks are put forward or back has 23 or 25.
  let k = Math.max(0, Math.floor((from - midnight - 2 * HOUR) / step));
  for (let at = onClock(from, k * step); at <= to; at = onClock(from, ++k * step)) {
    // An hour that is left out would be named twice.
    if (at >= from && at > (found.at(-1) ?? -Infinity)) {
      found.push(at);
    }
  }
  return found.map((at) => ({ at, text: at === onClock(at, 0) ? day(at) : clock(at, step < MINUTE) }));
}

// So many seconds after the midnight before, by the wall clock where the viewer is: noon stays noon on
// a day on which clocks are put forward or back.
function onClock(seconds, after) {
  const at = new Date(seconds * 1000);
  return new Date(at.getFullYear(), at.getMonth(), at.getDate(), 0, 0, after).getTime() / 1000;
}
