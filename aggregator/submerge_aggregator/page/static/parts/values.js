// The channels of a node: what each reads, and what the others say it should.

import { inTime } from "./in_time.js";
import { series } from "../charts/series.js";
import { make } from "../shared/build.js";
import { nothing } from "../shared/named.js";
import { shown } from "../shared/text.js";

const SPREAD = 3;
const AT_FIRST = 6;
const MOST = 40;

/** Draws channels, the furthest from what is expected first; those that are drawn stay in place. */
export class Channels {
  constructor(host, form) {
    this.host = host;
    this.figures = new Map();
    this.all = false;
    this.search = make("input", { type: "search", placeholder: "channel", input: () => this.draw() });
    this.more = make("button", { type: "button", click: () => this.showAll() }, "Show all channels");
    form.replaceChildren(make("label", {}, "Search ", this.search), this.more);
  }

  take(reply) {
    const sort = inTime(reply.at);
    const [values, expected] = [reply.values, reply.expected].map((each) => each.map(sort));
    const said = { ...reply, at: sort(reply.at), values, expected };
    this.said = said;
    this.order ??= said.channels
      .map((_, i) => [strangeness(said, i), i])
      .sort(([a], [b]) => b - a)
      .map(([, i]) => i);
    this.draw();
  }

  showAll() {
    this.all = true;
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
    const hosts = drawn.map((i) => this.channel(i));
    if (!hosts.length) {
      this.host.replaceChildren(nothing("No channel has such a name."));
    } else if (hosts.some((each, i) => this.host.children[i] !== each) || this.host.children.length > hosts.length) {
      this.host.replaceChildren(...hosts);
    }
    drawn.forEach((i) => this.series(i));
  }

  channel(i) {
    if (!this.figures.has(i)) {
      const chart = make("div");
      this.figures.set(i, chart);
    }
    return this.figures.get(i);
  }

  series(i) {
    const { said } = this;
    const { name, unit } = said.channels[i];
    const expected = said.expected[i] ?? [];
    const sd = said.sd[i];
    const known = sd > 0 && expected.some((each) => each !== null);
    const edge = (side) =>
      expected.map((each) => (each === null ? null : each + side * SPREAD * sd));
    series(this.figures.get(i), {
      label: shown(name, MOST),
      unit: shown(unit, MOST),
      times: said.at,
      lines: [{ name: "reads", values: said.values[i] }],
      limits: [],
      bands: known ? [{ name: `expected ± ${SPREAD} sd`, low: edge(-1), high: edge(1) }] : [],
    });
  }
}

function strangeness(said, i) {
  const last = said.at.length - 1;
  const value = said.values[i][last];
  const expected = said.expected?.[i]?.[last];
  const sd = said.sd?.[i];
  return value == null || expected == null || !(sd > 0) ? 0 : Math.abs(value - expected) / sd;
}
