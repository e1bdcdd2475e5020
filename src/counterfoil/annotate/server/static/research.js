// The researcher's page: decisions are posted, and sections are replaced by newer ones while one looks on.
// The server renders everything; this file makes no HTML.

const EVERY = 5000;
const form = document.querySelector('meta[name="form"]').content;
const notice = document.querySelector("#notice");

function say(text, alert = false) {
  notice.textContent = text;
  notice.classList.toggle("alert", alert);
  notice.hidden = !text;
}

async function post(path, value) {
  const request = { method: "POST", headers: { "X-Counterfoil-Form": form } };
  if (value !== undefined) {
    request.headers["Content-Type"] = "application/json";
    request.body = JSON.stringify(value);
  }
  try {
    const reply = await fetch(path, request);
    if (reply.ok) return reply.status === 204 ? {} : await reply.json();
    const problem = await reply.json().catch(() => ({}));
    say(problem.error ?? `not done (${reply.status})`, true);
  } catch {
    say("The server cannot be reached. Nothing was decided.", true);
  }
  return null;
}

// A request for a document parses a page without running anything in it.
function page(path) {
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    request.open("GET", path);
    request.responseType = "document";
    request.onload = () => done({ status: request.status, document: request.response });
    request.onerror = () => done({ status: 0, document: null });
    request.send();
  });
}

// What is being read by keyboard, or has a form open, stays as it is.
const busy = (part) => part.contains(document.activeElement) || part.querySelector("details[open]") !== null;

async function refresh(decided = false) {
  const found = await page("/research");
  if (found.status === 401) return location.reload();
  if (found.status !== 200 || !found.document) return;
  for (const part of document.querySelectorAll("#when, #controls, main > section")) {
    const newer = found.document.getElementById(part.id);
    if (!newer || newer.isEqualNode(part) || (!decided && busy(part))) continue;
    const focused = part.contains(document.activeElement);
    const made = document.importNode(newer, true);
    part.replaceWith(made);
    if (focused) (made.querySelector("button, a, summary") ?? document.body).focus();
  }
}

if (document.querySelector("#controls")) {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-state], #logout");
    if (!button) return;
    if (button.id === "logout") {
      if (await post("/research/logout")) location.assign("/research");
      return;
    }
    const state = button.dataset.state;
    if (state === "stopped" && !confirm("Stop the campaign? No one gets another item.")) return;
    const reply = await post("/api/research/state", { state });
    if (reply) {
      say(reply.done);
      await refresh(true);
    }
  });
  document.addEventListener("submit", async (event) => {
    const asked = event.target.closest("form.review");
    if (!asked) return;
    event.preventDefault();
    const decision = event.submitter?.value;
    if (!decision) return;
    const given = new FormData(asked);
    const review = { person: asked.dataset.person, decision, reason: given.get("reason"), category: given.get("category") };
    const reply = await post("/api/research/reviews", review);
    if (reply) {
      say(reply.done);
      await refresh(true);
    }
  });
  setInterval(() => { if (!document.hidden) refresh(); }, EVERY);
}

const decision = document.querySelector("#decision");
if (decision) {
  decision.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { item, next } = decision.dataset;
    const given = new FormData(decision);
    const reply = await post("/api/research/adjudications", { item, answer: given.get("answer"), note: given.get("note") });
    if (!reply) return;
    if (next) location.assign(`/research/disputes?item=${encodeURIComponent(next)}`);
    else say(`${reply.done}. This was the last one.`);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("textarea")) return;
    const options = decision.querySelectorAll('input[name="answer"]');
    const chosen = options[Number(event.key) - 1];
    if (/^[1-9]$/.test(event.key) && chosen) {
      chosen.checked = true;
      chosen.focus();
    } else if (event.key === "Enter" && event.target.matches('input[name="answer"], body')) {
      event.preventDefault();
      decision.requestSubmit();
    } else if (event.key === "n" || event.key === "p") {
      document.querySelector(event.key === "n" ? "#after" : "#before")?.click();
    }
  });
}
