// The browser of captions that people rated, or preferred one to another.
(() => {
  const benchmarks = carried.judged;
  const rated = (b) => b.form === "rated";
  const signed = (value) => (value > 0 ? "+" : value < 0 ? "−" : "") + Math.abs(value).toFixed(0);

  // ---- which questions ---------------------------------------------------------------------------------------
  const lead = (b, q, model) => model.scores[q][b.label[q]] - model.scores[q][1 - b.label[q]];
  const scored = (b) => b.models.filter((model) => model.scores);
  const apart = (b, q) => {
    const places = scored(b).map((model) => model.standing[q]);
    return places.length ? Math.max(...places) - Math.min(...places) : 0;
  };
  const away = (b, q) => scored(b).reduce((sum, model) => sum + Math.abs(model.away[q]), 0);
  function orders(b, model) {
    if (!rated(b)) {
      if (!model.scores) return [];
      return [
        { value: "close", label: "closest calls first", by: (q) => Math.abs(lead(b, q, model)) },
        { value: "worst", label: "most wrong by margin first", by: (q) => lead(b, q, model) },
      ];
    }
    return [
      ...(model.scores ? [{ value: "far", label: "farthest from the ratings first", by: (q) => -Math.abs(model.away[q]) }] : []),
      ...(scored(b).length > 1
        ? [{ value: "allfar", label: "all models farthest from the ratings first", by: (q) => -away(b, q) },
          { value: "apart", label: "models farthest from one another first", by: (q) => -apart(b, q) }]
        : []),
    ];
  }

  // ---- cards -------------------------------------------------------------------------------------------------
  function seen(b, q) {
    const shown = [...new Set(b.imageAt[q])];
    const box = el("div", { class: b.shows === "video" ? "seen video" : "seen" });
    for (const i of shown.slice(0, 4)) box.append(picture(b, i, b.shows === "video" ? "frames of the video asked about" : "the image asked about"));
    if (shown.length > 4) box.append(el("span", { class: "name" }, `and ${count(shown.length - 4)} more`));
    return box;
  }
  function references(b, q) {
    if (!b.references || !b.references[q][0]) return null;
    const [n, first] = b.references[q];
    const list = el("ul", {}, ...first.map((c) => el("li", {}, caption(b, c))));
    if (n > first.length) list.append(el("li", { class: "name" }, `and ${count(n - first.length)} more`));
    return el("details", { class: "references" }, el("summary", {}, n === 1 ? "1 reference" : `${count(n)} references`), list);
  }
  const sentences = (b, of) => (of.length === 1 ? caption(b, of[0]) : el("ul", { class: "sentences" }, ...of.map((c) => el("li", {}, caption(b, c)))));
  const plain = (value) => String(Number(value.toPrecision(4)));
  function rating(b, q) {
    const given = b.ratings[q].filter((value) => value !== null);
    const mean = given.reduce((sum, value) => sum + value, 0) / given.length;
    const said = el("p", { class: "people" }, given.length > 1 ? "Ratings: " : "Rating: ", el("strong", {}, given.map(plain).join(", ")));
    if (given.length > 1) said.append(`, ${plain(mean)} on average`);
    return said;
  }
  function ratedBody(b, q, model) {
    const text = el("div", { class: "judged-text" }, el("p", { class: "candidate" }, sentences(b, b.candidates[q][0])), rating(b, q));
    if (model.scores) {
      const off = model.away[q];
      const found = off ? `, its rating ${Math.abs(off).toFixed(0)} ${off > 0 ? "lower" : "higher"}` : ", as its rating";
      text.append(el("p", { class: "people" }, `${model.name}: `, el("strong", {}, written(model.scores[q])[0]), `, place ${model.standing[q].toFixed(0)} of 100${found}`));
    }
    text.append(...[references(b, q)].filter(Boolean));
    return [el("div", { class: b.shows === "video" ? "judged-card video" : "judged-card" }, seen(b, q), text)];
  }
  function preferenceBody(b, q, model) {
    const texts = model.scores ? written(model.scores[q]) : null;
    const failed = model.kinds[q] !== "0";
    const most = b.votes[q][0] + b.votes[q][1];
    const rows = b.candidates[q].map((of, side) => {
      const own = side === b.label[q];
      return el("tr", {}, el("th", { scope: "row" }, sentences(b, of)),
        el("td", { class: "votes" }, `${plain(b.votes[q][side])} of ${plain(most)}`),
        el("td", { class: `score ${own ? "true" : failed ? "beats" : ""}`, title: own ? "the preferred one" : failed ? "scores at least as high as the preferred one" : null },
          texts ? texts[side] : own ? "preferred" : ""));
    });
    const table = el("table", { class: "candidates" }, el("caption", { class: "visually-hidden" }, `Candidates, votes, and scores by ${model.name}`),
      el("thead", {}, el("tr", {}, el("td", {}), el("th", { scope: "col" }, "votes"), el("th", { scope: "col" }, "score"))), el("tbody", {}, ...rows));
    const text = el("div", { class: "judged-text" }, table, ...[references(b, q)].filter(Boolean));
    return [el("div", { class: b.shows === "video" ? "judged-card video" : "judged-card" }, seen(b, q), text)];
  }
  function models(b, q, chosen) {
    const heads = rated(b) ? ["score", "place of 100", "from rating"] : ["", "first", "second"];
    return answersTable(b, chosen, heads.map((text) => (text ? head(text) : head(unseen("right or wrong"), "marks"))), (model) => {
      if (rated(b)) {
        const texts = model.scores ? [written(model.scores[q])[0], model.standing[q].toFixed(0), model.away[q] ? signed(model.away[q]) : "0"] : ["", "", ""];
        return texts.map((text) => el("td", {}, text));
      }
      const texts = model.scores ? written(model.scores[q]) : ["", ""];
      return [el("td", { class: "marks" }, mark(model.kinds[q] === "0")),
        ...texts.map((text, side) => el("td", { class: side === b.label[q] ? "true" : null }, text))];
    });
  }

  openBrowser({
    ...grouped,
    place: "judgements",
    benchmarks,
    agreed: (b) => (rated(b) ? "near the rating" : "right"),
    orders,
    haystack: (b, q) => [b.ids[q], ...b.candidates[q].flat().map((c) => b.captions[c][0] || ""), ...labelsOf(b, q)].join("\n").toLowerCase(),
    legend: (b, model) => rated(b) ? `Where ${model.name} puts a caption among all (as rated: within 20 of 100)`
      : `Whether ${model.name} scores the preferred one higher${b.ties === "half" ? " (a tie fails here, though it is worth something in the measures)" : ""}`,
    card: (b, q, m) => ({
      groups: groupsOf(b, q),
      body: rated(b) ? ratedBody(b, q, b.models[m]) : preferenceBody(b, q, b.models[m]),
      models: () => models(b, q, m),
    }),
  });
})();
