"""Bad and hostile inputs: one line that names what is wrong, exit code 2, nothing changed or left."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from bucket_servers import new_bucket, s3_at, s3_server, surroundings
from counterfoil.storage import open_place
from faults import sound
from faults.command import run, run_apart, states
from faults.corpus import cases, of_urls
from faults.damage import damages
from faults.reading import READERS
from faults.strangers import KINDS, prepared, shortcomings
from faults.urls import BAD_URLS
from made_once import made_once
from tar_shards import pair, write_tar

pytest.importorskip("torch")

CASES = cases()
#: Longer than any line about an error is.
LONGEST = 1500


@pytest.fixture(scope="session")
def sound_folder(tmp_path_factory):
    """The sound inputs, made once for all processes."""
    with pytest.MonkeyPatch.context() as patch:
        _environment(patch, tmp_path_factory.mktemp("faults"))
        return made_once(tmp_path_factory, "sound", sound.make)


@pytest.fixture
def folder(sound_folder, tmp_path, monkeypatch):
    """The sound inputs for one case: links to the same bytes, which no command may write into."""
    _environment(monkeypatch, tmp_path)
    found = tmp_path / "case"
    shutil.copytree(sound_folder, found, copy_function=os.link)
    (found / "loop").symlink_to("loop")
    return found


def _environment(patch, folder):
    patch.setenv("COUNTERFOIL_CACHE", str(folder / "cache"))
    patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    patch.setenv("XDG_STATE_HOME", str(folder / "state"))
    patch.setenv("COLUMNS", "100")
    patch.delenv("COUNTERFOIL_DATA", raising=False)


def test_the_corpus_is_large_and_covers_every_command():
    from counterfoil.cli import app

    assert len(CASES) >= 500
    commands = {name.partition(" ")[0] for name in app.rows}
    # What these do needs no input of the user's.
    assert commands - {case.command[0] for case in CASES} <= {"cache"}


def _parameters():
    """Every file once, every refusal by its words, a third of all damages, a ninth of the other cases.

    `make slow` runs them all.
    """
    damaged: set[str] = set()
    for number, case in enumerate(CASES):
        of_a_file = case.subject in READERS
        by_words = case.kind in ("content", "refusal")
        drawn = number % (3 if of_a_file else 9) == 0
        chosen = by_words or drawn or (of_a_file and case.subject not in damaged)
        damaged.add(case.subject)
        yield pytest.param(case, id=f"{number}-{case.name}", marks=[] if chosen else [pytest.mark.slow])


@pytest.mark.parametrize("case", list(_parameters()))
def test_a_bad_input_is_one_line(case, folder):
    if case.subject in READERS:
        damages(case.subject)[case.kind](folder / case.subject)
    if case.content is not None:
        (folder / case.subject).write_text(case.content)
    _check(case, folder)


def _check(case, folder):
    """Run the command of a case: one line that names what is wrong, and nothing changed or left."""
    before = states(folder)
    # In the process of all these cases, Arrow has ended it (signal 11) over cells that it reads soundly in a
    # fresh one, which is what a command has.
    apart = case.command[0] == "train" and case.subject.endswith(".parquet")
    ended = (run_apart if apart else run)(list(case.command), folder)
    after = states(folder)
    assert ended.code in ((0, 2) if case.harmless else (2,)), ended.err
    # What a command was told to write it may replace: a training in its own folder.
    kept = {name: state for name, state in before.items() if ended.code or not name.startswith(case.out)}
    assert {name: after.get(name) for name in kept} == kept, "a file that was there is another one now"
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", ended.err + ended.out)
    assert "Hang:" not in ended.err
    assert "Traceback" not in ended.err
    if ended.code == 2:
        assert len(ended.lines) == 1, ended.err
        # What is refused before anything begins is refused by one line and nothing else.
        assert case.kind != "refusal" or (ended.out, ended.err.count("\n")) == ("", 1), ended.err
        assert ended.err.splitlines()[-1] == ended.lines[0]
        assert any(words in ended.lines[0] for words in case.expected), ended.lines[0]
        assert len(ended.lines[0]) < LONGEST
        assert set(after) == set(before), "something was left behind"


_URLS = range(len(BAD_URLS))


@pytest.fixture(scope="module")
def s3():
    """A server of S3, and a bucket with one sound shard."""
    with s3_server() as server:
        with s3_at(server), tempfile.TemporaryDirectory() as folder:
            bucket = new_bucket()
            shard = write_tar(Path(folder) / "a.tar", pair("a", 0))
            open_place(f"s3://{bucket}/shards").write("a.tar", shard.read_bytes())
        yield server, bucket


@pytest.mark.parametrize("number", _URLS, ids=[f"{k}-{BAD_URLS[k].surroundings}" for k in _URLS])
def test_a_bad_url_is_one_line(number, s3, folder, monkeypatch):
    server, bucket = s3
    around, case = list(of_urls(bucket))[number]
    # Requests are tried once, which saves seconds of waiting in between.
    monkeypatch.setattr("counterfoil.storage.buckets.TRIES", 1)
    if around == "server":
        context = s3_at(server)
    elif around == "no-credentials":
        nowhere = str(folder.parent)
        context = surroundings(AWS_ENDPOINT_URL=server, AWS_EC2_METADATA_DISABLED="true", HOME=nowhere)
    else:
        closed = "http://127.0.0.1:9"
        context = s3_at(closed, STORAGE_EMULATOR_HOST=closed, FSSPEC_GCS_TOKEN="anon")
    if around == "no-package":
        monkeypatch.setattr(
            "counterfoil.storage.buckets.importlib.util.find_spec",
            lambda name: None if name in ("s3fs", "gcsfs") else find_spec(name),
        )
    with context:
        _check(case, folder)


@pytest.mark.parametrize(
    "arguments", [("list", "benchmarks", "a\udcffb"), ("evaluate", "blind:random", "no\x1b[31m")]
)
def test_a_process_of_its_own_says_the_same(arguments, tmp_path):
    ended = subprocess.run(
        [sys.executable, "-m", "counterfoil", *map(os.fsencode, arguments)],
        capture_output=True, cwd=tmp_path, timeout=120,
    )  # fmt: skip
    assert ended.returncode == 2
    assert ended.stderr.count(b"\n") == 1
    assert b"\x1b" not in ended.stderr
    assert ended.stderr.startswith(b"counterfoil: ")


#: Every so many cases of a kind.
_EVERY = 31


def test_hostile_inputs_are_many():
    count = {kind: sum(1 for _ in of()) for kind, of in KINDS.items()}
    assert sum(count.values()) >= 500
    assert min(count.values()) >= 100


def test_hostile_inputs_do_nothing_that_they_must_not(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    base = prepared(tmp_path)
    short = {}
    for of in KINDS.values():
        for number, case in enumerate(list(of())[::_EVERY]):
            if wrong := shortcomings(case, base, tmp_path / f"case-{case.kind}-{number}"):
                short[case.kind, case.name] = wrong
    assert short == {}
