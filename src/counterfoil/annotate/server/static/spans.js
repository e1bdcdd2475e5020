// Parts of a text, each with a label: words chosen by pointer or keyboard, places counted in characters.

import { captionLanguage, make, say } from "./elements.js";

/** Words as [start, end) in characters of Unicode, which is how the server counts them. */
export function wordsOf(text, language) {
  const found = [];
  const count = (part) => Array.from(part).length;
  if (window.Intl?.Segmenter) {
    let at = 0;
    for (const { segment, isWordLike } of new Intl.Segmenter(language || undefined, { granularity: "word" }).segment(text)) {
      const end = at + count(segment);
      if (isWordLike) found.push([at, end]);
      at = end;
    }
  } else {
    for (const match of text.matchAll(/\S+/g)) {
      const start = count(text.slice(0, match.index));
      found.push([start, start + count(match[0])]);
    }
  }
  return found;
}

export class SpansField {
  constructor(field, { item }) {
    this.field = field;
    this.characters = Array.from(item.shown.find((each) => each.kind === "text" && each.label === field.text)?.content ?? "");
    const text = this.characters.join("");
    this.places = wordsOf(text, captionLanguage);
    this.spans = [];
    this.anchor = this.end = null;
    this.words = this.places.map(([start, end], at) => this.#word(start, end, at));
    const line = make("p", { class: "marking", role: "group", "aria-label": field.text || say("text"), lang: captionLanguage });
    let before = 0;
    for (const [at, [start, end]] of this.places.entries()) {
      line.append(this.characters.slice(before, start).join(""), this.words[at]);
      before = end;
    }
    line.append(this.characters.slice(before).join(""));
    line.addEventListener("keydown", (event) => this.#key(event));
    this.labels = field.options.map((option, at) =>
      make("button", { type: "button", class: "mark", click: () => this.digit(at) }, make("kbd", { "aria-hidden": "true" }, String(at + 1)), option.label));
    this.remove = make("button", { type: "button", class: "mark", click: () => this.#unmark() }, make("kbd", { "aria-hidden": "true" }, "⌫"), say("unmark"));
    this.heard = make("p", { class: "unseen", role: "status" });
    this.list = make("ul", { class: "marked" });
    this.element = make("fieldset", { "data-name": field.name, class: "spans" },
      make("legend", {}, field.prompt), make("p", { class: "hint" }, say("mark_hint")), line,
      make("div", { class: "marks" }, ...this.labels, this.remove), this.list, this.heard);
    this.#draw();
  }

  #word(start, end, at) {
    const word = make("button", { type: "button", class: "word", tabindex: at ? "-1" : "0" }, this.characters.slice(start, end).join(""));
    word.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "mouse") return;
      this.#choose(at, event.shiftKey);
      this.dragging = true;
      window.addEventListener("pointerup", () => { this.dragging = false; }, { once: true });
    });
    word.addEventListener("pointerenter", (event) => { if (this.dragging && event.buttons) this.#choose(at, true); });
    word.addEventListener("click", (event) => {
      if (event.pointerType === "mouse") return;
      // A second tap chooses as far as there; a key chooses one word.
      const touched = event.pointerType === "touch" || event.pointerType === "pen";
      this.#choose(at, touched && this.anchor !== null && this.anchor === this.end);
    });
    return word;
  }

  #choose(at, extend) {
    if (!extend || this.anchor === null) this.anchor = at;
    this.end = at;
    this.words.forEach((word, place) => { word.tabIndex = place === at ? 0 : -1; });
    this.words[at].focus();
    this.#draw();
  }

  #key(event) {
    const at = this.words.indexOf(document.activeElement);
    if (at < 0) return;
    const last = this.words.length - 1;
    const moves = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last };
    if (event.key in moves) {
      event.preventDefault();
      // The first word that is extended from is the one with the focus, chosen or not.
      if (event.shiftKey && this.anchor === null) this.anchor = at;
      this.#choose(Math.max(0, Math.min(last, moves[event.key])), event.shiftKey);
    } else if (event.key === "Backspace" || event.key === "Delete") {
      event.preventDefault();
      this.#unmark();
    }
  }

  /** The characters of the words that were chosen, null for none. */
  get chosen() {
    if (this.anchor === null) return null;
    const [first, last] = [Math.min(this.anchor, this.end), Math.max(this.anchor, this.end)];
    return [this.places[first][0], this.places[last][1]];
  }

  /** The characters to mark: the words that were chosen, else the one with the focus. */
  get aim() {
    const focus = this.words.indexOf(document.activeElement);
    return this.chosen ?? (focus < 0 ? null : this.places[focus]);
  }

  #set(spans) {
    this.spans = spans.sort((a, b) => a.start - b.start);
    this.anchor = this.end = null;
    this.#draw();
    this.element.dispatchEvent(new Event("change", { bubbles: true }));
  }

  #outside([start, end]) {
    return this.spans.filter((span) => span.end <= start || span.start >= end);
  }

  digit(label) {
    if (!this.field.options[label]) return false;
    const aim = this.aim;
    if (aim) {
      const [start, end] = aim;
      this.#say(`${this.characters.slice(start, end).join("")}: ${this.field.options[label].label}`);
      this.#set([...this.#outside(aim), { start, end, label }]);
    } else {
      this.#say(say("mark_first"));
    }
    return true;
  }

  #unmark() {
    const aim = this.chosen ?? this.places[this.words.findIndex((word) => word.tabIndex === 0)];
    if (aim) this.#set(this.#outside(aim));
  }

  #say(text) {
    this.heard.textContent = text;
  }

  #draw() {
    const chosen = this.chosen;
    for (const [at, [start, end]] of this.places.entries()) {
      const span = this.spans.find((each) => each.start <= start && end <= each.end);
      const word = this.words[at];
      word.classList.toggle("marked", Boolean(span));
      word.dataset.label = span ? span.label + 1 : "";
      word.setAttribute("aria-pressed", String(Boolean(chosen && chosen[0] <= start && end <= chosen[1])));
      if (span) word.setAttribute("aria-description", this.field.options[span.label].label);
      else word.removeAttribute("aria-description");
    }
    this.list.replaceChildren(...this.spans.map((span) =>
      make("li", {}, `“${this.characters.slice(span.start, span.end).join("")}” — ${this.field.options[span.label].label}`)));
  }

  get value() {
    return this.spans;
  }

  restore(spans) {
    this.#set(spans);
  }

  get empty() {
    return !this.spans.length;
  }

  focus() {
    this.words.find((word) => word.tabIndex === 0)?.focus();
  }
}
