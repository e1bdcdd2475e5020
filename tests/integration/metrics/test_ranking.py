"""Measures of retrieval against a twin that looks at whole rankings, and against known numbers."""

from fractions import Fraction
from itertools import permutations
from math import comb, log2

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

import eccv_rankings
from counterfoil.errors import InputError
from counterfoil.metrics import ranking
from counterfoil.metrics.ranks import Qrels, join, positive_ranks
from counterfoil.metrics.ties import Ties
from listed_ranks import list_ranks
from refusals import refuses


def recall(k):
    return lambda seen, _: float(any(seen[:k]))


def r_precision(seen, gains):
    return sum(g > 0 for g in seen[: len(gains)]) / len(gains)


def average_precision(seen, gains):
    hits = [i for i, gain in enumerate(seen, start=1) if gain > 0]
    return sum(nth / at for nth, at in enumerate(hits, start=1)) / len(gains)


def map_at_r(seen, gains):
    r = len(gains)
    return sum(sum(g > 0 for g in seen[: i + 1]) / (i + 1) for i in range(min(r, len(seen))) if seen[i]) / r


def reciprocal(seen, _):
    return next((1 / (i + 1) for i, g in enumerate(seen) if g), 0.0)


def ndcg(seen, gains):
    orders = (seen, sorted(gains, reverse=True))
    own, best = (sum(g / log2(i + 2) for i, g in enumerate(order)) for order in orders)
    return own / best


# Each measure, and the same from the gains along one ranking (0 = wrong) and the gains of all positives.
MEASURES = {
    **{
        f"recall_at_{k}": (lambda ranks, k=k, **given: ranking.recall_at_k(ranks, k, **given), recall(k))
        for k in (1, 2, 3, 50)
    },
    "r_precision": (ranking.r_precision, r_precision),
    "map_at_r": (ranking.map_at_r, map_at_r),
    "average_precision": (ranking.average_precision, average_precision),
    "reciprocal_rank": (ranking.reciprocal_rank, reciprocal),
    "ndcg": (ranking.ndcg, ndcg),
    "graded_r_precision": (
        ranking.graded_r_precision,
        lambda seen, gains: sum(seen[: len(gains)]) / len(gains),
    ),
    "graded_recall_at_1": (ranking.graded_recall_at_1, lambda seen, _: seen[0]),
}


@st.composite
def queries(draw, largest):
    """Scores of few levels, the gain of each item (0 = wrong), and the gains of absent positives."""
    n = draw(st.integers(1, largest))
    scores = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    gains = draw(st.lists(st.sampled_from([0.0, 0.0, 0.5, 1.0]), min_size=n, max_size=n))
    return scores, gains, draw(st.lists(st.sampled_from([0.5, 1.0]), max_size=2))


def ranks_of(scores, gains, absent):
    items = [i for i, g in enumerate(gains) if g]
    positives = Qrels.of([[*items, *(-1 for _ in absent)]], [[*(gains[i] for i in items), *absent]])
    return positive_ranks(np.array([scores], dtype=float), positives)


@given(queries(largest=12))
def test_strict_and_optimistic_are_the_worst_and_best_ranking(query):
    scores, gains, absent = query
    wanted = [g for g in gains if g] + absent
    ranks = ranks_of(*query)
    for ties, sign in ((Ties.STRICT, 1), (Ties.OPTIMISTIC, -1)):
        along = [gains[i] for i in sorted(range(len(scores)), key=lambda i: (-scores[i], sign * gains[i]))]
        for name, (measure, twin) in MEASURES.items():
            value = measure(ranks, ties=ties)[0]
            if wanted:
                assert value == pytest.approx(twin(along, wanted), abs=1e-12), name
            else:
                assert np.isnan(value), name


@given(queries(largest=6))
def test_half_is_the_mean_over_all_orders_of_tied_items(query):
    scores, gains, absent = query
    wanted = [g for g in gains if g] + absent
    ranks = ranks_of(*query)
    seen = {}
    for tiebreak in permutations(range(len(scores))):
        along = tuple(gains[i] for i in sorted(range(len(scores)), key=lambda i: (-scores[i], tiebreak[i])))
        seen[along] = seen.get(along, 0) + 1
    for name, (measure, twin) in MEASURES.items():
        value = measure(ranks, ties=Ties.HALF)[0]
        if wanted:
            total = sum(times * twin(list(along), wanted) for along, times in seen.items())
            assert value == pytest.approx(total / sum(seen.values()), abs=1e-12), name
        else:
            assert np.isnan(value), name


@given(queries(largest=10), st.integers(0, 10))
def test_a_cut_list_gives_the_value_of_the_whole_or_is_refused(query, length):
    scores, gains, absent = query
    wanted = [g for g in gains if g] + absent
    assume(wanted)
    n = len(scores)
    order = np.argsort([-s for s in scores], kind="stable")
    along = [gains[i] for i in order]
    positives = ranks_of(*query).positives
    cut = list_ranks([order[:length]], positives, gallery=n)
    assumed = list_ranks([order[:length]], positives, gallery=n, truncated_as_miss=True)
    for name, (measure, twin) in MEASURES.items():
        looked_at = PLACES.get(name, len(wanted))
        certain = name.startswith("rec") and any(along[:length])
        if any(along[length:]) and length < looked_at and not certain:
            refuses(f"the ranking is too short for .* given: {length} items", measure, cut, error=InputError)
        else:
            assert measure(cut)[0] == pytest.approx(twin(along, wanted), abs=1e-12), name
        as_wrong = [*along[:length], *(0.0 for _ in along[length:])]
        assert measure(assumed)[0] == pytest.approx(twin(as_wrong, wanted), abs=1e-12), name


# How far down a ranking each measure looks, where not to the number of positives.
PLACES = {
    **{f"recall_at_{k}": k for k in (1, 2, 3, 50)},
    **dict.fromkeys(("reciprocal_rank", "ndcg", "average_precision"), 1000),
    "graded_recall_at_1": 1,
}


def test_what_a_cut_list_cannot_support_is_named():
    positives = Qrels.of([[0], [1, 2, 3]])
    cut, none = (list_ranks(list(np.array(rows)[:, None]), positives, gallery=6) for rows in ([0, 5], [4, 5]))
    for call, message in (
        (lambda: ranking.map_at_r(cut), "query 1: the ranking is too short for mAP@R; given: 1 items"),
        (lambda: ranking.r_precision(cut), "too short for R-Precision"),
        (lambda: ranking.ndcg(cut), "nDCG; given: 1 items; allowed: the whole gallery"),
        (lambda: ranking.recall_at_k(none, 2), "query 0: .* recall at 2; .* so for 2 queries"),
        (lambda: ranking.reciprocal_rank(none), "the reciprocal rank"),
    ):
        refuses(message, call, error=InputError)


@pytest.mark.parametrize(("p", "n", "k"), [(1, 2, 1), (3, 50, 10), (5, 25000, 5), (13000, 25000, 10)])
def test_a_constant_model_gets_the_worst_or_what_chance_gives(p, n, k):
    ranks = positive_ranks(np.full((1, n), 0.25), Qrels.of([list(range(p))]))
    values = {
        "recall": ranking.recall_at_k(ranks, k, ties=Ties.HALF),
        "r_precision": ranking.r_precision(ranks, ties=Ties.HALF),
        "map_at_r": ranking.map_at_r(ranks, ties=Ties.HALF),
    }
    assert values["recall"] == pytest.approx(1 - float(Fraction(comb(n - p, k), comb(n, k))), abs=1e-12)
    assert values["r_precision"] == pytest.approx(p / n, rel=1e-12)
    # E[P(r) [r positive]] = p / n * (1 + (r - 1)(p - 1) / (n - 1)) / r.
    r = np.arange(1, p + 1)
    chance = (p / n * (1 + (r - 1) * (p - 1) / (n - 1)) / r).sum() / p
    assert values["map_at_r"] == pytest.approx(chance, rel=1e-10)
    if p + k < n:
        assert ranking.recall_at_k(ranks, k) == 0
        assert ranking.map_at_r(ranks) == 0 or p > n // 2
    assert ranking.recall_at_k(ranks, k, ties=Ties.OPTIMISTIC) == 1
    assert ranking.map_at_r(ranks, ties=Ties.OPTIMISTIC) == 1


def test_the_rankings_of_the_preference_study():
    """ECCV Caption section 4.1: with 8 positives, 66.0, 12.5, 10.3 and 2.5 mAP@R for A to D, 0 for E."""
    right = {"A": range(2, 9), "B": [1], "C": [6, 7, 8], "D": [5], "E": []}
    values = {}
    for name, places in right.items():
        listed = np.array([p if p in places else 100 + p for p in range(1, 9)])
        ranks = list_ranks([listed], Qrels.of([list(range(1, 9))]), gallery=200)
        values[name] = 100 * ranking.map_at_r(ranks).item()
    assert [round(v, 1) for v in values.values()] == [66.0, 12.5, 10.3, 2.5, 0.0]


def test_no_places_to_look_at():
    with pytest.raises(InputError, match=r"needs places to look at; given: 0; allowed: .*1 or more"):
        ranking.recall_at_k(positive_ranks(np.zeros((1, 2)), Qrels.of([[0]])), 0)


@pytest.mark.parametrize("side", ["i2t", pytest.param("t2i", marks=pytest.mark.slow)])
def test_model_free_rankings_of_coco_give_every_number(side, shared_data):
    result = direction(shared_data / "eccv", side)
    # Cut rankings are refused for COCO 1K, in each fold.
    assert result.pop("refused") == 5
    expected = {name: v[side == "t2i"] for name, v in eccv_rankings.KNOWN.items()}
    assert result == pytest.approx(expected, abs=1e-12)


def direction(folder, side):
    """All measures of one direction, in five blocks of queries, which are also the folds of COCO 1K."""
    images, captions = eccv_rankings.items(folder)
    queries, gallery = (images, captions) if side == "i2t" else (captions, images)
    column = {int(c): j for j, c in enumerate(gallery)}
    name = "image_to_caption" if side == "i2t" else "caption_to_image"
    tables = [eccv_rankings.read(folder / f"{prefix}_{name}.json") for prefix in ("original", "cxc", "eccv")]
    sets = [Qrels.of([[column.get(c, -1) for c in t.get(int(q), [])] for q in queries]) for t in tables]

    blocks, fold_ranks, cut_ranks, refused = [], [], [], 0
    for fold, (rows, scores) in enumerate(eccv_rankings.blocks(folder, side)):
        columns = np.arange(len(gallery) // 5) + fold * (len(gallery) // 5)
        blocks.append([positive_ranks(scores, s.take(rows)) for s in sets])
        of_query = (sets[0].take(np.array([q])).items for q in np.arange(len(queries))[rows])
        small = Qrels.of([(items[np.isin(items, columns)] - columns[0]).tolist() for items in of_query])
        fold_ranks.append(positive_ranks(scores[:, columns], small))
        top = np.argpartition(scores, -50, axis=1)[:, -50:]
        top = np.take_along_axis(top, np.argsort(-np.take_along_axis(scores, top, 1), axis=1), 1)
        lists = [row[(row >= columns[0]) & (row <= columns[-1])] - columns[0] for row in top]
        try:
            ranking.recall_at_k(list_ranks(lists, small, gallery=len(columns)), 10)
        except InputError:
            refused += 1
        cut_ranks.append(list_ranks(lists, small, gallery=len(columns), truncated_as_miss=True))

    coco, cxc, eccv = (join(parts) for parts in zip(*blocks, strict=True))
    result = {f"coco_5k_r{k}": ranking.recall_at_k(coco, k).mean() for k in (1, 5, 10)}
    result |= {f"cxc_r{k}": np.nanmean(ranking.recall_at_k(cxc, k)) for k in (1, 5, 10)}
    result["eccv_map_at_r"] = ranking.map_at_r(eccv)[sets[2].defined].mean()
    result["eccv_r_precision"] = ranking.r_precision(eccv)[sets[2].defined].mean()
    result["eccv_r1"] = ranking.recall_at_k(eccv, 1)[sets[2].defined].mean()
    for k in (1, 5, 10):
        result[f"coco_1k_r{k}"] = np.mean([ranking.recall_at_k(ranks, k).mean() for ranks in fold_ranks])
    result["cut_1k_r10"] = np.mean([ranking.recall_at_k(ranks, 10).mean() for ranks in cut_ranks])
    return result | {"refused": refused}
