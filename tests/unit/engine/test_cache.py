import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from counterfoil.engine.cache import SCHEMA, Cache, pair_key
from counterfoil.inputs.files import digest
from counterfoil.models.base import Identity


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
    found = cache.read("captions", keys("x", "d", "b", "y", "a"))
    assert found.rows.tolist() == [1, 2, 4]
    assert found.values.tolist() == rows(4, 2, 1).tolist()
    assert found.values.dtype == np.float32
    assert found.broken == ()


def test_kinds_and_identities_are_apart(cache, tmp_path):
    cache.write("captions", keys("a"), rows(1))
    assert not len(cache.read("images", keys("a")).rows)
    for other in (Identity("m", precision="bf16"), Identity("m", prompt="a photo of {}"), Identity("n")):
        assert not len(Cache(tmp_path, other).read("captions", keys("a")).rows)
    assert len(Cache(tmp_path, Identity("m")).read("captions", keys("a")).rows) == 1


def test_pairs_differ_in_both_halves(cache):
    a, b = keys("a", "b")
    cache.write("pairs", [pair_key(a, b)], np.array([[0.25]]))
    assert cache.read("pairs", [pair_key(b, a), pair_key(a, b), pair_key(a, a)]).rows.tolist() == [1]
    assert cache.read("pairs", [pair_key(a, b)]).values.dtype == np.float64


def test_without_a_folder_nothing_is_kept(tmp_path):
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


def test_every_truncation_is_noticed_and_other_shards_still_answer(cache):
    cache.write("captions", keys("a", "b"), rows(1, 2))
    (victim,) = shard_files(cache)
    cache.write("captions", keys("c"), rows(3))
    whole = victim.read_bytes()
    for length in range(0, len(whole), 7):
        victim.write_bytes(whole[:length])
        found = cache.read("captions", keys("a", "b", "c"))
        assert found.rows.tolist() == [2]
        assert found.broken == (victim,)


def test_a_flipped_bit_never_gives_other_numbers(cache):
    cache.write("captions", keys("a", "b"), rows(1, 2))
    (victim,) = shard_files(cache)
    whole = victim.read_bytes()
    for at in range(0, len(whole), 3):
        victim.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        found = cache.read("captions", keys("a", "b"))
        # Either noticed, or a bit of the archive that means nothing to the arrays.
        assert found.values is None or np.array_equal(found.values, rows(1, 2)), at


def test_values_that_are_not_finite_and_pickles_are_refused(cache):
    place = cache.folder / f"v{SCHEMA}" / cache.identity.key / "captions"
    place.mkdir(parents=True)
    table = np.frombuffer(bytes.fromhex(keys("a")[0]), dtype=np.uint8)[None]
    np.savez(place / "nan.npz", keys=table, values=np.array([[np.nan, 0]], dtype=np.float32))
    np.savez(place / "pickle.npz", keys=table, values=np.array([[object()]]))
    np.savez(place / "other.npz", keys=table, something=np.zeros((1, 2)))
    np.savez(place / "rows.npz", keys=table, values=np.zeros((2, 2)))
    np.savez(place / "keys.npz", keys=table.astype(np.int32), values=np.zeros((1, 2)))
    found = cache.read("captions", keys("a"))
    assert found.values is None
    assert [path.stem for path in found.broken] == ["keys", "nan", "other", "pickle", "rows"]


def test_a_shard_of_another_width_is_passed_over(cache):
    cache.write("captions", keys("a"), rows(1))
    cache.write("captions", keys("b"), np.ones((1, 5), dtype=np.float32))
    found = cache.read("captions", keys("a", "b"))
    assert len(found.rows) == 1
    assert len(found.broken) == 1


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
            found = cache.read("captions", keys(*range(40)))
            assert found.broken == ()
            assert found.values is not None
            assert np.array_equal(found.values, rows(*found.rows))
        return True

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(6)))
    assert Cache(tmp_path, Identity("m")).read("captions", keys(*range(40))).rows.tolist() == list(range(40))
