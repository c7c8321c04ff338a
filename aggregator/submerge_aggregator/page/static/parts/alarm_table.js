// Alarms as a table, with their verdicts; the views of alarms and of a node have it.

import { get } from "../shared/ask.js";
import { BESIDE, CAUSES, VERDICTS, beside, blamed, doubts, isIncident, marks, underIncidents } from "../shared/causes.js";
import { make, named, nodeLink, nothing, refill, table } from "../shared/elements.js";
import { orderButton } from "../shared/orders.js";
import { ago, excess, moment, percent } from "../shared/words.js";

/**
 * Put a table of alarms into a host; where there are none, the words that say so.
 *
 * about: `group`, and `units` by channel; `remembered`: the ids of those that nodes still know;
 * `ofNode`: that all are of one node
 */
export function alarmTable(host, label, alarms, { group, units, remembered, ofNode }, none) {
  const now = Date.now() / 1000;
  const columns = [
    ["Alarm", idOf],
    ...(ofNode ? [] : [["Node", ({ node }) => nodeLink(group, node)]]),
    ["State", state],
    ["Began", ({ began }) => moment(began)],
    ["Lasted", ({ began, ended }) => ago((ended ?? now) - began), "number"],
    ["Score", ({ worst }) => (worst ? `${excess(worst)} × limit` : ""), "number"],
    ["Cause", ({ cause }) => make("abbr", { title: CAUSES[cause] ?? "" }, cause)],
    ["Channels to blame", (alarm) => channels(alarm, units)],
    ["Verdict", (alarm) => (isIncident(alarm) ? "" : verdict(group, alarm, remembered.has(alarm.id)))],
  ];
  const rows = underIncidents(alarms);
  refill(host, rows.length ? table(label, columns, rows, { stacks: true }) : nothing(none));
}

/** Return the words of an alarm's state that a filter knows. */
export function verdictOf(alarm) {
  return alarm.wanted || alarm.verdict || "none";
}

function idOf(alarm) {
  if (isIncident(alarm)) {
    return make("div", {}, named(alarm.id), make("p", {}, named(alarm.words, 400)));
  }
  return alarm.incident ? make("span", { title: `of ${alarm.incident}` }, "↳ ", named(alarm.id)) : named(alarm.id);
}

function state(alarm) {
  const [kind, word] = alarm.open ? ["alarm", "open"] : ["sealed", "over"];
  const badge = make("span", { class: `badge ${kind}` }, word);
  const more = [...marks(alarm).map(([, words]) => words), ...doubts(alarm)];
  return more.length ? [badge, " ", make("small", {}, more.join("; "))] : badge;
}

function channels(alarm, units) {
  const [first] = isIncident(alarm) ? [] : blamed(alarm);
  const whose = isIncident(alarm) ? " of its nodes" : "";
  const items = Object.entries(alarm.top).map(([name, share]) => {
    const off = name === first && alarm.deviations[name];
    const said = off ? [": ", ...beside(off.value, off.expected, units.get(name), BESIDE[alarm.cause])] : [];
    return make("li", {}, named(name), ` ${percent(share)}${whose}`, ...said);
  });
  const looks = alarm.looks ? [make("small", { title: alarm.evidence }, `looks like a ${alarm.looks}`)] : [];
  return items.length ? [make("ul", { class: "plain" }, ...items), ...looks] : looks;
}

// -- verdicts

// A node takes a verdict on what it remembers alone.
function verdict(group, alarm, remembered) {
  const said = [];
  if (alarm.verdict) {
    said.push(make("span", { class: `badge ${alarm.verdict}` }, VERDICTS[alarm.verdict]));
  }
  if (alarm.wanted) {
    said.push(make("small", {}, `to be ${VERDICTS[alarm.wanted]}: not confirmed yet`));
  }
  if (!remembered) {
    return said.length ? said : make("small", { class: "quiet" }, "none; its node has forgotten it");
  }
  const orders = ["accept", "reject"]
    .filter((verb) => verdictOf(alarm) !== `${verb}ed`)
    .map((verb) => orderButton(verdictOrder(group, alarm, verb)));
  const key = `verdict ${alarm.id}`;
  return make("div", { "data-key": key, tabindex: "-1" }, ...said, make("div", { class: "orders" }, ...orders));
}

function verdictOrder(group, alarm, verb) {
  const accept = verb === "accept";
  const wanted = `${verb}ed`;
  return {
    key: `${verb} ${alarm.id}`,
    label: `This is ${VERDICTS[wanted]}`,
    title: `${alarm.id} is ${VERDICTS[wanted]}`,
    says: accept ? accepted(alarm) : rejected(alarm),
    cannot: accept ? "This cannot be taken back." : "",
    scope: "judge",
    parts: ["api", "alarms", group, alarm.id, verb],
    query: { anyway: "1" },
    done: async () => {
      const known = await get(["api", "alarms"], { group, node: alarm.node });
      return known.some((each) => each.id === alarm.id && each.verdict === wanted);
    },
  };
}

function accepted(alarm) {
  return alarm.open
    ? `This is normal from now on: ${alarm.node} learns it, the alarm ends, and readings like` +
        " these raise no other."
    : "The alarm is marked as normal; what was withheld during it is not learnt.";
}

function rejected(alarm) {
  const counts = "and it counts as a true alarm where false ones are counted.";
  return alarm.open
    ? `This is a fault: ${alarm.node} never learns these readings, however long it lasts, ${counts}`
    : `This was a fault, ${counts}`;
}
