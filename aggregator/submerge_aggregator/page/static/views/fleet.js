// The fleet: every node, the worst first, as a list or below the aggregators that it reports to.

import { get } from "../shared/ask.js";
import { make } from "../shared/build.js";
import { follow } from "../shared/live.js";
import { start } from "../shared/start.js";
import { shown } from "../shared/text.js";
import { count } from "../shared/words.js";
import { fleetList } from "./fleet_list.js";
import { STATES, isWanted } from "./fleet_rows.js";
import { fleetTree } from "./fleet_tree.js";

const { group } = await start();
const table = document.getElementById("nodes");
const tree = document.getElementById("tree");
const search = document.getElementById("search");
const chosen = document.getElementById("state");
const ways = [...document.querySelectorAll("#ways button")];
const [drawList, drawTree] = [fleetList(table), fleetTree(tree)];
let fleet = { rows: [], silent: [], at: 0 };
let way = new URLSearchParams(location.search).get("as") === "tree" ? "tree" : "list";

const options = new Map(STATES.map((each) => [each, make("option", { value: each }, each)]));
chosen.append(...options.values());
search.addEventListener("input", () => draw());
search.form.addEventListener("submit", (event) => event.preventDefault());
chosen.addEventListener("change", () => draw());
for (const button of ways) {
  button.addEventListener("click", () => {
    way = button.value;
    const query = new URLSearchParams(location.search);
    query.set("as", way);
    history.replaceState(null, "", `?${query}`);
    draw();
  });
}
let first = true;
follow("fleet", async () => {
  fleet = await get(["data", "fleet", group]);
  draw(first);
  first = false;
});

// waits : somebody has asked for it just now
function draw(waits = true) {
  const wanted = (row) => isWanted(row, chosen.value, search.value);
  const rows = fleet.rows.filter(wanted);
  table.closest(".scroll").hidden = way !== "list";
  tree.hidden = way !== "tree";
  ways.forEach((button) => button.setAttribute("aria-pressed", String(button.value === way)));
  if (way === "list") {
    drawList(rows, group, fleet.at, waits);
  } else {
    drawTree(fleet.rows, wanted, rows.length === fleet.rows.length, group, fleet.at);
  }
  tell(rows.length);
}

function tell(n) {
  const all = fleet.rows.length;
  const some = n === all ? count(all) : `${count(n)} of ${count(all)}`;
  const clients = fleet.rows.filter((row) => row.kind === "client").length;
  const text = `${some} nodes, ${count(clients)} clients${fleet.more ? "; there are more" : ""}`;
  const said = document.getElementById("count");
  if (said.textContent !== text) {
    said.textContent = text;
  }
  for (const [state, option] of options) {
    const inIt = fleet.rows.filter((row) => row.state === state).length;
    option.textContent = inIt ? `${state} (${count(inIt)})` : state;
  }
  document.getElementById("silent").replaceChildren(
    ...fleet.silent.map((each) => make("p", { class: "problem" }, shown(each, 400))),
  );
}
