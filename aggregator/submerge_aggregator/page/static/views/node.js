// A node: how it is, its alarms, its scores and channels, and orders to it.

import { alarmTable } from "../parts/alarm_table.js";
import { incarnations, nodeHead, nodeOrders, oneNode, settings } from "../parts/node.js";
import { Channels, newestScores, scoresBefore } from "../parts/scores.js";
import { below, get, unitsOf } from "../shared/ask.js";
import { blamed } from "../shared/causes.js";
import { named, nothing, place, problem, refill, shown } from "../shared/elements.js";
import { ORDERED, reason } from "../shared/orders.js";
import { follow, start, whileLooked } from "../shared/start.js";
import { watchSentences } from "../shared/watch_words.js";

const EVERY_S = 2.5;
const BEFORE_S = 60;

const group = await start();
const asked = new URLSearchParams(location.search);
const about = { group, units: new Map(), remembered: new Set(), ofNode: true };
const where = { group, node: asked.get("node") ?? "", path: asked.get("path") ?? "" };

const channels = new Channels(place("channels"), place("channels-form"));
let begun = false;

if (where.node) {
  await begin();
} else {
  place("head").replaceChildren(nothing("No node is named: choose one in the list of the fleet."));
}

async function begin() {
  place("name").replaceChildren(named(where.node));
  document.title = `${shown(where.node, 64)} - submerge`;
  if (!asked.has("path")) {
    await findPath();
  }
  place("whole").hidden = false;
  settings(place("ask-settings"), place("settings"), where);
  document.addEventListener(ORDERED, () => look().catch(() => {}));
  place("why").replaceChildren(...reason("judge"));
  follow("fleet", look);
  follow("alarms", alarms);
}

// A link from an alarm does not say where its node reports.
async function findPath() {
  const { rows } = await get(["data", "fleet", group]).catch(() => ({ rows: [] }));
  where.path = rows.find((each) => each.node === where.node)?.under ?? "";
}

async function look() {
  const { view, row, at } = await oneNode(where);
  nodeHead(place("head"), where, view, row, at);
  incarnations(place("incarnations"), view);
  nodeOrders(place("to-node"), where, view);
  const alone = { watch: view?.watch ?? null, clients: 0, widened: 1, waiting: "" };
  place("watched").textContent = watchSentences(alone).join(" ");
  place("live").hidden = view?.kind === "aggregator";
  if (!begun && view?.kind !== "aggregator") {
    begun = true;
    watch();
  }
}

async function alarms() {
  const known = await get(["api", "alarms"], { group, node: where.node });
  about.remembered = new Set(known.map((each) => each.id));
  about.units = await unitsOf(group);
  // What the others are expected to read follows the channel to blame.
  const open = known.filter((each) => each.open);
  channels.expects(open.length ? open.flatMap((each) => blamed(each).slice(0, 1)) : null);
  alarmTable(place("alarms"), "Alarms of this node", known, about, "It remembers no alarm.");
}

// -- what it says itself, while somebody looks

function watch() {
  const path = below(where.path, where.node);
  const ask = (id, everyS, again) => {
    const say = (error) => refill(place(`${id}-problem`), ...(error ? [problem(error)] : []));
    return whileLooked(place(`${id}-part`), everyS, again, say);
  };
  ask("newest", EVERY_S, async () => {
    newestScores(place("newest"), place("blame"), await get(["api", "recent", group], { path }));
  });
  const hours = place("hours");
  const before = ask("before", BEFORE_S, () =>
    scoresBefore(place("before"), where, ...hours.value.split(" ").map(Number)),
  );
  hours.addEventListener("input", before);
  ask("channels", EVERY_S, async () => channels.take(await get(["api", "values", group], { path })));
}
