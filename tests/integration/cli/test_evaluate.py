"""`counterfoil evaluate` on the released files, and on everything that can be wrong with a user's own."""

import json
from pathlib import Path

import numpy as np
import pytest

from counterfoil.world import benchmarks
from counterfoil.world.sample import quads


def _result(counterfoil, *arguments: object) -> dict:
    said = counterfoil.succeeds("evaluate", *arguments, "--json", "-", "--draws", 200)
    return json.loads(said.out)


def test_winoground_scores_with_tags(counterfoil, shared_data: Path) -> None:
    folder = shared_data / "winoground"
    # The path may be relative to the data folder, as in the README.
    result = _result(counterfoil, "given:scores/clip.jsonl", "winoground", "--data", folder)
    names = ("i2t", "t2i", "group")
    assert [round(100 * result["measures"][name]["value"], 2) for name in names] == [30.75, 10.50, 8.00]
    assert [round(100 * result["groups"]["Both"][name]["value"], 2) for name in names] == [
        80.77,
        42.31,
        38.46,
    ]
    assert [round(100 * result["groups"]["2 Main Preds"][name]["value"], 2) for name in names] == [
        18.52,
        3.70,
        1.85,
    ]
    assert [round(100 * result["groups"]["Series"][name]["value"], 2) for name in names] == [8.70, 0, 0]
    human = _result(counterfoil, "given:scores/human.jsonl", "winoground", "--data", folder)
    assert human["ties"]["questions"] >= 35 * 0.5
    assert [round(100 * human["ties"]["measures"]["optimistic"][name], 2) for name in names] == [
        93.0,
        91.75,
        88.25,
    ]


def test_several_benchmarks_are_a_list_and_runs_are_kept(counterfoil, tmp_path: Path, table: Path) -> None:
    out = tmp_path / "runs" / "length"
    two = ("evaluate", "blind:length", "pairs", "pairs", "--data", table, "--json", tmp_path / "r.json")
    counterfoil.succeeds(*two)
    assert [result["benchmark"] for result in json.loads((tmp_path / "r.json").read_text())] == [
        "pairs",
        "pairs",
    ]
    said = counterfoil(*two, "--overwrite", "--out", out)
    _one_line(said, "two benchmarks would be written to one run folder")
    assert counterfoil("evaluate", "blind:length", "pairs", "--data", table, "--out", out).code == 0
    assert sorted(path.name for path in (out / "pairs").iterdir()) == [
        "answers.parquet", "captions.parquet", "card.json", "images.parquet", "items.parquet",
        "manifest.json", "questions.parquet", "result.json",
    ]  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A user's own table: three questions on images that are not at hand."""
    path = tmp_path / "mine.csv"
    path.write_text(
        "image,caption,negative_caption,type\n"
        "a.jpg,a cat on a mat,a mat on a cat,swap\n"
        "b.jpg,two dogs,three dogs,replace\n"
        "c.jpg,a red bus that is very long,a red bus,add\n"
    )
    return path


def test_blind_scorers_need_no_images(counterfoil, table: Path) -> None:
    result = _result(counterfoil, "blind:constant", "pairs", "--data", table)
    assert result["measures"]["accuracy"]["value"] == 0
    assert result["ties"]["rate"] == 1
    result = _result(counterfoil, "blind:constant", "pairs", "--data", table, "--ties", "half")
    assert result["measures"]["accuracy"]["value"] == result["measures"]["accuracy"]["chance"] == 0.5


def _one_line(said, *parts: str) -> None:
    assert said.code == 2, said
    assert said.err.count("\n") == 1, said.err
    assert said.out == ""
    for part in parts:
        assert part in said.err


def test_signatures(counterfoil, table: Path) -> None:
    said = counterfoil("evaluate", "blind:length", "pairs", "--data", table, "--signatures", "--json", "-")
    result = json.loads(said.out)
    assert result["signature"].startswith("ties:strict|ci:")
    lines = [line for line in said.err.splitlines() if line.endswith(result["signature"])]
    assert lines == [f"{name}|{result['signature']}" for name in result["measures"]]


def test_bad_names_suggest_good_ones(counterfoil) -> None:
    _one_line(
        counterfoil("evaluate", "blind:length", "winogrund"), "unknown benchmark", "did you mean 'winoground'"
    )
    _one_line(
        counterfoil("evaluate", "blnd:length", "bivlc"), "unknown kind of scorer", "did you mean 'blind'"
    )
    _one_line(counterfoil("evaluate", "blind:lenght", "bivlc"), "did you mean 'length'")
    _one_line(counterfoil("evaluate", "blind", "bivlc"), "a scorer is written KIND:WHAT")


def test_missing_files_are_named(counterfoil, tmp_path: Path, table: Path) -> None:
    _one_line(counterfoil("evaluate", "given:nowhere.csv", "bivlc"), "nowhere.csv", "no such file")
    _one_line(counterfoil("evaluate", "blind:length", "pairs", "--data", tmp_path / "no.csv"), "no such file")
    _one_line(counterfoil("evaluate", "pixels:colours", "pairs", "--data", table), "a.jpg", "--images")


def test_a_hub_benchmark_without_network_is_one_line(counterfoil) -> None:
    pytest.importorskip("datasets")
    _one_line(counterfoil("evaluate", "blind:length", "bivlc"), "--data")


def test_given_answers_that_do_not_fit(counterfoil, tmp_path: Path, table: Path) -> None:
    def given(text: str):
        (tmp_path / "scores.csv").write_text(text)
        return counterfoil("evaluate", f"given:{tmp_path}/scores.csv", "pairs", "--data", table, "-q")

    assert given("id,s0,s1\n0,.2,.1\n1,.2,.1\n2,.2,.1\n").code == 0
    _one_line(given("id,s0,s1\n0,.2,.1\n1,.2,.1\n"), "2")
    _one_line(given("id,s0,s1\n0,.2,.1\n1,.2,.1\n7,.2,.1\n"), "7")
    _one_line(given("id,s0,s1\n0,.2,.1\n1,.2,.1\n1,.2,.1\n"), "1", "twice")
    _one_line(given("id,s0,s1\n0,.2,.1\n1,nan,.1\n2,.2,.1\n"), "scores.csv", "nan")
    _one_line(given("id,s0,s1\n0,.2,.1\n1,inf,.1\n2,.2,.1\n"), "scores.csv", "inf")
    _one_line(given("id,s0,s1\n0,.2,.1\n1,,.1\n2,.2,.1\n"), "scores.csv")
    _one_line(given("foo,bar\nx,y\n"), "scores.csv")
    _one_line(given(""), "scores.csv")


def test_embeddings_that_do_not_fit(counterfoil, tmp_path: Path, table: Path) -> None:
    rng = np.random.default_rng(0)

    def given(**arrays: np.ndarray):
        np.savez(tmp_path / "e.npz", **arrays)
        return counterfoil("evaluate", f"embeddings:{tmp_path}/e.npz", "pairs", "--data", table)

    assert given(images=rng.normal(size=(3, 8)), captions=rng.normal(size=(6, 8))).code == 0
    _one_line(given(images=rng.normal(size=(3, 8)), captions=rng.normal(size=(6, 7))), "8", "7")
    _one_line(given(images=rng.normal(size=(2, 8)), captions=rng.normal(size=(6, 8))), "2", "3")
    _one_line(given(images=np.full((3, 8), np.nan), captions=rng.normal(size=(6, 8))), "e.npz")
    _one_line(given(pictures=rng.normal(size=(3, 8))), "e.npz")
    (tmp_path / "e.npz").write_bytes((tmp_path / "e.npz").read_bytes()[:100])
    _one_line(counterfoil("evaluate", f"embeddings:{tmp_path}/e.npz", "pairs", "--data", table), "e.npz")


def test_nothing_is_left_behind_by_a_failure(counterfoil, tmp_path: Path, table: Path) -> None:
    out = tmp_path / "runs"
    assert counterfoil("evaluate", "pixels:colours", "pairs", "--data", table, "--out", out).code == 2
    assert not out.exists()


def test_a_limit_says_what_the_whole_would_take(counterfoil, tmp_path, monkeypatch):
    monkeypatch.setitem(benchmarks._DRAWN, "world-quads", lambda _: quads(30, size=32, lazy=True))
    command = ("evaluate", "pixels:colours", "world-quads", "--draws", 100, "--cache", tmp_path, "--limit")
    new = counterfoil(*command, 10)
    assert "all 30 questions would take about " in new.err
    assert " at this speed\n" in new.err
    known = counterfoil(*command, 10)
    assert "part of this came from the cache; --no-cache shows what all would take\n" in known.err
    assert "would take" not in counterfoil(*command, 30).err
