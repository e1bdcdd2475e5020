// The page of a person who annotates: one renderer for every form of work, whatever its fields are.

import { captionLanguage, make, randomKey, say } from "./elements.js";
import { Fields, Images, picture } from "./fields.js";
import { Outbox, request } from "./outbox.js";
import { Kept } from "./storage.js";

const { token } = document.body.dataset;
/** The address of a route; what the platform gave with the visit goes along, since it is stored only here. */
const to = (route = "") => `/api/work/${token}${route}${location.search}`;
/** Keys and clicks so soon after an item appears were meant for the one before it. */
const TOO_SOON = 250;
/** An answer so soon after another may be the second click of two: it is asked for again. */
const TOO_QUICK = 500;
/** How often a page that has nothing to do asks whether there is something, in milliseconds. */
const ASK_AGAIN = 20000;

const main = document.querySelector("main");
const progress = document.querySelector("progress");
const notice = document.getElementById("notice");
const instructions = document.getElementById("instructions");
const enlarged = document.getElementById("enlarged");
const sending = document.getElementById("sending");
const keysOn = document.getElementById("keys");
const undo = document.getElementById("undo");
const end = document.getElementById("end-here");
const seen = `${token}/instructions`;

let standing = null; // what the server last replied
let shown = null; // the item on the page: {item, fields, form, watch, images, ...}
let last = null; // what was answered last: {item, submission}, and whether it is stored
let answered = -Infinity; // when that was
let sent = new Set(); // leases answered here, whether the server knows or not
let asking = null;

const settings = new Kept("counterfoil/", "sessionStorage");
// What is begun of an answer, by its lease and with how long it took so far: a page that is loaded again, or closed
// by accident, has it still.
const drafts = new Kept(`counterfoil-draft/${token}/`);
const outbox = new Outbox(token, to("/answers"), {
  stored: (submission, receipt) => {
    standing = receipt.work;
    drafts.remove(submission.lease);
    if (shown?.waits === submission.lease) shown = null;
    if (last?.submission.key === submission.key) last.stored = receipt.accepted;
    if (!receipt.accepted) sent.delete(submission.lease);
    if (receipt.notice) tell(receipt.notice, !receipt.accepted);
    draw();
  },
  refused: (submission, reply) => {
    if (shown?.waits === submission.lease) {
      // What was written is still on the page, to be put right.
      shown.waits = null;
      answered = -Infinity;
      sent.delete(submission.lease);
      shown.form.inert = false;
      tell(reply.error, true);
      shown.fields.opened[0]?.focus();
      return;
    }
    tell(`${say("refused")} ${reply.error}`, true);
    load();
  },
  changed: drawSending,
});

// ---- state

async function load() {
  clearTimeout(asking);
  const reply = await request(to());
  if (reply.body) {
    standing = reply.body;
    drafts.only([...standing.items, ...outbox.waiting].map((each) => each.lease));
    if (standing.notice) tell(standing.notice);
    else if (notice.classList.contains("offline")) tell("");
    draw();
  } else if (reply.again) {
    tell(reply.error || say("offline"), true);
    notice.classList.add("offline");
    asking = setTimeout(load, 5000);
  } else {
    tell("");
    message(say("invalid_title"), reply.error);
  }
}

function draw() {
  const waiting = outbox.waiting.filter((each) => each.lease);
  const next = standing.items.find((item) => !sent.has(item.lease));
  clearTimeout(asking);
  drawProgress(waiting.length);
  document.querySelector("footer").hidden = ["consent", "withdrawn"].includes(standing.state);
  const working = ["work", "onboarding"].includes(standing.state);
  undo.hidden = !last?.stored || last.item.practice || Boolean(shown?.replaces) || !["work", "done"].includes(standing.state);
  end.hidden = !working;
  if (shown?.replaces && ["work", "done"].includes(standing.state)) return undefined;
  if (!working) {
    shown = null;
    return (STATES[standing.state] ?? STATES.disqualified)();
  }
  if (!settings.get(seen)) {
    shown = null;
    // Not drawn again by a reply that comes late: a press on it would be taken for one of before.
    return document.getElementById("begin") ?? begin();
  }
  if (!next) {
    shown = null;
    message(say("waiting_title"), say(waiting.length ? "waiting_sent" : "waiting_items"));
    asking = setTimeout(load, waiting.length ? 3000 : ASK_AGAIN);
    return undefined;
  }
  if (shown?.item.lease !== next.lease) drawItem(next);
  for (const item of standing.items) preload(item);
  return undefined;
}

// ---- pages without an item

function page(title, ...content) {
  const heading = make("h1", { tabindex: "-1" }, title);
  main.replaceChildren(make("section", { class: "message" }, heading, ...content));
  heading.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

function message(title, text, ...more) {
  page(title, make("p", {}, text), ...more);
}

/** A copy of a text that the server rendered from Markdown and left in the page. */
function prose(id) {
  return document.getElementById(id).content.cloneNode(true);
}

const STATES = {
  consent() {
    const agree = make("button", { type: "button", class: "primary" }, say("agree"));
    const decline = make("button", { type: "button" }, say("decline"));
    agree.addEventListener("click", async () => {
      agree.disabled = true;
      const moved = await move("/consent");
      agree.disabled = false;
      if (moved) draw();
      else agree.focus({ preventScroll: true });
    });
    decline.addEventListener("click", () => message(say("declined_title"), say("declined"), leave()));
    page(document.title, make("div", { class: "prose" }, prose("consent-text")), make("p", { class: "buttons" }, agree, decline));
    agree.focus({ preventScroll: true });
  },
  done: () => goodbye(say("done_title"), say("done")),
  ended: () => goodbye(say("ended_title"), say("ended")),
  paused() {
    message(say("paused_title"), say("paused"));
    asking = setTimeout(load, ASK_AGAIN);
  },
  full() {
    message(say("full_title"), say("full"), leave());
    asking = setTimeout(load, ASK_AGAIN);
  },
  disqualified: () => message(say("disqualified_title"), say("disqualified"), leave()),
  withdrawn: () => message(say("withdrawn_title"), say("withdrawn"), leave()),
};

function goodbye(title, text) {
  const parts = [];
  if (standing.code && !standing.leave?.address) {
    parts.push(make("p", {}, say("code_label")), make("p", { class: "code" }, make("output", {}, standing.code)));
  }
  message(title, text, ...parts, leave());
  main.querySelector("a.primary, button.primary")?.focus({ preventScroll: true });
}

/** The way back to the platform that people came from. */
function leave() {
  const address = standing.leave?.address;
  if (!address) return null;
  return make("p", { class: "buttons" }, make("a", { class: "primary", href: address, target: "_top", rel: "noreferrer" }, say("leave")));
}

function begin() {
  const start = make("button", { id: "begin", type: "button", class: "primary" }, say("begin"));
  const appeared = performance.now();
  // A key that is still held, and a press so soon, agreed to take part: they do not skip the instructions.
  start.addEventListener("keydown", (event) => { if (event.repeat) event.preventDefault(); });
  start.addEventListener("click", () => {
    if (performance.now() - appeared < TOO_SOON) return;
    settings.set(seen, 1);
    draw();
  });
  page(say("instructions"), make("div", { class: "prose" }, prose("instructions-text")),
    standing.state === "onboarding" ? make("p", {}, say("onboarding")) : null, make("p", { class: "buttons" }, start));
  start.focus({ preventScroll: true });
}

// ---- an item

/** Show an item; with `before`, a submission that is stored, its answer can be changed. */
function drawItem(item, before = null) {
  const images = new Images(drawImages);
  const context = { zoom, images };
  const several = item.shown.filter((each) => each.kind === "image").length > 1;
  const marked = new Map();
  const pictures = make("div", { class: "pictures" });
  const texts = make("div", { class: "texts" });
  for (const each of item.shown) {
    if (each.kind === "text") {
      const text = make("div", { class: "caption" }, each.label ? make("p", { class: "name" }, each.label) : null,
        make("p", { class: "text", lang: captionLanguage }, each.content));
      marked.set(each.label, text);
      texts.append(text);
      continue;
    }
    images.count += 1;
    const name = several && each.label ? each.label : say("image", { n: images.count });
    const { image, button } = picture(each.content, name, context);
    image.addEventListener("click", () => zoom(image));
    pictures.append(make("figure", {}, image, button, several ? make("figcaption", {}, name) : null));
  }
  const fields = new Fields(item, context);
  const send = make("button", { type: "submit", class: fields.single ? "" : "primary" }, say("send"), make("kbd", { "aria-hidden": "true" }, "↵"));
  const title = say(before ? "changing" : item.practice ? "practice" : "item", { n: item.position });
  const heading = make("h1", { tabindex: "-1" }, title);
  const hint = fields.single ? say("at_once") : say("then_send");
  const unseen = make("button", { type: "button", id: "unseen", click: () => submit(true) }, say("unseen"));
  const leaveIt = make("button", { type: "button", click: forgetChange }, say("leave_it"));
  const state = make("p", { class: "images-state", role: "status" });
  const comment = make("textarea", { id: "comment", rows: 2, maxlength: 2000, autocomplete: "off" });
  const form = make("form", { class: "item", novalidate: true },
    make("div", { class: "head" }, heading),
    pictures, texts, state, fields.element,
    make("div", { class: "foot" }, send, unseen, before ? leaveIt : null, make("p", { class: "hint" }, hint),
      make("details", { class: "comment" }, make("summary", {}, say("comment")),
        make("label", { for: comment.id }, say("comment_hint")), comment)));
  form.classList.toggle("beside", pictures.childElementCount > 0);
  shown = { item, fields, form, watch: new Watch(), images, state, send, comment, at: performance.now(), waits: null,
    byArrow: false, clicks: 0, replaces: before?.key };
  // Which click in a row it is, as the system counts them: the second may be meant for the item before.
  form.addEventListener("mousedown", (event) => { shown.clicks = event.detail; });
  form.addEventListener("keydown", () => { shown.clicks = 0; }, true);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  if (fields.single) {
    // Arrows move through choices without making one for good, so only a key or a click on it sends it.
    form.addEventListener("keydown", (event) => { shown.byArrow = event.key.startsWith("Arrow"); });
    form.addEventListener("pointerdown", () => { shown.byArrow = false; });
    form.addEventListener("click", (event) => {
      if (event.target.type !== "radio" || shown.byArrow) return;
      if (!tooQuick() && !tooSoon()) return submit();
      event.preventDefault();
      return undefined;
    });
  }
  // A text whose parts are being marked stands in its field, and not a second time above it.
  const marking = () => fields.all.forEach(({ field, element }) => {
    if (field.kind === "spans" && marked.has(field.text)) marked.get(field.text).hidden = !element.hidden;
  });
  form.addEventListener("change", marking);
  if (before) fill(shown, { answer: before.answer, seconds: before.seconds, comment: before.comment });
  else if (!fields.single) keepDraft(shown);
  marking();
  main.replaceChildren(form);
  drawImages();
  heading.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

/** The fields are open once all images are there; of one that does not come the page says so. */
function drawImages() {
  if (!shown) return;
  const { images, fields, form, state, send, watch } = shown;
  const wait = !images.loaded;
  if (fields.element.inert && !wait) shown.at = performance.now();
  fields.element.inert = send.disabled = wait;
  watch.turn(wait);
  state.hidden = !wait;
  form.setAttribute("aria-busy", String(wait && !images.failed));
  const again = make("button", { type: "button", click: () => images.retry() }, say("retry"));
  if (wait) state.replaceChildren(...(images.failed ? [say("not_loaded"), " ", again] : [say("loading_images")]));
}

function fill({ fields, watch, comment }, { answer, seconds, comment: text }) {
  fields.restore(answer);
  watch.before += 1000 * seconds;
  comment.value = text ?? "";
  comment.closest("details").open = Boolean(text);
}

/** Show what was answered last, to be changed. */
function change() {
  if (!last?.stored || shown?.waits) return;
  tell("");
  drawItem(last.item, last.submission);
  draw();
}

function forgetChange() {
  shown = null;
  tell("");
  draw();
}

/** Fill in what was begun of an item before the page was loaded again, and keep what is begun from now on. */
function keepDraft({ item, fields, form, watch, comment }) {
  const draft = drafts.get(item.lease);
  if (draft) fill(shown, draft);
  const keep = () => {
    drafts.set(item.lease, { answer: fields.draft, seconds: watch.seconds, comment: comment.value });
    shown.keep = keep;
  };
  form.addEventListener("input", keep);
  form.addEventListener("change", keep);
}

function submit(unseen = false) {
  if (!shown || shown.waits) return;
  if (tooQuick() || (!unseen && !shown.images.loaded)) return;
  const answer = unseen ? {} : shown.fields.open();
  const lacking = unseen ? undefined : shown.fields.lacking;
  if (lacking) {
    // From another field, Enter goes on to the one that is lacking; only there it was pressed to send.
    const field = document.activeElement.closest("fieldset");
    const onward = field && field !== lacking.element;
    tell(onward ? "" :say("lacking", { prompt: lacking.field.prompt }), !onward);
    lacking.focus();
    return;
  }
  tell("");
  const { item, watch, fields, form, comment, replaces } = shown;
  const seconds = Math.round(watch.seconds * 1000) / 1000;
  sent.add(item.lease);
  if (fields.free || item.practice || replaces) {
    shown.waits = item.lease;
    form.inert = true;
  }
  const submission = { lease: item.lease, key: randomKey(), answer, seconds };
  if (unseen) submission.unseen = true;
  if (comment.value.trim()) submission.comment = comment.value.trim();
  if (replaces) submission.replaces = replaces;
  answered = performance.now();
  last = { item, submission, stored: false };
  outbox.add(submission);
  if (shown && !shown.waits) draw();
}

function preload(item) {
  const sources = [...item.shown.filter((each) => each.kind === "image").map((each) => each.content),
    ...item.fields.flatMap((field) => field.options.flatMap((option) => option.images))];
  for (const source of sources) new Image().src = source;
}

/** Seconds for which the item was in sight, its images too. */
class Watch {
  constructor() {
    this.before = 0;
    this.since = null;
    this.waits = true;
  }

  get seconds() {
    return (this.before + (this.since === null ? 0 : performance.now() - this.since)) / 1000;
  }

  turn(waits = this.waits) {
    this.waits = waits;
    const seen = !document.hidden && !waits;
    if (!seen && this.since !== null) {
      this.before += performance.now() - this.since;
      this.since = null;
    } else if (seen && this.since === null) {
      this.since = performance.now();
    }
  }
}

document.addEventListener("visibilitychange", () => shown?.watch.turn());
window.addEventListener("pagehide", () => { if (!shown?.waits) shown?.keep?.(); });

// ---- what is around an item

function tell(text, alert = false) {
  notice.className = alert ? "alert" : "";
  notice.textContent = text;
  notice.hidden = !text;
}

function drawSending() {
  const count = outbox.waiting.length;
  const late = count > 1 || (count && outbox.timer && !outbox.sending);
  sending.hidden = !late;
  sending.textContent = late ? [say("not_sent", { n: count }), outbox.trouble].filter(Boolean).join(" – ") : "";
}

function drawProgress(waiting) {
  const known = standing.of > 0 && ["work", "onboarding"].includes(standing.state);
  const done = Math.min(standing.of, standing.done + waiting);
  progress.hidden = !known;
  progress.max = standing.of || 1;
  progress.value = done;
  const text = document.getElementById("count");
  text.textContent = known ? say("progress", { done, of: standing.of }) : "";
}

function zoom(image) {
  const all = [...main.querySelectorAll("img")];
  let at = all.indexOf(image);
  const large = enlarged.querySelector("img");
  const turn = (by) => {
    at = (at + by + all.length) % all.length;
    large.src = all[at].src;
    large.alt = all[at].alt;
    enlarged.querySelector("p").textContent = all[at].alt;
  };
  turn(0);
  for (const button of enlarged.querySelectorAll("[data-turns]")) {
    button.hidden = all.length < 2;
    button.onclick = () => turn(Number(button.dataset.turns));
  }
  enlarged.onkeydown = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by) turn(by);
    if (event.key === "z") enlarged.close();
  };
  enlarged.showModal();
}

enlarged.addEventListener("click", (event) => {
  if (!event.target.closest("button")) enlarged.close();
});

for (const opener of document.querySelectorAll("[data-opens]")) {
  opener.addEventListener("click", () => document.getElementById(opener.dataset.opens).showModal());
}
for (const closer of document.querySelectorAll("[data-closes]")) {
  closer.addEventListener("click", () => closer.closest("dialog").close());
}
document.getElementById("instructions-again").append(prose("instructions-text"));

/** Ask for a change of where the person stands; whether it came, and the page says why not. */
async function move(route) {
  const reply = await request(to(route), {});
  tell(reply.body ? "" : reply.error || say("offline"), !reply.body);
  standing = reply.body ?? standing;
  return Boolean(reply.body);
}

document.getElementById("withdraw-now").addEventListener("click", async (event) => {
  const moved = await move("/withdraw");
  event.target.closest("dialog").close();
  if (!moved) return;
  outbox.kept.only([]);
  drafts.only([]);
  draw();
});

document.getElementById("end-now").addEventListener("click", async (event) => {
  event.target.closest("dialog").close();
  if (outbox.waiting.length) tell(say("not_sent", { n: outbox.waiting.length }), true);
  else if (await move("/end")) {
    shown = null;
    draw();
  }
});
undo.addEventListener("click", change);

keysOn.checked = settings.get("keys") ?? true;
keysOn.addEventListener("change", () => settings.set("keys", keysOn.checked));

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
  const writing = event.target.matches?.("textarea");
  const pressing = event.target.matches?.("a, button:not(.word), summary, .message *");
  if (event.key === "Enter" && shown && !pressing && !(writing && event.shiftKey)) {
    event.preventDefault();
    if (!event.repeat && !tooSoon()) submit();
    return;
  }
  if (writing || !keysOn.checked) return;
  if (event.key === "?") {
    event.preventDefault();
    instructions.showModal();
  } else if (event.key === "u" && !undo.hidden) {
    change();
  } else if (event.key === "z" && shown) {
    const image = document.activeElement?.closest(".option, figure")?.querySelector("img") ?? main.querySelector("img");
    if (image) zoom(image);
  } else if (/^[0-9]$/.test(event.key) && shown && !shown.waits) {
    event.preventDefault();
    // 0 is the tenth, as it is on a keyboard.
    if (!event.repeat && !tooSoon() && shown.images.loaded) choose((Number(event.key) + 9) % 10);
  }
});

function tooSoon() {
  return performance.now() - shown.at < TOO_SOON;
}

/** Whether an answer comes right after another, so that it may have been meant for that item; the page says so. */
function tooQuick() {
  const quick = performance.now() - answered < TOO_QUICK || (shown.clicks > 1 && answered > 0);
  shown.clicks = 0;
  // What was said of the answer before stays.
  if (quick && !notice.textContent.endsWith(say("too_quick"))) tell(`${notice.textContent} ${say("too_quick")}`.trim(), true);
  return quick;
}

function choose(at) {
  const field = shown.fields.current;
  if (shown.fields.single && tooQuick()) return;
  if (!field?.digit(at)) return;
  if (shown.fields.single) submit();
  else if (field.field.kind === "one") shown.fields.after(field)?.focus();
}

window.addEventListener("beforeunload", (event) => {
  if (outbox.kept.memory.size) event.preventDefault();
});

for (const each of outbox.waiting) sent.add(each.lease);
outbox.now();
load();
