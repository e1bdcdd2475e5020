"""One contract over both places: a folder and S3."""

import multiprocessing
import os
import secrets
import time

import pytest

from bucket_servers import cutter, new_bucket, s3_at, surroundings
from counterfoil.errors import InputError, StorageError
from counterfoil.storage import open_store
from counterfoil.storage.buckets import S3Store
from counterfoil.storage.object_store import HEAD
from refusals import refuses


@pytest.fixture(scope="module")
def bucket(s3):
    with s3_at(s3):
        return new_bucket()


@pytest.fixture(params=["folder", "s3"])
def place(request, tmp_path):
    if request.param == "folder":
        yield open_store(tmp_path / "cache")
    else:
        with s3_at(request.getfixturevalue("s3")):
            yield open_store(f"s3://{request.getfixturevalue('bucket')}/{secrets.token_hex(8)}/a cache")


def test_names_hold_what_was_written_last(place):
    assert place.read("v1/a b") is None
    assert not place.entries()
    place.write("v1/a b", b"one")
    place.write("v1/a b", b"two!")
    place.write("v1/c/d", b"")
    place.write("v10/e", b"other")
    place.write("f", b"other")
    data, tag = place.read("v1/a b")
    assert data == b"two!"
    assert place.read("v1/a b").tag == tag
    assert [entry.name for entry in place.entries()] == ["f", "v1/a b", "v1/c/d", "v10/e"]
    assert [(entry.name, entry.size) for entry in place.entries("v1/")] == [("v1/a b", 4), ("v1/c/d", 0)]
    assert all(-1.0 <= entry.age < 60 for entry in place.entries())


def test_a_name_is_created_once_and_replaced_by_those_who_saw_it_last(place):
    assert place.replace("lease", b"first", "")
    assert not place.replace("lease", b"second", "")
    seen = place.read("lease")
    assert seen.data == b"first"
    assert place.replace("lease", b"third", seen.tag)
    assert not place.replace("lease", b"late", seen.tag)
    assert place.read("lease").data == b"third"
    assert not place.remove("lease", seen.tag)
    assert place.remove("lease", place.read("lease").tag)
    assert not place.remove("lease")
    assert not place.replace("lease", b"gone", seen.tag)
    assert place.read("lease") is None
    assert place.replace("lease", b"again", "")
    assert place.remove("lease")
    assert not place.entries()


def test_ages_are_counted_by_the_place_and_start_again_at_a_touch(place):
    assert place.age("a") is None
    assert not place.touch("a")
    place.write("a", b"kept")
    tag = place.read("a").tag
    time.sleep(1.1)
    # A bucket counts in whole seconds.
    assert 0.9 <= place.age("a") < 30
    began = time.monotonic()
    assert place.touch("a")
    assert place.age("a") <= time.monotonic() - began + 1.0
    assert place.read("a") == (b"kept", tag)


def test_entries_are_opened_in_order_and_large_ones_by_their_beginning(place, monkeypatch):
    monkeypatch.setattr("counterfoil.storage.buckets.READS", 2)
    sizes = {f"n/{number:02d}": 10 + number for number in range(9)}
    sizes |= {"n/50": 8 * HEAD, "n/51": 8 * HEAD}
    for name, size in sizes.items():
        place.write(name, name.encode() + b"." * (size - len(name)))
    asked = []

    def wanted(head):
        asked.append(head)
        return head.startswith(b"n/51")

    entries = place.entries("n/")
    place.remove("n/07")
    result = {}
    for entry, file in place.opened(entries, wanted):
        with file:
            result[entry.name] = file.read()
    distant = isinstance(place, S3Store)
    passed = {"n/07"} | ({"n/50"} if distant else set())
    assert list(result) == [name for name in sizes if name not in passed]
    assert all(result[name].startswith(name.encode()) and len(result[name]) == sizes[name] for name in result)
    assert [len(head) for head in asked] == ([HEAD, HEAD] if distant else [])


def _count(folder, times):
    place = open_store(folder)
    for _ in range(times):
        while True:
            data, tag = place.read("count")
            if place.replace("count", b"%d" % (int(data) + 1), tag):
                break


def test_processes_share_a_folder_and_leave_nothing_beside_its_names(tmp_path):
    open_store(tmp_path).write("count", b"0")
    spawn = multiprocessing.get_context("fork")
    workers = [spawn.Process(target=_count, args=(tmp_path, 20)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert open_store(tmp_path).read("count").data == b"60"
    assert os.listdir(tmp_path) == ["count"]


def test_what_may_not_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match=r"file/a: cannot be written: File exists"):
        open_store(tmp_path / "file").write("a", b"")
    with pytest.raises(InputError, match=r"http://host/a: .*given: http; allowed: a folder, s3://"):
        open_store("http://host/a")
    refuses(r"no bucket in the URL", open_store, "s3://", error=InputError)


@pytest.fixture
def impatient(monkeypatch):
    """Requests are tried once, which saves seconds of waiting in between."""
    monkeypatch.setattr("counterfoil.storage.buckets.TRIES", 1)


@pytest.fixture
def cut(s3):
    with cutter(s3) as proxy:
        yield proxy


@pytest.mark.usefixtures("impatient")
def test_a_put_that_is_cut_leaves_nothing_and_an_old_object_stays(s3, cut):
    data = os.urandom(1 << 20)
    with s3_at(s3):
        bucket = new_bucket()
        place = open_store(f"s3://{bucket}/cache")
        place.write("old", b"whole")
    with s3_at(cut.url):
        cut.after = 1 << 19
        with pytest.raises(
            StorageError, match=rf"s3://{bucket}/cache/new: cannot be reached: .*; check the net"
        ):
            place.write("new", data)
        refuses(r"cannot be reached", place.write, "old", data, error=StorageError)
        assert cut.cuts >= 2
    with s3_at(s3):
        assert [entry.name for entry in place.entries()] == ["old"]
        assert place.read("old").data == b"whole"
        place.write("new", data)
        assert place.read("new").data == data


def test_a_writer_knows_its_own_object_where_the_answer_was_lost(s3, cut):
    with s3_at(cut.url):
        place = open_store(f"s3://{new_bucket()}/cache")
        cut.lose = True
        assert place.replace("lease", b"mine", "")
        tag = place.read("lease").tag
        cut.lose = True
        assert place.replace("lease", b"mine again", tag)
        assert place.read("lease").data == b"mine again"
        assert cut.cuts == 2
        assert not place.replace("lease", b"mine again", "")


@pytest.mark.usefixtures("impatient")
def test_what_is_wrong_at_a_distance_is_one_line(s3, tmp_path):
    with s3_at(s3):
        place = open_store("s3://there-is-none/cache")
        for ask in (place.entries, lambda: place.read("a"), lambda: place.write("a", b"")):
            refuses(r"s3://there-is-none/cache.*: no such bucket; check its", ask, error=StorageError)
    alone = surroundings(AWS_ENDPOINT_URL=s3, AWS_EC2_METADATA_DISABLED="true", HOME=str(tmp_path))
    with alone, pytest.raises(StorageError, match=r"no credentials; set AWS_PROFILE or AWS_ACCESS_KEY_ID"):
        place.entries()
    with s3_at("http://127.0.0.1:9"), pytest.raises(StorageError, match="cannot be reach"):
        place.read("a")
