import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from counterfoil.benchmarks import BytesSource, Caption, FileSource, Image
from counterfoil.benchmarks.records import PixelSource
from counterfoil.engine.cache import SCHEMA, Cache
from counterfoil.engine.cache_keys import image_keys
from counterfoil.engine.plan import check_at_hand, id_key, silent
from counterfoil.inputs.files import digest
from counterfoil.models.base import Identity
from engine import fakes
from refusals import refuses


def keys(*names):
    return [digest(str(name).encode()) for name in names]


def rows(*values):
    return np.asarray([[value, -value] for value in values], dtype=np.float32)


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path, Identity("m"))


def shard_files(cache, kind="captions"):
    return sorted((cache.folder / f"v{SCHEMA}" / cache.identity.key / kind).glob("*.npz"))


def test_written_rows_are_found_in_the_order_of_the_keys(cache):
    cache.write("captions", keys("a", "b", "c"), rows(1, 2, 3))
    cache.write("captions", keys("d"), rows(4))
    result = cache.read("captions", keys("x", "d", "b", "y", "a"))
    assert (result.rows.tolist(), result.values.tolist()) == ([1, 2, 4], rows(4, 2, 1).tolist())
    assert (result.values.dtype, result.broken) == (np.float32, ())


def test_kinds_and_identities_are_apart_and_without_a_folder_nothing_is_kept(cache, tmp_path):
    cache.write("captions", keys("a"), rows(1))
    assert not len(cache.read("images", keys("a")).rows)
    for other in (Identity("m", precision="bf16"), Identity("m", prompt="a photo of {}"), Identity("n")):
        assert not len(Cache(tmp_path, other).read("captions", keys("a")).rows)
    assert len(Cache(tmp_path, Identity("m")).read("captions", keys("a")).rows) == 1
    # Pairs differ in both halves.
    a, b = keys("a", "b")
    cache.write("pairs", [a + b], np.array([[0.25]]))
    assert cache.read("pairs", [b + a, a + b, a + a]).rows.tolist() == [1]
    assert cache.read("pairs", [a + b]).values.dtype == np.float64
    cache = Cache(None, Identity("m"))
    cache.write("captions", keys("a"), rows(1))
    cache.sweep()
    assert not len(cache.read("captions", keys("a")).rows)


def test_the_same_shard_has_the_same_bytes(cache, monkeypatch):
    cache.write("captions", keys("a", "b"), rows(1, 2))
    (path,) = shard_files(cache)
    before = path.read_bytes()
    later = time.time() + 10  # archives keep the time of writing
    monkeypatch.setattr(time, "time", lambda: later)
    cache.write("captions", keys("a", "b"), rows(1, 2))
    assert shard_files(cache) == [path]
    assert path.read_bytes() == before


def test_damage_is_noticed_and_other_shards_still_answer(cache):
    cache.write("captions", keys("a", "b"), rows(1, 2))
    (victim,) = shard_files(cache)
    cache.write("captions", keys("c"), rows(3))
    whole = victim.read_bytes()
    for length in range(0, len(whole), 7):
        victim.write_bytes(whole[:length])
        result = cache.read("captions", keys("a", "b", "c"))
        assert (result.rows.tolist(), result.broken) == ([2], (victim,))
    # A flipped bit never gives other numbers.
    for i in range(0, len(whole), 3):
        victim.write_bytes(whole[:i] + bytes([whole[i] ^ 0x10]) + whole[i + 1 :])
        result = cache.read("captions", keys("a", "b"))
        # Either noticed, or a bit of the archive that means nothing to the arrays.
        assert result.values is None or np.array_equal(result.values, rows(1, 2)), i


def test_values_that_are_not_finite_and_pickles_are_refused(cache):
    place = cache.folder / f"v{SCHEMA}" / cache.identity.key / "captions"
    place.mkdir(parents=True)
    table = np.frombuffer(bytes.fromhex(keys("a")[0]), dtype=np.uint8)[None]
    np.savez(place / "nan.npz", keys=table, values=np.array([[np.nan, 0]], dtype=np.float32))
    np.savez(place / "pickle.npz", keys=table, values=np.array([[object()]]))
    np.savez(place / "other.npz", keys=table, something=np.zeros((1, 2)))
    np.savez(place / "rows.npz", keys=table, values=np.zeros((2, 2)))
    np.savez(place / "keys.npz", keys=table.astype(np.int32), values=np.zeros((1, 2)))
    result = cache.read("captions", keys("a"))
    assert result.values is None
    assert [path.stem for path in result.broken] == ["keys", "nan", "other", "pickle", "rows"]


def test_a_shard_of_another_width_is_passed_over(cache):
    cache.write("captions", keys("a"), rows(1))
    cache.write("captions", keys("b"), np.ones((1, 5), dtype=np.float32))
    result = cache.read("captions", keys("a", "b"))
    assert (len(result.rows), len(result.broken)) == (1, 1)


def test_leftovers_of_killed_writers_are_swept_but_not_those_of_living_ones(cache):
    cache.write("captions", keys("a"), rows(1))
    place = shard_files(cache)[0].parent
    old, new = place / ".x.npz.abc.part", place / ".y.npz.abc.part"
    listing = cache.folder / ".files-v1.parquet.abc.part"
    foreign = cache.folder / ".somebody-elses.part"
    for path in (old, new, listing, foreign):
        path.write_bytes(b"half")
    for path in (old, listing, foreign):
        os.utime(path, (time.time() - 7200,) * 2)
    cache.sweep()
    assert not old.exists()
    assert not listing.exists()
    assert foreign.exists()
    assert new.exists()
    assert cache.read("captions", keys("a")).broken == ()


def test_many_writers_and_readers_at_once(tmp_path):
    def work(seed):
        cache = Cache(tmp_path, Identity("m"))
        names = [n for n in range(40) if n % 3 != seed % 3]
        for start in range(0, len(names), 5):
            part = names[start : start + 5]
            cache.write("captions", keys(*part), rows(*part))
            result = cache.read("captions", keys(*range(40)))
            assert result.broken == ()
            assert result.values is not None
            assert np.array_equal(result.values, rows(*result.rows))
        return True

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(6)))
    assert Cache(tmp_path, Identity("m")).read("captions", keys(*range(40))).rows.tolist() == list(range(40))


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
    assert (keys[1], len(set(keys))) == (keys[3], 3)
    keys = named([Image("x"), Image("y"), Image("x")])
    assert keys[0] == keys[2] == id_key(Image("x")) != keys[1]
    # Pictures held as pixels are named by them; the same bytes in another shape are another picture.
    one = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    pictures = (one, one.copy(), one.reshape(3, 2, 3), one + 1)
    keys = named([Image(str(i), PixelSource(pixels)) for i, pixels in enumerate(pictures)])
    assert (keys[0], len(set(keys))) == (keys[1], 3)


def test_each_file_is_read_once(tmp_path, reads):
    first, second = files(tmp_path, [b"a", b"b"])
    steps = []
    image_keys(
        [first, second, Image("again", first.source), Image("crop", first.source, (0, 0, 1, 1))],
        cache=None,
        progress=lambda *step: steps.append(step),
    )
    assert sorted(reads) == ["0.jpg", "1.jpg"]
    assert (steps[0], steps[-1]) == (("reading images", 0, 2), ("reading images", 2, 2))


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
    # A damaged list only costs time.
    (listing,) = cache.glob("files-*")
    listing.write_bytes(listing.read_bytes()[:50])
    reads.clear()
    assert named(images, cache) == again
    assert sorted(reads) == ["0.jpg", "1.jpg", "2.jpg"]


def test_a_file_just_written_is_not_remembered(tmp_path, reads):
    # Two writes within one tick of a coarse clock leave the same times.
    images = files(tmp_path, [b"a"])
    named(images, tmp_path / "cache")
    reads.clear()
    named(images, tmp_path / "cache")
    assert reads == ["0.jpg"]


def test_missing_items_are_counted_in_one_line_and_a_file_that_is_gone_is_named(tmp_path):
    benchmark = fakes.choices(5)
    images = list(benchmark.images)
    images[1] = Image("i1")
    images[3] = Image("i3", FileSource(tmp_path / "gone.jpg"))
    object.__setattr__(benchmark, "images", tuple(images))
    refuses("fake: images are not at hand; given: 2 of 5 missing, first: i1, i3;", check_at_hand, benchmark)
    check_at_hand(benchmark, images=False)
    benchmark = fakes.choices(3)
    object.__setattr__(benchmark, "captions", tuple(Caption(c.id) for c in benchmark.captions))
    refuses(r"captions have no text; given: 6 of 6 without, first: c0, c1, c2", check_at_hand, benchmark)
    check_at_hand(benchmark, captions=False)
    images = files(tmp_path, [b"a", b"b"])
    images[1].source.path.unlink()
    refuses(r"1\.jpg: no such image file", named, images)
