"""Outputs of commands: none replaces what is read, or what exists; refused at once."""

import json
import os
from pathlib import Path

import pytest

from unchanged import unchanged

_READ = "would replace what this command reads"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with something to read for every command, which is also the current one."""
    folder = tmp_path / "place"
    folder.mkdir()
    monkeypatch.chdir(folder)
    rows = [f"p{i}.png,a red star {i},a blue moon {i}" for i in range(12)]
    Path("pairs.csv").write_text("image,caption,negative_caption\n" + "\n".join(rows) + "\n")
    Path("votes.csv").write_text("winner,loser\n" + "a,b\n" * 8 + "b,a\n" * 3)
    Path("c.json").write_text(json.dumps({"1": "a red star", "2": "two moons"}))
    Path("r.json").write_text(json.dumps({"1": ["the red star"], "2": ["two white moons"]}))
    return folder


_EVALUATE = ("evaluate", "blind:length", "pairs", "--data", "pairs.csv")
_SCORE = ("captions", "score", "--metrics", "length", "--candidates", "c.json", "--references", "r.json")


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        ((*_EVALUATE, "--json"), "new.json"),
        ((*_SCORE, "--out"), "new.parquet"),
        (("annotate preferences", "votes.csv", "--plot"), "new.svg"),
    ],
)
def test_the_same_command_replaces_its_own_with_overwrite(counterfoil, place, arguments, target):
    with unchanged(place):
        assert counterfoil(*arguments, target).code == 0
    first = Path(target).read_bytes()
    with unchanged(place, new=False):
        words = f"{target}: the file exists; name another file, or replace it with --overwrite"
        counterfoil.refused(*arguments, target, says=words)
    Path(target).write_bytes(b"notes")
    assert counterfoil(*arguments, target, "--overwrite").code == 0
    assert Path(target).read_bytes() == first


def test_a_run_is_replaced_by_its_own_scorer_alone(counterfoil, place):
    run = (*_EVALUATE, "--out", "runs")
    for _ in range(2):
        counterfoil.succeeds(*run)
    with unchanged(place, new=False):
        counterfoil.refused(*run, "--name clip", says="runs/pairs: the folder holds other files (")
    counterfoil.succeeds(*run, "--name clip --overwrite")
    # Of the same name, but another scorer.
    with unchanged(place, new=False):
        other = ("evaluate blind:constant", *run[2:], "--name clip")
        counterfoil.refused(*other, says="a run of another scorer of this name")
    Path("runs/pairs/result.json").write_text("{}")
    with unchanged(place, new=False):
        counterfoil.refused(*run, "--name clip", says="the folder holds other files (")


def test_runs_go_beside_benchmarks_and_never_into_them(counterfoil, place):
    counterfoil.succeeds("world", "build", "choices", "--n", 4, "--size", 32, "--out", "world/choices")
    with unchanged(place, new=False):
        for benchmark in ("world/choices", "world/choices/", "./world/../world/choices"):
            counterfoil.refused(
                f"evaluate blind:length {benchmark} --out world --overwrite", says=f"choices: {_READ}"
            )
        os.chdir("world/choices")
        counterfoil.fails("evaluate", "blind:length", ".", "--out", "..", says=_READ)
    counterfoil.succeeds("evaluate", "blind:length", ".", "--out", "../../runs")
    assert (place / "runs" / "choices" / "manifest.json").is_file()
