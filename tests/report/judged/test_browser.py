"""The browser of judged captions in a real browser: its counts are those of the arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from counterfoil.evaluation.compare import Comparison
from counterfoil.report.forms import FORMS
from counterfoil.report.forms.rating_levels import distance

from ..test_browser import choose_group, counts, shown, total

pytestmark = pytest.mark.browser


def test_counts_orders_and_groups_are_those_of_the_arrays(
    rated: Comparison, judged_report: str, opened: Callable[..., Any]
) -> None:
    view = opened(judged_report)
    assert view.evaluate("window.hacked") is None
    for run in rated.runs:
        view.select_option("select[name=model]", label=run.name)
        assert counts(view) == [
            len(run.benchmark),
            *np.bincount(FORMS["rated"].kinds(run), minlength=3).tolist(),
        ]
    view.select_option("select[name=model]", label="good")
    view.select_option("select[name=sort]", value="far")
    away = np.abs(distance(rated.runs[1]))
    first = [rated.runs[1].benchmark.questions.ids.index(name) for name in shown(view)]
    assert np.round(away[first], 3).tolist() == np.round(np.sort(away)[::-1][: len(first)], 3).tolist()
    choose_group(view, "person")
    assert total(view) == 18


def test_a_card_tells_what_people_gave_and_unfolds_references(
    rated: Comparison, judged_report: str, opened: Callable[..., Any]
) -> None:
    view = opened(judged_report, width=390)
    view.fill("input[name=text]", "sentence number 11")
    card = view.locator(".card[data-question=r11]")
    given = [f"{value:g}" for value in rated.runs[0].benchmark.judged.ratings[11] if not np.isnan(value)]
    assert f"Ratings: {', '.join(given)}" in card.inner_text()
    assert not card.locator(".references li").first.is_visible()
    card.locator(".references summary").click()
    assert card.locator(".references li").all_inner_texts()[-1] == "and 3 more"
    assert view.evaluate("document.documentElement.scrollWidth") == 390


def test_preferences_show_votes_and_who_is_wrong(
    preferred: Comparison, judged_report: str, opened: Callable[..., Any]
) -> None:
    view = opened(judged_report, dark=True)
    view.select_option("select[name=b]", label="Preferred")
    view.select_option("select[name=model]", label="guess")
    wrong = preferred.runs[1].items["accuracy"] < 1
    assert counts(view) == [len(wrong), int((~wrong).sum()), int(wrong.sum())]
    view.check("input[name=kind][value='1']", force=True)
    ids = preferred.runs[1].benchmark.questions.ids
    assert shown(view) == [ids[q] for q in np.flatnonzero(wrong)][:12]
    votes = preferred.runs[0].benchmark.judged.votes[np.flatnonzero(wrong)[0]]
    texts = view.locator(".card").first.locator(".votes").all_inner_texts()
    assert texts == [f"{votes[0]:g} of 48", f"{votes[1]:g} of 48"]
