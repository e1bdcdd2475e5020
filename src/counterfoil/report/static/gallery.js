// The browser of a gallery's queries.
(() => {
  const { galleries, pictures } = carried;
  const fromImage = (b, q) => q < b.split;
  const SIGNS = [["✗", "bad"], ["✓", "good"], ["◐", "good"]];

  // ---- items and marks ---------------------------------------------------------------------------------------
  function sign(b, digit, word = true) {
    const [shape, kind] = SIGNS[digit];
    return el("span", { class: `mark ${kind}`, title: b.marks[digit] }, el("span", { "aria-hidden": "true" }, shape),
      el("span", { class: word ? "word" : "visually-hidden" }, b.marks[digit]));
  }
  function picture(b, i, alt) {
    const [name, number] = b.images[i];
    if (number < 0) return el("span", { class: "name" }, `image ${name}`);
    return enlargeable(el("img", { src: pictures[number], alt: `${alt} (${name})`, title: name }));
  }
  function caption(b, i) {
    const [text, name] = b.captions[i];
    return text === null ? el("span", { class: "name" }, `caption ${name}`) : el("span", { class: "said" }, text);
  }
  const item = (b, q, i, alt) => (fromImage(b, q) ? caption(b, i) : picture(b, i, alt));
  const first = (model, q) => model.top[q].map((i, k) => [i, Number(model.marks[q][k])]).filter(([i]) => i >= 0);
  const places = (low, high) => (low === high ? count(low) : high < 0 ? `${count(low)} or later (tied)` : `${count(low)} to ${count(high)} (tied)`);
  const brief = (low, high) => (low === high ? (low ? count(low) : "–") : high < 0 ? `${count(low)}+` : `${count(low)}–${count(high)}`);

  // ---- one query ---------------------------------------------------------------------------------------------
  function shown(b, q, model) {
    const given = model.scores ? model.scores[q] : [];
    const texts = given.length ? written(given) : [];
    const rows = first(model, q).map(([i, digit], k) =>
      el("li", { class: digit ? "right" : null },
        el("span", { class: "place" }, String(k + 1)), item(b, q, i, `place ${k + 1}`),
        el("span", { class: "says" }, sign(b, digit), k < texts.length ? el("span", { class: "score" }, texts[k]) : null)));
    if (!rows.length) return null;
    return el("ol", { class: fromImage(b, q) ? "top captions" : "top images", "aria-label": `What ${model.name} puts first` }, ...rows);
  }
  // How many answers are right, and where the first of them stands that is not among those shown.
  function rest(b, q, model) {
    const total = b.right[q];
    const top = first(model, q);
    const seen = top.filter(([, digit]) => digit).length;
    const [low, high] = model.first[q];
    const told = total === 1 ? "1 answer is right, and it is " : `${count(total)} answers are right, ${seen ? count(seen) : "none"} of them `;
    const said = el("p", { class: "rest" }, top.length ? `${told}${total > 1 || seen ? "" : "not "}among the ${top.length} shown.` : `${count(total)} ${total === 1 ? "answer is" : "answers are"} right.`);
    if (seen && low !== high) said.append(` ${total === 1 ? "It" : "The first of them"} scores the same as a wrong one: it stands at ${count(low)} ${high < 0 ? "or later" : `to ${count(high)}`}.`);
    const missed = model.missed ? model.missed[q] : 0;
    if (!missed) return said;
    const [i, from, to] = missed;
    const which = seen ? "The first one missed" : total === 1 ? "It" : "The first";
    if (i < 0) said.append(seen ? " What is missed is outside the gallery." : total === 1 ? " It is outside the gallery." : " They are outside the gallery.");
    else said.append(from ? ` ${which} stands at ${places(from, to)}: ` : ` ${which} is behind the end of the ranking: `, item(b, q, i, "a right answer"));
    return said;
  }
  function body(b, q, model) {
    const asked = fromImage(b, q) ? picture(b, b.query[q], "the image that asks") : el("p", { class: "asked" }, caption(b, b.query[q]));
    return [el("div", { class: fromImage(b, q) ? "asking image" : "asking caption" }, asked, shown(b, q, model)), rest(b, q, model)];
  }
  function models(b, q, chosen) {
    const listed = b.models.some((model) => first(model, q).length);
    return answersTable(b, chosen, [listed ? head("first items", "marks") : null, head("first right at")], (model) => [
      listed ? el("td", { class: "marks" }, ...first(model, q).map(([, digit]) => sign(b, digit, false))) : null,
      el("td", {}, brief(...model.first[q]))]);
  }

  // ---- which queries -----------------------------------------------------------------------------------------
  function haystack(b, q) {
    const texts = fromImage(b, q) ? b.models.flatMap((model) => model.top[q]).filter((i) => i >= 0) : [b.query[q]];
    return [b.ids[q], ...texts.map((i) => b.captions[i][0] || "")].join("\n").toLowerCase();
  }
  function filters(b, select) {
    const n = b.ids.length;
    if (!b.split || b.split === n) return [];
    return [select("asks", "Direction", [{ value: "", label: `both (${count(n)})` }, { value: "i2t", label: `image → captions (${count(b.split)})` },
      { value: "t2i", label: `caption → images (${count(n - b.split)})` }])];
  }

  openBrowser({
    place: "queries",
    noun: ["Query", "queries"],
    benchmarks: galleries,
    empty: { asks: "" },
    placeholder: "words or id",
    passes: (b, q, state) => !state.asks || (state.asks === "i2t") === fromImage(b, q),
    orders: (b, model) => [
      { value: "many", label: "most right answers first", by: (q) => -b.right[q] },
      { value: "far", label: "right answers farthest down first", by: (q) => -(model.first[q][1] > 0 ? model.first[q][1] : Number.MAX_SAFE_INTEGER) },
    ],
    filters,
    haystack,
    pictured: (b, q) => b.pictures[q] === "1",
    legend: (b, model) => `Where ${model.name} has a right answer${b.ties === "half" ? " (a tie counts as missed here, though it is worth something in the measures)" : ""}`,
    card: (b, q, m) => ({
      groups: fromImage(b, q) ? "image → captions" : "caption → images",
      body: body(b, q, b.models[m]),
      models: () => models(b, q, m),
    }),
  });
})();
