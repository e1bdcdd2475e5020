"""How lists differ: the fast count against Kendall's tau-b of the union written out."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kendalltau

from contracts import forms
from counterfoil.benchmarks.answers import DirectionRanks, Rankings
from counterfoil.errors import InputError
from counterfoil.evaluation.list_overlap import common_share, diversity, list_tau, place_of_first
from evaluation.made_runs import run

K = 6


def by_hand(first, second):
    """tau-b over the items of either list, lacking ones behind the end."""
    lists = [[item for item in one if item >= 0] for one in (first, second)]
    union = sorted({*lists[0], *lists[1]})
    if not lists[0] or not lists[1] or len(union) < 2:
        return float("nan")
    places = [[one.index(item) if item in one else len(one) for item in union] for one in lists]
    return float(kendalltau(*places, variant="b").statistic)


def some_lists(n, items, *, seed, cut):
    """`n` lists of the first six of `items` in random order, some of them shorter."""
    rng = np.random.default_rng(seed)
    lists = np.argsort(rng.random((n, items)), axis=1)[:, :K].astype(np.int32)
    if cut:
        lists[np.arange(K)[None] >= rng.integers(0, K + 1, size=(n, 1))] = -1
    return lists


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("items", [6, 8, 30])
def test_tau_is_that_of_the_union_written_out(items, cut):
    first, second = (some_lists(300, items, seed=seed, cut=cut) for seed in (0, 1))
    expected = [by_hand(a, b) for a, b in zip(first.tolist(), second.tolist(), strict=True)]
    np.testing.assert_allclose(list_tau(first, second), expected, atol=1e-12)
    np.testing.assert_allclose(list_tau(second, first), expected, atol=1e-12)
    assert cut == bool(np.isnan(expected).any())
    # Numbers of items mean nothing.
    renamed = np.append(np.random.default_rng(2).permutation(items), -1)
    np.testing.assert_array_equal(list_tau(renamed[first], renamed[second]), list_tau(first, second))


@pytest.mark.parametrize("k", [2, 3, 25])
def test_lists_without_a_common_item_are_below_0_by_a_known_amount(k):
    # k * k opposed pairs; of all k (2k - 1) pairs each list ties k (k - 1) / 2.
    first, second = np.arange(k)[None], np.arange(k, 2 * k)[None]
    assert list_tau(first, second)[0] == pytest.approx(-2 * k / (3 * k - 1))
    assert list_tau(first, first[:, ::-1])[0] == -1


def test_blocks_of_queries_do_not_show(monkeypatch):
    first, second = (some_lists(50, 12, seed=seed, cut=True) for seed in (3, 4))
    whole = list_tau(first, second)
    monkeypatch.setattr("counterfoil.evaluation.list_overlap._AT_ONCE", 7 * K)
    np.testing.assert_array_equal(list_tau(first, second), whole)


def test_common_shares_and_places_of_the_first_by_hand():
    lists = [([1, 2], [2, 1]), ([1, 2], [1, 3]), ([1, 2], [3, 4]), ([1, -1], [1, 2]), ([-1, -1], [-1, -1])]
    first, second = (np.array([pair[i] for pair in lists]) for i in (0, 1))
    np.testing.assert_allclose(common_share(first, second), [1, 1 / 2, 0, 2 / 3, np.nan])
    np.testing.assert_array_equal(place_of_first(first, second), [2, 1, 3, 1, np.nan])


def listed(seed, name, world, width=8):
    """A run whose lists are drawn."""
    rng = np.random.default_rng(seed)
    made = run(world, name, {"mean_recall_at_1": np.ones(len(world))})  # type: ignore[arg-type]

    def placed(queries, items):
        top = np.argsort(rng.random((queries, items)), axis=1)[:, :width].astype(np.int32)
        nothing = np.empty(0, np.int64)
        return DirectionRanks(nothing, nothing, nothing, top, np.zeros(top.shape, np.float32))

    questions = world.gallery  # type: ignore[attr-defined]
    both = placed(len(questions.i2t), questions.n_captions), placed(len(questions.t2i), questions.n_images)
    return replace(made, answers=Rankings(*both))


def test_matrices_hold_the_means_over_queries():
    world = forms.gallery("g", range(20))
    runs = [listed(seed, name, world) for seed, name in enumerate("abc")]
    i2t, t2i = diversity(runs, k=5)
    assert [(d.direction, d.queries, d.k, d.models) for d in (i2t, t2i)] == [
        ("i2t", 20, 5, ("a", "b", "c")),
        ("t2i", 40, 5, ("a", "b", "c")),
    ]
    for found in (i2t, t2i):
        tops = [getattr(r.answers, found.direction).top[:, :5].tolist() for r in runs]
        for a in range(3):
            for b in range(3):
                pairs = list(zip(tops[a], tops[b], strict=True))
                assert found.tau[a, b] == pytest.approx(np.mean([by_hand(x, y) for x, y in pairs]))
                assert found.common[a, b] == pytest.approx(np.mean([len({*x} & {*y}) / 5 for x, y in pairs]))
                places = [y.index(x[0]) + 1 if x[0] in y else 6 for x, y in pairs]
                assert found.place[a, b] == pytest.approx(np.mean(places))
                assert found.beyond[a, b] == pytest.approx(np.mean([p == 6 for p in places]))
    # What a puts first is not found in b's list as often as the other way round.
    assert i2t.place[0, 1] != i2t.place[1, 0]


def test_queries_of_two_galleries_are_reported_once():
    whole, some = forms.gallery("whole", range(20)), forms.gallery("some", range(20), asked=slice(3, 9))
    twin, parts = forms.gallery("twin", range(20)), forms.gallery("parts", range(20), parts=2)
    other = forms.gallery("other", range(20, 40))
    worlds = (some, whole, twin, parts, other)
    runs = [listed(seed, name, world) for world in worlds for seed, name in enumerate("ab")]
    found = [d.benchmark for d in diversity(runs, k=4)]
    assert found == ["whole", "whole", "parts", "parts", "other", "other"]
    # A model more on the smaller one, and both are told; one model alone has no pair.
    more = [*runs[:6], listed(3, "c", some), listed(4, "c", parts)]
    sizes = [(d.benchmark, len(d.models)) for d in diversity(more, k=4)]
    assert sizes == 2 * [("some", 3)] + 2 * [("whole", 2)]


def test_a_direction_without_queries_and_runs_without_lists_are_passed_over():
    world = forms.gallery("g", range(20))
    one_way = world.select(np.arange(20))
    runs = [listed(seed, name, one_way) for seed, name in enumerate("ab")]
    assert [d.direction for d in diversity(runs, k=5)] == ["i2t"]
    assert diversity([listed(seed, name, world, 0) for seed, name in enumerate("ab")], k=5) == ()


def test_too_short_lists_are_refused_with_what_there_is():
    runs = [listed(0, "a", forms.gallery("g", range(20))), listed(1, "b", forms.gallery("g", range(20)), 4)]
    with pytest.raises(InputError, match=r"run of 'b' on g keeps too few .*; given: k 5; allowed: 2 to 4"):
        diversity(runs, k=5)
    with pytest.raises(InputError, match="lists are too short to have an order; given: k 1; allowed: 2"):
        diversity(runs, k=1)
    small = [listed(seed, name, forms.gallery("g", range(3))) for seed, name in enumerate("ab")]
    # A gallery of three images has no more to list.
    assert diversity(small, k=5)[1].place.max() <= 3
    assert diversity([], k=5) == ()
