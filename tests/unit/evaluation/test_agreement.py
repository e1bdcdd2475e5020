"""Agreement with intervals: coverage by simulation, and what intervals must do at the ends."""

from math import isnan

import numpy as np
import pytest

from counterfoil.evaluation.agreement import people_agreement
from counterfoil.metrics.agreement import ReliabilityData, Scale, krippendorff_alpha

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
    found = [
        people_agreement(
            *answers(rng, items, people, labels, **many), scale=scale, draws=200, seed=seed
        ).alpha
        for seed in range(repetitions)
    ]
    return float(np.mean([one.low <= truth <= one.high for one in found]))


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
    rng = np.random.default_rng(1)
    item, who, said = answers(rng, 300, 10, 3, differ=True, hard=False)
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
    found = people_agreement(item, who, item % 2)
    assert found.raw.value == found.alpha.value == found.alpha.high == 1
    assert 0.2 < found.alpha.low < 0.9
    same = people_agreement(item, who, np.zeros(150))
    assert same.raw.value == 1
    assert isnan(same.alpha.value)
    assert isnan(same.alpha.low)
    assert same.to_json()["alpha"]["value"] is None


def test_items_with_one_answer_count_for_nothing():
    rng = np.random.default_rng(2)
    item, who, said = answers(rng, 40, 8, 2, differ=True, hard=False)
    alone = people_agreement(item, who, said, draws=50)
    items, others = np.r_[item, np.arange(40, 60)], np.r_[who, np.arange(20)]
    more = people_agreement(items, others, np.r_[said, np.ones(20, dtype=int)], draws=50)
    assert alone == more
    assert alone.items == 40
    nothing = people_agreement([1, 2], ["a", "b"], np.array([1, 1]))
    assert nothing.items == 0
    assert isnan(nothing.raw.value)


def test_two_people_have_cohens_kappa_over_items():
    rng = np.random.default_rng(3)
    item, who = np.repeat(np.arange(100), 2), np.tile([0, 1], 100)
    truth = rng.integers(0, 2, 100)[item]
    said = np.where(rng.random(200) < 0.85, truth, 1 - truth)
    found = people_agreement(item, who, said)
    assert found.cohen is not None
    assert found.cohen.low < found.cohen.value < found.cohen.high
    assert found.cohen.value == pytest.approx(found.fleiss.value, abs=0.02)
    assert found == people_agreement(item, who, said)
    assert found != people_agreement(item, who, said, seed=1)


def test_intervals_end_where_kappa_and_alpha_do():
    # Two people, nearly all "no": what chance leaves is little, and Wilson's end is far below it.
    first = np.array([0] * 17 + [1, 0, 0])
    second = np.array([0] * 17 + [1, 1, 0])
    for n in (3, 6, 20):
        a, b = first[-n:], second[-n:]
        found = people_agreement(
            np.r_[np.arange(n), np.arange(n)], np.repeat([0, 1], n), np.r_[a, b], draws=200
        )
        assert found.cohen is not None
        for each in (found.fleiss, found.alpha, found.cohen):
            assert -1 <= each.low <= each.value <= each.high <= 1
    # Of three answers no two agree: lower than -1 / 2 nothing is.
    item, said = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    lowest = people_agreement(item, np.tile(np.arange(3), 4), said, draws=100)
    assert lowest.fleiss.low == lowest.fleiss.value == pytest.approx(-0.5)
    assert lowest.alpha.low >= -0.5
