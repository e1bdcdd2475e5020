"""Agreement and preferences of people with intervals: coverage by simulation, printed votes, ends."""

from math import isnan

import numpy as np
import pytest

from counterfoil.benchmarks.judgements import Votes
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.agreement import people_agreement
from counterfoil.evaluation.preferences import preferences
from counterfoil.metrics.agreement import ReliabilityData, Scale, krippendorff_alpha
from printed_votes import PRINTED
from refusals import refuses

CATEGORIES = 3


def answers(rng, items, people, labels, *, differ, hard):
    """Random people judge each item; some people, and some items, may be better than others."""
    skill = rng.beta(8, 2, people) if differ else np.full(people, 0.8)
    who = np.argsort(rng.random((items, people)), axis=1)[:, :labels].ravel()
    item = np.repeat(np.arange(items), labels)
    truth = rng.integers(0, CATEGORIES, items)[item]
    right = rng.random(len(item)) < skill[who] * (1 - 0.5 * hard * rng.random(items)[item])
    return item, who, np.where(right, truth, rng.integers(0, CATEGORIES, len(item)))


def covered(items, people, labels, *, differ, hard, repetitions, scale=Scale.NOMINAL):
    rng = np.random.default_rng(0)
    many = {"differ": differ, "hard": hard}
    drawn = (ReliabilityData.of(*answers(rng, 4000, 400, labels, **many)) for _ in range(8))
    truth = np.mean([krippendorff_alpha(of, scale) for of in drawn])
    made = (answers(rng, items, people, labels, **many) for _ in range(repetitions))
    agreements = (people_agreement(*of, scale=scale, draws=200, seed=seed) for seed, of in enumerate(made))
    result = [agreement.alpha for agreement in agreements]
    return float(np.mean([one.low <= truth <= one.high for one in result]))


@pytest.mark.slow
@pytest.mark.parametrize("scale", Scale)
@pytest.mark.parametrize(
    ("items", "people", "labels", "differ", "hard", "least"),
    [
        (200, 20, 3, False, False, 0.93),
        (200, 20, 3, True, True, 0.93),
        (60, 10, 3, True, False, 0.91),
        (1000, 30, 2, True, False, 0.89),
        (200, 5, 5, True, True, 0.85),
    ],
)
def test_intervals_cover(items, people, labels, differ, hard, least, scale):
    assert covered(items, people, labels, differ=differ, hard=hard, repetitions=400, scale=scale) >= least


def test_people_who_differ_widen_intervals_and_few_people_are_taken_as_they_are():
    item, who, said = answers(np.random.default_rng(1), 300, 10, 3, differ=True, hard=False)
    # A person who always answers the same disagrees with all others wherever they meet.
    said = np.where(who == 0, 0, said)
    both = people_agreement(item, who, said)
    # The same answers by three who share all the work: nothing is known of other people.
    few = people_agreement(item, np.tile(np.arange(3), 300), said)
    assert both.over_people
    assert not few.over_people
    assert both.alpha.value == pytest.approx(few.alpha.value)
    assert both.alpha.high - both.alpha.low > 1.2 * (few.alpha.high - few.alpha.low)


def test_agreement_throughout_has_an_interval_and_one_answer_throughout_has_no_alpha():
    item, who = np.repeat(np.arange(50), 3), np.tile(np.arange(6), 25)
    result = people_agreement(item, who, item % 2)
    assert result.raw.value == result.alpha.value == result.alpha.high == 1
    assert 0.2 < result.alpha.low < 0.9
    same = people_agreement(item, who, np.zeros(150))
    assert same.raw.value == 1
    assert isnan(same.alpha.value)
    assert isnan(same.alpha.low)
    assert same.to_json()["alpha"]["value"] is None


def test_items_with_one_answer_count_for_nothing():
    item, who, said = answers(np.random.default_rng(2), 40, 8, 2, differ=True, hard=False)
    alone = people_agreement(item, who, said, draws=50)
    items, others = np.r_[item, np.arange(40, 60)], np.r_[who, np.arange(20)]
    assert alone == people_agreement(items, others, np.r_[said, np.ones(20, dtype=int)], draws=50)
    assert alone.items == 40
    nothing = people_agreement([1, 2], ["a", "b"], np.array([1, 1]))
    assert nothing.items == 0
    assert isnan(nothing.raw.value)


def test_two_people_have_cohens_kappa_over_items():
    rng = np.random.default_rng(3)
    item, who = np.repeat(np.arange(100), 2), np.tile([0, 1], 100)
    truth = rng.integers(0, 2, 100)[item]
    said = np.where(rng.random(200) < 0.85, truth, 1 - truth)
    result = people_agreement(item, who, said)
    assert result.cohen is not None
    assert result.cohen.low < result.cohen.value < result.cohen.high
    assert result.cohen.value == pytest.approx(result.fleiss.value, abs=0.02)
    assert result == people_agreement(item, who, said)
    assert result != people_agreement(item, who, said, seed=1)


def test_intervals_end_where_kappa_and_alpha_do():
    # Two people, nearly all "no": what chance leaves is little, and Wilson's end is far below it.
    first = np.array([0] * 17 + [1, 0, 0])
    second = np.array([0] * 17 + [1, 1, 0])
    for n in (3, 6, 20):
        a, b = first[-n:], second[-n:]
        result = people_agreement(np.tile(np.arange(n), 2), np.repeat([0, 1], n), np.r_[a, b], draws=200)
        assert result.cohen is not None
        for one in (result.fleiss, result.alpha, result.cohen):
            assert -1 <= one.low <= one.value <= one.high <= 1
    # Of three answers no two agree: lower than -1 / 2 nothing is.
    item, said = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    lowest = people_agreement(item, np.tile(np.arange(3), 4), said, draws=100)
    assert lowest.fleiss.low == lowest.fleiss.value == pytest.approx(-0.5)
    assert lowest.alpha.low >= -0.5


def test_the_printed_votes():
    result = preferences(Votes(tuple("ABCDE"), PRINTED), draws=2000)
    assert [round(float(result.strength[i]), 2) for i in result.order] == [70.85, 13.15, 10.66, 4.89, 0.44]
    assert result.written_order == "C > D > A > B > E"
    assert result.ranks == ((3, 3), (4, 4), (1, 1), (2, 2), (5, 5))
    # 3,200 less the 24 of E against itself.
    assert result.votes == 3176
    assert ((result.low < result.strength) & (result.strength < result.high)).all()
    # 70.85 against 13.15: 0.8434; and the other way round the rest.
    assert result.chance[2, 3] == pytest.approx(0.8434, abs=1e-4)
    assert result.chance + result.chance.T == pytest.approx(np.ones((5, 5)))
    assert result.chance_low[2, 3] == pytest.approx(1 - result.chance_high[3, 2], abs=1e-9)
    assert result.separated == 0
    assert (preferences(Votes(tuple("ABCDE"), PRINTED), draws=2000).low == result.low).all()
    assert result.to_json()["strengths"]["C"]["rank_worst"] == 1


def test_two_things_have_the_interval_of_a_proportion():
    # 60 of 100 votes: a share of 0.6 with a standard error of (0.6 * 0.4 / 100) ** 0.5 = 0.049.
    result = preferences(Votes(("a", "b"), np.array([[0, 60], [40, 0]])), draws=20_000, seed=1)
    assert result.strength == pytest.approx([60, 40])
    assert result.low[0] == pytest.approx(60 - 1.96 * 4.9, abs=1.1)
    assert result.high[0] == pytest.approx(60 + 1.96 * 4.9, abs=1.1)
    assert preferences(Votes(("a", "b"), np.array([[0, 65], [35, 0]])), draws=2000).written_order == "a > b"
    close = preferences(Votes(("a", "b"), np.array([[0, 52], [48, 0]])), draws=2000)
    assert (close.written_order, close.ranks) == ("a ≈ b", ((1, 2), (1, 2)))


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
    result = preferences(Votes(("a", "b"), np.array([[0, 9], [1, 0]])), draws=10_000)
    assert result.separated == pytest.approx(3490, abs=4 * (10_000 * 0.349 * 0.651) ** 0.5)
    # With half a vote both ways ten of ten become 10.5 to 0.5.
    assert result.high[0] == pytest.approx(100 * 10.5 / 11)


WINS = np.array([[0, 3], [1, 0]])


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        (Votes(("a", "b"), np.array([[0, 3], [0, 0]])), "finite strengths; given: b: no vote won against"),
        (Votes(("a",), np.array([[3]])), "two things to compare"),
        (Votes(("a", "b"), WINS, WINS[None]), "one judge alone has no spread"),
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
        result = preferences(Votes(("a", "b", "c"), wins), draws=400)
        held.append((result.low <= truth) & (truth <= result.high))
    # 600 values, nominally 95 %; percentiles of few votes fall a little short.
    assert 0.91 < np.mean(held) < 0.98


def test_what_is_no_square_of_counts_by_name_is_refused():
    square = np.array([[0, 1], [2, 0]])
    for odd in (-square, square * 2**60, square[:1], np.zeros((3, 3), dtype=np.int64)):
        refuses("no counts of votes", Votes, ("a", "b"), odd, error=DataError)
    refuses("judges: no counts of votes", Votes, ("a", "b"), square, square[None, :1], error=DataError)
    refuses("no different names", Votes, ("a", "a"), square, error=DataError)
    refuses("no different names", Votes, (), square[:0, :0], error=DataError)
