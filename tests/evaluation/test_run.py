"""A run's folder holds everything that later steps need."""

import json
from pathlib import Path

import numpy as np
import pytest

from counterfoil.data import Outcomes, Scores
from counterfoil.errors import DataError
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.run import find_runs, load_run, save_run


def _saved(folder: Path, benchmark, answers):
    result = evaluate(benchmark, answers, scorer="s", draws=100)
    return save_run(folder, benchmark, answers, result, {"benchmark": {"source": "a test"}})


def test_what_was_saved_is_loaded(tmp_path: Path, quads, choices) -> None:
    rng = np.random.default_rng(0)
    for number, benchmark in enumerate((quads(9, share=3), choices({"add": 4, "swap": 3}, k=3, correct=2))):
        answers = Scores(rng.normal(size=benchmark.questions.pairs()[0].shape))
        saved = _saved(tmp_path / str(number), benchmark, answers)
        loaded = load_run(tmp_path / str(number))
        assert loaded.result == saved.result
        assert loaded.benchmark.digest == benchmark.digest
        np.testing.assert_array_equal(loaded.benchmark.clusters, benchmark.clusters)
        assert isinstance(loaded.answers, Scores)
        np.testing.assert_array_equal(loaded.answers.values, answers.values)
        for name, values in saved.items.items():
            np.testing.assert_array_equal(loaded.items[name], values)


def test_outcomes_survive_too(tmp_path: Path, quads) -> None:
    right = {name: np.array([True, False, True]) for name in ("ipos2t", "ineg2t", "tpos2i", "tneg2i")}
    _saved(tmp_path / "run", quads(3), Outcomes(right))
    loaded = load_run(tmp_path / "run").answers
    assert isinstance(loaded, Outcomes)
    assert {name: column.tolist() for name, column in loaded.right.items()} == {
        name: column.tolist() for name, column in right.items()
    }


def test_the_same_run_gives_the_same_bytes(tmp_path: Path, quads) -> None:
    answers = Scores(np.random.default_rng(0).normal(size=(5, 2, 2)))
    for name in ("a", "b"):
        _saved(tmp_path / name, quads(5), answers)
    for file in ("scores.parquet", "items.parquet", "result.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_changed_file_is_named(tmp_path: Path, quads) -> None:
    _saved(tmp_path / "run", quads(3), Scores(np.zeros((3, 2, 2))))
    result = json.loads((tmp_path / "run/result.json").read_text())
    result["measures"]["group"]["value"] = 0.99
    (tmp_path / "run/result.json").write_text(json.dumps(result))
    with pytest.raises(DataError, match=r"result\.json: the file is not the one the run wrote"):
        load_run(tmp_path / "run")


def test_a_folder_without_runs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no run in this folder"):
        find_runs([tmp_path])
    with pytest.raises(DataError, match="no such run folder"):
        find_runs([tmp_path / "nowhere"])


def test_runs_are_named_after_their_folders(tmp_path: Path, quads) -> None:
    answers = Scores(np.zeros((3, 2, 2)))
    for scorer in ("clip", "siglip"):
        for name in ("toy", "other"):
            _saved(tmp_path / "runs" / scorer / name, quads(3, name=name), answers)
    runs = find_runs([tmp_path / "runs" / "clip", tmp_path / "runs" / "siglip"])
    assert [(run.name, run.benchmark.name) for run in runs] == [
        ("clip", "other"), ("clip", "toy"), ("siglip", "other"), ("siglip", "toy"),
    ]  # fmt: skip
    # The same folder named twice is one run; equal names further up are told apart by one more folder.
    assert len(find_runs([tmp_path / "runs", tmp_path / "runs" / "clip"])) == 4
    _saved(tmp_path / "more" / "clip" / "toy", quads(3), answers)
    names = [run.name for run in find_runs([tmp_path / "runs" / "clip" / "toy", tmp_path / "more"])]
    assert names == ["runs/clip", "more/clip"]
