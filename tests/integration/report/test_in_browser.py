"""The page in a real browser: what it counts and shows is what the arrays say, and it fetches nothing."""

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest

from counterfoil.report.comparison_tables import ranking
from counterfoil.report.forms import FORMS
from counterfoil.report.forms.gallery import FIRST, kinds, marks
from counterfoil.report.forms.rated import distance
from counterfoil.report.html import environment, render
from counterfoil.report.page import page
from counterfoil.report.tables import Cell, Column, Row, Table
from report_fixtures import opening

pytestmark = pytest.mark.browser
MARKS = ("wrong", "right", "partly right")


@pytest.fixture(scope="module")
def view(chromium, report, tmp_path_factory):
    """The report, opened once."""
    with opening(chromium, tmp_path_factory.mktemp("report")) as open_page:
        yield open_page(report)


class Browser:
    """The browser of one form in an open page, at the beginning of one benchmark."""

    def __init__(self, view, place, anchor):
        self.view, self.place = view, f"#{place} "
        if view.evaluate("location.hash") != f"{place}?b={anchor}":
            view.evaluate(
                "hash => new Promise(done => { addEventListener('hashchange', () => setTimeout(done), "
                "{once: true}); location.hash = hash; })",
                f"#{place}?b={anchor}",
            )

    def all(self, selector):
        return self.view.locator(self.place + selector)

    def choose(self, name, **what):
        self.view.select_option(f"{self.place}select[name={name}]", **what)

    def choose_group(self, label):
        option = self.all("select[name=group] option").filter(has_text=re.compile(rf"^{label} \("))
        self.choose("group", value=option.get_attribute("value"))

    def choose_kind(self, kind):
        self.view.check(f"{self.place}input[name=kind][value='{kind}']", force=True)

    def search(self, text):
        self.view.fill(f"{self.place}input[name=text]", text)

    def reset(self):
        self.view.click(f"{self.place}button.reset")

    @property
    def counts(self):
        """The numbers on the buttons: all, then each kind of failure."""
        return [int(text.replace(",", "")) for text in self.all(".kinds .count").all_text_contents()]

    @property
    def total(self):
        return int(self.all("output[data-count]").first.get_attribute("data-count"))

    @property
    def shown(self):
        return self.all(".card").evaluate_all("cards => cards.map(card => card.dataset.question)")


def numbers(cells):
    return [float(text.replace("−", "-")) for text in cells.all_text_contents()]


# --- questions


def test_questions_are_counted_by_kind_and_filtered(quads, view):
    browser = Browser(view, "questions", "b-drawn")
    for run in quads.runs:
        browser.choose("model", label=run.name)
        expected = np.bincount(FORMS["quad"].kinds(run), minlength=4).tolist()
        assert browser.counts == [sum(expected), *expected]
    browser.choose_kind(3)
    assert browser.total == expected[3]
    assert set(browser.all(".card").evaluate_all("c => c.map(x => x.dataset.kind)")) == {"3"}
    browser.reset()

    questions = quads.runs[0].benchmark.questions
    browser.choose_group("add")
    assert browser.total == questions.groupings["type"].count("add")
    browser.reset()
    assert browser.total == len(questions)
    right = np.stack([run.items["group"] >= 1 for run in quads.runs])
    browser.choose("versus", value="any")
    assert browser.total == int((right.any(axis=0) & ~right.all(axis=0)).sum())
    browser.choose("model", label="good")
    browser.choose("versus", label="outcomes")
    assert browser.total == int((right[0] != right[2]).sum())
    # A group and a disagreement together.
    browser.choose_group("swap")
    swaps = np.array(questions.groupings["type"]) == "swap"
    assert browser.total == int((swaps & (right[0] != right[2])).sum())
    browser.reset()
    browser.search("thing 17 ")
    assert browser.shown == ["q17"]
    browser.search("no such words")
    assert browser.total == 0
    assert browser.all(".empty").is_visible()


def test_pages_turn_with_buttons_and_keys_and_the_address_remembers(view, report, opened):
    browser = Browser(view, "questions", "b-drawn")
    assert browser.shown == [f"q{i}" for i in range(12)]
    browser.all("[data-turn=Next]").first.click()
    assert browser.shown == [f"q{i}" for i in range(12, 24)]
    browser.all(".card").first.focus()
    view.keyboard.press("ArrowRight")
    view.keyboard.press("ArrowRight")
    assert browser.shown == [f"q{i}" for i in range(36, 40)]
    assert browser.all("[data-turn=Next]").first.is_disabled()
    view.keyboard.press("ArrowDown")
    assert view.evaluate("document.activeElement.dataset.question") == "q37"
    view.keyboard.press("ArrowLeft")
    browser.choose("model", label="poor & <tied>")
    browser.choose_kind(3)
    cards, place = browser.shown, "#" + view.url.split("#", 1)[1]
    again = opened(report, place=place)
    assert again.title() == "A <test> & report"
    assert again.locator("#questions .card").evaluate_all("c => c.map(x => x.dataset.question)") == cards
    assert again.locator("#questions input[name=kind]:checked").get_attribute("value") == "3"
    # A link to other questions, followed while the page is open; the other browsers stay where they are.
    queries = Browser(again, "queries", "b-drawn-gallery").shown
    again.evaluate("location.hash = '#questions?b=b-choices&model=scored&page=2'")
    again.wait_for_selector(".card[data-question=c12]")
    assert again.locator("#questions .card").count() == 3
    assert again.locator("#queries .card").evaluate_all("c => c.map(x => x.dataset.question)") == queries


def test_a_card_shows_scores_true_pairs_what_fails_and_pictures(quads, view):
    browser = Browser(view, "questions", "b-drawn")
    browser.choose("model", label="good")
    for q in range(12):
        table = browser.all(f".card[data-question=q{q}] table.pairs")
        cells = table.locator("td.score")
        values = quads.runs[0].answers.values[q].ravel()
        np.testing.assert_allclose(numbers(cells), values, atol=5.1e-4)
        # The diagonal belongs together; a false pair is marked where it keeps a true one from winning.
        true = cells.evaluate_all("c => c.map(x => x.className.includes('true'))")
        assert true == [True, False, False, True]
        s00, s01, s10, s11 = values
        marked = cells.evaluate_all("c => c.map(x => x.classList.contains('beats'))")
        assert marked == [False, s01 >= min(s00, s11), s10 >= min(s00, s11), False]
        choices = table.locator("tbody .mark").evaluate_all("c => c.map(x => x.classList.contains('good'))")
        assert choices == [s00 > s01, s11 > s10, s00 > s10, s11 > s01]
    sizes = browser.all(".card img").evaluate_all("i => i.map(x => [x.complete, x.naturalWidth > 0])")
    assert len(sizes) == 24
    assert all(complete and wide for complete, wide in sizes)
    # What is hostile is text, and what is no picture has a placeholder and a reason.
    hostile = browser.all(".card[data-question=q2]")
    assert "</script>" in hostile.inner_text()
    assert hostile.locator("img").first.get_attribute("src").startswith("data:image/svg+xml")
    view.locator("details.broken summary").click()
    assert "image-3: drawn 3: not an image file" in view.locator("details.broken").inner_text()
    browser.choose("model", label="outcomes")
    assert set(browser.all("table.pairs td.score").all_text_contents()) == {"true", ""}
    picture = browser.all(".card .enlarge").first
    small = picture.locator("img").bounding_box()["width"]
    picture.focus()
    view.keyboard.press("Enter")
    assert view.locator("dialog.enlarged img").bounding_box()["width"] > 2 * small
    view.keyboard.press("Escape")
    assert not view.locator("dialog.enlarged").is_visible()


def test_choices_have_their_own_kinds_and_candidates(choices, view):
    browser = Browser(view, "questions", "b-choices")
    for run in choices.runs:
        browser.choose("model", label=run.name)
        right = int((run.items["accuracy"] >= 1).sum())
        assert browser.counts == [len(run.items["accuracy"]), right, len(run.items["accuracy"]) - right]
    browser.choose("model", label="scored")
    scores = choices.runs[0].answers.values
    cells = browser.all(".card[data-question=c0] table.candidates td.score")
    np.testing.assert_allclose(numbers(cells), scores[0], atol=5.1e-3)
    browser.choose("sort", value="worst")
    margins = scores[:, 0] - scores[:, 1:].max(axis=1)
    assert browser.shown[0] == f"c{int(margins.argmin())}"


# --- queries of galleries


def test_queries_are_counted_by_direction_and_failure_and_ordered(galleries, view):
    browser = Browser(view, "queries", "b-drawn-gallery")
    gallery = galleries.runs[0].benchmark.gallery
    failures = [kinds(run)[gallery.defined] for run in galleries.runs]
    direction = gallery.directions[gallery.defined]
    for run, kind in zip(galleries.runs, failures, strict=True):
        browser.choose("model", label=run.name)
        assert browser.counts == [88, *(int((kind == k).sum()) for k in range(3))]
        for side, name in enumerate(("i2t", "t2i")):
            browser.choose("asks", value=name)
            assert browser.counts[1:] == [int(((kind == k) & (direction == side)).sum()) for k in range(3)]
            assert all(query.startswith(name) for query in browser.shown)
        browser.choose("asks", value="")
    browser.choose("model", label="good")
    browser.choose("versus", label="poor & <tied>")
    assert browser.total == int(((failures[0] == 0) != (failures[1] == 0)).sum())
    browser.reset()
    browser.search("nothing like that")
    assert "No query is like that." in browser.all(".empty").inner_text()
    browser.reset()
    browser.choose("sort", value="many")
    # One image alone has four right captions.
    assert browser.shown[0] == "i2t/photo-0"
    browser.choose("sort", value="far")
    far = browser.all(".card tr.chosen td:last-child").first.inner_text()
    answers = galleries.runs[0].answers
    assert FIRST < int(far) <= max(answers.i2t.above.max(), answers.t2i.above.max()) + 1


def test_a_card_shows_the_first_five_with_shape_word_and_score(galleries, view):
    browser = Browser(view, "queries", "b-drawn-gallery")
    run = galleries.runs[1]
    browser.choose("model", label=run.name)
    benchmark = run.benchmark
    of, answers = benchmark.gallery, run.answers
    sides = ("i2t", of.i2t, answers.i2t, (0, 2, 3)), ("t2i", of.t2i, answers.t2i, (0, 1, 2))
    for asks, search, placed, rows in sides:
        browser.choose("asks", value=asks)
        marked = marks(search, placed.top[:, :FIRST].astype(np.int64))
        for row in rows:
            name = f"i2t/photo-{row}" if asks == "i2t" else f"t2i/text-{row}"
            items = browser.all(f".card[data-question='{name}'] ol.top li")
            assert items.count() == FIRST
            assert items.locator(".says .word").all_text_contents() == [MARKS[d] for d in marked[row]]
            shapes = items.locator(".says .mark > :first-child").all_text_contents()
            assert shapes == ["✗✓◐"[digit] for digit in marked[row]]
            scores = numbers(items.locator(".score"))
            np.testing.assert_allclose(scores, placed.top_scores[row, :FIRST], atol=5.1e-4)
            top = placed.top[row, :FIRST]
            if asks == "i2t":
                assert items.locator(".said").all_text_contents() == [benchmark.captions[i].text for i in top]
            else:
                titles = items.locator("img").evaluate_all("i => i.map(x => x.title)")
                assert titles == [benchmark.images[i].id for i in top]
    browser.search("t2i/text-4")
    assert "</script>" in browser.all(".card[data-question='t2i/text-4'] .asked").inner_text()


def test_a_card_says_how_many_are_right_where_the_missed_one_stands_and_what_others_answered(galleries, view):
    browser = Browser(view, "queries", "b-drawn-gallery")
    browser.choose("model", label="good")
    text = browser.all(".card[data-question='i2t/photo-0'] .rest").inner_text()
    assert text.startswith("4 answers are right, ")
    run = galleries.runs[0]
    search, placed = run.benchmark.gallery.i2t, run.answers.i2t
    above = placed.above[search.positives.starts[0] : search.positives.starts[1]]
    assert f"{int(((above >= 0) & (above < FIRST)).sum())} of them among the 5 shown." in text
    behind = sorted(above[above >= FIRST])
    assert (f"stands at {behind[0] + 1}:" if behind else "outside the gallery") in text
    rows = browser.all(".card[data-question='i2t/photo-2'] table.models tbody tr")
    assert rows.locator("th").all_text_contents() == ranking(galleries)
    by_name = {run.name: run for run in galleries.runs}
    for row, name in zip(rows.all(), ranking(galleries), strict=True):
        first = marks(search, by_name[name].answers.i2t.top[:, :FIRST].astype(np.int64))[2]
        assert row.locator(".marks .visually-hidden").all_text_contents() == [MARKS[digit] for digit in first]
    view.uncheck("#queries input[name=all]")
    assert browser.all("table.models").count() == 0
    # Only an order is known of the ranking that was cut, and nothing behind its end.
    browser.choose("model", label="cut")
    assert browser.all("ol.top .score").count() == 0
    browser.search("i2t/")
    texts = browser.all(".card .rest").all_inner_texts()
    assert any("behind the end of the ranking" in text for text in texts)


# --- captions that people judged


def test_ratings_are_counted_and_ordered_and_a_card_unfolds_references(rated, view):
    browser = Browser(view, "judgements", "b-rated")
    for run in rated.runs:
        browser.choose("model", label=run.name)
        counts = np.bincount(FORMS["rated"].kinds(run), minlength=3).tolist()
        assert browser.counts == [len(run.benchmark), *counts]
    browser.choose("model", label="good")
    browser.choose("sort", value="far")
    run = rated.runs[1]
    away = np.abs(distance(run))
    first = [run.benchmark.questions.ids.index(name) for name in browser.shown]
    assert np.round(away[first], 3).tolist() == np.round(np.sort(away)[::-1][: len(first)], 3).tolist()
    browser.choose_group("person")
    assert browser.total == 18
    browser.reset()
    browser.search("sentence number 11")
    card = browser.all(".card[data-question=r11]")
    ratings = [f"{value:g}" for value in run.benchmark.judged.ratings[11] if not np.isnan(value)]
    assert f"Ratings: {', '.join(ratings)}" in card.inner_text()
    assert not card.locator(".references li").first.is_visible()
    card.locator(".references summary").click()
    assert card.locator(".references li").all_inner_texts()[-1] == "and 3 more"


def test_preferences_show_votes_and_who_is_wrong(preferred, view):
    browser = Browser(view, "judgements", "b-preferred")
    browser.choose("model", label="guess")
    wrong = preferred.runs[1].items["accuracy"] < 1
    assert browser.counts == [len(wrong), int((~wrong).sum()), int(wrong.sum())]
    browser.choose_kind(1)
    ids = preferred.runs[1].benchmark.questions.ids
    assert browser.shown == [ids[q] for q in np.flatnonzero(wrong)][:12]
    votes = preferred.runs[0].benchmark.judged.votes[np.flatnonzero(wrong)[0]]
    texts = browser.all(".card").first.locator(".votes").all_inner_texts()
    assert texts == [f"{votes[0]:g} of 48", f"{votes[1]:g} of 48"]


# --- tables, links, print and layout


def names(view):
    return view.locator("table.numbers").first.locator("tbody th").all_text_contents()


def saved(view):
    with view.expect_download() as waiting:
        view.locator("button.save").first.click()
    text = Path(waiting.value.path()).read_bytes().decode("utf-8")
    return list(csv.reader(io.StringIO(text, newline="")))


def test_tables_sort_by_click_and_key_and_are_saved_with_all_digits(quads, view):
    first = ["Random chance", *ranking(quads)]
    assert names(view) == first
    head = view.locator("table.numbers").first.locator("thead tr").last.locator("th").nth(2)
    assert head.inner_text() == "T2I"
    value = {run.name: run.result.measures["t2i"].value for run in quads.runs}
    down = sorted(value, key=lambda name: -value[name])
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert names(view) == ["Random chance", *down]
    head.locator("button").focus()
    view.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert names(view) == ["Random chance", *down[::-1]]
    view.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "none"
    assert names(view) == first
    rows = saved(view)
    title = "Drawn & written I2T"
    assert rows[0][:4] == ["Model", title, f"{title} low", f"{title} high"]
    by_name = {row[0]: row for row in rows[1:]}
    for run in quads.runs:
        e = run.result.measures["i2t"]
        digits = [float(text) for text in by_name[run.name][1:4]]
        assert digits == pytest.approx([100 * v for v in (e.value, e.low, e.high)])
    assert by_name["Random chance"][1:4] == ["25", "", ""]


def test_nothing_saved_is_a_formula_and_axe_would_find_a_header_without_words(opened, violations):
    bad = ["=1+1", "+1+1", "-2+3", "@SUM(A1)", "\tx", "plain"]
    table = Table("T.", (Column("p"),), tuple(Row(text, (Cell(text),)) for text in bad))
    parts = "{% import 'parts.html' as parts %}"
    body = environment().from_string(parts + "{{ parts.table(table) }}").render(table=table)
    text = render("base.html", title="t").replace('<main id="main">', f'<main id="main">{body}')
    view = opened(text)
    for row in saved(view)[1:]:
        assert all(not cell.startswith(("=", "+", "-", "@", "\t")) for cell in row), row
    view.evaluate("document.querySelector('table.numbers thead th').replaceChildren()")
    assert "empty-table-header" in [line.split(":")[0] for line in violations(view)]


def test_links_lead_to_models_questions_and_provenance(quads, view):
    for link in view.locator("a.headline").all():
        assert view.locator(f"[id='{link.get_attribute('href')[1:]}']").count() == 1
    e = quads.runs[0].result.measures["group"]
    text = f"good, Group: {100 * e.value:.2f} [{100 * e.low:.2f}, {100 * e.high:.2f}], chance 16.67"
    assert text in view.locator("#b-drawn svg title").all_text_contents()
    view.click("nav a[href='#provenance']")
    record = view.locator("#provenance details").first
    assert not record.locator("dl").is_visible()
    record.locator("summary").click()
    assert "digest-of-good" in record.inner_text()
    assert "counterfoil evaluate good" in record.inner_text()
    # A name in the table unfolds its model, and a question there leads to its card.
    assert not view.locator("#b-drawn-model-0 ol.worst").is_visible()
    view.locator("#b-drawn table.numbers").first.locator("tbody th a").first.click()
    view.locator("#b-drawn-model-0 ol.worst").wait_for(state="visible")
    link = view.locator("#b-drawn-model-0 ol.worst a").first
    question = link.inner_text()
    link.click()
    view.wait_for_selector(f".card[data-question={question}]")


def test_it_fits_every_screen_and_axe_finds_nothing(report, fits):
    view = fits(report)
    assert view.evaluate("window.hacked") is None
    assert view.locator("img[src=x]").count() == 0
    ends = view.evaluate(
        "[...document.querySelectorAll('figure svg')]"
        ".filter(e => e.checkVisibility() && !e.closest('.scroll'))"
        ".map(e => [e.getBoundingClientRect().left, e.getBoundingClientRect().right])"
    )
    assert len(ends) > 9
    assert all(0 <= left < right <= 360 for left, right in ends)
    for place in ("questions", "queries", "judgements"):
        right = view.locator(f"#{place} .card").evaluate_all(
            "c => c.map(x => x.getBoundingClientRect().right)"
        )
        assert max(right) <= 360
    labels = [form.get_attribute("aria-label") for form in view.query_selector_all("form.controls")]
    of = {"Drawn & written": "questions", "Drawn gallery": "queries", "Rated & drawn": "questions"}
    assert labels == [f"Choose {what} of {name}" for name, what in of.items()]
    for scheme in ("light", "dark"):
        view.emulate_media(color_scheme=scheme)
        style = "getComputedStyle(document.body)"
        colours = view.evaluate(f"[{style}.color, {style}.backgroundColor]")
        ink, paper = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours)
        assert (ink > paper) == (scheme == "dark")
    view.emulate_media(media="print")
    hidden = view.locator("#questions .browser, #queries, #judgements, body > nav")
    assert not hidden.filter(visible=True).count()
    assert view.locator("table.numbers").first.is_visible()


def test_the_numbers_need_no_script_and_ids_stand_for_pictures(quads, galleries, chromium, tmp_path, opened):
    text = page([quads, galleries], pictures="never")
    view = opened(text)
    assert view.locator(".card img").count() == 0
    assert "image photo-0" in view.locator("#queries .card").first.inner_text()
    (tmp_path / "still.html").write_text(text, encoding="utf-8")
    context = chromium.new_context(java_script_enabled=False)
    still = context.new_page()
    still.goto((tmp_path / "still.html").as_uri())
    assert "Drawn & written" in still.inner_text("main h2")
    assert still.locator("noscript p").first.is_visible()
    assert still.locator("table.numbers").first.is_visible()
    context.close()
