// What an aggregator knows of a node: how it is, what it has reported, and its incarnations.

import { make } from "../shared/build.js";
import { facts, named, nodeLink, nothing } from "../shared/named.js";
import { refill } from "../shared/refill.js";
import { fillTable } from "../shared/table.js";
import { ago, count, moment } from "../shared/words.js";
import { STATE_WORDS, badge } from "../views/fleet_rows.js";

const DAY_S = 86400;

/** Draw the head of a node, as `oneNode` returns it. */
export function nodeHead(host, where, view, row, at) {
  if (view === null) {
    refill(host, nothing(`${where.node} is not known there: it was forgotten, or reports elsewhere.`));
    return;
  }
  const last = view.rows[0];
  const all = [...view.rows, ...view.sealed];
  const sum = (what) => count(all.reduce((total, each) => total + each[what], 0));
  refill(
    host,
    make(
      "p",
      {},
      badge(row.state),
      " ",
      STATE_WORDS[row.state] ?? "",
      ...(row.note ? [" ", named(row.note, 400), "."] : []),
    ),
    facts([
      ["Group", where.group],
      ["Reports to", ...above(where)],
      ["Kind", view.kind ?? "unknown: it has no row"],
      ["Heard", last ? `${ago(last.silent_s)} ago` : "never, since its rows were sealed"],
      ["Readings learnt", sum("learnt")],
      ["Withheld", `${sum("withheld")}: seen and not learnt, as rows of an alarm`],
      ["Lost", `${sum("lost")}: known to be missing`],
      ["Model in use", last?.model_version ? moment(last.model_version / 1000) : ""],
      ["Judged by", last?.own_share ? `its own rows to ${Math.round(100 * last.own_share)} %, and the fleet's` : ""],
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
  const rows = (view?.rows ?? []).map((each) => [
    make("code", {}, each.incarnation),
    moment(each.created_s),
    each.final ? "ended" : `heard ${ago(each.silent_s)} ago`,
    ...counted(each),
  ]);
  const sealed = (view?.sealed ?? []).map((each) => [
    "earlier ones, together",
    `until ${moment(each.as_of_s)}`,
    "ended",
    ...counted(each),
  ]);
  const headings = ["Incarnation", "Began", "State", "Learnt", "Withheld", "Lost", "Schema"];
  const all = [...rows, ...sealed];
  fillTable(host, "Incarnations of the node", headings, all, "It has no rows.");
}

function counted({ learnt, withheld, lost, schema }) {
  return [learnt, withheld, lost, schema === "current" ? "" : "of an old schema: in no model"];
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
  if (left > 30 * DAY_S) {
    return words;
  }
  const says = left > 0 ? `: ${ago(left)} left, renew its kit` : ": it is over, renew its kit";
  return make("span", { class: "problem" }, words + says);
}
