// Elements built from data as text alone: nothing from the server is ever read as HTML by a script.

export const words = JSON.parse(document.getElementById("words").textContent);

/** The page's words under a name, with {places} filled in. */
export function say(name, values = {}) {
  return words[name].replace(/\{(\w+)\}/g, (_, key) => values[key]);
}

/** An element with attributes (functions are listeners, true is an empty attribute) and children. */
export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

/** An id that nothing else has; crypto.randomUUID is missing where a page does not come over https. */
export function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The language of captions, which may be another than the page's own. */
export const captionLanguage = document.body.dataset.captions;
