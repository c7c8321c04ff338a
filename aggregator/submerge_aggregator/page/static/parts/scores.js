// The scores of a node against its limits: the newest rows, and the hours before.

import { inTime } from "./in_time.js";
import { bars } from "../charts/bars.js";
import { levelsOf, shareOf } from "../charts/levels.js";
import { series } from "../charts/series.js";
import { get } from "../shared/ask.js";
import { nothing } from "../shared/named.js";

const NEWEST = 30;
const MOST_CHANNELS = 8;

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
export function newestScores({ chart, blame }, reply) {
  const sort = inTime(reply.at);
  const said = {
    ...reply,
    at: sort(reply.at),
    blame: sort(reply.blame),
    kinds: reply.kinds.map((each) => ({ ...each, values: sort(each.values) })),
  };
  const limited = said.kinds.filter((each) => each.limit > 0);
  const unlimited = said.kinds.filter((each) => !(each.limit > 0));
  if (!said.at.length) {
    chart.replaceChildren(nothing("It has scored no row yet: it waits for its first model."));
    blame.replaceChildren();
    return;
  }
  const lines = (limited.length ? limited : unlimited).map(({ kind, limit, values }) => ({
    name: KINDS[kind] ?? kind,
    values: limited.length ? values.map((value) => (value === null ? null : value / limit)) : values,
  }));
  series(chart, {
    label: limited.length
      ? `Scores of the newest ${said.at.length} rows, over their limits${said.provisional ? ", which are provisional" : ""}`
      : "Scores of the newest rows; there are no limits yet",
    unit: limited.length ? "× limit" : "",
    times: said.at,
    lines,
    limits: limited.length ? [{ name: "limit", value: 1 }] : [],
  });
  const over = lines.some(({ values }) => values.slice(-NEWEST).some((value) => value > 1));
  if (over || !limited.length) {
    contributions(blame, said);
  } else {
    blame.replaceChildren(nothing(`No score of the newest ${NEWEST} rows is over its limit: no channel is to blame.`));
  }
}

// Each channel's mean share in what is unusual of the newest rows.
function contributions(chart, said) {
  const newest = said.blame.slice(-NEWEST);
  const sums = new Map();
  for (const [channel, share] of newest.flat()) {
    sums.set(channel, (sums.get(channel) ?? 0) + share);
  }
  const means = [...sums].map(([channel, sum]) => ({
    name: said.channels[channel] ?? "?",
    value: (100 * sum) / newest.length,
  }));
  means.sort((a, b) => b.value - a.value);
  bars(chart, {
    label: `Contributions to the scores of the newest ${newest.length} rows`,
    unit: "%",
    rows: means.slice(0, MOST_CHANNELS),
  });
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
    limits: [{ name: "limit", value: 1 }],
    zero: true,
  });
}
