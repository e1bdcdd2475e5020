"""Label models against slow twins, against crowd-kit and against known truth."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy.special import betaln, gammaln

from counterfoil.errors import InputError
from counterfoil.stats.dawid_skene import dawid_skene, one_coin
from counterfoil.stats.label_models import Labels, majority_vote, mean_accuracy, pooled_one_coin
from refusals import refuses

# pandas warns of what crowd-kit asks of it.
oracle = pytest.mark.filterwarnings("ignore")
MODELS = {"majority": majority_vote, "dawid-skene": dawid_skene, "one-coin": one_coin}
#: And one that draws, so that its chances are equal up to the noise of draws.
WITH_POOLED = {**MODELS, "pooled": partial(pooled_one_coin, draws=600)}


def drawn(seed, *, items=150, people=12, per_item=5, classes=3, accuracy=(0.5, 0.95)):
    """The truth and answers of people of known accuracies who err evenly."""
    rng = np.random.default_rng(seed)
    skill = np.linspace(*accuracy, people)
    truth = rng.integers(0, classes, items)
    who = np.sort(np.argsort(rng.random((items, people)), axis=1)[:, :per_item], axis=1)
    who[0], who[1], who[2] = np.arange(5), np.arange(5, 10), [0, 1, 2, 10, 11]
    item, who = np.repeat(np.arange(items), per_item), who.ravel()
    off = rng.integers(1, classes, len(item))
    labels = np.where(rng.random(len(item)) < skill[who], truth[item], (truth[item] + off) % classes)
    labels[:classes] = np.arange(classes)
    return truth, Labels.of(item, who, labels, n_classes=classes)


def frame(given):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"task": given.items, "worker": given.people, "label": given.labels})


def crowdkit(name, given, **settings):
    """A fitted model of crowd-kit and its posterior, in our order."""
    model = getattr(pytest.importorskip("crowdkit.aggregation"), name)(**settings)
    return model, model.fit_predict_proba(frame(given)).sort_index().sort_index(axis=1).to_numpy()


@oracle
@pytest.mark.parametrize(("name", "model"), [("DawidSkene", dawid_skene), ("OneCoinDawidSkene", one_coin)])
@pytest.mark.parametrize(("rounds", "classes"), [(1, 4), (6, 2)])
def test_dawid_skene_is_that_of_crowd_kit_after_as_many_rounds(name, model, rounds, classes):
    _, given = drawn(1, classes=classes, items=300, accuracy=(0.6, 0.9))
    theirs, posterior = crowdkit(name, given, n_iter=rounds, tol=-1.0)
    here = model(given, smoothing=0.0, rounds=rounds, tolerance=0.0)
    assert here.posterior == pytest.approx(posterior, abs=1e-6)
    # Theirs updates its matrices once more at the end.
    more = model(given, smoothing=0.0, rounds=rounds + 1, tolerance=0.0)
    assert more.prior == pytest.approx(theirs.priors_.sort_index().to_numpy(), abs=1e-6)
    if name == "DawidSkene":
        errors = theirs.errors_.sort_index().sort_index(axis=1).to_numpy()
        assert more.confusion.transpose(0, 2, 1).reshape(-1, classes) == pytest.approx(errors, abs=1e-6)
    else:
        skills = np.diagonal(more.confusion, axis1=1, axis2=2)[:, 0]
        assert skills == pytest.approx(theirs.skills_.sort_index().to_numpy(), abs=1e-6)


@oracle
def test_known_labels_are_used_as_crowd_kit_uses_them():
    truth, given = drawn(2, items=300, accuracy=(0.6, 0.9))
    golden = np.where(np.arange(300) < 60, truth, -1)
    with_golden = Labels.of(given.items, given.people, given.labels, n_classes=3, gold=golden)
    pandas = pytest.importorskip("pandas")
    theirs = pytest.importorskip("crowdkit.aggregation").DawidSkene(n_iter=8, tol=-1.0)
    posterior = theirs.fit_predict_proba(frame(given), true_labels=pandas.Series(truth[:60]))
    here = dawid_skene(with_golden, smoothing=0.0, rounds=8, tolerance=0.0)
    assert here.posterior == pytest.approx(posterior.sort_index(axis=1).to_numpy(), abs=1e-6)
    assert (here.labels[:60] == truth[:60]).all()


@oracle
def test_bradley_terry_is_that_of_crowd_kit_and_a_tie_is_half_a_vote_each_way():
    from counterfoil.metrics.bradley_terry import bradley_terry

    pandas = pytest.importorskip("pandas")
    aggregation = pytest.importorskip("crowdkit.aggregation")
    rng = np.random.default_rng(5)
    pairs = np.array([pair for pair in product(range(5), repeat=2) if pair[0] != pair[1]] * 12)
    won = pairs[np.arange(len(pairs)), (rng.random(len(pairs)) < 0.3 + 0.1 * (pairs[:, 1] > 2)).astype(int)]
    # Its test of convergence compares an array with itself; a tolerance of 0 makes it go on.
    theirs = aggregation.BradleyTerry(n_iter=2000, tol=0).fit_predict(
        pandas.DataFrame({"left": pairs[:, 0], "right": pairs[:, 1], "label": won, "worker": 0})
    )
    wins = np.zeros((5, 5))
    np.add.at(wins, (won, pairs.sum(axis=1) - won), 1)
    assert bradley_terry(wins, total=1.0) == pytest.approx(theirs.sort_index().to_numpy(), abs=1e-6)
    # 10 ties beside 20 to 10 are 25 to 15.
    halves = np.array([[0.0, 20.0], [10.0, 0.0]]) + 5 * (1 - np.eye(2))
    assert bradley_terry(halves) == pytest.approx([62.5, 37.5])


@pytest.mark.parametrize("name", MODELS)
def test_models_find_the_truth_and_who_errs(name):
    truth, given = drawn(7, items=600, accuracy=(0.35, 0.98))
    result = MODELS[name](given)
    assert result.posterior.sum(axis=1) == pytest.approx(1.0)
    skill = np.linspace(0.35, 0.98, 12)
    assert np.corrcoef(result.accuracy, skill)[0, 1] > 0.95
    right = (result.labels == truth).mean()
    assert right > 0.78
    assert name == "majority" or right > (majority_vote(given).labels == truth).mean() + 0.02
    if name in ("dawid-skene", "one-coin"):
        assert result.accuracy == pytest.approx(skill, abs=0.09)
        # Chances mean what they say: the mean of the likeliest is how often it is right.
        assert result.posterior.max(axis=1).mean() == pytest.approx((result.labels == truth).mean(), abs=0.03)


@pytest.mark.parametrize("name", MODELS)
def test_equal_answers_give_equal_labels_and_the_order_of_rows_says_nothing(name):
    _, given = drawn(9, items=60)
    once, again = MODELS[name](given), MODELS[name](given)
    assert (once.posterior == again.posterior).all()
    order = np.random.default_rng(0).permutation(len(given.items))
    mixed = Labels.of(given.items[order], given.people[order], given.labels[order], n_classes=3)
    assert MODELS[name](mixed).posterior == pytest.approx(once.posterior, abs=1e-4)


@pytest.mark.parametrize("name", WITH_POOLED)
def test_known_labels_stand_and_items_without_answers_have_no_label(name):
    truth, given = drawn(11, items=80)
    known = np.full(82, -1)
    known[:10] = (truth[:10] + 1) % 3
    known[81] = 2
    sizes = {"n_classes": 3, "n_items": 82, "n_people": 14}
    result = WITH_POOLED[name](Labels.of(given.items, given.people, given.labels, gold=known, **sizes))
    assert (result.labels[:10] == known[:10]).all()
    assert result.labels[81] == 2
    assert np.isnan(result.accuracy[12:]).all()
    assert result.posterior[80].max() < 0.6
    assert not np.isnan(result.posterior).any()


@pytest.mark.parametrize("name", WITH_POOLED)
def test_an_item_that_stands_for_three_is_three_items(name):
    _, given = drawn(12, items=40)
    copies = np.r_[np.full(20, 3), np.ones(20, dtype=int)]
    weighted = Labels.of(given.items, given.people, given.labels, n_classes=3, weights=copies.astype(float))
    first = np.cumsum(copies) - copies
    rows = np.repeat(np.arange(len(given.items)), copies[given.items])
    copy = np.concatenate([np.arange(c) for c in copies[given.items]])
    spread = Labels.of(first[given.items[rows]] + copy, given.people[rows], given.labels[rows], n_classes=3)
    one, many = WITH_POOLED[name](weighted), WITH_POOLED[name](spread)
    near = 0.05 if name == "pooled" else 1e-4
    assert one.posterior == pytest.approx(many.posterior[first], abs=near)
    assert one.accuracy == pytest.approx(many.accuracy, abs=near)


def test_ties_have_no_label():
    given = Labels.of(np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([0, 1, 1]), n_classes=3, n_items=3)
    result = majority_vote(given)
    assert (result.labels.tolist(), result.tied.tolist()) == ([-1, 1, -1], [True, False, True])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"labels": np.array([0, 3])}, "label out of range; given: 3; allowed: 0 to 2"),
        ({"items": np.array([0, -1])}, "item out of range"),
        ({"n_people": 1}, "person out of range"),
        ({"n_classes": 1}, "classes to tell apart"),
        ({"labels": np.array([0])}, "one length"),
        ({"gold": np.array([0])}, "of all items"),
        ({"gold": np.array([0, 7])}, "known label out of range; given: 7"),
    ],
)
def test_refuses_answers_out_of_range(settings, message):
    columns = {"items": np.array([0, 1]), "people": np.array([0, 1]), "labels": np.array([0, 2])}
    refuses(message, Labels.of, error=InputError, **{**columns, "n_classes": 3, **settings})


@pytest.mark.parametrize("name", ["dawid-skene", "one-coin", "pooled"])
def test_refuses_no_answers_and_impossible_priors(name):
    none, model = np.empty(0, dtype=np.int64), WITH_POOLED[name]
    refuses("no answers", model, Labels.of(none, none, none, n_classes=2, n_items=3), error=InputError)
    if name == "pooled":
        return
    _, given = drawn(16, items=10)
    refuses("", model, given, smoothing=-1.0, error=InputError)


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
    {}, {"people": 20}, {"items": 40, "people": 12}, {"accuracy": 0.9, "shares": [0.85, 0.15]},
    {"accuracy": 0.75, "classes": 4, "people": 30},
]  # fmt: skip


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
    mean = np.repeat(low + 0.5 * (np.arange(means) + 0.5) / means, len(weights))
    a, b = mean * np.tile(weights, means), (1 - mean) * np.tile(weights, means)
    total, result = 0.0, np.zeros((given.n_items, 2))
    for classes in product((0, 1), repeat=given.n_items):
        n = np.bincount(classes, minlength=2)
        chance_of_classes = np.exp(gammaln(n + 1).sum() - gammaln(n.sum() + 2))
        log = np.log(mean - low)
        for person in range(given.n_people):
            own = given.people == person
            hits = int((np.array(classes)[given.items[own]] == given.labels[own]).sum())
            log += betaln(a + hits, b + own.sum() - hits) - betaln(a, b)
        chance = np.exp(log).sum()
        for item, label in enumerate(classes):
            result[item, label] += chance * chance_of_classes
        total += chance * chance_of_classes
    return result / total


def test_draws_come_to_what_summing_over_all_possibilities_gives():
    _, given = simulated(3, 3, items=5, people=4)
    assert pooled_one_coin(given, draws=2_000).posterior == pytest.approx(all_possibilities(given), abs=0.03)


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
    result, again = (pooled_one_coin(given, seed=4, draws=50, burn=10) for _ in range(2))
    assert (result.posterior == again.posterior).all()
    assert result.posterior.sum(axis=1) == pytest.approx(1)


def test_a_vote_each_is_a_tie_where_nothing_else_is_known():
    given = Labels.of(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([0, 1, 1, 0]), n_classes=2)
    assert pooled_one_coin(given).labels.tolist() == [-1, -1]
    # A third person settles the first item.
    rows = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0], [0, 2, 0]])
    more = Labels.of(*rows.T, n_classes=2)
    assert pooled_one_coin(more).labels[0] == 0


def test_who_errs_is_found():
    rng = np.random.default_rng(0)
    truth, accuracy = rng.integers(0, 2, 200), np.array([0.95, 0.9, 0.85, 0.55])
    item, person = np.repeat(np.arange(200), 4), np.tile(np.arange(4), 200)
    label = np.where(rng.random(800) < accuracy[person], truth[item], 1 - truth[item])
    given = Labels.of(item, person, label, n_classes=2)
    assert pooled_one_coin(given).accuracy == pytest.approx(accuracy, abs=0.06)
    assert mean_accuracy(given) == pytest.approx(accuracy.mean(), abs=0.03)
