"""Pages of comparisons under axe-core, at the widths of a telephone, a tablet and a desk."""

from collections.abc import Callable
from typing import Any

import pytest

from counterfoil.evaluation.compare import Comparison
from counterfoil.report.page import page

pytestmark = pytest.mark.browser
WIDTHS = (360, pytest.param(768, marks=pytest.mark.slow), 1440)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("made", ["report", "gallery_report", "judged_report"])
def test_axe_finds_nothing(
    made: str,
    width: int,
    request: pytest.FixtureRequest,
    opened: Callable[..., Any],
    violations: Callable[..., list[str]],
) -> None:
    assert violations(opened(request.getfixturevalue(made), width=width)) == []


def test_each_search_is_named_after_its_benchmark(
    quads: Comparison, rated: Comparison, opened: Callable[..., Any], violations: Callable[..., list[str]]
) -> None:
    view = opened(page([quads, rated]))
    labels = [form.get_attribute("aria-label") for form in view.query_selector_all("form.controls")]
    assert labels == ["Choose questions of Drawn & written", "Choose questions of Rated & drawn"]
    assert violations(view) == []


def test_axe_would_find_a_header_without_words(
    report: str, opened: Callable[..., Any], violations: Callable[..., list[str]]
) -> None:
    view = opened(report)
    view.evaluate("document.querySelector('table.numbers thead th').replaceChildren()")
    assert [line.split(":")[0] for line in violations(view)] == ["empty-table-header"]


@pytest.mark.parametrize("made", ["report", "gallery_report", "judged_report"])
def test_dots_are_seen_whole_on_a_telephone(
    made: str, request: pytest.FixtureRequest, opened: Callable[..., Any]
) -> None:
    view = opened(request.getfixturevalue(made), width=360)
    ends = view.evaluate(
        "[...document.querySelectorAll('figure svg')]"
        ".filter(e => e.checkVisibility() && !e.closest('.scroll'))"
        ".map(e => [e.getBoundingClientRect().left, e.getBoundingClientRect().right])"
    )
    assert len(ends) > 3
    assert all(0 <= left < right <= 360 for left, right in ends)
