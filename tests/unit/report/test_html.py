"""The frame of all pages, closed to the outside, labels of measures, and the page of an audit."""

import re
from html import unescape
from pathlib import Path

import pytest

import counterfoil as cf
from counterfoil.evaluation.evaluate import of
from counterfoil.metrics.measures import split_direction
from counterfoil.report import html
from counterfoil.report.tables import measure_label, measure_meaning
from report.outlines import own_script
from report_fixtures import gallery_benchmark


def test_several_scripts_are_one_and_the_policy_names_it():
    text = html.render("base.html", title="Twice", scripts=("pairs.js", "pairs.js"))
    assert own_script(text) == html.static("page.js") + 2 * html.static("pairs.js")


def test_documents_and_pages_say_the_same():
    document = (Path(__file__).parents[3] / "docs" / "glossary.md").read_text(encoding="utf-8")
    entries = dict(re.findall(r"\*\*(.+?)\.\*\* (.+?)(?:\n\n|\Z)", document, re.S))
    words = re.findall("<dt>(.+?)</dt><dd>(.+?)</dd>", unescape(html.render("base.html", title="Any page")))
    assert len(words) == 10
    assert {word: " ".join(text.split()) for word, text in entries.items()} == dict(words)


def test_recall_at_one_and_at_many_and_what_forms_share_are_explained_differently():
    assert measure_meaning("recall_at_1") == "a right answer comes first"
    assert measure_meaning("i2t_recall_at_1000").startswith(
        "a right answer is among the first 1,000; each image"
    )
    assert measure_meaning("accuracy") == measure_meaning("accuracy", "choice")
    assert measure_meaning("accuracy", "preference") == "the preferred caption scores above the other"


@pytest.mark.parametrize("measure", ["recall_at_0", "recall_at_", "i2t_", "sideways_ndcg", "i2t_accuracy_of"])
def test_what_no_measure_is_called_has_neither(measure):
    assert measure_label(measure) == measure
    assert measure_meaning(measure) == ""


def test_every_measure_of_a_graded_gallery_has_a_label_of_its_own_and_a_meaning():
    gallery = gallery_benchmark()
    names = of(gallery).measure_names(gallery)
    assert {split_direction(name)[0] for name in names} == {"i2t", "t2i", "mean"}
    assert len({measure_label(name) for name in names}) == len(names)
    assert all(measure_meaning(name) for name in names)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    rows = (f"{i}.jpg,a cat <b> {i},a cat and {i},swap" for i in range(40))
    (folder / "mine.csv").write_text("\n".join(["image,caption,negative_caption,type", *rows]) + "\n")
    result = cf.audit("pairs", data=folder / "mine.csv", draws=100, cache=None, quiet=True)
    assert [item.word for item in result["pairs"].named] == ["and", "b"]
    result.to_html(folder / "audit.html", title="Words & <answers>")
    return (folder / "audit.html").read_text()


def test_it_names_words_and_escapes_captions(page):
    assert "<title>Words &amp; &lt;answers&gt;</title>" in page
    assert "right: a cat &lt;b&gt; 0 – wrong: a cat and 0" in page
    assert "mine.csv" not in page


@pytest.mark.browser
def test_it_fits_every_screen_and_axe_finds_nothing(page, fits):
    fits(page)
