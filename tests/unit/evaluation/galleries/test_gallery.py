"""The result of a gallery: what it reports, its intervals, its groups."""

from dataclasses import replace
from math import comb

import numpy as np
import pytest

from counterfoil.benchmarks.answers import Rankings
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.evaluation.evaluate import evaluate, main_measures, of, per_item
from counterfoil.evaluation.forms.gallery import base_names, chance, constant, expand
from counterfoil.evaluation.intervals import IntervalMethod
from counterfoil.metrics.ties import Ties
from refusals import refuses


def test_what_was_left_out_is_reported(galleries):
    asked = galleries(parts=True)
    result = evaluate(asked.benchmark, asked.rankings, scorer="s", draws=50)
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
    result = evaluate(asked.benchmark, asked.rankings, scorer="s", draws=400)
    again = evaluate(asked.benchmark, asked.rankings, scorer="s", draws=400)
    assert result == again
    assert result.provenance["interval"]["method"] == "clusters"
    for estimate in result.measures.values():
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
        assert estimate.low < estimate.high
    alone = evaluate(asked.benchmark, asked.rankings, scorer="s", draws=400, measures=["mean_map_at_r"])
    assert list(alone.measures) == ["mean_map_at_r"]
    assert alone.measures["mean_map_at_r"].value == result.measures["mean_map_at_r"].value
    wilson = evaluate(asked.benchmark, asked.rankings, scorer="s", interval=IntervalMethod.WILSON)
    assert wilson.measures["mean_mrr"].value == result.measures["mean_mrr"].value
    with pytest.raises(InputError, match="a gallery has no folds"):
        evaluate(asked.benchmark, asked.rankings, scorer="s", interval=IntervalMethod.FOLDS)


def test_groups_are_of_queries(galleries):
    asked = galleries()
    result = evaluate(asked.benchmark, asked.rankings, scorer="s", draws=50)
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
    rankings = Rankings(
        asked.rankings.i2t,
        replace(
            asked.rankings.t2i,
            **{
                name: getattr(asked.rankings.t2i, name)[:0]
                for name in ("above", "level", "depth", "top", "top_scores")
            },
        ),
    )
    result = evaluate(images, rankings, scorer="s", draws=50)
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
    found, wanted = asked.benchmark.gallery.i2t.positives, []
    for q in range(12):
        items = found.items[found.starts[q] : found.starts[q + 1]]
        present = int((items >= 0).sum())
        wanted.append((1 - comb(36 - present, 5) / comb(36, 5), present / 36))
    assert by_chance["i2t_recall_at_5"] == pytest.approx(np.mean([w[0] for w in wanted]), abs=1e-12)
    # What is outside the gallery counts in R: the first image finds 2 of 3 at 3 places of 36.
    assert by_chance["i2t_r_precision"] == pytest.approx(np.mean([w[1] for w in wanted]), abs=1e-12)
