"""Preferences with intervals: the printed votes, simulated judges, and resamples without strengths."""

import numpy as np
import pytest

from counterfoil.benchmarks.judgements import Votes
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.preferences import preferences
from printed_votes import PRINTED
from refusals import refuses


def test_the_printed_votes():
    found = preferences(Votes(tuple("ABCDE"), PRINTED), draws=2000)
    assert [round(float(found.strength[i]), 2) for i in found.order] == [70.85, 13.15, 10.66, 4.89, 0.44]
    assert found.written_order == "C > D > A > B > E"
    assert found.ranks == ((3, 3), (4, 4), (1, 1), (2, 2), (5, 5))
    # 3,200 less the 24 of E against itself.
    assert found.votes == 3176
    assert ((found.low < found.strength) & (found.strength < found.high)).all()
    # 70.85 against 13.15: 0.8434; and the other way round the rest.
    assert found.chance[2, 3] == pytest.approx(0.8434, abs=1e-4)
    assert found.chance + found.chance.T == pytest.approx(np.ones((5, 5)))
    assert found.chance_low[2, 3] == pytest.approx(1 - found.chance_high[3, 2], abs=1e-9)
    assert found.separated == 0
    again = preferences(Votes(tuple("ABCDE"), PRINTED), draws=2000)
    assert (again.low == found.low).all()
    assert found.to_json()["strengths"]["C"]["rank_worst"] == 1


def test_two_things_have_the_interval_of_a_proportion():
    # 60 of 100 votes: a share of 0.6 with a standard error of (0.6 * 0.4 / 100) ** 0.5 = 0.049.
    found = preferences(Votes(("a", "b"), np.array([[0, 60], [40, 0]])), draws=20_000, seed=1)
    assert found.strength == pytest.approx([60, 40])
    assert found.low[0] == pytest.approx(60 - 1.96 * 4.9, abs=1.1)
    assert found.high[0] == pytest.approx(60 + 1.96 * 4.9, abs=1.1)
    clear = preferences(Votes(("a", "b"), np.array([[0, 65], [35, 0]])), draws=2000)
    assert clear.written_order == "a > b"
    close = preferences(Votes(("a", "b"), np.array([[0, 52], [48, 0]])), draws=2000)
    assert close.written_order == "a ≈ b"
    assert close.ranks == ((1, 2), (1, 2))


def test_judges_that_vote_alike_leave_less_to_go_by():
    # Ten judges with ten votes each, seven always for a and three always for b: as good as ten votes.
    judges = np.zeros((10, 2, 2), dtype=np.int64)
    judges[:7, 0, 1] = judges[7:, 1, 0] = 10
    by_judge = preferences(Votes(("a", "b"), judges.sum(axis=0), judges), draws=4000)
    by_vote = preferences(Votes(("a", "b"), judges.sum(axis=0)), draws=4000)
    assert by_judge.strength == pytest.approx(by_vote.strength)
    assert by_judge.written_order == "a ≈ b"
    assert by_vote.written_order == "a > b"
    # The spread of a share of 0.7 of 10 against that of 100: wider by the root of ten.
    ratio = (by_judge.high - by_judge.low) / (by_vote.high - by_vote.low)
    assert ratio == pytest.approx([10**0.5] * 2, rel=0.15)


def test_draws_in_which_somebody_wins_all_are_counted():
    # 1 of 10 lost: with chance 0.9 ** 10 = 0.349 no draw of ten votes has it.
    found = preferences(Votes(("a", "b"), np.array([[0, 9], [1, 0]])), draws=10_000)
    assert found.separated == pytest.approx(3490, abs=4 * (10_000 * 0.349 * 0.651) ** 0.5)
    # With half a vote both ways ten of ten become 10.5 to 0.5.
    assert found.high[0] == pytest.approx(100 * 10.5 / 11)


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        (Votes(("a", "b"), np.array([[0, 3], [0, 0]])), "finite strengths; given: b: no vote won against"),
        (Votes(("a",), np.array([[3]])), "two things to compare"),
        (
            Votes(("a", "b"), np.array([[0, 3], [1, 0]]), np.array([[[0, 3], [1, 0]]])),
            "one judge alone has no spread",
        ),
    ],
)
def test_votes_that_say_nothing(votes, message):
    refuses(message, preferences, votes, error=InputError)


@pytest.mark.slow
def test_intervals_cover_the_truth():
    """95 % intervals from 200 simulated tables hold the true strengths about that often."""
    truth = np.array([50.0, 30.0, 20.0])
    rng = np.random.default_rng(5)
    held = []
    for _ in range(200):
        wins = np.zeros((3, 3), dtype=np.int64)
        for i, j in ((0, 1), (0, 2), (1, 2)):
            wins[i, j] = rng.binomial(60, truth[i] / (truth[i] + truth[j]))
            wins[j, i] = 60 - wins[i, j]
        found = preferences(Votes(("a", "b", "c"), wins), draws=400)
        held.append((found.low <= truth) & (truth <= found.high))
    # 600 values, nominally 95 %; percentiles of few votes fall a little short.
    assert 0.91 < np.mean(held) < 0.98


def test_what_is_no_square_of_counts_by_name_is_refused():
    square = np.array([[0, 1], [2, 0]])
    for odd in (-square, square * 2**60, square[:1], np.zeros((3, 3), dtype=np.int64)):
        refuses("no counts of votes", Votes, ("a", "b"), odd, error=DataError)
    refuses("judges: no counts of votes", Votes, ("a", "b"), square, square[None, :1], error=DataError)
    refuses("no different names", Votes, ("a", "a"), square, error=DataError)
    refuses("no different names", Votes, (), square[:0, :0], error=DataError)
