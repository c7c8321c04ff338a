// The table twin of a chart: what it draws as rows of text, built only once somebody opens it.

import { make } from "../shared/build.js";
import { shown } from "../shared/text.js";

// Rows of a twin; of more the first ones are shown, and how many there are.
export const MOST_ROWS = 300;

/** Put a twin below a chart; return a function that has it built again.
 *
 * table : returns `{heads, rows, numbers, all}`: texts or elements of the head and of each row, a
 *   row's first cell being its name; how many of the next columns are figures, all if not given; and
 *   how many rows there would be
 */
export function twin(figure, table) {
  const place = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" });
  const details = make("details", { class: "twin" }, make("summary", {}, "As a table"), place);
  const build = () => {
    if (details.open) {
      place.replaceChildren(...content(table(), figure));
    }
  };
  details.addEventListener("toggle", build);
  figure.append(details);
  return build;
}

function content({ heads, rows, numbers = heads.length, all = rows.length }, figure) {
  const few = rows.slice(0, MOST_ROWS);
  const kind = (i) => (i > 0 && i <= numbers ? "number" : null);
  const caption = make("caption", {}, figure.querySelector("figcaption").textContent);
  const head = heads.map((each, i) => make("th", { scope: "col", class: kind(i) }, each));
  const body = few.map((cells) =>
    make(
      "tr",
      {},
      ...cells.map((each, i) => {
        const inside = typeof each === "string" ? make("bdi", {}, shown(each)) : each;
        return i ? make("td", { class: kind(i) }, inside) : make("th", { scope: "row" }, inside);
      }),
    ),
  );
  const table = make("table", {}, caption, make("thead", {}, make("tr", {}, ...head)));
  table.append(make("tbody", {}, ...body));
  const more = all > few.length ? [make("p", {}, `The first ${few.length} of ${all} rows.`)] : [];
  return [table, ...more];
}
