// The browser of quads, choices and statements.
(() => {
  const { benchmarks } = carried;
  const quad = (b) => b.form === "quad";
  const statement = (b) => b.form === "statement";

  // ---- which questions ---------------------------------------------------------------------------------------
  function margin(b, q, model) {
    const s = model.scores[q];
    if (statement(b)) return model.margins ? model.margins[q] : 0;
    if (quad(b)) return Math.min(s[0], s[3]) - Math.max(s[1], s[2]);
    return Math.min(...s.slice(0, b.correct)) - Math.max(...s.slice(b.correct));
  }
  function orders(b, model) {
    if (!model.scores) return [];
    return [
      { value: "close", label: "closest calls first", by: (q) => Math.abs(margin(b, q, model)) },
      { value: "worst", label: "most wrong by margin first", by: (q) => margin(b, q, model) },
    ];
  }
  // ---- cards -------------------------------------------------------------------------------------------------
  const directions = (model, q) => {
    const bits = parseInt(model.directions[q], 16);
    return { ipos2t: !!(bits & 1), ineg2t: !!(bits & 2), tpos2i: !!(bits & 4), tneg2i: !!(bits & 8) };
  };

  // Two captions by two images. A wrong pair is tinted where it keeps a true one from winning.
  function quadTable(b, q, model) {
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
        el("th", { scope: "col", class: "image" }, picture(b, i0, "first image")),
        el("th", { scope: "col", class: "image" }, picture(b, i1, "second image")),
        el("th", { scope: "col", class: "picks" }, el("span", { class: "word" }, "picks its image")))),
      el("tbody", {},
        el("tr", {}, el("th", { scope: "row", class: "text" }, caption(b, c0)),
          cell(0, true), cell(1, false, !right.tpos2i || !right.ineg2t), picks(right.tpos2i)),
        el("tr", {}, el("th", { scope: "row", class: "text" }, caption(b, c1)),
          cell(2, false, !right.tneg2i || !right.ipos2t), cell(3, true), picks(right.tneg2i)),
        el("tr", {}, el("th", { scope: "row", class: "axis" }, "picks its caption"),
          el("td", { class: "picked" }, mark(right.ipos2t)), el("td", { class: "picked" }, mark(right.ineg2t)), el("td", {}))));
    return table;
  }
  function quadModels(b, q, chosen) {
    const scored = b.models.some((model) => model.scores);
    const slots = scored ? ["C₀I₀", "C₀I₁", "C₁I₀", "C₁I₁"] : [];
    return answersTable(b, chosen, [head("I2T", "marks"), head("T2I", "marks"), ...slots.map((pair) => head(pair))], (model) => {
      const right = directions(model, q);
      const texts = model.scores ? written(model.scores[q]) : slots.map(() => "");
      return [el("td", { class: "marks" }, mark(right.ipos2t), mark(right.ineg2t)), el("td", { class: "marks" }, mark(right.tpos2i), mark(right.tneg2i)),
        ...texts.map((text, slot) => el("td", { class: slot === 0 || slot === 3 ? "true" : null }, text))];
    });
  }
  function choiceTable(b, q, model) {
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
        el("th", { scope: "row" }, fromImage ? caption(b, c) : picture(b, c, `candidate ${k + 1}`)),
        el("td", { class: `score ${own ? "true" : beats ? "beats" : ""}`, title: own ? "a right one" : beats ? "scores at least as high as a right one" : null },
          texts ? texts[k] : own ? "right" : "wrong"));
    });
    const table = el("table", { class: "candidates" },
      el("caption", { class: "visually-hidden" }, `Candidates and their scores by ${model.name}`), el("tbody", {}, ...rows));
    const query = fromImage ? picture(b, b.imageAt[q][0], "the image asked about") : el("p", {}, caption(b, b.captionAt[q][0]));
    return el("div", { class: "query" }, query, table);
  }
  function choiceModels(b, q, chosen) {
    const k = statement(b) ? 1 : (b.asks === "image" ? b.captionAt : b.imageAt)[q].length;
    const scored = b.models.some((model) => model.scores);
    const name = (i) => statement(b) ? "score" : i < b.correct ? (b.correct > 1 ? `right ${i + 1}` : "right") : k - b.correct > 1 ? `wrong ${i - b.correct + 1}` : "wrong";
    const slots = scored ? Array(k).fill("") : [];
    return answersTable(b, chosen, [head(unseen("right or wrong"), "marks"), ...slots.map((_, i) => head(name(i)))], (model) => [
      el("td", { class: "marks" }, mark(model.kinds[q] === "0")),
      ...(model.scores ? written(model.scores[q]) : slots).map((text, i) => el("td", { class: i < b.correct ? "true" : null }, text))]);
  }

  function statementTable(b, q, model) {
    const wrong = model.kinds[q] !== "0";
    return el("div", { class: "query" }, picture(b, b.imageAt[q][0], "the image"),
      el("table", { class: "candidates" },
        el("caption", { class: "visually-hidden" }, `The statement and its score by ${model.name}`),
        el("tbody", {}, el("tr", {}, el("th", { scope: "row" }, caption(b, b.captionAt[q][0]), ` (${b.truth[q] ? "true" : "false"})`),
          el("td", { class: `score ${wrong ? "beats" : "true"}` }, model.scores ? written(model.scores[q])[0] : wrong ? "wrong" : "right")))));
  }

  openBrowser({
    ...grouped,
    place: "questions",
    benchmarks,
    orders,
    haystack: (b, q) => [b.ids[q], ...b.captionAt[q].map((c) => b.captions[c][0] || ""), ...labelsOf(b, q)].join("\n").toLowerCase(),
    legend: (b, model) => `What fails for ${model.name}${b.ties === "half" ? " (a tie fails here, though it is worth something in the measures)" : ""}`,
    card: (b, q, m) => ({
      groups: groupsOf(b, q),
      body: [quad(b) ? quadTable(b, q, b.models[m]) : statement(b) ? statementTable(b, q, b.models[m]) : choiceTable(b, q, b.models[m])],
      models: () => (quad(b) ? quadModels(b, q, m) : choiceModels(b, q, m)),
    }),
  });
})();
