"""Bradley-Terry strengths: against the likelihood, and the printed votes of ECCV Caption."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from counterfoil.errors import InputError
from counterfoil.metrics.bradley_terry import bradley_terry, bradley_terry_draws, connected, one_sided
from printed_votes import PRINTED
from refusals import refuses

votes = st.integers(2, 5).flatmap(lambda n: arrays(np.int64, (n, n), elements=st.integers(1, 30)))


@given(votes)
def test_at_the_likeliest_strengths_expected_wins_are_the_wins(wins):
    # The derivative of the log-likelihood by log p_i: wins of i less the sum of n_ij p_i / (p_i + p_j).
    p = bradley_terry(wins)
    assert p.sum() == pytest.approx(100)
    met = wins + wins.T
    np.fill_diagonal(met, 0)
    expected = (met * p[:, None] / (p[:, None] + p[None, :])).sum(axis=1)
    assert expected == pytest.approx(wins.sum(axis=1) - np.diag(wins), rel=1e-6)


@pytest.mark.parametrize(
    ("wins", "message"),
    [
        ([[0, 3], [0, 0]], r"no finite strengths; given: \[[01]\] won all votes or none"),
        ([[0, 1, 0], [1, 0, 0], [2, 1, 0]], "no finite strengths"),
        ([[0, 1, 0], [1, 0, 0], [0, 0, 0]], "no finite strengths"),
        ([[0, -1], [2, 0]], "votes are counts"),
        ([[0, float("nan")], [2, 0]], "votes are counts"),
        ([[1]], "two things to compare; given: 1"),
    ],
)
def test_votes_without_strengths(wins, message):
    refuses(message, bradley_terry, np.array(wins), error=InputError)


@settings(deadline=None)
@given(st.integers(2, 5), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_many_tables_at_once_give_what_each_gives_alone(n, draws, seed):
    wins = np.random.default_rng(seed).integers(1, 200, size=(draws, n, n))
    for table, strengths in zip(wins, bradley_terry_draws(wins), strict=True):
        assert strengths == pytest.approx(bradley_terry(table), rel=1e-6)


@settings(deadline=None)
@given(st.integers(2, 6).flatmap(lambda n: arrays(np.int64, (n, n), elements=st.integers(0, 1))))
def test_strengths_exist_where_every_one_is_reached_by_wins(wins):
    n = len(wins)
    # By hand: i reaches j where i beat j, or beat one who reaches j.
    reached = {(i, j) for i in range(n) for j in range(n) if wins[i, j] or i == j}
    while more := {(i, k) for i, j in reached for a, k in reached if a == j} - reached:
        reached |= more
    whole = len(reached) == n * n
    assert connected(wins[None]).tolist() == [whole]
    apart = one_sided(wins)
    assert bool(apart) == (not whole)
    if apart:
        assert not wins[np.ix_(apart, [i for i in range(n) if i not in apart])].any()
        refuses("no finite strengths; ", bradley_terry, wins, error=InputError)
        with pytest.raises(InputError, match="draw 0: preferences have no finite strengths"):
            bradley_terry_draws(wins[None])


def test_lopsided_votes_settle_and_too_few_rounds_are_noted():
    # One win in a thousand: strengths 999 to 1, far from the start.
    wins = np.array([[[0, 999, 999], [1, 0, 999], [1, 1, 0]]])
    assert bradley_terry_draws(wins)[0] == pytest.approx(bradley_terry(wins[0]), rel=1e-6)
    refuses("did not settle; given: 2 rounds", bradley_terry_draws, wins, error=InputError, rounds=2)
    refuses("preferences did not settle; given: 1 rounds", bradley_terry, PRINTED, error=InputError, rounds=1)
