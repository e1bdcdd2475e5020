"""`counterfoil evaluate` and `compare rankings`, on the released files and on tables of one's own."""

import json
from dataclasses import replace

import numpy as np
import pytest

from counterfoil.benchmarks.readers.own import kind_of
from counterfoil.studies.example_files import write_example_files
from counterfoil.world import benchmarks
from counterfoil.world.sample import quads

from .annotator_world import NAMES, made


def _result(counterfoil, *arguments):
    return json.loads(counterfoil.succeeds("evaluate", *arguments, "--json", "-", "--draws", 200).out)


def test_winoground_scores_with_tags(counterfoil, shared_data):
    folder = shared_data / "winoground"
    # The path may be relative to the data folder, as in the README.
    result = _result(counterfoil, "given:scores/clip.jsonl", "winoground", "--data", folder)
    for measures, printed in ((result["measures"], 8.00), (result["groups"]["Both"], 38.46)):
        assert round(100 * measures["group"]["value"], 2) == printed
    # Of people's scores, who give many the same, those that their authors print.
    human = _result(counterfoil, "given:scores/human.jsonl", "winoground", "--data", folder)
    optimistic = human["ties"]["measures"]["optimistic"]
    assert [round(100 * optimistic[n], 2) for n in ("i2t", "t2i", "group")] == [93.0, 91.75, 88.25]


def test_several_benchmarks_are_a_list_and_runs_are_kept(counterfoil, tmp_path, table):
    out = tmp_path / "runs" / "length"
    two = ("evaluate", "blind:length", "pairs", "pairs", "--data", table, "--json", tmp_path / "r.json")
    counterfoil.succeeds(*two)
    assert [result["benchmark"] for result in json.loads((tmp_path / "r.json").read_text())] == ["pairs"] * 2
    counterfoil.refused(*two, "--overwrite", "--out", out, says="written to one run folder")
    assert counterfoil("evaluate", "blind:length", "pairs", "--data", table, "--out", out).code == 0
    assert sorted(path.name for path in (out / "pairs").iterdir()) == [
        "answers.parquet", "captions.parquet", "card.json", "images.parquet", "items.parquet",
        "manifest.json", "questions.parquet", "result.json",
    ]  # fmt: skip


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "mine.csv"
    rows = ["a.jpg,a cat on a mat,a mat on a cat,swap", "b.jpg,two dogs,three dogs,replace"]
    rows += ["c.jpg,a red bus that is very long,a red bus,add"]
    path.write_text("\n".join(["image,caption,negative_caption,type", *rows]))
    return path


def test_signatures(counterfoil, table):
    said = counterfoil("evaluate", "blind:length", "pairs", "--data", table, "--signatures", "--json", "-")
    result = json.loads(said.out)
    assert result["signature"].startswith("ties:strict|ci:")
    lines = [line for line in said.err.splitlines() if line.endswith(result["signature"])]
    assert lines == [f"{name}|{result['signature']}" for name in result["measures"]]


def test_a_limit_says_what_the_whole_would_take(counterfoil, tmp_path, monkeypatch):
    monkeypatch.setitem(benchmarks._DRAWN, "world-quads", lambda _: quads(30, size=32, lazy=True))
    command = ("evaluate", "pixels:colours", "world-quads", "--draws", 100, "--cache", tmp_path, "--limit")
    new = counterfoil(*command, 10)
    assert "all 30 questions would take about " in new.err
    assert " at this speed\n" in new.err
    known = counterfoil(*command, 10)
    assert "part of this came from the cache; --no-cache shows what all would take\n" in known.err
    assert "would take" not in counterfoil(*command, 30).err


def test_of_several_benchmarks_each_takes_the_measures_it_has(counterfoil, monkeypatch):
    monkeypatch.setattr(benchmarks, "IMAGES", 20)
    monkeypatch.setattr(benchmarks, "SIZE", 32)
    both = ["evaluate", "blind:length", "world-gallery", "world-choices", "--draws", 100, "-q", "--json", "-"]
    said = counterfoil.succeeds(*both, "--measure", "recall_at_1", "--measure", "accuracy")
    gallery, choices = (list(result["measures"]) for result in json.loads(said.out))
    assert gallery == ["i2t_recall_at_1", "t2i_recall_at_1", "mean_recall_at_1"]
    assert choices == ["accuracy"]
    # A benchmark that is left without any, and a measure that none has, are mistakes.
    counterfoil.fails(*both, "--measure", "accuracy", says="world-gallery: unknown measure; given: accuracy")
    none_has = "--measure recall_at_1 --measure accuracy --measure group"
    counterfoil.fails(*both, none_has, says="unknown measure; given: group")


def test_a_file_where_the_folder_of_a_run_would_be(counterfoil, tmp_path):
    (tmp_path / "mine.csv").write_text("caption,negative_caption\na cat,a dog\n")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "pairs").write_text("mine")
    command = f"evaluate blind:length pairs --data {tmp_path}/mine.csv --out {tmp_path}/runs"
    counterfoil.fails(command, says="runs/pairs: cannot be written")
    assert (tmp_path / "runs" / "pairs").read_text() == "mine"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables") / "first"
    write_example_files(folder)
    return folder


@pytest.fixture
def here(files, monkeypatch):
    monkeypatch.chdir(files)
    return files


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("pairs", "image caption negative_caption"),
        ("gallery", "image caption"),
        ("ratings", "image caption rating_1 rating_2"),
        ("preferences", "image caption_a caption_b preferred"),
        ("statements", "image statement label"),
    ],
)
def test_kinds_are_told_by_the_columns_of_their_layout(kind, columns):
    assert kind_of(columns.split()) == kind


def test_splits_may_share_ids(counterfoil, here):
    (here / "own.csv").write_text(
        "id,split,caption,negative_caption\n1,train,a cat,a dog\n1,test,two cats,two dogs\n2,test,c,d\n"
    )
    (here / "scores.csv").write_text(
        "split,id,positive_score,negative_score\ntest,1,0.1,0.2\ntest,2,0.2,0.1\ntrain,1,0.2,0.1\n"
    )
    done = counterfoil.succeeds("evaluate", "given:scores.csv", "pairs", "--data", "own.csv", "--draws", 100)
    assert "accuracy  66.67" in done.out


def test_ties_of_kept_scores_are_counted_anew(counterfoil, here):
    for name in ("blind:constant", "blind:random"):
        data = ("pairs", "--data", "pairs.csv", "--draws", 100)
        assert counterfoil("evaluate", name, *data, "--out", f"runs/{name[6:]}").code == 0
    strict = counterfoil("compare", "runs/constant", "runs/random", "--draws", 100)
    half = counterfoil("compare", "runs/constant", "runs/random", "--draws", 100, "--ties", "half")
    lines = [[line.split() for line in done.out.splitlines() if " [" in line] for done in (strict, half)]
    result = [{words[0]: words[1] for words in rows if "−" not in " ".join(words)} for rows in lines]
    assert (result[0]["constant"], result[1]["constant"]) == ("0.00", "50.00")
    assert result[0]["random"] == result[1]["random"]


def test_a_table_is_read_as_the_kind_that_is_asked_for_and_by_any_metric(counterfoil, here):
    for asked in ("metric:length pairs", "blind:length gallery"):
        counterfoil.succeeds(f"evaluate {asked} --data quads.csv --draws 100")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    world = made(tmp_path_factory.mktemp("rankings"))
    card = world.benchmark.card.model_copy(update={"name": "half", "title": "Half"})
    half = replace(world.benchmark, card=card).select(np.arange(len(world.benchmark)) % 2 == 0)
    for name in NAMES:
        world.run(name)
        world.run(name, benchmark=half)
    return world.folder / "runs"


@pytest.mark.parametrize("width", [60, 140])
def test_no_line_is_wider_than_the_terminal(counterfoil, runs, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    said = counterfoil.succeeds("compare rankings", runs, "--draws", 100)
    assert max(map(len, said.out.splitlines())) <= width
    assert "Values of the models in per cent, and their ranks" in said.out
    assert all(name in said.out for name in NAMES)


def test_two_runs_of_one_name_are_told_apart_by_their_folders_or_refused(counterfoil, runs, tmp_path):
    # One folder holds two runs of the same model on the same benchmark: the folders above them name them.
    for name in ("first", "second"):
        for source in (runs / "one" / "mine").iterdir():
            target = tmp_path / name / "one" / "mine" / source.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    folders = [tmp_path / "first", tmp_path / "second", runs / "two" / "mine"]
    said = counterfoil.succeeds("compare rankings", *folders, "--draws 100")
    assert "first/one" in said.out
    assert "second/one" in said.out
