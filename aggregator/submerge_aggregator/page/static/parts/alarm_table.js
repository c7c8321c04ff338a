// Alarms as a table, with their verdicts; the views of alarms and of a node have it.

import { get } from "../shared/ask.js";
import { make } from "../shared/build.js";
import { CAUSES, VERDICTS, beside, blamed, doubts, isIncident, marks, underIncidents } from "../shared/causes.js";
import { named, nodeLink } from "../shared/named.js";
import { orderButton } from "../shared/orders.js";
import { table } from "../shared/table.js";
import { ago, excess, moment } from "../shared/words.js";

/**
 * Return a table of alarms.
 *
 * about: `group`, and `units` by channel; `remembered`: the ids of those that nodes still know
 */
export function alarmTable(label, alarms, about, { ofNode = false } = {}) {
  const now = Date.now() / 1000;
  const headings = ["Alarm", ...(ofNode ? [] : ["Node"]), "State", "Began", "Lasted"];
  headings.push("Score", "Cause", "Channels to blame", "Verdict");
  const rows = underIncidents(alarms).map((alarm) => {
    const lasted = (alarm.ended ?? now) - alarm.began;
    return [
      idOf(alarm),
      ...(ofNode ? [] : [nodeLink(about.group, alarm.node)]),
      state(alarm),
      moment(alarm.began),
      { number: ago(lasted) },
      { number: alarm.worst ? `${excess(alarm.worst)} × limit` : "" },
      make("abbr", { title: CAUSES[alarm.cause] ?? "" }, alarm.cause),
      channels(alarm, about.units),
      isIncident(alarm) ? "" : verdict(about.group, alarm, about.remembered.has(alarm.id)),
    ];
  });
  return table(label, headings, rows, { stacks: true });
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
  const words = alarm.open
    ? [make("span", { class: "badge alarm" }, "open")]
    : [make("span", { class: "badge sealed" }, "over")];
  const more = [...marks(alarm).map(([, words]) => words), ...doubts(alarm)];
  return more.length ? [...words, " ", make("small", {}, more.join("; "))] : words;
}

function channels(alarm, units) {
  const [first] = isIncident(alarm) ? [] : blamed(alarm);
  const items = Object.entries(alarm.top).map(([name, share]) => {
    const off = name === first && alarm.deviations[name];
    const words = alarm.cause === "duty" ? ", else " : undefined;
    const said = off ? [": ", ...beside(off.value, off.expected, units.get(name), words)] : [];
    const whose = isIncident(alarm) ? " of its nodes" : "";
    return make("li", {}, named(name), ` ${Math.round(100 * share)} %${whose}`, ...said);
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
