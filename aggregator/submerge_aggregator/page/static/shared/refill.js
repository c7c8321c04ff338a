// Drawing again: what has the focus keeps it, and what is unfolded stays so.
//
// Elements are known by their `data-key`, which a view gives to what it draws more than once. If the
// one with the focus is gone, an element around it that has a key gets it (with tabindex -1).

// Keys of what had the focus and is gone: it may be drawn elsewhere next, as an alarm that is over.
let homeless = [];

/** Put elements into `host` in place of those that are there. */
export function refill(host, ...inside) {
  const focused = document.activeElement;
  if (host.contains(focused)) {
    homeless = keysAround(focused, host);
  } else if (focused !== document.body) {
    homeless = [];
  }
  const unfolded = new Set(
    [...host.querySelectorAll("details[data-key][open]")].map((each) => each.dataset.key),
  );
  host.replaceChildren(...inside);
  for (const each of host.querySelectorAll("details[data-key]")) {
    each.open ||= unfolded.has(each.dataset.key);
  }
  if (focusOn(homeless, host)) {
    homeless = [];
  }
}

/** Return the keys of an element and of those around it, the innermost first. */
export function keysAround(element, host = document.body) {
  const keys = [];
  for (let each = element; each && each !== host; each = each.parentElement) {
    keys.push(...(each.dataset.key ? [each.dataset.key] : []));
  }
  return keys;
}

/** Focus the first element that is there, of those with these keys; return whether there is one. */
export function focusOn(keys, host = document) {
  const found = keys.map((key) => keyed(key, host)).find((each) => each && !each.disabled);
  found?.focus();
  return found !== undefined;
}

function keyed(key, host) {
  return host.querySelector(`[data-key="${CSS.escape(key)}"]`);
}
