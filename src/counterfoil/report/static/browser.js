// What browsers of questions share: building elements, and filters, order, pages, keys and an address.
// They filter, sort and show; what is right or wrong was decided when the page was made.

const carried = JSON.parse(document.getElementById("data").textContent);

const count = (n) => n.toLocaleString("en");
const mark = (ok) =>
  el("span", { class: ok ? "mark good" : "mark bad" }, el("span", { "aria-hidden": "true" }, ok ? "✓" : "✗"),
    el("span", { class: "visually-hidden" }, ok ? "right" : "wrong"));

// As many digits as it takes to tell scores apart that differ.
function written(scores) {
  const largest = Math.max(...scores.map(Math.abs));
  const distinct = new Set(scores).size;
  for (let digits = largest < 2 ? 3 : largest < 100 ? 2 : 1; digits <= 8; digits++) {
    const texts = scores.map((score) => score.toFixed(digits).replace("-", "−"));
    if (new Set(texts).size === distinct) return texts;
  }
  return scores.map((score) => score.toExponential(5).replace("-", "−"));
}

// ---- groups, pictures and captions, where questions have them as columns -------------------------------------
const labelsOf = (b, q) => b.groupings.map((g) => (g.codes[q] < 0 ? "" : g.labels[g.codes[q]]));
function inGroup(b, q, state) {
  if (!state.group) return true;
  const [g, label] = state.group.split(".").map(Number);
  return b.groupings[g] && b.groupings[g].codes[q] === label;
}
function groupFilter(b, select) {
  if (!b.groupings.length) return [];
  const groups = b.groupings.map((g, i) => ({
    label: g.name,
    options: g.labels.map((label, j) => ({ value: `${i}.${j}`, label: `${label} (${count(g.codes.filter((c) => c === j).length)})` })),
  }));
  return [select("group", "Group", [{ value: "", label: "all groups" }, ...groups])];
}
function picture(b, i, alt) {
  const [name, number] = b.images[i];
  if (number < 0) return el("span", { class: "name" }, `${b.shows || "image"} ${name}`);
  return enlargeable(el("img", { src: carried.pictures[number], alt, title: name }));
}
const caption = (b, c) => {
  const [text, name] = b.captions[c];
  return text === null ? el("span", { class: "name" }, `caption ${name}`) : text;
};

// What browsers of such questions have in common.
const grouped = {
  noun: ["Question", "questions"],
  empty: { group: "" },
  placeholder: "words, id or group",
  passes: inGroup,
  filters: groupFilter,
  pictured: (b, q) => b.imageAt[q].every((i) => b.images[i][1] >= 0),
};
const groupsOf = (b, q) => [...new Set(labelsOf(b, q).filter(Boolean))].join(" · ");

// The answers of all models, a row each: heads and cells behind the model's name.
const head = (text, kind = null) => el("th", { scope: "col", class: kind }, text);
const unseen = (text) => el("span", { class: "visually-hidden" }, text);
function answersTable(b, chosen, heads, cells) {
  const rows = b.models.map((model, m) =>
    el("tr", { class: m === chosen ? "chosen" : null }, el("th", { scope: "row", title: model.name }, model.name), ...cells(model)));
  return el("table", { class: "models" }, el("thead", {}, el("tr", {}, head("model"), ...heads)), el("tbody", {}, ...rows));
}

// Opens a browser in a section. `what` says what is particular to its questions:
//   place, noun     the section's id, and what its questions are called ([one, many])
//   benchmarks      each with ids, kinds, models (name, kinds), pictured, best, ties, anchor, title
//   empty           what can be asked for beyond the common, {name: what it is when not asked for}
//   agreed          what `kinds` of 0 is called of a model, "right" unless said otherwise
//   passes, haystack, pictured, orders, filters, legend, card    functions of (benchmark, ...)
function openBrowser(what) {
  const PER_PAGE = 12;
  const { place, benchmarks } = what;
  const [one, many] = what.noun;
  const agreed = (b) => (what.agreed ? what.agreed(b) : "right");
  const section = document.getElementById(place);
  const root = section.querySelector(".browser");

  // ---- what is asked for: one plain object, kept in the address ----------------------------------------------
  const EMPTY = { b: "0", model: "0", kind: "", ...what.empty, versus: "", text: "", sort: "", pictures: "", all: "", page: "1" };
  let state = { ...EMPTY };
  const bench = () => benchmarks[Number(state.b)] || benchmarks[0];
  const chosenModel = () => bench().models[Number(state.model)];
  const partly = (b) => b.pictured > 0 && b.pictured < b.ids.length;
  const allModels = () => (state.all ? state.all === "1" : bench().models.length <= 4);

  function readAddress() {
    const [where, query] = location.hash.slice(1).split("?");
    if (where !== place || query === undefined) return false;
    const asked = Object.fromEntries(new URLSearchParams(query));
    const b = benchmarks.findIndex((benchmark) => benchmark.anchor === asked.b);
    state = { ...EMPTY, ...Object.fromEntries(Object.entries(asked).filter(([key]) => key in EMPTY)), b: String(Math.max(b, 0)) };
    const model = bench().models.findIndex((m) => m.name === asked.model);
    state.model = String(model < 0 ? bench().best : model);
    return true;
  }
  function writeAddress() {
    const asked = new URLSearchParams();
    for (const [key, value] of Object.entries(state)) if (value && value !== EMPTY[key]) asked.set(key, value);
    asked.set("b", bench().anchor);
    asked.set("model", chosenModel().name);
    history.replaceState(null, "", `#${place}?${asked}`);
  }

  // ---- which questions ---------------------------------------------------------------------------------------
  const kindOf = (m, q) => Number(bench().models[m].kinds[q]);
  const rightCount = (q) => bench().models.reduce((sum, model) => sum + (model.kinds[q] === "0"), 0);

  function matchesAllBut(without, q) {
    const b = bench();
    const m = Number(state.model);
    if (without !== "kind" && state.kind !== "" && kindOf(m, q) !== Number(state.kind)) return false;
    if (!what.passes(b, q, state)) return false;
    if (state.versus === "any") {
      const right = rightCount(q);
      if (right === 0 || right === b.models.length) return false;
    } else if (state.versus) {
      const other = Number(state.versus);
      if (!b.models[other] || (kindOf(other, q) === 0) === (kindOf(m, q) === 0)) return false;
    }
    if (state.pictures === "1" && !what.pictured(b, q)) return false;
    const words = state.text.trim().toLowerCase().split(/\s+/).filter(Boolean);
    return !words.length || words.every((word) => what.haystack(b, q).includes(word));
  }
  // The orders to choose from; one without `by` is that of the file.
  function orders() {
    const b = bench();
    const several = b.models.length > 1;
    return [
      partly(b) ? { value: "", label: "with pictures first", by: (q) => (what.pictured(b, q) ? 0 : 1) } : { value: "", label: "as given" },
      ...(partly(b) ? [{ value: "file", label: "as given" }] : []),
      { value: "kind", label: agreed(b) === "right" ? "worst kind of failure first" : "lower than rated first", by: (q) => -kindOf(Number(state.model), q) },
      ...(several ? [{ value: "hard", label: `fewest models ${agreed(b)} first`, by: rightCount }] : []),
      ...(several ? [{ value: "easy", label: `most models ${agreed(b)} first`, by: (q) => -rightCount(q) }] : []),
      ...what.orders(b, chosenModel()),
    ];
  }
  function chosen() {
    const found = [...bench().ids.keys()].filter((q) => matchesAllBut("", q));
    const order = orders().find((option) => option.value === state.sort);
    if (!order || !order.by) return found;
    return found.map((q) => [order.by(q), q]).sort((x, y) => x[0] - y[0] || x[1] - y[1]).map(([, q]) => q);
  }

  // ---- controls ----------------------------------------------------------------------------------------------
  function select(name, label, options, value = state[name]) {
    const node = el("select", { name });
    for (const option of options) {
      if (option.options) {
        node.append(el("optgroup", { label: option.label }, ...option.options.map((o) => el("option", { value: o.value }, o.label))));
      } else node.append(el("option", { value: option.value }, option.label));
    }
    node.value = value;
    if (node.selectedIndex < 0) node.selectedIndex = 0;
    node.addEventListener("change", () => change({ [name]: node.value }));
    return el("label", {}, el("span", {}, label), node);
  }
  function controls() {
    const b = bench();
    const others = b.models.map((model, i) => ({ value: String(i), label: model.name })).filter((o) => o.value !== state.model);
    const form = el("form", { class: "controls", role: "search", "aria-label": `Choose ${many} of ${b.title}` });
    form.addEventListener("submit", (event) => event.preventDefault());
    if (benchmarks.length > 1) {
      form.append(select("b", "Benchmark", benchmarks.map((x, i) => ({ value: String(i), label: x.title }))));
    }
    form.append(select("model", "Model", b.models.map((model, i) => ({ value: String(i), label: model.name }))));
    form.append(...what.filters(b, select));
    if (others.length) {
      const versus = [{ value: "", label: `all ${many}` }, { value: "any", label: `some models ${agreed(b)}, some not` },
        { label: `${chosenModel().name} and … differ`, options: others }];
      form.append(select("versus", "Disagreement", versus));
    }
    form.append(select("sort", "Order", orders()));
    const search = el("input", { type: "search", name: "text", value: state.text, placeholder: what.placeholder });
    search.addEventListener("input", () => change({ text: search.value }, false));
    form.append(el("label", {}, el("span", {}, "Search"), search));

    const kinds = el("fieldset", {}, el("legend", {}, what.legend(b, chosenModel())));
    const row = el("div", { class: "kinds" });
    for (const [value, label] of [["", "all"], ...b.kinds.map((kind, i) => [String(i), kind])]) {
      const input = el("input", { type: "radio", name: "kind", value });
      input.checked = state.kind === value;
      input.addEventListener("change", () => change({ kind: value }, false));
      row.append(el("label", {}, input, el("span", {}, label), el("span", { class: "count", "data-kind": value })));
    }
    kinds.append(row);
    form.append(kinds);

    const checks = el("div", { class: "checks" });
    const check = (name, label, on) => {
      const input = el("input", { type: "checkbox", name });
      input.checked = on;
      input.addEventListener("change", () => change({ [name]: input.checked ? "1" : name === "all" ? "0" : "" }, false));
      checks.append(el("label", {}, input, el("span", {}, label)));
    };
    if (partly(b)) check("pictures", "only with pictures", state.pictures === "1");
    if (b.models.length > 1) check("all", "answers of all models", allModels());
    const reset = el("button", { type: "button", class: "reset" }, "Start over");
    reset.addEventListener("click", () => change({ ...EMPTY, b: state.b, model: state.model }));
    checks.append(reset);
    form.append(checks);
    return form;
  }
  function countKinds(form) {
    const seen = bench().kinds.map(() => 0);
    for (const q of bench().ids.keys()) if (matchesAllBut("kind", q)) seen[kindOf(Number(state.model), q)]++;
    for (const node of form.querySelectorAll("[data-kind]")) {
      const kind = node.dataset.kind;
      node.textContent = count(kind === "" ? seen.reduce((a, c) => a + c, 0) : seen[Number(kind)]);
    }
  }

  // ---- putting it together -----------------------------------------------------------------------------------
  function card(q) {
    const b = bench();
    const kind = kindOf(Number(state.model), q);
    const { groups, body, models } = what.card(b, q, Number(state.model));
    const node = el("article", { class: "card", tabindex: "0", "data-question": b.ids[q], "data-kind": String(kind), "aria-label": `${one} ${b.ids[q]}: ${b.kinds[kind]}` },
      el("header", {}, el("h3", {}, `#${b.ids[q]}`), el("span", { class: "groups" }, groups),
        el("span", { class: kind === 0 ? "verdict good" : "verdict bad" }, b.kinds[kind])),
      ...body);
    if (allModels() && b.models.length > 1) node.append(el("div", { class: "models-scroll", tabindex: "0", role: "group", "aria-label": `Answers of all models to ${one.toLowerCase()} ${b.ids[q]}` }, models()));
    return node;
  }
  let form = null;
  const results = el("div", {});
  function pager(n, pages, where) {
    const page = Number(state.page);
    const first = n ? (page - 1) * PER_PAGE + 1 : 0;
    const turn = (label, to, enabled) => {
      const button = el("button", { type: "button", disabled: !enabled, "data-turn": label }, label);
      button.addEventListener("click", () => turnTo(to, where));
      return button;
    };
    const said = where === "top" ? { "aria-live": "polite" } : {};
    return el("div", { class: "pager" },
      el("output", { ...said, "data-count": String(n) }, n ? `${count(first)}–${count(Math.min(n, page * PER_PAGE))} of ${count(n)} ${many}` : `no ${one.toLowerCase()}`),
      el("span", { class: "hint" }, `arrow keys: ← → pages, ↑ ↓ ${many}`),
      turn("Previous", page - 1, page > 1), el("span", {}, `page ${count(page)} of ${count(pages)}`), turn("Next", page + 1, page < pages));
  }
  function turnTo(page, where) {
    state.page = String(page);
    render(false);
    if (where === "bottom") root.scrollIntoView();
    const cards = results.querySelector(".card");
    if (where !== "top" && cards) cards.focus({ preventScroll: true });
  }
  let found = [];
  function render(again = true) {
    if (again) {
      found = chosen();
      countKinds(form);
    }
    const pages = Math.max(1, Math.ceil(found.length / PER_PAGE));
    state.page = String(Math.min(Math.max(1, Number(state.page) || 1), pages));
    const shown = found.slice((Number(state.page) - 1) * PER_PAGE, Number(state.page) * PER_PAGE);
    results.replaceChildren(
      pager(found.length, pages, "top"),
      shown.length ? el("div", { class: "cards" }, ...shown.map(card)) : el("p", { class: "empty" }, `No ${one.toLowerCase()} is like that.`),
      ...(shown.length > 2 ? [pager(found.length, pages, "bottom")] : []));
    writeAddress();
  }
  function build() {
    for (const note of section.querySelectorAll("[data-pictures]")) note.hidden = note.dataset.pictures !== bench().anchor;
    form = controls();
    root.replaceChildren(form, results);
    render();
  }
  function change(asked, rebuild = true) {
    const focused = document.activeElement && root.contains(document.activeElement) ? document.activeElement.name : "";
    if ("b" in asked && asked.b !== state.b) state = { ...EMPTY, b: asked.b, model: String(benchmarks[Number(asked.b)].best) };
    else state = { ...state, ...asked, page: "1" };
    if ("model" in asked && state.versus === state.model) state.versus = "";
    if (!rebuild) return render();
    build();
    if (focused && focused !== "kind") form.elements[focused]?.focus();
  }
  section.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    if (event.target.closest("form, summary, .models-scroll, button")) return;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const pages = Math.ceil(found.length / PER_PAGE);
    if (step) {
      const to = Number(state.page) + step;
      if (to >= 1 && to <= pages) turnTo(to, "keys");
      event.preventDefault();
      return;
    }
    const move = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!move) return;
    const cards = [...results.querySelectorAll(".card")];
    const next = cards[Math.min(Math.max(cards.indexOf(document.activeElement) + move, 0), cards.length - 1)];
    if (next) {
      next.focus();
      next.scrollIntoView({ block: "nearest" });
      event.preventDefault();
    }
  });
  addEventListener("hashchange", () => {
    if (!readAddress()) return;
    build();
    section.scrollIntoView();
  });

  const asked = readAddress();
  if (!asked) state.model = String(bench().best);
  const before = location.hash;
  build();
  if (asked) section.scrollIntoView();
  else history.replaceState(null, "", before || location.pathname + location.search);
}

// On paper nothing unfolds, and where the numbers come from belongs to them.
{
  const records = [...document.querySelectorAll("#provenance details")];
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = records.filter((record) => !record.open);
    for (const record of folded) record.open = true;
  });
  addEventListener("afterprint", () => {
    for (const record of folded) record.open = false;
  });
}
