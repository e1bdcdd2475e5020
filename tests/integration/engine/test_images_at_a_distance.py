"""Images in a bucket: the same answers as from a folder, byte for byte, and read once to be named."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from bucket_servers import copied
from counterfoil import catalog
from counterfoil.benchmarks import Image
from counterfoil.benchmarks.image_files import image_names
from counterfoil.benchmarks.records import Photos
from counterfoil.engine.session import Session, run
from counterfoil.errors import DataError
from counterfoil.models.base import Identity
from counterfoil.models.images import prepared
from counterfoil.storage import open_store
from counterfoil.storage.files import read_file
from counterfoil.world import quads
from refusals import refuses


@dataclass
class Colours:
    """Embeds an image by the mean colours of its decoded quarters, a caption by its letters."""

    identity: Identity = field(default_factory=lambda: Identity("colours", revision="1"))

    def embed_images(self, batches, *, workers=0):
        for batch in prepared(batches, np.asarray, workers=workers):
            halves = [item[: 2 * (len(item) // 2)].reshape(2, -1, 3) for item in batch]
            yield np.stack([item.mean(axis=1).ravel() for item in halves]).astype(np.float32)

    def embed_captions(self, batches):
        for batch in batches:
            letters = [[(caption.text or "").count(letter) for letter in "aeiour"] for caption in batch]
            yield np.array(letters, dtype=np.float32) + 0.5

    def lengths(self, captions):
        return [len(caption.text or "") for caption in captions]

    def compare(self, captions, images):
        return np.einsum("ij,ij->i", captions.astype(np.float64), images.astype(np.float64))


def _shown(benchmark, folder):
    """The benchmark with its images in a folder."""
    result = Photos(folder).sources([f"{n}.png" for n in range(len(benchmark.images))])
    images = zip(benchmark.images, result.values(), strict=True)
    return replace(benchmark, images=tuple(replace(image, source=source) for image, source in images))


def test_images_and_cache_at_a_distance_give_the_bytes_of_folders(root, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    world = quads(8, size=32)
    (tmp_path / "images").mkdir()
    for n, image in enumerate(world.images):
        (tmp_path / "images" / f"{n}.png").write_bytes(image.read())
    far = copied(tmp_path / "images", Path(f"{root}/images"))

    def answers(images, cache, workers=0):
        session = Session(cache, batch_size=5, workers=workers)
        return run(_shown(world, images), Colours(), session=session).values.tobytes()

    expected = answers(tmp_path / "images", tmp_path / "cache")
    assert answers(far, Path(f"{root}/cache")) == expected
    here, there = open_store(tmp_path / "cache"), open_store(f"{root}/cache")
    shards = [entry.name for entry in here.entries() if entry.name != "files-v1.parquet"]
    assert [entry.name for entry in there.entries()] == shards
    assert all(there.read(name).data == here.read(name).data for name in shards)
    # Nothing is read a second time where the store has tags.
    with patch("counterfoil.storage.files.read_file", side_effect=read_file) as read:
        assert answers(far, Path(f"{root}/cache")) == expected
        assert read.call_count == 0
    open_store(far).write("0.png", world.images[1].read())
    with patch("counterfoil.storage.files.read_file", side_effect=read_file) as read:
        assert answers(far, Path(f"{root}/cache")) != expected
        # For its digest alone: what is in it was embedded before, as another image.
        assert read.call_count == 1


def test_what_is_not_there_is_one_line(root):
    refuses("no such image folder", Photos, Path(f"{root}/none"))
    open_store(f"{root}/images").write("cat.txt", b"no image")
    with pytest.raises(DataError, match=r"none of the 2 images is in this folder; it should hold files like"):
        Photos(Path(f"{root}/images")).sources(["a.jpg", "b.jpg"])
    cut = Photos(Path(f"{root}/images")).source("cat.txt")
    refuses(rf"{root}/images/cat.txt: not an image file", Image("cat", cut).decode)
    open_store(f"{root}/images").remove("cat.txt")
    refuses(rf"{root}/images/cat.txt: no such file", cut.read)


@pytest.fixture(scope="module")
def picture():
    return quads(1, size=32).images[0].read()


def test_images_of_captions_lie_in_a_bucket(root, tmp_path):
    from counterfoil.benchmarks.caption_files import Written
    from counterfoil.jobs.captions import MediaFolder

    world, near = quads(4, size=32), tmp_path / "shown"
    near.mkdir()
    for n, image in enumerate(world.images[:3]):
        (near / f"{n}.png").write_bytes(image.read())
    (near / "notes.txt").write_bytes(b"no image")
    far = copied(near, Path(f"{root}/shown"))
    candidates = Written(tmp_path / "c.json", {"0": ("a",), "2": ("b",)})
    notes = {near: [], far: []}
    of = {folder: MediaFolder(images=folder) for folder in (near, far)}
    result = {folder: media.items(candidates, notes[folder].append) for folder, media in of.items()}
    assert [item.id for item in result[far] or ()] == ["0", "2"]
    assert [item.read() for item in result[far] or ()] == [item.read() for item in result[near] or ()]
    assert len(notes[far]) == len(notes[near]) == 1


def test_photographs_of_coco_lie_in_a_bucket(root, tmp_path, picture):
    from counterfoil.benchmarks.readers.released_captions import photographs

    for name in ("val2014/COCO_val2014_1.jpg", "images/2.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(picture)
        open_store(f"{root}/coco").write(name, picture)
    names = [("COCO_val2014_1.jpg", "1.jpg"), ("2.jpg",), ("3.jpg",)]
    near = photographs(names, ["val2014"], None, tmp_path)
    far = photographs(names, ["val2014"], None, Path(f"{root}/coco"))
    places = [item and item.path.relative_to(tmp_path) for item in near]
    assert places == [item and item.path.relative_to(f"{root}/coco") for item in far]
    assert near[2] is None
    assert Image("1", far[0]).read() == picture
    with pytest.raises(DataError, match="none of the 3 images is in this folder"):
        photographs(names, ["val2014"], None, Path(f"{root}/none"))


def test_images_of_a_benchmark_and_a_table_lie_in_a_bucket_and_are_listed_once(root, tmp_path, picture):
    open_store(f"{root}/val2017").write("1.jpg", picture)
    row = {"filename": "1.jpg", "caption": "a cat", "negative_caption": "a dog"}
    (tmp_path / "swap_obj.json").write_text(json.dumps({"0": row}))
    places = {"data": tmp_path / "swap_obj.json", "images": f"{root}/val2017"}
    result = catalog.benchmark("sugarcrepe", **places, counts=False)
    assert result.images[0].read() == picture
    for name in ("1.png", "2.png"):
        open_store(f"{root}/photos").write(name, picture)
    (tmp_path / "mine.csv").write_text("image,caption,foil\n1.png,a cat,a dog\n2.png,a cat,a dog\n")
    with patch("counterfoil.benchmarks.records.image_names", side_effect=image_names) as listings:
        pairs = catalog.benchmark("pairs", data=tmp_path / "mine.csv", images=f"{root}/photos")
    assert listings.call_count == 1
    assert [image.read() for image in pairs.images] == [picture] * 2
