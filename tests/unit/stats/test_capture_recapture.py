"""What several proposers missed, against brute force and against populations of known size."""

import numpy as np
import pytest

from counterfoil.errors import InputError
from counterfoil.stats.capture_recapture import chao
from refusals import refuses


def drawn(n, rates, rng, *, spread=0.0):
    """Which of n pairs each proposer finds; `spread` is how much log odds differ from pair to pair."""
    odds = np.log(np.array(rates) / (1 - np.array(rates))) + spread * rng.normal(size=(n, 1))
    return rng.random((n, len(rates))) < 1 / (1 + np.exp(-odds))


def slow_bound(finds):
    """The bound pair of proposers by pair of proposers, from the pairs that one, or two, alone found."""
    alone = [sum(1 for row in finds if row[i] and sum(row) == 1) for i in range(finds.shape[1])]
    twice = sum(1 for row in finds if sum(row) == 2)
    products = sum(a * b for i, a in enumerate(alone) for j, b in enumerate(alone) if i < j)
    return sum(1 for row in finds if any(row)) + products / (twice + 1)


#: Rates of proposers, how much pairs differ for all of them, and the share of the truth that the bound is.
SETTINGS = [
    ((0.3, 0.3, 0.3, 0.3), 0.0, 0.98, 1.02), ((0.2, 0.8), 0.0, 0.98, 1.02),
    ((0.1, 0.3, 0.6, 0.9), 0.0, 0.98, 1.02), ((0.05, 0.1, 0.7), 0.0, 0.97, 1.03),
    ((0.2, 0.8), 1.5, 0.7, 0.99), ((0.3, 0.4, 0.5, 0.35), 1.5, 0.7, 0.99),
]  # fmt: skip


@pytest.mark.parametrize(("rates", "spread", "least", "most"), SETTINGS)
def test_the_bound_is_the_truth_or_below_it_whatever_the_rates(rates, spread, least, most):
    rng = np.random.default_rng(0)
    bounds = [chao(drawn(2000, rates, rng, spread=spread)) for _ in range(60)]
    assert least < np.mean([bound.total for bound in bounds]) / 2000 < most
    # The lower end of its interval is above the truth in few cases, of one in forty.
    assert np.mean([bound.low <= 2000 for bound in bounds]) > 0.9
    finds = drawn(300, rates, rng, spread=spread)
    assert chao(finds).total == pytest.approx(slow_bound(finds), abs=1e-9)


def test_the_interval_of_the_bound_is_as_wide_as_the_bound_varies():
    rng = np.random.default_rng(1)
    for rates in ((0.3, 0.3, 0.3), (0.2, 0.8), (0.1, 0.3, 0.6)):
        bounds = [chao(drawn(1000, rates, rng)) for _ in range(400)]
        # Without anything shared the bound is the truth, and its interval holds it.
        assert np.mean([bound.low <= 1000 <= bound.high for bound in bounds]) > 0.92, rates


def test_ends_where_little_is_known():
    assert chao(np.zeros((4, 3), dtype=bool)).total == 0
    assert chao(np.ones((9, 3), dtype=bool)).total == 9
    # What none found does not count.
    apart = np.array([[True, False]] * 5 + [[False, True]] * 4)
    assert chao(np.concatenate([apart, [[False, False]]])) == chao(apart)
    refuses("proposers", chao, np.ones((3, 1), bool), error=InputError)
