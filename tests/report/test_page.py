"""The page as text: complete, closed to the outside, and silent about what a licence forbids."""

import base64
import hashlib
import html as html_of
import json
import re
from html.parser import HTMLParser

import pytest

from counterfoil.errors import InputError, UnknownNameError
from counterfoil.evaluation.compare import Comparison, compare
from counterfoil.report.markup import written
from counterfoil.report.page import page
from counterfoil.report.tables import overview

from .conftest import quad_answers, quad_benchmark, run_of


class Outline(HTMLParser):
    """Tags in order, with a check that they close as they opened."""

    VOID = ("meta", "link", "img", "input", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def island(text: str) -> dict:
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S).group(1)
    )


def small(**card: object) -> Comparison:
    benchmark, answers = quad_benchmark(8, **card), quad_answers(8)
    return compare([run_of(benchmark, name, answers[name]) for name in ("good", "outcomes")], draws=100)[0]


@pytest.fixture(scope="module")
def text(quads: Comparison, choices: Comparison) -> str:
    return page([quads, choices], title="Title & <more>")


def test_tags_balance_ids_are_unique_and_labels_point_somewhere(text: str) -> None:
    outline = Outline()
    outline.feed(text)
    outline.close()
    assert outline.open == []
    ids = [a["id"] for _, a in outline.attributes if "id" in a]
    assert len(ids) == len(set(ids))
    for _, attributes in outline.attributes:
        for name in ("aria-labelledby", "aria-describedby"):
            assert attributes.get(name, ids[0]) in ids
        if (attributes.get("href") or "").startswith("#"):
            assert attributes["href"][1:] in ids
    tags = [tag for tag, _ in outline.attributes]
    assert tags.count("main") == tags.count("h1") == 1
    assert {"header", "nav", "footer"} <= set(tags)


def test_nothing_points_outside_and_only_its_own_script_may_run(text: str) -> None:
    outline = Outline()
    outline.feed(text)
    for tag, attributes in outline.attributes:
        for name in ("src", "href", "srcset", "action", "xlink:href", "data"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:")), (tag, name, value)
        assert not any(name.startswith("on") for name in attributes)
    styles = "".join(re.findall(r"<style>.*?</style>", text, re.S))
    assert "url(" not in styles
    assert "@import" not in styles
    policy = html_of.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1))
    assert policy.startswith("default-src 'none'; img-src data:")
    script = re.findall(r"<script>(.*?)</script>", text, re.S)[-1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy


def test_every_number_of_the_overview_stands_in_the_page(text: str, quads: Comparison) -> None:
    table = overview(quads)
    body = html_of.unescape(re.sub(r"<[^>]+>", " ", text))
    for row in table.rows:
        assert row.name in body
        for cell, column in zip(row.cells, table.columns, strict=True):
            assert written(cell, column) in body
    assert "Title & <more>" in body
    assert "Mind the gap." in body


def test_the_same_comparisons_give_the_same_page() -> None:
    assert page([small()], title="x") == page([small()], title="x")


def test_pictures_and_captions_stay_out_where_the_licence_forbids() -> None:
    comparison = small(redistributable=False, licence="research only")
    closed = page([comparison])
    assert island(closed)["pictures"] == []
    assert "of a box" not in closed
    assert "the licence of Drawn &amp; written (research only) does not let a report carry them" in closed
    always = page([comparison], pictures="always")
    assert len(island(always)["pictures"]) == 12
    assert "of a box" in always


def test_pictures_can_be_left_out_and_are_bounded_by_the_budget() -> None:
    comparison = small()
    never = page([comparison], pictures="never")
    assert island(never)["pictures"] == []
    assert "of a box" in never
    sizes = sorted(map(len, island(page([comparison]))["pictures"]))
    some = page([comparison], budget=3 * sizes[-1])
    pictured = island(some)["benchmarks"][0]["pictured"]
    assert 0 < pictured < 8
    assert f"{pictured} of 8 questions have their pictures" in some
    assert sum(map(len, island(some)["pictures"])) <= 3 * sizes[-1]


def test_one_scorer_alone_makes_a_page_too() -> None:
    benchmark = quad_benchmark(8)
    text = page(compare([run_of(benchmark, "alone", quad_answers(8)["good"])], draws=100))
    assert "More than luck?" not in text
    assert "alone has Group" in text


def test_two_benchmarks_of_like_names_have_their_own_anchors() -> None:
    one, two = small(name="Böld!"), small(name="bold ")
    text = page([one, two])
    anchors = [b["anchor"] for b in island(text)["benchmarks"]]
    assert len(set(anchors)) == 2
    assert all(f'<section id="{anchor}"' in text for anchor in anchors)


def test_bad_wishes_are_refused(quads: Comparison) -> None:
    with pytest.raises(InputError, match="nothing to report"):
        page([])
    with pytest.raises(
        UnknownNameError, match="given: allways; allowed: always, auto, never; did you mean 'always'"
    ):
        page([quads], pictures="allways")
