// series(): values over time as lines, with limits as level lines and bands of what is expected.
//
//     series(host, {label, unit, times: [Unix s], lines: [{name, values}],
//                   limits: [{name, value}], bands: [{name, low: [...], high: [...]}],
//                   zero})
//
// A value that is null is a gap, and so is a time in which several values are missing. `zero` has the
// axis begin there.

import { make, shown } from "../shared/elements.js";
import { short, stamp } from "../shared/words.js";
import { chartIn, fill, fitting, timeAxis, widest } from "./canvas.js";
import { extent, linear, ticks, timeTicks } from "./scales.js";

// Lines that styles know a colour and a dash for; further ones begin again.
const LINES = 6;

const DASHES = [[], [6, 3], [2, 3], [9, 3, 2, 3], [4, 2], [1, 2]];
const [HEIGHT, HEAD, FOOT, GAP] = [200, 8, 22, 8];

/** Draw series in a host, or draw those that are there again. */
export function series(host, data) {
  const chart = chartIn(host, "series", { draw, table, at: nearest, step: stepped, moved: readOut });
  const { times, lines, limits = [], bands = [], unit = "", zero = false } = data;
  const all = [lines.map((each) => each.values), bands.map((each) => [...each.low, ...each.high])];
  const values = [...all.flat(2), ...limits.map((each) => each.value)];
  chart.range = extent(values, { zero }) ?? [0, 1];
  chart.data = { times, lines, limits, bands };
  chart.gap_s = 2.5 * usualStep(times);
  // What each has at a time: its swatch, its name, and that in words.
  chart.told = [
    ...lines.map(({ name, values }, i) => [`line line-${i % LINES}`, shown(name), (at) => text(values[at])]),
    ...bands.map(({ name, low, high }, i) => [`band-${i % 2}`, shown(name), (at) => span(low[at], high[at])]),
  ];
  chart.legend.replaceChildren(
    ...chart.told.map(([kind, name]) =>
      make("li", {}, make("span", { class: `swatch ${kind}` }), make("bdi", {}, name)),
    ),
  );
  fill(chart, {
    label: unit ? `${data.label} (${shown(unit)})` : data.label,
    about: `${lines.length} lines of ${times.length} values over time. Arrow keys move a cursor that is read out below. A table follows.`,
    height: HEIGHT,
  });
}

function usualStep(times) {
  const steps = times.slice(1).map((at, i) => at - times[i]);
  steps.sort((a, b) => a - b);
  return steps[steps.length >> 1] || 60;
}

// -- drawing

function draw(chart, scene) {
  const { context, width, height, colour } = scene;
  const { data, range } = chart;
  const bottom = height - FOOT;
  const marks = ticks(...range, height / 40);
  const left = widest(context, marks.map(short), width * 0.25) + GAP;
  const [first, last] = bounds(data.times);
  const x = linear([first, last], [left + 2, width - 4]);
  const y = linear(range, [bottom, HEAD]);
  Object.assign(chart, { left, right: width - 4, x });
  context.textAlign = "right";
  for (const mark of marks) {
    const at = Math.round(y(mark)) + 0.5;
    line(context, colour("rule"), [left, at], [width, at]);
    context.fillStyle = colour("quiet");
    context.fillText(short(mark), left - GAP, at);
  }
  const times = timeTicks(first, last, Math.max(2, (width - left) / 110));
  timeAxis(scene, times, x, { top: HEAD, bottom, left, right: width });
  data.bands.forEach((band, i) => area(chart, scene, band, y, i));
  data.lines.forEach(({ values }, i) => path(chart, scene, values, y, i));
  for (const { name, value } of data.limits) {
    limit(scene, shown(name), y(value), left);
  }
  const at = chart.cursor;
  if (at !== null && at < data.times.length) {
    const place = Math.round(x(data.times[at])) + 0.5;
    line(context, colour("ink"), [place, HEAD], [place, bottom]);
  }
}

function bounds(times) {
  const [first, last] = [times[0] ?? 0, times.at(-1) ?? 60];
  return last > first ? [first, last] : [first - 30, first + 30];
}

function line(context, style, from, to) {
  context.strokeStyle = style;
  context.beginPath();
  context.moveTo(...from);
  context.lineTo(...to);
  context.stroke();
}

function limit({ context, width, colour }, name, y, left) {
  context.setLineDash([5, 3]);
  context.lineWidth = 1.5;
  line(context, colour("limit"), [left, y], [width, y]);
  context.lineWidth = 1;
  context.setLineDash([]);
  context.textAlign = "right";
  const text = fitting(context, name, (width - left) / 2);
  const wide = context.measureText(text).width;
  const above = y > HEAD + 16 ? y - 9 : y + 9;
  context.fillStyle = colour("surface");
  context.fillRect(width - wide - 6, above - 8, wide + 6, 15);
  context.fillStyle = colour("limit");
  context.fillText(text, width - 3, above);
}

// Runs of values without a gap: each a list of places in time.
function runs(chart, known) {
  const { times } = chart.data;
  const found = [];
  let run = null;
  for (let i = 0; i < times.length; i++) {
    if (!known(i)) {
      run = null;
      continue;
    }
    if (run === null || times[i] - times[i - 1] > chart.gap_s) {
      run = [];
      found.push(run);
    }
    run.push(i);
  }
  return found;
}

function path(chart, { context, colour }, values, y, number) {
  const { x, data } = chart;
  context.strokeStyle = context.fillStyle = colour(`line-${number % LINES}`);
  context.setLineDash(DASHES[number % LINES]);
  context.lineWidth = 1.5;
  context.lineJoin = "round";
  for (const run of runs(chart, (i) => Number.isFinite(values[i]))) {
    context.beginPath();
    for (const i of run) {
      context.lineTo(x(data.times[i]), y(values[i]));
    }
    context.stroke();
    if (run.length === 1) {
      context.fillRect(x(data.times[run[0]]) - 1.5, y(values[run[0]]) - 1.5, 3, 3);
    }
  }
  context.setLineDash([]);
  context.lineWidth = 1;
}

function area(chart, { context, colour }, { low, high }, y, number) {
  const { x, data } = chart;
  context.fillStyle = colour(`band-${number % 2}`);
  for (const run of runs(chart, (i) => Number.isFinite(low[i]) && Number.isFinite(high[i]))) {
    context.beginPath();
    for (const i of run) {
      context.lineTo(x(data.times[i]), y(high[i]));
    }
    for (const i of run.toReversed()) {
      context.lineTo(x(data.times[i]), y(low[i]));
    }
    context.fill();
  }
}

// -- the cursor

function nearest(chart, px) {
  const { data, x } = chart;
  let best = null;
  data.times.forEach((at, i) => {
    if (best === null || Math.abs(x(at) - px) < Math.abs(x(data.times[best]) - px)) {
      best = i;
    }
  });
  return best;
}

function stepped(chart, key, from) {
  const last = chart.data.times.length - 1;
  const ways = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -last, End: last };
  if (!(key in ways) || last < 0) {
    return undefined;
  }
  return from === null ? last : Math.min(Math.max(from + ways[key], 0), last);
}

function readOut(chart, at) {
  const { times } = chart.data;
  if (at === null || at >= times.length) {
    chart.said.replaceChildren();
    return;
  }
  const parts = chart.told.map(([, name, words]) =>
    make("span", {}, make("bdi", {}, name), " ", make("strong", {}, words(at))),
  );
  chart.said.replaceChildren(stamp(times[at], true), ...parts);
}

// -- in words

function text(value) {
  return Number.isFinite(value) ? short(value) : "–";
}

function span(low, high) {
  return Number.isFinite(low) && Number.isFinite(high) ? `${short(low)} to ${short(high)}` : "–";
}

// Limits, then times: the newest are what is asked for; of many an even choice would hide the one that
// matters.
function table({ told, data: { times, lines, limits } }) {
  const level = ({ value }, i) => (i < lines.length ? text(value) : "");
  const columns = told.map(([, name, words], i) => [
    name,
    (at) => (at.name ? level(at, i) : words(at)),
    "number",
  ]);
  const first = ["time", (at) => (at.name ? `limit: ${shown(at.name)}` : stamp(times[at], true))];
  return { columns: [first, ...columns], items: [...limits, ...[...times.keys()].reverse()] };
}
