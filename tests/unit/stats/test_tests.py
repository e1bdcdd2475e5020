"""Tests of the tests: exact enumeration and definitions written out."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import kstest

from counterfoil.errors import InputError
from counterfoil.stats.tests import discordant, holm, mcnemar, williams
from refusals import refuses


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 5), st.integers(0, 5))
def test_mcnemar_equals_the_sum_of_binomial_chances(wins, losses, both, ties):
    first = np.array([1.0] * (wins + both) + [0.0] * losses + [0.5] * ties)
    second = np.array([0.0] * wins + [1.0] * (both + losses) + [0.0] * ties)
    n = wins + losses
    tail = sum(comb(n, k) for k in range(min(wins, losses) + 1))
    assert mcnemar(first, second) == pytest.approx(min(1.0, 2 * tail / 2**n))
    assert mcnemar(second, first) == mcnemar(first, second)
    assert discordant(first, second) == (wins, losses)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_as_defined(p):
    adjusted = holm(np.array(p))
    order = sorted(range(len(p)), key=lambda i: p[i])
    for place, i in enumerate(order):
        # The largest of the steps up to this one, at most 1.
        assert adjusted[i] == min(1.0, max((len(p) - j) * p[order[j]] for j in range(place + 1)))
    assert (adjusted >= p).all()


def test_holm_of_nothing_and_as_published():
    assert holm(np.zeros(0)).tolist() == []
    # 0.01 * 4, then 0.02 * 3, then 0.03 * 2 raised to the step before, then 0.04 * 1 raised as well.
    assert holm(np.array([0.03, 0.01, 0.04, 0.02])) == pytest.approx([0.06, 0.04, 0.06, 0.06])


def test_williams_holds_its_size():
    """Where both metrics are as good, its p-values are uniform: rows here are independent and normal."""
    rng = np.random.default_rng(5)
    truth = rng.normal(size=(2000, 60))
    first, second = (truth + rng.normal(size=(2000, 60)) for _ in range(2))
    p = []
    for rows in zip(truth, first, second, strict=True):
        r = np.corrcoef(rows)
        p.append(williams(r[0, 1], r[0, 2], r[1, 2], 60))
    assert kstest(p, "uniform").pvalue > 1e-3
    assert np.isnan(williams(float("nan"), 0.5, 0.5, 60))
    assert williams(0.9, 0.1, 0.2, 60) < 1e-6
    refuses("too few rows", williams, 0.1, 0.2, 0.3, 3, error=InputError)
