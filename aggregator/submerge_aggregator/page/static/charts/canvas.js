// A stage for a chart: a figure with its caption, a canvas as sharp as the screen, a line that reads
// out what the cursor is at, and a box that scrolls where there is more than fits.
//
// The canvas is never taller than the box: a chart draws what is to be seen. It draws again when its
// size, the colours of the system, or the place in the box changes, once a frame at most.

import { make } from "../shared/build.js";
import { shown } from "../shared/text.js";
import { twin } from "./twin.js";

const FONT_PX = 12;

const stages = new Set();

const charts = new WeakMap();

/** Return the chart of a host: the one that is there, or a new one with its stage, table and cursor.
 *
 * draw : called with the chart and `{context, width, height, top, colour}`; sizes are CSS pixels,
 *   `top` is how far the box has scrolled, `colour` returns a custom property of the page's styles
 * table : as `twin` has it
 * at, step, moved, chosen : as `cursor` has them. All are called with the chart first
 */
export function chartIn(host, kind, { draw, table, at, step, moved, chosen = () => {} }) {
  const known = charts.get(host);
  if (known?.stage.figure.isConnected) {
    return known;
  }
  const chart = {};
  chart.stage = stage(host, kind, (scene) => draw(chart, scene));
  chart.build = twin(chart.stage.figure, () => table(chart));
  cursor(chart.stage, {
    at: (...place) => at(chart, ...place),
    step: (...key) => step(chart, ...key),
    moved: (...where) => moved(chart, ...where),
    chosen: (where) => chosen(chart, where),
  });
  charts.set(host, chart);
  return chart;
}

function stage(host, kind, draw) {
  const said = make("p", { class: "readout", role: "status" });
  const canvas = make("canvas", { role: "img", tabindex: "0" });
  const rest = make("div");
  const box = make("div", { class: "plot" }, canvas, rest);
  const caption = make("figcaption");
  const legend = make("ul", { class: "legend" });
  const figure = make("figure", { class: `chart ${kind}` }, caption, legend, box, said);
  host.replaceChildren(figure);
  const self = { figure, caption, legend, box, canvas, rest, said, draw, again, due: 0 };
  const sizes = new ResizeObserver(again);
  function again() {
    self.due ||= requestAnimationFrame(() => {
      self.due = 0;
      paint(self);
    });
  }
  sizes.observe(box);
  box.addEventListener("scroll", again, { passive: true });
  stages.add(self);
  return self;
}

/** Give a stage its label, and the height of what it draws; more than `most` scrolls. */
export function fill(self, { label, about = "", height, most = height }) {
  const name = shown(label);
  if (self.caption.textContent !== name) {
    self.caption.textContent = name;
  }
  self.canvas.setAttribute("aria-label", about ? `${name}. ${about}` : name);
  const seen = Math.min(height, most);
  self.box.style.height = self.canvas.style.height = `${seen}px`;
  self.rest.style.height = `${height - seen}px`;
  self.again();
}

/** Say what the cursor is at: text, or elements. */
export function say(self, ...what) {
  self.said.replaceChildren(...what);
}

function paint(self) {
  const { canvas, box, draw } = self;
  const [width, height] = [box.clientWidth, box.clientHeight];
  if (width === 0 || height === 0) {
    return;
  }
  const ratio = window.devicePixelRatio || 1;
  const sides = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== sides[0] || canvas.height !== sides[1]) {
    [canvas.width, canvas.height] = sides;
    canvas.style.width = `${width}px`;
  }
  const context = canvas.getContext("2d");
  const style = getComputedStyle(box);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = `${FONT_PX}px ${style.fontFamily}`;
  context.fontVariantNumeric = "tabular-nums";
  context.textBaseline = "middle";
  // A name never turns the order of what is around it.
  context.direction = "ltr";
  draw({ context, width, height, top: box.scrollTop, ratio, colour });
}

function everywhere() {
  for (const each of stages) {
    if (each.canvas.isConnected) {
      each.again();
    } else {
      stages.delete(each);
    }
  }
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", everywhere);

/** Return a text, cut so that it is not wider. */
export function fitting(context, text, width) {
  if (context.measureText(text).width <= width) {
    return text;
  }
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(text.slice(0, middle) + "…").width <= width) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return text.slice(0, low) + "…";
}

/** Return the width of the widest text, at most `most`. */
export function widest(context, texts, most) {
  let width = 0;
  for (const text of texts) {
    // Of a long text it is known without measuring.
    width = Math.max(width, text.length > 100 ? most : context.measureText(text).width);
    if (width >= most) {
      return most;
    }
  }
  return Math.ceil(width);
}

/** Draw what an axis of time names, below a plot, and faint lines through it. */
export function timeAxis({ context, colour }, marks, place, { top, bottom, left, right, lines = true }) {
  context.textAlign = "center";
  let free = left - 4;
  for (const { at, text } of marks) {
    const x = Math.round(place(at)) + 0.5;
    context.strokeStyle = colour("rule");
    context.beginPath();
    context.moveTo(x, lines ? top : bottom);
    context.lineTo(x, bottom + 4);
    context.stroke();
    const half = context.measureText(text).width / 2;
    const middle = Math.min(Math.max(x, left + half), right - half);
    if (middle - half >= free) {
      context.fillStyle = colour("quiet");
      context.fillText(text, middle, bottom + 13);
      free = middle + half + 10;
    }
  }
}

// Have a stage's cursor moved by pointer and by keys.
//
// at : from a place in the canvas to where the cursor is, or null
// step : from a key's name and where the cursor is to where it goes; undefined: not its key
// moved : what a new place does; by keys, `keyed` is true
// chosen : what a click or Enter does
function cursor(self, { at, step, moved, chosen }) {
  const { canvas } = self;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return at(event.clientX - box.left, event.clientY - box.top);
  };
  self.cursor = null;
  const go = (where, keyed) => {
    self.cursor = where;
    moved(where, keyed);
    self.again();
  };
  canvas.addEventListener("pointermove", (event) => {
    if (event.pointerType === "mouse") {
      go(place(event), false);
    }
  });
  canvas.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse" && document.activeElement !== canvas) {
      go(null, false);
    }
  });
  canvas.addEventListener("click", (event) => {
    // A finger has no place before it touches: it reads first, and goes by the link that it reads.
    const mouse = event.pointerType === "mouse";
    go(place(event), !mouse);
    if (mouse && self.cursor !== null) {
      chosen(self.cursor);
    }
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) {
      return;
    }
    if (event.key === "Enter" && self.cursor !== null) {
      event.preventDefault();
      chosen(self.cursor);
    } else if (event.key === "Escape") {
      go(null, true);
    } else {
      const next = step(event.key, self.cursor);
      if (next !== undefined) {
        event.preventDefault();
        go(next, true);
      }
    }
  });
}
