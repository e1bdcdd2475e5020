"""How commands are called and what they say: groups, processes, files of arguments, outputs, progress."""

import json
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from counterfoil import terminal
from counterfoil.engine.ray_executor import RayExecutor
from counterfoil.errors import StorageError
from counterfoil.world import benchmarks
from counterfoil.world.sample import quads
from unchanged import unchanged


@pytest.mark.parametrize("group", [(), ("world",), ("list",)])
def test_groups_without_a_command_show_their_help(counterfoil, group):
    result = counterfoil(*group)
    assert "Commands" in result.out
    assert result.err == ""


def test_of_several_processes_the_first_one_speaks_first(counterfoil, monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    assert counterfoil("train", "nothing").code == 2
    assert slept == []
    monkeypatch.setenv("RANK", "1")
    assert "unknown recipe" in counterfoil("train", "nothing").err
    assert len(slept) == 1


def test_arguments_stand_in_a_file_too(counterfoil, tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(
        '[evaluate]\nmodel = "blind:random"\nbenchmarks = ["world-quads"]\nlimit = 20\ndraws = 100\n'
        'measure = ["group"]\nseed = 3\nno_cache = true\n'
        '[compare]\ndrawz = 1\n[audit]\nbenchmarks = "world-quads"\ndraws = 5\n'
    )
    plain = "evaluate blind:random world-quads --limit 20 --draws 100 --json -"
    typed = counterfoil.succeeds(f"{plain} --measure group --seed 4")
    read = counterfoil.succeeds(f"evaluate --config {study} --seed 4 --json -")
    assert json.loads(read.out)["measures"] == json.loads(typed.out)["measures"]
    for command, line in (
        ("compare", "[compare]: unknown argument; given: drawz"),
        ("audit", "study.toml, audit.draws: out of range; given: 5; allowed: 100 to 1,000,000"),
        ("explain", "study.toml: no table of this command; allowed: [explain]"),
    ):
        counterfoil.refused(command, "--config", study, says=line)


def test_outputs_and_switches_in_a_file_count_as_those_that_are_typed(counterfoil, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text("image,caption,negative_caption\na.png,a cat,a dog\n")
    rows = {"0": {"filename": "a.jpg", "caption": "a cat", "negative_caption": "a cat and a dog"}}
    (tmp_path / "add_obj.json").write_text(json.dumps(rows))

    def table(text):
        (tmp_path / "study.toml").write_text(f'[evaluate]\nmodel = "blind:length"\ndraws = 100\n{text}\n')
        return "evaluate --no-cache --config study.toml"

    pairs = 'benchmarks = ["pairs"]\ndata = "p.csv"\n'
    counterfoil.succeeds(table(f'{pairs}json = "r.json"'))
    counterfoil.refused(table(f'{pairs}json = "r.json"'), says="r.json: the file exists")
    counterfoil.succeeds(table(f'{pairs}json = "r.json"\noverwrite = true'))
    for read in ("p.csv", "study.toml"):
        line = f"{read}: would replace what this command reads"
        counterfoil.refused(table(f'{pairs}json = "{read}"\noverwrite = true'), says=line)
    released = 'benchmarks = ["sugarcrepe"]\ndata = "add_obj.json"\n'
    counterfoil.refused(table(released), says="not the number of questions")
    counterfoil.succeeds(table(f"{released}counts = false"))


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("counterfoil.terminal.time.monotonic", lambda: now[0])
    monkeypatch.setenv("COLUMNS", "80")
    return now


def _worked(clock, *, seconds):
    """A stage of as many items as seconds, one a second."""
    with terminal.progress() as report:
        for done in range(seconds + 1):
            clock[0] = float(done)
            report("embedding", done, seconds)


def test_a_line_every_half_minute(clock, capsys):
    _worked(clock, seconds=100)
    lines = [f"embedding: {n} of 100, about {100 - n} s left" for n in (30, 60, 90)]
    assert capsys.readouterr().err.splitlines() == lines


@pytest.mark.parametrize(("name", "lines"), [("verbose", 20), ("quiet", 0), ("ipykernel", 20)])
def test_more_or_less_of_it_and_more_in_a_notebook(clock, capsys, monkeypatch, name, lines):
    if name == "ipykernel":
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    else:
        monkeypatch.setattr(terminal, name, True)
    _worked(clock, seconds=100)
    terminal.note("decided")
    assert len(capsys.readouterr().err.splitlines()) == lines + (name != "quiet")


def test_without_torch_it_is_one_line(counterfoil, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    counterfoil.refused("demo", "--out", tmp_path / "demo", says="counterfoil[demo]")
    assert not (tmp_path / "demo").exists()


def test_a_reason_that_many_cells_share_is_said_once(counterfoil):
    said = counterfoil.succeeds("reproduce", "--paper", "eccv-caption", "--only", "differs")
    words = " ".join(said.out.split())
    # 24 of 25 models; the first and the last with their numbers: (48.50 + 39.95) / 2 and (67.18 + 54.02) / 2.
    assert words.count("Printed is the mean of image to text on COCO 1K and text to image on COCO 5K.") == 1
    assert "ECCV Caption Table 4, VSE0, COCO 1K R@1: 34.14 ≠ 44.23; VSE++, " in words
    assert "Hardest NM, COCO 1K R@1: 49.12 ≠ 60.60. Printed is the mean" in words


@pytest.mark.parametrize("fails", [False, True])
def test_workers_of_a_cluster_go_when_the_command_ends(counterfoil, tmp_path, monkeypatch, fails):
    monkeypatch.setitem(benchmarks._DRAWN, "world-quads", lambda _: quads(40, size=32, lazy=True))
    done: list[str] = []

    def run(self, work, advance):
        done.append("computed")
        if fails:
            raise StorageError("no worker of the Ray cluster has started")
        work.run(range(len(work)), advance)
        return True

    monkeypatch.setattr(RayExecutor, "run", run)
    monkeypatch.setattr(RayExecutor, "close", lambda self: done.append("closed"))
    asked = ("evaluate", "pixels:colours", "world-quads", "--limit", 5, "--draws", 100, "--executor", "ray")
    result = counterfoil(*asked, "--cache", tmp_path / "kept")
    assert (result.code != 0) is fails, result.err
    assert done == ["computed", "closed"]


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


def test_a_run_is_replaced_by_its_own_model_alone(counterfoil, place):
    run = (*_EVALUATE, "--out", "runs")
    for _ in range(2):
        counterfoil.succeeds(*run)
    with unchanged(place, new=False):
        counterfoil.refused(*run, "--name clip", says="runs/pairs: the folder holds files (")
    counterfoil.succeeds(*run, "--name clip --overwrite")
    Path("o.csv").write_text("".join(Path("pairs.csv").read_text().splitlines(True)[:-1]))
    # Of the same name, but another model, or other data.
    with unchanged(place, new=False):
        counterfoil.refused("evaluate blind:random", *run[2:], "--name clip", says="a run of another model")
        counterfoil.refused(*_EVALUATE[:4], "o.csv", "--out runs --name clip", says="or on other data")
    Path("runs/pairs/result.json").write_text("{}")
    with unchanged(place, new=False):
        counterfoil.refused(*run, "--name clip", says="the folder holds files (")


def test_runs_go_beside_benchmarks_and_never_into_them(counterfoil, place):
    counterfoil.succeeds("world", "build", "choices", "--n", 4, "--size", 32, "--out", "world/choices")
    with unchanged(place, new=False):
        for benchmark in ("world/choices", "world/choices/", "./world/../world/choices"):
            into = f"evaluate blind:length {benchmark} --out world --overwrite"
            counterfoil.refused(into, says=f"choices: {_READ}")
        os.chdir("world/choices")
        counterfoil.fails("evaluate", "blind:length", ".", "--out", "..", says=_READ)
    counterfoil.succeeds("evaluate", "blind:length", ".", "--out", "../../runs")
    assert (place / "runs" / "choices" / "manifest.json").is_file()
