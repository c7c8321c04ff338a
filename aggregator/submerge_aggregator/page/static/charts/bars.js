// bars(): a value for each of some names, as lying bars from nought, beside its figure in a table.
//
//     bars(host, {label, unit, rows: [{name, value, low, high, mark}]})
//
// `low` and `high` are the ends of what the value may be, as a thin line. `mark` is a word for a bar
// that is of another kind (a spare direction): it is drawn hollow, and the word stands beside its value.

import { make, refill, scrolling, shown } from "../shared/elements.js";
import { short } from "../shared/words.js";
import { extent, linear } from "./scales.js";

/** Draw bars in a host, in place of what is there. */
export function bars(host, { label, unit = "", rows }) {
  const name = unit ? `${label} (${shown(unit)})` : label;
  const values = rows.flatMap(({ value, low, high }) => [value, low, high]);
  const place = linear(extent(values, { zero: true, room: 0 }) ?? [0, 1], [0, 100]);
  const lines = rows.map((row) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, make("bdi", {}, shown(row.name))),
      make("td", { class: "track" }, ...drawn(row, place)),
      make("td", { class: "number" }, valueText(row)),
    ),
  );
  const box = scrolling(name, "scroll tall", make("table", { "aria-label": name }, make("tbody", {}, ...lines)));
  refill(host, make("figure", { class: "chart bars" }, make("figcaption", {}, name), box));
}

function drawn({ value, low, high, mark }, place) {
  const kind = ["stroke", mark && "hollow", value < 0 && "below"].filter(Boolean).join(" ");
  const isRange = Number.isFinite(low) && Number.isFinite(high) && high > low;
  return [
    ...(Number.isFinite(value) ? [span(kind, place(0), place(value))] : []),
    ...(isRange ? [span("range", place(low), place(high))] : []),
  ];
}

function span(kind, ...ends) {
  const [from, to] = ends.sort((a, b) => a - b);
  const element = make("span", { class: kind });
  element.style.insetInlineStart = `${from}%`;
  element.style.inlineSize = `${to - from}%`;
  return element;
}

function valueText({ value, low, high, mark }) {
  const number = Number.isFinite(value) ? short(value) : "–";
  const range = Number.isFinite(low) && high > low ? ` to ${short(high)}` : "";
  return `${number}${range}${mark ? ` ${shown(mark)}` : ""}`;
}
