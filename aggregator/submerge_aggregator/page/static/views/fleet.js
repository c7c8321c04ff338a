// The fleet: every node, the worst first; searched, filtered and sorted here.

import { get, pathOf } from "../shared/ask.js";
import { make } from "../shared/build.js";
import { follow } from "../shared/live.js";
import { start } from "../shared/start.js";
import { ago, count } from "../shared/words.js";

// As `fleet_rows.STATES`: the worst first.
const STATES = [
  "alarm", "silent", "banned", "quarantined", "stale", "far", "bounded", "paused", "learning",
  "armed", "sealed", "unwatched",
];

const COLUMNS = [
  ["node", (row) => row.node],
  ["state", (row) => STATES.indexOf(row.state)],
  ["alarms", (row) => -row.open],
  ["under", (row) => row.under],
  ["kind", (row) => row.kind],
  ["heard", (row) => -(row.heard_s ?? 0)],
  ["readings", (row) => -row.learnt],
  ["lost", (row) => -row.lost],
  ["certificate", (row) => row.certified_until_s || Infinity],
  ["software", (row) => row.software],
];

// Rows that are put into the table at a time, so that a large fleet shows its worst at once.
const AT_ONCE = 500;

const { group } = await start();
const table = document.getElementById("nodes");
const search = document.getElementById("search");
const chosen = document.getElementById("state");
let tree = { rows: [], silent: [], at: 0 };
let sorted = { column: "state", down: false };
let drawing = 0;

chosen.append(...STATES.map((each) => make("option", { value: each }, each)));
search.addEventListener("input", draw);
chosen.addEventListener("change", draw);
follow("fleet", async () => {
  tree = await get(["data", "fleet", group]);
  draw();
});

function draw() {
  const rows = ordered(tree.rows.filter(isWanted));
  const body = make("tbody");
  const turn = ++drawing;
  const fill = (from) => {
    if (turn !== drawing) {
      return;
    }
    body.append(...rows.slice(from, from + AT_ONCE).map(line));
    if (from + AT_ONCE < rows.length) {
      requestAnimationFrame(() => fill(from + AT_ONCE));
    } else {
      table.dataset.rows = rows.length;
      table.dataset.drawn = performance.now();
    }
  };
  fill(0);
  table.replaceChildren(heading(), body);
  const all = tree.rows.length;
  const shown = rows.length === all ? count(all) : `${count(rows.length)} of ${count(all)}`;
  const clients = tree.rows.filter((row) => row.kind === "client").length;
  document.getElementById("count").textContent =
    `${shown} nodes, ${count(clients)} clients${tree.more ? "; there are more" : ""}`;
  document.getElementById("silent").replaceChildren(
    ...tree.silent.map((each) => make("p", { class: "problem" }, each)),
  );
}

function isWanted(row) {
  const text = search.value.trim().toLowerCase();
  const known = `${row.under}/${row.node} ${row.software} ${row.note}`.toLowerCase();
  return (!chosen.value || row.state === chosen.value) && text.split(/\s+/).every((w) => known.includes(w));
}

function ordered(rows) {
  const key = COLUMNS.find(([name]) => name === sorted.column)[1];
  const known = rows.map((row) => [key(row), row]);
  const sign = sorted.down ? -1 : 1;
  known.sort(([a, first], [b, second]) =>
    a === b ? -(first.node < second.node) : sign * (a < b ? -1 : 1),
  );
  return known.map(([, row]) => row);
}

function heading() {
  const cells = COLUMNS.map(([name]) => {
    const here = sorted.column === name;
    const order = here ? (sorted.down ? "descending" : "ascending") : "none";
    const sort = () => {
      sorted = { column: name, down: here && !sorted.down };
      draw();
      table.querySelector(`button[data-column="${name}"]`).focus();
    };
    const button = make("button", { type: "button", click: sort, "data-column": name }, name);
    return make("th", { scope: "col", "aria-sort": order }, button);
  });
  return make("thead", {}, make("tr", {}, ...cells));
}

function line(row) {
  const query = { group, path: row.under, node: row.node };
  const name = make("a", { href: pathOf(["node"], query) }, make("bdi", {}, row.node));
  const until = row.certified_until_s;
  return make(
    "tr",
    { "data-state": row.state },
    make("th", { scope: "row" }, name),
    make("td", {}, make("span", { class: `badge ${row.state}`, title: row.note }, row.state)),
    make("td", { class: "number" }, row.open ? count(row.open) : ""),
    make("td", {}, make("bdi", {}, row.under)),
    make("td", {}, row.kind),
    make("td", { class: "number" }, row.heard_s === null ? "never" : ago(tree.at - row.heard_s)),
    make("td", { class: "number" }, count(row.learnt)),
    make("td", { class: "number" }, row.lost ? count(row.lost) : ""),
    make("td", { class: "number" }, until ? ago(until - Date.now() / 1000) : ""),
    make("td", {}, make("bdi", {}, row.software)),
  );
}
