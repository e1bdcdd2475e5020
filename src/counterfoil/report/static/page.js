"use strict";
// What every page can do with its own tables and pictures: sort, save as CSV, enlarge. Without a script all
// numbers are there just the same, in the order of the figures.

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

// ---- pictures ------------------------------------------------------------------------------------------------
const enlarged = el("dialog", { class: "enlarged", "aria-label": "Enlarged picture" });
enlarged.addEventListener("click", () => enlarged.close());
document.body.append(enlarged);

// A picture that opens large when it is clicked, or chosen with the keyboard; Escape or a click closes it.
function enlargeable(picture) {
  const button = el("button", { type: "button", class: "enlarge", "aria-label": `Enlarge: ${picture.alt}` }, picture);
  button.addEventListener("click", () => {
    const close = el("button", { type: "button", class: "close" }, "Close");
    enlarged.replaceChildren(el("img", { src: picture.src, alt: picture.alt }), el("p", {}, picture.title || picture.alt), close);
    enlarged.showModal();
  });
  return button;
}
for (const picture of document.querySelectorAll("main figure.pair img, main .shelf img")) {
  const place = picture.nextSibling;
  const parent = picture.parentNode;
  parent.insertBefore(enlargeable(picture), place);
}

// ---- folded parts --------------------------------------------------------------------------------------------
// A link into a folded part unfolds it.
function unfold() {
  const target = location.hash && document.getElementById(location.hash.slice(1).split("?")[0]);
  for (let part = target && target.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  if (target && target.matches("details")) target.scrollIntoView();
}
addEventListener("hashchange", unfold);
unfold();

// ---- tables --------------------------------------------------------------------------------------------------
(() => {
  // The number a cell stands for: as the page carries it, else as its text says it.
  function value(cell) {
    if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
    const text = cell.textContent.trim().replace(/−/g, "-").replace(/(\d),(?=\d{3})/g, "$1");
    const found = text.match(/^[×<]?\s*([+-]?(?:\d+\.?\d*|\.\d+))/);
    return found ? Number(found[1]) : null;
  }
  const words = (cell) => (cell.querySelector("span") || cell).textContent.trim().replace(/\s+/g, " ");
  const SECTIONS = { none: "descending", descending: "ascending", ascending: "none" };

  function sortable(table) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows].reverse().find((row) => row.querySelector("th[scope=col]"));
    if (!body || !heads || body.rows.length < 2) return;
    const first = [...body.rows];
    const of = (row, at) => row.cells[at];
    [...heads.cells].forEach((head, at) => {
      const button = el("button", { type: "button", class: "sort" }, ...head.childNodes);
      head.replaceChildren(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const order = SECTIONS[head.getAttribute("aria-sort")];
        for (const other of heads.cells) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", order);
        const sign = order === "descending" ? -1 : 1;
        const keyed = first.map((row, i) => [row, at === 0 ? null : value(of(row, at)), words(of(row, at)), i]);
        keyed.sort((x, y) => {
          // Chance stays on top, what has no value at the end, equal rows in the order they had.
          const chance = y[0].classList.contains("chance") - x[0].classList.contains("chance");
          if (chance || order === "none") return chance || x[3] - y[3];
          if (at > 0 && (x[1] === null) !== (y[1] === null)) return (x[1] === null) - (y[1] === null);
          const less = at === 0 || x[1] === null ? x[2].localeCompare(y[2], "en", { numeric: true }) * -1 : x[1] - y[1];
          return sign * less || x[3] - y[3];
        });
        body.append(...keyed.map(([row]) => row));
      });
    });
  }

  // A text that a spreadsheet takes for a formula gets an apostrophe before it.
  const plain = (text) => (/^[=+\-@\t\r]/.test(text) && !/^[+-]?[\d.]+$/.test(text) ? `'${text}` : text);
  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);

  function csv(table) {
    const rows = [...table.tHead.rows];
    const heads = rows.reverse().find((row) => row.querySelector("th[scope=col]"));
    const blocks = [];
    for (const cell of table.querySelectorAll("thead th.block")) for (let i = 0; i < cell.colSpan; i++) blocks.push(words(cell));
    const body = [...table.tBodies[0].rows];
    const ranged = [...heads.cells].map((_, at) => body.some((row) => row.cells[at].dataset.low !== undefined));
    const title = (cell, at) => [at && blocks.length ? blocks[at - 1] : "", cell.textContent.trim().replace(/\s+/g, " ")].filter(Boolean).join(" ");
    const lines = [[...heads.cells].flatMap((cell, at) => (ranged[at] ? ["", " low", " high"].map((end) => title(cell, at) + end) : [title(cell, at)]))];
    for (const row of body) {
      lines.push([...row.cells].flatMap((cell, at) => {
        const shown = cell.dataset.v !== undefined ? cell.dataset.v : words(cell).replace(/^–$/, "").replace(/−/g, "-");
        return ranged[at] ? [shown, cell.dataset.low || "", cell.dataset.high || ""] : [shown];
      }));
    }
    return lines.map((line) => line.map((text) => quoted(plain(text))).join(",") + "\r\n").join("");
  }

  function saved(table) {
    const caption = table.caption ? words(table.caption) : document.title;
    const button = el("button", { type: "button", class: "save", "aria-label": `Save as CSV: ${caption}` }, "Save as CSV");
    button.addEventListener("click", () => {
      const name = caption.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "table";
      const link = el("a", { href: URL.createObjectURL(new Blob([csv(table)], { type: "text/csv" })), download: `${name}.csv` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
    return button;
  }
  for (const table of document.querySelectorAll("main table.numbers")) {
    sortable(table);
    table.closest(".scroll").after(saved(table));
  }
})();
