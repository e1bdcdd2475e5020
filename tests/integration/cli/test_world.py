"""`counterfoil world`, and the world's benchmarks as `evaluate` takes them."""

import json

import PIL.Image
import pytest

from counterfoil.benchmarks.folder import load
from counterfoil.benchmarks.training_files import read
from counterfoil.world.benchmarks import clips, gallery
from counterfoil.world.ratings import preferences, rated
from counterfoil.world.sample import choices, quads


def test_what_is_built_is_what_is_drawn(counterfoil, tmp_path):
    for what, options, drawn in (
        ("quads", ("--n", 20, "--seed", 3), quads(20, seed=3, size=64)),
        ("quads", ("--n", 20, "--style", "mixed"), quads(20, size=64, styles=("natural", "synthetic"))),
        ("choices", ("--n", 20, "--style", "synthetic"), choices(20, size=64, style="synthetic")),
        ("gallery", ("--n", 6, "--captions-each", 3), gallery(6, size=64, captions_each=3)),
    ):
        out = ("--out", tmp_path / what, "--overwrite")
        said = counterfoil.succeeds("world", "build", what, *out, "--size", 64, *options)
        found = load(tmp_path / what)
        assert found.digest == drawn.digest
        assert [image.read() for image in found.images] == [image.read() for image in drawn.images]
        assert said.out.splitlines()[0].endswith(f"captions: {tmp_path / what}") or what == "gallery"
        assert f"counterfoil evaluate pixels:colours {tmp_path / what}" in said.out


def test_judged_captions_are_built_and_measured(counterfoil, tmp_path):
    made = {
        "rated": (rated(8, seed=3, size=48, style="synthetic"), "8 captions rated, 2 pictures"),
        "preferences": (preferences(9, seed=3, size=48, style="synthetic"), "9 questions, 3 pictures"),
        "clips": (clips(6, seed=3, size=48, style="synthetic"), "6 captions rated, 2 clips"),
    }
    for what, (drawn, said_of_it) in made.items():
        said = counterfoil.succeeds(
            f"world build {what} --n {len(drawn)} --seed 3 --size 48 --style synthetic "
            f"--out {tmp_path}/{what}"
        )
        assert said.out.startswith(said_of_it)
        assert f"counterfoil evaluate metric:cider {tmp_path / what}" in said.out
        assert load(tmp_path / what).digest == drawn.digest
    said = counterfoil.succeeds("evaluate metric:length", *(tmp_path / what for what in made), "--draws 100")
    assert "World, rated, 8 captions, 8 ratings" in said.out
    assert "World, preferences, 9 questions" in said.out


def test_built_folders_and_names_can_be_evaluated(counterfoil, tmp_path):
    folders = []
    for what in ("quads", "choices", "gallery"):
        folders.append(tmp_path / f"my-{what}")
        assert counterfoil("world", "build", what, "--n", 14, "--size", 48, "--out", folders[-1]).code == 0
    counterfoil.succeeds(
        "evaluate pixels:colours", *folders, f"--json {tmp_path}/built.json --out {tmp_path}/runs"
    )
    results = json.loads((tmp_path / "built.json").read_text())
    assert [result["benchmark"] for result in results] == ["world-quads", "world-choices", "world-gallery"]
    assert (tmp_path / "runs" / "my-quads" / "result.json").is_file()
    # A built one is also what --data may name.
    again = counterfoil("evaluate", "pixels:colours", "world-quads", "--data", folders[0], "--json", "-")
    assert json.loads(again.out)["measures"] == results[0]["measures"]


def test_a_gallery_by_name_is_drawn_and_never_read(counterfoil, tmp_path, monkeypatch):
    # A few small pictures.
    monkeypatch.setattr("counterfoil.world.benchmarks.SIZE", 32)
    monkeypatch.setattr("counterfoil.world.benchmarks.IMAGES", 20)
    said = counterfoil.succeeds("evaluate blind:constant world-gallery --ties half --json - --draws 100")
    for measure in json.loads(said.out)["measures"].values():
        assert measure["value"] == pytest.approx(measure["chance"], abs=1e-12)
    counterfoil.refused(f"evaluate blind:constant world-quads --data {tmp_path}", says="is drawn, not read")


def test_training_sets(counterfoil, tmp_path):
    out = tmp_path / "set"
    said = counterfoil.succeeds("world", "build", "training", "--kind", "trohn-text", "--n", 50, "--out", out)
    halves = [read(out, split=split) for split in ("train", "validation")]
    assert [list(half.rows) for half in halves] == [["image", "caption", "negative_caption"]] * 2
    assert f"{len(halves[0])} rows to learn from and {len(halves[1])} for validation" in said.out
    assert halves[0].images[0].decode().size == (48, 48)
    # The same place again, with what a bad generator draws and a filter drops.
    noisy = ("world", "build", "training", "--n", 200, "--failure", 0.5, "--out", out, "--overwrite")
    wrong = int(counterfoil(*noisy).out.splitlines()[1].split()[0])
    assert 70 < wrong < 130
    said = counterfoil(*noisy, "--precision", 1)
    assert "0 of" in said.out
    assert f"the filter kept {200 - wrong} of 200 rows" in said.out
    assert set(read(out, split="train").groupings["faithful"]) == {"yes"}


def test_a_folder_may_be_called_as_what_is_built(counterfoil, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for more in ((), ("--overwrite",)):
        build = ("world", "build", "training", "--n", 20, "--kind", "coco", "--out", "training", *more)
        counterfoil.succeeds(*build)


def test_a_contact_sheet(counterfoil, tmp_path):
    said = counterfoil.succeeds("world", "sheet", "--out", tmp_path / "sheet.png")
    with PIL.Image.open(tmp_path / "sheet.png") as picture:
        assert min(picture.size) > 400
    assert str(tmp_path / "sheet.png") in said.out
    first = (tmp_path / "sheet.png").read_bytes()
    assert counterfoil("world", "sheet", "--out", tmp_path / "again.png").code == 0
    assert (tmp_path / "again.png").read_bytes() == first
    assert counterfoil("world", "sheet", "--seed", 4, "--out", tmp_path / "other.png", "-q").out == ""
    assert (tmp_path / "other.png").read_bytes() != first
    said = counterfoil("world", "sheet", "--style", "natural", "--each", 2, "--out", tmp_path / "one.jpg")
    assert "14 pairs" in said.out
    with PIL.Image.open(tmp_path / "one.jpg") as one:
        assert one.format == "JPEG"
    counterfoil.refused(
        f"world sheet --out {tmp_path}/sheet.gif", says="unknown kind of picture; given: .gif"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("quads --style naturl", "unknown style; given: naturl"),
        ("choices --style mixed", "unknown style; given: mixed; allowed: natural, synthetic"),
        ("quads --kind coco", "--kind does not go with 'quads'"),
        ("quads --captions-each 3", "--captions-each does not go with 'quads'"),
        ("training --style natural", "--style does not go with 'training'"),
        ("training --kind coco --failure 0.5", "nothing is generated in this kind"),
    ],
)
def test_what_cannot_be_built_is_one_line(counterfoil, tmp_path, arguments, words):
    counterfoil.refused(f"world build {arguments} --out {tmp_path}/new", says=words)
    assert not (tmp_path / "new").exists()
