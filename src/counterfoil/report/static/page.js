"use strict";
// The browser of questions. It filters, sorts and shows; what is right or wrong was decided when the page was made.
(() => {
  const PER_PAGE = 12;
  const { benchmarks, pictures } = JSON.parse(document.getElementById("data").textContent);
  const section = document.getElementById("questions");
  const root = document.getElementById("browser");

  // ---- small tools -------------------------------------------------------------------------------------------
  // Elements are built, never parsed from text, so nothing in a caption or a name can become markup.
  function el(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === false || value === null || value === undefined) continue;
      node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null));
    return node;
  }
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

  // ---- what is asked for: one plain object, kept in the address ----------------------------------------------
  const EMPTY = { b: "0", model: "0", kind: "", group: "", versus: "", text: "", sort: "", pictures: "", all: "", page: "1" };
  let state = { ...EMPTY };
  const bench = () => benchmarks[Number(state.b)] || benchmarks[0];
  const quad = () => bench().form === "quad";
  const partly = (b) => b.pictured > 0 && b.pictured < b.ids.length;
  const allModels = () => (state.all ? state.all === "1" : bench().models.length <= 4);

  function readAddress() {
    const [place, query] = location.hash.slice(1).split("?");
    if (place !== "questions" || query === undefined) return false;
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
    asked.set("model", bench().models[Number(state.model)].name);
    history.replaceState(null, "", `#questions?${asked}`);
  }

  // ---- which questions ---------------------------------------------------------------------------------------
  const kindOf = (m, q) => Number(bench().models[m].kinds[q]);
  const pictured = (q) => bench().imageAt[q].every((i) => bench().images[i][1] >= 0);
  const rightCount = (q) => bench().models.reduce((sum, model) => sum + (model.kinds[q] === "0"), 0);

  function haystack(q) {
    const b = bench();
    const captions = b.captionAt[q].map((c) => b.captions[c][0] || "");
    const groups = b.groupings.map((g) => (g.codes[q] < 0 ? "" : g.labels[g.codes[q]]));
    return [b.ids[q], ...captions, ...groups].join("\n").toLowerCase();
  }
  function matchesAllBut(without, q) {
    const b = bench();
    const m = Number(state.model);
    if (without !== "kind" && state.kind !== "" && kindOf(m, q) !== Number(state.kind)) return false;
    if (state.group) {
      const [g, label] = state.group.split(".").map(Number);
      if (!b.groupings[g] || b.groupings[g].codes[q] !== label) return false;
    }
    if (state.versus === "any") {
      const right = rightCount(q);
      if (right === 0 || right === b.models.length) return false;
    } else if (state.versus) {
      const other = Number(state.versus);
      if (!b.models[other] || (kindOf(other, q) === 0) === (kindOf(m, q) === 0)) return false;
    }
    if (state.pictures === "1" && !pictured(q)) return false;
    return state.text.trim().toLowerCase().split(/\s+/).filter(Boolean).every((word) => haystack(q).includes(word));
  }
  function margin(q) {
    const scores = bench().models[Number(state.model)].scores;
    if (!scores) return 0;
    const s = scores[q];
    if (quad()) return Math.min(s[0], s[3]) - Math.max(s[1], s[2]);
    return Math.min(...s.slice(0, bench().correct)) - Math.max(...s.slice(bench().correct));
  }
  function chosen() {
    const found = [...bench().ids.keys()].filter((q) => matchesAllBut("", q));
    const by = {
      kind: (q) => -kindOf(Number(state.model), q),
      hard: (q) => rightCount(q),
      easy: (q) => -rightCount(q),
      close: (q) => Math.abs(margin(q)),
      worst: (q) => margin(q),
      file: () => 0,
      "": (q) => (pictured(q) ? 0 : 1),
    }[state.sort];
    if (!by) return found;
    return found.map((q) => [by(q), q]).sort((x, y) => x[0] - y[0] || x[1] - y[1]).map(([, q]) => q);
  }

  // ---- controls ----------------------------------------------------------------------------------------------
  function select(name, label, options, value) {
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
    const form = el("form", { class: "controls", role: "search", "aria-label": "Choose questions" });
    form.addEventListener("submit", (event) => event.preventDefault());
    if (benchmarks.length > 1) {
      form.append(select("b", "Benchmark", benchmarks.map((x, i) => ({ value: String(i), label: x.title })), state.b));
    }
    form.append(select("model", "Scorer", b.models.map((model, i) => ({ value: String(i), label: model.name })), state.model));
    if (b.groupings.length) {
      const groups = b.groupings.map((g, i) => ({
        label: g.name,
        options: g.labels.map((label, j) => ({ value: `${i}.${j}`, label: `${label} (${count(g.codes.filter((c) => c === j).length)})` })),
      }));
      form.append(select("group", "Group", [{ value: "", label: "all groups" }, ...groups], state.group));
    }
    if (others.length) {
      const versus = [{ value: "", label: "all questions" }, { value: "any", label: "some scorers right, some not" },
        { label: `${b.models[Number(state.model)].name} and … differ`, options: others }];
      form.append(select("versus", "Disagreement", versus, state.versus));
    }
    const scored = b.models[Number(state.model)].scores;
    form.append(select("sort", "Order", [
      { value: "", label: partly(b) ? "with pictures first" : "as in the benchmark" },
      ...(partly(b) ? [{ value: "file", label: "as in the benchmark" }] : []),
      { value: "kind", label: "worst kind of failure first" },
      ...(others.length ? [{ value: "hard", label: "fewest scorers right first" }, { value: "easy", label: "most scorers right first" }] : []),
      ...(scored ? [{ value: "close", label: "closest calls first" }, { value: "worst", label: "most wrong by margin first" }] : []),
    ], state.sort));
    const search = el("input", { type: "search", name: "text", value: state.text, placeholder: "words, id or group" });
    search.addEventListener("input", () => change({ text: search.value }, false));
    form.append(el("label", {}, el("span", {}, "Search"), search));

    const tied = b.ties === "half" ? " (a tie fails here, though it is worth something in the measures)" : "";
    const kinds = el("fieldset", {}, el("legend", {}, `What fails for ${b.models[Number(state.model)].name}${tied}`));
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
    if (b.models.length > 1) check("all", "answers of all scorers", allModels());
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

  // ---- cards -------------------------------------------------------------------------------------------------
  function picture(i, alt) {
    const [name, number] = bench().images[i];
    if (number < 0) return el("span", { class: "name" }, `image ${name}`);
    return el("img", { src: pictures[number], alt, title: name });
  }
  const caption = (c) => {
    const [text, name] = bench().captions[c];
    return text === null ? el("span", { class: "name" }, `caption ${name}`) : text;
  };
  const directions = (model, q) => {
    const bits = parseInt(model.directions[q], 16);
    return { ipos2t: !!(bits & 1), ineg2t: !!(bits & 2), tpos2i: !!(bits & 4), tneg2i: !!(bits & 8) };
  };

  // Two captions by two images. A wrong pair is tinted where it keeps a true one from winning.
  function quadTable(q) {
    const b = bench();
    const model = b.models[Number(state.model)];
    const right = directions(model, q);
    const texts = model.scores ? written(model.scores[q]) : null;
    const [c0, c1] = b.captionAt[q];
    const [i0, i1] = b.imageAt[q];
    const cell = (slot, own, fails) =>
      el("td", { class: `score ${own ? "true" : fails ? "beats" : ""}`, title: own ? "belongs together" : fails ? "scores at least as high as a true pair" : null },
        texts ? texts[slot] : own ? "true" : "");
    const picks = (ok) => el("td", { class: "picks" }, mark(ok));
    const table = el("table", { class: "pairs" },
      el("caption", { class: "visually-hidden" }, `Scores of ${model.name}: captions in rows, images in columns`),
      el("thead", {}, el("tr", {},
        el("td", {}),
        el("th", { scope: "col", class: "image" }, picture(i0, "first image")),
        el("th", { scope: "col", class: "image" }, picture(i1, "second image")),
        el("th", { scope: "col", class: "picks" }, el("span", { class: "word" }, "picks its image")))),
      el("tbody", {},
        el("tr", {}, el("th", { scope: "row", class: "text" }, caption(c0)),
          cell(0, true), cell(1, false, !right.tpos2i || !right.ineg2t), picks(right.tpos2i)),
        el("tr", {}, el("th", { scope: "row", class: "text" }, caption(c1)),
          cell(2, false, !right.tneg2i || !right.ipos2t), cell(3, true), picks(right.tneg2i)),
        el("tr", {}, el("th", { scope: "row", class: "axis" }, "picks its caption"),
          el("td", { class: "picked" }, mark(right.ipos2t)), el("td", { class: "picked" }, mark(right.ineg2t)), el("td", {}))));
    return table;
  }
  function quadModels(q) {
    const b = bench();
    const scored = b.models.some((model) => model.scores);
    const head = el("tr", {}, el("th", { scope: "col" }, "scorer"),
      el("th", { scope: "col", class: "marks" }, "I2T"), el("th", { scope: "col", class: "marks" }, "T2I"));
    if (scored) for (const pair of ["C₀I₀", "C₀I₁", "C₁I₀", "C₁I₁"]) head.append(el("th", { scope: "col" }, pair));
    const rows = b.models.map((model, m) => {
      const right = directions(model, q);
      const row = el("tr", { class: String(m) === state.model ? "chosen" : null }, el("th", { scope: "row", title: model.name }, model.name),
        el("td", { class: "marks" }, mark(right.ipos2t), mark(right.ineg2t)), el("td", { class: "marks" }, mark(right.tpos2i), mark(right.tneg2i)));
      if (scored) {
        const texts = model.scores ? written(model.scores[q]) : ["", "", "", ""];
        texts.forEach((text, slot) => row.append(el("td", { class: slot === 0 || slot === 3 ? "true" : null }, text)));
      }
      return row;
    });
    return el("div", { class: "models-scroll" }, el("table", { class: "models" }, el("thead", {}, head), el("tbody", {}, ...rows)));
  }
  function choiceTable(q) {
    const b = bench();
    const model = b.models[Number(state.model)];
    const fromImage = b.asks === "image";
    const candidates = fromImage ? b.captionAt[q] : b.imageAt[q];
    const scores = model.scores ? model.scores[q] : null;
    const texts = scores ? written(scores) : null;
    const bar = scores ? Math.min(...scores.slice(0, b.correct)) : 0;
    const failed = model.kinds[q] !== "0";
    const rows = candidates.map((c, k) => {
      const own = k < b.correct;
      const beats = scores && failed && !own && scores[k] >= bar;
      return el("tr", {},
        el("th", { scope: "row" }, fromImage ? caption(c) : picture(c, `candidate ${k + 1}`)),
        el("td", { class: `score ${own ? "true" : beats ? "beats" : ""}`, title: own ? "a right one" : beats ? "scores at least as high as a right one" : null },
          texts ? texts[k] : own ? "right" : "wrong"));
    });
    const table = el("table", { class: "candidates" },
      el("caption", { class: "visually-hidden" }, `Candidates and their scores by ${model.name}`), el("tbody", {}, ...rows));
    const query = fromImage ? picture(b.imageAt[q][0], "the image asked about") : el("p", {}, caption(b.captionAt[q][0]));
    return el("div", { class: "query" }, query, table);
  }
  function choiceModels(q) {
    const b = bench();
    const k = (b.asks === "image" ? b.captionAt : b.imageAt)[q].length;
    const scored = b.models.some((model) => model.scores);
    const head = el("tr", {}, el("th", { scope: "col" }, "scorer"), el("th", { scope: "col", class: "marks" }, ""));
    if (scored) for (let i = 0; i < k; i++) head.append(el("th", { scope: "col" }, i < b.correct ? (b.correct > 1 ? `right ${i + 1}` : "right") : k - b.correct > 1 ? `wrong ${i - b.correct + 1}` : "wrong"));
    const rows = b.models.map((model, m) => {
      const row = el("tr", { class: String(m) === state.model ? "chosen" : null }, el("th", { scope: "row", title: model.name }, model.name),
        el("td", { class: "marks" }, mark(model.kinds[q] === "0")));
      if (scored) (model.scores ? written(model.scores[q]) : Array(k).fill("")).forEach((text, i) => row.append(el("td", { class: i < b.correct ? "true" : null }, text)));
      return row;
    });
    return el("div", { class: "models-scroll" }, el("table", { class: "models" }, el("thead", {}, head), el("tbody", {}, ...rows)));
  }
  function card(q) {
    const b = bench();
    const kind = kindOf(Number(state.model), q);
    const groups = [...new Set(b.groupings.map((g) => (g.codes[q] < 0 ? "" : g.labels[g.codes[q]])).filter(Boolean))];
    const node = el("article", { class: "card", tabindex: "0", "data-question": b.ids[q], "data-kind": String(kind), "aria-label": `Question ${b.ids[q]}: ${b.kinds[kind]}` },
      el("header", {}, el("h3", {}, `#${b.ids[q]}`), el("span", { class: "groups" }, groups.join(" · ")),
        el("span", { class: kind === 0 ? "verdict good" : "verdict bad" }, b.kinds[kind])),
      quad() ? quadTable(q) : choiceTable(q));
    if (allModels() && b.models.length > 1) node.append(quad() ? quadModels(q) : choiceModels(q));
    return node;
  }

  // ---- putting it together -----------------------------------------------------------------------------------
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
      el("output", { ...said, "data-count": String(n) }, n ? `${count(first)}–${count(Math.min(n, page * PER_PAGE))} of ${count(n)} questions` : "no question"),
      el("span", { class: "hint" }, "arrow keys: ← → pages, ↑ ↓ questions"),
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
      shown.length ? el("div", { class: "cards" }, ...shown.map(card)) : el("p", { class: "empty" }, "No question is like that."),
      ...(shown.length > 2 ? [pager(found.length, pages, "bottom")] : []));
    writeAddress();
  }
  function build() {
    for (const note of section.querySelectorAll("[data-pictures]")) note.hidden = note.dataset.pictures !== bench().anchor;
    form = controls();
    root.replaceChildren(form, results);
    render();
  }
  function change(what, rebuild = true) {
    const focused = document.activeElement && root.contains(document.activeElement) ? document.activeElement.name : "";
    if ("b" in what && what.b !== state.b) state = { ...EMPTY, b: what.b, model: String(benchmarks[Number(what.b)].best) };
    else state = { ...state, ...what, page: "1" };
    if ("model" in what && state.versus === state.model) state.versus = "";
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
  // On paper nothing unfolds, and where the numbers come from belongs to them.
  const records = [...document.querySelectorAll("#provenance details")];
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = records.filter((record) => !record.open);
    for (const record of folded) record.open = true;
  });
  addEventListener("afterprint", () => {
    for (const record of folded) record.open = false;
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
})();
