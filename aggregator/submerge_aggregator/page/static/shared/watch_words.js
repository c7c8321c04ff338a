// How a group is watched, in sentences: as `submerge alarms` says it.

import { ago, count, figure } from "./words.js";

const WEEK_S = 7 * 86400;

// Least evidence that is told: less is no evidence of anything.
const NEWS = 2;

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
  return `${count(nodes)} ${nodes === 1 ? "node" : "nodes"} watched${some}.`;
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
    `Promised: ${weekly} false alarms a week and node, so at most ${allowed} in ${hours} h watched.`,
    `Raised: ${count(watch.raised)}, of which ${count(watch.confirmed)} confirmed as faults.`,
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
