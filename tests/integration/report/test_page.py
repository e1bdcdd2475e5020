"""The page as text: complete, closed to the outside, silent where a licence forbids; without matplotlib."""

import html as html_of
import json
import re

import numpy as np
import pytest

from counterfoil.benchmarks.answers import Scores
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.evaluation.compare import compare
from counterfoil.report.forms import report_of
from counterfoil.report.page import page
from counterfoil.report.tables import written
from processes import python
from refusals import refuses
from report.outlines import Outline, closed
from report_fixtures import choice_benchmark, run_of


def island(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])


def small(**card):
    """One model of choices: a page of few figures."""
    benchmark = choice_benchmark(8, **card)
    return compare([run_of(benchmark, "alone", Scores(np.random.default_rng(3).normal(size=(8, 3))))])[0]


@pytest.fixture(scope="module")
def plain():
    return page([small()])


def test_it_is_whole_runs_its_own_script_and_fetches_nothing(report):
    assert closed(report)
    outline = Outline.of(report)
    for _, attributes in outline.attributes:
        for name in ("aria-labelledby", "aria-describedby"):
            assert name not in attributes or attributes[name] in outline.ids
    tags = [tag for tag, _ in outline.attributes]
    assert tags.count("main") == tags.count("h1") == 1
    assert {"header", "nav", "footer"} <= set(tags)
    assert "window.hacked = 1</script>" not in report
    styles = "".join(re.findall(r"<style>.*?</style>", report, re.S))
    assert "url(" not in styles
    assert "@import" not in styles


def test_every_number_of_the_overviews_stands_in_the_page(report, everything):
    body = " ".join(html_of.unescape(re.sub(r"<[^>]+>", " ", report)).split())
    for comparison in everything:
        table = report_of(comparison.runs[0].benchmark).overview(comparison)
        for row in table.rows:
            assert row.name in body
            for cell, column in zip(row.cells, table.columns, strict=True):
                assert written(cell, column) in body
    for text in (
        "A <test> & report",
        "Mind the gap.",
        "30 images look for 0 to 4 right captions among all 60",
        "rankings are cut, the shortest after: image → text 12",
        "How far down to look",
        "How many answers are right",
        "among the first 5",
        "Accuracy (%); questions per group",
    ):
        assert text in body, text


def test_data_of_the_forms_are_apart(report, plain):
    data = island(report)
    assert [b["anchor"] for b in data["galleries"]] == ["b-drawn-gallery"]
    assert [b["anchor"] for b in data["benchmarks"]] == ["b-drawn", "b-choices"]
    assert [b["anchor"] for b in data["judged"]] == ["b-rated", "b-preferred"]
    assert report.count('place: "') == 3
    assert "galleries" not in island(plain)
    assert 'id="queries"' not in plain
    assert "The browser of a gallery's queries" not in plain


def test_the_same_comparisons_give_the_same_page_of_one_model_too(report, plain):
    assert page([small()]) == plain
    assert ["Which differences are significant?" in text for text in (report, plain)] == [True, False]
    assert "alone has Accuracy" in plain


@pytest.mark.usefixtures("undrawn")
def test_pictures_and_captions_stay_out_where_the_licence_forbids():
    comparison = small(redistributable=False, licence="research only")
    closed = page([comparison])
    assert island(closed)["pictures"] == []
    assert "caption number" not in closed
    assert "the licence of Choices (research only) does not let a page carry them" in closed
    always = page([comparison], pictures="always")
    assert len(island(always)["pictures"]) == 8
    assert "caption number" in always


@pytest.mark.usefixtures("undrawn")
def test_pictures_can_be_left_out_and_are_bounded_by_the_budget(plain):
    never = page([small()], pictures="never")
    assert island(never)["pictures"] == []
    assert "caption number" in never
    largest = max(map(len, island(plain)["pictures"]))
    some = page([small()], budget=3 * largest)
    pictured = island(some)["benchmarks"][0]["pictured"]
    # Pictures of one colour each are about equally large.
    assert 3 <= pictured < 8
    assert f"{pictured} of 8 questions have their pictures" in some
    assert sum(map(len, island(some)["pictures"])) <= 3 * largest


@pytest.mark.usefixtures("undrawn")
def test_two_benchmarks_of_like_names_have_their_own_anchors():
    one, two = small(name="Böld!"), small(name="bold ")
    text = page([one, two])
    anchors = [b["anchor"] for b in island(text)["benchmarks"]]
    assert len(set(anchors)) == 2
    assert all(f'<section id="{anchor}"' in text for anchor in anchors)


def test_bad_wishes_are_refused(quads):
    refuses("nothing to report", page, [], error=InputError)
    refuses("did you mean 'always'", page, [quads], error=UnknownNameError, pictures="allways")


#: matplotlib is hidden from a process of its own, as where the extra `report` is not installed. The process
#: runs a command for each line that it is given, and prints a line of the exit code after each.
HIDDEN = """
import importlib.util
import sys
from importlib.abc import MetaPathFinder

class Hidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")

whole = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "matplotlib" else whole(name, *more)
sys.meta_path.insert(0, Hidden())
from counterfoil.cli import main
for line in sys.stdin.read().splitlines():
    sys.argv = ["counterfoil", *line.split()]
    try:
        main()
    except SystemExit as end:
        print(f"exit {end.code or 0}", file=sys.stderr)
"""


def test_measuring_and_comparing_need_no_matplotlib_and_a_page_says_what_it_needs(tmp_path):
    rows = ["image,caption,negative_image,negative_caption", *(f"a{n},cat {n},b{n},dog" for n in range(9))]
    (tmp_path / "pairs.csv").write_text("\n".join(rows))
    lines = [
        "evaluate blind:random pairs --data pairs.csv --out a --draws 100 --no-cache",
        "evaluate blind:length pairs --data pairs.csv --out b --draws 100 --no-cache",
        "compare a b --draws 100 --markdown t.md",
        "compare a b --draws 100 --html t.html",
        "annotate preferences votes.csv --plot p.svg",
    ]
    done = python("-c", HIDDEN, cwd=tmp_path, input="\n".join(lines))
    *_, page, plot, _ = re.split(r"exit \d\n", done.stderr)
    assert re.findall(r"exit (\d)\n", done.stderr) == ["0", "0", "0", "2", "2"], done.stderr
    assert "Group" in (tmp_path / "t.md").read_text()
    assert "'matplotlib' is not installed" in page
    assert all("[report]" in words for words in (page, plot))
    assert not (tmp_path / "t.html").exists()
