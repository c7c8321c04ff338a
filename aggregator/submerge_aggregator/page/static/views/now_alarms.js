// Open alarms as cards: node, since when, how far over its limit, and which channels read what.

import { pathOf } from "../shared/ask.js";
import { make } from "../shared/build.js";
import { CAUSES, marks } from "../shared/causes.js";
import { shown } from "../shared/text.js";
import { ago, excess, figure, moment } from "../shared/words.js";

// Three reports are missing, unless a configuration says otherwise.
const SILENT_S = 900;

// Cards that are shown before somebody asks for the others.
const FIRST = 6;

/** Return a function that shows alarms in a place; cards of alarms that stay the same stay there.
 *
 * about : `{group, under, unit}`: functions that return where a node is, and a channel's unit
 */
export function alarmCards(place, about) {
  const cards = new Map();
  let all = false;
  return function show(alarms) {
    const few = all ? alarms : alarms.slice(0, FIRST);
    const ids = new Set(few.map((each) => each.id));
    for (const id of [...cards.keys()].filter((each) => !ids.has(each))) {
      cards.get(id).element.remove();
      cards.delete(id);
    }
    place.querySelector(":scope > .more")?.remove();
    few.forEach((alarm, i) => {
      const is = JSON.stringify([alarm, about.unit("")]).replace(/"silent_s":[^,}]*/, "");
      let card = cards.get(alarm.id);
      if (card?.is !== is) {
        const element = make("li", { class: "alarm-card" }, ...content(alarm, about));
        card?.element.replaceWith(element);
        card = { is, element };
        cards.set(alarm.id, card);
      }
      const lasted = Date.now() / 1000 - alarm.began;
      card.element.querySelector(".lasted").textContent = ago(lasted);
      if (place.children[i] !== card.element) {
        place.insertBefore(card.element, place.children[i] ?? null);
      }
    });
    if (few.length < alarms.length) {
      const open = () => {
        all = true;
        show(alarms);
      };
      const text = `Show all ${alarms.length}`;
      place.append(make("li", { class: "more" }, make("button", { type: "button", click: open }, text)));
    }
  };
}

function cause(alarm) {
  const words = CAUSES[alarm.cause];
  return words ? `${words[0].toUpperCase()}${words.slice(1)}.` : shown(alarm.cause);
}

function content(alarm, about) {
  const query = { group: about.group, path: about.under(alarm.node), node: alarm.node };
  const name = make("bdi", {}, shown(alarm.node));
  const badges = [make("span", { class: "badge alarm" }, "alarm")];
  badges.push(...marks(alarm).map(([mark, words]) => make("span", { class: `badge ${mark}` }, words)));
  if (alarm.verdict || alarm.wanted) {
    badges.push(make("span", { class: "badge wanted" }, alarm.verdict || `to be ${alarm.wanted}`));
  }
  return [
    make("h2", {}, make("a", { href: pathOf(["node"], query) }, name), " ", ...badges),
    make(
      "p",
      { class: "when" },
      "since ", make("time", { datetime: new Date(alarm.began * 1000).toISOString() }, moment(alarm.began)),
      ", for ", make("span", { class: "lasted" }),
      ...(alarm.worst ? [", up to ", make("strong", {}, `${excess(alarm.worst)}×`), " its limit"] : []),
    ),
    make("p", {}, cause(alarm)),
    channels(alarm, about.unit),
    ...doubts(alarm).map((each) => make("p", { class: "doubt" }, each)),
    make("p", { class: "quiet" }, make("a", { href: pathOf(["alarms"], { group: about.group, find: alarm.id }) }, "To its verdict")),
  ];
}

function channels(alarm, unit) {
  const rows = Object.entries(alarm.top).map(([channel, share]) => {
    const off = alarm.deviations[channel];
    const figures = off ? [figure(off.value), figure(off.expected), signed(off.difference)] : ["", "", ""];
    const of = unit(channel);
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, make("bdi", {}, shown(channel)), of ? ` (${shown(of)})` : ""),
      ...figures.map((each) => make("td", { class: "number" }, each)),
      make("td", { class: "number share" }, `${Math.round(share * 100)} %`),
    );
  });
  const heads = [["channel"], ["reads", "number"], ["expected", "number"], ["off by", "number"], ["share", "number"]];
  const head = heads.map(([each, kind]) => make("th", { scope: "col", class: kind }, each));
  return make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
}

function doubts(alarm) {
  const said = [];
  if (alarm.silent_s > SILENT_S) {
    said.push(`${shown(alarm.reported_by)} is silent for ${ago(alarm.silent_s)}.`);
  }
  if (alarm.denied_by.length) {
    said.push(`Denied by ${alarm.denied_by.map((each) => shown(each)).join(", ")}, not believed.`);
  }
  return said;
}

function signed(value) {
  return (value < 0 ? "−" : "+") + figure(Math.abs(value));
}
