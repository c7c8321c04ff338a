// A node as its aggregator knows it: how it is, what it has reported, orders to it, and its settings.

import { below, get } from "../shared/ask.js";
import { facts, fillTable, make, named, nodeLink, nothing, problem, refill, shown } from "../shared/elements.js";
import { orderButton, reason, whyNot } from "../shared/orders.js";
import { ago, count, moment, percent } from "../shared/words.js";
import { STATE_WORDS, badge } from "./fleet_rows.js";

/** Draw the head of a node, as `oneNode` returns it. */
export function nodeHead(host, where, view, row, at) {
  if (view === null) {
    refill(host, nothing(`${where.node} is not known there: it was forgotten, or reports elsewhere.`));
    return;
  }
  const last = view.rows[0];
  const all = [...view.rows, ...view.sealed];
  const sum = (what) => count(all.reduce((total, each) => total + each[what], 0));
  const note = row.note ? [" ", named(row.note, 400), "."] : [];
  refill(
    host,
    make("p", {}, badge(row.state), " ", STATE_WORDS[row.state] ?? "", ...note),
    facts([
      ["Group", where.group],
      ["Reports to", ...above(where)],
      ["Kind", view.kind ?? "unknown: it has no row"],
      ["Heard", last ? `${ago(last.silent_s)} ago` : "never, since its rows were sealed"],
      ["Readings learnt", sum("learnt")],
      ["Withheld", `${sum("withheld")}: seen and not learnt, as rows of an alarm`],
      ["Lost", `${sum("lost")}: known to be missing`],
      ["Model in use", last?.model_version ? moment(last.model_version / 1000) : ""],
      ["Judged by", last?.own_share ? `its own rows to ${percent(last.own_share)}, and the fleet's` : ""],
      ["Unlike the fleet", last?.unlike ? `by ${last.unlike.toPrecision(2)} nats a row; 0 is a machine like it` : ""],
      ["Learns by", last && last.algorithm + (last.rank ? `, ${last.rank} directions` : "")],
      ["Software", last ? named(last.software) : ""],
      ["Certificate", certificate(last, at)],
      ["Wanted", view.wanted && `to ${view.wanted}: it has not confirmed that yet`],
      ["Quarantined", view.quarantined && `${view.cause}, since ${view.since_s ? moment(view.since_s) : "an unknown time"}`],
      ["Machines", view.at_once ? `${view.at_once} run with its kit at once` : ""],
    ]),
  );
}

/** Draw a node's incarnations. */
export function incarnations(host, view) {
  const columns = [
    ["Incarnation", ({ incarnation }) => (incarnation ? make("code", {}, incarnation) : "earlier ones, together")],
    ["Began", (each) => (each.incarnation ? moment(each.created_s) : `until ${moment(each.as_of_s)}`)],
    ["State", (each) => (each.incarnation && !each.final ? `heard ${ago(each.silent_s)} ago` : "ended")],
    ["Learnt", ({ learnt }) => learnt, "number"],
    ["Withheld", ({ withheld }) => withheld, "number"],
    ["Lost", ({ lost }) => lost, "number"],
    ["Schema", ({ schema }) => (schema === "current" ? "" : "of an old schema: in no model")],
  ];
  const all = [...(view?.rows ?? []), ...(view?.sealed ?? [])];
  fillTable(host, "Incarnations of the node", columns, all, "It has no rows.");
}

function above({ group, path }) {
  const names = path ? path.split("/") : [];
  const links = names.flatMap((name, i) => [
    ...(i ? [" / "] : []),
    nodeLink(group, name, names.slice(0, i).join("/")),
  ]);
  return links.length ? links : ["this aggregator"];
}

function certificate(last, at) {
  const until = last?.certified_until_s;
  if (!until) {
    return "none";
  }
  const words = `until ${moment(until)}`;
  const left = until - at;
  if (left > 30 * 86400) {
    return words;
  }
  const says = left > 0 ? `: ${ago(left)} left, renew its kit` : ": it is over, renew its kit";
  return make("span", { class: "problem" }, words + says);
}

// -- orders: which ones make sense for how it is, and what each does

// What each order says and takes away, and what holds of the node once it is done. Those of `bans` are
// for every group; `before` and `done` are as in an order, and get the node first.
const ORDERS = {
  pause: {
    says: ({ node }) => `${node} learns nothing until it is resumed. It goes on reading, scoring and alarming.`,
    cannot: "Readings meanwhile count as withheld: they are not learnt later.",
    holds: (view) => view.paused && !view.wanted,
  },
  resume: {
    says: ({ node }) => `${node} learns again, from its next reading on; those before are not learnt.`,
    holds: (view) => !view.paused && !view.wanted,
  },
  quarantine: {
    says: ({ node }) =>
      `The rows of ${node} are kept out of the model. Its reports are still taken, and a release lets them count again.`,
    danger: true,
    holds: (view) => view.quarantined,
  },
  release: {
    says: ({ node }) => `${node} counts again: it is neither quarantined nor banned any more, in any group.`,
    cannot: "The reason for its quarantine is forgotten.",
    holds: (view) => !view.quarantined && !view.banned,
  },
  ban: {
    says: ({ node }, view) =>
      `${node} is refused in every group, here and at every aggregator below, until it is unbanned.` +
      `${isAggregator(view) ? " All nodes below it are cut off." : ""} What it has reported stays in the model.`,
    danger: true,
    ofBans: true,
    holds: (view) => view.banned,
  },
  unban: {
    says: ({ node }) => `${node} is taken in again, in every group, here and at every aggregator below.`,
    ofBans: true,
    holds: (view) => !view.banned,
  },
  forget: {
    says: ({ node }, view) => {
      const learnt = [...(view?.rows ?? []), ...(view?.sealed ?? [])].reduce((sum, each) => sum + each.learnt, 0);
      return (
        `${count(learnt)} readings of ${node} leave the model, here and, with the next reports, above.` +
        ` If it still runs, ${isAggregator(view) ? "it and all below it begin" : "it begins"} again from zero.`
      );
    },
    cannot: "This cannot be undone.",
    danger: true,
    before: async (where) => new Set((await oneNode(where)).view?.rows.map((each) => each.incarnation)),
    // One that still runs may be back already, as another incarnation.
    done: async (where, before) => !(await oneNode(where)).view?.rows.some((each) => before.has(each.incarnation)),
  },
  drill: {
    says: ({ node }) =>
      `${node} tries which faults its alarms would find, on copies of its newest rows. Nothing is learnt, no alarm is raised, and readings go first.`,
    before: drilledAt,
    done: async (where, before) => (await drilledAt(where)) !== before,
  },
};

// An order and the one that takes it back have their button in one place: it keeps the focus.
const PLACES = { resume: "pause", release: "quarantine", unban: "ban" };

/** Return a node: `row` as the fleet lists it, `view` as its aggregator does; both may be null. */
export function oneNode({ group, path, node }) {
  return get(["data", "node", group], { path, node });
}

/** Draw the orders to a node; `view` as `oneNode` has it. */
export function nodeOrders(host, where, view) {
  const learns = !isAggregator(view);
  const verbs = [view?.quarantined || view?.banned ? "release" : "quarantine", view?.banned ? "unban" : "ban", "forget"];
  if (learns) {
    verbs.unshift((view?.wanted || (view?.paused ? "pause" : "")) === "pause" ? "resume" : "pause");
    verbs.push("drill");
  }
  const buttons = verbs.map((verb) => orderButton(order(verb, where, view)));
  const note = learns ? [] : [make("p", {}, "An aggregator learns nothing itself: pause its nodes.")];
  refill(host, ...reason("operate"), make("div", { class: "orders" }, ...buttons), ...note);
}

function isAggregator(view) {
  return view?.kind === "aggregator";
}

function order(verb, where, view) {
  const { says, holds, ofBans, before = () => null, done, ...more } = ORDERS[verb];
  const label = verb[0].toUpperCase() + verb.slice(1);
  return {
    key: `${PLACES[verb] ?? verb} ${where.node}`,
    label,
    title: `${label} ${where.node}`,
    says: says(where, view),
    cannot: "",
    scope: "operate",
    parts: ofBans ? ["api", "bans", where.node, verb] : ["api", "nodes", where.group, where.node, verb],
    // A node that is further down is not known here, and the order is sent there all the same.
    query: ofBans ? {} : { anyway: where.path ? "1" : "" },
    before: () => before(where),
    done: (was) => (done ? done(where, was) : confirms(where, holds)),
    ...more,
  };
}

async function drilledAt({ group, node }) {
  const { nodes } = await get(["api", "drills", group]);
  return nodes.find((each) => each.node === node)?.at;
}

async function confirms(where, holds) {
  const { view } = await oneNode(where);
  return view !== null && holds(view);
}

// -- its configuration, as it says itself; secrets are left out there already

const MOST = 1000;

/** Have a button ask a node for its settings. */
export function settings(button, host, { group, path, node }) {
  // They say how a machine is reached, and where its files are.
  button.disabled = Boolean(whyNot("judge"));
  if (button.disabled) {
    host.replaceChildren(nothing("To see them, log in with a token of scope judge."));
  }
  button.addEventListener("click", async () => {
    button.disabled = true;
    host.setAttribute("aria-busy", "true");
    try {
      const said = await get(["api", "settings", group], { path: below(path, node) });
      refill(host, tree(said.settings ?? said, { left: MOST }));
    } catch (error) {
      refill(host, problem(error));
    }
    host.setAttribute("aria-busy", "false");
    button.disabled = false;
    button.textContent = "Ask again";
  });
}

// A value: of a table, a list of its keys. `budget` bounds what a hostile node may have drawn.
function tree(value, budget) {
  if (value === null || typeof value !== "object") {
    return make("code", {}, shown(typeof value === "string" ? value : JSON.stringify(value)));
  }
  const items = [];
  for (const [key, inside] of Object.entries(value)) {
    if (budget.left-- <= 0) {
      items.push(make("li", {}, "… and more"));
      break;
    }
    const name = Array.isArray(value) ? [] : [make("bdi", { class: "key" }, shown(key)), ": "];
    items.push(make("li", {}, ...name, tree(inside, budget)));
  }
  return items.length ? make("ul", { class: "tree" }, ...items) : make("code", {}, "none");
}
