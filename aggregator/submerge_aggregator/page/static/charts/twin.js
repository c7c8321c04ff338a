// The table twin of a chart: what it draws as rows of text, built only once somebody opens it.

import { make } from "../shared/build.js";
import { table } from "../shared/table.js";

// Rows of a twin; of more the first ones are shown, and how many there are.
export const MOST_ROWS = 300;

/** Put a twin below a chart; return a function that has it built again.
 *
 * told : returns `{heads, rows, numbers, all}`: texts or elements of the head and of each row, a row's
 *   first cell being its name; how many of the next columns are figures, all if not given; and how
 *   many rows there would be
 */
export function twin(figure, told) {
  const place = make("div");
  const details = make("details", { class: "twin" }, make("summary", {}, "As a table"), place);
  const build = () => {
    if (details.open) {
      place.replaceChildren(...content(told(), figure.querySelector("figcaption").textContent));
    }
  };
  details.addEventListener("toggle", build);
  figure.append(details);
  return build;
}

function content({ heads, rows, numbers = heads.length, all = rows.length }, label) {
  const few = rows.slice(0, MOST_ROWS).map(([first, ...cells]) => [
    first,
    ...cells.map((each, i) => (i < numbers ? { number: each } : each)),
  ]);
  const more = all > few.length ? [make("p", {}, `The first ${few.length} of ${all} rows.`)] : [];
  return [table(label, heads, few), ...more];
}
