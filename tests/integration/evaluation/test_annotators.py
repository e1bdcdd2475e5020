"""Bias of machine annotators, and right answers against judgements, by hand and in a known world."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import ndtri, stdtrit

from counterfoil.benchmarks import Benchmark, Caption, Card, Image
from counterfoil.benchmarks.forms import Gallery, RetrievalDirection
from counterfoil.benchmarks.judgements import Judgements
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.annotators import MEASURES, per_query, study, to_json
from counterfoil.evaluation.judged_pairs import (
    JudgedPairs,
    are_right,
    asked_about,
    count,
    coverage,
    how_many,
    positions_in,
    proposals,
    right_pairs,
)
from counterfoil.metrics import ranking
from counterfoil.metrics.annotators import pool, subsets
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ranks import Qrels
from counterfoil.stats.bootstrap import cluster_draws
from counterfoil.stats.dependence import Dependence
from counterfoil.stats.intervals import cluster_interval
from listed_ranks import list_ranks
from refusals import refuses

MODELS = tuple(f"m{i}" for i in range(13))


def verified(tops, gains, k, clusters=None):
    """What is judged where all proposals of the first k are; `gains` are (queries, items), the truth."""
    pooled = pool([top[:, :k] for top in tops])
    clusters = np.arange(len(gains)) if clusters is None else clusters
    return JudgedPairs(
        *("t2i", MODELS[: len(tops)], pooled.query, gains[pooled.query, pooled.item]),
        *(positions_in(pooled.query, pooled.item, tops), pooled.place > 0, tuple(len(top.T) for top in tops)),
        Dependence(clusters[:, None], np.full((len(gains), 1), -1)),
    )


@st.composite
def worlds(draw):
    models, queries = draw(st.integers(2, 3)), draw(st.integers(1, 5))
    items, rng = draw(st.integers(4, 9)), np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    gains = rng.choice([0, 0, 0.5, 1], size=(queries, items))
    tops = [np.stack([rng.permutation(items) for _ in range(queries)]) for _ in range(models)]
    return tops, gains, draw(st.integers(1, 3))


@settings(max_examples=settings.default.max_examples // 3)
@given(worlds())
def test_values_are_those_of_the_measures_of_rankings(world):
    tops, gains, k = world
    known = verified(tops, gains, k)
    functions = {
        "graded_recall_at_1": ranking.graded_recall_at_1,
        "graded_r_precision": ranking.graded_r_precision,
        "recall_at_1": lambda ranks: ranking.recall_at_k(ranks, 1),
        "r_precision": ranking.r_precision,
    }
    assert tuple(functions) == MEASURES
    for members in subsets(len(tops)):
        # By hand: what the members propose, and people accept.
        right = [
            sorted({int(i) for m in np.flatnonzero(members) for i in tops[m][q, :k] if gains[q, i] > 0})
            for q in range(len(gains))
        ]
        positives = Qrels.of(right, [[float(gains[q, i]) for i in row] for q, row in enumerate(right)])
        for measure, function in functions.items():
            result = per_query(known, members, measure)
            for model, top in enumerate(tops):
                expected = function(list_ranks(list(top), positives, gallery=gains.shape[1]))
                np.testing.assert_allclose(result[:, model], expected)
            zeros = per_query(known, members, measure, undefined="zero")
            anyone = known.n_found > 0
            np.testing.assert_allclose(zeros[anyone], np.nan_to_num(result[anyone]))
            assert np.isnan(zeros[~anyone]).all()


@settings(max_examples=settings.default.max_examples // 3)
@given(worlds(), st.sampled_from(["out", "zero"]))
def test_performance_is_the_mean_over_queries(world, undefined):
    known = verified(*world)
    if not known.n_found.any():
        return
    for result in study(known, MEASURES, undefined=undefined, draws=10):
        for members, row, queries in zip(result.annotators, result.performance, result.queries, strict=True):
            values = per_query(known, members, result.measure, undefined=undefined)
            counted = values[~np.isnan(values[:, 0])]
            expected = counted.mean(axis=0) if len(counted) else np.full(len(row), np.nan)
            np.testing.assert_allclose(row, expected, atol=1e-12)
            if undefined == "out":
                assert queries == len(counted)


def simulated(seed=0, *, models=5, queries=400, items=300, copies=1):
    """Queries and items as points, right where they are near; models see both with noise of their own.

    Each query is asked `copies` times, with equal answers.
    """
    rng = np.random.default_rng(seed)
    width = 8
    asked, result = rng.normal(size=(queries, width)), rng.normal(size=(items, width))
    true = asked @ result.T / np.linalg.norm(asked, axis=1)[:, None] / np.linalg.norm(result, axis=1)
    gains = np.where(true > 0.8, 1.0, np.where(true > 0.65, 0.5, 0.0))
    tops = []
    for _ in range(models):
        seen = [points + 0.5 * rng.normal(size=points.shape) for points in (asked, result)]
        scores = seen[0] @ (seen[1] / np.linalg.norm(seen[1], axis=1, keepdims=True)).T
        tops.append(np.repeat(np.argsort(-scores, axis=1)[:, :30], copies, axis=0))
    return verified(tops, np.repeat(gains, copies, axis=0), 5, clusters=np.arange(queries * copies) // 5)


@pytest.fixture(scope="module")
def world():
    known = simulated()
    return known, study(known, MEASURES, draws=300)


@pytest.mark.parametrize("at", [0, 2])
def test_annotators_favour_themselves(world, at):
    """ECCV Caption Figure E.2: self-bias below bias below non-self-bias, and less with more annotators."""
    result = world[1][at]
    assert result.measure.endswith("recall_at_1")
    curves = result.curves()
    for size in range(1, 5):
        assert curves["self-bias"][size] < curves["bias"][size] < curves["non-self-bias"][size]
    for curve in curves.values():
        assert list(curve) == [1, 2, 3, 4]
        assert (np.diff(list(curve.values())) < 0).all()
    singles = slice(0, 5)
    assert (result.bias.own[singles] < result.bias.total[singles]).all()
    assert (result.bias.total[singles] < result.bias.others[singles]).all()
    # Each model is best on its own benchmark, as in Table E.1.
    assert (result.performance[singles].argmax(axis=1) == np.arange(5)).all()


def test_all_together_have_no_bias(world):
    for result in world[1]:
        assert len(result.annotators) == 31
        assert result.bias.total[-1] == result.bias.own[-1] == 0
        assert np.isnan(result.bias.others[-1])
        assert result.queries[-1] == result.queries.max() == (world[0].n_found > 0).sum()
        for kind, ends in result.single.items():
            values = getattr(result.bias, kind)
            assert ends.low.shape == (5,)
            # The bootstrap moves around what was found.
            assert (ends.low < values[:5] + 0.02).all()
            assert (values[:5] - 0.02 < ends.high).all()


def test_on_its_own_benchmark_a_model_has_its_true_recall_where_nothing_is_left_out():
    """Its first item is among its proposals, so R@1 changes with the queries that count alone."""
    known = simulated(3)
    zero = study(known, ["graded_recall_at_1"], undefined="zero", draws=100)[0]
    assert zero.bias.own == pytest.approx(np.zeros(31))
    assert zero.single["own"].high == pytest.approx(np.zeros(5))
    out = study(known, ["graded_recall_at_1"], draws=100)[0]
    own = np.diagonal(out.performance[:5])
    # Left out are queries for which it found nothing, and is wrong.
    assert (own >= np.diagonal(zero.performance[:5])).all()
    assert (out.queries[:5] < out.queries[-1]).any()


def test_bias_shrinks_with_the_number_proposed():
    rng = np.random.default_rng(0)
    gains = rng.choice([0, 0.5, 1], p=[0.8, 0.1, 0.1], size=(100, 20))
    tops = [np.stack([rng.permutation(20) for _ in range(100)]) for _ in range(3)]
    # Who hands in everything leaves nothing out.
    for item in study(verified(tops, gains, 20), draws=100):
        assert item.bias.total == pytest.approx(np.zeros(7))
        assert np.ptp(item.performance, axis=0) == pytest.approx(np.zeros(3))


def test_the_same_seed_gives_the_same_intervals():
    known = simulated(1, models=2, queries=60, items=60)
    a, b, c = (study(known, draws=200, seed=seed)[0].single["total"].low for seed in (4, 4, 5))
    assert (a == b).all()
    assert (a != c).any()


def test_studies_that_cannot_be():
    rng = np.random.default_rng(0)
    tops = [np.stack([rng.permutation(9) for _ in range(4)])[:, :3] for _ in range(2)]
    everything = np.ones((4, 9))
    with pytest.raises(InputError, match=r"too short for R-Precision; given: 3 items; allowed: [456] or"):
        study(verified(tops, everything, 3))
    # R@1 needs one item only.
    assert study(verified(tops, everything, 3), ["recall_at_1"], draws=100)[0].performance[-1].min() == 1
    refuses("no proposal was accepted", study, verified(tops, np.zeros((4, 9)), 3), error=InputError)
    with pytest.raises(InputError, match="not a measure of bias; given: map_at_r"):
        study(verified(tops, everything, 3), ["map_at_r"])
    for few in (1, 13):
        known = verified((tops * 7)[:few], everything, 3)
        message = f"sets of models; given: {few}; allowed: 2 to 12"
        refuses(message, study, known, ["recall_at_1"], error=InputError)


def test_studies_as_json(world):
    result = to_json(world[1][0])
    assert list(result["annotators"])[:6] == ["m0", "m1", "m2", "m3", "m4", "m0+m1"]
    whole = result["annotators"]["m0+m1+m2+m3+m4"]
    assert whole["bias"] == 0
    assert whole["non_self_bias"] is None
    assert len(result["annotators"]["m0"]["bias_interval"]) == 2
    assert set(result["by_number"]) == {"bias", "self_bias", "non_self_bias"}


def test_performance_has_the_intervals_of_means_over_queries():
    known = simulated(models=3, queries=100)
    (result,) = study(known, ["recall_at_1"], draws=300, seed=2)
    for row, at in enumerate(result.shown):
        values = per_query(known, result.annotators[at], "recall_at_1")
        there = ~np.isnan(values[:, 0])
        low, high = cluster_interval(values[there], known.dependence.take(there))
        assert result.ends.low[row] == pytest.approx(low)
        assert result.ends.high[row] == pytest.approx(high)
    ends = to_json(result)["annotators"]["m1"]["performance_interval"]["m0"]
    assert ends == pytest.approx([result.ends.low[1, 0], result.ends.high[1, 0]])


def test_mean_biases_by_number_spread_as_in_draws_of_clusters():
    known = simulated(models=3, queries=300)
    (result,) = study(known, ["graded_recall_at_1"], draws=100)
    sets = result.annotators[:-1]
    values = [per_query(known, members, "graded_recall_at_1") for members in result.annotators]
    drawn = []
    for weights in np.concatenate([*cluster_draws(60, 400, seed=0)]):
        rows = np.repeat(np.arange(300), weights[np.arange(300) // 5].astype(int))
        means = np.array([np.nanmean(of[rows], axis=0) for of in values])
        away = np.abs(means[:-1] - means[-1])
        own = np.array([row[members].mean() for row, members in zip(away, sets, strict=True)])
        drawn.append([away[:3].mean(), own[:3].mean(), away[3:].mean(), own[3:].mean()])
    spread = np.std(drawn, axis=0)
    for k, (name, size) in enumerate((("bias", 1), ("self-bias", 1), ("bias", 2), ("self-bias", 2))):
        low, high = result.by_number[name][size]
        value = result.curves()[name][size]
        assert low < value < high
        assert high - value == pytest.approx(2.0 * spread[k], rel=0.2)


def test_intervals_know_of_captions_that_repeat():
    known = simulated(models=3, queries=40, copies=5)
    images = np.arange(200)[:, None]
    # Forty texts, each of five equal queries: without them intervals are those of single queries.
    texts = (np.arange(200) // 5)[:, None]
    several = np.stack([np.arange(200) // 2, np.arange(200) % 90 + 200], axis=1)
    apart, repeated = Dependence(images, -np.ones((200, 1), int)), Dependence(several, texts)
    assert repeated.crossed
    both = (replace(known, dependence=of) for of in (apart, repeated))
    alone, crossed = (study(pairs, ["recall_at_1"], draws=200)[0] for pairs in both)
    assert not apart.crossed
    assert alone.performance == pytest.approx(crossed.performance)
    wider = (crossed.ends.high - crossed.ends.low) / (alone.ends.high - alone.ends.low)
    # Five equal queries count as one: sqrt(5), CR2's 1 - 1/200 and 1 - 1/40, and Student's quantile of 39.
    expected = np.sqrt(5 * (1 - 1 / 200) / (1 - 1 / 40)) * stdtrit(39, 0.975) / ndtri(0.975)
    assert np.median(wider) == pytest.approx(expected, rel=0.05)
    for name in ("bias", "non-self-bias"):
        (low, high), (least, most) = crossed.by_number[name][1], alone.by_number[name][1]
        assert high - low > most - least
    for kind in ("total", "others"):
        wide = crossed.single[kind].high - crossed.single[kind].low
        assert np.median(wide / (alone.single[kind].high - alone.single[kind].low)) > 1.0


def alone(n):
    """Queries that share nothing."""
    return Dependence(np.arange(n)[:, None], np.full((n, 1), -1))


def test_coverage_by_hand():
    # Query 0: judged a b c, right a b, accepted a c: precision 1/2, recall 1 - 1/2.
    # Query 1: judged d, right nothing: left out. Query 2: judged e f, right e, accepted nothing: 0 and none.
    query = np.array([0, 0, 0, 1, 2, 2])
    right, accepted = np.array([[1, 1, 0, 0, 1, 0], [1, 0, 1, 1, 0, 0]], dtype=bool)
    result = coverage("mine", "t2i", query=query, right=right, accepted=accepted, dependence=alone(3))
    assert (result.precision[0], result.recall[0]) == pytest.approx((1 / 4, 1 / 2))
    assert (result.queries, result.left_out) == (2, 1)
    assert result.precision[1] < 1 / 4 < result.precision[2]
    none, one = np.array([False]), np.array([True])
    nothing = coverage("none", "t2i", query=query[:1], right=none, accepted=one, dependence=alone(1))
    assert nothing.to_json()["precision"] == {"value": None, "low": None, "high": None}


def test_multiplicity():
    result = count("mine", "t2i", np.array([1, 3, 3, 0]))
    assert result.histogram == {0: 1, 1: 1, 3: 2}
    assert (result.total, result.mean, result.median) == (7, 1.75, 2.0)


@settings(deadline=None)
@given(worlds())
def test_places_are_those_in_the_lists(world):
    tops, gains, _ = world
    short = [np.where(np.arange(top.shape[1]) < top.shape[1] - m, top, -1) for m, top in enumerate(tops)]
    pairs = [(q, i) for q in range(len(gains)) for i in range(gains.shape[1])]
    query, item = np.array(pairs).T
    for row, (q, i) in zip(positions_in(query, item, short).tolist(), pairs, strict=True):
        assert row == [list(top[q]).index(i) + 1 if i in top[q] else 0 for top in short]


def test_a_table_says_of_all_models_what_they_proposed_or_of_none():
    place = {"b": np.array([2, 0]), "a": np.array([1, 3])}
    pairs = (np.array([0, 0]), np.array([0, 1]), np.ones(2))
    judged = Judgements("t2i", ("7",), ("5", "6"), *pairs, place)
    result = proposals(judged, ("a", "b"))
    assert result is not None
    assert result.tolist() == [[1, 2], [3, 0]]
    assert proposals(judged, ("c", "d")) is None
    with pytest.raises(DataError, match="of some models only what they proposed; given: c; allowed: place:b"):
        proposals(judged, ("a", "c"))


# Three images with classes (cat), (cat, dog), (car); captions k and l of a, m of b, n of c.
CODES = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]], dtype=bool)
OWNERS = np.array([0, 0, 1, 2])


def benchmark(*, rule=None):
    # Image c is no query, nor is caption k; one right answer of caption n lies outside.
    t2i = RetrievalDirection(np.array([1, 2, 3]), Qrels.of([[0], [1, 0], [2, -1]]))
    i2t = RetrievalDirection(np.array([1, 0]), Qrels.of([[2], [0, 1, 2]]))
    if rule is not None:
        of_captions = CODES[OWNERS]
        t2i = RetrievalDirection(t2i.queries, Plausible(of_captions[t2i.queries], CODES, rule))
        i2t = RetrievalDirection(i2t.queries, Plausible(CODES[i2t.queries], of_captions, rule))
    images, captions = (tuple(Image(name) for name in "abc"), tuple(Caption(name, name) for name in "klmn"))
    names = ("i2t/b", "i2t/a", "t2i/l", "t2i/m", "t2i/n")
    questions = Gallery(names, i2t=i2t, t2i=t2i, owners=OWNERS, n_images=3)
    return Benchmark(Card(name="toy", title="Toy", form="gallery"), images, captions, questions)


def test_listed_pairs_by_id():
    result = right_pairs(benchmark(), "t2i", ("n", "z", "m"), ("c", "b", "a", "y"))
    assert sorted(map(tuple, result.tolist())) == [(0, 0), (2, 1), (2, 2)]
    result = right_pairs(benchmark(), "i2t", ("a",), ("l", "m"))
    assert sorted(map(tuple, result.tolist())) == [(0, 0), (0, 1)]


def test_which_pairs_are_right():
    query, item = np.array([0, 0, 1, 2]), np.array([0, 2, 1, 1])
    # n with c, n with a, z with b, m with b.
    result = are_right(benchmark(), "t2i", ("n", "z", "m"), ("c", "b", "a"), query, item)
    assert {name: right.tolist() for name, right in result.items()} == {"toy": [True, False, False, True]}


def test_which_pairs_a_rule_calls_right():
    queries, items = ("n", "z", "m", "l"), ("c", "b", "a", "y")
    query, item = np.array([0, 1, 2, 2, 3, 3]), np.array([0, 1, 1, 2, 1, 3])
    # n with c: the same. z is nobody. m (cat, dog) with b: the same, with a (cat): one apart. l (cat) with b:
    # one apart. y is nobody.
    near = are_right(benchmark(rule=(0, 1)), "t2i", queries, items, query, item)
    result = {name: right.astype(int).tolist() for name, right in near.items()}
    assert result == {"toy (0)": [1, 0, 1, 0, 0, 0], "toy (1)": [1, 0, 1, 1, 1, 0]}
    assert list(are_right(benchmark(rule=(0,)), "t2i", queries, items, query, item)) == ["toy"]


def test_a_rule_lists_nothing():
    for listed, names in ((right_pairs, (("a",), ("k",))), (how_many, (("a",),))):
        refuses("toy: right is what a rule says, not a list", listed, benchmark(rule=(0,)), "i2t", *names)


def test_how_many_count_those_outside():
    assert how_many(benchmark(), "t2i", ("n", "k", "m", "z")).tolist() == [2, 0, 2, 0]
    assert how_many(benchmark(), "i2t", ("a", "b", "c")).tolist() == [3, 1, 0]


def test_captions_of_one_image_are_together():
    result = asked_about(benchmark(), "t2i", ("k", "z", "l", "m")).components
    assert (result[0], len(set(result.tolist()))) == (result[2], 3)
    assert asked_about(benchmark(), "i2t", ("a", "b")).components.tolist() == [0, 1]
    assert asked_about(None, "t2i", ("k", "l")).components.tolist() == [0, 1]


def test_captions_of_one_text_are_shared():
    known = benchmark()
    same = tuple(replace(c, text="a cat" if c.id in ("k", "m") else c.id) for c in known.captions)
    result = asked_about(replace(known, captions=same), "t2i", ("k", "l", "m", "z"))
    assert result.captions[0] == result.captions[2] != result.captions[1]
    assert result.captions[3] == -1
