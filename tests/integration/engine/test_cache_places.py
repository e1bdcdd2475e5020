"""A cache at a distance: the same files as in a folder, byte for byte, and the same answers of a run."""

from pathlib import Path

import numpy as np
import pytest

from counterfoil.engine.cache import Cache, beyond, contents, remove
from counterfoil.inputs.files import digest
from counterfoil.models.base import Identity
from counterfoil.storage import open_store

MODEL, OTHER = Identity("open-clip:clip", revision="1"), Identity("open-clip:vit", revision="1")


@pytest.fixture
def url(root):
    """The URL of a cache as the command line has it: as a path."""
    return Path(root)


def _fill(folder):
    rng = np.random.default_rng(7)
    for identity, kind, count in ((MODEL, "images", 300), (MODEL, "captions", 3), (OTHER, "captions", 400)):
        keys = [digest(f"{kind} {number}".encode()) for number in range(count)]
        Cache(folder, identity).write(kind, keys, rng.normal(size=(count, 64)).astype(np.float32))
    parts = [{"vectors": rng.normal(size=(n + 1, 8)).astype(np.float32)} for n in range(3)]
    Cache(folder, MODEL).write_parts("frames", [digest(b"%d" % n) for n in range(3)], parts)


def test_a_cache_at_a_distance_holds_the_files_of_a_folder(url, tmp_path):
    _fill(tmp_path)
    _fill(url)
    near, far = open_store(tmp_path), open_store(url)
    names = [entry.name for entry in near.entries()]
    assert [entry.name for entry in far.entries()] == names
    assert len(names) == 6
    for name in names:
        assert far.read(name).data == near.read(name).data
    asked = [digest(f"captions {number}".encode()) for number in (399, 1, 1000)]
    for identity in (MODEL, OTHER):
        here, there = (Cache(place, identity).read("captions", asked) for place in (tmp_path, url))
        assert there.rows.tolist() == here.rows.tolist()
        assert np.array_equal(there.values, here.values)
        assert Cache(url, identity).shards("captions") == Cache(tmp_path, identity).shards("captions")
    broken = []
    ((_, parts),) = Cache(url, MODEL).stream_parts("frames", [digest(b"2")], broken)
    assert parts["vectors"].shape == (3, 8)
    assert not broken
    # None of the keys are in the large shard, which is known from its beginning.
    assert Cache(url, OTHER).read("captions", [digest(b"unknown")]).values is None


def test_a_damaged_shard_at_a_distance_is_named_and_passed_over(url):
    _fill(url)
    place = open_store(url)
    (name,) = [entry.name for entry in place.entries() if f"{MODEL.key}/captions" in entry.name]
    place.write(name, place.read(name).data[:-40])
    result = Cache(url, MODEL).read("captions", [digest(b"captions 1")])
    assert not len(result.rows)
    assert result.broken == (url / name,)


def test_room_is_made_in_a_cache_at_a_distance(url):
    _fill(url)
    place = open_store(url)
    place.write("thesis.tex", b"mine")
    result = contents(url)
    assert [
        (shelf.model, shelf.kind) for shelf in sorted(result.shelves, key=lambda s: (s.model, s.kind))
    ] == [(MODEL.name, "captions"), (MODEL.name, "frames"), (MODEL.name, "images"), (OTHER.name, "captions")]
    assert result.others == 1
    assert result.size == sum(entry.size for entry in place.entries()) - 4
    gone = beyond(result, result.size - 1)
    assert remove(result, gone) == sum(shard.size for shard in gone) > 0
    left = contents(url)
    assert remove(left, [shard for shelf in left.shelves for shard in shelf.shards]) > 0
    assert [entry.name for entry in place.entries()] == ["thesis.tex"]
