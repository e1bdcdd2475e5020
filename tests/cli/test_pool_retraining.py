"""`counterfoil build pool` whose models are trained again between rounds, by a recipe or by a command."""

import json
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from counterfoil.data.tables import read_table
from faults.command import run

from .annotator_world import NAMES, World

pytest.importorskip("torch")
pytestmark = pytest.mark.models

SMALL = ("--set", "steps=20", "--set", "batch_size=8", "--workers", 0, "--no-cache")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A drawn gallery, runs of two small networks over it, and of a scorer that cannot be trained."""
    folder = tmp_path_factory.mktemp("retraining")
    alone = "--workers 0 --no-cache -q"
    for line in (
        "world build training --kind loose --n 60 --size 32 --out loose -q",
        "world build gallery --n 24 --size 32 --out album -q",
        *(
            f"train coco --model small --data loose --steps 10 --batch-size 16 --seed {seed} "
            f"--out net-{name} --workers 0 --device cpu -q"
            for seed, name in enumerate("ab")
        ),
        *(f"evaluate net-{name} album --out runs/{name} --draws 100 {alone}" for name in "ab"),
        f"evaluate pixels:colours album --out runs/colours --draws 100 {alone}",
    ):
        ended = run(line.split(), folder, patience=300)
        assert ended.code == 0, ended.err
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy to work in; what runs name is found from there."""
    shutil.copytree(made, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def rounds(folder: Path) -> list[dict]:
    return json.loads((folder / "rounds.json").read_text())["rounds"]


def test_networks_learn_from_what_was_found(counterfoil, folder: Path) -> None:
    pool = ("build", "pool", "runs/a", "runs/b", "runs/colours", "--rounds", 2, "--k", 3)
    said = counterfoil(*pool, "--out", "fixed", "-q")
    assert said.code == 0, said.err
    said = counterfoil(*pool, "--out", "taught", "--retrain", "coco", *SMALL)
    assert said.code == 0, said.err
    fixed, taught = rounds(folder / "fixed"), rounds(folder / "taught")
    assert taught[0] == fixed[0]
    assert "all there are" in said.out
    found = [row for row in range(len(read_table("taught/positives.csv"))) if row < taught[0]["right"]]
    for name in "ab":
        assert f"{name}: trained again from ckpt:net-{name} on {len(found)} right pairs" in said.err
    remark = next(line for line in said.err.splitlines() if "gave new lists" in line)
    assert remark.endswith("colours 0 %")
    assert " a 0 %" not in remark
    assert "learned from each other's finds" in " ".join(said.err.split())
    # New networks propose other pairs; the list that stays is read further down.
    judged = [read_table(f"{name}/judgements.csv") for name in ("fixed", "taught")]
    pairs = [set(zip(each["image"], each["caption"], strict=True)) for each in judged]
    assert pairs[0] != pairs[1]

    # Run again it takes the trainings that were finished, and ends alike; so does one without the tables.
    weights = sorted((folder / "taught" / "retrained").rglob("model.safetensors"))
    assert len(weights) == 2
    before = [(path, path.stat().st_mtime_ns) for path in weights]
    for name in ("positives.csv", "judgements.csv", "rounds.json"):
        (folder / "taught" / name).unlink()
    again = counterfoil(*pool, "--out", "taught", "--retrain", "coco", *SMALL, "-q")
    assert again.code == 0, again.err
    assert rounds(folder / "taught") == taught
    after = sorted((folder / "taught" / "retrained").rglob("model.safetensors"))
    assert [(path, path.stat().st_mtime_ns) for path in after] == before

    # A trained network answers by itself as its run in the pool did.
    said = counterfoil(
        "evaluate", weights[0].parent, "album", "--json", "-", "-q", "--draws", 100, "--workers", 0
    )
    assert said.code == 0, said.err
    kept = json.loads((weights[0].parent / "run" / "result.json").read_text())
    own = json.loads(said.out)
    assert {k: v["value"] for k, v in own["measures"].items()} == {
        k: v["value"] for k, v in kept["measures"].items()
    }


def test_what_cannot_be_trained_is_one_line(counterfoil, folder: Path) -> None:
    pool = ("build", "pool", "--rounds", 2, "--k", 2, "--out", "new")
    nets = ("runs/a", "runs/b", "--retrain")
    for arguments, words in (
        (("runs/colours", "--retrain", "coco"), "no model can be trained; given: colours; allowed: runs of"),
        ((*nets, "negclip"), "cannot train on judged pairs; given: negclip, which needs negative_caption"),
        ((*nets, "cooc"), "cooc"),
        ((*nets, "coco", "--set", "batch_size=400"), "too few pairs were found to train on; given: "),
        ((*nets, "coco", "--set", "stepz=1"), "stepz"),
        ((*nets, "coco", "--start", "c=net-a"), "--start: no such run; given: c; allowed: a, b"),
        ((*nets, "coco", "--start", "net-a"), "--start needs KEY=VALUE; given: net-a"),
        ((*nets, "coco", "--start", "a=nowhere"), "nowhere"),
        ((*nets, "coco", "--data", "loose"), "loose"),
        (("runs/a", "--set", "steps=1"), "--set is for --retrain; given: steps=1"),
        ((*nets, "coco", "--retrain-command", "true {out}"), "one of them"),
    ):
        said = counterfoil(*pool, *arguments, "-q", "--workers", 0)
        assert (said.code, len(said.err.splitlines())) == (2, 1), (arguments, said.err)
        assert words in said.err, said.err
        assert not (folder / "new").exists(), arguments
    # A checkpoint that was trained on since is not what the run was made with.
    shutil.copytree(folder / "net-b", folder / "net-a", dirs_exist_ok=True)
    said = counterfoil(*pool, *nets, "coco", *SMALL, "-q")
    assert (said.code, len(said.err.splitlines())) == (2, 1)
    assert "a: the model has other weights than the run was made with; given: ckpt:net-a" in said.err
    said = counterfoil(*pool, *nets, "coco", *SMALL, "--start", "a=net-a", "-q")
    assert said.code == 0, said.err


def test_a_scorer_judges_by_the_pictures_of_the_gallery(counterfoil, folder: Path) -> None:
    """It judges as it ranks: of ten nearest items those are right that score at the threshold or above."""
    pool = ("build", "pool", "runs/colours", "--rounds", 1, "--k", 3, "-q", "--workers", 0)
    said = counterfoil(*pool, "--judge", "pixels:colours", "--threshold", -9, "--out", "scored")
    assert said.code == 0, said.err
    (every,) = rounds(folder / "scored")
    said = counterfoil(*pool, "--judge", "pixels:colours", "--threshold", 2.0, "--out", "stricter")
    assert said.code == 0, said.err
    (some,) = rounds(folder / "stricter")
    assert every["judged"] == some["judged"]
    assert 0 < some["right"] < every["right"]


#: Adds to a log, and writes new embeddings of two of the three models, closer to each other than before.
_PROGRAM = """
import csv, pathlib, sys
import numpy as np
positives, out = map(pathlib.Path, sys.argv[1:])
with open(positives, newline="") as file:
    print(len(list(csv.DictReader(file))), file=open("log.txt", "a"))
rng = np.random.default_rng(0)
for name in ("one", "two"):
    with np.load(f"{name}.npz") as held:
        arrays = dict(held)
    arrays["images"] = arrays["images"] + 0.3 * rng.normal(size=arrays["images"].shape)
    np.savez(out / f"{name}.npz", **arrays)
print("of no interest")
"""


def test_a_command_trains(counterfoil, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world.folder)
    (world.folder / "program.py").write_text(_PROGRAM)
    rows = [
        f"{100 + i},{c},{int(world.true[i, c] > 0.8)}"
        for i in range(len(world.true))
        for c in range(world.true.shape[1])
    ]
    (world.folder / "people.csv").write_text("image,caption,gain\n" + "\n".join(rows) + "\n")
    pool = ("build", "pool", *(f"{name}.npz" for name in NAMES), "--judge", "people.csv", "--rounds", 3)
    command = f"{shlex.quote(sys.executable)} program.py {{positives}} {{out}}"
    said = counterfoil(*pool, "--k", 2, "--out", "pooled", "--retrain-command", command, "--json", "-")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    log = (world.folder / "log.txt").read_text().split()
    assert log == [str(each["all_right"]) for each in found["rounds"][:2]]
    (first, second) = [note for note in found["notes"] if "gave new lists" in note]
    assert first.endswith("three 0 %")
    assert "one 0 %" not in first
    # The same lists came back after the second round.
    assert second.endswith("one 0 %, two 0 %, three 0 %")
    said = counterfoil(*pool, "--k", 2, "--out", "pooled", "--retrain-command", command, "--json", "-")
    assert json.loads(said.out)["rounds"] == found["rounds"]
    assert (world.folder / "log.txt").read_text().split() == log
    assert "finished by this command" in " ".join(said.err.split())

    python = shlex.quote(sys.executable)
    renamed = "import shutil, sys; shutil.copy('one.npz', sys.argv[1] + '/four.npz')"
    for wrong, words in (
        (f"{python} program.py {{positives}}", "the command does not say where it writes new lists"),
        (f'{python} "program.py {{out}}', "not a command"),
        (f"{python} -c 'raise SystemExit(3)' {{out}}", "the command failed with exit code 3"),
        ("no-such-program {out}", "the command cannot be run"),
        (f"{python} -c '' {{out}}", "the command wrote no list"),
        (f'{python} -c "{renamed}" {{out}}', "retrained models have other names; given: four, one, two"),
    ):
        said = counterfoil(*pool, "--out", "other", "--retrain-command", wrong, "-q")
        assert (said.code, len(said.err.splitlines())) == (2, 1), said.err
        assert words in said.err, said.err
