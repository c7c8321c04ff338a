// Elements: text goes in as text, whatever it contains, and names of others do nothing around them.

import { get, pathOf } from "./ask.js";

/** Return an element: `attributes` by name (a function is a listener), then what is in it. */
export function make(tag, attributes = {}, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      element.addEventListener(name, value);
    } else if (value !== false && value != null) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...inside);
  return element;
}

/** Return the element of a frame that has an id. */
export function place(id) {
  return document.getElementById(id);
}

/** Have an element say a text; again only if it differs: a screen reader would read it each time. */
export function tell(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

// -- names: their direction of writing stays inside

// Characters of a name in a line or a cell; one that is longer has no more to say there.
const MOST = 80;

// Controls, format characters (among them the marks that turn the direction of writing), separators
// of lines, what is private or no character, and a code unit that stands alone.
const PLAIN = /^[ -~]*$/;
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}]/gu;

/** Return a name as a person may read it: ‹U+202E› for what is not seen, at most `most` characters. */
export function shown(name, most = 200) {
  const whole = String(name);
  const cut = whole.length > most ? [...whole.slice(0, most)].slice(0, -1).join("") + "…" : whole;
  return PLAIN.test(cut) ? cut : cut.replace(UNSEEN, mark);
}

function mark(character) {
  return `‹U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}›`;
}

/** Return a name as an element. */
export function named(text, most = MOST) {
  return make("bdi", {}, shown(text, most));
}

/** Return a link to a node; `under` are the aggregators above it, undefined if unknown. */
export function nodeLink(group, node, under, inside = named(node)) {
  return make("a", { href: pathOf(["node"], { group, path: under, node }) }, inside);
}

// -- paragraphs and facts

/** Return words that are less than others, as where there is nothing to show. */
export function nothing(...words) {
  return make("p", { class: "quiet" }, ...words);
}

/** Return an error, or words of one, as a paragraph. */
export function problem(error) {
  return make("p", { class: "problem" }, shown(error.message ?? error, 400));
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

// -- drawing again: what has the focus keeps it, and what is unfolded stays so
//
// Elements are known by their `data-key`, which a view gives to what it draws more than once. If the
// one with the focus is gone, an element around it that has a key gets it (with tabindex -1).

// Keys of what had the focus and is gone: it may be drawn elsewhere next, as an alarm that is over.
let homeless = [];

/** Put elements into `host` in place of those that are there. */
export function refill(host, ...inside) {
  const focused = document.activeElement;
  if (host.contains(focused)) {
    homeless = keysAround(focused, host);
  } else if (focused !== document.body) {
    homeless = [];
  }
  const folds = () => [...host.querySelectorAll("details[data-key]")];
  const unfolded = new Set(folds().map((each) => each.open && each.dataset.key));
  host.replaceChildren(...inside);
  for (const each of folds()) {
    each.open ||= unfolded.has(each.dataset.key);
  }
  if (focusOn(homeless, host)) {
    homeless = [];
  }
}

/** Return the keys of an element and of those around it, the innermost first. */
export function keysAround(element, host = document.body) {
  const keys = [];
  for (let each = element; each && each !== host; each = each.parentElement) {
    keys.push(...(each.dataset.key ? [each.dataset.key] : []));
  }
  return keys;
}

/** Focus the first element that is there, of those with these keys; return whether there is one. */
export function focusOn(keys, host = document) {
  const keyed = keys.map((key) => host.querySelector(`[data-key="${CSS.escape(key)}"]`));
  const found = keyed.find((each) => each && !each.disabled);
  found?.focus();
  return found !== undefined;
}

// -- tables: they scroll inside their box, or stack their cells on a small screen

/** Put a table of items into a host; where there are none, the words that say so. */
export function fillTable(host, label, columns, items, ...none) {
  refill(host, items.length ? table(label, columns, items) : nothing(...none));
}

/**
 * Return a table in a box that scrolls; with `stacks` each row is a block of lines on a small screen.
 *
 * columns : a heading, what returns an item's cell (a text, a number, an element, or several in a
 *   list), and "number" where it stands on the right, as numbers do; the first cells are headings
 */
export function table(label, columns, items, { stacks = false } = {}) {
  // Blocks in place of a table's boxes would take its roles away.
  const row = (...cells) => make("tr", { role: "row" }, ...cells);
  const head = columns.map(([heading, , kind]) =>
    make("th", { scope: "col", role: "columnheader", class: kind }, heading),
  );
  const line = (item) =>
    columns.map(([heading, cell, kind], i) =>
      i === 0
        ? make("th", { scope: "row", role: "rowheader" }, cell(item))
        : make("td", { role: "cell", "data-label": heading, class: kind }, ...parts(cell(item))),
    );
  const whole = make(
    "table",
    { class: stacks ? "words stacks" : "words", role: "table", "aria-label": label },
    make("thead", { role: "rowgroup" }, row(...head)),
    make("tbody", { role: "rowgroup" }, ...items.map((item) => row(...line(item)))),
  );
  return scrolling(label, "scroll", whole);
}

function parts(inside) {
  return [typeof inside === "number" ? inside.toLocaleString("en") : (inside ?? "")].flat();
}

/** Return a box that scrolls what is in it, by keys, too. */
export function scrolling(label, kind, inside) {
  return make("div", { class: kind, tabindex: "0", role: "region", "aria-label": label }, inside);
}
