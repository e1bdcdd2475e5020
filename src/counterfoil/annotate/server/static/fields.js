// The fields of an item: drawn from their declaration, filled in by pointer or keyboard, read as shown positions.

import { captionLanguage, make, say } from "./elements.js";
import { SpansField } from "./spans.js";

/** Milliseconds before an image is asked for again, at first; how often; and after which one is late. */
const AGAIN = 500;
const RETRIES = 3;
const LATE = 15000;

/** The images of an item, which is answered once all of them are there; `changed` is called as they come. */
export class Images {
  constructor(changed) {
    this.changed = changed;
    this.count = 0;
    this.all = new Map();
  }

  add(image, source) {
    this.all.set(image, { source, state: "waiting", tries: 0 });
    image.addEventListener("load", () => this.#turn(image, "loaded"));
    image.addEventListener("error", () => this.#again(image));
    this.#ask(image, source);
  }

  retry() {
    for (const [image, each] of this.all) {
      if (each.state !== "failed") continue;
      each.tries = 0;
      each.state = "waiting";
      this.#ask(image, `${each.source}?again=${Date.now()}`);
    }
    this.changed();
  }

  get failed() {
    return [...this.all.values()].some((each) => each.state === "failed");
  }

  get loaded() {
    return [...this.all.values()].every((each) => each.state === "loaded");
  }

  #ask(image, source) {
    image.src = source;
    setTimeout(() => { if (this.all.get(image).state === "waiting") this.#turn(image, "failed"); }, LATE);
  }

  #again(image) {
    const each = this.all.get(image);
    if (each.tries >= RETRIES) return this.#turn(image, "failed");
    each.tries += 1;
    setTimeout(() => this.#ask(image, `${each.source}?again=${each.tries}`), AGAIN * 2 ** (each.tries - 1));
    return undefined;
  }

  #turn(image, state) {
    this.all.get(image).state = state;
    image.classList.toggle("missing", state === "failed");
    this.changed();
  }
}

/** An image with a button that enlarges it. Descriptions would give answers away, so names are neutral. */
export function picture(source, name, { zoom, images }) {
  const image = make("img", { alt: name, decoding: "async", draggable: "false" });
  images.add(image, source);
  const button = make("button", { type: "button", class: "zoom", "aria-label": say("enlarge", { image: name }) }, "⤢");
  button.addEventListener("click", () => zoom(image));
  return { image, button };
}

class OptionsField {
  constructor(field, context) {
    this.field = field;
    this.kind = field.kind === "one" ? "radio" : "checkbox";
    this.inputs = field.options.map((_, at) =>
      make("input", { type: this.kind, name: field.name, value: at, id: `${field.name}-${at}` }));
    const has = (what) => field.options.some((option) => option[what].length);
    const shape = has("images") ? "pictures" : has("texts") ? "long" : "plain";
    this.element = make("fieldset", { "data-name": field.name },
      make("legend", {}, field.prompt),
      make("div", { class: `options ${shape}` }, ...field.options.map((option, at) => this.#option(option, at, context))));
  }

  #option(option, at, context) {
    const { images } = context;
    const parts = [];
    let enlarge = null;
    for (const source of option.images) {
      images.count += 1;
      const { image, button } = picture(source, say("image", { n: images.count }), context);
      parts.push(image);
      // Beside the first, whose enlargement leads on to the others.
      enlarge ??= button;
    }
    for (const text of option.texts) parts.push(make("span", { class: "text", lang: captionLanguage }, text));
    if (option.label) parts.push(make("span", { class: "label" }, option.label));
    const digit = at < 10 ? make("kbd", { "aria-hidden": "true" }, String((at + 1) % 10)) : null;
    const classes = ["option", option.images.length ? "with-image" : ""].join(" ");
    return make("div", { class: classes },
      make("label", { for: this.inputs[at].id }, this.inputs[at], digit, make("span", { class: "content" }, ...parts)),
      enlarge);
  }

  get value() {
    const chosen = this.inputs.flatMap((input, at) => (input.checked ? [at] : []));
    return this.field.kind === "many" ? chosen : chosen[0];
  }

  restore(value) {
    for (const at of [value].flat()) if (this.inputs[at]) this.inputs[at].checked = true;
  }

  get empty() {
    return !this.inputs.some((input) => input.checked);
  }

  digit(at) {
    const input = this.inputs[at];
    if (!input) return false;
    input.checked = this.kind === "radio" || !input.checked;
    input.focus();
    input.dispatchEvent(new Event("change", { bubbles: true }));
    return true;
  }

  focus() {
    (this.inputs.find((input) => input.checked) ?? this.inputs[0]).focus();
  }
}

class TextField {
  constructor(field) {
    this.field = field;
    this.input = make("textarea", { id: `${field.name}-text`, rows: 2, maxlength: field.longest, autocomplete: "off", lang: captionLanguage });
    this.element = make("fieldset", { "data-name": field.name, class: "writing" },
      make("label", { for: this.input.id }, field.prompt), this.input);
  }

  get value() {
    return this.input.value.trim();
  }

  restore(value) {
    this.input.value = value;
  }

  get empty() {
    return !this.value;
  }

  digit() {
    return false;
  }

  focus() {
    this.input.focus();
  }
}

const KINDS = { one: OptionsField, many: OptionsField, text: TextField, spans: SpansField };

/** All fields of a page, of which those are open that the answers so far ask for. */
export class Fields {
  constructor(item, context) {
    this.all = item.fields.map((field) => new KINDS[field.kind](field, { ...context, item }));
    this.element = make("div", { class: "fields" }, ...this.all.map((each) => each.element));
    this.element.addEventListener("change", () => this.open());
    this.open();
  }

  /** Show the fields that are open and hide the others; the answer of the open ones. */
  open() {
    const answer = {};
    for (const each of this.all) {
      const asked = Object.entries(each.field.when).every(([name, places]) =>
        [answer[name]].flat().some((place) => places.includes(place)));
      each.element.hidden = each.element.disabled = !asked;
      if (asked && !each.empty) answer[each.field.name] = each.value;
    }
    return answer;
  }

  /** What is filled in so far, hidden fields among it. */
  get draft() {
    return Object.fromEntries(this.all.filter((each) => !each.empty).map((each) => [each.field.name, each.value]));
  }

  restore(draft) {
    for (const each of this.all) if (each.field.name in draft) each.restore(draft[each.field.name]);
    this.open();
  }

  get opened() {
    return this.all.filter((each) => !each.element.hidden);
  }

  /** The first open field without an answer that must have one. */
  get lacking() {
    return this.opened.find((each) => each.field.required && each.empty);
  }

  /** The field that digits go to: the one with the focus, else the first to be filled in, else the last. */
  get current() {
    const withOptions = this.opened.filter((each) => each.field.kind !== "text");
    return withOptions.find((each) => each.element.contains(document.activeElement))
      ?? withOptions.find((each) => each.empty) ?? withOptions.at(-1);
  }

  /** The field after another that is open and empty. */
  after(field) {
    return this.opened.slice(this.opened.indexOf(field) + 1).find((each) => each.empty);
  }

  /** One choice is the whole answer, so that making it can send it. */
  get single() {
    return this.all.length === 1 && this.all[0].field.kind === "one" && this.all[0].field.required;
  }

  /** Whether the server could refuse what was written or marked: then it is heard before the page goes on. */
  get free() {
    return this.all.some((each) => ["text", "spans"].includes(each.field.kind));
  }
}
