// The configuration of a node, as it says itself; secrets are left out there already.

import { below, get } from "../shared/ask.js";
import { make } from "../shared/build.js";
import { nothing, problem } from "../shared/named.js";
import { whyNot } from "../shared/orders.js";
import { refill } from "../shared/refill.js";
import { shown } from "../shared/text.js";

const MOST = 1000;

/** Have a button ask a node for its settings. */
export function settings(button, host, { group, path, node }) {
  // They say how a machine is reached, and where its files are.
  button.disabled = Boolean(whyNot("judge"));
  if (button.disabled) {
    host.replaceChildren(nothing("To see them, log in with a token of scope judge."));
  }
  button.addEventListener("click", async () => {
    button.disabled = true;
    host.setAttribute("aria-busy", "true");
    try {
      const said = await get(["api", "settings", group], { path: below(path, node) });
      refill(host, tree(said.settings ?? said, { left: MOST }));
    } catch (error) {
      refill(host, problem(error));
    }
    host.setAttribute("aria-busy", "false");
    button.disabled = false;
    button.textContent = "Ask again";
  });
}

// A value: of a table, a list of its keys. `budget` bounds what a hostile node may have drawn.
function tree(value, budget) {
  if (value === null || typeof value !== "object") {
    return make("code", {}, shown(typeof value === "string" ? value : JSON.stringify(value)));
  }
  const items = [];
  for (const [key, inside] of Object.entries(value)) {
    if (budget.left-- <= 0) {
      items.push(make("li", {}, "… and more"));
      break;
    }
    const name = Array.isArray(value) ? [] : [make("bdi", { class: "key" }, shown(key)), ": "];
    items.push(make("li", {}, ...name, tree(inside, budget)));
  }
  return items.length ? make("ul", { class: "tree" }, ...items) : make("code", {}, "none");
}
