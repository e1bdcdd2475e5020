"""Two hidden classes behind people's answers, against a slow loop and against known truth."""

from math import exp, log

import numpy as np
import pytest

from counterfoil.errors import InputError
from counterfoil.stats.dawid_skene import dawid_skene, drawn_so, patterns
from counterfoil.stats.label_models import Labels
from refusals import refuses


def answered(n, hits, rejections, share, seed, *, absent=0.0):
    """Truth, yes and no of people with known rates, some of whom were not asked."""
    rng = np.random.default_rng(seed)
    so = rng.random(n) < share
    chance = np.where(so, np.array(hits)[:, None], 1 - np.array(rejections)[:, None])
    yes, there = rng.random(chance.shape) < chance, rng.random(chance.shape) >= absent
    return so, yes & there, ~yes & there


def slow(yes, no, rounds):
    people, items = yes.shape
    asked = yes.sum(axis=0) + no.sum(axis=0)
    so = [yes[:, i].sum() / asked[i] if asked[i] else 0.5 for i in range(items)]
    hits, rejections = [], []
    for _ in range(rounds):
        hits, rejections = [], []
        for a in range(people):
            asked = [i for i in range(items) if yes[a, i] or no[a, i]]
            hits.append((sum(so[i] for i in asked if yes[a, i]) + 0.5) / (sum(so[i] for i in asked) + 1))
            wrong = sum(1 - so[i] for i in asked)
            rejections.append((sum(1 - so[i] for i in asked if no[a, i]) + 0.5) / (wrong + 1))
        share = (sum(so) + 0.5) / (items + 1)
        for i in range(items):
            odds = log(share / (1 - share))
            for a in range(people):
                odds += log(hits[a] / (1 - rejections[a])) if yes[a, i] else 0.0
                odds += log((1 - hits[a]) / rejections[a]) if no[a, i] else 0.0
            so[i] = 1 / (1 + exp(-odds))
    return hits, rejections, so


def test_the_model_is_that_of_a_loop_over_items():
    _, yes, no = answered(80, (0.9, 0.8, 0.7, 0.85), (0.95, 0.7, 0.8, 0.9), 0.4, 1, absent=0.2)
    person, item = np.nonzero(yes | no)
    given = Labels.of(item, person, yes[person, item].astype(int), n_classes=2, n_items=80)
    here = dawid_skene(given, rounds=20, tolerance=0.0)
    hits, rejections, so = slow(yes, no, 20)
    assert here.confusion[:, 1, 1] == pytest.approx(hits)
    assert here.confusion[:, 0, 0] == pytest.approx(rejections)
    assert here.posterior[:, 1] == pytest.approx(so)


@pytest.mark.parametrize("repeats", [15, pytest.param(60, marks=pytest.mark.slow)])
def test_draws_hold_the_number_that_is_so_as_often_as_they_claim(repeats):
    inside = 0
    for seed in range(repeats):
        so, yes, no = answered(300, (0.9, 0.85, 0.8), (0.85, 0.9, 0.9), 0.3, seed)
        drawn = drawn_so(patterns(yes, no), np.random.default_rng(seed), draws=400).sum(axis=1)
        low, high = np.quantile(drawn, (0.025, 0.975))
        inside += low <= so.sum() <= high
    # 60 repetitions know 95 % to 2.8 points, 15 to 5.6.
    assert inside / repeats > 0.95 - 2.5 * (0.05 * 0.95 / repeats) ** 0.5


def test_draws_of_one_seed_are_the_same_and_two_people_do_not_pin_rates_down():
    _, yes, no = answered(50, (0.9, 0.9, 0.9), (0.9, 0.9, 0.9), 0.5, 3)
    found = patterns(yes, no)
    one, again, other = (drawn_so(found, np.random.default_rng(seed), draws=120) for seed in (1, 1, 2))
    assert (one == again).all()
    assert (one != other).any()
    assert ((one >= 0) & (one <= found.counts)).all()
    _, yes, no = answered(50, (0.9, 0.9), (0.9, 0.9), 0.5, 3)
    refuses("3 or more", drawn_so, patterns(yes, no), np.random.default_rng(0), error=InputError)
