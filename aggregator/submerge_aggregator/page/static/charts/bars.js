// bars(): a value for each of some names, as lying bars from nought.
//
//     bars(host, {label, unit, rows: [{name, value, low, high, mark}]})
//
// `low` and `high` are the ends of what the value may be, as whiskers. `mark` is a word for a bar that
// is of another kind (a spare direction): it is drawn hollow, and the word stands beside its value.

import { make } from "../shared/build.js";
import { shown } from "../shared/text.js";
import { cursor, fill, fitting, say, stage, widest } from "./canvas.js";
import { extent, linear, short, ticks } from "./scales.js";
import { MOST_ROWS, twin } from "./twin.js";

const [LINE, THICK, HEAD, FOOT, GAP] = [20, 10, 2, 20, 8];
const MOST_HEIGHT = 480;

const charts = new WeakMap();

/** Draw bars in a host, or draw those that are there again. */
export function bars(host, data) {
  let chart = charts.get(host);
  if (!chart?.stage.figure.isConnected) {
    chart = begun(host);
    charts.set(host, chart);
  }
  const { rows, unit = "" } = data;
  chart.data = data;
  chart.names = rows.map((row) => shown(row.name));
  chart.range = extent(rows.flatMap(({ value, low, high }) => [value, low, high]), { zero: true });
  fill(chart.stage, {
    label: unit ? `${data.label} (${shown(unit)})` : data.label,
    about: `${rows.length} bars. Arrow keys move a cursor that is read out below. A table follows.`,
    height: HEAD + Math.max(1, rows.length) * LINE + FOOT,
    most: MOST_HEIGHT,
  });
  readOut(chart, chart.stage.cursor);
  chart.build();
}

function begun(host) {
  const chart = {};
  chart.stage = stage(host, "bars", (scene) => draw(chart, scene));
  chart.build = twin(chart.stage.figure, () => table(chart));
  cursor(chart.stage, {
    at: (_, y) => rowAt(chart, y),
    step: (key, from) => stepped(chart, key, from),
    moved: (where) => readOut(chart, where),
  });
  return chart;
}

// -- drawing

function draw(chart, scene) {
  const { context, width, height, top, colour } = scene;
  const { data, names, range } = chart;
  const bottom = height - FOOT;
  const left = widest(context, names, Math.min(220, width * 0.35)) + GAP;
  const right = width - widest(context, data.rows.map(valueText), width * 0.25) - 2 * GAP;
  const x = linear(range, [left, Math.max(right, left + 1)]);
  axis(scene, ticks(...range, Math.max(2, (right - left) / 90)), x, bottom);
  context.save();
  context.beginPath();
  context.rect(0, 0, width, bottom);
  context.clip();
  const first = Math.max(0, Math.floor((top - HEAD) / LINE));
  const last = Math.min(data.rows.length, Math.ceil((top + bottom) / LINE));
  for (let i = first; i < last; i++) {
    const y = HEAD + (i + 0.5) * LINE - top;
    if (chart.stage.cursor === i) {
      context.fillStyle = colour("sunk");
      context.fillRect(0, y - LINE / 2, width, LINE);
    }
    context.fillStyle = colour("ink");
    context.textAlign = "right";
    context.fillText(fitting(context, names[i], left - GAP), left - GAP, y);
    bar(scene, data.rows[i], x, y);
    context.fillStyle = colour("quiet");
    context.fillText(fitting(context, valueText(data.rows[i]), width * 0.25), width - 2, y);
  }
  context.restore();
}

function axis({ context, colour }, marks, x, bottom) {
  context.textAlign = "center";
  for (const mark of marks) {
    const at = Math.round(x(mark)) + 0.5;
    context.strokeStyle = colour(mark === 0 ? "quiet" : "rule");
    context.beginPath();
    context.moveTo(at, 0);
    context.lineTo(at, bottom + 3);
    context.stroke();
    context.fillStyle = colour("quiet");
    context.fillText(short(mark), at, bottom + 12);
  }
}

function bar({ context, colour }, { value, low, high, mark }, x, y) {
  if (!Number.isFinite(value)) {
    return;
  }
  const [from, to] = [x(0), x(value)].sort((a, b) => a - b);
  const wide = Math.max(to - from, 1);
  if (mark) {
    context.strokeStyle = colour("line-0");
    context.strokeRect(from + 0.5, y - THICK / 2 + 0.5, Math.max(wide - 1, 1), THICK - 1);
  } else {
    context.fillStyle = colour(value < 0 ? "line-1" : "line-0");
    context.fillRect(from, y - THICK / 2, wide, THICK);
  }
  if (Number.isFinite(low) && Number.isFinite(high)) {
    context.strokeStyle = colour("ink");
    context.beginPath();
    for (const end of [low, high]) {
      context.moveTo(Math.round(x(end)) + 0.5, y - THICK / 2 + 1);
      context.lineTo(Math.round(x(end)) + 0.5, y + THICK / 2 - 1);
    }
    context.moveTo(x(low), Math.round(y) + 0.5);
    context.lineTo(x(high), Math.round(y) + 0.5);
    context.stroke();
  }
}

function valueText({ value, mark }) {
  const number = Number.isFinite(value) ? short(value) : "–";
  return mark ? `${number} ${shown(mark)}` : number;
}

// -- the cursor

function rowAt(chart, y) {
  const i = Math.floor((y + chart.stage.box.scrollTop - HEAD) / LINE);
  return i >= 0 && i < chart.data.rows.length ? i : null;
}

function stepped(chart, key, from) {
  const last = chart.data.rows.length - 1;
  const ways = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10, Home: -last, End: last };
  if (!(key in ways) || last < 0) {
    return undefined;
  }
  const next = from === null ? 0 : Math.min(Math.max(from + ways[key], 0), last);
  const { box } = chart.stage;
  const seen = box.clientHeight - FOOT - HEAD;
  box.scrollTop = Math.min(Math.max(box.scrollTop, (next + 1) * LINE - seen), next * LINE);
  return next;
}

function readOut(chart, at) {
  const row = at === null || at === undefined ? undefined : chart.data.rows[at];
  if (row === undefined) {
    say(chart.stage);
    return;
  }
  const unit = chart.data.unit ? ` ${shown(chart.data.unit)}` : "";
  const name = make("bdi", { class: "name" }, chart.names[at]);
  say(chart.stage, name, " ", make("strong", {}, `${valueText(row)}${unit}`), between(row));
}

function between({ low, high }) {
  const known = Number.isFinite(low) && Number.isFinite(high);
  return known ? `, from ${short(low)} to ${short(high)}` : "";
}

// -- in words

function table(chart) {
  const { rows } = chart.data;
  const ranged = rows.some(({ low, high }) => Number.isFinite(low) && Number.isFinite(high));
  const cells = rows.slice(0, MOST_ROWS).map((row, i) => [
    make("bdi", {}, chart.names[i]),
    valueText(row),
    ...(ranged ? [between(row).slice(2)] : []),
  ]);
  return { heads: ["name", "value", ...(ranged ? ["range"] : [])], rows: cells, all: rows.length };
}
