"""`counterfoil world`, and the world's benchmarks as `evaluate` takes them."""

import json

import pytest

from counterfoil.benchmarks.folder import load
from counterfoil.benchmarks.training_files import read
from counterfoil.world.benchmarks import gallery
from counterfoil.world.ratings import preferences, rated
from counterfoil.world.sample import choices, quads

JUDGED, OF_JUDGED = "--seed 3 --size 48 --style synthetic", {"seed": 3, "size": 48, "style": "synthetic"}


@pytest.mark.parametrize(
    ("built", "draw", "first"),
    [
        ("quads --n 20 --seed 3 --size 64", lambda: quads(20, seed=3, size=64), ""),
        (
            "quads --n 20 --style mixed --size 64",
            lambda: quads(20, size=64, styles=("natural", "synthetic")),
            "",
        ),
        ("choices --n 20 --style synthetic --size 64", lambda: choices(20, size=64, style="synthetic"), ""),
        ("gallery --n 6 --captions-each 3 --size 64", lambda: gallery(6, size=64, captions_each=3), ""),
        (f"rated --n 8 {JUDGED}", lambda: rated(8, **OF_JUDGED), "8 captions rated, 2 pictures"),
        (f"preferences --n 9 {JUDGED}", lambda: preferences(9, **OF_JUDGED), "9 questions, 3 pictures"),
    ],
)
def test_what_is_built_is_what_is_drawn(counterfoil, tmp_path, built, draw, first):
    said = counterfoil.succeeds(f"world build {built} --out {tmp_path}/built")
    result, drawn = load(tmp_path / "built"), draw()
    assert result.digest == drawn.digest
    assert said.out.startswith(first)
    model = "metric:cider" if first else "pixels:colours"
    assert f"counterfoil evaluate {model} {tmp_path}/built" in said.out
    if not first:
        assert [image.read() for image in result.images] == [image.read() for image in drawn.images]


def test_built_folders_and_names_can_be_evaluated(counterfoil, tmp_path):
    kinds = ("quads", "gallery", "rated", "preferences")
    for what in kinds:
        counterfoil.succeeds(f"world build {what} --n 14 --size 32 --out {tmp_path}/my-{what}")
    folders = [tmp_path / f"my-{what}" for what in kinds]
    more = f"--json - --draws 100 --out {tmp_path}/runs"
    said = counterfoil.succeeds("evaluate pixels:colours", *folders[:2], more)
    results = json.loads(said.out)
    assert [result["benchmark"] for result in results] == ["world-quads", "world-gallery"]
    assert (tmp_path / "runs" / "my-quads" / "result.json").is_file()
    # A built one is also what --data may name.
    more = ("--data", folders[0], "--json", "-", "--draws", "100")
    again = counterfoil("evaluate", "pixels:colours", "world-quads", *more)
    assert json.loads(again.out)["measures"] == results[0]["measures"]
    said = counterfoil.succeeds("evaluate metric:length", *folders[2:], "--draws", 100)
    assert "World, rated, 14 captions, 14 ratings" in said.out
    assert "World, preferences, 14 questions" in said.out


def test_training_sets(counterfoil, tmp_path):
    out = tmp_path / "set"
    said = counterfoil.succeeds("world", "build", "training", "--kind", "trohn-text", "--n", 50, "--out", out)
    halves = [read(out, split=split) for split in ("train", "validation")]
    assert f"{len(halves[0])} rows to learn from and {len(halves[1])} for validation" in said.out
    assert "negative_caption" in halves[0].rows
    # The same place again, with what a bad generator draws.
    noisy = ("world", "build", "training", "--n", 200, "--failure", 0.5, "--out", out, "--overwrite")
    assert 70 < int(counterfoil(*noisy).out.splitlines()[1].split()[0]) < 130


def test_a_folder_may_be_called_as_what_is_built(counterfoil, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for more in ((), ("--overwrite",)):
        build = ("world", "build", "training", "--n", 20, "--kind", "coco", "--out", "training", *more)
        counterfoil.succeeds(*build)
