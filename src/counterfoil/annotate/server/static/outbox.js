// Answers that are not yet known to be stored: kept in the browser, sent in order, sent again until they are.
//
// Each lies under a key of its own, so that two tabs lose nothing of each other, and is sent with the same
// idempotency key every time, so that the server counts it once.

import { Kept } from "./storage.js";

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 30000;

export class Outbox {
  constructor(token, address, { stored, refused, changed }) {
    this.kept = new Kept(`counterfoil/${token}/`);
    this.address = address;
    this.report = { stored, refused, changed };
    this.wait = FIRST_WAIT;
    this.sending = false;
    this.timer = null;
    this.trouble = "";
    window.addEventListener("online", () => this.now());
  }

  /** What waits, oldest first. */
  get waiting() {
    const kept = this.kept.names.map((name) => this.kept.get(name)).filter(Boolean);
    return kept.sort((a, b) => a.at - b.at || (a.key < b.key ? -1 : 1));
  }

  add(submission) {
    this.kept.set(submission.key, { ...submission, at: Date.now() });
    this.report.changed();
    this.now();
  }

  now() {
    clearTimeout(this.timer);
    this.wait = FIRST_WAIT;
    this.flush();
  }

  async flush() {
    if (this.sending) return;
    this.sending = true;
    try {
      for (let next = this.waiting[0]; next; next = this.waiting[0]) {
        const { at, ...submission } = next;
        const reply = await request(this.address, submission);
        this.trouble = reply.again ? reply.error : "";
        if (reply.again) {
          this.timer = setTimeout(() => this.flush(), this.wait);
          this.wait = Math.min(2 * this.wait, LONGEST_WAIT);
          break;
        }
        this.wait = FIRST_WAIT;
        this.kept.remove(submission.key);
        if (reply.error) this.report.refused(submission, reply);
        else this.report.stored(submission, reply.body);
      }
    } finally {
      this.sending = false;
      this.report.changed();
    }
  }
}

/** A reply as {body}, or {error, status, again}; `again` where the same may succeed later. */
export async function request(address, body) {
  const options = { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(20000) };
  if (body !== undefined) {
    options.method = "POST";
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  try {
    const reply = await fetch(address, options);
    const content = await reply.json();
    if (reply.ok) return { body: content };
    const again = reply.status >= 500 || [408, 425, 429].includes(reply.status);
    return { error: content.error ?? reply.statusText, status: reply.status, again };
  } catch {
    return { error: "", status: 0, again: true };
  }
}
