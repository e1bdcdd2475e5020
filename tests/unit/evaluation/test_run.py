"""A run's folder holds everything that later steps need, and is refused where files were changed."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from contracts.forms import grades, preferred, rated
from counterfoil import catalog
from counterfoil.benchmarks import Image, Scores
from counterfoil.benchmarks.answers import Rankings
from counterfoil.benchmarks.folder import load, save
from counterfoil.errors import CounterfoilError
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.run import find_runs, is_run_of, load_run, save_run
from counterfoil.metrics.ties import Ties
from faults.files import at, change_column, change_json, drop_column, json_faults, reseal
from refusals import refuses
from unchanged import digests


def _saved(folder, benchmark, answers, *, model="s", named=True):
    result = evaluate(benchmark, answers, model=model, draws=100)
    return save_run(folder, benchmark, answers, result, {"benchmark": {"source": "a test"}, "named": named})


def test_folders_that_are_no_runs_and_a_changed_file_are_refused(tmp_path, quads):
    refuses("no run in this folder", find_runs, [tmp_path])
    refuses("no such run folder", find_runs, [tmp_path / "nowhere"])
    # Both folders have a card, tables of questions and a manifest.
    save(quads(3), tmp_path / "benchmark")
    refuses("benchmark: a benchmark, not a run: it holds no answers", load_run, tmp_path / "benchmark")
    _saved(tmp_path / "run", quads(3), Scores(np.zeros((3, 2, 2))))
    refuses("run: a run, not a benchmark", catalog.benchmark, str(tmp_path / "run"))
    refuses("run: a run, not a benchmark", catalog.benchmark, "pairs", data=tmp_path / "run")
    result = json.loads((tmp_path / "run/result.json").read_text())
    result["measures"]["group"]["value"] = 0.99
    (tmp_path / "run/result.json").write_text(json.dumps(result))
    refuses(r"result\.json: the file is not the one the run wrote", load_run, tmp_path / "run")


def test_runs_without_a_name_are_named_after_their_folders(tmp_path, quads):
    answers = Scores(np.zeros((3, 2, 2)))
    for model in ("clip", "siglip"):
        for name in ("toy", "other"):
            _saved(tmp_path / "runs" / model / name, quads(3, name=name), answers, named=False)
    runs = find_runs([tmp_path / "runs" / "clip", tmp_path / "runs" / "siglip"])
    assert [(run.name, run.benchmark.name) for run in runs] == [
        ("clip", "other"), ("clip", "toy"), ("siglip", "other"), ("siglip", "toy"),
    ]  # fmt: skip
    # The same folder named twice is one run; equal names further up are told apart by one more folder.
    assert len(find_runs([tmp_path / "runs", tmp_path / "runs" / "clip"])) == 4
    _saved(tmp_path / "more" / "clip" / "toy", quads(3), answers, named=False)
    names = [run.name for run in find_runs([tmp_path / "runs" / "clip" / "toy", tmp_path / "more"])]
    assert names == ["runs/clip", "more/clip"]


def test_a_run_that_names_its_model_scorer_as_before_is_read(tmp_path, quads):
    saved = _saved(tmp_path, quads(3), Scores(np.zeros((3, 2, 2))))
    for name in ("result.json", "manifest.json"):
        path = tmp_path / name
        path.write_text(path.read_text().replace('"model":', '"scorer":', 1))
    reseal(tmp_path)
    loaded = load_run(tmp_path)
    assert (loaded.result.model, loaded.items["group"].tolist()) == ("s", saved.items["group"].tolist())
    assert is_run_of(tmp_path, model="s", identity=("s",))
    assert not is_run_of(tmp_path, model="t")


def test_names_that_were_given_count(tmp_path, quads):
    answers, notes = Scores(np.zeros((3, 2, 2))), []
    for folder, model in (("a", "clip"), ("b", "vit"), ("c", "clip")):
        _saved(tmp_path / folder / "toy", quads(3), answers, model=model)
    _saved(tmp_path / "d" / "toy", quads(3), answers, model="open-clip:x/y", named=False)
    places = [tmp_path / name for name in "abcd"]
    some = find_runs([places[0], *places[1::2]], note=notes.append)
    assert [run.name for run in some] == ["clip", "vit", "d"]
    assert notes == []
    assert [run.name for run in find_runs(places, note=notes.append)] == ["clip (a)", "vit", "clip (c)", "d"]
    assert notes == ["several runs are called 'clip': their folders stand behind the name"]


@pytest.mark.parametrize("setting", [{"parts": True, "gains": True}, {"rule": True, "parts": True}])
def test_a_gallery_is_loaded_bit_for_bit(tmp_path, galleries, setting):
    asked = galleries(**setting)
    benchmark, rankings = asked.benchmark, asked.rankings
    images = list(benchmark.images)
    images[2:4] = [Image("i2", None, (1, 2, 30, 40), "p"), Image("i3", None, None, None)]
    benchmark = replace(benchmark, images=tuple(images))
    measures = None if "rule" in setting else ["recall_at_7", "mean_mrr", "map_at_r"]
    result = evaluate(benchmark, rankings, model="s", draws=100, ties=Ties.HALF, measures=measures)
    saved = save_run(tmp_path / "run", benchmark, rankings, result, {"benchmark": {"source": "a test"}})
    (loaded,) = find_runs([tmp_path])
    assert loaded.result == result
    assert [i.photo for i in loaded.benchmark.images] == [i.photo for i in images]
    np.testing.assert_array_equal(loaded.benchmark.clusters, benchmark.clusters)
    assert set(loaded.items) == set(saved.items) == set(result.measures)


def test_the_tables_of_a_gallery_can_be_read_alone(tmp_path, galleries):
    asked = galleries(gains=True)
    result = evaluate(asked.benchmark, asked.rankings, model="s", draws=50)
    save_run(tmp_path, asked.benchmark, asked.rankings, result, {})
    answers = pq.read_table(tmp_path / "answers.parquet").to_pylist()
    actual = asked.benchmark.gallery.i2t.positives
    places = [place for row in answers for place in zip(row["above"], row["level"], strict=True)]
    assert len(places) == 38 + 37
    for query, item, place in zip(actual.queries, actual.items, places[:38], strict=True):
        line = asked.scores[int(answers[query]["question"].removeprefix("i2t/i"))]
        right = ((line > line[item]).sum(), (line == line[item]).sum())
        assert place == ((-1, 0) if item < 0 else right)
    listed = pq.read_table(tmp_path / "positives.parquet").to_pylist()
    assert [row["gain"] for row in listed[:38]] == actual.gains.tolist()
    items = pq.read_table(tmp_path / "items.parquet").to_pylist()
    assert [row["direction"] for row in items] == ["i2t"] * 12 + ["t2i"] * 36
    assert items[20]["measure:i2t_mrr"] is None
    assert items[20]["measure:t2i_mrr"] == items[20]["measure:mean_mrr"]
    members = pq.read_table(tmp_path / "members.parquet").to_pylist()
    assert members[12 + 4] == {"kind": "caption", "owner": 1, "part": None, "code": None}
    assert pq.read_table(tmp_path / "captions.parquet").to_pylist()[4] == {"id": "c4", "text": "caption 4"}
    best = max(range(36), key=lambda caption: (asked.scores[5, caption], -caption))
    assert (answers[5]["items"][0], answers[5]["scores"][0]) == (best, asked.scores[5, best])


def test_rankings_without_tops_are_kept_too(tmp_path, galleries):
    asked = galleries()
    sides = [
        replace(side, top=side.top[:, :width], top_scores=side.top_scores[:, :width])
        for side, width in ((asked.rankings.i2t, 0), (asked.rankings.t2i, 2))
    ]
    result = evaluate(asked.benchmark, Rankings(*sides), model="s", draws=50)
    save_run(tmp_path, asked.benchmark, Rankings(*sides), result, {})
    loaded = load_run(tmp_path).answers
    assert isinstance(loaded, Rankings)
    assert (loaded.i2t.top.shape, loaded.t2i.top.shape) == ((12, 0), (36, 2))
    np.testing.assert_array_equal(loaded.t2i.top, sides[1].top)


def again(folder, benchmark, values):
    """The run of these scores, loaded; what is saved of it once more are the same bytes."""
    result = evaluate(benchmark, Scores(values), model="s", draws=20)
    saved = save_run(folder / "run", benchmark, Scores(values), result, {"benchmark": {"source": "made"}})
    loaded = load_run(folder / "run")
    assert loaded.result == saved.result
    # A loaded run takes the pictures of the benchmark it was made of.
    assert loaded.with_benchmark(benchmark).benchmark is benchmark
    save_run(folder / "second", loaded.benchmark, loaded.answers, loaded.result, loaded.manifest)
    assert digests(folder / "run") == digests(folder / "second")
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


def test_a_run_without_a_correlation_is_loaded_and_one_that_was_cut_off_refused(tmp_path):
    loaded, _ = again(tmp_path, rated(grades(12)), np.zeros(12))
    assert loaded.result.measures == {}
    (tmp_path / "run" / "captions.parquet").unlink()
    refuses("a file is missing", load_run, tmp_path / "run")


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
        result = evaluate(benchmark, answers, model="s", draws=100)
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


def _questions(**fields):
    return _json("manifest.json", lambda v: v["questions"].update(fields))


ANSWERS, POSITIVES, MEMBERS = "answers.parquet", "positives.parquet", "members.parquet"
POLICY = _json("result.json", lambda v: v["ties"].update(policy="lenient"))
COUNT = _json("result.json", lambda v: v["measures"]["group"].update(n="9"))
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
    ("quad", POLICY, "field 'ties.policy': wrong"),
    ("quad", COUNT, "field 'measures.group.n': wrong"),
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


@pytest.mark.parametrize("kind", ["benchmark", "run"])
@pytest.mark.parametrize("every", [20, pytest.param(1, marks=pytest.mark.slow)])
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


def _numbered(cells):
    cells[:] = range(len(cells))


BENCHMARKS: list[tuple[Change, str]] = [
    (_first("questions.parquet", "image_0", -1), r"column 'image_0', row 1: out of range"),
    (_first("questions.parquet", "image_0", 99), "a question points to image 99"),
    (_twice("questions.parquet"), "'id', row 2: occurs twice"),
    (_twice("captions.parquet"), "'id', row 2: occurs twice"),
    (_column("captions.parquet", "text", _numbered), "wrong type"),
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
