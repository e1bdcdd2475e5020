"""Runs over judged captions come back from their folders as they were, and their tables can be read alone."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from contracts.forms import grades, preferred, rated
from counterfoil.benchmarks.answers import Scores
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.run import load_run, save_run
from refusals import refuses


def again(folder, benchmark, values):
    """The run of these scores, loaded; what is saved of it once more are the same bytes."""
    result = evaluate(benchmark, Scores(values), scorer="s", draws=20)
    saved = save_run(folder / "run", benchmark, Scores(values), result, {"benchmark": {"source": "made"}})
    loaded = load_run(folder / "run")
    assert loaded.result == saved.result
    # A loaded run takes the pictures of the benchmark it was made of.
    assert loaded.with_benchmark(benchmark).benchmark is benchmark
    save_run(folder / "second", loaded.benchmark, loaded.answers, loaded.result, loaded.manifest)
    for path in (folder / "run").iterdir():
        assert path.read_bytes() == (folder / "second" / path.name).read_bytes(), path.name
    return loaded, pq.read_table(folder / "run" / "items.parquet").to_pylist()


def test_ratings(tmp_path):
    given = grades(24, raters=3)
    given[::5, 1] = np.nan
    benchmark = rated(given, groups=2, raters="apart", decimals=4)
    loaded, table = again(tmp_path, benchmark, np.random.default_rng(0).normal(size=24))
    np.testing.assert_array_equal(loaded.benchmark.judged.ratings, given)
    assert table[6]["candidate"] == "caption 6"
    assert (table[6]["image"], table[5]["r1"], table[6]["r1"]) == ("i1", None, given[6, 1])
    assert "measure:spearman" not in table[0]
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["schema"] == 4


def test_a_scorer_without_a_correlation(tmp_path):
    loaded, _ = again(tmp_path, rated(grades(12)), np.zeros(12))
    assert loaded.result.measures == {}


@pytest.mark.parametrize("draws", [0, 3])
def test_preferences(tmp_path, draws):
    votes = np.random.default_rng(1).integers(0, 9, (14, 2)).astype(float)
    more = {"sample": 2, "draws": draws, "seed": 5} if draws else {}
    benchmark = preferred(votes, groups=4, macro=True, **more)
    shape = (14, 2, draws) if draws else (14, 2)
    loaded, table = again(tmp_path, benchmark, np.random.default_rng(2).normal(size=shape))
    for ours, theirs in zip(benchmark.judged.drawn(), loaded.benchmark.judged.drawn(), strict=True):
        assert np.array_equal(ours.captions, theirs.captions)
    assert (table[3]["a"], table[3]["b"], table[3]["a_images"]) == (["caption 6"], ["caption 7"], ["i1"])


def test_a_run_that_was_cut_off_is_refused(tmp_path):
    again(tmp_path, rated(grades(12)), np.arange(12.0))
    (tmp_path / "run" / "captions.parquet").unlink()
    refuses("a file is missing", load_run, tmp_path / "run")
