"""The chapters on rated and on preferred captions: their numbers, words and figures."""

import html as html_of
import re
from dataclasses import replace

import numpy as np
import pytest

from counterfoil.benchmarks.answers import Scores
from counterfoil.evaluation.compare import Difference, compare
from counterfoil.report.comparison_tables import by_group, differences, leading, overview, ranking
from counterfoil.report.figure_style import svg
from counterfoil.report.forms import FORMS
from counterfoil.report.forms.rated import MOST_LEVELS, levels, points, score_spread
from counterfoil.report.page import page
from counterfoil.report.results import lead
from counterfoil.report.tables import to_markdown, written
from report.judgements import preference_benchmark, rated_benchmark
from report_fixtures import run_of


def words(text):
    return " ".join(html_of.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_correlations_are_never_per_cent(rated):
    table = overview(rated)
    assert {column.style for column in table.columns} == {"correlation"}
    oracle = table.rows[1]
    for cell, column in zip(oracle.cells, table.columns, strict=True):
        assert written(cell, column) == f"{100 * rated.runs[0].result.measures[column.measure].value:.2f}"
    against = written(table.rows[3].cells[0], table.columns[0])
    assert against.startswith("−")
    said = lead(rated)
    assert "%" not in said
    assert said.startswith("oracle has Kendall τ-c")
    assert "%" not in to_markdown(table)


def test_the_oracle_leads_and_who_has_no_value_comes_last(rated):
    assert leading(rated) == "kendall_tau_c"
    assert ranking(rated)[0] == "oracle"
    assert ranking(rated)[-2:] == ["against <b>", "constant"]


def test_what_has_no_value_is_a_dash_with_its_reason(rated):
    table = overview(rated)
    constant = next(row for row in table.rows if row.name == "constant")
    assert {written(c, column) for c, column in zip(constant.cells, table.columns, strict=True)} == {"–"}
    texts = [note.text for note in FORMS["rated"].notes(rated)]
    (reason,) = [text for text in texts if "has no value" in text]
    assert "constant" in reason
    assert "all scores are equal" in reason
    (level,) = [text for text in texts if text.startswith("Pairs of captions")]
    assert "constant 100.00" in level
    assert "good" not in level


def test_the_question_that_people_answered():
    benchmark = rated_benchmark()
    said = FORMS["rated"].about(benchmark)
    assert said.startswith(
        "36 captions of 18 images, rated from 1 to 4 by up to 3 people: every rating is a point"
    )
    assert said.endswith("0 to 11 references each.")
    assert FORMS["preference"].about(preference_benchmark()) == (
        "20 pairs of captions of 20 images, each put before 48 people; in 1 both got as many votes, and the "
        "label was drawn."
    )


def test_differences_of_correlations_have_no_test_of_right_and_wrong(rated):
    difference = Difference("rated", "spearman", "good", "oracle", -0.21, -0.3, -0.1, 0.002, 0.004, None)
    table = differences(replace(rated, differences=(difference,)), "spearman")
    assert [column.label for column in table.columns] == ["Difference", "p", "p (Holm)"]
    assert [written(*cell) for cell in table.cells(table.rows[0])] == ["−21.00", "0.002", "0.004"]


def test_groups_of_correlations(rated):
    table = by_group(rated)
    assert [name for name, _ in table.blocks] == ["person", "machine <2>"]
    good = next(row for row in table.rows if row.name == "good")
    estimate = rated.runs[1].result.groups["person"]["kendall_tau_c"]
    assert good.cells[0].value == estimate.value
    # Correlations say much the same: one per group, or tables of many groups are too wide to read.
    assert {column.measure for column in table.columns} == {"kendall_tau_c"}


@pytest.mark.usefixtures("undrawn")
def test_a_page_where_nothing_has_a_value():
    benchmark = rated_benchmark(8)
    alone = compare([run_of(benchmark, "constant", Scores(np.ones(8)))])[0]
    chapter = FORMS["rated"].chapter(alone, "b-x", "")
    assert chapter.lead == "No scorer has a value of Kendall τ-c."
    assert FORMS["rated"].measures(alone, "b-x") == []
    assert "all scores are equal" in words(page([alone]))


def test_points_are_all_ratings_that_somebody_gave(rated):
    run = rated.runs[1]
    ratings, scores = points(run)
    expected = [
        (rating, score)
        for row, score in zip(run.benchmark.judged.ratings.tolist(), run.answers.values.tolist(), strict=True)
        for rating in row
        if not np.isnan(rating)
    ]
    assert list(zip(ratings.tolist(), scores.tolist(), strict=True)) == expected


def test_every_point_is_in_the_column_of_its_rating():
    rng = np.random.default_rng(8)
    few = rng.integers(1, 6, 50).astype(float)
    labels, codes = levels(few)
    assert [float(labels[code]) for code in codes] == few.tolist()
    # A gap between the ratings leaves columns out.
    many = np.concatenate([rng.uniform(0, 1, 80), rng.uniform(4, 5, 40)])
    labels, codes = levels(many)
    assert len(labels) < MOST_LEVELS
    for rating, code in zip(many, codes, strict=True):
        low, high = map(float, labels[code].split("–"))
        assert low - 0.06 <= rating <= high + 0.06


def test_means_of_an_oracle_climb_and_of_its_opposite_fall(rated):
    for run, sign in ((rated.runs[0], 1), (rated.runs[2], -1)):
        (axes,) = score_spread(run).axes
        means = next(line for line in axes.lines if line.get_marker() == "o").get_ydata()
        ratings, scores = points(run)
        assert list(means) == pytest.approx([scores[ratings == r].mean() for r in np.unique(ratings)])
        assert (np.diff(means) * sign > 0).all()
        assert "rating" in svg(score_spread(run), name="x", title="x")
