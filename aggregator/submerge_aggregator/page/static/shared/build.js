// Elements: text goes in as text, whatever it contains.

/** Return an element: `attributes` by name (a function is a listener), then what is in it. */
export function make(tag, attributes = {}, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      element.addEventListener(name, value);
    } else if (value !== false && value != null) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...inside);
  return element;
}
