// A node of the fleet as a row of a table, and what rows are sorted and searched by.

import { pathOf } from "../shared/ask.js";
import { make } from "../shared/build.js";
import { shown } from "../shared/text.js";
import { ago, count } from "../shared/words.js";

// As `fleet_rows.STATES`: the worst first.
export const STATES = [
  "alarm", "silent", "banned", "quarantined", "stale", "far", "bounded", "paused", "learning",
  "armed", "sealed", "unwatched",
];

export const COLUMNS = [
  ["node", (row) => row.node],
  ["state", (row) => STATES.indexOf(row.state)],
  ["alarms", (row) => -row.open, "number"],
  ["under", (row) => row.under],
  ["kind", (row) => row.kind],
  ["heard", (row) => -(row.heard_s ?? 0), "number"],
  ["readings", (row) => -row.learnt, "number"],
  ["lost", (row) => -row.lost, "number"],
  ["certificate", (row) => row.certified_until_s || Infinity, "number"],
  ["software", (row) => row.software],
];

/** Return a badge: a state in a word, with its shape. */
export function badge(state, note = "") {
  return make("span", { class: `badge ${state}`, title: note ? shown(note) : null }, state);
}

/** Return rows in an order: `{column, down}`; equal ones by their names. */
export function ordered(rows, { column, down }) {
  const key = COLUMNS.find(([name]) => name === column)[1];
  const known = rows.map((row) => [key(row), row]);
  const sign = down ? -1 : 1;
  known.sort(([a, first], [b, second]) =>
    a === b ? (first.node < second.node ? -1 : 1) : sign * (a < b ? -1 : 1),
  );
  return known.map(([, row]) => row);
}

/** Return whether a row has a state (any if it is empty), and all words of a text. */
export function isWanted(row, state, text) {
  const known = `${row.under}/${row.node} ${row.software} ${row.note}`.toLowerCase();
  const words = text.trim().toLowerCase().split(/\s+/);
  return (!state || row.state === state) && words.every((word) => known.includes(word));
}

/** Return a row of a table. `at` is when the fleet was asked, Unix seconds. */
export function line(row, group, at, { under = true } = {}) {
  const query = { group, path: row.under, node: row.node };
  const name = make("a", { href: pathOf(["node"], query) }, make("bdi", {}, shown(row.node)));
  const until = row.certified_until_s;
  return make(
    "tr",
    { "data-state": row.state },
    make("th", { scope: "row" }, name),
    make("td", {}, badge(row.state, row.note)),
    make("td", { class: "number" }, row.open ? count(row.open) : ""),
    ...(under ? [make("td", {}, make("bdi", {}, shown(row.under)))] : []),
    make("td", {}, row.kind),
    make("td", { class: "number" }, row.heard_s === null ? "never" : ago(at - row.heard_s)),
    make("td", { class: "number" }, count(row.learnt)),
    make("td", { class: "number" }, row.lost ? count(row.lost) : ""),
    make("td", { class: "number" }, until ? ago(until - Date.now() / 1000) : ""),
    make("td", {}, make("bdi", {}, shown(row.software))),
  );
}
