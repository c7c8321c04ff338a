// Now: is anything wrong, how each machine is, and how close to its limit each has been.

import { heatmap } from "../charts/heatmap.js";
import { levelsOf } from "../charts/levels.js";
import { bandChart, strangest, valuesInTime } from "../parts/values.js";
import { machines, tiles } from "../parts/tiles.js";
import { below, get, pathOf } from "../shared/ask.js";
import { make } from "../shared/build.js";
import { beside, blamed, isIncident } from "../shared/causes.js";
import { follow } from "../shared/live.js";
import { whileLooked } from "../shared/looked.js";
import { named, nodeLink, nothing, problem, unitsOf } from "../shared/named.js";
import { refill } from "../shared/refill.js";
import { start } from "../shared/start.js";
import { headline, watchSentences } from "../shared/watch_words.js";
import { count } from "../shared/words.js";

const HOURS = [1, 6, 24];

// Columns that are left of a picture whose first part has nothing.
const LEAST_COLUMNS = 10;

// How often scores are asked for again, in seconds for each hour that is shown: a dot of the screen
// is wider than what has come since.
const AGAIN_S = 12;
const LEAST_AGAIN_S = 55;
const VALUES_S = 5;

const place = (id) => document.getElementById(id);
const { group } = await start();
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
  // Said again only if it differs: a screen reader would read it each time.
  if (place("state").textContent !== text) {
    place("state").textContent = text;
    place("state").className = `state ${kind}`;
  }
  tiles(place("machines"), machines({ ...fleet, alarms, levels }), { group, levels, units });
}

// The worst channel of the worst machine against the band in which the others expect it.
async function showWorst() {
  if (!alarms) {
    return;
  }
  const [worst] = machines({ ...fleet, alarms, levels }).filter((each) => each.alarms.length || each.judged);
  if (!worst) {
    refill(place("worst"));
    return;
  }
  const path = below(worst.under, worst.node);
  const said = valuesInTime(await get(["api", "values", group], { path }));
  const [first] = worst.alarms.flatMap(blamed);
  const toBlame = said.channels.findIndex((each) => each.name === first);
  const i = toBlame < 0 ? strangest(said)[0] : toBlame;
  const [value, expected] = [said.values[i]?.at(-1), said.expected[i]?.at(-1)];
  if (value == null || expected == null) {
    refill(place("worst"));
    return;
  }
  if (!place("worst-chart")) {
    refill(place("worst"), make("h2", { id: "worst-reads" }), make("div", { id: "worst-chart" }));
  }
  const { name, unit } = said.channels[i];
  const words = toBlame < 0 ? ", farthest from what the others say: " : undefined;
  const reads = beside(value, expected, unit, words);
  place("worst-reads").replaceChildren(
    named(name), " of ", nodeLink(group, worst.node, worst.under), " reads ", ...reads,
  );
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
    pressed(range);
  } catch (error) {
    if (mine === turn) {
      refill(place("scores"), problem({ message: `No history of scores: ${error.message}.` }));
    }
    return;
  }
  asked = Date.now() / 1000;
  place("silent").replaceChildren(...said.silent.map((each) => problem({ message: each })));
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
  const query = new URLSearchParams(location.search);
  query.set("hours", wanted);
  history.replaceState(null, "", `?${query}`);
  showScores();
}

function pressed(shown) {
  buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(HOURS[i] === shown)));
}
