// A model: its directions, its versions and histories, and which faults its alarms would find.

import { bars } from "../charts/bars.js";
import { series } from "../charts/series.js";
import { askFor, fillTable, make, named, nodeLink, nothing, refill, shown, table } from "../shared/elements.js";
import { figure, moment, percent } from "../shared/words.js";

/** Draw the spectrum: each direction's share of all variation, and what it could be at most. */
export function spectrum(chart, model) {
  const rows = model.directions.map(({ share, scored }, i) => ({
    name: scored ? `${i + 1}` : `${i + 1} (spare)`,
    value: 100 * share,
    // What was discarded may belong to any direction: it is a bound, not an error.
    low: 100 * share,
    high: 100 * Math.min(1, share + model.rest),
    mark: scored ? "" : "spare",
  }));
  rows.push({ name: "the rest", value: 100 * model.rest, mark: "rest" });
  bars(chart, { label: "Share of all variation by direction", unit: "%", rows });
}

/** Draws what each channel has in one direction. */
export class Loadings {
  constructor(form, chart) {
    this.chart = chart;
    this.direction = make("select", { input: () => this.draw() });
    this.bySize = make("input", { type: "checkbox", checked: true, input: () => this.draw() });
    this.search = make("input", { type: "search", placeholder: "channel", input: () => this.draw() });
    form.replaceChildren(
      make("label", {}, "Direction ", this.direction),
      make("label", {}, "Search ", this.search),
      make("label", { class: "check" }, this.bySize, " Largest first"),
    );
  }

  take(model) {
    const chosen = this.direction.selectedIndex;
    this.model = model;
    this.direction.replaceChildren(
      ...model.directions.map(({ share, scored }, i) => {
        const words = `${i + 1}: ${figure(100 * share)} %${scored ? "" : ", spare"}`;
        return make("option", { value: i, selected: i === chosen }, words);
      }),
    );
    this.draw();
  }

  draw() {
    const { model } = this;
    const chosen = model.directions[this.direction.selectedIndex];
    if (!chosen) {
      return;
    }
    const text = this.search.value.trim().toLowerCase();
    const rows = model.channels
      .map((name, i) => ({ name: inUnit(name, model.units[i]), value: chosen.loadings[i] }))
      .filter(({ name }) => name.toLowerCase().includes(text));
    if (this.bySize.checked) {
      rows.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    }
    const label = `Loadings of the channels in direction ${this.direction.selectedIndex + 1}`;
    bars(this.chart, { label, rows });
  }
}

function inUnit(name, unit) {
  return shown(unit ? `${name} (${unit})` : name, 80);
}

// -- versions: how far each turned from the one before, and ranks, the model's and nodes' own

const MOST = 20;

/** Ask for the versions of a group and draw them. */
export async function versions(host, angles, ranks, group) {
  const found = (await askFor(host, ["api", "versions", group]))?.versions;
  angles.hidden = ranks.hidden = !(found?.length > 1);
  if (!found) {
    return;
  }
  const all = found.toReversed();
  const times = all.map((each) => each.created_s);
  const line = (name, value) => ({ name, values: all.map(value) });
  if (!ranks.hidden) {
    const label = "Largest angle between a version and the one before";
    series(angles, { label, unit: "°", times, lines: [line("angle", (each) => each.angle_deg)] });
    // An earlier release kept no ranks of nodes.
    const names = [...new Set(all.flatMap((each) => Object.keys(each.ranks ?? {})))];
    const own = names.map((name) => line(name, (each) => each.ranks?.[name] ?? null));
    const lines = [line("model", (each) => each.rank), ...own];
    series(ranks, { label: "Rank of the model, and ranks that nodes chose", times, lines, zero: true });
  }
  const columns = [
    ["Version of", (each) => moment(each.created_s)],
    ["Rank", (each) => each.rank, "number"],
    ["Nodes", (each) => each.nodes, "number"],
    ["Readings", (each) => each.readings, "number"],
    ["Angle to the one before", ({ angle_deg: at }) => (at === null ? "not known" : `${figure(at)}°`), "number"],
    ["Variance by direction", (each) => each.spectrum.slice(0, 5).map(figure).join(", "), "number"],
  ];
  fillTable(host, "Versions of the model", columns, found.slice(0, MOST), "The history has no version yet.");
  if (found.length > MOST) {
    host.append(nothing(`${found.length - MOST} older ones are in the chart alone.`));
  }
}

/** Ask for the histories that a group merges and draw them. */
export async function histories(host, group) {
  const found = await askFor(host, ["api", "histories", group]);
  if (!found) {
    return;
  }
  const day = (seconds) => (seconds === null ? "?" : moment(seconds).slice(0, 10));
  const columns = [
    ["History", (each) => named(each.name)],
    ["Rows", (each) => each.rows, "number"],
    ["Counts for", (each) => figure(each.counts_for), "number"],
    ["At most", (each) => (each.most_rows === null ? "" : figure(each.most_rows)), "number"],
    ["Left by its age", (each) => percent(each.left), "number"],
    ["Its time", (each) => `${day(each.first_s)} to ${day(each.last_s)}`],
    ["Machines", (each) => named(each.machines.join(", "))],
    ["From", (each) => named(each.origin || each.files.join(", "))],
    ["Pushed", (each) => moment(each.pushed_s)],
    ["State", (each) => (each.current ? "in the model" : "of another schema: in no model")],
  ];
  const none = ["None: the model holds what nodes have reported. ", make("code", {}, "submerge model push"), " adds one."];
  fillTable(host, "Histories that the model holds", columns, found, ...none);
}

// -- drills: which faults the alarms would find, by channel

/** Ask what drills have found out and draw it. */
export async function drill(host, group) {
  const found = await askFor(host, ["api", "drills", group]);
  if (!found?.nodes.length) {
    if (found) {
      refill(host, nothing("No node has drilled since the aggregator began: the view of a node has the order."));
    }
    return;
  }
  const several = found.nodes.length > 1;
  const channels = [
    ["Channel", ({ channel, unit }) => make("span", {}, named(channel), ...(unit ? [" (", named(unit), ")"] : []))],
    ["Bias", ({ bias }) => size(bias, several), "number"],
    ["Drift", ({ drift }) => size(drift, several), "number"],
    ["Noise", ({ noise }) => size(noise, several), "number"],
    ["Stuck", ({ stuck }) => share(stuck), "number"],
    ["Swap", ({ swap }) => share(swap), "number"],
    ["R2", ({ r2 }) => r2.toFixed(2), "number"],
    ["Missed", ({ missed }) => missed || "", "number"],
    ["Blind", (each) => (each.blind ? make("span", { class: "badge warn" }, blind(each)) : "")],
  ];
  const nodes = [
    ["Node", ({ node }) => nodeLink(group, node)],
    ["When", ({ at }) => moment(at)],
    ["Rows", ({ rows }) => rows, "number"],
    ["Tries of each fault", ({ tries }) => tries, "number"],
    ["Found within rows", ({ within }) => within, "number"],
    ["Blind channels", ({ blind }) => blind, "number"],
  ];
  refill(
    host,
    table("Smallest faults that are found, by channel", channels, found.channels),
    make("h3", {}, "Nodes that have drilled"),
    table("Nodes that have drilled", nodes, found.nodes),
  );
}

function size({ median, worst }, several) {
  const said = (value) => (value === null ? "none" : figure(value));
  return several ? `${said(median)} (${said(worst)})` : said(median);
}

function share(value) {
  return value === null ? "" : percent(value);
}

function blind({ blind: n, nodes }) {
  return nodes > 1 ? `blind at ${n} of ${nodes}` : "blind";
}
