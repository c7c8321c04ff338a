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

/** Return rows: a name, its value, what it means, and what to do, or "". */
export function health(said, now) {
  const full = Math.round((100 * said.unanswered_bytes) / Math.max(1, said.most_unanswered_bytes));
  return [
    [
      "Answers its nodes",
      said.not_ready ? "no" : "yes",
      "Nodes get answers to their reports.",
      said.not_ready && `It gives none, for ${said.not_ready}: see its log.`,
    ],
    [
      "Link to the parent",
      said.parent ? (said.parted ? "down" : "up") : "none",
      said.parent
        ? `It reports to ${said.parent}; while the link is down it keeps all, and nothing is lost.`
        : "It is the root: nothing is above it.",
      said.parted && "If it stays down, look at the network and at the parent.",
    ],
    [
      "Brokers to the nodes",
      said.broker === null ? "none" : said.broker ? "up" : "down",
      said.broker === null
        ? "Nodes reach it without a broker."
        : "Nodes behind a broker are heard while it is up; their readings wait in them.",
      said.broker === false && "Look at the broker and its log.",
    ],
    ["Reports", count(said.reports), "Taken since it began; each is a node's whole state.", ""],
    ["Joins", count(said.joins), "Nodes that began, or came back, since it began.", ""],
    ["Commits", count(said.commits), "Writes to the store; a report is answered after its commit.", ""],
    [
      "Failed writes",
      count(said.failed_writes),
      "Nodes keep their readings and send them again.",
      said.failed_writes > 0 && "The store's disk is full or failing: look at it now.",
    ],
    [
      "Models not taken",
      count(said.models_rejected),
      "Models of the parent that this aggregator could not use.",
      said.models_rejected > 0 &&
        "Its configuration differs from the parent's, or one of them is older: see its log.",
    ],
    [
      "Answers under way",
      `${full} %`,
      "Memory for messages that wait for an answer; when it is full, nodes are asked to wait.",
      full > 100 * FULL && "More reports come than the disk takes: see Operating.",
    ],
    [
      "Audit entries not written",
      count(said.audit_dropped),
      "Every order and refusal is to be in the audit log.",
      said.audit_dropped > 0 && "The log's disk is full or too slow: make room.",
    ],
    certificate(said.certified_until_s, now),
    backup(said, now),
    ["Software", named(said.software), "The version that runs here.", ""],
  ];
}

function certificate(until, now) {
  const left = until - now;
  return [
    "Certificate",
    until ? (left > 0 ? ago(left) : "over") : "none",
    until ? `Its certificate as a node ends ${moment(until)}.` : "It has none as a node.",
    until > 0 && left < SOON_S && "Renew its kit: submerge pki renew.",
  ];
}

// Copies are of a root: one below has its rows from its nodes again.
function backup({ backup_s: at, parent }, now) {
  const command = make("code", {}, "submerge backup --to backups");
  const first = make("span", {}, "Make one, on this machine and as this aggregator's user: ", command);
  return [
    "Last backup",
    at ? `${ago(now - at)} ago` : "none known",
    "When the newest copy of the store was fetched whole, by submerge backup.",
    at ? now - at > OLD_S && "Look at what makes the backups." : !parent && first,
  ];
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
