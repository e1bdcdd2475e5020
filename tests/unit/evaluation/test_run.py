"""A run's folder holds everything that later steps need."""

import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from counterfoil import catalog
from counterfoil.benchmarks import Image, Scores
from counterfoil.benchmarks.answers import Rankings
from counterfoil.benchmarks.folder import save
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.run import find_runs, load_run, save_run
from counterfoil.metrics.ties import Ties
from refusals import refuses


def _saved(folder, benchmark, answers, *, scorer="s", named=True):
    result = evaluate(benchmark, answers, scorer=scorer, draws=100)
    manifest = {"benchmark": {"source": "a test"}, "named": named}
    return save_run(folder, benchmark, answers, result, manifest)


def test_the_same_run_gives_the_same_bytes(tmp_path, quads):
    answers = Scores(np.random.default_rng(0).normal(size=(5, 2, 2)))
    for name in ("a", "b"):
        _saved(tmp_path / name, quads(5), answers)
    for file in ("answers.parquet", "items.parquet", "result.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_changed_file_is_named(tmp_path, quads):
    _saved(tmp_path / "run", quads(3), Scores(np.zeros((3, 2, 2))))
    result = json.loads((tmp_path / "run/result.json").read_text())
    result["measures"]["group"]["value"] = 0.99
    (tmp_path / "run/result.json").write_text(json.dumps(result))
    refuses(r"result\.json: the file is not the one the run wrote", load_run, tmp_path / "run")


def test_a_folder_without_runs_is_an_error(tmp_path):
    refuses("no run in this folder", find_runs, [tmp_path])
    refuses("no such run folder", find_runs, [tmp_path / "nowhere"])


def test_a_benchmark_is_no_run_and_a_run_no_benchmark(tmp_path, quads):
    # Both folders have a card, tables of questions and a manifest.
    save(quads(3), tmp_path / "benchmark")
    refuses("benchmark: a benchmark, not a run: it holds no answers", load_run, tmp_path / "benchmark")
    _saved(tmp_path / "run", quads(3), Scores(np.zeros((3, 2, 2))))
    refuses("run: a run, not a benchmark", catalog.benchmark, str(tmp_path / "run"))
    refuses("run: a run, not a benchmark", catalog.benchmark, "pairs", data=tmp_path / "run")


def test_runs_without_a_name_are_named_after_their_folders(tmp_path, quads):
    answers = Scores(np.zeros((3, 2, 2)))
    for scorer in ("clip", "siglip"):
        for name in ("toy", "other"):
            _saved(tmp_path / "runs" / scorer / name, quads(3, name=name), answers, named=False)
    runs = find_runs([tmp_path / "runs" / "clip", tmp_path / "runs" / "siglip"])
    assert [(run.name, run.benchmark.name) for run in runs] == [
        ("clip", "other"), ("clip", "toy"), ("siglip", "other"), ("siglip", "toy"),
    ]  # fmt: skip
    # The same folder named twice is one run; equal names further up are told apart by one more folder.
    assert len(find_runs([tmp_path / "runs", tmp_path / "runs" / "clip"])) == 4
    _saved(tmp_path / "more" / "clip" / "toy", quads(3), answers, named=False)
    names = [run.name for run in find_runs([tmp_path / "runs" / "clip" / "toy", tmp_path / "more"])]
    assert names == ["runs/clip", "more/clip"]


def test_names_that_were_given_count(tmp_path, quads):
    answers, notes = Scores(np.zeros((3, 2, 2))), []
    for folder, scorer in (("a", "clip"), ("b", "vit"), ("c", "clip")):
        _saved(tmp_path / folder / "toy", quads(3), answers, scorer=scorer)
    _saved(tmp_path / "d" / "toy", quads(3), answers, scorer="open-clip:x/y", named=False)
    places = [tmp_path / name for name in "abcd"]
    assert [run.name for run in find_runs([places[0], *places[1::2]], note=notes.append)] == [
        "clip",
        "vit",
        "d",
    ]
    assert notes == []
    names = [run.name for run in find_runs(places, note=notes.append)]
    assert names == ["clip (a)", "vit", "clip (c)", "d"]
    assert notes == ["several runs are called 'clip': their folders stand behind the name"]


@pytest.mark.parametrize("setting", [{"parts": True, "gains": True}, {"rule": True, "parts": True}])
def test_a_gallery_is_loaded_bit_for_bit(tmp_path, galleries, setting):
    asked = galleries(**setting)
    benchmark, rankings = asked.benchmark, asked.rankings
    images = list(benchmark.images)
    images[2:4] = [Image("i2", None, (1, 2, 30, 40), "p"), Image("i3", None, None, None)]
    benchmark = replace(benchmark, images=tuple(images))
    measures = None if "rule" in setting else ["recall_at_7", "mean_mrr", "map_at_r"]
    result = evaluate(benchmark, rankings, scorer="s", draws=100, ties=Ties.HALF, measures=measures)
    saved = save_run(tmp_path / "run", benchmark, rankings, result, {"benchmark": {"source": "a test"}})
    (loaded,) = find_runs([tmp_path])
    assert loaded.result == result
    assert [i.photo for i in loaded.benchmark.images] == [i.photo for i in images]
    np.testing.assert_array_equal(loaded.benchmark.clusters, benchmark.clusters)
    assert set(loaded.items) == set(saved.items) == set(result.measures)
    # What is saved of it once more are the same bytes.
    save_run(tmp_path / "second", loaded.benchmark, loaded.answers, loaded.result, loaded.manifest)
    for path in (tmp_path / "run").iterdir():
        assert path.read_bytes() == (tmp_path / "second" / path.name).read_bytes(), path.name


def test_the_tables_of_a_gallery_can_be_read_alone(tmp_path, galleries):
    asked = galleries(gains=True)
    result = evaluate(asked.benchmark, asked.rankings, scorer="s", draws=50)
    save_run(tmp_path, asked.benchmark, asked.rankings, result, {})
    answers = pq.read_table(tmp_path / "answers.parquet").to_pylist()
    found = asked.benchmark.gallery.i2t.positives
    places = [place for row in answers for place in zip(row["above"], row["level"], strict=True)]
    assert len(places) == 38 + 37
    for query, item, place in zip(found.queries, found.items, places[:38], strict=True):
        line = asked.scores[int(answers[query]["question"].removeprefix("i2t/i"))]
        right = ((line > line[item]).sum(), (line == line[item]).sum())
        assert place == ((-1, 0) if item < 0 else right)
    listed = pq.read_table(tmp_path / "positives.parquet").to_pylist()
    assert [row["gain"] for row in listed[:38]] == found.gains.tolist()
    items = pq.read_table(tmp_path / "items.parquet").to_pylist()
    assert [row["direction"] for row in items] == ["i2t"] * 12 + ["t2i"] * 36
    assert items[20]["measure:i2t_mrr"] is None
    assert items[20]["measure:t2i_mrr"] == items[20]["measure:mean_mrr"]
    members = pq.read_table(tmp_path / "members.parquet").to_pylist()
    assert members[12 + 4] == {"kind": "caption", "owner": 1, "part": None, "code": None}
    captions = pq.read_table(tmp_path / "captions.parquet").to_pylist()
    assert captions[4] == {"id": "c4", "text": "caption 4"}
    best = max(range(36), key=lambda caption: (asked.scores[5, caption], -caption))
    assert (answers[5]["items"][0], answers[5]["scores"][0]) == (best, asked.scores[5, best])


def test_rankings_without_tops_are_kept_too(tmp_path, galleries):
    asked = galleries()
    sides = [
        replace(side, top=side.top[:, :width], top_scores=side.top_scores[:, :width])
        for side, width in ((asked.rankings.i2t, 0), (asked.rankings.t2i, 2))
    ]
    result = evaluate(asked.benchmark, Rankings(*sides), scorer="s", draws=50)
    save_run(tmp_path, asked.benchmark, Rankings(*sides), result, {})
    loaded = load_run(tmp_path).answers
    assert isinstance(loaded, Rankings)
    assert (loaded.i2t.top.shape, loaded.t2i.top.shape) == ((12, 0), (36, 2))
    np.testing.assert_array_equal(loaded.t2i.top, sides[1].top)
