// Orders to a node: which ones make sense for how it is, and what each does.

import { get } from "../shared/ask.js";
import { make } from "../shared/build.js";
import { orderButton, reason } from "../shared/orders.js";
import { refill } from "../shared/refill.js";
import { count } from "../shared/words.js";

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
