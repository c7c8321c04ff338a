// Tables of few columns: they scroll inside their box, or stack their cells on a small screen.

import { make } from "./build.js";
import { nothing } from "./named.js";
import { refill } from "./refill.js";

/** Put a table of rows into a host; where there are none, the words that say so. */
export function fillTable(host, label, headings, rows, ...none) {
  refill(host, rows.length ? table(label, headings, rows) : nothing(...none));
}

/**
 * Return a table in a box that scrolls: headings, then rows of cells; a first cell is a heading.
 *
 * A cell is a text, an element, several in a list, or a number: an object with one is text that
 * stands on the right, as numbers do. With `stacks` each row is a block of lines on a small screen.
 */
export function table(label, headings, rows, { stacks = false } = {}) {
  const head = headings.map((each, i) =>
    make("th", { scope: "col", ...role("columnheader"), class: isNumber(rows[0]?.[i]) && "number" }, each),
  );
  const lines = rows.map(([first, ...cells]) =>
    make(
      "tr",
      role("row"),
      make("th", { scope: "row", ...role("rowheader") }, first),
      ...cells.map((each, i) => cell(each, headings[i + 1])),
    ),
  );
  const kind = stacks ? "words stacks" : "words";
  // Blocks in place of a table's boxes would take its roles away.
  const whole = make(
    "table",
    { class: kind, ...role("table"), "aria-label": label },
    make("thead", role("rowgroup"), make("tr", role("row"), ...head)),
    make("tbody", role("rowgroup"), ...lines),
  );
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, whole);
}

function role(name) {
  return { role: name };
}

function isNumber(inside) {
  return typeof inside === "number" || inside?.number !== undefined;
}

function cell(inside, heading) {
  const attributes = { ...role("cell"), "data-label": heading, class: isNumber(inside) && "number" };
  const parts = isNumber(inside)
    ? [inside.number ?? inside.toLocaleString("en")]
    : Array.isArray(inside)
      ? inside
      : [inside ?? ""];
  return make("td", attributes, ...parts);
}
