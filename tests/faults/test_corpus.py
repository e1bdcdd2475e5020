"""Bad and hostile inputs: one line that names what is wrong, exit code 2, nothing changed or left."""

import os
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from importlib.util import find_spec

import pytest

from bucket_servers import new_bucket, s3_at, surroundings
from counterfoil.claims import claim
from counterfoil.storage import open_store
from faults import strangers
from faults.command import run, run_apart, states
from faults.command_lines import READERS
from faults.corpus import cases, check, of_urls
from faults.urls import BAD_URLS
from hostile_server import hostile
from tar_shards import pair, write_tar

HOSTILE = list(strangers.cases())
CASES = [*cases(), *HOSTILE]


def test_the_corpus_is_large_and_covers_every_command():
    from counterfoil.cli import app

    assert len(CASES) >= 500
    commands = {name.partition(" ")[0] for name in app.rows}
    # What these do needs no input of the user's.
    assert commands - {case.command[0] for case in CASES} <= {"cache"}


def _parameters():
    """Every file once, every refusal by its words, a third of all damages, a ninth of the other cases and a
    31st of the hostile ones.

    `make slow` runs them all.
    """
    damaged: set[str] = set()
    for number, case in enumerate(CASES):
        of_a_file = case.subject in READERS
        drawn = number % (3 if of_a_file else 31 if number >= len(CASES) - len(HOSTILE) else 9) == 0
        chosen = case.kind in ("content", "refusal") or drawn or (of_a_file and case.subject not in damaged)
        damaged.add(case.subject)
        yield pytest.param(case, id=f"{number}-{case.name}", marks=[] if chosen else [pytest.mark.slow])


@pytest.mark.parametrize("case", list(_parameters()))
def test_a_bad_input_is_one_line(case, folder, monkeypatch):
    for name, value in case.environment:
        monkeypatch.setenv(name, value)
    case.prepare(folder)
    command = list(case.command)
    with ExitStack() as held:
        if case.answer:
            server = held.enter_context(hostile(case.answer, to="http://127.0.0.1:9/"))
            command = [word.replace("{address}", server.address) for word in command]
        for name in case.held:
            held.callback(claim(folder / name, "another").release)
        _run(case, command, folder)


def _run(case, command, folder):
    before = states(folder)
    # In the process of all these cases, Arrow has ended it (signal 11) over cells that it reads soundly in a
    # fresh one, which is what a command has.
    apart = case.command[0] == "train" and case.subject.endswith(".parquet")
    check(case, (run_apart if apart else run)(command, folder), before, folder)


_URLS = range(len(BAD_URLS))


@pytest.fixture(scope="module")
def bucket(s3, tmp_path_factory):
    with s3_at(s3):
        name = new_bucket()
        shard = write_tar(tmp_path_factory.mktemp("shards") / "a.tar", pair("a", 0))
        open_store(f"s3://{name}/shards").write("a.tar", shard.read_bytes())
    return name


@pytest.mark.parametrize("number", _URLS, ids=[f"{k}-{BAD_URLS[k].surroundings}" for k in _URLS])
def test_a_bad_url_is_one_line(number, s3, bucket, folder, monkeypatch):
    around, case = list(of_urls(bucket))[number]
    # Requests are tried once, which saves seconds of waiting in between.
    monkeypatch.setattr("counterfoil.storage.buckets.TRIES", 1)
    if around == "server":
        context = s3_at(s3)
    elif around == "no-credentials":
        context = surroundings(AWS_ENDPOINT_URL=s3, AWS_EC2_METADATA_DISABLED="true", HOME=str(folder.parent))
    else:
        context = s3_at("http://127.0.0.1:9")
    if around == "no-package":
        monkeypatch.setattr(
            "counterfoil.storage.buckets.importlib.util.find_spec",
            lambda name: None if name in ("s3fs", "gcsfs") else find_spec(name),
        )
    with context:
        _run(case, list(case.command), folder)


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


def test_hostile_inputs_are_many():
    count = Counter(case.kind for case in HOSTILE)
    assert sum(count.values()) >= 500
    assert min(count.values()) >= 100
