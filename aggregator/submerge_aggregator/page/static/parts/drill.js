// Drills: which faults the alarms would find, by channel, and the order to try it.

import { drillOrder } from "./node_orders.js";
import { get } from "../shared/ask.js";
import { make } from "../shared/build.js";
import { named, nodeLink, nothing, problem } from "../shared/named.js";
import { orderButton, reason } from "../shared/orders.js";
import { refill } from "../shared/refill.js";
import { table } from "../shared/table.js";
import { figure, moment } from "../shared/words.js";

const SIZED = ["bias", "drift", "noise"];

/** Ask what drills have found out and draw it. */
export async function drill(host, group) {
  let found;
  try {
    found = await get(["api", "drills", group]);
  } catch (error) {
    refill(host, problem(error));
    return;
  }
  if (!found.nodes.length) {
    refill(host, nothing("No node has drilled since the aggregator began: order one to."));
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

/** Draw the form that has a node drill; `rows` of the fleet. */
export function drillForm(host, group, rows, done) {
  const clients = rows.filter((each) => each.kind === "client");
  const names = make("datalist", { id: "clients" });
  names.append(...clients.slice(0, 2000).map((each) => make("option", { value: each.node })));
  const choice = make("input", { list: "clients", "data-key": "drill-node", autocomplete: "off" });
  choice.value = host.querySelector("input")?.value ?? clients[0]?.node ?? "";
  const button = make("span", {});
  const offer = () => {
    const row = clients.find((each) => each.node === choice.value.trim());
    if (!row) {
      button.replaceChildren(make("span", {}, " Name a client of the fleet."));
      return;
    }
    const order = drillOrder({ group, path: row.under, node: row.node });
    const after = async (before) => {
      const is = await order.done(before);
      if (is) {
        await done();
      }
      return is;
    };
    button.replaceChildren(orderButton({ ...order, label: "Start a drill", done: after }));
  };
  choice.addEventListener("input", offer);
  offer();
  refill(host, ...reason("operate"), make("label", {}, "Node ", choice), " ", button, names);
}
