// Orders: a button, a dialog that says what will happen, and a line on how far the order has got.
//
// An order is an object:
//   key       names its button
//   label     on the button; `title` in the dialog
//   says      what will happen, in a sentence; `cannot`: what cannot be undone, or ""
//   scope     that it needs
//   parts, query   where it is sent
//   danger    whether it takes something away
//   before    returns what `done` compares with; may be left out
//   done      returns whether the node, or its aggregator, has confirmed it
//
// It is sent, taken when the aggregator has it in its store, and done when it is confirmed.

import { leave, loginPath, meta, post } from "./ask.js";
import { focusOn, keysAround, make, place, shown } from "./elements.js";

const SCOPES = ["read", "judge", "operate"];
const LOOK_S = [0.3, 0.5, 1, 1, 2];
const PATIENCE_S = 120;
const MOST_LINES = 5;
const LEFT = "submerge-order-left";

/** The name of an event of the document: an order was taken, or done. */
export const ORDERED = "submerge-ordered";

/** Return why the viewer may not give orders of a scope; "" if they may. */
export function whyNot(scope) {
  const may = SCOPES.indexOf(meta("scope")) >= SCOPES.indexOf(scope);
  return may ? "" : `To give this order, log in with a token of scope ${scope}.`;
}

/** Return a paragraph that says so, for above the buttons; nothing if they may. */
export function reason(scope) {
  const why = whyNot(scope);
  const link = make("a", { href: loginPath() }, "Log in");
  return why ? [make("p", { class: "quiet", id: `why-${scope}` }, `${why} `, link)] : [];
}

/** Return the button of an order; `reason` says above it why it is disabled. */
export function orderButton(order) {
  const why = whyNot(order.scope);
  return make(
    "button",
    {
      type: "button",
      class: order.danger ? "danger" : false,
      "data-key": order.key,
      "aria-haspopup": "dialog",
      "aria-describedby": why ? `why-${order.scope}` : false,
      title: why || false,
      disabled: Boolean(why),
      click: (event) => ask(order, keysAround(event.currentTarget)),
    },
    order.label,
  );
}

// -- the dialog

// `keys`: where the focus is to be afterwards.
function ask(order, keys) {
  const problem = make("p", { class: "problem", role: "alert" });
  const kind = order.danger ? "danger main" : "main";
  const confirm = make("button", { type: "button", class: kind, click: give }, order.label);
  const cancel = make("button", { type: "button", autofocus: true, click: () => dialog.close() }, "Cancel");
  const dialog = make(
    "dialog",
    { class: "order", "aria-labelledby": "order-title", "aria-describedby": "order-says" },
    make("h2", { id: "order-title" }, order.title),
    make(
      "div",
      { id: "order-says" },
      make("p", {}, order.says),
      ...(order.cannot ? [make("p", { class: "cannot" }, order.cannot)] : []),
    ),
    problem,
    make("div", { class: "orders" }, cancel, confirm),
  );
  dialog.addEventListener("close", () => {
    dialog.remove();
    // The view may have been drawn again meanwhile.
    focusOn(keys);
  });
  document.body.append(dialog);
  dialog.showModal();

  async function give() {
    confirm.disabled = true;
    problem.textContent = "";
    const line = write(order, "sent");
    try {
      const before = await order.before?.();
      await post(order.parts, order.query);
      dialog.close();
      follow(order, before, line);
    } catch (error) {
      line.remove();
      if (error.status === 401) {
        // A session that is over: log in, and come back here.
        sessionStorage.setItem(LEFT, order.title);
        leave();
        return;
      }
      problem.textContent = `It was refused: ${shown(error.message)}`;
      confirm.disabled = false;
      confirm.focus();
    }
  }
}

// -- how far it is

const region = { "aria-label": "Orders given here", "aria-live": "polite" };
const lines = make("section", { id: "given", class: "given", ...region });
place("main").prepend(lines);
const left = sessionStorage.getItem(LEFT);
if (left) {
  sessionStorage.removeItem(LEFT);
  const words = `${left}: not ordered, for the session was over. Give the order again.`;
  // A live region is read out when it changes, not when it comes.
  setTimeout(() => lines.append(make("p", { "data-state": "refused" }, words)), 500);
}

const WORDS = {
  sent: "sent",
  taken: "taken, on its way",
  done: "done",
  late:
    "taken, not confirmed yet. It arrives when the nodes on the way are reached again; this page" +
    " shows it then.",
};

function write(order, state, line = make("p", { "aria-atomic": "true" })) {
  line.dataset.state = state;
  line.textContent = `${order.title}: ${WORDS[state]}`;
  if (!line.isConnected) {
    lines.prepend(line);
    lines.children[MOST_LINES]?.remove();
  }
  return line;
}

async function follow(order, before, line) {
  write(order, "taken", line);
  document.dispatchEvent(new Event(ORDERED));
  const until = Date.now() + 1000 * PATIENCE_S;
  for (let turn = 0; Date.now() < until; turn++) {
    await new Promise((go) => setTimeout(go, 1000 * (LOOK_S[turn] ?? 3)));
    // An aggregator that cannot be asked says nothing of the order.
    if (document.visibilityState === "visible" && (await order.done(before).catch(() => false))) {
      write(order, "done", line);
      document.dispatchEvent(new Event(ORDERED));
      return;
    }
  }
  write(order, "late", line);
}
