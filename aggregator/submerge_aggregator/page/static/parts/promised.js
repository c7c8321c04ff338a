// False alarms that were promised, beside the alarms that came, and what that proves.

import { bars } from "../charts/bars.js";
import { make } from "../shared/build.js";
import { facts, named, nothing } from "../shared/named.js";
import { ago, count, figure } from "../shared/words.js";

const ENOUGH = 20;
const WEEK_S = 7 * 86400;
const WORDS = {
  alarm: "in alarm",
  armed: "armed",
  learning: "learning",
  paused: "paused",
  stale: "whose model has expired",
};

/** Show how nodes are watched: `watch` of a group or a node, and what is known of the group. */
export function promised(host, chart, { watch, clients, widened = 1, waiting = "" }) {
  const nodes = watch ? Object.values(watch.states).reduce((sum, n) => sum + n, 0) : 0;
  chart.hidden = !nodes || !watch.watched_s;
  if (!nodes) {
    const why = waiting || watch?.waiting || "No node reports an alarm status: alarms are off";
    host.replaceChildren(nothing(`${why}.`));
    return;
  }
  const states = Object.entries(WORDS)
    .filter(([name]) => watch.states[name])
    .map(([name, words]) => `${count(watch.states[name])} ${words}`);
  if (clients > nodes) {
    states.push(`${count(clients - nodes)} without alarms`);
  }
  const waits = waiting || watch.waiting;
  const false_ = watch.raised - watch.confirmed;
  host.replaceChildren(
    facts([
      ["Nodes", states.join(", ")],
      ["Waiting", waits && named(waits, 400)],
      ["Watched", `${hours(watch.watched_s)}, all nodes together`],
      ["Promised", promise(watch)],
      [
        "Came",
        `${count(watch.raised)} raised, ${count(watch.confirmed)} of them confirmed as faults` +
          ` (rejected), ${count(false_)} not`,
      ],
      ["Evidence", evidence(watch)],
      ["Limits", limits(watch, widened)],
    ]),
  );
  if (!chart.hidden) {
    bars(chart, {
      label: "False alarms promised at most, and alarms that came",
      unit: "alarms",
      rows: [
        { name: "promised, at most", value: watch.allowed },
        { name: "came, not confirmed", value: false_ },
        { name: "came, confirmed as faults", value: watch.confirmed },
      ],
    });
  }
}

function promise(watch) {
  if (!watch.watched_s) {
    return "";
  }
  const weekly = figure((watch.allowed / watch.watched_s) * WEEK_S);
  return `at most ${figure(watch.allowed)} false alarms in this time: ${weekly} per week and node`;
}

function evidence(watch) {
  if (watch.evidence < 2) {
    return "none that more alarms come than promised";
  }
  const odds = `${count(Math.round(watch.evidence))} to 1 that more alarms come than promised`;
  const says =
    watch.evidence >= ENOUGH
      ? ": this is believed. Reject alarms that were faults; else limits widen by themselves"
      : `: less than ${ENOUGH} to 1 may be chance`;
  return make("span", { class: watch.evidence >= ENOUGH ? "problem" : false }, odds + says);
}

function limits(watch, widened) {
  const said = [];
  if (widened > 1) {
    said.push(
      `${Math.round(100 * (widened - 1))} % wider than measured, for more alarms came than promised` +
        " and they were not confirmed",
    );
  }
  if (watch.provisional_rows) {
    const rows = count(Number(watch.provisional_rows.toPrecision(2)));
    said.push(`provisional where there are few scores yet: about 1 false alarm in ${rows} rows`);
  }
  if (watch.armed_in_s) {
    said.push(`they keep the promise in ${ago(watch.armed_in_s)}`);
  }
  return said.join("; ") || "as measured";
}

function hours(seconds) {
  return seconds < 2 * 3600 ? ago(seconds) : `${count(Math.round(seconds / 3600))} hours`;
}
