"""Released files are fetched whole or not at all, from where they stopped, and checked before they count."""

import hashlib
import json
import os
import urllib.error
from functools import partial

import pytest

from counterfoil.benchmarks.fetching import (
    HOSTS,
    RECORD,
    Release,
    ReleasedFile,
    fetch,
    fetched,
    hub_token,
    release,
    releases,
)
from counterfoil.claims import claim
from counterfoil.errors import DataError, InputError, StorageError, UnknownNameError
from refusals import refuses
from released_files import Host, listing, serving

ONE, TWO = b"one " * 300_000, b"two"
REVISION = "f" * 40


def sha(data):
    return hashlib.sha256(data).hexdigest()


PINNED = Release(
    name="toy",
    title="Toy",
    host="github",
    repository="owner/toy",
    revision=REVISION,
    files=(
        ReleasedFile(path="data/one.json", size=len(ONE), sha256=sha(ONE)),
        ReleasedFile(path="data/two b.json"),
    ),
)
SET = Release(name="set", title="Set", host="hub", repository="owner/set", select="*.parquet")


@pytest.fixture
def host():
    files = {f"owner/toy/{REVISION}/data/one.json": ONE, f"owner/toy/{REVISION}/data/two%20b.json": TWO}
    with serving(Host(files)) as result:
        yield result


@pytest.fixture
def take(host, tmp_path):
    """take(): fetches from the host into the folder of the test."""
    return partial(fetch, PINNED, tmp_path, mirror=host.address)


def test_files_and_a_record_of_them(host, take, tmp_path):
    steps = []
    done = take(progress=lambda *step: steps.append(step))
    assert (tmp_path / "toy/one.json").read_bytes() == ONE
    assert (tmp_path / "toy/two b.json").read_bytes() == TWO
    assert (done.new, done.present, done.unpinned) == (("one.json", "two b.json"), (), ("two b.json",))
    record = json.loads((tmp_path / "toy" / RECORD).read_text())
    assert record["revision"] == REVISION
    assert record["files"]["two b.json"] == {"size": 3, "sha256": sha(TWO), "pinned": False}
    assert steps[-1] == ("two b.json", 3, 3)
    assert ("one.json", len(ONE), len(ONE)) in steps
    assert fetched(PINNED, tmp_path) == tmp_path / "toy"
    assert not list((tmp_path / "toy").glob("*.part"))


def test_what_is_there_is_kept_and_one_fetches_at_a_time(host, take, tmp_path):
    take()
    host.asked.clear()
    done = take()
    assert (done.new, done.present) == ((), ("one.json", "two b.json"))
    assert host.asked == []
    held = claim(tmp_path / "toy", "fetch")
    refuses("another command is writing there", take, error=InputError)
    held.release()
    take()


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_connection_goes_on_where_it_stopped(host, take, tmp_path, ranges):
    host.ranges = ranges
    host.breaks = [400_000, 500_000]
    take()
    assert (tmp_path / "toy/one.json").read_bytes() == ONE
    first = [start for path, start, _ in host.asked if path.endswith("one.json")]
    assert first == ([0, 400_000, 900_000] if ranges else [0, 400_000, 500_000])


def test_another_run_goes_on_where_the_last_one_was_stopped(host, take, tmp_path):
    host.breaks = [100_000] * 4
    refuses("the connection broke 4 times", take)
    assert not (tmp_path / "toy/one.json").exists()
    assert fetched(PINNED, tmp_path) is None
    host.asked.clear()
    take()
    assert host.asked[0][1] == 400_000
    assert (tmp_path / "toy/one.json").read_bytes() == ONE


@pytest.mark.parametrize(
    ("served", "message"),
    [
        (ONE[:-1] + b"x", "not the file that was pinned; given: 1,200,000 bytes, sha256"),
        # One that never ends is stopped at the pinned size.
        (ONE * 20, "larger than the file that was pinned; allowed: 1,200,000 bytes"),
    ],
    ids=["changed", "endless"],
)
def test_a_file_that_is_not_the_pinned_one_is_not_kept(host, take, tmp_path, served, message):
    host.files[f"owner/toy/{REVISION}/data/one.json"] = served
    refuses(message, take)
    assert list((tmp_path / "toy").iterdir()) == []


def test_a_file_without_a_checksum_keeps_the_one_it_was_first_fetched_with(host, take, tmp_path):
    take()
    (tmp_path / "toy/two b.json").write_bytes(b"changed")
    assert fetched(PINNED, tmp_path) is None
    refuses("there is another file of that name", take, error=InputError)
    assert (tmp_path / "toy/two b.json").read_bytes() == b"changed"
    assert take(overwrite=True).new == ("two b.json",)


def test_files_of_others_are_not_replaced(host, take, tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/two b.json").write_bytes(b"mine")
    refuses(r"there is a file of that name already; .* say --overwrite", take, error=InputError)
    assert (tmp_path / "toy/two b.json").read_bytes() == b"mine"


@pytest.mark.parametrize("record", ["", "{}", "[1]", '{"release": "toy"}', "\x00"])
def test_a_broken_record_is_no_record(tmp_path, record):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / RECORD).write_text(record)
    assert fetched(PINNED, tmp_path) is None


def test_addresses_that_lead_nowhere_and_answers_that_are_closed(host, take, tmp_path, monkeypatch):
    del host.files[f"owner/toy/{REVISION}/data/one.json"]
    refuses("cannot be fetched: 404 Not Found; the file has moved", take)
    refuses("Connection refused; is there a network", take, mirror="http://127.0.0.1:9")
    refuses("--mirror: not an address; given: file:///etc", take, mirror="file:///etc", error=InputError)
    closed = []
    monkeypatch.setattr(urllib.error.HTTPError, "close", lambda error: closed.append(error.code))
    host.files.clear()
    refuses("cannot be fetched: 404 Not Found", take)
    assert closed == [404]


def test_what_lies_in_the_place_of_a_part_is_left_alone(host, take, tmp_path):
    part = tmp_path / "toy" / "one.json.part"
    part.parent.mkdir()
    mine = tmp_path / "mine"
    mine.write_bytes(b"mine")
    part.symlink_to(mine)
    refuses(r"one\.json\.part: is no file of a download", take, error=StorageError)
    assert mine.read_bytes() == b"mine"
    part.unlink()
    os.mkfifo(part)
    refuses(r"one\.json\.part: is no file of a download", take, error=StorageError)


@pytest.mark.parametrize("name", ["one.json", RECORD])
def test_no_pipe_is_waited_for(host, take, tmp_path, name):
    (tmp_path / "toy").mkdir()
    os.mkfifo(tmp_path / "toy" / name)
    if name == RECORD:
        assert fetched(PINNED, tmp_path) is None
    else:
        refuses(r"one\.json: is a pipe", take)


class TestDataSetsOfTheHub:
    @pytest.fixture
    def hub(self):
        parquet = {"rfilename": "data/test-0.parquet", "size": 3, "lfs": {"sha256": sha(TWO), "size": 3}}
        files = {
            "api/datasets/owner/set/revision/main": listing(REVISION, parquet, {"rfilename": "README.md"}),
            f"datasets/owner/set/resolve/{REVISION}/data/test-0.parquet": TWO,
        }
        with serving(Host(files)) as result:
            yield result

    def test_its_files_and_the_commit_that_main_is(self, hub, tmp_path):
        done = fetch(SET, tmp_path, mirror=hub.address)
        assert (done.revision, done.new) == (REVISION, ("data/test-0.parquet",))
        assert (tmp_path / "set/data/test-0.parquet").read_bytes() == TWO
        assert done.unpinned == ()

    def test_a_gated_one_needs_a_token(self, hub, tmp_path, monkeypatch):
        hub.token = "secret"
        with pytest.raises(DataError, match=r"401 .*; the data set is gated: accept its licence and set"):
            fetch(SET, tmp_path, mirror=hub.address)
        # The token is the hub's: a mirror is another host.
        refuses("401", fetch, SET, tmp_path, mirror=hub.address, token="secret")
        assert HOSTS["hub"].startswith("https://")
        monkeypatch.setitem(HOSTS, "hub", hub.address)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.setenv("HF_HOME", str(tmp_path))
        assert hub_token() is None
        (tmp_path / "token").write_text("secret\n")
        assert fetch(SET, tmp_path, token=hub_token()).new == ("data/test-0.parquet",)
        monkeypatch.setenv("HF_TOKEN", "mine")
        assert hub_token() == "mine"
        assert "secret" not in (tmp_path / "set" / RECORD).read_text()

    def test_a_pinned_commit_must_be_the_one_served(self, hub, tmp_path):
        pinned = SET.model_copy(update={"revision": "a" * 40})
        listed = listing(REVISION, {"rfilename": "x.parquet"})
        hub.files[f"api/datasets/owner/set/revision/{'a' * 40}"] = listed
        refuses("another commit than the pinned one", fetch, pinned, tmp_path, mirror=hub.address)

    @pytest.mark.parametrize(
        ("said", "message"),
        [
            (b"[]", "no list of a data set's files"),
            (b"{", "no list of a data set's files"),
            (listing(REVISION), "the data set has no such files"),
            (listing(REVISION, {"rfilename": "../../x.parquet"}), "a file outside the folder"),
        ],
    )
    def test_lists_that_are_none(self, hub, tmp_path, said, message):
        hub.files["api/datasets/owner/set/revision/main"] = said
        refuses(message, fetch, SET, tmp_path, mirror=hub.address)


def test_the_checksums_are_those_of_the_released_files(shared_data):
    """Of every file whose checksum is written down and that is at hand."""
    places = {
        "sugarcrepe": "sugarcrepe",
        "sugarcrepe-pp": "sugarcrepe_pp",
        "winoground-scores": "winoground/scores",
        "winoground-tags": "winoground_tags",
        "eccv-caption": "eccv",
        "cxc": "cxc",
    }
    seen = 0
    for name, place in places.items():
        for file in release(name).files:
            if file.sha256:
                data = (shared_data / place / file.target).read_bytes()
                assert (len(data), sha(data)) == (file.size, file.sha256), file.path
                seen += 1
    assert seen == 30


def test_every_release_serves_benchmarks_that_there_are():
    from counterfoil.benchmarks.benchmark import BENCHMARKS

    for item in releases().values():
        assert set(item.serves) <= set(BENCHMARKS)
        assert item.files or (item.host == "hub" and item.select)
        assert item.revision or item.host == "hub"
        assert len({file.target for file in item.files}) == len(item.files)
    refuses("did you mean 'sugarcrepe'", release, "sugarcrape", error=UnknownNameError)
