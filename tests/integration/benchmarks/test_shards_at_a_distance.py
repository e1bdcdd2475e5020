"""WebDataset shards behind a URL: the rows, images and errors of shards on a disk, in little memory."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from bucket_servers import copied
from counterfoil.benchmarks.records import Image, TarSource
from counterfoil.benchmarks.training_files import read
from counterfoil.errors import DataError
from counterfoil.inputs.files import Location, location
from counterfoil.models.images import Untouched, prepared
from counterfoil.storage import open_store
from counterfoil.storage.files import open_file
from refusals import refuses
from role_values import pictures
from tar_shards import pair, png, write_tar


@pytest.fixture
def near(tmp_path):
    """Two shards to train on and one to validate on, with every kind of member."""
    for shard in range(2):
        members = []
        for row in range(4):
            seed = 10 * shard + row
            facts = b'{"negative_caption": "not %d", "subset": "s%d"}' % (seed, row % 2)
            members += [*pair(f"k{seed}", seed), (f"k{seed}.json", facts), (f"k{seed}.cls", b"3")]
        write_tar(tmp_path / "shards" / f"train-{shard:03d}.tar", members)
    write_tar(tmp_path / "shards" / "val-000.tar", pair("v", 99))
    return tmp_path / "shards"


def _same(far, near):
    roles = [{role: rows.tolist() for role, rows in data.rows.items()} for data in (far, near)]
    assert roles[0] == roles[1]
    assert (list(far.captions), far.groupings) == (list(near.captions), near.groupings)
    assert (far.name, pictures(far, "image")) == (near.name, pictures(near, "image"))


def test_rows_and_images_are_those_of_a_disk(root, near):
    far = copied(near, f"{root}/shards")
    for given in ("train-{000..001}.tar", "train-{001,000}.tar", "train-001.tar"):
        _same(read(f"{far}/{given}"), read(near / given))
    _same(read(far), read(near))
    _same(read(Path(far), split="validation"), read(near, split="validation"))
    result = read(far)
    assert len(result) == 8
    source = pickle.loads(pickle.dumps(result.images[5].source))
    assert isinstance(source, TarSource)
    assert source.read() == png(11)
    # As it was named, but for the other names of a scheme.
    named = str(location(f"{far}/train-001.tar"))
    assert str(source) == f"{named}, k11.jpg"


def test_images_of_a_batch_are_read_together(root, near):
    images = read(copied(near, f"{root}/shards")).images
    expected = [np.asarray(image.decode()) for image in read(near).images]
    result = [item for batch in prepared([images[:5], images[5:]], Untouched(), workers=0) for item in batch]
    assert all(np.array_equal(*item) for item in zip(result, expected, strict=True))
    gone = Image("gone", TarSource(Path(f"{root}/shards/none.tar"), 512, 9, "a.png"))
    with pytest.raises(DataError, match=r"shards/none.tar: no such (file|bucket)"):
        list(prepared([[images[0], gone, gone]], Untouched(), workers=0))


def test_what_is_wrong_names_the_shard(root, near):
    far = copied(near, f"{root}/shards")
    place = open_store(far)
    whole = (near / "train-000.tar").read_bytes()
    end = max(i for i, byte in enumerate(whole) if byte) // 512 * 512 + 512
    for length in (100, 512, 1000, end - 300, end):
        place.write("cut.tar", whole[:length])
        refuses(r"shards/cut.tar.*(cut off|not a readable tar)", read, f"{far}/cut.tar")
    place.write("odd.tar", b"no tar file at all" * 100)
    refuses(r"shards/odd.tar: not a readable tar file", read, f"{far}/odd.tar")
    refuses(r"shards/train-002.tar: no such (file|shard)", read, f"{far}/train-{{001..002}}.tar")
    place.write("train-000.tar.gz", b"compressed")
    refuses(r"shards/train-000.tar.gz: a compressed shard", read, f"{far}/train-000.tar.gz")
    image = read(f"{far}/train-001.tar").images[-1]
    place.write("train-001.tar", b"short")
    refuses(r"shards/train-001.tar(, k13.jpg: the shard is cut off|: )", image.read)
    place.write("notes/a.txt", b"no shard")
    refuses(r"notes: no shards at this URL; allowed: tar files", read, f"{far}/notes")


def test_a_file_is_read_anywhere(root, monkeypatch):
    data = np.random.default_rng(0).bytes(20_003)
    open_store(root).write("a/large", data)
    where = location(f"{root}/a/large")
    assert isinstance(where, Location)
    monkeypatch.setattr("counterfoil.storage.files._BLOCK", 4000)
    with open_file(where) as file:
        assert file.read() == data
        rng = np.random.default_rng(1)
        for _ in range(10):
            at, size = int(rng.integers(0, len(data))), int(rng.integers(0, 14_000))
            assert (file.seek(at), file.read(size)) == (at, data[at : at + size])
        assert (file.seek(-3, os.SEEK_END), file.read()) == (len(data) - 3, data[-3:])
    refuses("no such file", open_file, Location(where.scheme, f"{where.path}.none"))
    refuses(r"(is a folder|no such file)", open_file, Location(where.scheme, where.path.rpartition("/")[0]))
