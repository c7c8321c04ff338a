// What a node says of its newest rows: scores against their limits, and what each channel reads.

import { bars } from "../charts/bars.js";
import { levelsOf, shareOf } from "../charts/levels.js";
import { series } from "../charts/series.js";
import { get } from "../shared/ask.js";
import { make, nothing, shown } from "../shared/elements.js";

const NEWEST = 30;
const MOST_CHANNELS = 8;
const LIMIT = [{ name: "limit", value: 1 }];

const KINDS = {
  spe: "SPE (squared prediction error)",
  t2: "T2 (Hotelling's)",
  linear: "SPE of the readings",
  distance: "distance",
  smoothed: "smoothed distance",
  ewma: "moving average of distances",
  channel: "worst channel",
};

/** Draw the newest rows: each statistic as a share of its limit, and the channels to blame. */
export function newestScores(chart, blame, reply) {
  if (!reply.at.length) {
    chart.replaceChildren(nothing("It has scored no row yet: it waits for its first model."));
    blame.replaceChildren();
    return;
  }
  const sort = inTime(reply.at);
  const limited = reply.kinds.filter((each) => each.limit > 0);
  const isLimited = limited.length > 0;
  const lines = (isLimited ? limited : reply.kinds).map(({ kind, limit, values }) => ({
    name: KINDS[kind] ?? kind,
    values: sort(values).map((value) => (isLimited && value !== null ? value / limit : value)),
  }));
  series(chart, {
    label: isLimited
      ? `Scores of the newest ${reply.at.length} rows, over their limits${reply.provisional ? ", which are provisional" : ""}`
      : "Scores of the newest rows; there are no limits yet",
    unit: isLimited ? "× limit" : "",
    times: sort(reply.at),
    lines,
    limits: isLimited ? LIMIT : [],
  });
  const over = lines.some(({ values }) => values.slice(-NEWEST).some((value) => value > 1));
  if (over || !isLimited) {
    contributions(blame, sort(reply.blame).slice(-NEWEST), reply.channels);
  } else {
    blame.replaceChildren(nothing(`No score of the newest ${NEWEST} rows is over its limit: no channel is to blame.`));
  }
}

// Each channel's mean share in what is unusual of the newest rows.
function contributions(chart, newest, channels) {
  const sums = new Map();
  for (const [channel, share] of newest.flat()) {
    sums.set(channel, (sums.get(channel) ?? 0) + share);
  }
  const means = [...sums].map(([channel, sum]) => ({
    name: channels[channel] ?? "?",
    value: (100 * sum) / newest.length,
  }));
  means.sort((a, b) => b.value - a.value);
  const label = `Contributions to the scores of the newest ${newest.length} rows`;
  bars(chart, { label, unit: "%", rows: means.slice(0, MOST_CHANNELS) });
}

/** Ask for the hours before and draw them. */
export async function scoresBefore(chart, { group, path, node }, hours, stepS) {
  const since = Math.floor(Date.now() / 1000 - 3600 * hours);
  const said = await get(["api", "scores", group], { path, node, since, step: stepS });
  const found = said.nodes.find((each) => each.node === node);
  if (!found) {
    chart.replaceChildren(nothing("There is no history of its scores yet."));
    return;
  }
  const all = [...levelsOf(found.levels)].map(shareOf);
  // The time before its first score is not drawn.
  const first = Math.max(0, all.findIndex((share) => share !== null));
  const shares = all.slice(first);
  series(chart, {
    label: "The highest score of each step, over its limit",
    unit: "× limit",
    times: shares.map((_, i) => said.first_s + (first + i) * said.step_s),
    lines: [{ name: "worst score", values: shares }],
    limits: LIMIT,
    zero: true,
  });
}

// -- channels: what each reads, and what the others say it should

const SPREAD = 3;
const AT_FIRST = 6;
const MOST = 40;

/** Draws channels, the furthest from what is expected first; those that are drawn stay in place. */
export class Channels {
  constructor(host, form) {
    this.host = host;
    this.figures = [];
    this.all = false;
    this.believed = null;
    const showAll = () => {
      this.all = true;
      this.draw();
    };
    this.search = make("input", { type: "search", placeholder: "channel", input: () => this.draw() });
    this.more = make("button", { type: "button", click: showAll }, "Show all channels");
    form.replaceChildren(make("label", {}, "Search ", this.search), this.more);
  }

  take(reply) {
    this.said = valuesInTime(reply);
    this.order ??= strangest(this.said);
    this.draw();
  }

  /** Have the bands of some channels alone drawn, by their names; null: of all. */
  expects(names) {
    this.believed = names;
    this.draw();
  }

  draw() {
    const { said } = this;
    if (!said) {
      return;
    }
    const text = this.search.value.trim().toLowerCase();
    const wanted = this.order.filter((i) => said.channels[i].name.toLowerCase().includes(text));
    const drawn = this.all ? wanted : wanted.slice(0, AT_FIRST);
    this.more.hidden = drawn.length === wanted.length;
    const hosts = drawn.map((i) => (this.figures[i] ??= make("div")));
    if (!hosts.length) {
      this.host.replaceChildren(nothing("No channel has such a name."));
    } else if (hosts.some((each, i) => this.host.children[i] !== each) || this.host.children.length > hosts.length) {
      this.host.replaceChildren(...hosts);
    }
    drawn.forEach((i) => bandChart(this.figures[i], said, i, this.believed?.includes(said.channels[i].name) ?? true));
  }
}

/** Draw what a channel reads, and the band in which the others expect it where that is believed. */
export function bandChart(host, said, i, believed = true) {
  const { name, unit } = said.channels[i];
  const expected = said.expected[i] ?? [];
  const sd = said.sd[i];
  const known = believed && sd > 0 && expected.some((each) => each !== null);
  const edge = (side) => expected.map((each) => (each === null ? null : each + side * SPREAD * sd));
  series(host, {
    label: shown(name, MOST),
    unit: shown(unit, MOST),
    times: said.at,
    lines: [{ name: "reads", values: said.values[i] }],
    bands: known ? [{ name: `expected ± ${SPREAD} sd`, low: edge(-1), high: edge(1) }] : [],
  });
}

/** Return a reply on values with its rows in the order of their times. */
export function valuesInTime(reply) {
  const sort = inTime(reply.at);
  const [values, expected] = [reply.values, reply.expected].map((each) => each.map(sort));
  return { ...reply, at: sort(reply.at), values, expected };
}

/** Return the places of the channels, the furthest from what is expected first. */
export function strangest(said) {
  const far = said.channels.map((_, i) => {
    const [value, expected] = [said.values[i].at(-1), said.expected[i]?.at(-1)];
    return value == null || expected == null || !(said.sd[i] > 0) ? 0 : Math.abs(value - expected) / said.sd[i];
  });
  return far.map((_, i) => i).sort((a, b) => far[b] - far[a]);
}

// Return what puts a list with an item for each row into the order of their times, which a chart needs:
// rows that come in a burst are dated back, and the first may be older than the last of the burst before.
function inTime(times) {
  if (times.every((at, i) => i === 0 || at >= times[i - 1])) {
    return (items) => items;
  }
  const order = times.map((_, i) => i).sort((a, b) => times[a] - times[b]);
  return (items) => order.map((i) => items[i]);
}
