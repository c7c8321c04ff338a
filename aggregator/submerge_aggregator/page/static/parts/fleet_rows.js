// Nodes of the fleet as a table: its columns, how rows are sorted and searched, and the first ones of many.

import { make, named, nodeLink, shown } from "../shared/elements.js";
import { ago, count } from "../shared/words.js";

// As `fleet_tree.STATES`, the worst first, with what each means and what to do.
export const STATE_WORDS = {
  alarm: "An alarm is open.",
  silent: "Not heard for a quarter of an hour. Look whether it runs, and whether its link is up.",
  banned: "An operator refuses it. Unban it when the cause is gone.",
  quarantined: "Its rows stay out of the model until it is released. Find out why before you release it.",
  stale: "Its model has expired. Its aggregator does not reach it, or gets no models itself.",
  far: "Its readings differ from all others, and are left out of the model. Look at the machine.",
  bounded: "It has reported more than it may weigh. Act only if it should count for more.",
  paused: "It learns nothing, as an operator has ordered.",
  learning: "Its limits are not known yet, or provisional: alarms by provisional ones are sent nowhere.",
  armed: "It detects alarms.",
  sealed: "Its incarnations have ended; nothing of it runs.",
  unwatched: "It raises no alarms: they are off there, or it has no model yet.",
};

export const STATES = Object.keys(STATE_WORDS);

export const WORST_FIRST = { column: "state", down: false };

// Rows that a table has at first; its button puts in as many again.
const AT_ONCE = 250;

// What rows are sorted by, and what a cell shows of a row of a fleet that was asked `at`, Unix seconds.
const COLUMNS = [
  ["node", (row) => row.node],
  ["state", (row) => STATES.indexOf(row.state), (row) => badge(row.state, row.note)],
  ["alarms", (row) => -row.open, (row) => (row.open ? count(row.open) : ""), "number"],
  ["under", (row) => row.under, (row) => named(row.under, 200)],
  ["kind", (row) => row.kind, (row) => row.kind],
  ["heard", (row) => -(row.heard_s ?? 0), (row, at) => (row.heard_s === null ? "never" : ago(at - row.heard_s)), "number"],
  ["readings", (row) => -row.learnt, (row) => count(row.learnt), "number"],
  ["lost", (row) => -row.lost, (row) => (row.lost ? count(row.lost) : ""), "number"],
  ["certificate", (row) => row.certified_until_s || Infinity, (row) => validity(row.certified_until_s), "number"],
  ["software", (row) => row.software, (row) => named(row.software, 200)],
];

function validity(until) {
  return until ? ago(until - Date.now() / 1000) : "";
}

/** Return a badge: a state in a word, with its shape. */
export function badge(state, note = "") {
  return make("span", { class: `badge ${state}`, title: note ? shown(note) : null }, state);
}

/** Return whether a row has a state (any if it is empty), and all words of a text. */
export function isWanted(row, state, text) {
  const known = `${row.under}/${row.node} ${row.software} ${row.note}`.toLowerCase();
  const words = text.trim().toLowerCase().split(/\s+/);
  return (!state || row.state === state) && words.every((word) => known.includes(word));
}

/** Return a table of nodes, and a button that puts in more of them.
 *
 * fleet : `{group, at}` : of whom, and when it was asked
 * built : by `key`, how many rows there were before: as many are there again
 * sortBy : called with another order; without it heads are plain, and nobody says what is under whom
 */
export function nodeTable(rows, { group, at }, { built, key, sorted = WORST_FIRST, sortBy = null }) {
  const columns = COLUMNS.filter(([column]) => sortBy || column !== "under");
  const sortedRows = ordered(rows, sorted);
  const body = make("tbody");
  const more = make("button", { type: "button", "data-key": `more ${key}`, click: () => put(body.rows.length) });
  const put = (n) => {
    const from = body.rows.length;
    body.append(...sortedRows.slice(from, from + n).map((row) => line(row, columns, group, at)));
    built.set(key, body.rows.length);
    const left = rows.length - body.rows.length;
    more.hidden = left === 0;
    more.textContent = `Show ${count(Math.min(left, body.rows.length))} of ${count(left)} more`;
  };
  put(Math.max(AT_ONCE, built.get(key) ?? 0));
  const heads = columns.map(([column, , , kind]) => head(column, kind, sorted, sortBy));
  return [make("table", { "data-rows": rows.length }, make("thead", {}, make("tr", {}, ...heads)), body), more];
}

// Equal rows are put by their names.
function ordered(rows, { column, down }) {
  const [, key] = COLUMNS.find(([each]) => each === column);
  const sign = down ? -1 : 1;
  const keyed = rows.map((row) => [key(row), row]);
  keyed.sort(([a, first], [b, second]) =>
    a === b ? (first.node < second.node ? -1 : 1) : sign * (a < b ? -1 : 1),
  );
  return keyed.map(([, row]) => row);
}

function head(column, kind, sorted, sortBy) {
  if (!sortBy) {
    return make("th", { scope: "col", class: kind }, column);
  }
  const here = sorted.column === column;
  const order = here ? (sorted.down ? "descending" : "ascending") : "none";
  const sort = () => sortBy({ column, down: here && !sorted.down });
  const button = make("button", { type: "button", click: sort, "data-key": `sort ${column}`, "data-column": column }, column);
  return make("th", { scope: "col", class: kind, "aria-sort": order }, button);
}

function line(row, columns, group, at) {
  const link = nodeLink(group, row.node, row.under);
  link.dataset.key = `node ${row.under}/${row.node}`;
  const [, ...others] = columns;
  const cells = others.map(([, , cell, kind]) => make("td", { class: kind }, cell(row, at)));
  return make("tr", { "data-state": row.state }, make("th", { scope: "row" }, link), ...cells);
}
