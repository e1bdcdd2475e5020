"""Influences against correlations of points of which one weighs a little more or less."""

import numpy as np
import pytest

from counterfoil.metrics.weighted_correlation import WeightedCorrelation, influences


@pytest.mark.parametrize("levels", [2, 4, 30])
def test_they_are_derivatives_by_weight(levels: int) -> None:
    rng = np.random.default_rng(levels)
    scores, ratings = np.round(rng.normal(size=30), 1), rng.integers(0, levels, 30).astype(np.float64)
    ratings[:2] = 0, levels - 1
    heavy = np.full((60, 30), 1000.0)
    heavy[np.arange(30), np.arange(30)] += 1
    heavy[30 + np.arange(30), np.arange(30)] -= 1
    found = WeightedCorrelation.of(scores, ratings, np.arange(30)).correlations(heavy)
    slopes = (found[:30] - found[30:]) / 2 * 1000
    np.testing.assert_allclose(influences(scores, ratings), slopes, atol=2e-6)


def test_columns_sum_to_nothing_and_constants_have_none() -> None:
    rng = np.random.default_rng(0)
    assert influences(rng.normal(size=50), rng.normal(size=50)).sum(axis=0) == pytest.approx(np.zeros(4))
    assert np.isnan(influences(np.ones(5), np.arange(5.0))).all()


def test_their_spread_is_that_of_the_correlation() -> None:
    """4,000 independent pairs: Pearson's standard error is (1 - r^2) / sqrt(n) for normal numbers."""
    rng = np.random.default_rng(1)
    first = rng.normal(size=4000)
    second = 0.6 * first + 0.8 * rng.normal(size=4000)
    error = np.sqrt((influences(first, second)[:, 3] ** 2).sum())
    assert error == pytest.approx((1 - 0.36) / 4000**0.5, rel=0.1)
