// Orders to a node: which ones make sense for how it is, and what each does.

import { get } from "../shared/ask.js";
import { make } from "../shared/build.js";
import { orderButton, reason } from "../shared/orders.js";
import { refill } from "../shared/refill.js";
import { count } from "../shared/words.js";

/** Return a node: `row` as the fleet lists it, `view` as its aggregator does; both may be null. */
export function oneNode({ group, path, node }) {
  return get(["data", "node", group], { path, node });
}

/** Draw the orders to a node; `view` as `oneNode` has it. */
export function nodeOrders(host, where, view) {
  const orders = [];
  const learns = view?.kind !== "aggregator";
  if (learns) {
    orders.push((view?.wanted || (view?.paused ? "pause" : "")) === "pause" ? resumeOrder : pauseOrder);
  }
  orders.push(view?.quarantined || view?.banned ? releaseOrder : quarantineOrder);
  orders.push(view?.banned ? unbanOrder : banOrder, forgetOrder);
  if (learns) {
    orders.push(drillOrder);
  }
  const buttons = orders.map((each) => orderButton(each(where, view)));
  const note = learns ? [] : [make("p", {}, "An aggregator learns nothing itself: pause its nodes.")];
  refill(host, ...reason("operate"), make("div", { class: "orders" }, ...buttons), ...note);
}

// An order and the one that takes it back have their button in one place: it keeps the focus.
const PLACES = { resume: "pause", release: "quarantine", unban: "ban" };

// A node that is further down is not known here, and the order is sent there all the same.
function order(where, verb, more) {
  const label = verb[0].toUpperCase() + verb.slice(1);
  return {
    key: `${PLACES[verb] ?? verb} ${where.node}`,
    label,
    title: `${label} ${where.node}`,
    cannot: "",
    scope: "operate",
    parts: ["api", "nodes", where.group, where.node, verb],
    query: { anyway: where.path ? "1" : "" },
    ...more,
  };
}

function pauseOrder(where) {
  return order(where, "pause", {
    says: `${where.node} learns nothing until it is resumed. It goes on reading, scoring and alarming.`,
    cannot: "Readings meanwhile count as withheld: they are not learnt later.",
    done: () => confirms(where, (view) => view.paused && !view.wanted),
  });
}

function resumeOrder(where) {
  return order(where, "resume", {
    says: `${where.node} learns again, from its next reading on; those before are not learnt.`,
    done: () => confirms(where, (view) => !view.paused && !view.wanted),
  });
}

function quarantineOrder(where) {
  return order(where, "quarantine", {
    says:
      `The rows of ${where.node} are kept out of the model. Its reports are still taken, and a` +
      " release lets them count again.",
    danger: true,
    done: () => confirms(where, (view) => view.quarantined),
  });
}

function releaseOrder(where) {
  return order(where, "release", {
    says: `${where.node} counts again: it is neither quarantined nor banned any more, in any group.`,
    cannot: "The reason for its quarantine is forgotten.",
    done: () => confirms(where, (view) => !view.quarantined && !view.banned),
  });
}

function banOrder(where, view) {
  const below = view?.kind === "aggregator" ? " All nodes below it are cut off." : "";
  return order(where, "ban", {
    says:
      `${where.node} is refused in every group, here and at every aggregator below, until it is` +
      ` unbanned.${below} What it has reported stays in the model.`,
    danger: true,
    parts: ["api", "bans", where.node, "ban"],
    query: {},
    done: () => confirms(where, (each) => each.banned),
  });
}

function unbanOrder(where) {
  return order(where, "unban", {
    says: `${where.node} is taken in again, in every group, here and at every aggregator below.`,
    parts: ["api", "bans", where.node, "unban"],
    query: {},
    done: () => confirms(where, (view) => !view.banned),
  });
}

function forgetOrder(where, view) {
  const parts = [...(view?.rows ?? []), ...(view?.sealed ?? [])];
  const learnt = parts.reduce((sum, each) => sum + each.learnt, 0);
  const whom = view?.kind === "aggregator" ? "it and all below it begin" : "it begins";
  return order(where, "forget", {
    says:
      `${count(learnt)} readings of ${where.node} leave the model, here and, with the next` +
      ` reports, above. If it still runs, ${whom} again from zero.`,
    cannot: "This cannot be undone.",
    danger: true,
    before: async () => new Set((await oneNode(where)).view?.rows.map((each) => each.incarnation)),
    // One that still runs may be back already, as another incarnation.
    done: async (before) => {
      const { view: after } = await oneNode(where);
      return !after?.rows.some((each) => before.has(each.incarnation));
    },
  });
}

function drillOrder(where) {
  return order(where, "drill", {
    says:
      `${where.node} tries which faults its alarms would find, on copies of its newest rows.` +
      " Nothing is learnt, no alarm is raised, and readings go first.",
    before: () => drilledAt(where),
    done: async (before) => (await drilledAt(where)) !== before,
  });
}

async function drilledAt({ group, node }) {
  const { nodes } = await get(["api", "drills", group]);
  return nodes.find((each) => each.node === node)?.at;
}

async function confirms(where, holds) {
  const { view } = await oneNode(where);
  return view !== null && holds(view);
}
