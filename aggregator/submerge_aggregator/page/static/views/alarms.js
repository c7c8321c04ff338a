// Alarms: how the group is watched, what is open, and what was.

import { alarmTable, verdictOf } from "../parts/alarm_table.js";
import { get, unitsOf } from "../shared/ask.js";
import { isIncident } from "../shared/causes.js";
import { named, place, problem, refill, table } from "../shared/elements.js";
import { ORDERED, reason } from "../shared/orders.js";
import { follow, start } from "../shared/start.js";
import { watchSentences } from "../shared/watch_words.js";
import { count } from "../shared/words.js";

const group = await start();
const about = { group, units: new Map(), remembered: new Set() };
const [search, chosen, quiet] = ["search", "verdict", "quiet"].map(place);
let current = [];
let past = { alarms: [], more: false };

search.value = new URLSearchParams(location.search).get("find") ?? "";
for (const each of [search, chosen, quiet]) {
  each.addEventListener("input", draw);
}
place("older").addEventListener("click", older);
place("why").replaceChildren(...reason("judge"));
document.addEventListener(ORDERED, () => look().catch(() => {}));
follow("alarms", look);

async function look() {
  const [alarms, watches] = await Promise.all([
    get(["api", "alarms"], { group }),
    get(["api", "alarm-status"], { group }),
    newest(),
  ]);
  about.units = await unitsOf(group);
  current = alarms;
  place("watched").textContent = watchSentences(watches[0]).join(" ");
  drawLeftOut(watches[0].left_out);
  draw();
}

// -- alarms that are over: of the history, and those that nodes still remember

const endOf = (each) => each.ended ?? each.began;

async function newest() {
  const page = await pastOnes();
  if (page) {
    const before = without(past.alarms, page.alarms);
    past = { alarms: [...page.alarms, ...before], more: before.length ? past.more : page.more };
  }
}

async function older() {
  const last = past.alarms.toSorted((a, b) => endOf(a) - endOf(b) || (a.id > b.id ? -1 : 1))[0];
  const page = await pastOnes({ before: endOf(last), after: last.id });
  if (page) {
    const more = without(page.alarms, past.alarms);
    past = { alarms: [...past.alarms, ...more], more: page.more && more.length > 0 };
  }
  draw();
}

// A page of the history; undefined where there is none, and why is said.
async function pastOnes(query) {
  try {
    const page = await get(["api", "past-alarms", group], query);
    place("no-history").replaceChildren();
    return page;
  } catch (error) {
    const words = "Only alarms that nodes still remember are listed, eight of each node";
    place("no-history").replaceChildren(problem(`${words}: ${error.message}`));
    return undefined;
  }
}

function without(alarms, others) {
  const known = new Set(others.map((each) => each.id));
  return alarms.filter((each) => !known.has(each.id));
}

// -- drawing

function draw() {
  about.remembered = new Set(current.map((each) => each.id));
  const all = [...current.filter((each) => !each.open), ...without(past.alarms, current)];
  all.sort((a, b) => endOf(b) - endOf(a));
  const open = current.filter((each) => each.open);
  show("open", "Open alarms", open, "No alarm is open.");
  const meant = all.filter((alarm) => !(alarm.provisional || alarm.repeated) || quiet.checked);
  const left = all.length - meant.length;
  const none = left ? `None but quiet ones: ${count(left, "alarm")}.` : "No alarm was raised.";
  show("ended", "Alarms that are over", meant, none);
  place("older").hidden = !past.more;
}

function show(id, label, alarms, none) {
  const wanted = alarms.filter(isWanted);
  const [some, whole] = [wanted, alarms].map((of) => of.filter((each) => !isIncident(each)).length);
  place(`${id}-count`).textContent =
    some === whole ? count(whole, "alarm") : `${some} of ${count(whole, "alarm")}`;
  alarmTable(place(id), label, wanted, about, alarms.length ? "No alarm is as the filter says." : none);
}

function isWanted(alarm) {
  const text = search.value.trim().toLowerCase();
  const words = [alarm.node, alarm.id, ...Object.keys(alarm.top)].join(" ").toLowerCase();
  return (!chosen.value || verdictOf(alarm) === chosen.value) && words.includes(text);
}

function drawLeftOut(alarms) {
  place("left-out-part").hidden = alarms.length === 0;
  const columns = [
    ["Alarm", ({ id }) => named(id)],
    ["Node", ({ node }) => named(node)],
    ["State", ({ open }) => (open ? "open" : "over")],
    ["Reported by", ({ by }) => named(by)],
    ["Why it is not believed", ({ why }) => why],
  ];
  refill(place("left-out"), table("Alarms that are not believed", columns, alarms));
}
