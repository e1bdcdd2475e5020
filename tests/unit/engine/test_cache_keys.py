import os
import time

import numpy as np
import pytest

from counterfoil.benchmarks import BytesSource, Caption, FileSource, Image
from counterfoil.benchmarks.records import PixelSource
from counterfoil.engine.cache_keys import image_keys
from counterfoil.engine.plan import check_at_hand, id_key, silent
from refusals import refuses


def files(tmp_path, contents):
    images = []
    for i, data in enumerate(contents):
        path = tmp_path / f"{i}.jpg"
        path.write_bytes(data)
        images.append(Image(f"i{i}", FileSource(path)))
    return images


@pytest.fixture
def settled(monkeypatch):
    """Files count as settled at once: the time of their last change cannot be set."""
    monkeypatch.setattr("counterfoil.engine.cache_keys._UNSETTLED_NS", 0)


@pytest.fixture
def reads(monkeypatch):
    """Names of the files that are really read."""
    seen = []
    original = FileSource.read

    def read(self):
        seen.append(self.path.name)
        return original(self)

    monkeypatch.setattr(FileSource, "read", read)
    return seen


def named(images, cache=None):
    return image_keys(images, cache=cache, progress=silent)


def test_names_follow_content_and_crop_and_are_ids_without_a_source(tmp_path):
    keys = named([*files(tmp_path, [b"a", b"b", b"a"]), Image("memory", BytesSource(b"a"))])
    assert keys[0] == keys[2] == keys[3] != keys[1]
    crops = [None, (0, 0, 1, 1), (0, 0, 1, 2), (0, 0, 1, 1)]
    keys = named([Image(str(i), BytesSource(b"a"), crop) for i, crop in enumerate(crops)])
    assert keys[1] == keys[3]
    assert len(set(keys)) == 3
    keys = named([Image("x"), Image("y"), Image("x")])
    assert keys[0] == keys[2] == id_key(Image("x")) != keys[1]


def test_each_file_is_read_once(tmp_path, reads):
    first, second = files(tmp_path, [b"a", b"b"])
    steps = []
    image_keys(
        [first, second, Image("again", first.source), Image("crop", first.source, (0, 0, 1, 1))],
        cache=None,
        progress=lambda *step: steps.append(step),
    )
    assert sorted(reads) == ["0.jpg", "1.jpg"]
    assert steps[0] == ("reading images", 0, 2)
    assert steps[-1] == ("reading images", 2, 2)


def test_a_second_run_reads_only_what_was_touched(tmp_path, reads, settled):
    images = files(tmp_path, [b"a", b"b", b"c"])
    time.sleep(0.05)  # a tick of a coarse clock
    cache = tmp_path / "cache"
    first = named(images, cache)
    reads.clear()
    assert named(images, cache) == first
    assert reads == []
    # Same size, and the modification time put back: the time of the last change gives it away.
    path = images[1].source.path
    stamp = path.stat()
    path.write_bytes(b"B")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    again = named(images, cache)
    assert reads == ["1.jpg"]
    assert again[1] not in first
    assert (again[0], again[2]) == (first[0], first[2])


def test_a_file_just_written_is_not_remembered(tmp_path, reads):
    # Two writes within one tick of a coarse clock leave the same times.
    images = files(tmp_path, [b"a"])
    named(images, tmp_path / "cache")
    reads.clear()
    named(images, tmp_path / "cache")
    assert reads == ["0.jpg"]


def test_a_damaged_list_only_costs_time(tmp_path, reads, settled):
    images = files(tmp_path, [b"a", b"b"])
    time.sleep(0.05)  # a tick of a coarse clock
    cache = tmp_path / "cache"
    first = named(images, cache)
    (listing,) = cache.glob("files-*")
    listing.write_bytes(listing.read_bytes()[:50])
    reads.clear()
    assert named(images, cache) == first
    assert sorted(reads) == ["0.jpg", "1.jpg"]


def test_a_file_that_cannot_be_read_stops_with_its_name(tmp_path):
    images = files(tmp_path, [b"a", b"b"])
    images[1].source.path.unlink()
    refuses(r"1\.jpg: no such image file", named, images)


def test_missing_images_are_counted_in_one_line(fakes, tmp_path):
    benchmark = fakes.choices(5)
    images = list(benchmark.images)
    images[1] = Image("i1")
    images[3] = Image("i3", FileSource(tmp_path / "gone.jpg"))
    object.__setattr__(benchmark, "images", tuple(images))
    refuses("fake: images are not at hand; given: 2 of 5 missing, first: i1, i3;", check_at_hand, benchmark)
    check_at_hand(benchmark, images=False)


def test_missing_captions_are_counted_in_one_line(fakes):
    benchmark = fakes.choices(3)
    object.__setattr__(benchmark, "captions", tuple(Caption(c.id) for c in benchmark.captions))
    refuses(r"captions have no text; given: 6 of 6 without, first: c0, c1, c2", check_at_hand, benchmark)
    check_at_hand(benchmark, captions=False)


def test_pictures_held_as_pixels_are_named_by_them():
    one = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    images = [
        Image(f"image-{i}", PixelSource(pixels))
        for i, pixels in enumerate([one, one.copy(), one.reshape(3, 2, 3), one + 1])
    ]
    keys = named(images)
    assert keys[0] == keys[1]
    # The same bytes in another shape are another picture.
    assert len(set(keys)) == 3
