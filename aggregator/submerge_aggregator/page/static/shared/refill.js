// Drawing again: what has the focus keeps it, and what is unfolded stays so.
//
// Elements are known by their `data-key`, which a view gives to what it draws more than once.

/** Put elements into `host` in place of those that are there. */
export function refill(host, ...inside) {
  const key = host.contains(document.activeElement) ? document.activeElement.dataset.key : "";
  const unfolded = new Set(
    [...host.querySelectorAll("details[data-key][open]")].map((each) => each.dataset.key),
  );
  host.replaceChildren(...inside);
  for (const each of host.querySelectorAll("details[data-key]")) {
    each.open ||= unfolded.has(each.dataset.key);
  }
  if (key) {
    keyed(key, host)?.focus();
  }
}

/** Return the element with a key below `host`. */
export function keyed(key, host = document) {
  return host.querySelector(`[data-key="${CSS.escape(key)}"]`);
}
