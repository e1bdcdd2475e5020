"""Correlations over systems: against scipy, every order, draws and swaps written out, and a simulation."""

import json
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from counterfoil.errors import InputError
from counterfoil.evaluation.systems import MEASURES, ONE_PERSON, SystemScores, system_correlations, together
from counterfoil.metrics.captions import ngrams
from counterfoil.stats.bootstrap import cluster_draws, sign_draws
from counterfoil.stats.tests import holm, williams
from evaluation.made_runs import correlations

#: COCO's challenge of 2015: M1 and M2 of its twelve systems, people first.
HUMANS = {
    "M1": (0.638, 0.273, 0.268, 0.262, 0.250, 0.246, 0.223, 0.216, 0.202, 0.194, 0.168, 0.166),
    "M2": (0.675, 0.317, 0.322, 0.272, 0.301, 0.268, 0.252, 0.255, 0.250, 0.213, 0.197, 0.192),
}


def _named(values):
    return {f"s{i}": float(value) for i, value in enumerate(values)}


def test_values_are_scipys():
    people = {name: _named(values) for name, values in HUMANS.items()}
    for columns in (tuple(HUMANS.values()), ((1, 2, 2, 4, 0), (3, 3, 1, 9, 1))):
        statistics = [of(*columns).statistic for of in (kendalltau, spearmanr, pearsonr)]
        assert correlations(*columns) == pytest.approx(statistics)
    result = system_correlations(people, people, over="systems", draws=300)
    for measure, value in zip(MEASURES, correlations(*HUMANS.values()), strict=True):
        one = result.get("M1", "M2", measure)
        assert one.value == pytest.approx(value)
        assert one.low < one.value < one.high
        assert (one.systems, one.exact) == (12, False)
        assert one.p < 0.01
        assert result.get("M1", "M1", measure).value == pytest.approx(1.0)
    assert result.notes == ()
    assert result.to_json() == system_correlations(people, people, over="systems", draws=300).to_json()


@pytest.mark.parametrize("seed", range(2))
def test_the_test_looks_at_every_order(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 5, 5).astype(float), rng.normal(size=5)
    x[:2] = 0.0, 7.0
    result = system_correlations({"m": _named(x)}, {"h": _named(y)}, over="systems", draws=50)
    of_orders = np.array([correlations(np.array(order), y) for order in permutations(x)])
    for measure, values in zip(MEASURES, of_orders.T, strict=True):
        one = result.get("m", "h", measure)
        assert one.exact
        assert one.p == pytest.approx((np.abs(values) >= abs(values[0]) - 1e-9).mean())
    assert "only 5 systems" in result.notes[0]


def test_drawn_orders_come_near_all_orders():
    rng = np.random.default_rng(0)
    x = rng.normal(size=9)
    y = x + 1.5 * rng.normal(size=9)
    one = system_correlations({"m": _named(x)}, {"h": _named(y)}, over="systems", draws=20_000).get(
        "m", "h", "kendall_tau_b"
    )
    assert one.p == pytest.approx(kendalltau(x, y, method="exact").pvalue, abs=0.015)


def test_few_systems_that_agree_are_no_proof():
    result = system_correlations({"m": _named(range(4))}, {"h": _named(range(4))}, over="systems", draws=100)
    for measure in MEASURES:
        one = result.get("m", "h", measure)
        assert (one.value, one.high) == (pytest.approx(1.0), pytest.approx(1.0))
        assert one.low < 0.3
        assert one.p > 0.05


def test_systems_that_one_lacks_are_left_out_and_named_and_too_few_refused():
    humans = {"h": _named(range(5)), "other": _named(range(4))}
    result = system_correlations({"m": _named(range(5))}, humans, over="systems", draws=20)
    assert [result.get("m", human, "pearson").systems for human in humans] == [5, 4]
    assert result.left_out == {"other": ("s4",)}
    json.dumps(result.to_json(), allow_nan=False)
    with pytest.raises(InputError, match="too few systems"):
        system_correlations({"m": {"a": 1.0, "b": 2.0, "c": 3.0}}, {"h": {"a": 1.0, "b": 2.0, "d": 3.0}})
    with pytest.raises(InputError, match="not a finite number"):
        system_correlations({"m": _named([1, float("nan"), 2])}, {"h": _named(range(3))})


# ------------------------------------------------------------------------------ images drawn anew

NAMES = ("a", "b", "c", "d", "e")
IMAGES = 12


def _world(seed, systems=5, images=IMAGES):
    """Scores of two metrics and of three judges, (systems, images), which go together."""
    rng = np.random.default_rng(seed)
    quality = np.linspace(0, 2, systems)[:, None] + rng.normal(size=images)
    return tuple(quality + rng.normal(size=quality.shape) for _ in range(5))


def _found(world, **how):
    first, second, *judged = _world(world)
    judges = {name: SystemScores.means(NAMES, of) for name, of in zip("xyz", judged, strict=True)}
    metrics = {"one": SystemScores.means(NAMES, first), "two": SystemScores.means(NAMES, second)}
    return system_correlations(metrics, {"M": together(judges)}, judges={"M": judges}, **how)


@pytest.mark.parametrize("seed", range(3))
def test_draws_of_images_written_out(seed):
    first, second, *judged = _world(seed)
    people = np.mean(judged, axis=0)
    result = _found(seed, draws=60, seed=7)
    weights = np.concatenate([*cluster_draws(IMAGES, 60, seed=7)]).astype(int)
    rows = [np.repeat(np.arange(IMAGES), w) for w in weights]
    drawn = [
        np.array([correlations(of[:, row].mean(axis=1), people[:, row].mean(axis=1)) for row in rows])
        for of in (first, second)
    ]
    values = [correlations(of.mean(axis=1), people.mean(axis=1)) for of in (first, second)]
    for metric, samples, own in zip(("one", "two"), drawn, values, strict=True):
        ends = np.quantile(samples, [0.025, 0.975], axis=0)
        for k, measure in enumerate(MEASURES):
            one = result.get(metric, "M", measure)
            assert one.value == pytest.approx(own[k])
            assert one.low == pytest.approx(max(-1, min(ends[0, k], 2 * own[k] - ends[1, k], own[k])))
            assert one.high == pytest.approx(min(1, max(ends[1, k], 2 * own[k] - ends[0, k], own[k])))
    gap = np.array(values[0]) - values[1]
    ends = np.quantile(drawn[0] - drawn[1], [0.025, 0.975], axis=0)
    for k, item in enumerate(result.differences):
        assert (item.a, item.b, item.measure) == ("one", "two", MEASURES[k])
        assert item.value == pytest.approx(gap[k])
        assert item.low == pytest.approx(min(ends[0, k], gap[k]))
        assert item.high == pytest.approx(max(ends[1, k], gap[k]))


@pytest.mark.parametrize("over", ["images", "systems"])
def test_swaps_written_out(over):
    first, second, *judged = _world(1)
    people = np.mean(judged, axis=0).mean(axis=1)
    result = _found(1, draws=100, seed=3, over=over)
    if over == "systems":
        first, second = (of.mean(axis=1, keepdims=True) for of in (first, second))
    one, two = ((of - of.mean()) / of.std() for of in (first, second))
    gap = np.array(correlations(one.mean(axis=1), people)) - correlations(two.mean(axis=1), people)
    reached = np.zeros(3)
    for signs in np.concatenate([*sign_draws(len(NAMES) if over == "systems" else IMAGES, 100, seed=3)]):
        stay = signs[:, None] > 0 if over == "systems" else signs > 0
        mixed, other = np.where(stay, one, two).mean(axis=1), np.where(stay, two, one).mean(axis=1)
        apart = np.array(correlations(mixed, people)) - correlations(other, people)
        reached += np.abs(apart) >= np.abs(gap) - 1e-9
    p = (1 + reached) / 101
    assert [item.p for item in result.differences] == pytest.approx(p)
    assert [item.p_holm for item in result.differences] == pytest.approx(holm(p))
    r = [pearsonr(a, b).statistic for a, b in (
        (first.mean(axis=1), people), (second.mean(axis=1), people), (first.mean(axis=1), second.mean(axis=1))
    )]  # fmt: skip
    assert result.differences[-1].williams == pytest.approx(williams(*r, 5))
    assert np.isnan([item.williams for item in result.differences[:-1]]).all()


def test_one_person_against_the_mean_of_the_others():
    judged = _world(2)[2:]
    result = _found(2, draws=50)
    means = [of.mean(axis=1) for of in judged]
    expected = np.mean([correlations(means[i], (sum(means) - means[i]) / 2) for i in range(3)], axis=0)
    for measure, value in zip(MEASURES, expected, strict=True):
        one = result.get(ONE_PERSON, "M", measure)
        assert one.value == pytest.approx(value)
        assert one.low <= one.value <= one.high
        assert np.isnan(one.p)
    # A single judge cannot be compared with others.
    alone = {"x": SystemScores.means(NAMES, judged[0])}
    with pytest.raises(StopIteration):
        system_correlations({"m": alone["x"]}, {"M": together(alone)}, judges={"M": alone}, draws=20).get(
            ONE_PERSON, "M", "pearson"
        )


def test_people_of_whom_no_images_are_known_are_taken_as_given():
    first, second, *_ = _world(4)
    result = system_correlations(
        {"one": SystemScores.means(NAMES, first),
         "fixed": dict(zip(NAMES, second.mean(axis=1), strict=True))},
        {"M": dict(zip(NAMES, (5.0, 4.0, 3.0, 2.0, 1.0), strict=True))}, draws=40,
    )  # fmt: skip
    assert result.get("one", "M", "pearson").low < result.get("one", "M", "pearson").high
    assert np.isnan(result.get("fixed", "M", "pearson").low)
    assert any("no scores of single images" in note for note in result.notes)
    assert any(note.startswith("fixed: no interval over images") for note in result.notes)
    # What is known of systems alone cannot be swapped image by image.
    assert np.isnan([item.p for item in result.differences]).all()


def test_undefined_values_are_named():
    same, other = np.ones((3, 4)), np.arange(12.0).reshape(3, 4)
    three = ("a", "b", "c")
    result = system_correlations(
        {"flat": SystemScores.means(three, same), "one": SystemScores.means(three, other),
         "two": SystemScores.means(three, other[::-1] ** 2)},
        {"M": dict(zip(three, (1.0, 2.0, 3.0), strict=True))}, draws=20,
    )  # fmt: skip
    flat = result.get("flat", "M", "spearman")
    assert np.isnan([flat.value, flat.low, flat.high, flat.p]).all()
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["correlations"][0]["value"] is None
    assert any(note.startswith("flat: all systems have the same number") for note in result.notes)
    assert {(item.a, item.b) for item in result.differences} == {("one", "two")}
    assert all(np.isnan(item.williams) for item in result.differences)
    assert "Williams' test takes 4 systems or more" in result.notes
    metrics = {"one": SystemScores.means(three, other), "two": SystemScores.means(three, other[:, :2])}
    with pytest.raises(InputError, match="different images"):
        system_correlations(metrics, {"M": dict.fromkeys(three, 1.0)})


def test_bleu_of_drawn_images_is_that_of_their_captions_written_out():
    candidates = ["a dog runs on grass", "two cats asleep", "a man rides one horse", "birds fly"]
    references = [["a dog runs on the grass"], ["two cats sleep", "cats asleep"]]
    references += [["a man on a horse"], ["birds fly by"]]
    sums = ngrams.bleu_counts(ngrams.load(candidates, references))
    scores = SystemScores(("s",), np.zeros(1), sums[None], lambda each: ngrams.bleu_of_sums(each)[..., 1])
    weights = np.array([[1.0, 1, 1, 1], [2, 0, 1, 1], [0, 0, 4, 0]])
    for drawn, row in zip(scores.drawn(weights)[:, 0], weights.astype(int), strict=True):
        chosen = np.repeat(np.arange(4), row)
        whole = ngrams.bleu(ngrams.load([candidates[i] for i in chosen], [references[i] for i in chosen]))
        assert drawn == pytest.approx(whole.corpus[1], abs=1e-12)


def _simulated(repetitions, systems, images, noise):
    """Shares: covered correlations, covered differences of 0, and p of at most 5 %, by measure."""
    rng, names = np.random.default_rng(5), tuple(f"s{i}" for i in range(systems))
    counts = np.zeros((3, len(MEASURES)))
    for seed in range(repetitions):
        people = rng.normal(size=systems)
        metric = 0.8 * people + 0.6 * rng.normal(size=systems)
        shared = rng.normal(size=images)
        judged, one, two = (
            of[:, None] + shared + noise * rng.normal(size=(systems, images))
            for of in (people, metric, metric)
        )
        result = system_correlations(
            {"one": SystemScores.means(names, one), "two": SystemScores.means(names, two)},
            {"M": SystemScores.means(names, judged)}, draws=300, seed=seed,
        )  # fmt: skip
        for k, (measure, truth) in enumerate(zip(MEASURES, correlations(metric, people), strict=True)):
            item = result.get("one", "M", measure)
            counts[0, k] += item.low - 1e-9 <= truth <= item.high + 1e-9
            counts[1, k] += result.differences[k].low <= 1e-9 and result.differences[k].high >= -1e-9
            counts[2, k] += result.differences[k].p <= 0.05
    return tuple(counts / repetitions)


@pytest.mark.slow
@pytest.mark.parametrize(("systems", "images", "noise"), [(8, 60, 1.5), (12, 200, 1.5), (12, 200, 4.0)])
def test_intervals_cover_and_p_values_are_small_as_often_as_they_say(systems, images, noise):
    repetitions = 300
    margin = 4 * (0.95 * 0.05 / repetitions) ** 0.5
    covered, differences, small = _simulated(repetitions, systems, images, noise)
    # Orders of few systems come in steps, so their intervals cover more, and their tests reject less.
    assert (covered > 0.93 - margin).all()
    assert (differences > 0.94 - margin).all()
    assert (small < 0.05 + margin).all()
    # Not by being of no use: Pearson's moves in small steps, and is not far off.
    assert covered[-1] < 1.0
    assert small[-1] > 0.05 - margin
