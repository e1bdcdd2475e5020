"""What several proposers missed, against brute force and against populations of known size."""

from itertools import product
from math import inf, lgamma, log

import numpy as np
import pytest
from scipy.optimize import minimize

from counterfoil.errors import InputError
from counterfoil.stats.capture_recapture import chao, graded, independent
from refusals import refuses


def drawn(n, rates, rng, *, spread=0.0):
    """Which of n pairs each proposer finds; `spread` is how much log odds differ from pair to pair."""
    odds = np.log(np.array(rates) / (1 - np.array(rates))) + spread * rng.normal(size=(n, 1))
    return rng.random((n, len(rates))) < 1 / (1 + np.exp(-odds))


def slow_likelihood(finds, total):
    """N! / (N - S)! times the chance of every find and of every miss, at the likeliest rates."""
    found = [row for row in finds.tolist() if any(row)]
    value = lgamma(total + 1) - lgamma(total - len(found) + 1)
    for k in range(finds.shape[1]):
        yes = sum(row[k] for row in found)
        for share, times in ((yes / total, yes), (1 - yes / total, total - yes)):
            value += times * log(share) if times else 0.0
    return value


@pytest.mark.parametrize("proposers", [2, 4])
def test_independent_is_the_likeliest_number_of_all(proposers):
    finds = drawn(120, [0.3, 0.5, 0.2, 0.4][:proposers], np.random.default_rng(proposers))
    here = independent(finds)
    totals = range(here.n_found, 1000)
    values = np.array([slow_likelihood(finds, total) for total in totals])
    assert abs(here.total - totals[int(values.argmax())]) <= 1
    kept = np.array(totals)[values >= values.max() - 3.8414588 / 2]
    assert kept[0] - 1 <= here.low <= kept[0]
    assert kept[-1] <= here.high <= kept[-1] + 1


def test_two_proposers_are_chapmans():
    for seed in range(20):
        finds = drawn(300, [0.4, 0.6], np.random.default_rng(seed))
        each, both = finds.sum(axis=0).tolist(), int(finds.all(axis=1).sum())
        assert independent(finds).total == pytest.approx(
            (each[0] + 1) * (each[1] + 1) / (both + 1) - 1, abs=2.0
        )


def test_graded_is_the_likeliest_of_its_model():
    finds = drawn(300, [0.5, 0.4, 0.3], np.random.default_rng(3), spread=1.0)
    cells = np.array(list(product((0, 1), repeat=3)))
    counts = np.array([(finds == cell).all(axis=1).sum() for cell in cells], dtype=float)
    k = cells.sum(axis=1)
    design = np.column_stack([cells, k * (k - 1) / 2])

    def slow(total):
        every = counts.copy()
        every[0] = total - counts[1:].sum()

        def loss(terms):
            odds = design @ terms
            return -float(every @ (odds - np.log(np.exp(odds).sum())))

        value = -minimize(loss, np.zeros(4), method="BFGS").fun
        return value + lgamma(total + 1) - lgamma(every[0] + 1)

    total = graded(finds)
    assert slow(total) >= max(slow(total * 0.98), slow(total * 1.02))


def covered(of, spread, repetitions, rates=(0.3, 0.4, 0.5, 0.35), n=400):
    """How often the interval holds the truth, and the mean estimate as a share of it."""
    inside, estimates = 0, []
    for seed in range(repetitions):
        here = of(drawn(n, rates, np.random.default_rng(seed), spread=spread))
        inside += here.low <= n <= here.high
        estimates.append(here.total / n)
    return inside / repetitions, float(np.median(estimates))


@pytest.mark.parametrize("repeats", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_coverage_of_known_populations(repeats):
    # 300 repetitions know 95 % to 1.3 points, 60 to 2.8.
    share, centre = covered(independent, 0.0, repeats)
    assert abs(share - 0.95) < 2.4 * (0.05 * 0.95 / repeats) ** 0.5
    assert centre == pytest.approx(1.0, abs=0.02)
    # Pairs that differ in how hard they are: independence is below and does not cover, a grade does.
    share, centre = covered(independent, 1.5, 20)
    assert share < 0.05
    assert centre < 0.9
    totals = [
        graded(drawn(400, (0.3, 0.4, 0.5, 0.35), np.random.default_rng(s), spread=1.5)) for s in range(20)
    ]
    assert np.median(totals) == pytest.approx(400, rel=0.12)


def slow_bound(finds):
    """The bound pair of proposers by pair of proposers, from the pairs that one, or two, alone found."""
    alone = [sum(1 for row in finds if row[i] and sum(row) == 1) for i in range(finds.shape[1])]
    twice = sum(1 for row in finds if sum(row) == 2)
    products = sum(a * b for i, a in enumerate(alone) for j, b in enumerate(alone) if i < j)
    return sum(1 for row in finds if any(row)) + products / (twice + 1)


#: Rates of proposers, how much pairs differ for all of them, and the share of the truth that the bound is.
SETTINGS = [
    ((0.3, 0.3, 0.3, 0.3), 0.0, 0.98, 1.02),
    ((0.2, 0.8), 0.0, 0.98, 1.02),
    ((0.1, 0.3, 0.6, 0.9), 0.0, 0.98, 1.02),
    ((0.05, 0.1, 0.7), 0.0, 0.97, 1.03),
    ((0.2, 0.8), 1.5, 0.7, 0.99),
    ((0.3, 0.4, 0.5, 0.35), 1.5, 0.7, 0.99),
]


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
    apart = np.array([[True, False]] * 5 + [[False, True]] * 4)
    assert independent(apart).high == inf
    whole = independent(np.ones((30, 2), dtype=bool))
    assert (whole.n_found, whole.low) == (30, 30.0)
    assert whole.total == 30.0
    assert 30 < whole.high < 33
    nothing = np.zeros((4, 3), dtype=bool)
    assert (independent(nothing).n_found, graded(nothing)) == (0, 0.0)
    assert chao(np.ones((9, 3), dtype=bool)).total == 9
    # What none found does not count.
    assert independent(np.concatenate([apart, [[False, False]]])) == independent(apart)


def test_too_few_proposers():
    for of, finds in (
        (independent, np.ones((3, 1), bool)),
        (chao, np.ones((3, 1), bool)),
        (graded, np.ones((3, 2), bool)),
        (graded, np.ones((3, 11), bool)),
    ):
        refuses("proposers", of, finds, error=InputError)
