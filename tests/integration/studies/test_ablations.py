"""Both studies with a dial: what is trained for each setting, and what each measure counts as right."""

import numpy as np
import pytest

from counterfoil.errors import InputError
from counterfoil.studies import runs
from counterfoil.studies.runs import EvaluationRuns, TrainingRuns, world
from counterfoil.world.benchmarks import as_collected
from tiny_study import TINY, facts


@pytest.mark.slow
def test_noise_begins_at_the_clean_runs_and_ends_with_a_filter(fuller):
    noise = next(each for each in fuller.sweeps if each.key == "noise")
    settings = [(0.0, "as generated"), (0.61, "as generated"), (0.61, "filtered")]
    assert [(each.x, each.series) for each in noise.settings] == settings
    assert fuller.order is not None
    clean = next(each for each in fuller.order.levels if each.label == "trohn-img")
    first = noise.settings[0].levels["group"]
    # Of the seeds that the dial is turned on, the first.
    assert first.seeds == clean.seeds[:1]
    assert all(len(level.seeds) == 1 for each in noise.settings for level in each.levels.values())
    control = next(each for each in fuller.sweeps if each.key == "noise-styles")
    assert [(each.x, each.series) for each in control.settings] == settings
    assert control.question.startswith("Where the second picture is synthetic, what do wrong")


@pytest.mark.slow
def test_mining_takes_one_measure_from_own_pairs_and_one_from_all(fuller):
    mining = next(each for each in fuller.sweeps if each.key == "mining")
    assert [each.label for each in mining.settings] == ["none", "hardest"]
    assert mining.measures == ("mean_recall_at_1", "mean_map_at_r")
    assert "As in COCO, R@1 counts only what a caption was written for" in mining.sentence
    pairs = [("hardest against none", measure) for measure in mining.measures]
    assert [(each.label, each.measure) for each in mining.differences] == pairs


def test_own_pairs_are_some_of_all_pairs_and_are_ranked_alike(place, made, tmp_path):
    bench = EvaluationRuns(world(TINY), tmp_path, facts)
    every, own = bench.measure_gallery("coco", place / "networks/coco-0")
    assert {path.name for path in (tmp_path / "coco-0").iterdir()} == {"world-gallery", "world-gallery-own"}
    assert own.benchmark.digest == as_collected(every.benchmark).digest != every.benchmark.digest
    # The first answers are the same; what counts as right is not.
    assert np.array_equal(every.answers.t2i.top, own.answers.t2i.top)
    recalls = [name for name in own.items if "recall_at" in name]
    assert recalls
    for name in recalls:
        assert not np.any(own.items[name] > every.items[name])
    alone = bench.measure("coco", place / "networks/coco-0", only=("world-gallery",))[0]
    assert all(np.array_equal(alone.items[name], every.items[name], equal_nan=True) for name in every.items)


def test_noise_without_rates_is_refused(tmp_path):
    with pytest.raises(InputError, match="no rates of noise"):
        runs.noise(TrainingRuns(TINY, tmp_path), EvaluationRuns((), tmp_path, facts), [])
