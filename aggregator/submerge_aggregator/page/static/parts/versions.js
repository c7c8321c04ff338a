// Versions of a model: how far each turned from the one before, and ranks, the model's and nodes' own.

import { series } from "../charts/series.js";
import { make } from "../shared/build.js";
import { askFor, named, nothing } from "../shared/named.js";
import { fillTable } from "../shared/table.js";
import { figure, moment } from "../shared/words.js";

const MOST = 20;

/** Ask for the versions of a group and draw them. */
export async function versions(host, angles, ranks, group) {
  const found = (await askFor(host, ["api", "versions", group]))?.versions;
  angles.hidden = ranks.hidden = !(found?.length > 1);
  if (!found) {
    return;
  }
  const all = found.toReversed();
  const times = all.map((each) => each.created_s);
  const line = (name, value) => ({ name, values: all.map(value) });
  if (!ranks.hidden) {
    const label = "Largest angle between a version and the one before";
    series(angles, { label, unit: "°", times, lines: [line("angle", (each) => each.angle_deg)] });
    // An earlier release kept no ranks of nodes.
    const names = [...new Set(all.flatMap((each) => Object.keys(each.ranks ?? {})))];
    const own = names.map((name) => line(name, (each) => each.ranks?.[name] ?? null));
    const lines = [line("model", (each) => each.rank), ...own];
    series(ranks, { label: "Rank of the model, and ranks that nodes chose", times, lines, zero: true });
  }
  const rows = found
    .slice(0, MOST)
    .map((each) => [
      moment(each.created_s),
      each.rank,
      each.nodes,
      each.readings,
      { number: each.angle_deg === null ? "not known" : `${figure(each.angle_deg)}°` },
      { number: each.spectrum.slice(0, 5).map(figure).join(", ") },
    ]);
  const headings = ["Version of", "Rank", "Nodes", "Readings", "Angle to the one before"];
  headings.push("Variance by direction");
  fillTable(host, "Versions of the model", headings, rows, "The history has no version yet.");
  if (found.length > MOST) {
    host.append(nothing(`${found.length - MOST} older ones are in the chart alone.`));
  }
}

/** Ask for the histories that a group merges and draw them. */
export async function histories(host, group) {
  const found = await askFor(host, ["api", "histories", group]);
  if (!found) {
    return;
  }
  const day = (seconds) => (seconds === null ? "?" : moment(seconds).slice(0, 10));
  const rows = found.map((each) => [
    named(each.name),
    each.rows,
    { number: figure(each.counts_for) },
    { number: each.most_rows === null ? "" : figure(each.most_rows) },
    { number: `${Math.round(100 * each.left)} %` },
    `${day(each.first_s)} to ${day(each.last_s)}`,
    named(each.machines.join(", ")),
    named(each.origin || each.files.join(", ")),
    moment(each.pushed_s),
    each.current ? "in the model" : "of another schema: in no model",
  ]);
  const headings = ["History", "Rows", "Counts for", "At most", "Left by its age", "Its time"];
  headings.push("Machines", "From", "Pushed", "State");
  const none = ["None: the model holds what nodes have reported. ", make("code", {}, "submerge model push"), " adds one."];
  fillTable(host, "Histories that the model holds", headings, rows, ...none);
}
