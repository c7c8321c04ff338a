@about@
"use strict";

/** What scores rows: numbers of the model, in the order of its channels. */
const MODEL = @model@;

/** Rows, and what `step` has to say of each, from a new state on. */
const GOLDEN = @golden@;

/** Return the state before the first row. It is plain data: JSON keeps it. */
function initialState() {
  return { recent: {}, average: 0, open: false, quiet: 0 };
}

/** Return the readings of an object, by the channels' names, as a row. One that is missing, or is
 *  no number, is a gap. */
function rowOf(readings) {
  return MODEL.channels.map((name) =>
    Object.prototype.hasOwnProperty.call(Object(readings), name) ? readings[name] : NaN);
}

/** Score one row: an array of numbers, in the channels' units and order.
 *
 *  Returns { result, state }, and changes neither argument. Pass the state on to the next call.
 *  `result.status` is "scored", "gaps" or "too large"; a row that is not scored has no scores, and
 *  leaves the state as it was. */
function step(row, state) {
  const before = state ?? initialState();
  const centered = [];
  const status = center(row, centered);
  const measured = status === "scored" ? measure(centered) : null;
  if (measured === null || !measured.finite) {
    const why = measured === null ? status : "too large";
    return { result: { status: why, alarm: before.open === true }, state: before };
  }
  const { scores, off } = measured;
  const { statistics, after } = statisticsOf(scores, before);
  const over = Object.keys(statistics).filter((kind) => statistics[kind] > MODEL.limits[kind]);
  const high = Object.keys(statistics).some((kind) => statistics[kind] > MODEL.calm[kind]);
  const quiet = high ? 0 : before.quiet + 1;
  const open = over.length > 0 || (before.open && quiet < MODEL.endsAfter);
  return {
    result: { status, scores, passed: passedBy(scores), statistics, over, alarm: open,
              ...blameOf(off) },
    state: { ...after, open, quiet: open ? quiet : 0 },
  };
}

function center(row, centered) {
  let gaps = false, infinite = false, large = false;
  for (let j = 0; j < MODEL.channels.length; j++) {
    const reading = typeof row?.[j] === "number" ? row[j] : NaN;
    const scaled = (reading - MODEL.offset[j]) / MODEL.scale[j];
    if (Number.isNaN(scaled)) gaps = true;
    else if (!Number.isFinite(scaled)) infinite = true;
    else if (!(Math.abs(scaled) < MODEL.largest)) large = true;
    centered.push(scaled - MODEL.mean[j]);
  }
  if (infinite) return "too large";
  if (gaps) return "gaps";
  return large ? "too large" : "scored";
}

/** Return z = gains * (x . matrix), and x - matrix . z; the matrix is (channels, k), by rows. */
function take(matrix, gains, x) {
  const z = gains.map((gain, i) => gain * x.reduce((sum, each, j) => sum + each * matrix[j][i], 0));
  const off = x.map((each, j) => each - z.reduce((sum, of, i) => sum + matrix[j][i] * of, 0));
  return { z, off };
}

function squares(x) {
  return x.reduce((sum, each) => sum + each * each, 0);
}

function measure(centered) {
  const { z, off } = take(MODEL.loadings, MODEL.gains,
                          centered.map((each, j) => MODEL.inverseRoots[j] * each));
  const scores = {};
  const along = MODEL.basis === null ? null : take(MODEL.basis, MODEL.ones, centered);
  for (const kind of MODEL.scores) {
    if (kind === "distance") scores[kind] = (squares(off) + squares(z)) / MODEL.excess;
    if (kind === "spe") scores[kind] = MODEL.complete ? 0 : squares(along.off) / MODEL.excess;
    if (kind === "t2") {
      const t2 = along.z.reduce((sum, each, i) => sum + each * each * MODEL.t2Weights[i], 0);
      scores[kind] = t2 / MODEL.excess;
    }
    if (kind === "channel") {
      scores[kind] = off.reduce((most, each, j) =>
        Math.max(most, MODEL.channelWeights[j] * each * each), 0);
    }
  }
  const finite = [...Object.values(scores), squares(off)].every(Number.isFinite);
  return { scores, off, finite };
}

/** Return for each score the highest share of normal rows that it is above; 0 for none. */
function passedBy(scores) {
  const passed = {};
  for (const kind of Object.keys(MODEL.steps)) {
    passed[kind] = MODEL.steps[kind].reduce(
      (share, [each, value]) => (scores[kind] > value ? each : share), 0);
  }
  return passed;
}

/** Return the channel to blame, its share, and how far it is from what the others predict. */
function blameOf(off) {
  const blame = off.map((each, j) => MODEL.blameWeights[j] * each * each);
  const total = blame.reduce((sum, each) => sum + each, 0);
  if (!(total > 0)) return { blame: null, share: 0, deviation: 0 };
  const first = blame.reduce((best, each, j) => (each > blame[best] ? j : best), 0);
  return {
    blame: MODEL.channels[first],
    share: blame[first] / total,
    deviation: MODEL.errorWeights[first] * off[first] * MODEL.scale[first],
  };
}

/** Return the statistic of each kind that raises alarms, and the state with the row's scores. */
function statisticsOf(scores, before) {
  const statistics = {};
  const after = { recent: {}, average: before.average };
  for (const kind of Object.keys(MODEL.limits)) {
    if (MODEL.averages.includes(kind)) {
      const held = Math.min(before.average, MODEL.held);
      after.average = MODEL.weight * scores.distance + MODEL.kept * held;
      statistics[kind] = after.average;
    } else {
      const window = [...(before.recent[kind] ?? []), scores[kind]].slice(-MODEL.of);
      const ranked = [...window].sort((a, b) => b - a);
      statistics[kind] = ranked.length < MODEL.after ? 0 : ranked[MODEL.after - 1];
      after.recent[kind] = window.length === MODEL.of ? window.slice(1) : window;
    }
  }
  return { statistics, after };
}

/** Return 0 if the golden rows have their results, else the number of the first that has not. */
function selfTest() {
  const numbers = { NaN, Infinity, "-Infinity": -Infinity };
  let state = initialState();
  for (let i = 0; i < GOLDEN.rows.length; i++) {
    const row = GOLDEN.rows[i].map((each) => (typeof each === "number" ? each : numbers[each]));
    const after = step(row, state);
    state = after.state;
    if (!isExpected(after.result, GOLDEN.results[i])) return i + 1;
  }
  return 0;
}

function isExpected(found, expected) {
  const near = (a, b, floor) => a === b || Math.abs(a - b) <= GOLDEN.near * Math.abs(b) + floor;
  const every = (name, holds) => Object.keys(expected[name]).every(holds);
  if (found.status !== expected.status || found.alarm !== expected.alarm) return false;
  if (expected.status !== "scored") return found.scores === undefined;
  return found.over.join() === expected.over.join() && found.blame === expected.blame
    && near(found.share, expected.share, 0) && near(found.deviation, expected.deviation, 0)
    && every("scores", (kind) => near(found.scores[kind], expected.scores[kind], GOLDEN.floor))
    && every("statistics",
             (kind) => near(found.statistics[kind], expected.statistics[kind], GOLDEN.floor))
    && every("passed", (kind) => expected.scores[kind] <= GOLDEN.floor
             || found.passed[kind] === expected.passed[kind]);
}

// In a function node of Node-RED leave out all that follows.
export { MODEL as model, initialState, rowOf, selfTest, step };
