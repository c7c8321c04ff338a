// Now: is anything wrong, what is it, and how close to its limit each node has been.

import { heatmap } from "../charts/heatmap.js";
import { get, pathOf } from "../shared/ask.js";
import { make } from "../shared/build.js";
import { follow } from "../shared/live.js";
import { start } from "../shared/start.js";
import { shown } from "../shared/text.js";
import { watchSentences } from "../shared/watch_words.js";
import { count } from "../shared/words.js";
import { alarmCards } from "./now_alarms.js";

const HOURS = [1, 6, 24];

// How often scores are asked for again, in seconds for each hour that is shown: a dot of the screen
// is wider than what has come since.
const AGAIN_S = 12;
const LEAST_AGAIN_S = 55;

const { group } = await start();
const state = document.getElementById("state");
const watched = document.getElementById("watched");
const place = document.getElementById("scores");
const choice = document.getElementById("hours");
const given = Number(new URLSearchParams(location.search).get("hours"));
let hours = HOURS.includes(given) ? given : 24;
let alarms = [];
const under = new Map();
const units = new Map();
const cards = alarmCards(document.getElementById("open"), {
  group,
  under: (node) => under.get(node),
  unit: (channel) => units.get(channel),
});

choice.append(...HOURS.map((each) => make("button", { type: "button", click: () => choose(each) }, `${each} h`)));
pressed();
follow("alarms", showAlarms);
let [asked, turn] = [0, 0];
follow("fleet", async () => {
  cards(alarms);
  await showWatch();
});
follow("scores", async () => {
  if (Date.now() / 1000 - asked >= Math.max(LEAST_AGAIN_S, AGAIN_S * hours)) {
    await showScores();
  }
});

async function showAlarms() {
  await learnUnits();
  const open = await get(["api", "alarms"], { group, open: 1 });
  alarms = open.sort((a, b) => b.began - a.began);
  const text = alarms.length
    ? `${count(alarms.length)} open ${alarms.length === 1 ? "alarm" : "alarms"}`
    : "No open alarms";
  // Said again only if it differs: a screen reader would read it each time.
  if (state.textContent !== text) {
    state.textContent = text;
    state.className = alarms.length ? "state bad" : "state good";
  }
  cards(alarms);
}

async function showWatch() {
  const groups = await get(["api", "alarm-status"], { group });
  watched.textContent = groups.flatMap(watchSentences).join(" ");
}

// Of channels, as the group's model has them: there may be none yet.
async function learnUnits() {
  if (units.size === 0) {
    const model = await get(["data", "model", group]).catch(() => ({ channels: [], units: [] }));
    model.channels.forEach((channel, i) => units.set(channel, model.units[i]));
  }
}

async function showScores() {
  const mine = ++turn;
  let said;
  try {
    said = await get(["data", "scores", group], { hours });
  } catch (error) {
    if (mine !== turn) {
      return;
    }
    place.replaceChildren(make("p", { class: "problem" }, `No history of scores: ${error.message}.`));
    return;
  }
  // Another choice may have been made meanwhile.
  if (mine !== turn) {
    return;
  }
  asked = Date.now() / 1000;
  document.getElementById("silent").replaceChildren(
    ...said.silent.map((each) => make("p", { class: "problem" }, shown(each, 400))),
  );
  said.nodes.forEach((each) => under.set(each.node, each.under));
  cards(alarms);
  if (said.nodes.length === 0) {
    const text =
      "No scores yet. Nodes send them with their reports: the first ones come within a report interval, 5 min unless a configuration says otherwise.";
    place.replaceChildren(make("p", { class: "quiet" }, text));
    return;
  }
  heatmap(place, {
    label: `Highest score over its limit, ${count(said.nodes.length)} nodes${said.more ? " (there are more)" : ""}, the worst first`,
    first_s: said.first_s,
    step_s: said.step_s,
    rows: said.nodes.map((each) => ({
      name: each.node,
      levels: Uint8Array.from(atob(each.levels), (byte) => byte.charCodeAt(0)),
      href: pathOf(["node"], { group, path: each.under, node: each.node }),
      note: each.under ? `under ${each.under}` : "",
    })),
  });
}

function choose(wanted) {
  hours = wanted;
  const query = new URLSearchParams(location.search);
  query.set("hours", wanted);
  history.replaceState(null, "", `?${query}`);
  pressed();
  showScores();
}

function pressed() {
  [...choice.children].forEach((button, i) => {
    button.setAttribute("aria-pressed", String(HOURS[i] === hours));
  });
}
