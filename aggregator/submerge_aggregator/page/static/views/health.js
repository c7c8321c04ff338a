// Health: each number with what it means, and whether to act.

import { health, refusals } from "../parts/health_rows.js";
import { get } from "../shared/ask.js";
import { make } from "../shared/build.js";
import { follow } from "../shared/live.js";
import { named, nodeLink, nothing, problem } from "../shared/named.js";
import { refill } from "../shared/refill.js";
import { start } from "../shared/start.js";
import { table } from "../shared/table.js";
import { ago, count } from "../shared/words.js";
import { STATE_WORDS, badge } from "./fleet_rows.js";

const MOST = 200;

const KEPT_OUT = ["silent", "banned", "quarantined", "stale", "far", "bounded"];

const place = (id) => document.getElementById(id);
const { group } = await start();

follow("fleet", look);

async function look() {
  const [said, fleet, bans] = await Promise.all([
    get(["api", "health"]),
    get(["data", "fleet", group]),
    get(["api", "bans"]).catch((error) => error),
  ]);
  const rows = health(said, Date.now() / 1000);
  const [acts, others] = [rows.filter(([, , , act]) => act), rows.filter(([, , , act]) => !act)];
  place("verdict").replaceChildren(
    acts.length
      ? make("span", { class: "problem" }, `${count(acts.length, "thing")} to act on.`)
      : "Nothing to act on at this aggregator.",
  );
  const fold = make("summary", {}, `In order: ${count(others.length, "number")}`);
  refill(
    place("health"),
    ...(acts.length ? [numbers("What to act on", acts)] : []),
    make("details", { "data-key": "in order" }, fold, numbers("Numbers that are in order", others)),
  );
  refill(place("refusals"), refusals(said));
  nodes(fleet, bans);
}

function numbers(label, rows) {
  const lines = rows.map(([name, value, means, act]) => [
    name,
    { number: value },
    act ? make("span", {}, make("strong", {}, act), " ", means) : means,
  ]);
  return table(label, ["What", "Now", "What it means"], lines, { stacks: true });
}

function nodes(fleet, bans) {
  const said = [];
  for (const each of fleet.silent) {
    said.push(make("p", { class: "problem" }, "An aggregator did not reply: ", named(each, 400)));
  }
  for (const state of KEPT_OUT) {
    const found = fleet.rows.filter((row) => row.holds.includes(state));
    if (!found.length) {
      continue;
    }
    const rows = found.slice(0, MOST).map((row) => [
      nodeLink(group, row.node, row.under),
      named(row.under || "this aggregator"),
      { number: row.heard_s === null ? "never" : ago(fleet.at - row.heard_s) },
      named(row.note, 400),
    ]);
    const more = found.length > MOST ? [nothing(`${found.length - MOST} more are in the list of the fleet.`)] : [];
    said.push(
      make("h3", {}, badge(state), ` ${count(found.length)}`),
      make("p", {}, STATE_WORDS[state]),
      table(`Nodes that are ${state}`, ["Node", "Reports to", "Heard", "Note"], rows),
      ...more,
    );
  }
  if (bans instanceof Error) {
    said.push(problem(bans));
  } else if (bans.length) {
    said.push(make("h3", {}, "Bans in every group"), banTable(bans));
  }
  refill(place("nodes"), ...(said.length ? said : [nothing("Every node counts in full.")]));
}

function banTable(bans) {
  const rows = bans.map((each) => [
    nodeLink(group, each.node),
    each.on_its_way.length ? named(each.on_its_way.join(", ")) : "arrived everywhere",
  ]);
  return table("Bans in every group", ["Node", "On its way to"], rows);
}
