// How a group is watched: in one sentence for the wall, and in several as `submerge alarms` says it.

import { shown } from "./elements.js";
import { ago, count, figure } from "./words.js";

const WEEK_S = 7 * 86400;

// Least evidence that is told: less is no evidence of anything.
const NEWS = 2;

// Alarms that the sentence for the wall names.
const NAMED = 3;

/** Return how a fleet is, in one sentence: `text`, and which `kind` it is of: bad, warn, still or good.
 *
 * It is good only where every machine is held against limits that keep their promise.
 */
export function headline(alarms, fleet, incidents = []) {
  if (incidents.length) {
    const ids = incidents.map(({ id }) => id);
    const rest = alarms.filter(({ incident }) => !ids.includes(incident));
    const also = rest.length ? `; ${headline(rest, fleet).text}` : "";
    const words = shown(incidents[0].words, 200);
    return { kind: "bad", text: `${count(incidents.length, "incident")}: ${words}${also}` };
  }
  if (alarms.length) {
    const noun = alarms.every((each) => each.provisional) ? "provisional alarm" : "open alarm";
    const names = alarms.slice(0, NAMED).map(({ node, top }) => {
      const [channel] = Object.keys(top);
      return channel ? `${shown(channel, 40)} of ${shown(node, 40)}` : shown(node, 40);
    });
    const more = alarms.length > NAMED ? " and others" : "";
    return { kind: "bad", text: `${count(alarms.length, noun)}: ${names.join(", ")}${more}` };
  }
  const machines = fleet.rows.filter((row) => row.kind === "client" && row.state !== "sealed");
  const judged = machines.filter((row) => row.judged);
  if (!machines.length) {
    return { kind: "still", text: "No machine has reported yet" };
  }
  if (!judged.length && machines.every((row) => UNJUDGED.includes(row.state))) {
    return { kind: "still", text: nothingJudged(machines) };
  }
  const others = new Map();
  for (const { state } of machines.filter((row) => !row.judged)) {
    const word = state === "unwatched" ? "not judged" : state;
    others.set(word, (others.get(word) ?? 0) + 1);
  }
  const silent = fleet.silent.length ? [`${count(fleet.silent.length, "aggregator")} silent`] : [];
  const rest = [...[...others].map(([state, n]) => `${count(n)} ${state}`), ...silent];
  const provisional = judged.filter((row) => row.state === "learning").length;
  const who = others.size
    ? ` at ${count(judged.length)} of ${count(machines.length, "machine")}`
    : machines.length > 1 ? ` at all ${count(machines.length)} machines` : "";
  const by = provisional ? ` (${provisional < judged.length ? `${count(provisional)} of them ` : ""}by provisional limits)` : "";
  const learning = [...others.keys()].every((state) => state === "not judged" || UNJUDGED.includes(state));
  return {
    kind: silent.length || !learning ? "warn" : others.size || provisional ? "still" : "good",
    text: `No open alarms${who}${by}${rest.length ? `; ${rest.join(", ")}` : ""}`,
  };
}

// States in which a machine is on its way to limits.
const UNJUDGED = ["learning", "unwatched", "paused"];

// Machines without a model, or whose alarms are off, learn nothing that one could wait for.
function nothingJudged(machines) {
  const waits = machines.map((row) => row.ready_in_s).filter((each) => each !== null);
  if (!waits.length) {
    const learns = machines.some((row) => row.state === "learning");
    return learns ? "Learning: nothing is judged yet" : "Nothing is judged yet";
  }
  const soonest = Math.min(...waits);
  return `Learning: first limits ${soonest > 0 ? `in about ${ago(soonest)}` : "with the next report"}`;
}

/** Return sentences about a group's alarm status: who watches, and what to expect of them. */
export function watchSentences(group) {
  const { watch } = group;
  if (watch === null || nodesOf(watch) === 0) {
    return [group.waiting ? sentence(group.waiting) : "No node reports an alarm status yet."];
  }
  return [whoWatches(group), ...limits(group), ...promise(watch), ...widening(group)];
}

function nodesOf(watch) {
  return Object.values(watch.states).reduce((sum, each) => sum + each, 0);
}

function whoWatches({ clients, watch }) {
  const words = { learning: "learning", paused: "paused", stale: "with an expired model" };
  const parts = Object.entries(words)
    .filter(([state]) => watch.states[state])
    .map(([state, said]) => `${count(watch.states[state])} ${said}`);
  const nodes = nodesOf(watch);
  if (clients > nodes) {
    parts.push(`${count(clients - nodes)} without an alarm status`);
  }
  const some = parts.length ? `; ${parts.join(", ")}` : "";
  return `${count(nodes, "node")} watched${some}.`;
}

function limits({ watch, waiting }) {
  const left = watch.armed_in_s;
  const said = waiting || watch.waiting ? [sentence(waiting || watch.waiting)] : [];
  if (watch.provisional_rows) {
    const often = `about 1 false alarm in ${count(Number(watch.provisional_rows.toPrecision(2)))} rows`;
    const until = left ? ` for about another ${ago(left)}` : "";
    said.push(`Limits are provisional${until}: ${often}.`);
  } else if (left) {
    said.push(`Limits keep their promise in about ${ago(left)}.`);
  } else if (left === null && !said.length && watch.states.learning) {
    said.push("There are no limits yet.");
  }
  return said;
}

function promise(watch) {
  if (!watch.watched_s) {
    return [];
  }
  const weekly = figure((watch.allowed / watch.watched_s) * WEEK_S);
  const allowed = watch.allowed.toFixed(watch.allowed < 10 ? 2 : 0);
  const hours = count(Math.round(watch.watched_s / 3600));
  const said = [
    `Promised: ${weekly} false ${weekly === "1" ? "alarm" : "alarms"} a week and node, so at most ${allowed} in ${hours} h watched.`,
    `Raised: ${count(watch.raised)}, of which ${count(Math.min(watch.confirmed, watch.raised))} confirmed as faults.`,
    ...watch.by_verdicts.map(sentence),
  ];
  if (watch.evidence >= NEWS) {
    const odds = count(Math.round(watch.evidence));
    said.push(`It is ${odds} to 1 that more alarms come than promised.`);
  }
  return said;
}

function widening({ widened }) {
  const wider = Math.round((widened - 1) * 100);
  return wider > 0
    ? [`Limits are ${wider} % wider: more alarms came than promised, and were not confirmed.`]
    : [];
}

function sentence(text) {
  const whole = text[0].toUpperCase() + text.slice(1);
  return whole.endsWith(".") ? whole : `${whole}.`;
}
