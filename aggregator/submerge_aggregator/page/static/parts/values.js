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
