"""Tests of the tests: exact enumeration, definitions written out, and ties by the thousand."""

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from counterfoil.errors import InputError
from counterfoil.stats.estimates import macro_weights
from counterfoil.stats.resampling import sign_draws
from counterfoil.stats.tests import discordant, holm, mcnemar, paired_permutation, williams

PAIR = np.array([[0, 1]])


def exact_p(difference: np.ndarray, clusters: np.ndarray) -> float:
    """The share of all 2**C sign patterns at least as far from 0, in twelfths so that sums are exact."""
    twelfths = np.rint(difference * 12).astype(int)
    sums = [int(twelfths[clusters == c].sum()) for c in np.unique(clusters)]
    observed = abs(sum(sums))
    patterns = list(product((1, -1), repeat=len(sums)))
    return sum(abs(sum(s * x for s, x in zip(p, sums, strict=True))) >= observed for p in patterns) / len(
        patterns
    )


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 9))
def test_permutation_approaches_all_sign_patterns(seed: int, n_clusters: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.choice([0, 1, 0.5, 1 / 6, 0.25], size=(3 * n_clusters, 2))
    clusters = np.arange(3 * n_clusters) % n_clusters
    p = paired_permutation(values, clusters, PAIR, seed=seed, draws=4000)[0]
    # The standard error of a share of 4,000 draws is at most 0.008.
    assert p == pytest.approx(exact_p(values[:, 0] - values[:, 1], clusters), abs=0.035)


def test_p_counts_draws_as_defined_ties_included() -> None:
    rng = np.random.default_rng(0)
    values, clusters = rng.choice([0, 1, 1 / 6], size=(50, 3)), rng.integers(0, 12, 50)
    pairs = np.array([[0, 1], [2, 1]])
    p = paired_permutation(values, clusters, pairs, seed=4, draws=300)
    names = np.unique(clusters)
    signs = np.concatenate(list(sign_draws(len(names), 300, seed=4))).astype(int)
    for (a, b), found in zip(pairs, p, strict=True):
        sixths = np.rint(6 * (values[:, a] - values[:, b])).astype(int)
        sums = np.array([sixths[clusters == c].sum() for c in names])
        reached = int((abs(signs @ sums) >= abs(sums.sum())).sum())
        assert found == (1 + reached) / 301


def test_ties_of_sixths_are_ties() -> None:
    # 1/6 six times over is not 1 in floating point; here both are whole numbers of twelfths, T is 0 and every
    # draw at least as far.
    first, second = np.array([1 / 6] * 6 + [0.0]), np.array([0.0] * 6 + [1.0])
    assert sum(first) != sum(second)
    p = paired_permutation(np.stack([first, second], 1), np.arange(7), PAIR, seed=0, draws=200)[0]
    assert p == 1.0


def test_weights_that_are_no_neat_fractions_keep_their_ties() -> None:
    # Groups of 3 and 7 questions, weights 1/6 and 1/14; the first wins all of group 0, the second all of
    # group 1: T is 0.
    groups = np.repeat([0, 1], [3, 7])
    values = np.stack([groups == 0, groups == 1], 1).astype(np.float64)
    p = paired_permutation(values, np.arange(10), PAIR, seed=0, weights=macro_weights(groups), draws=500)[0]
    assert p == 1.0
    # The first wins all: T is 1, which only the two patterns of one sign throughout reach, 2 in 2**10.
    values[:, 0], values[:, 1] = 1, 0
    q = paired_permutation(values, np.arange(10), PAIR, seed=0, weights=macro_weights(groups), draws=8000)[0]
    assert q == pytest.approx(2 / 2**10, abs=0.002)


def test_weights_weigh_questions() -> None:
    rng = np.random.default_rng(1)
    values, clusters = rng.integers(0, 2, (40, 2)).astype(float), np.arange(40) // 2
    doubled = np.concatenate([values, values[:20]])
    by_weight = paired_permutation(
        values, clusters, PAIR, seed=0, weights=np.where(np.arange(40) < 20, 2.0, 1.0), draws=500
    )
    twice = np.concatenate([clusters, clusters[:20]])
    by_copies = paired_permutation(doubled, twice, PAIR, seed=0, draws=500)
    assert by_weight.tolist() == by_copies.tolist()


def test_flipping_clusters_is_not_flipping_questions() -> None:
    # 40 questions won in 4 clusters: 2 of 16 patterns are as far, although 40 wins in a row look certain.
    values = np.stack([np.ones(40), np.zeros(40)], 1)
    p = paired_permutation(values, np.arange(40) % 4, PAIR, seed=0, draws=4000)[0]
    assert p == pytest.approx(2 / 16, abs=0.02)
    assert paired_permutation(values, np.arange(40), PAIR, seed=0, draws=4000)[0] == 1 / 4001


def test_pairs_share_signs_and_order_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    values, clusters = rng.integers(0, 2, (80, 4)).astype(float), rng.integers(0, 30, 80)
    pairs = np.array([[0, 1], [1, 0], [2, 3], [2, 2]])
    p = paired_permutation(values, clusters, pairs, seed=9, draws=400)
    assert p[0] == p[1]
    assert p[3] == 1
    alone = paired_permutation(values[:, 2:], clusters * 5, PAIR, seed=9, draws=400)
    assert alone[0] == p[2]


def test_nothing_to_compare_is_refused() -> None:
    with pytest.raises(InputError, match="no questions"):
        paired_permutation(np.zeros((0, 2)), np.zeros(0, dtype=int), PAIR, seed=0)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 5), st.integers(0, 5))
def test_mcnemar_equals_the_sum_of_binomial_chances(wins: int, losses: int, both: int, ties: int) -> None:
    first = np.array([1.0] * (wins + both) + [0.0] * losses + [0.5] * ties)
    second = np.array([0.0] * wins + [1.0] * (both + losses) + [0.0] * ties)
    n = wins + losses
    tail = sum(comb(n, k) for k in range(min(wins, losses) + 1))
    assert mcnemar(first, second) == pytest.approx(min(1.0, 2 * tail / 2**n))
    assert mcnemar(second, first) == mcnemar(first, second)
    assert discordant(first, second) == (wins, losses)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_as_defined(p: list[float]) -> None:
    adjusted = holm(np.array(p))
    order = sorted(range(len(p)), key=lambda i: p[i])
    for place, i in enumerate(order):
        # The largest of the steps up to this one, at most 1.
        assert adjusted[i] == min(1.0, max((len(p) - j) * p[order[j]] for j in range(place + 1)))
    assert (adjusted >= p).all()


def test_holm_of_nothing_and_as_published() -> None:
    assert holm(np.zeros(0)).tolist() == []
    # 0.01 * 4, then 0.02 * 3, then 0.03 * 2 raised to the step before, then 0.04 * 1 raised as well.
    assert holm(np.array([0.03, 0.01, 0.04, 0.02])) == pytest.approx([0.06, 0.04, 0.06, 0.06])


def test_williams_holds_its_size() -> None:
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
    with pytest.raises(InputError, match="too few rows"):
        williams(0.1, 0.2, 0.3, 3)
