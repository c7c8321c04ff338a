// A chart: a figure with its caption, a canvas as sharp as the screen, a line that reads out what the
// cursor is at, a box that scrolls where there is more than fits, and its twin, a table.
//
// The canvas is never taller than the box: a chart draws what is to be seen. It draws again when its
// size, the colours of the system, or the place in the box changes, once a frame at most.

import { make, shown, table, tell } from "../shared/elements.js";

const FONT_PX = 12;

// Rows of a twin; of more the first ones are shown, and how many there are.
const MOST_ROWS = 300;

const charts = new WeakMap();

/** Return the chart of a host: the one that is there, or a new one. `how` has these functions, which
 * all get the chart first:
 *
 * draw : draws a scene `{context, width, height, top, ratio, colour}`; sizes are CSS pixels, `top` is
 *   how far the box has scrolled, `colour` returns a custom property of the page's styles
 * table : returns what the twin shows, built only once somebody opens it: `columns` as `table` has
 *   them, and `items`
 * at : from a place in the canvas to where the cursor is, or null
 * step : from a key's name and where the cursor is to where it goes; undefined: not its key
 * moved : what a new place does; by keys, `keyed` is true
 * chosen : what a click or Enter does
 */
export function chartIn(host, kind, how) {
  const known = charts.get(host);
  if (known?.figure.isConnected) {
    return known;
  }
  const said = make("p", { class: "readout", role: "status" });
  const canvas = make("canvas", { role: "img", tabindex: "0" });
  const rest = make("div");
  const box = make("div", { class: "plot" }, canvas, rest);
  const caption = make("figcaption");
  const legend = make("ul", { class: "legend" });
  const figure = make("figure", { class: `chart ${kind}` }, caption, legend, box, said);
  const chart = { how, figure, caption, legend, box, canvas, rest, said, cursor: null, due: 0 };
  host.replaceChildren(figure);
  twin(chart);
  withCursor(chart);
  new ResizeObserver(() => again(chart)).observe(box);
  box.addEventListener("scroll", () => again(chart), { passive: true });
  charts.set(host, chart);
  return chart;
}

/** Give a chart its label, and the height of what it draws; more than `most` scrolls. */
export function fill(chart, { label, about, height, most = height }) {
  const name = shown(label);
  tell(chart.caption, name);
  chart.canvas.setAttribute("aria-label", `${name}. ${about}`);
  const seen = Math.min(height, most);
  chart.box.style.height = chart.canvas.style.height = `${seen}px`;
  chart.rest.style.height = `${height - seen}px`;
  chart.how.moved(chart, chart.cursor, false);
  chart.build();
  again(chart);
}

function again(chart) {
  chart.due ||= requestAnimationFrame(() => {
    chart.due = 0;
    paint(chart);
  });
}

function paint(chart) {
  const { canvas, box, how } = chart;
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
  how.draw(chart, { context, width, height, top: box.scrollTop, ratio, colour });
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  const drawn = [...document.querySelectorAll("figure.chart")].map((each) => charts.get(each.parentElement));
  drawn.filter(Boolean).forEach(again);
});

function twin(chart) {
  const inside = make("div");
  const details = make("details", { class: "twin" }, make("summary", {}, "As a table"), inside);
  chart.build = () => {
    if (details.open) {
      const { columns, items } = chart.how.table(chart);
      const few = items.slice(0, MOST_ROWS);
      inside.replaceChildren(table(chart.caption.textContent, columns, few));
      if (few.length < items.length) {
        inside.append(make("p", {}, `The first ${few.length} of ${items.length} rows.`));
      }
    }
  };
  details.addEventListener("toggle", chart.build);
  chart.figure.append(details);
}

/** Return a text, cut so that it is not wider. */
export function fitting(context, text, width) {
  let [cut, n] = [text, text.length];
  const wide = () => context.measureText(cut).width;
  while (n > 0 && wide() > width) {
    n = Math.min(n - 1, Math.ceil((n * width) / wide()) + 1);
    cut = text.slice(0, n) + "…";
  }
  return cut;
}

/** Return the width of the widest text, at most `most`. */
export function widest(context, texts, most) {
  // So many letters are wider than any place for them.
  const widths = texts.map((text) => context.measureText(text.slice(0, 100)).width);
  return Math.min(most, Math.ceil(Math.max(0, ...widths)));
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

// Have a chart's cursor moved by pointer and by keys.
function withCursor(chart) {
  const { canvas, how } = chart;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return how.at(chart, event.clientX - box.left, event.clientY - box.top);
  };
  const go = (where, keyed) => {
    chart.cursor = where;
    how.moved(chart, where, keyed);
    again(chart);
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
    if (mouse && chart.cursor !== null) {
      how.chosen?.(chart, chart.cursor);
    }
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) {
      return;
    }
    if (event.key === "Enter" && chart.cursor !== null) {
      event.preventDefault();
      how.chosen?.(chart, chart.cursor);
    } else if (event.key === "Escape") {
      go(null, true);
    } else {
      const next = how.step(chart, event.key, chart.cursor);
      if (next !== undefined) {
        event.preventDefault();
        go(next, true);
      }
    }
  });
}
