"""Tables and figures of machine annotators, and the page of heatmaps, which is closed to the outside."""

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from counterfoil.benchmarks.judgements import Votes
from counterfoil.engine.explain import ExplainedPair, ExplainedQuestion, Heatmap, PairToExplain, words_of
from counterfoil.evaluation.annotators import study
from counterfoil.evaluation.judged_pairs import JUDGED, JudgedPairs, count, coverage
from counterfoil.evaluation.preferences import preferences
from counterfoil.report import annotators as figures, annotators as tables
from counterfoil.report.annotators import curves
from counterfoil.report.figures import multiplicity
from counterfoil.report.html import static
from counterfoil.report.saliency_page import page
from counterfoil.stats.dependence import Dependence
from counterfoil.world.sample import quads
from report.outlines import closed


def alone(n):
    """Queries that share nothing."""
    return Dependence(np.arange(n)[:, None], np.full((n, 1), -1))


@pytest.fixture(scope="module")
def studies():
    rng = np.random.default_rng(0)
    queries, items = 60, 25
    query, item = np.divmod(np.arange(queries * items), items)
    place = np.stack(
        [np.concatenate([rng.permutation(items) + 1 for _ in range(queries)]) for _ in range(3)], 1
    )
    gain = np.where(place.mean(axis=1) < 9, rng.choice([0.5, 1.0], len(item)), 0.0)
    known = JudgedPairs(
        "t2i", ("alpha", "beta <b>", "gamma"), query, gain, place, place <= 5, (items,) * 3, alone(queries)
    )
    return study(known, draws=200)


@pytest.fixture(scope="module")
def sets():
    query = np.repeat(np.arange(6), 3)
    right, accepted = np.arange(18) % 3 == 0, np.arange(18) % 2 == 0
    result = coverage("coco", "t2i", query=query, right=right, accepted=accepted, dependence=alone(6))
    return [result], [count("coco", "t2i", np.ones(6, np.int64)), count(JUDGED, "t2i", np.array([2, 1] * 3))]


def test_tables_hold_what_was_found(studies):
    result = studies[0]
    table = tables.performance(result)
    assert [column.label for column in table.columns] == [*result.models, "all"]
    assert [column.size for column in table.columns] == [
        *result.queries[:3].tolist(),
        int(result.queries[-1]),
    ]
    assert [row.name for row in table.rows] == list(result.models)
    for m, row in enumerate(table.rows):
        for i, cell in enumerate(row.cells):
            ends = result.ends.low[i, m], result.performance[[0, 1, 2, -1][i], m], result.ends.high[i, m]
            assert (cell.low, cell.value, cell.high) == ends
            assert cell.low < cell.value < cell.high
            assert (cell.rank == 1) == (cell.value == max(one.cells[i].value for one in table.rows))
    assert all(c.low <= c.value <= c.high for row in tables.by_number(result).rows for c in row.cells)
    alone, by_number, bias = tables.alone(result).rows, tables.by_number(result).rows, result.bias
    assert [row.name for row in alone] == [f"only {name}" for name in result.models]
    assert [row.name for row in by_number] == ["any 1 of 3 (3 sets)", "any 2 of 3 (3 sets)"]
    assert [c.value for c in alone[0].cells] == [bias.total[0], bias.own[0], bias.others[0]]
    assert alone[0].cells[0].low == result.single["total"].low[0]
    assert by_number[0].cells[0].value == pytest.approx(np.mean(bias.total[:3]))


def test_tables_of_sets(sets):
    result, counts = sets
    # Right is the first of three; accepted are the even ones: half of the first ones, 9 of 18.
    row = tables.coverages(result).rows[0]
    assert row.cells[0].value == pytest.approx(0.5)
    assert row.cells[2].value == "6"
    values = [[cell.value for cell in row.cells] for row in tables.multiplicities(counts).rows]
    assert values == [["6", "1.00", "1", "1", "×1.00"], ["9", "1.50", "1.5", "2", "×1.50"]]
    alone = tables.multiplicities(counts[1:])
    assert [column.label for column in alone.columns] == ["in all", "mean", "median", "most"]


def test_figures_show_the_curves(studies):
    figure = curves(studies)
    shown = {tuple(np.round(line.get_ydata(), 9)) for line in figure.axes[0].lines}
    expected = {
        tuple(np.round([100 * v for v in curve.values()], 9)) for curve in studies[0].curves().values()
    }
    assert shown == expected
    assert [axes.get_title(loc="left") for axes in figure.axes] == [tables.heading(s) for s in studies]
    assert "self-bias" in {text.get_text() for text in figure.axes[0].texts}


def test_yields_have_a_line_per_number_of_models_histograms_gather_the_rest_and_strengths_are_in_order():
    curve = np.array([[10.0, 20.0, 30.0], [15.0, 28.0, 40.0]])
    (axes,) = figures.yield_curves(curve).axes
    assert [line.get_ydata().tolist() for line in axes.lines] == curve.tolist()
    assert [text.get_text() for text in axes.texts] == ["1 model", "2 models"]
    figure = multiplicity([("t2i", {0: 3, 1: 2, 5: 1, 9: 4})], most=5)
    bars = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in figure.axes[0].patches}
    assert bars == {0: 3, 1: 2, 5: 5}
    assert figure.axes[0].get_xlabel() == "right answers per query (5: that many or more)"
    result = preferences(Votes(("x", "y", "z"), np.array([[0, 3, 9], [7, 0, 8], [1, 2, 0]])), draws=300)
    (axes,) = figures.strengths(result).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [result.names[i] for i in result.order]
    assert axes.lines[0].get_xdata().tolist() == [result.strength[i] for i in result.order]
    assert axes.get_xscale() == "log"


@pytest.fixture(scope="module")
def made():
    benchmark = quads(1, size=48)
    pairs = {}
    for at, image in product((0, 1), repeat=2):
        caption, rng = benchmark.captions[at], np.random.default_rng(10 * at + image)
        asked = PairToExplain(benchmark.images[image], caption, words_of(caption.text or ""))
        parts = rng.normal(size=(len(asked.spans), 4, 4))
        parts[0] = 0.0
        heats = (
            Heatmap("occlusion", rng.normal(size=(4, 4)), parts),
            Heatmap("patches", rng.random((3, 3)), rng.random((len(parts), 3, 3)), (0.1, 0.0, 0.9, 1.0)),
        )
        pairs[at, image] = ExplainedPair(asked, 0.25, np.linspace(-0.5, 1, len(parts)), heats)
    return benchmark, [ExplainedQuestion(benchmark.questions.ids[0], pairs)]


def test_it_is_whole_and_fetches_nothing(made):
    text = page("open-clip:<x>", *made, notes=["one & two"])
    assert closed(text) == static("page.js")
    assert "open-clip:&lt;x&gt;" in text
    assert "one &amp; two" in text
    # Each photograph is there once, under forty heatmaps and more.
    assert text.count("data:image/webp") == 2
    assert text.count("<figure>") > 40
    assert text.count("The same everywhere:") == 4


def test_a_licence_that_forbids_it_leaves_photographs_and_captions_out(made):
    benchmark, questions = made
    card = benchmark.card.model_copy(update={"redistributable": False, "licence": "no copies"})
    closed = replace(benchmark, card=card)
    closed_page = page("model", closed, questions)
    assert "data:image/webp" not in closed_page
    assert "(no copies)" in closed_page
    text = benchmark.captions[0].text or ""
    for word in (item for item in re.findall(r"\w+", text) if len(item) > 3):
        assert f">{word}<" not in closed_page
    assert ">word 1<" in closed_page
    assert page("model", closed, questions, pictures="always").count("data:image/webp") == 2
    assert "data:image/webp" not in page("model", benchmark, questions, budget=100)


@pytest.mark.browser
def test_heatmaps_lie_over_their_pictures(made, fits):
    shown = fits(page("model", *made))
    boxes = shown.evaluate(
        """[...document.querySelectorAll('.heats .canvas')].map(each => {
            const [a, b] = [each.getBoundingClientRect(), each.querySelector('img').getBoundingClientRect()];
            const below = getComputedStyle(each.querySelector('.below')).backgroundImage;
            return [(b.left - a.left) / a.width, b.width / a.width, b.height / a.height, below.slice(0, 9)];
        })"""
    )
    assert {below for *_, below in boxes} == {'url("data'}
    places = {tuple(round(part, 2) for part in parts) for *parts, _ in boxes}
    assert places == {(0.0, 1.0, 1.0), (0.1, 0.8, 1.0)}
    lefts = shown.evaluate(
        "[...document.querySelector('.heats').children].map(one => one.getBoundingClientRect().left)"
    )
    assert len({round(left) for left in lefts}) == min(len(lefts), 2)
