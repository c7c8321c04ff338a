// Questions and orders to the aggregator, as JSON.

// A question that was refused, in the aggregator's words; `status` is 0 without an answer.
class Refused extends Error {
  constructor(why, status) {
    super(why);
    this.status = status;
  }
}

/** Return what a `meta` element of the page says. */
export function meta(name) {
  return document.querySelector(`meta[name="submerge-${name}"]`)?.content ?? "";
}

/** Return a path below the page: its parts are escaped, empty values of the query left out. */
export function pathOf(parts, query = {}) {
  const known = Object.entries(query).filter(([, value]) => value !== "" && value != null);
  const asked = new URLSearchParams(known).toString();
  return "/" + parts.map(encodeURIComponent).join("/") + (asked ? `?${asked}` : "");
}

/** Return the path of a node below the aggregators above it, with slashes between. */
export function below(above, node) {
  return above ? `${above}/${node}` : node;
}

/** Ask, and return the answer. */
export function get(parts, query) {
  return send("GET", pathOf(parts, query));
}

/** Give an order, and return the answer. */
export function post(parts, query) {
  return send("POST", pathOf(parts, query));
}

/** Return where one logs in, and comes back from to this page. */
export function loginPath() {
  const { pathname, search, hash } = location;
  return `/login?back=${encodeURIComponent(pathname + search + hash)}`;
}

let leaving = false;

/** Go where one logs in; several questions that are refused lead there once. */
export function leave() {
  if (!leaving) {
    leaving = true;
    location.assign(loginPath());
  }
}

async function send(method, path) {
  const headers = method === "GET" ? {} : { "x-submerge-proof": meta("proof") };
  let answer;
  try {
    answer = await fetch(path, { method, headers, redirect: "error" });
  } catch {
    throw new Refused("the aggregator does not answer", 0);
  }
  const said = await answer.json().catch(() => ({}));
  if (answer.status === 401 && method === "GET") {
    // A page that was left open until its session was over, where looking needs one, too.
    leave();
  }
  if (!answer.ok) {
    throw new Refused(said.error ?? `status ${answer.status}`, answer.status);
  }
  return said;
}

let units = new Map();

/** Return the units of a group's channels by their names, as its model has them: none before there is one. */
export async function unitsOf(group) {
  if (!units.size) {
    const model = await get(["data", "model", group]).catch(() => ({ channels: [], units: [] }));
    units = new Map(model.channels.map((channel, i) => [channel, model.units[i]]));
  }
  return units;
}
