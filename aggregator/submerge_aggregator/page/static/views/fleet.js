// The fleet: every node, the worst first, as a list or below the aggregators that it reports to.

import { get } from "../shared/ask.js";
import { make } from "../shared/build.js";
import { follow } from "../shared/live.js";
import { problem } from "../shared/named.js";
import { refill } from "../shared/refill.js";
import { start } from "../shared/start.js";
import { count } from "../shared/words.js";
import { STATES, WORST_FIRST, isWanted, nodeTable } from "./fleet_rows.js";
import { fleetTree } from "./fleet_tree.js";

const { group } = await start();
const list = document.getElementById("nodes");
const tree = document.getElementById("tree");
const search = document.getElementById("search");
const chosen = document.getElementById("state");
const ways = [...document.querySelectorAll("#ways button")];
const drawTree = fleetTree(tree);
const built = new Map();
let sorted = WORST_FIRST;
let fleet = { rows: [], silent: [], at: 0 };
let way = new URLSearchParams(location.search).get("as") === "tree" ? "tree" : "list";

const options = new Map(STATES.map((each) => [each, make("option", { value: each }, each)]));
chosen.append(...options.values());
search.addEventListener("input", draw);
search.form.addEventListener("submit", (event) => event.preventDefault());
chosen.addEventListener("change", draw);
for (const button of ways) {
  button.addEventListener("click", () => {
    way = button.value;
    const query = new URLSearchParams(location.search);
    query.set("as", way);
    history.replaceState(null, "", `?${query}`);
    draw();
  });
}
follow("fleet", async () => {
  fleet = await get(["data", "fleet", group]);
  draw();
});

function draw() {
  const wanted = (row) => isWanted(row, chosen.value, search.value);
  const rows = fleet.rows.filter(wanted);
  list.hidden = way !== "list";
  tree.hidden = way !== "tree";
  ways.forEach((button) => button.setAttribute("aria-pressed", String(button.value === way)));
  if (way === "list") {
    refill(list, ...nodeTable(rows, { group, at: fleet.at }, { built, key: "list", sorted, sortBy }));
  } else {
    drawTree(fleet.rows, wanted, rows.length === fleet.rows.length, group, fleet.at);
  }
  tell(rows.length);
}

function sortBy(order) {
  sorted = order;
  draw();
}

function tell(n) {
  const all = fleet.rows.length;
  const some = n === all ? count(all, "node") : `${count(n)} of ${count(all, "node")}`;
  const clients = fleet.rows.filter((row) => row.kind === "client").length;
  const text = `${some}, ${count(clients, "client")}${fleet.more ? "; there are more" : ""}`;
  const said = document.getElementById("count");
  if (said.textContent !== text) {
    said.textContent = text;
  }
  for (const [state, option] of options) {
    const inIt = fleet.rows.filter((row) => row.state === state).length;
    option.textContent = inIt ? `${state} (${count(inIt)})` : state;
  }
  document.getElementById("silent").replaceChildren(
    ...fleet.silent.map((each) => problem({ message: each })),
  );
}
