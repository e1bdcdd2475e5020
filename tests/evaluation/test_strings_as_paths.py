"""Paths may be strings wherever a Python user names a file or a folder."""

import numpy as np

from counterfoil.data import Scores
from counterfoil.data.folder import load, save
from counterfoil.data.tables import read_table
from counterfoil.data.training_files import read
from counterfoil.engine.run import run
from counterfoil.engine.session import Session
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.run import find_runs, load_run, save_run
from counterfoil.scorers.baselines import load_blind as blind
from counterfoil.world.sample import quads


def test_benchmarks_runs_caches_and_tables(tmp_path):
    benchmark = quads(6, seed=0)
    save(benchmark, str(tmp_path / "set"))
    assert load(str(tmp_path / "set")).digest == benchmark.digest
    assert len(read(str(tmp_path / "set"), images=str(tmp_path))) == 6
    answers = run(benchmark, blind("constant"), session=Session(str(tmp_path / "cache")))
    result = evaluate(benchmark, answers, scorer="x", draws=100, measures="group")
    assert list(result.measures) == ["group"]
    save_run(str(tmp_path / "run"), benchmark, answers, result, {})
    assert load_run(str(tmp_path / "run")).result.measures == result.measures
    assert len(find_runs([str(tmp_path / "run")])) == 1
    (tmp_path / "a.csv").write_text("id,score\na,1\n")
    assert len(read_table(str(tmp_path / "a.csv"))) == 1


def test_one_measure_is_one_name():
    benchmark = quads(6, seed=0)
    scores = Scores(np.random.default_rng(0).normal(size=(6, 2, 2)))
    assert list(evaluate(benchmark, scores, scorer="x", draws=100, measures="i2t").measures) == ["i2t"]
