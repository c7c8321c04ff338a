// The model: what is normal for the group, how it changed, and what its alarms would miss.

import { Loadings, drill, histories, spectrum, versions } from "../parts/model.js";
import { get } from "../shared/ask.js";
import { facts, fillTable, make, nothing, place, refill, shown } from "../shared/elements.js";
import { follow, start } from "../shared/start.js";
import { ago, count, figure, moment } from "../shared/words.js";

const group = await start();
const loadings = new Loadings(place("loadings-form"), place("loadings"));
let version = null;

follow("fleet", look);

async function look() {
  const [model] = await Promise.all([
    get(["data", "model", group]).catch((error) => error),
    drill(place("drill"), group),
    versions(place("versions"), place("angles"), place("ranks"), group),
    histories(place("histories"), group),
  ]);
  place("parts").hidden = model instanceof Error;
  if (model instanceof Error) {
    version = null;
    refill(place("head"), nothing(shown(model.message)));
  } else {
    head(model, Date.now() / 1000);
    if (model.version !== version) {
      version = model.version;
      draw(model);
    }
  }
}

function head(model, now) {
  const left = model.expires_s - now;
  refill(
    place("head"),
    facts([
      ["Version of", `${moment(model.created_s)}, ${ago(now - model.created_s)} ago`],
      [
        "Expires",
        left > 0
          ? `in ${ago(left)}, if no newer one comes: nodes score by it until then`
          : make("span", { class: "problem" }, "it has expired: the root makes no newer one"),
      ],
      ["Readings learnt", count(model.learnt)],
      ["Withheld", count(model.withheld)],
      ["Lost", count(model.lost)],
      ["Nodes in it", count(model.nodes)],
      ["Rank", model.rank ? `${model.rank}: nodes score with so many directions` : "as each node's configuration says"],
      ["Privacy", model.epsilon ? `with noise: epsilon ${figure(model.epsilon)} of one row so far` : "no noise"],
      ["Limits", model.widened > 1 ? `${Math.round(100 * (model.widened - 1))} % wider than measured` : "as measured"],
      ["Fingerprint", make("code", {}, model.fingerprint.slice(0, 16))],
    ]),
  );
}

function draw(model) {
  place("left-out").textContent = model.left_out
    ? `The ${count(model.channels.length)} channels with the largest parts are shown; ${count(model.left_out)} are not.`
    : "";
  loadings.take(model);
  spectrum(place("spectrum"), model);
  const kinds = Object.entries(model.limits);
  const columns = [
    ["Share of normal rows below", (i) => `${figure(100 * model.shares[i])} %`],
    ...kinds.map(([kind, limits]) => [kind, (i) => (limits[i] === undefined ? "" : figure(limits[i])), "number"]),
  ];
  const none = "It has no limits yet: nodes have scored too few rows.";
  fillTable(place("limits"), "Limits by statistic", columns, [...model.shares.keys()], none);
}
