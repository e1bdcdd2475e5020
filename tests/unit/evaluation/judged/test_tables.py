"""Runs over judged captions come back from their folders as they were."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from contracts.forms import grades, preferred, rated
from counterfoil.benchmarks.answers import Scores
from counterfoil.benchmarks.forms import Preference
from counterfoil.errors import DataError
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.run import load_run, save_run


def _there_and_back(folder, benchmark, answers):
    result = evaluate(benchmark, answers, scorer="s", draws=20)
    saved = save_run(folder, benchmark, answers, result, {"benchmark": {"source": "made", "path": None}})
    return saved, load_run(folder)


def _same(saved, loaded):
    a, b = saved.benchmark, loaded.benchmark
    assert a.digest == b.digest
    assert np.array_equal(a.clusters, b.clusters)
    assert [(i.id, i.crop) for i in a.images] == [(i.id, i.crop) for i in b.images]
    assert a.photos == b.photos
    assert a.captions == b.captions
    for name in ("captions", "images", "ratings", "owners", "sides", "votes", "label"):
        if hasattr(a.questions, name):
            found, expected = getattr(b.questions, name), getattr(a.questions, name)
            assert found.dtype == expected.dtype
            assert np.array_equal(found, expected, equal_nan=found.dtype.kind == "f"), name
    for name in ("raters", "decimals", "sample", "draws", "seed", "ids", "groupings"):
        if hasattr(a.questions, name):
            assert getattr(a.questions, name) == getattr(b.questions, name), name
    ours, theirs = a.judged.references, b.judged.references
    assert (ours is None) == (theirs is None)
    if ours is not None and theirs is not None:
        assert np.array_equal(ours.starts, theirs.starts)
        assert np.array_equal(ours.captions, theirs.captions)
    if isinstance(saved.answers, Scores):
        assert saved.answers.values.tobytes() == loaded.answers.values.tobytes()
    assert saved.items.keys() == loaded.items.keys()
    for name, values in saved.items.items():
        assert np.array_equal(values, loaded.items[name])
    assert saved.result == loaded.result
    # A loaded run takes the pictures of the benchmark it was made of.
    assert loaded.with_benchmark(a).benchmark is a


def test_ratings(tmp_path):
    given = grades(24, raters=3)
    given[::5, 1] = np.nan
    benchmark = rated(given, groups=2, raters="apart", decimals=4)
    saved, loaded = _there_and_back(
        tmp_path / "run", benchmark, Scores(np.random.default_rng(0).normal(size=24))
    )
    _same(saved, loaded)
    table = pq.read_table(tmp_path / "run" / "items.parquet").to_pylist()
    assert table[6]["candidate"] == "caption 6"
    assert (table[6]["image"], table[5]["r1"], table[6]["r1"]) == ("i1", None, given[6, 1])
    assert "measure:spearman" not in table[0]
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["schema"] == 4


def test_a_scorer_without_a_correlation(tmp_path):
    saved, loaded = _there_and_back(tmp_path / "run", rated(grades(12)), Scores(np.zeros(12)))
    _same(saved, loaded)
    assert loaded.result.measures == {}


@pytest.mark.parametrize("draws", [0, 3])
def test_preferences(tmp_path, draws):
    votes = np.random.default_rng(1).integers(0, 9, (14, 2)).astype(float)
    more = {"sample": 2, "draws": draws, "seed": 5} if draws else {}
    benchmark = preferred(votes, groups=4, macro=True, **more)
    shape = (14, 2, draws) if draws else (14, 2)
    saved, loaded = _there_and_back(
        tmp_path / "run", benchmark, Scores(np.random.default_rng(2).normal(size=shape))
    )
    _same(saved, loaded)
    assert isinstance(loaded.benchmark.questions, Preference)
    for ours, theirs in zip(
        benchmark.judged.drawn(),
        loaded.benchmark.judged.drawn(),
        strict=True,  # type: ignore[union-attr]
    ):
        assert np.array_equal(ours.captions, theirs.captions)
    row = pq.read_table(tmp_path / "run" / "items.parquet").to_pylist()[3]
    assert (row["a"], row["b"], row["a_images"]) == (["caption 6"], ["caption 7"], ["i1"])


def test_a_run_that_was_cut_off_is_refused(tmp_path):
    _there_and_back(tmp_path / "run", rated(grades(12)), Scores(np.arange(12.0)))
    (tmp_path / "run" / "captions.parquet").unlink()
    with pytest.raises(DataError, match="a file is missing"):
        load_run(tmp_path / "run")
