// The fleet: every node, the worst first, as a list or below the aggregators that it reports to.

import { STATES, WORST_FIRST, badge, isWanted, nodeTable } from "../parts/fleet_rows.js";
import { below, get } from "../shared/ask.js";
import { make, nodeLink, nothing, place, problem, refill, shown, tell } from "../shared/elements.js";
import { follow, remember, start } from "../shared/start.js";
import { count } from "../shared/words.js";

// Where so few are left by a search, all branches with them open.
const FEW = 100;

const group = await start();
const [search, chosen] = [place("search"), place("state")];
const ways = [...place("ways").children];
// How many rows tables had before, and which branches were opened or closed by hand.
const [built, opened] = [new Map(), new Map()];
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
    remember("as", way);
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
  place("nodes").hidden = way !== "list";
  place("tree").hidden = way !== "tree";
  ways.forEach((button) => button.setAttribute("aria-pressed", String(button.value === way)));
  if (way === "list") {
    refill(place("nodes"), ...nodeTable(rows, { group, at: fleet.at }, { built, key: "list", sorted, sortBy }));
  } else {
    refill(place("tree"), ...branchesOf(wanted, rows.length < fleet.rows.length));
  }
  tellCounts(rows.length);
}

function sortBy(order) {
  sorted = order;
  draw();
}

function tellCounts(n) {
  const all = fleet.rows.length;
  const some = n === all ? count(all, "node") : `${count(n)} of ${count(all, "node")}`;
  const clients = fleet.rows.filter((row) => row.kind === "client").length;
  tell(place("count"), `${some}, ${count(clients, "client")}${fleet.more ? "; there are more" : ""}`);
  for (const [state, option] of options) {
    const inIt = fleet.rows.filter((row) => row.state === state).length;
    option.textContent = inIt ? `${state} (${count(inIt)})` : state;
  }
  place("silent").replaceChildren(...fleet.silent.map(problem));
}

// -- the tree: each aggregator opens to those that report to it, the worst first
//
// What is closed is not built. Branches stay as they were left while the fleet is asked again.

function branchesOf(isWanted, searched) {
  const tree = counted(isWanted);
  const { all } = tree.get("");
  const scene = { tree, isWanted, group, at: fleet.at, searched: searched && all <= FEW };
  return all ? inside(scene, "") : [nothing("No node is like this.")];
}

// Branches by their paths: the aggregators there, the nodes that count, and how many of them count at
// all levels below.
function counted(isWanted) {
  const found = new Map();
  const at = (path) => {
    if (!found.has(path)) {
      found.set(path, { aggregators: [], nodes: [], all: 0, states: new Map() });
    }
    return found.get(path);
  };
  at("");
  for (const row of fleet.rows) {
    if (row.kind === "aggregator") {
      at(row.under).aggregators.push(row);
      at(below(row.under, row.node));
    } else if (isWanted(row)) {
      at(row.under).nodes.push(row);
    }
    for (const branch of isWanted(row) ? above(row.under).map(at) : []) {
      branch.all += 1;
      branch.states.set(row.state, (branch.states.get(row.state) ?? 0) + 1);
    }
  }
  return found;
}

// Of "a/b": "", "a" and "a/b".
function above(path) {
  const parts = path ? path.split("/") : [];
  return ["", ...parts.map((_, i) => parts.slice(0, i + 1).join("/"))];
}

// What reports to one aggregator: the aggregators among them as branches, the others as a table.
function inside(scene, path) {
  const { tree, isWanted } = scene;
  const { aggregators, nodes } = tree.get(path);
  const branchOf = (row) => tree.get(below(row.under, row.node));
  const under = aggregators.filter((row) => isWanted(row) || branchOf(row).all > 0);
  const worst = (row) => STATES.indexOf(STATES.find((state) => branchOf(row).states.has(state)) ?? row.state);
  under.sort((a, b) => worst(a) - worst(b) || (a.node < b.node ? -1 : 1));
  const rows = nodes.length ? [make("div", { class: "scroll" }, ...nodeTable(nodes, scene, { built, key: path }))] : [];
  return [...under.map((row) => branch(scene, row)), ...rows];
}

function branch(scene, row) {
  const path = below(row.under, row.node);
  const { all, states } = scene.tree.get(path);
  // Nodes that are as they should be are worth a word only where there are no others.
  const worth = STATES.filter((state) => states.has(state) && (state !== "armed" || states.size === 1));
  const summary = make(
    "summary",
    { "data-key": `branch ${path}` },
    make("bdi", { class: "name" }, shown(row.node)),
    " ",
    make("span", { class: "quiet" }, `${count(all)} below`),
    ...worth.map((state) => make("span", { class: "counted" }, badge(state), ` ${count(states.get(state))}`)),
  );
  const body = make("div", { class: "branch" });
  const details = make("details", { open: opened.get(path) ?? scene.searched }, summary, body);
  const fill = () => {
    const own = nodeLink(group, row.node, row.under, "its state");
    body.replaceChildren(nothing(badge(row.state, row.note), " ", own), ...inside(scene, path));
  };
  if (details.open) {
    fill();
  }
  details.addEventListener("toggle", () => {
    // A branch that a search has opened is not one that was left open.
    if (details.open !== (opened.get(path) ?? scene.searched)) {
      opened.set(path, details.open);
    }
    if (details.open && !body.hasChildNodes()) {
      fill();
    }
  });
  return details;
}

// Machines whose relations differ from the others': of less than 3 times what is usual none is named.
const { nodes: relations } = await get(["api", "unlike", group]);
const odd = Object.entries(relations).filter(([, { times }]) => times >= 3);
refill(place("odd"), ...odd.map(([node, { words }]) => make("p", {}, nodeLink(group, node), `: ${shown(words)}`)));
