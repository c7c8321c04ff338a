// A tile for each machine: how it is, and of one in alarm which channel reads what.

import { levelWords, LEAST } from "../charts/levels.js";
import { make } from "../shared/build.js";
import { CAUSES, VERDICTS, doubts, marks, reading } from "../shared/causes.js";
import { below, pathOf } from "../shared/ask.js";
import { named, nodeLink, nothing } from "../shared/named.js";
import { refill } from "../shared/refill.js";
import { shown } from "../shared/text.js";
import { ago, count, excess, moment } from "../shared/words.js";
import { STATES, badge } from "../views/fleet_rows.js";

// More do not fit on a wall; the list of the fleet has them all.
const MOST = 60;

/** Return the machines of a fleet, the worst first; one in alarm is there before the fleet knows it. */
export function machines({ rows, alarms, levels }) {
  const found = rows.filter((row) => row.kind === "client").map((row) => ({ ...row, alarms: [] }));
  // One that has moved has a row at each place: its alarms are of the one that was heard last.
  const byName = new Map(found.toSorted((a, b) => a.heard_s - b.heard_s).map((each) => [each.node, each]));
  for (const alarm of alarms) {
    const machine = byName.get(alarm.node) ?? { under: "", node: alarm.node, state: "alarm", note: "", alarms: [] };
    if (!byName.has(alarm.node)) {
      byName.set(alarm.node, machine);
      found.push(machine);
    }
    machine.alarms.push(alarm);
  }
  const newest = (machine) => lastOf(levels.get(below(machine.under, machine.node)));
  const rank = (machine) => (machine.alarms.length ? -1 : STATES.indexOf(machine.state));
  return found.sort(
    (a, b) => rank(a) - rank(b) || newest(b) - newest(a) || (a.node < b.node ? -1 : 1),
  );
}

/** Draw machines, as `machines` returns them. */
export function tiles(place, found, { group, levels, units }) {
  const drawn = found.slice(0, MOST).map((machine) =>
    make("li", { class: machine.alarms.length ? "tile alarm" : "tile" }, ...tile(machine, group, levels, units)),
  );
  const more = found.length - drawn.length;
  const link = make("a", { href: pathOf(["fleet"], { group }) }, `${count(more, "more machine")}: the fleet`);
  refill(place, ...drawn, ...(more > 0 ? [make("li", { class: "more" }, link)] : []));
}

function lastOf(levels) {
  return levels?.findLast((level) => level >= LEAST) ?? 0;
}

function tile(machine, group, levels, units) {
  const link = nodeLink(group, machine.node, machine.under);
  link.dataset.key = `tile ${below(machine.under, machine.node)}`;
  const { alarms } = machine;
  const signs = new Map(alarms.flatMap(marks));
  const verdicts = new Set(alarms.map((each) => VERDICTS[each.verdict] || (each.wanted && `to be ${VERDICTS[each.wanted]}`)));
  const badges = [
    badge(alarms.length ? "alarm" : machine.state, machine.note),
    ...[...signs].map(([mark, words]) => make("span", { class: `badge ${mark}` }, words)),
    ...[...verdicts].filter(Boolean).map((words) => make("span", { class: "badge wanted" }, words)),
  ];
  const head = make("h2", {}, link, " ", ...badges);
  if (alarms.length) {
    return [head, ...alarms.flatMap((alarm) => alarmLines(alarm, group, units))];
  }
  const level = lastOf(levels.get(below(machine.under, machine.node)));
  return [head, nothing(level ? levelWords(level) : shown(machine.note) || (machine.judged ? "watched" : "no score yet"))];
}

function alarmLines(alarm, group, units) {
  const since = make("time", { datetime: new Date(alarm.began * 1000).toISOString() }, moment(alarm.began));
  const worst = alarm.worst ? `, up to ${excess(alarm.worst)}× its ${alarm.cause === "duty" ? "longest run" : "limit"}` : "";
  const verdict = make("a", { href: pathOf(["alarms"], { group, find: alarm.id }) }, "To its verdict");
  return [
    make("p", { class: "reads" }, ...reading(alarm, units)),
    make("p", { class: "quiet" }, "since ", since, `, for ${ago(Date.now() / 1000 - alarm.began)}${worst}: ${CAUSES[alarm.cause] ?? shown(alarm.cause)}`),
    ...(alarm.looks ? [make("p", { class: "quiet" }, named(`looks like a ${alarm.looks}: ${alarm.evidence}`, 400))] : []),
    ...doubts(alarm).map((each) => make("p", { class: "doubt" }, shown(each, 400))),
    make("p", {}, verdict),
  ];
}
