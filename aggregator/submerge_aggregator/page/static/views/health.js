// Health: each number with what it means, and whether to act.

import { STATE_WORDS, badge } from "../parts/fleet_rows.js";
import { get } from "../shared/ask.js";
import { fillTable, make, named, nodeLink, nothing, place, problem, refill, table } from "../shared/elements.js";
import { follow, start } from "../shared/start.js";
import { ago, count, moment } from "../shared/words.js";

// Nodes of one kind.
const MOST = 200;

const KEPT_OUT = ["silent", "banned", "quarantined", "stale", "far", "bounded"];
const SOON_S = 30 * 86400;
const FULL = 0.8;
// As the alert BackupOld has it.
const OLD_S = 50 * 3600;

const group = await start();
const BANS = [
  ["Node", ({ node }) => nodeLink(group, node)],
  ["On its way to", ({ on_its_way: to }) => (to.length ? named(to.join(", ")) : "arrived everywhere")],
];

follow("fleet", look);

async function look() {
  const [said, fleet, bans] = await Promise.all([
    get(["api", "health"]),
    get(["data", "fleet", group]),
    get(["api", "bans"]).catch((error) => error),
  ]);
  const rows = health(said, Date.now() / 1000);
  const [acts, others] = [rows.filter(([, , , act]) => act), rows.filter(([, , , act]) => !act)];
  place("verdict").replaceChildren(
    acts.length
      ? make("span", { class: "problem" }, `${count(acts.length, "thing")} to act on.`)
      : "Nothing to act on at this aggregator.",
  );
  const fold = make("summary", {}, `In order: ${count(others.length, "number")}`);
  refill(
    place("health"),
    ...(acts.length ? [numbers("What to act on", acts)] : []),
    make("details", { "data-key": "in order" }, fold, numbers("Numbers that are in order", others)),
  );
  refusals(place("refusals"), said);
  nodes(fleet, bans);
}

function numbers(label, rows) {
  const columns = [
    ["What", ([name]) => name],
    ["Now", ([, value]) => value, "number"],
    ["What it means", ([, , means, act]) => (act ? make("span", {}, make("strong", {}, act), " ", means) : means)],
  ];
  return table(label, columns, rows, { stacks: true });
}

function nodes(fleet, bans) {
  const said = fleet.silent.map((each) =>
    make("p", { class: "problem" }, "An aggregator did not reply: ", named(each, 400)),
  );
  const columns = [
    ["Node", (row) => nodeLink(group, row.node, row.under)],
    ["Reports to", (row) => named(row.under || "this aggregator")],
    ["Heard", (row) => (row.heard_s === null ? "never" : ago(fleet.at - row.heard_s)), "number"],
    ["Note", (row) => named(row.note, 400)],
  ];
  for (const state of KEPT_OUT) {
    const found = fleet.rows.filter((row) => row.holds.includes(state));
    if (found.length) {
      said.push(
        make("h3", {}, badge(state), ` ${count(found.length)}`),
        make("p", {}, STATE_WORDS[state]),
        table(`Nodes that are ${state}`, columns, found.slice(0, MOST)),
        ...(found.length > MOST ? [nothing(`${found.length - MOST} more are in the list of the fleet.`)] : []),
      );
    }
  }
  if (bans instanceof Error) {
    said.push(problem(bans));
  } else if (bans.length) {
    said.push(make("h3", {}, "Bans in every group"), table("Bans in every group", BANS, bans));
  }
  refill(place("nodes"), ...(said.length ? said : [nothing("Every node counts in full.")]));
}

// -- the numbers of an aggregator: what each means, and whether to act

// Rows: a name, its value, what it means, and what to do, or "".
function health(said, now) {
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
      said.models_rejected > 0 && "Its configuration differs from the parent's, or one of them is older: see its log.",
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

function refusals(host, said) {
  const columns = [
    ["Reason", ({ reason }) => make("code", {}, reason)],
    ["Of whom", ({ what }) => (what === "message" ? "of a node" : "of an operator")],
    ["Times", (each) => each.count, "number"],
    ["What it means", ({ meaning }) => meaning],
  ];
  fillTable(host, "What was refused, by reason", columns, said.refused, "Nothing was refused since it began.");
}
