// The numbers of an aggregator: what each means, and whether to act.

import { make } from "../shared/build.js";
import { named, nothing } from "../shared/named.js";
import { table } from "../shared/table.js";
import { ago, count, moment } from "../shared/words.js";

const DAY_S = 86400;
const SOON_S = 30 * DAY_S;
const FULL = 0.8;
// As the alert BackupOld has it.
const OLD_S = 50 * 3600;

/** Return rows of `name`, `value`, `means`, and `act`: what to do, or "". */
export function health(said, now) {
  return [
    {
      name: "Answers its nodes",
      value: said.not_ready ? "no" : "yes",
      means: "Nodes get answers to their reports.",
      act: said.not_ready && `It gives none, for ${said.not_ready}: see its log.`,
    },
    {
      name: "Link to the parent",
      value: said.parent ? (said.parted ? "down" : "up") : "none",
      means: said.parent
        ? `It reports to ${said.parent}; while the link is down it keeps all, and nothing is lost.`
        : "It is the root: nothing is above it.",
      act: said.parted && "If it stays down, look at the network and at the parent.",
    },
    {
      name: "Brokers to the nodes",
      value: said.broker === null ? "none" : said.broker ? "up" : "down",
      means:
        said.broker === null
          ? "Nodes reach it without a broker."
          : "Nodes behind a broker are heard while it is up; their readings wait in them.",
      act: said.broker === false && "Look at the broker and its log.",
    },
    ...counted(said),
    {
      name: "Answers under way",
      value: `${percent(said)} %`,
      means: "Memory for messages that wait for an answer; when it is full, nodes are asked to wait.",
      act: percent(said) > 100 * FULL && "More reports come than the disk takes: see Operating.",
    },
    {
      name: "Audit entries not written",
      value: count(said.audit_dropped),
      means: "Every order and refusal is to be in the audit log.",
      act: said.audit_dropped > 0 && "The log's disk is full or too slow: make room.",
    },
    certificate(said.certified_until_s, now),
    backup(said, now),
    { name: "Software", value: named(said.software), means: "The version that runs here.", act: "" },
  ];
}

function counted(said) {
  return [
    ["Reports", said.reports, "Taken since it began; each is a node's whole state.", ""],
    ["Joins", said.joins, "Nodes that began, or came back, since it began.", ""],
    ["Commits", said.commits, "Writes to the store; a report is answered after its commit.", ""],
    [
      "Failed writes",
      said.failed_writes,
      "Nodes keep their readings and send them again.",
      "The store's disk is full or failing: look at it now.",
    ],
    [
      "Models not taken",
      said.models_rejected,
      "Models of the parent that this aggregator could not use.",
      "Its configuration differs from the parent's, or one of them is older: see its log.",
    ],
  ].map(([name, n, means, act]) => ({ name, value: count(n), means, act: n > 0 && act }));
}

function certificate(until, now) {
  const left = until - now;
  return {
    name: "Certificate",
    value: until ? (left > 0 ? ago(left) : "over") : "none",
    means: until ? `Its certificate as a node ends ${moment(until)}.` : "It has none as a node.",
    act: until > 0 && left < SOON_S && "Renew its kit: submerge pki renew.",
  };
}

// Copies are of a root: one below has its rows from its nodes again.
function backup({ backup_s: at, parent }, now) {
  const age = now - at;
  return {
    name: "Last backup",
    value: at ? `${ago(age)} ago` : "none known",
    means: "When the newest copy of the store was fetched whole, by submerge backup.",
    act: at
      ? age > OLD_S && "Look at what makes the backups."
      : !parent && make("span", {}, "Make one, on this machine and as this aggregator's user: ", make("code", {}, "submerge backup --to backups")),
  };
}

function percent({ unanswered_bytes, most_unanswered_bytes }) {
  return Math.round((100 * unanswered_bytes) / Math.max(1, most_unanswered_bytes));
}

/** Return what was refused, by reason. */
export function refusals(said) {
  if (!said.refused.length) {
    return nothing("Nothing was refused since it began.");
  }
  const rows = said.refused.map((each) => [
    make("code", {}, each.reason),
    each.what === "message" ? "of a node" : "of an operator",
    each.count,
    each.meaning,
  ]);
  return table("What was refused, by reason", ["Reason", "Of whom", "Times", "What it means"], rows);
}
