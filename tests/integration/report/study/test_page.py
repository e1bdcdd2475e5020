"""The page of a study: it says what the findings say, is closed to the outside, and fits a telephone."""

import html as html_of
import re
from dataclasses import replace

import numpy as np
import pytest

from counterfoil.benchmarks.answers import Scores
from counterfoil.engine.join_scores import join_scores
from counterfoil.evaluation.evidence import Evidence
from counterfoil.evaluation.findings import findings, ordering
from counterfoil.evaluation.result import Run, tenths
from counterfoil.models.precomputed import load
from counterfoil.report import figure_style, html, study_page
from counterfoil.report.reproduction import all_papers
from counterfoil.report.reproduction.evidence import ReleasedFiles
from counterfoil.report.study_page import TrainingSummary, page
from report.outlines import closed
from report_fixtures import quad_benchmark, run_of

MODELS = ("pretrained", "coco", "trohn-text", "trohn-img", "detectors")


def _quad_run(skill, name):
    benchmark = quad_benchmark()
    rng = np.random.default_rng(int(10 * skill))
    return run_of(benchmark, name, Scores(rng.normal(size=(len(benchmark), 2, 2)) + skill * np.eye(2)))


@pytest.fixture(scope="module")
def quad_runs():
    return [_quad_run(0.8 * i, name) for i, name in enumerate(MODELS)]


@pytest.fixture(scope="module")
def found(quad_runs, choices):
    named = zip(("coco", "trohn-text"), choices.runs, strict=True)
    return findings([*quad_runs, *(replace(run, name=name) for name, run in named)])


@pytest.fixture(scope="module")
def order(quad_runs):
    return ordering(quad_runs)


def _history(start):
    rows = [{"step": step, "loss": start / (1 + step), "lr": 0.1} for step in range(0, 100, 10)]
    return [row | ({"validation": 0.4} if row["step"] % 20 == 0 else {}) for row in rows]


@pytest.fixture(scope="module")
def study(found, order, quads, choices, galleries):
    return page(
        found,
        title="A <study> & its findings",
        order=order,
        comparisons=(quads, choices, galleries),
        trained=[
            TrainingSummary(name, f"what <{name}> saw", 12345, 678, 9.5, _history(i))
            for i, name in enumerate(MODELS)
        ],
        facts={"machine": "two <cores>", "seed": "7"},
        browse="every question.html",
    )


def _text(report):
    return " ".join(html_of.unescape(re.sub(r"<[^>]+>", " ", report)).split())


def test_it_is_whole_runs_its_own_script_and_fetches_nothing(study):
    assert closed(study, "every question.html") == html.static("page.js")
    assert "<title>A &lt;study&gt; &amp; its findings</title>" in study
    assert "what <coco>" not in study


def test_it_opens_with_every_finding_in_words(study, found):
    said = _text(study)
    places = [said.index(each.claim) for each in found]
    assert places == sorted(places)
    assert len(places) == 4
    for each in found:
        assert " ".join(each.sentence.split()) in said
        assert f"In this run it {'is ' if each.verdict == 'undecided' else ''}{each.verdict}" in said
        for evidence in each.evidence:
            assert tenths(evidence.value, signed=evidence.kind == "difference") in said
    # Before anything else.
    assert max(places) < said.index("The world Two pictures")
    figures = re.findall(r"<svg.*?</svg>", study, re.S)
    assert all(any(one.label in svg for svg in figures) for each in found for one in each.evidence)


def test_it_says_what_was_done(study):
    said = _text(study)
    for text in ("12,345", "678", "what <coco> saw", "two <cores>", "Results on Drawn"):
        assert text in said, text


def test_pictures_are_of_every_group_and_marked(study, quads, galleries):
    strip = study[study.index('class="strip"') : study.index('id="gallery"')]
    kinds = re.findall(r'<figcaption class="above">(.*?)</figcaption>', strip)
    assert len(kinds) == 8
    assert set(kinds) == {"add", "replace", "swap"}
    shelf = study[study.index('id="gallery"') : study.index('id="training"')]
    # By the truth of the gallery and the run's own list.
    marks = re.findall(r'<span class="(right|wrong)">', shelf)
    assert {"right", "wrong"} >= set(marks)
    best = max(galleries.runs, key=lambda run: run.result.measures["mean_recall_at_1"].value)
    search = best.benchmark.gallery.t2i
    expected = []
    for text in re.findall(r"<h3>“(.*?)”</h3>", shelf):
        row = next(
            row
            for row, query in enumerate(search.queries)
            if best.benchmark.captions[query].text == html_of.unescape(text)
        )
        right = search.positives.items[search.positives.starts[row] : search.positives.starts[row + 1]]
        top = [i for i in best.answers.t2i.top[row] if i >= 0][:6]
        expected += ["right" if i in right else "wrong" for i in top]
    assert marks == expected
    assert f"What {best.name} puts first" in html_of.unescape(shelf)


def test_with_findings_alone_and_with_nothing(found):
    alone = page(found[:1])
    assert found[0].claim in _text(alone)
    for section in ('id="world"', 'id="gallery"', 'id="training"', 'id="numbers"'):
        assert section not in alone
    assert "No finding could be asked" in page(())


@pytest.mark.parametrize("width", [study_page.WIDE, study_page.NARROW])
@pytest.mark.parametrize("value", [-0.3, 0.0, 0.05, 0.3])
def test_a_difference_has_the_colour_of_what_it_says(value, width):
    each = Evidence("a − b", "group", "difference", value, value - 0.1, value + 0.1, 9, decides=True)
    drawn = figure_style.svg(study_page.differences([each], width=width), name="f", title="t")
    right, wrong = (
        f"var(--right, {figure_style.RIGHT})" in drawn,
        f"var(--wrong, {figure_style.WRONG})" in drawn,
    )
    assert (right, wrong) == (each.low > 0, each.high < 0)
    assert "a − b" in drawn


@pytest.mark.parametrize(
    ("rows", "measure", "drawn"),
    [
        ([{"loss": 1.0}, {}, {"loss": 0.5}, {"loss": float("nan")}], "loss", [(0, 1.0), (2, 0.5)]),
        # Shares are shown in per cent.
        ([{"group": 0.25}, {"group": 0.5}], "group", [(0, 25), (1, 50)]),
    ],
)
def test_a_journal_with_gaps_is_drawn_where_it_has_numbers(rows, measure, drawn):
    histories = {"a": [{"step": step, **row} for step, row in enumerate(rows)], "b": [{"step": 0}]}
    (axes,) = study_page.curves(histories, measure).axes
    (line,) = axes.get_lines()
    assert list(zip(line.get_xdata(), line.get_ydata(), strict=True)) == drawn


@pytest.mark.browser
def test_it_fits_every_screen_and_axe_finds_nothing(study, fits):
    view = fits(study)
    # The figures of the findings are seen whole, without scrolling.
    ends = view.evaluate(
        "[...document.querySelectorAll('.finding svg')].filter(e => e.checkVisibility())"
        ".map(e => [e.getBoundingClientRect().left, e.getBoundingClientRect().right])"
    )
    # Levels and differences of four findings, and the order.
    assert len(ends) == 9
    assert all(0 <= left < right <= 360 for left, right in ends)


# --- the paper's own models


def test_real_models_show_what_the_paper_says(shared_data):
    """BiVLC: CLIP, CLIP_COCO and CLIP_TROHN-Text on all of BiVLC and SugarCrepe."""
    evidence = ReleasedFiles(shared_data, all_papers()["bivlc"].questions)
    runs: list[Run] = []
    for name, file in {
        "pretrained": "ViT-B-32",
        "coco": "CLIP_COCO",
        "trohn-text": "CLIP_TROHN-Text",
    }.items():
        for benchmark, prefix in (("bivlc", ""), ("sugarcrepe", "SUGARCREPE_")):
            path = f"bivlc/{prefix}{file}.csv"
            questions = evidence.answered_questions(benchmark, path)
            answers = join_scores(load(str(shared_data / path)), questions)
            runs.append(run_of(questions, name, answers))
    found = {each.key: each for each in findings(runs)}
    assert {key: each.verdict for key, each in found.items()} == {"direction": "holds", "texts": "holds"}
    overall = next(each for each in found["direction"].differences if each.decides)
    # The counts of the three models in I2T and T2I over 2,933 questions.
    i2t, t2i = 2224 + 2427 + 2293, 1537 + 1874 + 1824
    assert overall.value == pytest.approx((i2t - t2i) / (3 * 2933))
    _, group, _ = found["texts"].differences
    assert group.value == pytest.approx((1686 - 1788) / 2933)
