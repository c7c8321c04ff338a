// Now: is anything wrong, how each machine is, and how close to its limit each has been.

import { heatmap } from "../charts/heatmap.js";
import { LEAST, levelWords, levelsOf } from "../charts/levels.js";
import { STATES, badge } from "../parts/fleet_rows.js";
import { bandChart, strangest, valuesInTime } from "../parts/scores.js";
import { below, get, pathOf, unitsOf } from "../shared/ask.js";
import { CAUSES, VERDICTS, beside, blamed, doubts, isIncident, marks, reading } from "../shared/causes.js";
import { make, named, nodeLink, nothing, place, problem, refill, shown, tell } from "../shared/elements.js";
import { follow, remember, start, whileLooked } from "../shared/start.js";
import { headline, watchSentences } from "../shared/watch_words.js";
import { ago, count, excess, moment } from "../shared/words.js";

const HOURS = [1, 6, 24];

// Columns that are left of a picture whose first part has nothing.
const LEAST_COLUMNS = 10;

// How often scores are asked for again, in seconds for each hour that is shown: a dot of the screen
// is wider than what has come since.
const AGAIN_S = 12;
const LEAST_AGAIN_S = 55;
const VALUES_S = 5;

// More do not fit on a wall; the list of the fleet has them all.
const MOST_TILES = 60;

const group = await start();
const given = Number(new URLSearchParams(location.search).get("hours"));
// Until somebody chooses, the range follows the age of the scores.
let hours = HOURS.includes(given) ? given : null;
let [fleet, known, alarms, incidents] = [{ rows: [], silent: [] }, false, null, []];
const levels = new Map();
let units = new Map();

const buttons = HOURS.map((each) => make("button", { type: "button", click: () => choose(each) }, `${each} h`));
place("hours").append(...buttons);
let [asked, turn, range] = [0, 0, HOURS[0]];
const lookAtWorst = whileLooked(place("worst"), VALUES_S, showWorst, (error) => {
  if (error) {
    refill(place("worst"), nothing(error.message));
  }
});
follow("alarms", async () => {
  units = await unitsOf(group);
  const open = await get(["api", "alarms"], { group, open: 1 });
  alarms = open.filter((each) => !isIncident(each)).sort((a, b) => b.began - a.began);
  incidents = open.filter(isIncident);
  draw();
});
follow("fleet", async () => {
  [fleet, known] = [await get(["data", "fleet", group]), true];
  place("watched").textContent = fleet.watches.flatMap(watchSentences).join(" ");
  draw();
});
follow("scores", async () => {
  if (Date.now() / 1000 - asked >= Math.max(LEAST_AGAIN_S, AGAIN_S * range)) {
    await showScores();
  }
});

// An open alarm is said though nobody knows the fleet; that there is none is not.
function draw() {
  if (!alarms || (!known && !alarms.length)) {
    return;
  }
  lookAtWorst();
  const { text, kind } = headline(alarms, fleet, incidents);
  tell(place("state"), text);
  place("state").className = `state ${kind}`;
  tiles(place("machines"), machines());
}

// The worst channel of the worst machine against the band in which the others expect it.
async function showWorst() {
  if (!alarms) {
    return;
  }
  const worst = machines().find((each) => each.alarms.length || each.judged);
  const path = worst && below(worst.under, worst.node);
  const said = worst && valuesInTime(await get(["api", "values", group], { path }));
  const first = worst?.alarms.flatMap(blamed)[0];
  const toBlame = said?.channels.findIndex((each) => each.name === first) ?? -1;
  const i = toBlame < 0 && said ? strangest(said)[0] : toBlame;
  const [value, expected] = [said?.values[i]?.at(-1), said?.expected[i]?.at(-1)];
  if (value == null || expected == null) {
    refill(place("worst"));
    return;
  }
  if (!place("worst-chart")) {
    refill(place("worst"), make("h2", { id: "worst-reads" }), make("div", { id: "worst-chart" }));
  }
  const { name, unit } = said.channels[i];
  const words = toBlame < 0 ? ", farthest from what the others say: " : undefined;
  const link = nodeLink(group, worst.node, worst.under);
  const reads = beside(value, expected, unit, words);
  place("worst-reads").replaceChildren(named(name), " of ", link, " reads ", ...reads);
  bandChart(place("worst-chart"), said, i);
}

async function showScores() {
  const mine = ++turn;
  let said;
  try {
    said = await scoresFor(hours ?? HOURS.at(-1));
    const age = said.at - said.first_s - said.empty * said.step_s;
    const enough = HOURS.find((each) => age <= each * 3600) ?? HOURS.at(-1);
    if (hours === null && said.nodes.length && enough !== HOURS.at(-1)) {
      said = await scoresFor(enough);
    }
    // Another choice may have been made meanwhile.
    if (mine !== turn) {
      return;
    }
    range = hours ?? enough;
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(HOURS[i] === range)));
  } catch (error) {
    if (mine === turn) {
      refill(place("scores"), problem(`No history of scores: ${error.message}.`));
    }
    return;
  }
  asked = Date.now() / 1000;
  place("silent").replaceChildren(...said.silent.map(problem));
  levels.clear();
  said.nodes.forEach((each) => levels.set(below(each.under, each.node), each.levels));
  draw();
  if (said.nodes.length === 0) {
    const when = "each machine sends them with its next report once it has a model";
    refill(place("scores"), nothing(`No scores yet: ${when}.`));
    return;
  }
  const skipped = Math.max(0, Math.min(said.empty, said.nodes[0].levels.length - LEAST_COLUMNS));
  heatmap(place("scores"), {
    label: `Highest score over its limit, ${count(said.nodes.length, "node")}${said.more ? " (there are more)" : ""}, the worst first`,
    first_s: said.first_s + skipped * said.step_s,
    step_s: said.step_s,
    rows: said.nodes.map((each) => ({
      name: each.node,
      levels: each.levels.subarray(skipped),
      href: pathOf(["node"], { group, path: each.under, node: each.node }),
      note: each.under ? `under ${each.under}` : "",
    })),
  });
}

// Levels of so many hours; `empty`: the steps before the first one in which a node had readings.
async function scoresFor(wanted) {
  const said = await get(["data", "scores", group], { hours: wanted });
  for (const each of said.nodes) {
    each.levels = levelsOf(each.levels);
  }
  const firsts = said.nodes.map(({ levels: of }) => of.findIndex((level) => level > 0));
  return { ...said, empty: Math.max(0, Math.min(...firsts.filter((i) => i >= 0))) };
}

function choose(wanted) {
  hours = wanted;
  remember("hours", wanted);
  showScores();
}

// -- a tile for each machine: how it is, and of one in alarm which channel reads what

// The machines of the fleet, the worst first; one in alarm is there before the fleet knows it.
function machines() {
  const found = fleet.rows.filter((row) => row.kind === "client").map((row) => ({ ...row, alarms: [] }));
  // One that has moved has a row at each place: its alarms are of the one that was heard last.
  const byName = new Map(found.toSorted((a, b) => a.heard_s - b.heard_s).map((each) => [each.node, each]));
  for (const alarm of alarms) {
    const machine = byName.get(alarm.node) ?? { under: "", node: alarm.node, state: "alarm", note: "", alarms: [] };
    if (!byName.has(alarm.node)) {
      byName.set(alarm.node, machine);
      found.push(machine);
    }
    machine.alarms.push(alarm);
  }
  const rank = (machine) => (machine.alarms.length ? -1 : STATES.indexOf(machine.state));
  return found.sort((a, b) => rank(a) - rank(b) || newest(b) - newest(a) || (a.node < b.node ? -1 : 1));
}

function newest({ under, node }) {
  return levels.get(below(under, node))?.findLast((level) => level >= LEAST) ?? 0;
}

function tiles(host, found) {
  const drawn = found.slice(0, MOST_TILES).map((machine) =>
    make("li", { class: machine.alarms.length ? "tile alarm" : "tile" }, ...tile(machine)),
  );
  const more = found.length - drawn.length;
  const link = make("a", { href: pathOf(["fleet"], { group }) }, `${count(more, "more machine")}: the fleet`);
  refill(host, ...drawn, ...(more > 0 ? [make("li", { class: "more" }, link)] : []));
}

function tile(machine) {
  const { under, node, alarms: open, state, note, judged } = machine;
  const link = nodeLink(group, node, under);
  link.dataset.key = `tile ${below(under, node)}`;
  const signs = new Map(open.flatMap(marks));
  const verdicts = new Set(open.map((each) => VERDICTS[each.verdict] || (each.wanted && `to be ${VERDICTS[each.wanted]}`)));
  const badges = [
    badge(open.length ? "alarm" : state, note),
    ...[...signs].map(([mark, words]) => make("span", { class: `badge ${mark}` }, words)),
    ...[...verdicts].filter(Boolean).map((words) => make("span", { class: "badge wanted" }, words)),
  ];
  const head = make("h2", {}, link, " ", ...badges);
  if (open.length) {
    return [head, ...open.flatMap(alarmLines)];
  }
  const level = newest(machine);
  return [head, nothing(level ? levelWords(level) : shown(note) || (judged ? "watched" : "no score yet"))];
}

function alarmLines(alarm) {
  const since = make("time", { datetime: new Date(alarm.began * 1000).toISOString() }, moment(alarm.began));
  const worst = alarm.worst ? `, up to ${excess(alarm.worst)}× its ${alarm.cause === "duty" ? "longest run" : "limit"}` : "";
  const cause = CAUSES[alarm.cause] ?? shown(alarm.cause);
  const verdict = make("a", { href: pathOf(["alarms"], { group, find: alarm.id }) }, "To its verdict");
  return [
    make("p", { class: "reads" }, ...reading(alarm, units)),
    nothing("since ", since, `, for ${ago(Date.now() / 1000 - alarm.began)}${worst}: ${cause}`),
    ...(alarm.looks ? [nothing(named(`looks like a ${alarm.looks}: ${alarm.evidence}`, 400))] : []),
    ...doubts(alarm).map((each) => make("p", { class: "doubt" }, shown(each, 400))),
    make("p", {}, verdict),
  ];
}
