"""The tie policies against a twin that tries every order of the tied scores."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from counterfoil.metrics.contrast import all_above, any_tied
from counterfoil.metrics.ties import Ties

#: Few distinct numbers, so that ties are common.
SCORES = st.integers(0, 2).map(float)


def expected_over_orders(right, wrong):
    """The share of orders, of those that respect the scores, that put every right item above every wrong."""
    scores, m = [*right, *wrong], len(right)
    wins = orders = 0
    for tiebreak in permutations(range(len(scores))):
        rank = [(score, place) for score, place in zip(scores, tiebreak, strict=True)]
        wins += min(rank[:m]) > max(rank[m:])
        orders += 1
    return wins / orders


@given(st.lists(SCORES, min_size=1, max_size=3), st.lists(SCORES, min_size=1, max_size=3))
def test_half_is_the_mean_over_all_orders_of_tied_scores(right, wrong):
    value = all_above(np.array([right]), np.array([wrong]), ties=Ties.HALF)[0]
    assert value == pytest.approx(expected_over_orders(right, wrong), abs=1e-12)


@given(st.lists(SCORES, min_size=1, max_size=4), st.lists(SCORES, min_size=1, max_size=4))
def test_strict_and_optimistic_are_the_worst_and_the_best_order(right, wrong):
    a, b = np.array([right]), np.array([wrong])
    assert all_above(a, b, ties=Ties.STRICT)[0] == float(all(r > w for r in right for w in wrong))
    assert all_above(a, b, ties=Ties.OPTIMISTIC)[0] == float(all(r >= w for r in right for w in wrong))
    assert any_tied(a, b)[0] == any(r == w for r in right for w in wrong)
