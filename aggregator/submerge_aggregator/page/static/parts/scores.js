// The scores of a node against its limits: the newest rows, and the hours before.

import { inTime } from "./in_time.js";
import { bars } from "../charts/bars.js";
import { series } from "../charts/series.js";
import { get } from "../shared/ask.js";
import { make } from "../shared/build.js";
import { named, nothing } from "../shared/named.js";
import { refill } from "../shared/refill.js";
import { table } from "../shared/table.js";
import { moment } from "../shared/words.js";

const NEWEST = 30;
const MOST_CHANNELS = 8;

// As `score_trail`: 128 is just the limit, sixteen steps double it; below 2 there is no share.
const ONE = 128;
const STEPS = 16;
const LEAST = 2;

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
export function newestScores({ chart, blame, rows }, reply) {
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
    rows.replaceChildren();
    return;
  }
  const lines = limited.length
    ? limited.map((each) => ({
        name: KINDS[each.kind] ?? each.kind,
        values: each.values.map((value) => (value === null ? null : value / each.limit)),
      }))
    : unlimited.map((each) => ({ name: KINDS[each.kind] ?? each.kind, values: each.values }));
  series(chart, {
    label: limited.length
      ? `Scores of the newest ${said.at.length} rows, over their limits${said.provisional ? ", which are provisional" : ""}`
      : "Scores of the newest rows; there are no limits yet",
    unit: limited.length ? "× limit" : "",
    times: said.at,
    lines,
    limits: limited.length ? [{ name: "limit", value: 1 }] : [],
    bands: [],
  });
  contributions(blame, said);
  refill(rows, unfolding(said, limited));
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

function unfolding(said, limited) {
  const summary = make("summary", {}, "Row by row");
  return make("details", { "data-key": "rows" }, summary, blamed(said, limited));
}

function blamed(said, limited) {
  const rows = [];
  for (let i = said.at.length - 1; i >= 0 && rows.length < NEWEST; i--) {
    const shares = limited.map((each) => (each.values[i] ?? 0) / each.limit);
    const items = (said.blame[i] ?? []).map(([channel, share]) =>
      make("li", {}, named(said.channels[channel] ?? "?"), ` ${Math.round(100 * share)} %`),
    );
    rows.push([
      moment(said.at[i]),
      { number: shares.length ? Math.max(...shares).toFixed(2) : "" },
      items.length ? make("ul", { class: "plain" }, ...items) : "",
    ]);
  }
  const headings = ["Row", "Worst score, × limit", "Channels that contribute most"];
  return table("Contributions of the newest rows", headings, rows);
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
  const levels = Uint8Array.from(atob(found.levels), (each) => each.charCodeAt(0));
  const shares = [...levels].map((level) => (level < LEAST ? null : 2 ** ((level - ONE) / STEPS)));
  series(chart, {
    label: "The highest score of each step, over its limit",
    unit: "× limit",
    times: shares.map((_, i) => said.first_s + i * said.step_s),
    lines: [{ name: "worst score", values: shares }],
    limits: [{ name: "limit", value: 1 }],
    bands: [],
  });
}
