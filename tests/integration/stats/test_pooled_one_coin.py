"""The pooled one-coin model: chances that hold with few answers, and are those of a sum over all classes."""

from itertools import product

import numpy as np
import pytest
from scipy.special import betaln, gammaln

from counterfoil.stats.dawid_skene import one_coin
from counterfoil.stats.label_models import Labels
from counterfoil.stats.pooled_one_coin import mean_accuracy, pooled_one_coin


def simulated(seed, per_item, *, items=100, people=60, accuracy=0.8, classes=2, shares=None):
    """The true classes, and answers of as many different people to each item."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(classes, size=items, p=shares)
    item = np.repeat(np.arange(items), per_item)
    person = np.concatenate([rng.choice(people, per_item, replace=False) for _ in range(items)])
    right = rng.random(len(item)) < accuracy
    label = np.where(right, truth[item], (truth[item] + rng.integers(1, classes, len(item))) % classes)
    return truth, Labels.of(item, person, label, n_classes=classes, n_people=people)


def right_and_promised(model, per_item, seeds=15, **world):
    """The mean share of right labels, a tie being a coin, and the mean chance promised for them."""
    right, promised = [], []
    for seed in range(seeds):
        truth, given = simulated(seed, per_item, **world)
        posterior = model(given).posterior
        top = posterior >= posterior.max(axis=1, keepdims=True) - 1e-9
        right.append(np.mean(top[np.arange(len(truth)), truth] / top.sum(axis=1)))
        promised.append(posterior.max(axis=1).mean())
    return float(np.mean(right)), float(np.mean(promised))


def fewer_draws(given):
    """The model in a third of the time: over many items and seeds the noise of its draws cancels out."""
    return pooled_one_coin(given, draws=100, burn=50)


WORLDS = [
    {},
    {"people": 20},
    {"items": 40, "people": 12},
    {"accuracy": 0.9, "shares": [0.85, 0.15]},
    {"accuracy": 0.75, "classes": 4, "people": 30},
]


@pytest.mark.slow
@pytest.mark.parametrize("per_item", [2, 3, 5])
@pytest.mark.parametrize("world", WORLDS)
def test_what_is_promised_is_what_is_right(per_item, world):
    right, promised = right_and_promised(fewer_draws, per_item, **world)
    assert promised == pytest.approx(right, abs=0.035)


def test_the_likeliest_accuracies_promise_what_is_not_so_and_pooled_ones_what_is():
    # Why labels are not made by them: with people of three answers each, one class for all is likeliest.
    right, promised = right_and_promised(one_coin, 2)
    assert right < 0.65
    assert promised > 0.9
    pooled, chances = right_and_promised(fewer_draws, 2, seeds=5)
    assert pooled > right + 0.15
    assert chances == pytest.approx(pooled, abs=0.05)


def all_possibilities(given, means=20):
    """The posterior of two classes, summed over every way to give the items classes."""
    low, weights = 0.5, [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]
    grid = [(low + 0.5 * (at + 0.5) / means, weight) for at in range(means) for weight in weights]
    total, found = 0.0, np.zeros((given.n_items, 2))
    for classes in product((0, 1), repeat=given.n_items):
        n = np.bincount(classes, minlength=2)
        chance_of_classes = np.exp(gammaln(n + 1).sum() - gammaln(n.sum() + 2))
        chance = 0.0
        for mean, weight in grid:
            log = np.log(mean - low)
            for person in range(given.n_people):
                own = given.people == person
                hits = int((np.array(classes)[given.items[own]] == given.labels[own]).sum())
                a, b = mean * weight, (1 - mean) * weight
                log += betaln(a + hits, b + own.sum() - hits) - betaln(a, b)
            chance += np.exp(log)
        for item, label in enumerate(classes):
            found[item, label] += chance * chance_of_classes
        total += chance * chance_of_classes
    return found / total


def test_draws_come_to_what_summing_over_all_possibilities_gives():
    _, given = simulated(3, 3, items=5, people=4)
    found = pooled_one_coin(given, draws=2_000)
    assert found.posterior == pytest.approx(all_possibilities(given), abs=0.03)


@pytest.mark.parametrize("first", [0, 1])
def test_two_who_always_differ_from_a_third_are_right_as_likely_as_it_is_whatever_the_seed(first):
    """Explained by either side: no item alone leads from one explanation to the other."""
    items, people = np.array([0, 1, 2, 3, 0, 1, 2, 0, 1, 2]), np.repeat([0, 1, 2], [4, 3, 3])
    given = Labels.of(items, people, np.where(people < 2, first, 1 - first), n_classes=2)
    exact = all_possibilities(given)
    assert 0.8 < exact[0, first] < 0.95
    for seed in range(2):
        assert pooled_one_coin(given, seed=seed).posterior == pytest.approx(exact, abs=0.06)


def test_equal_seeds_give_equal_chances():
    _, given = simulated(2, 3, items=30, people=8)
    found, again = pooled_one_coin(given, seed=4), pooled_one_coin(given, seed=4)
    assert (found.posterior == again.posterior).all()
    assert found.posterior.sum(axis=1) == pytest.approx(1)


def test_a_vote_each_is_a_tie_where_nothing_else_is_known():
    given = Labels.of(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([0, 1, 1, 0]), n_classes=2)
    assert pooled_one_coin(given).labels.tolist() == [-1, -1]
    # A third person settles the first item.
    more = Labels.of(
        np.array([0, 0, 1, 1, 0]), np.array([0, 1, 0, 1, 2]), np.array([0, 1, 1, 0, 0]), n_classes=2
    )
    assert pooled_one_coin(more).labels[0] == 0


def test_who_errs_is_found():
    rng = np.random.default_rng(0)
    truth, accuracy = rng.integers(0, 2, 200), np.array([0.95, 0.9, 0.85, 0.55])
    item, person = np.repeat(np.arange(200), 4), np.tile(np.arange(4), 200)
    label = np.where(rng.random(800) < accuracy[person], truth[item], 1 - truth[item])
    given = Labels.of(item, person, label, n_classes=2)
    found = pooled_one_coin(given)
    assert found.accuracy == pytest.approx(accuracy, abs=0.06)
    assert mean_accuracy(given) == pytest.approx(accuracy.mean(), abs=0.03)
