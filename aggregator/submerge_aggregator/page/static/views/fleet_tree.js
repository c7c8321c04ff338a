// The fleet as a tree: each aggregator opens to those that report to it, the worst first.
//
// What is closed is not built. Branches stay as they were left while the fleet is asked again.

import { below, pathOf } from "../shared/ask.js";
import { make } from "../shared/build.js";
import { nothing } from "../shared/named.js";
import { refill } from "../shared/refill.js";
import { shown } from "../shared/text.js";
import { count } from "../shared/words.js";
import { STATES, badge, nodeTable } from "./fleet_rows.js";

// Where so few are left by a search, all branches with them open.
const FEW = 100;

/** Return the branches of a fleet by their paths: the aggregators there, the nodes that count, and how
 * many count at all levels below: `{aggregators, nodes, all, states}`.
 *
 * rows : of the whole fleet; isWanted : which of them count
 */
export function branches(rows, isWanted) {
  const found = new Map();
  const at = (path) => {
    if (!found.has(path)) {
      found.set(path, { aggregators: [], nodes: [], all: 0, states: new Map() });
    }
    return found.get(path);
  };
  at("");
  for (const row of rows) {
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

/** Return a function that draws the tree into a place.
 *
 * It takes the rows, which of them count, whether that is all, the group, and when it was asked.
 */
export function fleetTree(place) {
  const [opened, built] = [new Map(), new Map()];
  return function draw(rows, isWanted, whole, group, at) {
    const tree = branches(rows, isWanted);
    const { all } = tree.get("");
    const scene = { tree, isWanted, group, at, searched: !whole && all <= FEW, opened, built };
    refill(place, ...(all ? inside(scene, "") : [nothing("No node is like this.")]));
  };
}

// What reports to one aggregator: the aggregators among them as branches, the others as a table.
function inside(scene, path) {
  const { tree, isWanted, built } = scene;
  const { aggregators, nodes } = tree.get(path);
  const branchOf = (row) => tree.get(below(row.under, row.node));
  const under = aggregators.filter((row) => isWanted(row) || branchOf(row).all > 0);
  const worst = (row) => STATES.indexOf(STATES.find((state) => branchOf(row).states.has(state)) ?? row.state);
  under.sort((a, b) => worst(a) - worst(b) || (a.node < b.node ? -1 : 1));
  return [
    ...under.map((row) => branch(scene, row)),
    ...(nodes.length ? [make("div", { class: "scroll" }, ...nodeTable(nodes, scene, { built, key: path }))] : []),
  ];
}

function branch(scene, row) {
  const { tree, group, opened, searched } = scene;
  const path = below(row.under, row.node);
  const { all, states } = tree.get(path);
  // Nodes that are as they should be are worth a word only where there are no others.
  const worth = STATES.filter((state) => states.has(state) && (state !== "armed" || states.size === 1));
  const counted = worth.map((state) =>
    make("span", { class: "counted" }, badge(state), ` ${count(states.get(state))}`),
  );
  const own = make("a", { href: pathOf(["node"], { group, path: row.under, node: row.node }) }, "its state");
  const summary = make(
    "summary",
    { "data-key": `branch ${path}` },
    make("bdi", { class: "name" }, shown(row.node)),
    " ",
    make("span", { class: "quiet" }, `${count(all)} below`),
    ...counted,
  );
  const body = make("div", { class: "branch" });
  const details = make("details", { open: opened.get(path) ?? searched }, summary, body);
  const fill = () => {
    const about = make("p", { class: "quiet" }, badge(row.state, row.note), " ", own);
    body.replaceChildren(about, ...inside(scene, path));
  };
  if (details.open) {
    fill();
  }
  details.addEventListener("toggle", () => {
    // A branch that a search has opened is not one that was left open.
    if (details.open !== (opened.get(path) ?? searched)) {
      opened.set(path, details.open);
    }
    if (details.open && !body.hasChildNodes()) {
      fill();
    }
  });
  return details;
}
