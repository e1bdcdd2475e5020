"""The result of a gallery: what it reports, its intervals, its groups."""

from dataclasses import replace

import numpy as np
import pytest

from counterfoil.data.answers import Rankings
from counterfoil.errors import InputError
from counterfoil.evaluation import gallery_values
from counterfoil.evaluation import gallery_values as gallery_chance
from counterfoil.evaluation import gallery_values as gallery_measures
from counterfoil.evaluation.evaluate import IntervalMethod, evaluate


def test_what_was_left_out_is_reported(galleries) -> None:
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


def test_intervals(galleries) -> None:
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


def test_groups_are_of_queries(galleries) -> None:
    asked = galleries()
    result = evaluate(asked.benchmark, asked.rankings, scorer="s", draws=50)
    # Only images are odd, so that there is no mean of both directions.
    assert {name.partition("_")[0] for name in result.groups["odd"]} == {"i2t"}
    values = gallery_values.per_item(asked.benchmark, asked.rankings)["i2t_ndcg"]
    assert result.groups["odd"]["i2t_ndcg"].value == pytest.approx(values[:12:2].mean(), abs=1e-15)
    assert result.groups["even"]["mean_ndcg"].n == 6 + 35
    chance = gallery_chance.chance_per_item(asked.benchmark, ("i2t_ndcg",))["i2t_ndcg"]
    assert result.groups["odd"]["i2t_ndcg"].chance == pytest.approx(chance[:12:2].mean(), abs=1e-15)


def test_one_direction_alone(galleries) -> None:
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
    with pytest.raises(InputError, match="no query of that direction"):
        gallery_measures.expand(("t2i_mrr",), images)
