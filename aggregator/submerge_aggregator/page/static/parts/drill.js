// Drills: which faults the alarms would find, by channel.

import { make } from "../shared/build.js";
import { askFor, named, nodeLink, nothing } from "../shared/named.js";
import { refill } from "../shared/refill.js";
import { table } from "../shared/table.js";
import { figure, moment } from "../shared/words.js";

const SIZED = ["bias", "drift", "noise"];

/** Ask what drills have found out and draw it. */
export async function drill(host, group) {
  const found = await askFor(host, ["api", "drills", group]);
  if (!found?.nodes.length) {
    if (found) {
      refill(host, nothing("No node has drilled since the aggregator began: the view of a node has the order."));
    }
    return;
  }
  const several = found.nodes.length > 1;
  const channels = found.channels.map((each) => [
    make("span", {}, named(each.channel), ...(each.unit ? [" (", named(each.unit), ")"] : [])),
    ...SIZED.map((kind) => ({ number: size(each[kind], several) })),
    { number: share(each.stuck) },
    { number: share(each.swap) },
    { number: each.r2.toFixed(2) },
    each.blind ? make("span", { class: "badge warn" }, blind(each)) : "",
  ]);
  const headings = ["Channel", "Bias", "Drift", "Noise", "Stuck", "Swap", "R2", "Blind"];
  const nodes = found.nodes.map((each) => [
    nodeLink(group, each.node),
    moment(each.at),
    each.rows,
    each.tries,
    each.within,
    each.blind,
  ]);
  refill(
    host,
    table("Smallest faults that are found, by channel", headings, channels),
    make("h3", {}, "Nodes that have drilled"),
    table(
      "Nodes that have drilled",
      ["Node", "When", "Rows", "Tries of each fault", "Found within rows", "Blind channels"],
      nodes,
    ),
  );
}

function size({ median, worst }, several) {
  const said = (value) => (value === null ? "none" : figure(value));
  return several ? `${said(median)} (${said(worst)})` : said(median);
}

function share(value) {
  return value === null ? "" : `${Math.round(100 * value)} %`;
}

function blind({ blind: n, nodes }) {
  return nodes > 1 ? `blind at ${n} of ${nodes}` : "blind";
}
