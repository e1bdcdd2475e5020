"""The browser of queries in a real one: what it shows and counts is what the arrays say."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterfoil import catalog
from counterfoil.evaluation.compare import Comparison, compare
from counterfoil.evaluation.result import Run
from counterfoil.report.comparison_tables import ranking
from counterfoil.report.forms.first_items import FIRST, kinds, marks
from counterfoil.report.page import page

from ..conftest import rankings_of, run_of

pytestmark = pytest.mark.browser

BROWSER = "#queries "


def counts(view: Any) -> list[int]:
    return [int(text) for text in view.locator(BROWSER + ".kinds .count").all_text_contents()]


def total(view: Any) -> int:
    return int(view.locator(BROWSER + "output[data-count]").first.get_attribute("data-count"))


def shown(view: Any) -> list[str]:
    return view.locator(BROWSER + ".card").evaluate_all("cards => cards.map(card => card.dataset.question)")


def choose(view: Any, name: str, **what: Any) -> None:
    view.select_option(f"{BROWSER}select[name={name}]", **what)


def failing(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Kind and direction of every query that has a right answer."""
    gallery = run.benchmark.gallery
    return kinds(run)[gallery.defined], gallery.directions[gallery.defined]


def test_counts_by_scorer_direction_and_failure_are_those_of_the_arrays(
    galleries: Comparison, gallery_report: str, opened: Callable[..., Any]
) -> None:
    view = opened(gallery_report)
    for run in galleries.runs:
        choose(view, "model", label=run.name)
        kind, direction = failing(run)
        assert counts(view) == [88, *(int((kind == k).sum()) for k in range(3))]
        for value, wanted in (("i2t", 0), ("t2i", 1)):
            choose(view, "asks", value=value)
            assert counts(view)[1:] == [int(((kind == k) & (direction == wanted)).sum()) for k in range(3)]
            view.check(f"{BROWSER}input[name=kind][value='2']", force=True)
            assert total(view) == int(((kind == 2) & (direction == wanted)).sum())
            assert all(name.startswith(value) for name in shown(view))
            view.check(f"{BROWSER}input[name=kind][value='']", force=True)
        choose(view, "asks", value="")


def test_disagreement_search_and_order(
    galleries: Comparison, gallery_report: str, opened: Callable[..., Any]
) -> None:
    view = opened(gallery_report)
    good, poor, _ = (failing(run)[0] == 0 for run in galleries.runs)
    choose(view, "model", label="good")
    choose(view, "versus", label="poor & <tied>")
    assert total(view) == int((good != poor).sum())
    view.click(BROWSER + "button.reset")
    assert total(view) == 88
    view.fill(BROWSER + "input[name=text]", "t2i/text-17")
    assert shown(view) == ["t2i/text-17"]
    view.fill(BROWSER + "input[name=text]", "nothing like that")
    assert "No query is like that." in view.inner_text(BROWSER + ".empty")
    view.click(BROWSER + "button.reset")
    choose(view, "sort", value="many")
    # One image alone has four right captions.
    assert shown(view)[0] == "i2t/photo-0"
    choose(view, "sort", value="far")
    far = view.locator(BROWSER + ".card tr.chosen td:last-child").first.inner_text()
    run = galleries.runs[0]
    places = [run.answers.i2t.above.max(), run.answers.t2i.above.max()]
    assert int(far) <= max(places) + 1
    assert int(far) > FIRST


def test_a_card_shows_the_first_five_with_shape_word_and_score(
    galleries: Comparison, gallery_report: str, opened: Callable[..., Any]
) -> None:
    view = opened(gallery_report)
    run = galleries.runs[1]
    choose(view, "model", label=run.name)
    benchmark = run.benchmark
    for asks, search, placed, rows in (
        ("i2t", benchmark.gallery.i2t, run.answers.i2t, (0, 2, 3)),
        ("t2i", benchmark.gallery.t2i, run.answers.t2i, (0, 1, 2)),
    ):
        choose(view, "asks", value=asks)
        marked = marks(search, placed.top[:, :FIRST].astype(np.int64))
        for row in rows:
            name = f"i2t/photo-{row}" if asks == "i2t" else f"t2i/text-{row}"
            items = view.locator(f"{BROWSER}.card[data-question='{name}'] ol.top li")
            assert items.count() == FIRST
            words = items.locator(".says .word").all_text_contents()
            assert words == [("wrong", "right", "partly right")[digit] for digit in marked[row]]
            shapes = items.locator(".says .mark > :first-child").all_text_contents()
            assert shapes == ["✗✓◐"[digit] for digit in marked[row]]
            scores = [float(text.replace("−", "-")) for text in items.locator(".score").all_text_contents()]
            np.testing.assert_allclose(scores, placed.top_scores[row, :FIRST], atol=5.1e-4)
            if asks == "i2t":
                said = items.locator(".said").all_text_contents()
                assert said == [benchmark.captions[i].text for i in placed.top[row, :FIRST]]
            else:
                titles = items.locator("img").evaluate_all("i => i.map(x => x.title)")
                assert titles == [benchmark.images[i].id for i in placed.top[row, :FIRST]]


def test_a_card_says_how_many_are_right_and_where_the_missed_one_stands(
    galleries: Comparison, gallery_report: str, opened: Callable[..., Any]
) -> None:
    view = opened(gallery_report)
    choose(view, "model", label="good")
    said = view.locator(BROWSER + ".card[data-question='i2t/photo-0'] .rest").inner_text()
    assert said.startswith("4 answers are right, ")
    run = galleries.runs[0]
    search, placed = run.benchmark.gallery.i2t, run.answers.i2t
    above = placed.above[search.positives.starts[0] : search.positives.starts[1]]
    inside = int(((above >= 0) & (above < FIRST)).sum())
    assert f"{inside} of them among the 5 shown." in said
    behind = sorted(above[above >= FIRST])
    assert (f"stands at {behind[0] + 1}:" if behind else "outside the gallery") in said
    # Only an order is known of the ranking that was cut, and nothing behind its end.
    choose(view, "model", label="cut")
    assert view.locator(BROWSER + "ol.top .score").count() == 0
    view.fill(BROWSER + "input[name=text]", "i2t/")
    texts = view.locator(BROWSER + ".card .rest").all_inner_texts()
    assert any("behind the end of the ranking" in text for text in texts)


def test_answers_of_all_scorers_can_be_shown(
    galleries: Comparison, gallery_report: str, opened: Callable[..., Any]
) -> None:
    view = opened(gallery_report)
    rows = view.locator(BROWSER + ".card[data-question='i2t/photo-2'] table.models tbody tr")
    assert rows.locator("th").all_text_contents() == ranking(galleries)
    by_name = {run.name: run for run in galleries.runs}
    for row, name in zip(rows.all(), ranking(galleries), strict=True):
        run = by_name[name]
        first = marks(run.benchmark.gallery.i2t, run.answers.i2t.top[:, :FIRST].astype(np.int64))[2]
        hidden = row.locator(".marks .visually-hidden").all_text_contents()
        assert hidden == [("wrong", "right", "partly right")[digit] for digit in first]
    view.uncheck(BROWSER + "input[name=all]")
    assert view.locator(BROWSER + "table.models").count() == 0


def test_both_browsers_of_a_page_keep_their_own_place_in_the_address(
    gallery_report: str, opened: Callable[..., Any]
) -> None:
    view = opened(gallery_report)
    assert "#" not in view.url
    choose(view, "asks", value="t2i")
    view.locator(BROWSER + "[data-turn=Next]").first.click()
    kept, place = shown(view), "#" + view.url.split("#", 1)[1]
    assert place.startswith("#queries?asks=t2i")
    view.select_option("#questions select[name=model]", label="only right")
    assert "#questions?" in view.url
    assert shown(view) == kept
    again = opened(gallery_report, place=place)
    assert shown(again) == kept
    again.locator(BROWSER + ".card").first.focus()
    again.keyboard.press("ArrowRight")
    assert shown(again) != kept
    assert again.locator("#questions .card").count() == 12


def test_hostile_captions_are_only_text(gallery_report: str, opened: Callable[..., Any]) -> None:
    view = opened(gallery_report)
    view.fill(BROWSER + "input[name=text]", "t2i/text-4")
    asked = view.locator(BROWSER + ".card[data-question='t2i/text-4'] .asked").inner_text()
    assert "</script>" in asked
    assert view.evaluate("window.hacked") is None
    assert view.locator("img[src=x]").count() == 0


@pytest.mark.parametrize(("width", "dark"), [(400, False), (400, True), (1280, True)])
def test_nothing_spills_over_the_side_at_any_width(
    gallery_report: str, opened: Callable[..., Any], width: int, dark: bool
) -> None:
    view = opened(gallery_report, width=width, dark=dark)
    for asks in ("i2t", "t2i"):
        choose(view, "asks", value=asks)
        assert view.evaluate("document.documentElement.scrollWidth") <= width
        wide = view.locator(BROWSER + ".card").evaluate_all(
            "c => c.map(x => x.getBoundingClientRect().right)"
        )
        assert max(wide) <= width


def test_without_pictures_and_captions_ids_stand_for_them(
    galleries: Comparison, opened: Callable[..., Any]
) -> None:
    view = opened(page([galleries], pictures="never"))
    assert view.locator(BROWSER + ".card img").count() == 0
    assert "image photo-0" in view.locator(BROWSER + ".card").first.inner_text()


def test_on_paper_there_is_no_browser(gallery_report: str, opened: Callable[..., Any]) -> None:
    view = opened(gallery_report)
    view.emulate_media(media="print")
    assert view.locator("#queries, #questions").count() == 2
    assert not view.locator("#queries").is_visible()
    assert not view.locator("#questions").is_visible()


def test_real_photographs_and_captions(shared_data: Path, opened: Callable[..., Any]) -> None:
    benchmark = catalog.benchmark("coco-captions", data=shared_data / "coco_mini")
    owners = benchmark.gallery.owners
    own = np.arange(159)[:, None] == owners
    noise = np.random.default_rng(3).normal(size=own.shape)
    runs = [
        run_of(benchmark, f"own and {x} noise", rankings_of(benchmark, own + x * noise)) for x in (0.3, 1)
    ]
    comparison = compare(runs)[0]
    view = opened(page([comparison], title="Photographs"), width=400)
    assert total(view) == 159 + 795
    assert view.evaluate("document.documentElement.scrollWidth") <= 400
    for asks in ("i2t", "t2i"):
        choose(view, "asks", value=asks)
        sizes = view.locator(BROWSER + ".card img").evaluate_all("i => i.map(x => x.naturalWidth)")
        assert len(sizes) >= 12
        assert min(sizes) > 0
    # Every image has five captions of its own; what is marked right is what was written for it.
    choose(view, "asks", value="i2t")
    first = shown(view)[0].removeprefix("i2t/")
    image = [image.id for image in benchmark.images].index(first)
    written_for_it = {benchmark.captions[i].text for i in np.flatnonzero(owners == image)}
    right = view.locator(BROWSER + ".card").first.locator("li.right .said").all_text_contents()
    assert right
    assert set(right) <= written_for_it
