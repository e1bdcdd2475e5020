"""Our own folder: what goes in comes out, and a folder that was tampered with says so."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

import small_galleries
from contracts import forms
from counterfoil.benchmarks.benchmark import Benchmark, card
from counterfoil.benchmarks.folder import SCHEMA_VERSION, is_benchmark_folder, load, save
from counterfoil.benchmarks.forms import Quad, Rated
from counterfoil.benchmarks.records import BytesSource, Caption, FileSource, Image
from counterfoil.benchmarks.videos import FrameFeatures, FrameFolder, Sampling, Video
from counterfoil.errors import CounterfoilError, InputError, StorageError
from counterfoil.store import begin
from refusals import refuses
from unchanged import digests


@pytest.fixture
def quads(jpeg):
    """Two questions; two images of the same bytes, one cropped, one missing; one caption missing."""
    return Benchmark(
        card=card("bivlc").model_copy(update={"size": 2, "counts": {"add": 1}}),
        images=(
            Image("a", BytesSource(jpeg(1)), (1, 2, 11, 12)),
            Image("b", BytesSource(jpeg(1))),
            Image("c", BytesSource(jpeg(2, form="PNG"))),
            Image("d"),
        ),
        captions=tuple(map(Caption, ("c0", "c1", "c2", "c3"), (" a cat\n", "ein Hündchen", None, "x"))),
        questions=Quad(
            ("q/0", "q/1"),
            groupings={"type": ("add", ""), "subset": ("add_obj", "swap_obj")},
            captions=np.array([[0, 1], [2, 3]]),
            images=np.array([[0, 1], [2, 3]]),
        ),
        source="somewhere else",
    )


RATED = forms.rated(forms.grades(4))


@pytest.mark.parametrize(
    ("benchmark", "name", "value", "message"),
    [
        (forms.gallery(), "t2i", None, r"manifest\.json: no field 't2i'; was it edited"),
        (RATED, "raters", None, r"manifest\.json: no field 'raters'; was it edited"),
        (RATED, "schema_version", SCHEMA_VERSION + 1, "a newer counterfoil; given: schema version 5"),
    ],
)
def test_manifests_that_were_edited(tmp_path, benchmark, name, value, message):
    save(benchmark, tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text()) | {name: value}
    edited = {key: field for key, field in manifest.items() if field is not None}
    (tmp_path / "manifest.json").write_text(json.dumps(edited))
    refuses(message, load, tmp_path)


#: The version of the folder by what is in it: what older code reads is written as before.
VERSIONS = {
    "quads": (1, forms.quads),
    "graded gallery": (2, lambda: small_galleries.benchmark(np.random.default_rng(0), 6, 9)),
    "rated with gaps": (3, lambda: forms.rated(np.array([[1.0, np.nan], [0.1 + 0.2, -3.0], [np.nan, 4.0]]))),
}


@pytest.mark.parametrize("which", VERSIONS)
def test_another_form_in_its_place_leaves_nothing_of_it(tmp_path, quads, which):
    """Forms come back to the bit: see the contract of forms."""
    version, make = VERSIONS[which]
    save(make(), tmp_path / "b")
    assert load(tmp_path / "b").digest == make().digest
    assert json.loads((tmp_path / "b/manifest.json").read_text())["schema_version"] == version
    save(quads, tmp_path / "b")
    save(quads, tmp_path / "fresh")
    assert digests(tmp_path / "b") == digests(tmp_path / "fresh")


def test_round_trip(tmp_path, quads):
    save(quads, tmp_path / "b")
    result = load(tmp_path / "b")
    assert (result.card, result.digest, result.captions) == (quads.card, quads.digest, quads.captions)
    assert [(image.id, image.crop) for image in result.images] == [(i.id, i.crop) for i in quads.images]
    for new, old in zip(result.images, quads.images, strict=True):
        assert (new.source and new.read()) == (old.source and old.read())  # the encoded bytes as they were
    assert result.path == tmp_path / "b"
    assert is_benchmark_folder(tmp_path / "b")
    # What was loaded saves to the same bytes as what was saved, also in its own place.
    for name in ("again", "b"):
        before = digests(tmp_path / "b")
        save(result, tmp_path / name)
        assert digests(tmp_path / name) == before
    names = sorted(path.suffix for path in (tmp_path / "b" / "images").iterdir())
    assert names == [".jpg", ".png"]  # four images, three at hand, two different
    next((tmp_path / "b" / "images").iterdir()).write_bytes(b"changed")
    assert len(load(tmp_path / "b", verify=False)) == 2


@pytest.mark.parametrize(
    "name", ["card.json", "questions.parquet", "captions.parquet", "images.parquet", "image"]
)
def test_a_changed_or_missing_file_is_named(tmp_path, quads, name):
    save(quads, tmp_path)
    path = next((tmp_path / "images").iterdir()) if name == "image" else tmp_path / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert refuses("", load, tmp_path).startswith(f"{path}: file was changed after it was saved")
    path.unlink()
    assert refuses("", load, tmp_path).startswith(f"{path}: file of the benchmark is missing")


def test_folders_that_are_no_benchmark_and_references_that_are_missing(tmp_path):
    refuses("not a benchmark that counterfoil saved", load, tmp_path)
    refuses("no such folder", load, tmp_path / "nowhere")
    for text in ("{}", "[", "3", '{"format": "counterfoil benchmark", "schema_version": 1}'):
        (tmp_path / "manifest.json").write_text(text)
        refuses("", load, tmp_path)
    assert not is_benchmark_folder(tmp_path / "nowhere")
    save(RATED, tmp_path / "rated")
    (tmp_path / "rated" / "references.parquet").unlink()
    refuses(r"references\.parquet: file of the benchmark is missing", load, tmp_path / "rated")


def test_other_peoples_folders_are_left_alone(tmp_path, quads):
    (tmp_path / "thesis.tex").write_text("precious")
    refuses(r"the folder holds files; given: thesis\.tex", save, quads, tmp_path, error=InputError)
    refuses("not a folder", save, quads, tmp_path / "thesis.tex", error=InputError)
    assert list(tmp_path.iterdir()) == [tmp_path / "thesis.tex"]


def test_images_of_others_stay_before_and_among_those_of_a_benchmark(tmp_path, quads):
    own = tmp_path / "images" / "holiday.jpg"
    own.parent.mkdir()
    own.write_bytes(b"precious")
    refuses("the folder holds files; given: images", save, quads, tmp_path, error=InputError)
    assert own.read_bytes() == b"precious"
    own.unlink()
    own.parent.rmdir()
    save(quads, tmp_path)
    own.write_bytes(b"precious")
    save(quads, tmp_path)
    assert own.read_bytes() == b"precious"
    assert load(tmp_path).digest == quads.digest


def test_an_image_that_cannot_be_read_leaves_the_folder_as_it_was(tmp_path, quads):
    broken = replace(quads.images[2], source=FileSource(tmp_path / "gone.jpg"))
    other = replace(quads, images=(*quads.images[:2], broken, quads.images[3]))
    refuses("gone", save, other, tmp_path / "b")
    assert not list(tmp_path.iterdir())
    save(quads, tmp_path / "b")
    before = digests(tmp_path)
    refuses("gone", save, other, tmp_path / "b")
    assert digests(tmp_path) == before


def test_a_full_disk_leaves_nothing_behind(tmp_path, quads, monkeypatch):
    """The disk fills up when the manifest is to be moved into place, after all else was written."""
    move = os.replace

    def full(source, target):
        if Path(target).name == "manifest.json":
            raise OSError(28, "No space left on device")
        move(source, target)

    monkeypatch.setattr(os, "replace", full)
    refuses("the disk is full", save, quads, tmp_path, error=StorageError)
    assert not digests(tmp_path)


def test_saving_is_taken_up_again_after_a_stop(tmp_path, quads):
    """A machine that stops before the manifest leaves no benchmark; saving again finishes it."""
    save(quads, tmp_path / "whole")
    save(quads, tmp_path / "half")
    begin(tmp_path / "half", "counterfoil benchmark")  # as saving does first of all
    (tmp_path / "half" / "manifest.json").unlink()
    (tmp_path / "half" / "questions.parquet").write_bytes(b"half")
    (tmp_path / "half" / ".captions.parquet.x.part").write_bytes(b"half")
    refuses("", load, tmp_path / "half", error=CounterfoilError)
    save(quads, tmp_path / "half")
    assert load(tmp_path / "half").digest == quads.digest


class _Stack:
    """Two frames that are drawn when asked for."""

    rate = 2.0

    def __len__(self):
        return 2

    def frame(self, number):
        return PIL.Image.new("RGB", (4, 3), (number * 200, 0, 9))

    def read(self):
        return b"a name for both"

    def __str__(self):
        return "drawn"


def _videos(quads, folder, jpeg):
    """Two parts of one file, features, a folder of frames, drawn frames, and one that is not at hand."""
    folder.mkdir()
    (folder / "clip.MP4").write_bytes(b"a film")
    np.save(folder / "clip.npy", np.arange(6.0).reshape(3, 2))
    (folder / "frames").mkdir()
    for number in (2, 10, 1):
        (folder / "frames" / f"f{number}.jpg").write_bytes(jpeg(number))
    whole = FileSource(folder / "clip.MP4")
    items = (
        Video("v_1", whole, None, "v", 0.5, 1.25, Sampling(count=3)),
        Video("v_2", whole, (0, 0, 3, 2), "v", None, 2.0, Sampling(rate=0.1)),
        Video("f", FrameFeatures(folder / "clip.npy", 12.5)),
        Video("d", FrameFolder(folder / "frames", 25.0)),
        Video("s", _Stack()),
        Video("away", start=1.0),
    )
    rated = Rated(tuple("abcdef"), captions=np.arange(6) % 4, images=np.arange(6), ratings=np.ones((6, 1)))
    return replace(quads, images=items, questions=rated)


def test_videos_round_trip_and_one_that_cannot_be_read_leaves_nothing(quads, tmp_path, jpeg):
    before = _videos(quads, tmp_path / "source", jpeg)
    save(before, tmp_path / "one")
    after = load(tmp_path / "one")
    assert after.digest == before.digest
    for new, old in zip(after.images, before.images, strict=True):
        assert new == replace(old, photo=old.photo or old.id, source=new.source)
    part, other, features, frames, drawn, away = (image.source for image in after.images)
    assert isinstance(part, FileSource)
    assert (part, part.path.suffix, part.read()) == (other, ".mp4", b"a film")
    assert isinstance(features, FrameFeatures)
    assert features.duration == 12.5
    np.testing.assert_array_equal(features.read(), np.arange(6.0).reshape(3, 2))
    assert isinstance(frames, FrameFolder)
    assert frames.rate == 25.0
    # In the order of their numbers, bytes as they were.
    assert frames.read() == jpeg(1) + jpeg(2) + jpeg(10)
    assert isinstance(drawn, FrameFolder)
    assert drawn.rate == 2.0
    assert [drawn.frame(number).getpixel((0, 0)) for number in range(2)] == [(0, 0, 9), (200, 0, 9)]
    assert away is None
    assert len(list((tmp_path / "one" / "images").iterdir())) == 4  # the film is kept once
    save(after, tmp_path / "two")
    assert digests(tmp_path / "two") == digests(tmp_path / "one")
    save(after, tmp_path / "one")  # in place: nothing is lost
    again = load(tmp_path / "one")
    assert again.digest == before.digest
    assert [str(image.source) for image in again.images] == [str(image.source) for image in after.images]
    (frames.path / "000001.jpg").write_bytes(jpeg(7))
    refuses("file was changed after it was saved", load, tmp_path / "one")
    load(tmp_path / "one", verify=False)
    save(quads, tmp_path / "one")
    assert not frames.path.exists()
    lost = replace(before, images=(*before.images[:5], Video("x", FileSource(tmp_path / "lost.mp4"))))
    refuses(r"lost\.mp4", save, lost, tmp_path / "new")
    assert not digests(tmp_path / "new")
