"""What a page's tables and pictures do in a browser: they sort, are saved as CSV, and open large."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from counterfoil.evaluation.compare import Comparison
from counterfoil.report import html
from counterfoil.report.comparison_tables import ranking
from counterfoil.report.html import render
from counterfoil.report.tables import Cell, Column, Row, Table

pytestmark = pytest.mark.browser


def names(view: Any) -> list[str]:
    return view.locator("table.numbers").first.locator("tbody th").all_text_contents()


def test_rows_stand_as_in_the_figures_and_sort_by_click_and_key(
    quads: Comparison, report: str, opened: Callable[..., Any]
) -> None:
    view = opened(report)
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


def saved(view: Any, number: int = 0) -> list[list[str]]:
    with view.expect_download() as waiting:
        view.locator("button.save").nth(number).click()
    text = Path(waiting.value.path()).read_bytes().decode("utf-8")
    return list(csv.reader(io.StringIO(text, newline="")))


def test_a_table_is_saved_with_its_intervals_and_all_digits(
    quads: Comparison, report: str, opened: Callable[..., Any]
) -> None:
    rows = saved(opened(report))
    assert rows[0][:4] == [
        "Model",
        "Drawn & written I2T",
        "Drawn & written I2T low",
        "Drawn & written I2T high",
    ]
    by_name = {row[0]: row for row in rows[1:]}
    for run in quads.runs:
        e = run.result.measures["i2t"]
        assert [float(text) for text in by_name[run.name][1:4]] == pytest.approx(
            [100 * v for v in (e.value, e.low, e.high)]
        )
    assert by_name["Random chance"][1:4] == ["25", "", ""]


def test_nothing_saved_is_a_formula(opened: Callable[..., Any], tmp_path: Path) -> None:
    bad = ["=1+1", "+1+1", "-2+3", "@SUM(A1)", "\tx", "plain"]
    table = Table("T.", (Column("p", style="text"),), tuple(Row(text, (Cell(text),)) for text in bad))
    parts = "{% import 'parts.html' as parts %}"
    shown = html.environment().from_string(parts + "{{ parts.table(table) }}").render(table=table)
    page = render("base.html", title="t").replace('<main id="main">', f'<main id="main">{shown}')
    rows = saved(opened(page))
    for row in rows[1:]:
        assert all(not text.startswith(("=", "+", "-", "@", "\t")) for text in row), row


def test_a_picture_opens_large_and_closes(report: str, opened: Callable[..., Any]) -> None:
    view = opened(report)
    picture = view.locator(".card .enlarge").first
    small = picture.locator("img").bounding_box()["width"]
    picture.focus()
    view.keyboard.press("Enter")
    large = view.locator("dialog.enlarged img")
    assert large.bounding_box()["width"] > 2 * small
    view.keyboard.press("Escape")
    assert not view.locator("dialog.enlarged").is_visible()


def test_headings_link_to_themselves_and_dots_say_their_numbers(
    quads: Comparison, report: str, opened: Callable[..., Any]
) -> None:
    view = opened(report)
    for link in view.locator("a.headline").all():
        assert view.locator(f"[id='{link.get_attribute('href')[1:]}']").count() == 1
    view.locator("#b-drawn a.headline").first.click()
    assert view.url.endswith("#b-drawn")
    run = quads.runs[0]
    e = run.result.measures["group"]
    text = f"{run.name}, Group: {100 * e.value:.2f} [{100 * e.low:.2f}, {100 * e.high:.2f}], chance 16.67"
    assert text in view.locator("#b-drawn svg title").all_text_contents()
