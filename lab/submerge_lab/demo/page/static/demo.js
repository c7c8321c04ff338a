// The demo's view: its processes, orders to them, and the line, once a second.

import { get, post } from "/static/shared/ask.js";
import { make } from "/static/shared/build.js";
import { start } from "/static/shared/start.js";
import { ago, count } from "/static/shared/words.js";

const EVERY_MS = 1000;
const VERBS = ["kill", "stop", "start"];
const SAID = { kill: "SIGKILL", stop: "SIGTERM", start: "" };
const rows = new Map();

const at = (id) => document.getElementById(id);

function set(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

async function draw() {
  const state = await get(["data", "demo"]);
  set(at("day"), `Day ${state.day.toFixed(1)} of the room.`);
  if (state.line) {
    drawLine(state.line);
  }
  const depth = new Map();
  for (const each of state.processes) {
    depth.set(each.name, each.parent ? (depth.get(each.parent) ?? 0) + 1 : 0);
    drawProcess(each, state.at, depth.get(each.name));
  }
}

function drawLine(line) {
  const terms = `fed ${count(line.fed)} = counted ${count(line.counted)} + under way ${count(line.under_way)} + declared lost ${count(line.lost)}`;
  const verdict = line.holds ? "holds" : line.off ? `does not hold: off by ${count(line.off)}` : "does not hold";
  set(at("line"), `${terms}: ${verdict}`);
  at("line").dataset.holds = line.holds ? "yes" : "no";
  at("wrong").replaceChildren(...line.wrong.map((each) => make("p", {}, each)));
  for (const cell of document.querySelectorAll("[data-part]")) {
    set(cell, count(line[cell.dataset.part]));
  }
  set(
    at("compared"),
    `In the last round the words of ${count(line.compared)} clients were compared with their aggregator's count of the same report.`,
  );
}

function drawProcess(process, now, depth) {
  let row = rows.get(process.name);
  if (!row) {
    row = newRow(process, depth);
    rows.set(process.name, row);
    at("processes").append(row.element);
  }
  set(row.state, process.why ? `${process.state}: ${process.why}` : process.state);
  row.element.dataset.state = process.state;
  set(row.since, process.since_s ? ago(now - process.since_s) : "");
  set(row.pid, process.pid === null ? "" : String(process.pid));
  for (const verb of VERBS) {
    // A disabled button would lose the focus: it stays, and says that it does nothing.
    row.buttons[verb].setAttribute("aria-disabled", String(!process.verbs.includes(verb)));
  }
}

function newRow(process, depth) {
  const state = make("td");
  const since = make("td");
  const pid = make("td", { class: "number" });
  const buttons = {};
  for (const verb of VERBS) {
    buttons[verb] = make(
      "button",
      {
        type: "button",
        title: SAID[verb],
        "aria-label": `${verb} ${process.name}`,
        click: () => order(verb, process.name, buttons[verb]),
      },
      verb,
    );
  }
  const element = make(
    "tr",
    {},
    make("th", { scope: "row", class: `demo-below-${depth}` }, process.name),
    make("td", {}, process.parent),
    state,
    since,
    pid,
    make("td", {}, make("div", { class: "demo-orders" }, ...VERBS.map((verb) => buttons[verb]))),
  );
  return { element, state, since, pid, buttons };
}

async function order(verb, name, button) {
  if (button.getAttribute("aria-disabled") === "true") {
    return;
  }
  try {
    await post(["demo", name, verb]);
    set(at("order"), `${verb} ${name}: sent`);
    await draw();
  } catch (error) {
    set(at("order"), error.message);
  }
}

async function go() {
  if (document.visibilityState !== "hidden") {
    await draw().catch((error) => set(at("order"), error.message));
  }
  setTimeout(go, EVERY_MS);
}

go();
start();
