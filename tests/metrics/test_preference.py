"""Bradley-Terry strengths: against the likelihood, and the printed votes of P002."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy import ndarray

from counterfoil.errors import InputError
from counterfoil.metrics.preference import bradley_terry

# P002 Table D.1: row preferred to column, for A (only the first is wrong), B (only the first is right),
# C (the first five are wrong), D (only the fifth is right), E (all wrong).
PRINTED = np.array(
    [
        [0, 231, 66, 111, 316],
        [89, 0, 21, 79, 328],
        [254, 299, 0, 273, 343],
        [185, 217, 23, 0, 287],
        [28, 16, 1, 9, 24],
    ]
)


def test_the_printed_votes_give_the_printed_strengths_in_another_order() -> None:
    strengths = dict(zip("ABCDE", bradley_terry(PRINTED), strict=True))
    assert {name: round(float(s), 2) for name, s in strengths.items()} == {
        "C": 70.85,
        "D": 13.15,
        "A": 10.66,
        "B": 4.89,
        "E": 0.44,
    }


votes = st.integers(2, 5).flatmap(lambda n: arrays(np.int64, (n, n), elements=st.integers(1, 30)))


@given(votes)
def test_at_the_likeliest_strengths_expected_wins_are_the_wins(wins: ndarray) -> None:
    # The derivative of the log-likelihood by log p_i: wins of i less the sum of n_ij p_i / (p_i + p_j).
    p = bradley_terry(wins)
    assert p.sum() == pytest.approx(100)
    met = wins + wins.T
    np.fill_diagonal(met, 0)
    expected = (met * p[:, None] / (p[:, None] + p[None, :])).sum(axis=1)
    assert expected == pytest.approx(wins.sum(axis=1) - np.diag(wins), rel=1e-6)


@given(votes, st.integers(0, 2**32 - 1))
def test_names_do_not_matter_nor_does_the_diagonal(wins: ndarray, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(wins))
    alone = wins.copy()
    np.fill_diagonal(alone, 0)
    moved = bradley_terry(alone[np.ix_(order, order)], total=1.0)
    assert moved == pytest.approx(bradley_terry(wins, total=1.0)[order], rel=1e-8)


@given(st.lists(st.floats(0.1, 10), min_size=2, max_size=6))
def test_votes_in_expected_numbers_give_back_the_strengths(strengths: list[float]) -> None:
    p = np.array(strengths)
    wins = 1000 * p[:, None] / (p[:, None] + p[None, :])
    assert bradley_terry(wins, total=p.sum()) == pytest.approx(p, rel=1e-6)


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
def test_votes_without_strengths(wins: list[list[float]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        bradley_terry(np.array(wins))


def test_too_few_rounds_are_said() -> None:
    with pytest.raises(InputError, match="preferences did not settle; given: 1 rounds"):
        bradley_terry(PRINTED, rounds=1)
