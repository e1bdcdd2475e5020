"""Correlations of weighted samples against scipy on the points written out as often as they weigh."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, pearsonr, spearmanr

from counterfoil.errors import InputError
from counterfoil.metrics.weighted_correlation import WeightedCorrelation, influences


def _written_out(x, y, clusters, weights):
    rows = np.repeat(np.arange(len(x)), weights[clusters].astype(int))
    x, y = x[rows], y[rows]
    if len(rows) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return [np.nan] * 4
    return [
        kendalltau(x, y).statistic,
        kendalltau(x, y, variant="c").statistic,
        spearmanr(x, y).statistic,
        pearsonr(x, y).statistic,
    ]


@given(st.data())
def test_equal_to_scipy_with_ties_everywhere(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n = data.draw(st.integers(1, 90))
    x = rng.integers(0, data.draw(st.integers(1, 40)), n) * 0.1
    y = rng.integers(0, data.draw(st.integers(1, 17)), n) / 3
    clusters = np.unique(rng.integers(0, data.draw(st.integers(1, n)), n), return_inverse=True)[1]
    weights = rng.integers(0, 4, (3, clusters.max() + 1))
    points = WeightedCorrelation.of(x, y, clusters)
    expected = np.array([_written_out(x, y, clusters, w) for w in weights.astype(float)])
    assert points.correlations(weights.astype(float)) == pytest.approx(expected, abs=1e-12, nan_ok=True)
    signs = np.sign(np.subtract.outer(x, x)) * np.sign(np.subtract.outer(y, y))
    of_points = weights[:, clusters].astype(float)
    assert points.order(weights).tolist() == np.einsum("di,ij,dj->d", of_points, signs, of_points).tolist()


def test_continuous_ratings_and_many_points_in_several_blocks():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 3000))
    clusters = np.arange(3000) // 3
    weights = rng.integers(0, 3, (100, 1000)).astype(float)
    found = WeightedCorrelation.of(x, y, clusters).correlations(weights)
    for row in (0, 57, 99):
        assert found[row] == pytest.approx(_written_out(x, y, clusters, weights[row]), abs=1e-12)
    # Many samples and few have the same bits.
    few = [WeightedCorrelation.of(x, y, clusters).correlations(row[None])[0] for row in weights[::9]]
    assert (found[::9] == np.array(few)).all()


def test_what_agrees_throughout_is_exactly_one():
    grades = np.tile([1.0, 2.0, 3.0, 4.0], 25)
    weights = np.vstack([np.ones(100), np.random.default_rng(0).integers(0, 4, (50, 100))]).astype(float)
    found = WeightedCorrelation.of(grades, grades, np.arange(100)).correlations(weights)
    assert (found[0] == 1).all()
    assert (found[:, [0, 2]] == 1).all()
    # tau-c is 1 only where the four grades are as many.
    assert (found[1:, 1] < 1).any()


def test_points_that_are_no_numbers_are_refused():
    with pytest.raises(InputError, match="no points"):
        WeightedCorrelation.of(np.empty(0), np.empty(0), np.empty(0, np.int64))
    with pytest.raises(InputError, match="finite"):
        WeightedCorrelation.of(np.array([np.nan]), np.ones(1), np.zeros(1, np.int64))


@pytest.mark.parametrize("levels", [2, 4, 30])
def test_they_are_derivatives_by_weight(levels):
    rng = np.random.default_rng(levels)
    scores, ratings = np.round(rng.normal(size=30), 1), rng.integers(0, levels, 30).astype(np.float64)
    ratings[:2] = 0, levels - 1
    heavy = np.full((60, 30), 1000.0)
    heavy[np.arange(30), np.arange(30)] += 1
    heavy[30 + np.arange(30), np.arange(30)] -= 1
    found = WeightedCorrelation.of(scores, ratings, np.arange(30)).correlations(heavy)
    slopes = (found[:30] - found[30:]) / 2 * 1000
    np.testing.assert_allclose(influences(scores, ratings), slopes, atol=2e-6)


def test_columns_sum_to_nothing_and_constants_have_none():
    rng = np.random.default_rng(0)
    assert influences(rng.normal(size=50), rng.normal(size=50)).sum(axis=0) == pytest.approx(np.zeros(4))
    assert np.isnan(influences(np.ones(5), np.arange(5.0))).all()


def test_heavy_samples_are_exact():
    rng, clusters = np.random.default_rng(2), 1500
    n = 3 * clusters
    x, y = rng.normal(size=n).round(2), rng.integers(0, 300, n).astype(float)
    weights = np.stack([rng.integers(0, 3, clusters), rng.integers(200_000, 300_000, clusters)])
    points = WeightedCorrelation.of(x, y, np.arange(n) % clusters)
    # Half of the ordered pairs, in Python's whole numbers.
    signs = np.sign(np.subtract.outer(x, x)) * np.sign(np.subtract.outer(y, y))
    of_clusters = sum(
        signs[:, at : at + clusters].reshape(3, clusters, clusters).sum(axis=0)
        for at in range(0, n, clusters)
    ).astype(np.int64)
    expected = [float(int((row @ of_clusters) @ row)) for row in weights]
    assert points.order(weights).tolist() == expected
