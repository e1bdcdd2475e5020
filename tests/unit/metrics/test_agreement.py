"""Kappas and alpha against textbook examples, slow twins and the package krippendorff."""

from itertools import permutations
from math import isnan

import numpy as np
import pytest
from hypothesis import given, strategies as st

from counterfoil.errors import InputError
from counterfoil.metrics.agreement import (
    ReliabilityData,
    Scale,
    cohen_kappa_draws,
    fleiss_kappa,
    krippendorff_alpha,
    pair_kappas,
    weighted_agreement,
)
from refusals import refuses


def cohen_kappa(first, second):
    items, people = np.tile(np.arange(len(first)), 2), np.repeat(["a", "b"], len(first))
    return float(pair_kappas(ReliabilityData.of(items, people, np.concatenate([first, second])))[0][0, 1])


def twin(first, second):
    n = len(first)
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    expected = sum(first.count(c) / n * second.count(c) / n for c in set(first) | set(second))
    return (observed - expected) / (1 - expected) if expected < 1 else float("nan")


RATINGS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=30)


@given(RATINGS)
def test_equals_a_slow_twin(rows):
    first, second = [a for a, _ in rows], [b for _, b in rows]
    kappa = cohen_kappa(np.array(first), np.array(second))
    assert kappa == pytest.approx(twin(first, second), abs=1e-12, nan_ok=True)


# Krippendorff 2011, section E: four observers, twelve units, some answers missing.
PUBLISHED = (
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)


def drawn(rng, *, items=12, people=4, missing=0.3):
    table = rng.integers(1, 6, (people, items)).astype(float)
    table[rng.random(table.shape) < missing] = np.nan
    return table


def sparse(table):
    person, item = np.nonzero(~np.isnan(table))
    return ReliabilityData.of(item, person, table[person, item])


def slow_alpha(table, scale):
    """From the definition, one pair of answers at a time."""
    units = [[v for v in unit if v == v] for unit in table.T]
    units = [unit for unit in units if len(unit) >= 2]
    every = [v for unit in units for v in unit]

    def distance(a, b):
        if scale == Scale.NOMINAL:
            return float(a != b)
        if scale == Scale.INTERVAL:
            return (a - b) ** 2
        low, high = min(a, b), max(a, b)
        between = sum(low <= v <= high for v in every)
        return (between - (every.count(a) + every.count(b)) / 2) ** 2 if a != b else 0.0

    observed = sum(distance(a, b) / (len(unit) - 1) for unit in units for a, b in permutations(unit, 2))
    return 1 - observed / (sum(distance(a, b) for a, b in permutations(every, 2)) / (len(every) - 1))


def test_alpha_of_the_published_example_and_of_words_that_are_on_no_interval_scale():
    rows = [
        (unit, observer, int(value))
        for observer, line in enumerate(PUBLISHED)
        for unit, value in enumerate(line.split())
        if value != "."
    ]
    data = ReliabilityData.of(*(np.array(column) for column in zip(*rows, strict=True)))
    result = [krippendorff_alpha(data, scale) for scale in Scale]
    assert result == pytest.approx([0.743, 0.815, 0.849], abs=5e-4)
    data = ReliabilityData.of([1, 1], ["a", "b"], np.array(["good", "bad"]))
    assert krippendorff_alpha(data) == 0
    refuses("needs numbers", krippendorff_alpha, data, Scale.INTERVAL, error=InputError)


@pytest.mark.parametrize("scale", Scale)
def test_alpha_equals_a_slow_twin(scale):
    rng = np.random.default_rng(0)
    for _ in range(20):
        table = drawn(rng)
        assert krippendorff_alpha(sparse(table), scale) == pytest.approx(slow_alpha(table, scale), abs=1e-12)


@pytest.mark.parametrize("scale", Scale)
def test_whole_weights_of_items_are_copies_of_items(scale):
    # With copies, alpha's chance may also pair an answer with its copy; for many items that is nothing.
    rng = np.random.default_rng(2)
    table = drawn(rng, items=3000, missing=0.2)
    table[:, (~np.isnan(table)).sum(axis=0) < 2] = 3.0
    copies = rng.integers(0, 3, 3000)
    here = weighted_agreement(sparse(table), scale, items=copies[:, None].astype(float))
    again = weighted_agreement(sparse(np.repeat(table, copies, axis=1)), scale)
    assert here.raw == pytest.approx(again.raw, abs=1e-12)
    assert here.kappa == pytest.approx(again.kappa, abs=1e-12)
    assert here.alpha == pytest.approx(again.alpha, abs=5e-4)


def test_equal_weights_change_nothing_and_a_weight_near_zero_leaves_a_person_out():
    table = drawn(np.random.default_rng(3), items=60, missing=0.0)
    data = sparse(table)
    weights = np.full((len(data.item), 2), 2.5)
    weights[data.person == 3, 1] = 1e-9
    for scale in Scale:
        both = weighted_agreement(data, scale, answers=weights)
        assert both.alpha[0] == pytest.approx(krippendorff_alpha(data, scale), abs=1e-12)
        # Alpha of the other three, but for its small-sample correction.
        assert both.alpha[1] == pytest.approx(krippendorff_alpha(sparse(table[:3]), scale), abs=1e-6)
        assert both.raw[1] == pytest.approx(weighted_agreement(sparse(table[:3]), scale).raw[0], abs=1e-6)


def test_raw_agreement_and_fleiss_are_those_of_votes():
    table = drawn(np.random.default_rng(4), items=50)
    data = sparse(table)
    result = weighted_agreement(data, Scale.INTERVAL)
    assert result.kappa[0] == pytest.approx(fleiss_kappa(data.votes), abs=1e-12)
    pairs = [
        np.mean([a == b for a, b in permutations(unit[~np.isnan(unit)], 2)])
        for unit in table.T
        if (~np.isnan(unit)).sum() >= 2
    ]
    assert result.raw[0] == pytest.approx(np.mean(pairs), abs=1e-12)


def test_far_values_keep_their_digits_and_units_do_not_matter():
    table = drawn(np.random.default_rng(5), items=50)
    alpha = krippendorff_alpha(sparse(table), Scale.INTERVAL)
    for other in (table * 1e-9, table + 1e6):
        assert krippendorff_alpha(sparse(other), Scale.INTERVAL) == pytest.approx(alpha, abs=1e-9)
    # A value without a pair has no say, however far off it is.
    stray = np.full((4, 1), np.nan)
    stray[0] = 1e12
    assert krippendorff_alpha(sparse(np.hstack([table, stray])), Scale.INTERVAL) == pytest.approx(alpha)


@pytest.mark.parametrize("values", [[2, 2, 2, 2], [1, 2]])
def test_alpha_is_undefined_where_all_is_equal_or_nothing_is_paired(values):
    items = [0, 0, 1, 1][: len(values)] if len(values) == 4 else [0, 1]
    data = ReliabilityData.of(items, list("abab")[: len(values)], np.array(values))
    assert all(isnan(krippendorff_alpha(data, scale)) for scale in Scale)


def test_pair_kappas_are_those_of_pairs_and_reweighted_ones_those_of_copies():
    table = drawn(np.random.default_rng(6), items=40, missing=0.4)
    table[3, ~np.isnan(table[2])] = np.nan
    kappas, shared = pair_kappas(sparse(table))
    for first, second in permutations(range(4), 2):
        both = ~np.isnan(table[[first, second]]).any(axis=0)
        assert shared[first, second] == both.sum()
        if both.any():
            assert kappas[first, second] == pytest.approx(cohen_kappa(*table[[first, second]][:, both]))
        else:
            assert isnan(kappas[first, second])
    assert np.isnan(np.diag(kappas)).all()
    assert shared[2, 3] == 0
    rng = np.random.default_rng(7)
    first, second, copies = rng.integers(0, 3, 40), rng.integers(0, 2, 40), rng.integers(0, 4, 40)
    kappa, _ = cohen_kappa_draws(first, second, copies[:, None].astype(float))
    assert kappa[0] == pytest.approx(cohen_kappa(np.repeat(first, copies), np.repeat(second, copies)))


@pytest.mark.parametrize(
    ("items", "people", "values", "message"),
    [
        ([], [], [], "a row per answer"),
        ([1, 1], ["a", "b"], [1], "a row per answer"),
        ([1, 1], ["a", "b"], [1.0, np.nan], "row 1: an answer is not a number"),
        ([1, 2, 1], ["a", "a", "a"], [1, 1, 2], "answered twice about one item; given: a, 1"),
    ],
)
def test_refuses_answers_that_are_none(items, people, values, message):
    refuses(message, ReliabilityData.of, items, people, np.array(values), error=InputError)


def exchanged(seed, *, none):
    """Items, people, answers 0 to 2, or 3, the same thing throughout; and how many are exchangeable."""
    rng = np.random.default_rng(seed)
    item = np.repeat(np.arange(25), 3)
    person = np.argsort(rng.random((25, 6)), axis=1)[:, :3].ravel()
    value = np.where(rng.random(75) < 0.6, 0, rng.integers(0, 3, 75))
    value = np.where(none & (rng.random(75) < 0.3), 3, value)
    return item, person, value, np.where(value < 3, 3, 0)


@pytest.mark.parametrize("none", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_alpha_of_exchangeable_options_is_the_packages_of_all_orders_at_once(seed, none):
    package = pytest.importorskip("krippendorff")
    item, person, value, alike = exchanged(seed, none=none)
    result = krippendorff_alpha(ReliabilityData.of(item, person, value, alike))
    # Each item once in every order of its options: every place is then right equally often.
    orders = [np.array([*order, 3]) for order in permutations(range(3))]
    units = np.full((6, 25 * len(orders)), np.nan)
    for i, order in enumerate(orders):
        units[person, 25 * i + item] = order[value]
    counts = np.bincount(units[~np.isnan(units)].astype(int), minlength=4).astype(float)
    theirs = package.alpha(reliability_data=units, level_of_measurement="nominal", value_domain=[0, 1, 2, 3])
    # What is seen of disagreement is the same; what chance gives are pairs of two different answers, of any
    # two of the 75, those that are exchangeable equal once in three.
    n = counts.sum()
    seen = (1 - theirs) * (n**2 - (counts**2).sum()) / (n * (n - 1))
    free, fixed = (value < 3).sum(), (value == 3).sum()
    equal = free * (free - 1) / 3 + fixed * (fixed - 1)
    assert result == pytest.approx(1 - seen / (1 - equal / (75 * 74)), abs=1e-12)
    if not none:
        assert result == pytest.approx(1 - seen / (1 - 1 / 3), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_kappas_of_exchangeable_options_have_chance_one_in_as_many(seed):
    rng = np.random.default_rng(seed)
    alike = rng.integers(2, 5, 30)
    first, second = (np.where(rng.random(30) < 0.7, 0, rng.integers(0, alike)) for _ in range(2))
    rows = np.r_[np.arange(30), np.arange(30)], np.repeat(["a", "b"], 30), np.r_[first, second]
    data = ReliabilityData.of(*rows, np.r_[alike, alike])
    agreed, chance = float((first == second).mean()), float((1 / alike).mean())
    expected = (agreed - chance) / (1 - chance)
    order = np.lexsort((data.person, data.item))
    codes = data.category[order].reshape(-1, 2).T
    for result in (
        pair_kappas(data)[0][0, 1],
        weighted_agreement(data, Scale.NOMINAL).kappa[0],
        krippendorff_alpha(data),
        cohen_kappa_draws(*codes, np.ones((30, 1)), data.alike[order].reshape(-1, 2).T)[0][0],
    ):
        assert result == pytest.approx(expected, abs=1e-12)
