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

const MOST = 200;

const KEPT_OUT = {
  silent: "Not heard for a quarter of an hour. Look whether it runs, and whether its link is up.",
  banned: "An operator refuses it. Unban it when the cause is gone.",
  quarantined: "Its rows stay out of the model. Find out why before you release it.",
  stale: "Its model has expired. Its aggregator does not reach it, or gets no models itself.",
  far: "Its readings differ from all others, and are left out. Look at the machine.",
  bounded: "It has reported more than it may weigh. Act only if it should count for more.",
};

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
  const acts = rows.filter((each) => each.act).length;
  place("verdict").replaceChildren(
    acts
      ? make("span", { class: "problem" }, acts === 1 ? "One thing to act on." : `${acts} things to act on.`)
      : "Nothing to act on at this aggregator.",
  );
  refill(place("health"), healthTable(rows));
  refill(place("refusals"), refusals(said));
  nodes(fleet, bans);
}

function healthTable(rows) {
  const lines = rows.map(({ name, value, means, act }) => [
    name,
    { number: value },
    make("span", { class: `badge ${act ? "silent" : "armed"}` }, act ? "yes" : "no"),
    act ? [means, " ", make("strong", {}, act)] : means,
  ]);
  return table("Numbers of this aggregator", ["What", "Now", "Act", "What it means"], lines, {
    stacks: true,
  });
}

function nodes(fleet, bans) {
  const said = [];
  for (const each of fleet.silent) {
    said.push(make("p", { class: "problem" }, "An aggregator did not reply: ", named(each, 400)));
  }
  for (const [state, means] of Object.entries(KEPT_OUT)) {
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
      make("h3", {}, make("span", { class: `badge ${state}` }, state), ` ${count(found.length)}`),
      make("p", {}, means),
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
