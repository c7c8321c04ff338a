// The fleet as one table: sorted by any column, put in by slices so that its worst is there at once.

import { make } from "../shared/build.js";
import { COLUMNS, line, ordered } from "./fleet_rows.js";

// Rows that are put into the table at first; each further slice is as large as all before it, for a
// table that grows is laid out as a whole.
const AT_FIRST = 400;

/** Return a function that draws rows into a table.
 *
 * It takes the rows, the group, when the fleet was asked, and whether somebody waits: then the first
 * slice is shown before the others are there; else the table changes as a whole, and whoever reads it
 * keeps the place.
 */
export function fleetList(table) {
  let sorted = { column: "state", down: false };
  let drawing = 0;
  let last = null;
  return draw;

  function draw(rows, group, at, waits = true) {
    last = [rows, group, at];
    const body = make("tbody");
    const turn = ++drawing;
    const put = ordered(rows, sorted);
    const show = () => {
      const focused = table.contains(document.activeElement) && keyOf(document.activeElement);
      table.replaceChildren(heading(), body);
      if (focused) {
        [...table.querySelectorAll("a, button")].find((each) => keyOf(each) === focused)?.focus({ preventScroll: true });
      }
    };
    const fill = (from, to) => {
      if (turn !== drawing) {
        return;
      }
      body.append(...put.slice(from, to).map((row) => line(row, group, at)));
      const ends = to >= put.length;
      if (waits ? from === 0 : ends) {
        show();
      }
      if (ends) {
        table.dataset.rows = put.length;
        table.dataset.drawn = performance.now();
      } else {
        requestAnimationFrame(() => fill(to, 2 * to));
      }
    };
    fill(0, AT_FIRST);
  }

  function heading() {
    const cells = COLUMNS.map(([name, , kind]) => {
      const here = sorted.column === name;
      const order = here ? (sorted.down ? "descending" : "ascending") : "none";
      const sort = () => {
        sorted = { column: name, down: here && !sorted.down };
        draw(...last);
      };
      const button = make("button", { type: "button", click: sort, "data-column": name }, name);
      return make("th", { scope: "col", class: kind, "aria-sort": order }, button);
    });
    return make("thead", {}, make("tr", {}, ...cells));
  }
}

function keyOf(element) {
  return element.dataset.column ?? element.getAttribute("href");
}
