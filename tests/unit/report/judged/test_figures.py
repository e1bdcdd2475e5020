"""Scores at each rating: columns, and what is drawn in them."""

import numpy as np
import pytest

from counterfoil.report.drawing import svg
from counterfoil.report.forms.rated import MOST_LEVELS, levels, points, score_spread


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
