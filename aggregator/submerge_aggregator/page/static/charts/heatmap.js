// heatmap(): how close rows came to their limit over time, a colour for each step of time.
//
//     heatmap(host, {label, first_s, step_s, rows: [{name, levels: Uint8Array, href, note}]})
//
// Rows are drawn in the order in which they come: the worst first. Where steps are narrower than a
// dot of the screen, a dot has the highest of its steps: no minute over a limit gets lost.

import { make, named, shown } from "../shared/elements.js";
import { clock, stamp } from "../shared/words.js";
import { chartIn, fill, fitting, timeAxis, widest } from "./canvas.js";
import { LEAST, ONE, STEPS, UNLIMITED, binned, colourOf, levelWords, palette } from "./levels.js";
import { linear, timeTicks } from "./scales.js";

const [TALL, FOOT, GAP] = [16, 22, 8];

// More rows than that scroll in a box that is smaller than the window; so few are all there.
const MOST_WHOLE = 64;

/** Draw a heat map in a host, or draw the one that is there again. */
export function heatmap(host, data) {
  const chosen = ({ data: { rows } }, { row }) => location.assign(rows[row].href);
  const chart = chartIn(host, "heatmap", { draw, table, at: placeAt, step: stepped, moved: readOut, chosen });
  if (!chart.picture) {
    Object.assign(chart, { picture: document.createElement("canvas"), bins: 1, left: 0, width: 1, swatches: [] });
    chart.legend.append(...legend(chart));
  }
  const columns = data.rows.reduce((most, row) => Math.max(most, row.levels.length), 1);
  const over = data.rows.filter((row) => row.levels.some((level) => level > ONE)).length;
  if (chart.data?.rows.length !== data.rows.length) {
    chart.cursor = null;
  }
  Object.assign(chart, { data, columns, names: data.rows.map((row) => shown(row.name)) });
  fill(chart, {
    label: data.label,
    about:
      `${data.rows.length} rows, ${over} of them over their limit at some time, the worst first. ` +
      "Arrow keys move a cursor that is read out below; Enter opens its row. A table follows.",
    height: Math.max(data.rows.length, 1) * TALL + FOOT,
    most: data.rows.length <= MOST_WHOLE ? Infinity : Math.max(400, window.innerHeight * 0.8),
  });
}

// -- drawing

function draw(chart, scene) {
  const { context, width, height, top, ratio, colour } = scene;
  const { data, names, columns } = chart;
  chart.left = widest(context, names.slice(0, 200), Math.min(200, width * 0.3)) + 2 * GAP;
  chart.width = Math.max(1, width - chart.left);
  const bins = Math.min(columns, Math.max(1, Math.floor(chart.width * ratio)));
  if (bins !== chart.bins) {
    [chart.bins, chart.cursor] = [bins, null];
  }
  const bottom = height - FOOT;
  const from = Math.floor(top / TALL);
  const to = Math.min(data.rows.length, Math.ceil((top + bottom) / TALL));
  const picture = pictureOf(chart, from, to, colour);
  context.save();
  context.beginPath();
  context.rect(0, 0, width, bottom);
  context.clip();
  context.imageSmoothingEnabled = false;
  context.fillStyle = colour("heat-nothing");
  context.fillRect(chart.left, 0, chart.width, bottom);
  const sharp = (y) => Math.round(y * ratio) / ratio;
  for (let i = from; i < to; i++) {
    const y = sharp(i * TALL - top);
    const tall = sharp((i + 1) * TALL - top) - y - 1;
    context.drawImage(picture, 0, i - from, bins, 1, chart.left, y, chart.width, tall);
  }
  namesOf(chart, scene, from, to);
  cursorOf(chart, scene);
  context.restore();
  const [first, last] = [data.first_s, data.first_s + columns * data.step_s];
  const place = linear([first, last], [chart.left, width]);
  const marks = timeTicks(first, last, Math.max(2, chart.width / 110));
  timeAxis(scene, marks, place, { top: 0, bottom, left: chart.left, right: width, lines: false });
}

function pictureOf(chart, from, to, colour) {
  const { bins, columns, picture } = chart;
  const rows = chart.data.rows.slice(from, to);
  const colours = palette(colour);
  for (const [swatch, level] of chart.swatches) {
    swatch.style.backgroundColor = level ? colourOf(colours, level) : colour("heat-nothing");
  }
  [picture.width, picture.height] = [bins, Math.max(1, rows.length)];
  const image = new ImageData(bins, Math.max(1, rows.length));
  const dots = new Uint32Array(image.data.buffer);
  binned(rows, columns, bins).forEach((level, i) => {
    dots[i] = colours[level];
  });
  picture.getContext("2d").putImageData(image, 0, 0);
  return picture;
}

function namesOf(chart, { context, top, colour }, from, to) {
  context.textAlign = "right";
  context.fillStyle = colour("ink");
  for (let i = from; i < to; i++) {
    const name = fitting(context, chart.names[i], chart.left - GAP);
    context.fillText(name, chart.left - GAP, (i + 0.5) * TALL - top);
  }
}

function cursorOf(chart, { context, top, width, colour }) {
  const at = chart.cursor;
  if (at === null || at.row >= chart.data.rows.length) {
    return;
  }
  const y = at.row * TALL - top - 0.5;
  const x = chart.left + (at.bin * chart.width) / chart.bins;
  const wide = Math.max(chart.width / chart.bins, 3);
  context.strokeStyle = colour("ink");
  context.lineWidth = 1.5;
  context.strokeRect(chart.left, y, chart.width - 1, TALL);
  context.lineWidth = 3;
  context.strokeRect(Math.min(x, width - wide - 2), y, wide, TALL);
  context.lineWidth = 1;
}

// -- the cursor

function placeAt(chart, x, y) {
  const { box, canvas } = chart;
  const row = Math.floor((y + box.scrollTop) / TALL);
  const isRow = y < canvas.clientHeight - FOOT && row < chart.data.rows.length;
  const bin = Math.floor(((x - chart.left) / chart.width) * chart.bins);
  return !isRow ? null : { row, bin: Math.min(Math.max(bin, 0), chart.bins - 1) };
}

function stepped(chart, key, from) {
  const n = chart.data.rows.length;
  const ways = {
    ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0],
    Home: [0, -Infinity], End: [0, Infinity], PageUp: [-10, 0], PageDown: [10, 0],
  };
  if (!(key in ways) || n === 0) {
    return undefined;
  }
  const at = from ?? { row: 0, bin: chart.bins - 1 };
  const [down, right] = from === null ? [0, 0] : ways[key];
  const held = (value, most) => Math.min(Math.max(value, 0), most);
  const row = held(at.row + down, n - 1);
  const { box } = chart;
  // The row is scrolled to where it is seen.
  const seen = box.clientHeight - FOOT;
  box.scrollTop = Math.min(Math.max(box.scrollTop, (row + 1) * TALL - seen), row * TALL);
  return { row, bin: held(at.bin + right, chart.bins - 1) };
}

function readOut(chart, at, keyed) {
  const { rows, first_s: first, step_s: step } = chart.data;
  const row = at && rows[at.row];
  if (!row) {
    chart.said.replaceChildren(rows.length ? "Point at a row, or move with the arrow keys." : "");
    return;
  }
  const bounds = [at.bin, at.bin + 1].map((bin) => Math.ceil((bin * chart.columns) / chart.bins));
  const level = row.levels.subarray(...bounds).reduce((most, each) => Math.max(most, each), 0);
  const [from, to] = bounds.map((column) => first + column * step);
  const name = make("bdi", { class: "name" }, chart.names[at.row]);
  const linked = keyed ? make("a", { href: row.href }, name) : name;
  const when = ` ${stamp(from)} to ${clock(to)}: `;
  const note = row.note ? `; ${shown(row.note)}` : "";
  chart.said.replaceChildren(linked, when, make("strong", {}, levelWords(level)), note);
}

// -- in words

function legend(chart) {
  const marks = [
    ["no readings", 0],
    ["no limit yet", UNLIMITED],
    ["a quarter of the limit", ONE - 2 * STEPS],
    ["half", ONE - STEPS],
    ["just the limit", ONE],
    ["over it", ONE + 1],
    ["8 times and more", ONE + 3 * STEPS],
  ];
  return marks.map(([text, level]) => {
    const swatch = make("span", { class: "swatch" });
    chart.swatches.push([swatch, level]);
    return make("li", {}, swatch, text);
  });
}

function table({ data: { rows, first_s: first, step_s: step } }) {
  const share = (level = 0) => (level < LEAST ? "" : levelWords(level));
  const best = ({ levels }) => levels.reduce((found, level, j) => (level > levels[found] ? j : found), 0);
  const columns = [
    ["node", ({ name, href }) => make("a", { href }, named(name, 200))],
    ["last", ({ levels }) => share(levels.findLast((level) => level >= LEAST)), "number"],
    ["highest", (row) => share(row.levels[best(row)]), "number"],
    ["at", (row) => share(row.levels[best(row)]) && stamp(first + best(row) * step), "number"],
    ["over its limit", ({ levels }) => minutesOver(levels, step), "number"],
    ["note", ({ note }) => shown(note)],
  ];
  return { columns, items: rows };
}

// Of a step it is known that it was over at some time in it.
function minutesOver(levels, step) {
  const over = levels.filter((level) => level > ONE).length;
  return over ? `${step > 60 ? "≤ " : ""}${Math.round((over * step) / 60)} min` : "";
}
