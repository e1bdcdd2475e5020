"""Label models: exchangeable classes, and two hidden classes against a slow loop and known truth."""

from functools import partial
from math import exp, log

import numpy as np
import pytest

from counterfoil.errors import InputError
from counterfoil.stats.dawid_skene import dawid_skene, drawn_so, one_coin, patterns
from counterfoil.stats.inattention import inattention
from counterfoil.stats.label_models import TIE, Labels, majority_vote, mean_accuracy, pooled_one_coin
from refusals import refuses

MODELS = {
    # A third of its draws: what is held here does not depend on how many they are.
    "pooled": partial(pooled_one_coin, draws=100, burn=50),
    "majority": majority_vote,
    "dawid-skene": dawid_skene,
    "one-coin": one_coin,
}


def right_first(seed, *, accuracy=0.63, items=83, people=20, per_item=2, classes=2):
    """Items, people and labels of people who err evenly; the right class is always the first."""
    rng = np.random.default_rng(seed)
    who = np.argsort(rng.random((items, people)), axis=1)[:, :per_item].ravel()
    right = rng.random(len(who)) < accuracy
    return np.repeat(np.arange(items), per_item), who, np.where(right, 0, rng.integers(1, classes, len(who)))


def share_right(found, truth):
    """The share of items whose label is right, tied ones by the chance of a coin."""
    top = found.posterior >= found.posterior.max(axis=1, keepdims=True) - TIE
    return float((top[np.arange(len(truth)), truth] / top.sum(axis=1)).mean())


def mixed(seed):
    """Items of two to four exchangeable options and "none", some golden, once more with options permuted."""
    rng = np.random.default_rng(seed)
    n, people = 40, 9
    alike = rng.integers(2, 5, n)
    item = np.repeat(np.arange(n), 3)
    who = np.argsort(rng.random((n, people)), axis=1)[:, :3].ravel()
    label = np.where(rng.random(len(item)) < 0.2, 4, rng.integers(0, alike[item]))
    label = np.where(rng.random(len(item)) < 0.6, 0, label)
    known = np.where(rng.random(n) < 0.1, 0, -1)
    places = np.tile(np.arange(5), (n, 1))
    for row, many in zip(places, alike, strict=True):
        row[:many] = rng.permutation(many)
    given = Labels.of(item, who, label, n_classes=5, n_people=people, gold=known, alike=alike)
    turned = Labels.of(
        item,
        who,
        places[item, label],
        n_classes=5,
        n_people=people,
        gold=np.where(known < 0, -1, places[np.arange(n), known]),
        alike=alike,
    )
    return given, turned, places


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", range(2))
def test_any_order_of_options_gives_the_same_to_the_last_digit(name, seed):
    given, turned, places = mixed(seed)
    result, again = MODELS[name](given), MODELS[name](turned)
    assert (np.take_along_axis(again.posterior, places, axis=1) == result.posterior).all()
    assert (again.accuracy == result.accuracy).all()
    assert (again.prior == result.prior).all()
    labels = np.where(result.labels < 0, -1, places[np.arange(len(places)), result.labels])
    assert (again.labels == labels).all()
    # An option that an item does not have is no label of it, and the exchangeable ones are equally frequent.
    assert (result.posterior[~given.possible] == 0).all()
    assert np.ptp(result.prior[:4]) < 1e-15
    np.testing.assert_allclose(result.posterior.sum(axis=1), 1.0)


def test_signs_of_carelessness_do_not_mind_the_order_either():
    item, who, label = right_first(0, people=12, items=60, per_item=4, classes=3)
    turn = np.random.default_rng(1).integers(0, 3, 60)[item]
    signs = [inattention(who, item, one, n_classes=3, alike=3).p[:, 3] for one in (label, (label + turn) % 3)]
    assert (signs[0] == signs[1]).all()


def slow_one_coin(item, who, label, alike, people, rounds=400):
    """EM in plain loops: equally likely classes, half an answer and ten of the pool beside each's."""
    votes = [
        [(int(p), int(y)) for i, p, y in zip(item, who, label, strict=True) if i == n]
        for n in range(len(alike))
    ]
    mean = mean_accuracy(Labels.of(item, who, label, n_classes=max(alike), alike=np.array(alike)))
    chance = [
        [sum(y == k for _, y in item) / len(item) for k in range(m)]
        for item, m in zip(votes, alike, strict=True)
    ]
    for _ in range(rounds):
        right, asked = [0.5 + 10 * mean] * people, [11.0] * people
        for one, row in zip(votes, chance, strict=True):
            for p, y in one:
                right[p] += row[y]
                asked[p] += 1
        accuracy = [a / b for a, b in zip(right, asked, strict=True)]
        chance = []
        for one, m in zip(votes, alike, strict=True):
            logs = [
                sum(log(accuracy[p] if y == k else (1 - accuracy[p]) / (m - 1)) for p, y in one)
                for k in range(m)
            ]
            total = sum(exp(item) for item in logs)
            chance.append([exp(item) / total for item in logs])
    return chance


def test_dawid_skene_of_exchangeable_options_is_one_accuracy_per_person_and_equal_shares():
    rng = np.random.default_rng(5)
    alike = rng.integers(2, 5, 30)
    item, who = np.repeat(np.arange(30), 3), np.argsort(rng.random((30, 7)), axis=1)[:, :3].ravel()
    label = np.where(rng.random(90) < 0.7, 0, rng.integers(0, alike[item]))
    twin = slow_one_coin(item, who, label, alike.tolist(), 7)
    given = Labels.of(item, who, label, n_classes=4, n_people=7, alike=alike)
    for model in (dawid_skene, one_coin):
        for row, slow in zip(model(given, tolerance=1e-12).posterior, twin, strict=True):
            np.testing.assert_allclose(row[: len(slow)], slow, atol=1e-8)


@pytest.mark.parametrize("name", MODELS)
def test_a_right_option_that_stands_first_makes_nobody_better(name):
    gaps = []
    for seed in range(6):
        item, who, label = right_first(seed, accuracy=0.63)
        result = MODELS[name](Labels.of(item, who, label, n_classes=2, n_people=20, alike=2))
        gaps.append(share_right(result, np.zeros(83, dtype=int)) - float((label == 0).mean()))
    # Two answers to an item are right as often as one; the mean of six campaigns is known to 2 points.
    assert abs(np.mean(gaps)) < 0.05


@pytest.mark.parametrize(("accuracy", "per_item"), [(0.7, 3), pytest.param(0.95, 2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["pooled", "dawid-skene"])
def test_chances_hold_whatever_stands_first(name, accuracy, per_item):
    promised, right = [], []
    for seed in range(5):
        item, who, label = right_first(seed, accuracy=accuracy, per_item=per_item, classes=4)
        result = MODELS[name](Labels.of(item, who, label, n_classes=4, n_people=20, alike=4))
        promised.append(float(result.posterior.max(axis=1).mean()))
        right.append(share_right(result, np.zeros(83, dtype=int)))
    assert abs(np.mean(promised) - np.mean(right)) < 0.07


def test_options_that_cannot_be_are_one_line():
    rows = np.array([0, 1]), np.array([0, 0]), np.array([0, 2])
    with pytest.raises(InputError, match="exchangeable classes of an item; given: 0 to 2"):
        Labels.of(*rows, n_classes=3, alike=np.array([0, 2]))
    with pytest.raises(InputError, match="an answer that its item does not have"):
        Labels.of(*rows, n_classes=3, alike=np.array([3, 2]))


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
    result = patterns(yes, no)
    one, again, other = (drawn_so(result, np.random.default_rng(seed), draws=120) for seed in (1, 1, 2))
    assert (one == again).all()
    assert (one != other).any()
    assert ((one >= 0) & (one <= result.counts)).all()
    _, yes, no = answered(50, (0.9, 0.9), (0.9, 0.9), 0.5, 3)
    refuses("3 or more", drawn_so, patterns(yes, no), np.random.default_rng(0), error=InputError)
