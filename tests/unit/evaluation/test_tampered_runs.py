"""A run or a benchmark whose files were changed by hand, digests included, is refused in one line."""

import json
import math
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from contracts.forms import grades, rated
from counterfoil.benchmarks import Scores
from counterfoil.benchmarks.folder import load, save
from counterfoil.errors import CounterfoilError
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.run import load_run, save_run
from faults.files import at, change_column, change_json, drop_column, json_faults, reseal
from refusals import refuses

Change = Callable[[Path], None]


@pytest.fixture
def run(tmp_path, quads, choices, galleries):
    """The folder of a small run of a form."""

    def make(form):
        rng = np.random.default_rng(0)
        if form == "gallery":
            asked = galleries()
            benchmark, answers = asked.benchmark, asked.rankings
        else:
            makers = {"quad": lambda: quads(4), "choice": lambda: choices({"add": 4}, k=3, correct=2)}
            makers["rated"] = lambda: rated(grades(12))
            benchmark = makers[form]()
            answers = Scores(rng.normal(size=benchmark.listed.shape))
        result = evaluate(benchmark, answers, scorer="s", draws=100)
        save_run(tmp_path / form, benchmark, answers, result, {"benchmark": {"source": "a test"}})
        return tmp_path / form

    return make


def _column(file, name, change):
    return lambda folder: change_column(folder / file, name, change)


def _json(file, change):
    return lambda folder: change_json(folder / file, change)


BIG = 10**6


def _first(file, name, value, row=0):
    """Another value in one row of a column."""
    return _column(file, name, at(row, value))


def _inner(name, value):
    """Another first number in the first list of a column of a gallery's answers."""
    return _column("answers.parquet", name, lambda lists: lists[0].__setitem__(0, value))


def _measure(**fields):
    return _json("result.json", lambda v: v["measures"]["group"].update(fields))


def _questions(**fields):
    return _json("manifest.json", lambda v: v["questions"].update(fields))


ANSWERS, POSITIVES, MEMBERS = "answers.parquet", "positives.parquet", "members.parquet"
CASES: list[tuple[str, Change, str]] = [
    ("quad", _first(ANSWERS, "c0_i1", math.nan, 2), r"column 'c0_i1', row 3: not a fi"),
    ("quad", _first(ANSWERS, "c0_i1", None), r"column 'c0_i1', row 1: empty"),
    ("quad", _column(ANSWERS, "question", list.reverse), r"answers\.parquet, row 1: the questions"),
    ("quad", _first("images.parquet", "crop", [1, 2]), r"images\.parquet, row 1: the crop is not of"),
    ("quad", lambda f: drop_column(f / "questions.parquet", "caption_1"), r"no column 'caption_1'"),
    ("quad", lambda f: drop_column(f / ANSWERS, "c1_i1"), r"answers\.parquet: not the scores of"),
    ("choice", _column(ANSWERS, "s0", lambda cells: cells.__setitem__(slice(None), ["x"] * 4)), "wrong type"),
    ("gallery", _first(POSITIVES, "gain", -1.0), r"column 'gain', row 1: out of range"),
    ("gallery", _first(POSITIVES, "gain", 0.0), "a positive's gain is out of range"),
    ("gallery", _inner("above", -2), r"column 'above', within the lists, row 1: out of range; given: -2"),
    ("gallery", _inner("above", BIG), "items above and level with a right answer cannot"),
    ("gallery", _column(ANSWERS, "above", lambda c: c[0].pop()), r"column 'above', row 1: not as"),
    ("gallery", _first(POSITIVES, "item", BIG), "a right answer is outside the gallery"),
    ("gallery", _first("questions.parquet", "query", BIG), "do not fit each other: "),
    ("gallery", _first(ANSWERS, "depth", BIG), r"column 'depth': out of range"),
    ("gallery", _first(MEMBERS, "owner", BIG, -1), "a caption's image is no image of the gallery"),
    ("gallery", _column(MEMBERS, "kind", list.reverse), "not images first, then captions"),
    ("gallery", _inner("items", BIG), "'items': out of range; given: 1000000"),
    ("rated", _first("questions.parquet", "image", BIG), "a question points to image 1000000"),
    (
        "quad",
        _json("result.json", lambda v: v["ties"].update(policy="lenient")),
        "field 'ties.policy': wrong",
    ),
    ("quad", _measure(n="9"), "field 'measures.group.n': wrong"),
    ("quad", _json("manifest.json", lambda v: v.pop("digests")), r"manifest\.json: no field 'digests'"),
    ("quad", _questions(form=3), "field 'form': wrong value"),
    ("quad", _json("card.json", lambda v: v.update(form=3)), r"card\.json, field 'form': wrong value"),
    ("choice", _json("manifest.json", lambda v: v["questions"].pop("asks")), "no field 'asks'"),
    ("choice", _questions(correct=9), "candidates does not fit"),
    ("choice", _json("manifest.json", lambda v: v.update(schema=3)), "unknown version of a run folder"),
    ("quad", _json("manifest.json", lambda v: v["digests"].update({"../x": "y"})), "names a file outside of"),
]


@pytest.mark.parametrize(("form", "change", "line"), CASES)
def test_a_tampered_run_is_refused(run, form, change, line):
    folder = run(form)
    change(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    if "../x" not in manifest.get("digests", {"../x": ""}):
        reseal(folder)
    refuses(line, load_run, folder)


def _error(read, folder):
    """The line of an error of ours, None where there was none; anything else is a failure of the test."""
    try:
        read(folder)
    except CounterfoilError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("kind", "every"), [("benchmark", 1), ("run", 12), pytest.param("run", 1, marks=pytest.mark.slow)]
)
def test_no_field_can_be_of_another_type(run, quads, tmp_path, kind, every):
    """Whatever field of its JSON is gone or of another type: the folder loads, or it is an error of ours."""
    if kind == "run":
        folder, read, sealed = run("quad"), load_run, "result.json"
    else:
        folder, read, sealed = tmp_path / "toy", load, "card.json"
        save(quads(4), folder)
    refused = 0
    for file in ("manifest.json", sealed):
        whole = (folder / file).read_text()
        for what, value in islice(json_faults(json.loads(whole)), 0, None, every):
            (folder / file).write_text(json.dumps(value))
            if file == sealed:
                reseal(folder)
            error = _error(read, folder)
            refused += error is not None
            assert error is None or file in error or "digests" in what or kind == "benchmark", (what, error)
            assert error is None or folder.name in error, (what, error)
        (folder / file).write_text(whole)
        reseal(folder)
    read(folder)
    assert refused > 10 / every


def _twice(file):
    return _column(file, "id", lambda ids: ids.__setitem__(1, ids[0]))


BENCHMARKS: list[tuple[Change, str]] = [
    (_first("questions.parquet", "image_0", -1), r"column 'image_0', row 1: out of range"),
    (_first("questions.parquet", "image_0", 99), "a question points to image 99"),
    (_twice("questions.parquet"), "'id', row 2: occurs twice"),
    (_twice("captions.parquet"), "'id', row 2: occurs twice"),
    (
        _column("captions.parquet", "text", lambda c: c.__setitem__(slice(None), [*range(len(c))])),
        "wrong type",
    ),
    (_first("images.parquet", "digest", "x"), "only one of 'file' and 'digest' is there"),
    (lambda f: drop_column(f / "images.parquet", "crop"), r"images\.parquet: no column 'crop'"),
    (_json("card.json", lambda v: v.update(size="many")), r"card\.json, field 'size': wrong value"),
    (_json("manifest.json", lambda v: v.update(form="riddle")), "field 'form': wrong value; given: 'riddle'"),
    (_json("manifest.json", lambda v: v.update(groupings=["colour"])), "no column 'group:colour'"),
]


@pytest.mark.parametrize(("change", "line"), BENCHMARKS)
def test_a_tampered_benchmark_is_refused(quads, tmp_path, change, line):
    save(quads(4), tmp_path / "toy")
    change(tmp_path / "toy")
    reseal(tmp_path / "toy")
    refuses(line, load, tmp_path / "toy")
