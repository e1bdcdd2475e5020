"""`counterfoil evaluate` on the released files, and on everything that can be wrong with a user's own."""

import json

import pytest

from counterfoil.world import benchmarks
from counterfoil.world.sample import quads


def _result(counterfoil, *arguments):
    said = counterfoil.succeeds("evaluate", *arguments, "--json", "-", "--draws", 200)
    return json.loads(said.out)


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
    """A user's own table: three questions on images that are not at hand."""
    path = tmp_path / "mine.csv"
    path.write_text(
        "image,caption,negative_caption,type\n"
        "a.jpg,a cat on a mat,a mat on a cat,swap\n"
        "b.jpg,two dogs,three dogs,replace\n"
        "c.jpg,a red bus that is very long,a red bus,add\n"
    )
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


def test_of_several_benchmarks_each_takes_the_measures_it_has(counterfoil, shared_data, tmp_path):
    data = ["--data", shared_data / "coco_mini", "--draws", 100, "-q", "--json", "-"]
    both = ["evaluate", "blind:length", "coco-captions", "pmrp", *data]
    said = counterfoil.succeeds(*both, "--measure", "recall_at_1", "--measure", "pmrp")
    captions, pmrp = (list(result["measures"]) for result in json.loads(said.out))
    assert captions == ["i2t_recall_at_1", "t2i_recall_at_1", "mean_recall_at_1"]
    assert pmrp == ["i2t_pmrp", "t2i_pmrp", "mean_pmrp"]
    # A benchmark that is left without any, and a measure that none has, are mistakes.
    counterfoil.fails(*both, "--measure", "pmrp", says="coco-captions: unknown measure; given: pmrp")
    counterfoil.fails(
        *both, "--measure recall_at_1 --measure pmrp --measure group", says="unknown measure; given: group"
    )


def test_a_file_where_the_folder_of_a_run_would_be(counterfoil, tmp_path):
    (tmp_path / "mine.csv").write_text("caption,negative_caption\na cat,a dog\n")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "pairs").write_text("mine")
    counterfoil.fails(
        f"evaluate blind:length pairs --data {tmp_path}/mine.csv --out {tmp_path}/runs",
        says="runs/pairs: cannot be written",
    )
    assert (tmp_path / "runs" / "pairs").read_text() == "mine"
