"""Galleries against loops that sort every list: measures, intervals, groups and what is reported."""

from dataclasses import replace
from math import comb, isnan, log2

import numpy as np
import pytest

from counterfoil.benchmarks.answers import Rankings, Scores
from counterfoil.errors import InputError, ScoreError, UnknownNameError
from counterfoil.evaluation.evaluate import evaluate, main_measures, of, per_item
from counterfoil.evaluation.forms.gallery import base_names, chance, constant, expand, mean, tied
from counterfoil.evaluation.intervals import IntervalMethod
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ties import Ties
from refusals import refuses
from small_galleries import cut_after

GRADED = ("graded_recall_at_1", "graded_r_precision")
NAMES = ("recall_at_1", "recall_at_3", "r_precision", "map_at_r", "mrr", "ndcg", *GRADED)
SETTINGS = [{"gains": True}, {"gains": True, "parts": True}, {"gains": True, "parts": True, "values": 2}]


def listed(asked, ties):
    """(direction, part, gains down the list, gains of the right answers) of each query, by sorting."""
    gallery = asked.benchmark.gallery
    worst_first = -1 if ties is Ties.OPTIMISTIC else 1
    for direction, search, scores, of_query, of_item in (
        ("i2t", gallery.i2t, asked.scores, gallery.image_parts, gallery.caption_parts),
        ("t2i", gallery.t2i, asked.scores.T, gallery.caption_parts, gallery.image_parts),
    ):
        for q, query in enumerate(search.queries):
            result = slice(search.positives.starts[q], search.positives.starts[q + 1])
            right = dict(zip(search.positives.items[result], search.positives.gains[result], strict=True))
            part = 0 if of_query is None else of_query[query]
            seen = [i for i in range(scores.shape[1]) if of_item is None or of_item[i] == part]
            seen.sort(key=lambda i: (-scores[query, i], worst_first * right.get(i, 0.0)))
            yield direction, part, [right.get(i, 0.0) for i in seen], list(right.values())


def by_hand(name, gains, right):
    """A measure of one list, from its definition."""
    r = len(right)
    if not r:
        return float("nan")
    hits = [gain > 0 for gain in gains]
    if name.startswith("recall_at_"):
        return float(any(hits[: int(name.removeprefix("recall_at_"))]))
    if name == "map_at_r":
        return sum(sum(hits[: i + 1]) / (i + 1) for i in range(min(r, len(hits))) if hits[i]) / r
    if name == "ndcg":
        best = sum(g / log2(i + 2) for i, g in enumerate(sorted(right, reverse=True)))
        return sum(g / log2(i + 2) for i, g in enumerate(gains)) / best
    return {
        "r_precision": sum(hits[:r]) / r,
        "mrr": next((1 / (i + 1) for i, hit in enumerate(hits) if hit), 0.0),
        "graded_recall_at_1": gains[0],
        "graded_r_precision": sum(gains[:r]) / r,
    }[name]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("ties", [Ties.STRICT, Ties.OPTIMISTIC])
def test_every_value_is_that_of_the_sorted_list(galleries, setting, ties):
    asked = galleries(**setting)
    values = per_item(asked.benchmark, asked.rankings, ties=ties, measures=NAMES)
    lists = list(listed(asked, ties))
    for name in NAMES:
        of_rows = [by_hand(name, gains, right) for _, _, gains, right in lists]
        in_images = np.arange(48) < 12
        for side, rows in (("i2t", in_images), ("t2i", ~in_images), ("mean", np.ones(48, dtype=bool))):
            expected = np.where(rows, of_rows, np.nan)
            np.testing.assert_allclose(values[f"{side}_{name}"], expected, atol=1e-12, err_msg=name)
            # The mean over directions of the mean over parts of the mean over queries.
            of_sides = []
            for direction in ("i2t", "t2i"):
                pairs = zip(expected, lists, strict=True)
                here = [(value, part) for value, (d, part, *_) in pairs if d == direction]
                parts = {part for _, part in here} if side in (direction, "mean") else ()
                of_parts = [np.nanmean([v for v, own in here if own == part]) for part in parts]
                of_sides += [np.mean(of_parts)] if of_parts else []
            result = mean(asked.benchmark, values[f"{side}_{name}"])
            assert result == pytest.approx(np.mean(of_sides), abs=1e-12)
    # The last caption has no right image.
    assert isnan(values["t2i_mrr"][-1])


def test_half_is_the_mean_over_random_orders(galleries):
    """Ties broken at random 100 times: the mean is within five standard errors of the closed form."""
    asked = galleries(**SETTINGS[-1])
    half = per_item(asked.benchmark, asked.rankings, ties=Ties.HALF, measures=("map_at_r", "ndcg"))
    rng = np.random.default_rng(1)
    draws = []
    for _ in range(100):
        moved = asked.scored(asked.scores + rng.random(asked.scores.shape) / 2)
        lists = [(gains, right) for _, _, gains, right in listed(moved, Ties.STRICT)]
        draws.append([[by_hand(name, *of_list) for of_list in lists] for name in ("map_at_r", "ndcg")])
    middle, error = np.mean(draws, axis=0), np.std(draws, axis=0) / 10
    for k, name in enumerate(("map_at_r", "ndcg")):
        assert (np.abs(half[f"mean_{name}"] - middle[k]) <= 5 * error[k] + 1e-9)[(~np.isnan(middle[k]))].all()


@pytest.mark.parametrize("setting", SETTINGS)
def test_ties_are_counted_by_query(galleries, setting):
    asked = galleries(**setting)
    gallery = asked.benchmark.gallery
    expected = []
    for search, scores, of_query, of_item in (
        (gallery.i2t, asked.scores, gallery.image_parts, gallery.caption_parts),
        (gallery.t2i, asked.scores.T, gallery.caption_parts, gallery.image_parts),
    ):
        for q, query in enumerate(search.queries):
            right = set(search.positives.items[search.positives.starts[q] : search.positives.starts[q + 1]])
            seen = [i for i in range(scores.shape[1]) if of_item is None or of_item[i] == of_query[query]]
            wrong = {scores[query, i] for i in seen if i not in right}
            expected.append(any(scores[query, i] in wrong for i in right if i >= 0))
    assert tied(asked.benchmark, asked.rankings).tolist() == expected
    actual = {item: evaluate(asked.benchmark, asked.rankings, model="s", ties=item) for item in Ties}
    result = actual[Ties.STRICT]
    assert (result.ties["questions"], result.ties["rate"]) == (sum(expected), sum(expected) / 48)
    for ties, other in actual.items():
        for name, estimate in other.measures.items():
            assert result.ties["measures"][str(ties)][name] == estimate.value


@pytest.mark.parametrize("parts", [False, True])
def test_right_by_rule(galleries, parts):
    asked = galleries(rule=True, parts=parts)
    assert of(asked.benchmark).measure_names(asked.benchmark) == ("i2t_pmrp", "t2i_pmrp", "mean_pmrp")
    gallery, rankings = asked.benchmark.gallery, asked.rankings
    rule = gallery.i2t.positives
    assert isinstance(rule, Plausible)
    values = per_item(asked.benchmark, rankings)["i2t_pmrp"]
    for image in range(12):
        seen = [c for c in range(36) if not parts or gallery.caption_parts[c] == gallery.image_parts[image]]
        result = []
        for threshold in (0, 1):
            right = {c for c in seen if (rule.query_codes[image] != rule.item_codes[c]).sum() <= threshold}
            r = min(3, len(right))
            order = sorted(seen, key=lambda c: (-asked.scores[image, c], c in right))
            result.append(len(right & set(order[:r])) / r)
        assert values[image] == pytest.approx(np.mean(result), abs=1e-12)
    # What a constant gets, worked out from numbers of codes, is what sorting gives.
    result = asked.scored(np.zeros_like(asked.scores)).rankings
    counted = constant(asked.benchmark)
    for side in ("i2t", "t2i"):
        np.testing.assert_allclose(getattr(counted, side).shares, getattr(result, side).shares, atol=1e-12)


def test_cut_rankings_support_what_they_reach(galleries):
    asked = galleries()
    asked = asked.scored(np.random.default_rng(3).random(asked.scores.shape))
    rankings = cut_after(asked.rankings, 6)
    whole = evaluate(asked.benchmark, asked.rankings, model="s", draws=50)
    result = evaluate(asked.benchmark, rankings, model="s", draws=50)
    # R is at most 5; recall at 10, the reciprocal rank and nDCG look further down.
    assert {name.partition("_")[2] for name in result.measures} == {
        "recall_at_1", "recall_at_5", "r_precision", "map_at_r",
    }  # fmt: skip
    for name, estimate in result.measures.items():
        assert estimate.value == whole.measures[name].value
        assert estimate.low == pytest.approx(whole.measures[name].low, abs=1e-12)
        assert estimate.chance == whole.measures[name].chance
    facts = result.provenance["gallery"]
    assert facts["cut"] == {"i2t": 6, "t2i": 6}
    assert "too short for recall at 10" in facts["unsupported"]["mean_recall_at_10"]
    assert set(facts["unsupported"]) == set(whole.measures) - set(result.measures)
    with pytest.raises(InputError, match="t2i_ndcg cannot be measured: text to image, query"):
        evaluate(asked.benchmark, rankings, model="s", measures=["t2i_ndcg"])
    with pytest.raises(InputError, match="cannot be measured"):
        evaluate(asked.benchmark, cut_after(asked.rankings, 0), model="s")


@pytest.mark.parametrize("part", ["above", "depth", "top"])
def test_answers_that_do_not_fit(galleries, part):
    asked = galleries()
    placed = asked.rankings.i2t
    short = Rankings(replace(placed, **{part: getattr(placed, part)[:-1]}), asked.rankings.t2i)
    with pytest.raises(ScoreError, match=f"wrong number of rows in '{part}'"):
        evaluate(asked.benchmark, short, model="s")


def test_answers_of_another_kind(galleries, quads):
    asked = galleries()
    with pytest.raises(ScoreError, match="a gallery is answered by rankings"):
        evaluate(asked.benchmark, Scores(np.zeros((3, 2, 2))), model="s")
    check = of(quads(3)).check
    refuses("rankings answer a gallery only", check, quads(3), asked.rankings, error=ScoreError, where="s")
    with pytest.raises(ScoreError, match="lack the shares"):
        evaluate(galleries(rule=True).benchmark, asked.rankings, model="s")


def test_what_was_left_out_is_reported(galleries):
    asked = galleries(parts=True)
    result = evaluate(asked.benchmark, asked.rankings, model="s", draws=50)
    assert result.provenance["gallery"] == {
        "images": 12,
        "captions": 36,
        "parts": 2,
        # 36 of the owners and two more, one of them outside; 35 captions with an owner and two images more.
        "i2t": {"queries": 12, "undefined": 0, "positives": 38, "outside_gallery": 1},
        "t2i": {"queries": 36, "undefined": 1, "positives": 37, "outside_gallery": 0},
        "cut": None,
        "unsupported": {},
    }
    assert [result.measures[f"{side}_mrr"].n for side in ("i2t", "t2i", "mean")] == [12, 35, 47]


def test_intervals(galleries):
    asked = galleries(parts=True, gains=True)
    result = evaluate(asked.benchmark, asked.rankings, model="s", draws=400)
    assert result == evaluate(asked.benchmark, asked.rankings, model="s", draws=400)
    assert result.provenance["interval"]["method"] == "clusters"
    for estimate in result.measures.values():
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
        assert estimate.low < estimate.high
    alone = evaluate(asked.benchmark, asked.rankings, model="s", draws=400, measures=["mean_map_at_r"])
    assert list(alone.measures) == ["mean_map_at_r"]
    assert alone.measures["mean_map_at_r"].value == result.measures["mean_map_at_r"].value
    wilson = evaluate(asked.benchmark, asked.rankings, model="s", interval=IntervalMethod.WILSON)
    assert wilson.measures["mean_mrr"].value == result.measures["mean_mrr"].value


def test_groups_are_of_queries(galleries):
    asked = galleries()
    result = evaluate(asked.benchmark, asked.rankings, model="s", draws=50)
    # Only images are odd, so that there is no mean of both directions.
    assert {name.partition("_")[0] for name in result.groups["odd"]} == {"i2t"}
    values = per_item(asked.benchmark, asked.rankings)["i2t_ndcg"]
    assert result.groups["odd"]["i2t_ndcg"].value == pytest.approx(values[:12:2].mean(), abs=1e-15)
    assert result.groups["even"]["mean_ndcg"].n == 6 + 35
    alike = constant(asked.benchmark)
    by_chance = per_item(asked.benchmark, alike, ties=Ties.HALF, measures="i2t_ndcg")["i2t_ndcg"]
    assert result.groups["odd"]["i2t_ndcg"].chance == pytest.approx(by_chance[:12:2].mean(), abs=1e-15)


def test_one_direction_alone(galleries):
    asked = galleries()
    images = asked.benchmark.select(np.arange(12))
    names = ("above", "level", "depth", "top", "top_scores")
    nothing = {name: getattr(asked.rankings.t2i, name)[:0] for name in names}
    rankings = Rankings(asked.rankings.i2t, replace(asked.rankings.t2i, **nothing))
    result = evaluate(images, rankings, model="s", draws=50)
    assert {name.partition("_")[0] for name in result.measures} == {"i2t"}
    refuses("no query of that direction", expand, ("t2i_mrr",), images, error=InputError)


def test_names_with_and_without_a_direction(galleries):
    benchmark = galleries().benchmark
    assert main_measures(benchmark) == ("i2t_map_at_r", "t2i_map_at_r", "mean_map_at_r")
    assert of(benchmark).measure_names(benchmark)[:4] == (*main_measures(benchmark), "i2t_recall_at_1")
    assert expand(("recall_at_20", "mean_mrr"), benchmark) == (
        *("i2t_recall_at_20", "t2i_recall_at_20", "mean_recall_at_20", "mean_mrr"),
    )
    assert expand(("i2t_recall_at_05", "i2t_recall_at_5"), benchmark) == ("i2t_recall_at_5",)
    with pytest.raises(UnknownNameError, match="did you mean 'i2t_r_precision'"):
        expand(("i2t_r_precison",), benchmark)
    refuses("did you mean 'ndcg'", expand, ("ndgc",), benchmark, error=UnknownNameError)
    for name in ("recall_at_0", "t2i_recall_at_0"):
        with pytest.raises(InputError, match=r"places that .* looks at: out of range; given: 0"):
            expand((name,), benchmark)
    refuses("", expand, ("graded_recall_at_1",), benchmark, error=UnknownNameError)
    with pytest.raises(UnknownNameError):
        expand(("recall_at_1",), galleries(rule=True).benchmark)
    assert "graded_recall_at_1" in base_names(galleries(gains=True).benchmark)


def test_chance_is_what_counting_says(galleries):
    asked = galleries()
    by_chance = chance(asked.benchmark, ("recall_at_5", "r_precision"))
    result, wanted = asked.benchmark.gallery.i2t.positives, []
    for q in range(12):
        present = int((result.items[result.starts[q] : result.starts[q + 1]] >= 0).sum())
        wanted.append((1 - comb(36 - present, 5) / comb(36, 5), present / 36))
    assert by_chance["i2t_recall_at_5"] == pytest.approx(np.mean([w[0] for w in wanted]), abs=1e-12)
    # What is outside the gallery counts in R: the first image finds 2 of 3 at 3 places of 36.
    assert by_chance["i2t_r_precision"] == pytest.approx(np.mean([w[1] for w in wanted]), abs=1e-12)
