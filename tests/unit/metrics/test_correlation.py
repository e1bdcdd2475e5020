"""Correlations against their formulas."""

from math import isnan

import numpy as np
import pytest
from scipy.stats import rankdata

from counterfoil.errors import InputError
from counterfoil.metrics.correlation import (
    kendall_tau_b,
    kendall_tau_c,
    middle_ranks,
    pearson,
    spearman,
    weighted_spearman,
    weighted_tau_b,
)
from refusals import refuses


def test_pearson_by_hand():
    # Deviations (-1, 0, 1) and (-1, 1, 0): covariance 1 over sqrt(2 * 2); t = 0.5 / sqrt(0.75) on one degree
    # of freedom, whose two-sided tail is 1 - 2 * atan(t) / pi = 2 / 3.
    coefficient, p = pearson(np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0, 1.0]))
    assert coefficient == pytest.approx(0.5)
    assert p == pytest.approx(2 / 3)


def test_spearman_sees_ranks_only_and_shares_those_of_equals():
    x = np.array([1.0, 2.0, 2.0, 4.0])
    coefficient, _ = spearman(x, np.array([1.0, 10.0, 100.0, 1000.0]))
    # Ranks (1, 2.5, 2.5, 4) and (1, 2, 3, 4): covariance 4.5 over sqrt(4.5 * 5).
    assert coefficient == pytest.approx(4.5 / (4.5 * 5) ** 0.5)


@pytest.mark.parametrize("correlation", [pearson, spearman])
def test_a_constant_column_is_undefined_and_two_rows_are_refused(correlation):
    assert callable(correlation)
    assert all(isnan(x) for x in correlation(np.ones(5), np.arange(5.0)))
    refuses("too few rows", correlation, np.arange(2.0), np.arange(2.0), error=InputError)


def test_tau_b_of_the_micro_check_and_by_counting_pairs():
    # FORMATS 0.4, from scipy's source.
    x = np.array([0.1, 0.4, 0.4, 0.3, 0.9, 0.7, 0.2, 0.65])
    y = np.array([1.0, 2.0, 3.0, 1.0, 4.0, 3.0, 2.0, 4.0])
    assert kendall_tau_b(x, y) == pytest.approx(0.7463904913, abs=1e-10)
    # Pairs of (1, 1), (2, 1), (3, 2): two agree, one is tied in the second: 2 / sqrt(3 * 2).
    assert kendall_tau_b(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 2.0])) == pytest.approx(2 / 6**0.5)
    assert kendall_tau_b(np.array([1.0, 2.0]), np.array([5.0, 3.0])) == -1
    for tau in (kendall_tau_b, kendall_tau_c):
        assert isnan(tau(np.ones(4), np.arange(4.0)))
        refuses("too few rows for a correlation; given: 1", tau, np.ones(1), np.ones(1), error=InputError)


@pytest.mark.parametrize(
    ("many", "one"),
    [(weighted_tau_b, kendall_tau_b), (weighted_spearman, lambda x, y: spearman(x, y)[0])],
    ids=["tau", "spearman"],
)
def test_weights_are_copies_of_rows(many, one):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 4, size=(60, 6, 3)).astype(float)
    weights = rng.integers(0, 3, size=(60, 6)).astype(float)
    found = many(values, weights)
    undefined = 0
    for draw in range(60):
        copies = np.repeat(values[draw], weights[draw].astype(int), axis=0)
        for a in range(3):
            for b in range(3):
                if len(copies) < 3:
                    continue
                expected = one(copies[:, a], copies[:, b])
                undefined += isnan(expected)
                assert found[draw, a, b] == pytest.approx(expected, abs=1e-12, nan_ok=True)
    assert undefined > 0


def test_a_weighted_column_that_holds_nan_is_undefined_and_equal_columns_give_exactly_1():
    values = np.random.default_rng(1).random((5, 4, 2))
    values[:, :, 1] = values[:, :, 0]
    assert (weighted_tau_b(values, np.ones((5, 4))) == 1).all()
    values[2, 1, 1] = np.nan
    found = weighted_spearman(values, np.ones((5, 4)))
    assert np.isnan(found[2, 0, 1])
    assert np.isnan(found[2, 1, 1])
    assert found[2, 0, 0] == 1


def test_middle_ranks_are_scipys():
    rng = np.random.default_rng(2)
    for n in (1, 2, 7, 60):
        values = rng.integers(0, 9, n) / 3
        assert middle_ranks(values).tolist() == rankdata(values).tolist()
