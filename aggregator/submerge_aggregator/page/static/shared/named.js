// Names of others as elements: their direction of writing stays inside.

import { get, pathOf } from "./ask.js";
import { make } from "./build.js";
import { refill } from "./refill.js";
import { shown } from "./text.js";

// Characters of a name in a line or a cell; one that is longer has no more to say there.
const MOST = 80;

/** Return a name as an element. */
export function named(text, most = MOST) {
  return make("bdi", {}, shown(text, most));
}

/** Return a link to a node; `under` are the aggregators above it, undefined if unknown. */
export function nodeLink(group, node, under) {
  return make("a", { href: pathOf(["node"], { group, path: under, node }) }, named(node));
}

/** Return what a view says where there is nothing to show. */
export function nothing(...words) {
  return make("p", { class: "quiet" }, ...words);
}

/** Return an error as a paragraph. */
export function problem(error) {
  return make("p", { class: "problem" }, shown(error.message, 400));
}

/** Return facts as a list: pairs of a word and what it is; pairs without the latter left out. */
export function facts(pairs) {
  const known = pairs.filter(([, inside]) => inside !== "" && inside !== false && inside != null);
  return make(
    "dl",
    { class: "facts" },
    ...known.flatMap(([word, ...inside]) => [make("dt", {}, word), make("dd", {}, ...inside)]),
  );
}

/** Ask, and return the answer; undefined if it is refused: the host says why. */
export async function askFor(host, ...question) {
  try {
    return await get(...question);
  } catch (error) {
    refill(host, problem(error));
    return undefined;
  }
}

let units = new Map();

/** Return the units of a group's channels by their names, as its model has them: none before there is one. */
export async function unitsOf(group) {
  if (!units.size) {
    const model = await get(["data", "model", group]).catch(() => ({ channels: [], units: [] }));
    units = new Map(model.channels.map((channel, i) => [channel, model.units[i]]));
  }
  return units;
}
