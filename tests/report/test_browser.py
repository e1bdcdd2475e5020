"""The page in a real browser: what it counts is what the arrays say, and it asks the network for nothing."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from counterfoil.evaluation.compare import Comparison, compare
from counterfoil.report.page import page

pytestmark = pytest.mark.browser


def failures(comparison: Comparison, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Whether I2T and T2I fail, per question, from the items alone."""
    run = next(run for run in comparison.runs if run.name == name)
    return run.items["i2t"] < 1, run.items["t2i"] < 1


def counts(view: Any) -> list[int]:
    """The numbers on the buttons: all, then each kind of failure."""
    return [int(text.replace(",", "")) for text in view.locator(".kinds .count").all_text_contents()]


def total(view: Any) -> int:
    return int(view.locator("output[data-count]").first.get_attribute("data-count"))


def shown(view: Any) -> list[str]:
    return view.locator(".card").evaluate_all("cards => cards.map(card => card.dataset.question)")


def choose_group(view: Any, label: str) -> None:
    option = view.locator("select[name=group] option").filter(has_text=re.compile(rf"^{label} \("))
    view.select_option("select[name=group]", value=option.get_attribute("value"))


def test_counts_by_kind_of_failure_are_those_of_the_arrays(
    quads: Comparison, report: str, opened: Callable[..., Any]
) -> None:
    view = opened(report)
    for run in quads.runs:
        view.select_option("select[name=model]", label=run.name)
        i2t, t2i = failures(quads, run.name)
        expected = [(~i2t & ~t2i).sum(), (i2t & ~t2i).sum(), (~i2t & t2i).sum(), (i2t & t2i).sum()]
        assert counts(view) == [len(i2t), *map(int, expected)]
        for kind, number in enumerate(expected):
            view.check(f"input[name=kind][value='{kind}']", force=True)
            assert total(view) == number
            if number:
                assert set(view.locator(".card").evaluate_all("c => c.map(x => x.dataset.kind)")) == {
                    str(kind)
                }
        view.check("input[name=kind][value='']", force=True)


def test_filters_by_group_by_disagreement_and_by_text(
    quads: Comparison, report: str, opened: Callable[..., Any]
) -> None:
    view = opened(report)
    questions = quads.runs[0].benchmark.questions
    choose_group(view, "add")
    assert total(view) == questions.groupings["type"].count("add")
    view.click("button.reset")
    assert total(view) == len(questions)

    right = np.stack([run.items["group"] >= 1 for run in quads.runs])
    view.select_option("select[name=versus]", value="any")
    assert total(view) == int((right.any(axis=0) & ~right.all(axis=0)).sum())
    view.select_option("select[name=model]", label="good")
    view.select_option("select[name=versus]", label="outcomes")
    assert total(view) == int((right[0] != right[2]).sum())
    # A group and a disagreement together.
    choose_group(view, "swap")
    swaps = np.array(questions.groupings["type"]) == "swap"
    assert total(view) == int((swaps & (right[0] != right[2])).sum())

    view.click("button.reset")
    view.fill("input[name=text]", "thing 17 ")
    assert shown(view) == ["q17"]
    view.fill("input[name=text]", "no such words")
    assert total(view) == 0
    assert view.locator(".empty").is_visible()


def test_pages_turn_with_buttons_and_keys_and_the_address_remembers(
    report: str, opened: Callable[..., Any]
) -> None:
    view = opened(report)
    assert shown(view) == [f"q{i}" for i in range(12)]
    view.locator("[data-turn=Next]").first.click()
    assert shown(view) == [f"q{i}" for i in range(12, 24)]
    view.locator(".card").first.focus()
    view.keyboard.press("ArrowRight")
    view.keyboard.press("ArrowRight")
    assert shown(view) == [f"q{i}" for i in range(36, 40)]
    assert view.locator("[data-turn=Next]").first.is_disabled()
    view.keyboard.press("ArrowDown")
    assert view.evaluate("document.activeElement.dataset.question") == "q37"
    view.keyboard.press("ArrowLeft")
    view.select_option("select[name=model]", label="poor & <tied>")
    view.check("input[name=kind][value='3']", force=True)
    kept, place = shown(view), "#" + view.url.split("#", 1)[1]
    again = opened(report, place=place)
    assert shown(again) == kept
    assert again.locator("input[name=kind]:checked").get_attribute("value") == "3"
    # A link to other questions, followed while the page is open.
    again.evaluate("location.hash = '#questions?b=b-choices&model=scored&page=2'")
    again.wait_for_selector(".card[data-question=c12]")
    assert shown(again) == ["c12", "c13", "c14"]


def test_a_card_shows_scores_true_pairs_and_what_fails(
    quads: Comparison, report: str, opened: Callable[..., Any]
) -> None:
    view = opened(report)
    view.select_option("select[name=model]", label="good")
    run = quads.runs[0]
    for q in range(12):
        table = view.locator(f".card[data-question=q{q}] table.pairs")
        cells = table.locator("td.score")
        values = run.answers.values[q].ravel()
        printed = [float(text.replace("−", "-")) for text in cells.all_text_contents()]
        np.testing.assert_allclose(printed, values, atol=5.1e-4)
        # The diagonal belongs together; a false pair is marked where it keeps a true one from winning.
        assert ["true" in c for c in cells.evaluate_all("c => c.map(x => x.className)")] == [
            True,
            False,
            False,
            True,
        ]
        s00, s01, s10, s11 = values
        marked = cells.evaluate_all("c => c.map(x => x.classList.contains('beats'))")
        assert marked == [False, s01 >= min(s00, s11), s10 >= min(s00, s11), False]
        picks = table.locator("tbody .mark").evaluate_all("c => c.map(x => x.classList.contains('good'))")
        assert picks == [s00 > s01, s11 > s10, s00 > s10, s11 > s01]
    view.select_option("select[name=model]", label="outcomes")
    assert set(view.locator("table.pairs td.score").all_text_contents()) == {"true", ""}


def test_choices_have_their_own_kinds_and_candidates(
    choices: Comparison, report: str, opened: Callable[..., Any]
) -> None:
    view = opened(report)
    view.select_option("select[name=b]", label="Choices")
    for run in choices.runs:
        view.select_option("select[name=model]", label=run.name)
        right = int((run.items["accuracy"] >= 1).sum())
        assert counts(view) == [len(run.items["accuracy"]), right, len(run.items["accuracy"]) - right]
    view.select_option("select[name=model]", label="scored")
    cells = view.locator(".card[data-question=c0] table.candidates td.score")
    printed = [float(text.replace("−", "-")) for text in cells.all_text_contents()]
    np.testing.assert_allclose(printed, choices.runs[0].answers.values[0], atol=5.1e-3)
    view.select_option("select[name=sort]", value="worst")
    scores = choices.runs[0].answers.values
    margins = scores[:, 0] - scores[:, 1:].max(axis=1)
    assert shown(view)[0] == f"c{int(margins.argmin())}"


def test_hostile_names_and_captions_are_only_text(report: str, opened: Callable[..., Any]) -> None:
    view = opened(report)
    assert view.title() == "A <test> & report"
    assert "</script>" in view.locator(".card[data-question=q2]").inner_text()
    assert view.evaluate("window.hacked") is None
    assert view.locator("img[src=x]").count() == 0


def test_pictures_load_and_a_broken_one_has_a_placeholder(report: str, opened: Callable[..., Any]) -> None:
    view = opened(report)
    sizes = view.locator(".card img").evaluate_all("i => i.map(x => [x.complete, x.naturalWidth > 0])")
    assert len(sizes) == 24
    assert all(complete and wide for complete, wide in sizes)
    broken = view.locator(".card[data-question=q2] img").first.get_attribute("src")
    assert broken.startswith("data:image/svg+xml")
    view.locator("details.broken summary").click()
    assert "image-3: drawn 3: not an image file" in view.locator("details.broken").inner_text()


def test_provenance_unfolds_and_navigation_leads_to_it(report: str, opened: Callable[..., Any]) -> None:
    view = opened(report)
    view.click("nav a[href='#provenance']")
    record = view.locator("#provenance details").first
    assert not record.locator("dl").is_visible()
    record.locator("summary").click()
    assert record.locator("dl").is_visible()
    assert "digest-of-good" in record.inner_text()
    assert "counterfoil evaluate good" in record.inner_text()


@pytest.mark.parametrize(("width", "dark"), [(400, False), (400, True), (1280, True), (2200, False)])
def test_nothing_spills_over_the_side_at_any_width(
    report: str, opened: Callable[..., Any], width: int, dark: bool
) -> None:
    view = opened(report, width=width, dark=dark)
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    ink, paper = view.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    lightness = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (ink, paper)]
    assert (lightness[0] > lightness[1]) == dark


def test_print_leaves_the_browser_of_questions_out(report: str, opened: Callable[..., Any]) -> None:
    view = opened(report)
    view.emulate_media(media="print")
    assert not view.locator("#questions .browser").is_visible()
    assert not view.locator("body > nav").is_visible()
    assert view.locator("table.numbers").first.is_visible()


def test_the_numbers_need_no_script(report: str, chromium: Any, tmp_path: Any) -> None:
    path = tmp_path / "report.html"
    path.write_text(report, encoding="utf-8")
    context = chromium.new_context(java_script_enabled=False)
    view = context.new_page()
    view.goto(path.as_uri())
    assert "Drawn & written" in view.inner_text("main h2")
    assert view.locator("noscript p").is_visible()
    assert view.locator("table.numbers").first.is_visible()
    context.close()


def test_real_answers_without_pictures(
    real_bivlc: Comparison, real_winoground: Comparison, opened: Callable[..., Any]
) -> None:
    three = [run for run in real_winoground.runs if run.name in ("clip", "human", "vinvl")]
    view = opened(page([real_bivlc, *compare(three)], title="Released answers"))
    # BiVLC Table 2: CLIP has group 49.06, I2T 75.83, T2I 52.40 of 2,933: 1,439, 2,224 and 1,537 questions. So
    # T2I alone is right in 1,537 - 1,439 and I2T alone in 2,224 - 1,439.
    view.select_option("select[name=model]", label="ViT-B-32")
    assert counts(view) == [2933, 1439, 98, 785, 611]
    view.fill("input[name=text]", "man throwing a ball")
    assert "q" not in shown(view)[0]
    assert shown(view)[0] == "0"
    view.select_option("select[name=b]", label="Winoground")
    view.select_option("select[name=model]", label="clip")
    # Winoground Table 3: text 30.75, image 10.50, group 8.00 of 400 are 123, 42 and 32 questions; so T2I
    # alone is right in 42 - 32, I2T alone in 123 - 32, and neither in 400 - (123 + 42 - 32).
    assert counts(view) == [400, 32, 10, 91, 267]
