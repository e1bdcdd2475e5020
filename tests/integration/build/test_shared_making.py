"""Builds that are killed or shared by ranks make everything once, and end in the bytes of others."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest

from counterfoil.engine.executor import RankExecutor, batch_keys
from counterfoil.engine.session import Session
from counterfoil.models.base import Identity
from processes import python

#: A maker that notes its items and takes a while for a batch; that of rank 1 waits for a file.
SCRIPT = """
import sys, time
from pathlib import Path
from counterfoil.engine.session import Session
from counterfoil.engine.session import executor_named
from counterfoil.engine.executor import batch_keys
from counterfoil.models.base import Identity

rank, folder = sys.argv[1], Path(sys.argv[2])

class Slow:
    identity = Identity("slow", revision="1")
    def make(self, batches):
        for batch in batches:
            for item in batch:
                with (folder / f"made-{rank}").open("a") as file:
                    file.write(item + "\\n")
            while time.sleep(0.05) or (rank == "1" and not (folder / "go").exists()):
                pass
            yield [(item * 3).encode() for item in batch]

items = [f"row {n}" for n in range(60)]
found = {}
session = Session(folder / "cache", executor=executor_named(f"rank:{rank}/3"))
session.make(Slow(), items, batch_keys(items, 4), found.__setitem__, stage="making", size=4)
(folder / f"out-{rank}").write_bytes(b"".join(found[n] for n in range(len(items))))
"""


def test_ranks_make_every_row_once_and_the_row_of_a_killed_one_twice(tmp_path):
    def start(rank):
        return subprocess.Popen([sys.executable, "-c", SCRIPT, str(rank), str(tmp_path)])

    ranks, struck = {1: start(1)}, tmp_path / "made-1"
    while not struck.exists():
        assert ranks[1].poll() is None
        time.sleep(0.01)
    ranks |= {rank: start(rank) for rank in (0, 2)}
    os.kill(ranks[1].pid, signal.SIGKILL)
    ranks[1].wait()
    (tmp_path / "go").touch()
    for rank in (0, 2):
        assert ranks[rank].wait(timeout=120) == 0
    made = Counter(line for path in tmp_path.glob("made-*") for line in path.read_text().splitlines())
    assert len(made) == 60
    assert max(made.values()) <= 2
    # Only what the killed one had begun was made again.
    assert {name for name, times in made.items() if times > 1} <= set(struck.read_text().splitlines())
    wanted = b"".join(f"row {n}".encode() * 3 for n in range(60))
    assert (tmp_path / "out-0").read_bytes() == (tmp_path / "out-2").read_bytes() == wanted
    # The one that was killed comes back, and makes nothing that is there.
    assert start(1).wait(timeout=120) == 0
    assert Counter(line for path in tmp_path.glob("made-*") for line in path.read_text().splitlines()) == made
    assert (tmp_path / "out-1").read_bytes() == wanted


@dataclass
class Echo:
    """Answers with what it is given; `made` counts."""

    made: list[str] = field(default_factory=list)
    identity: ClassVar[Identity] = Identity("echo", revision="1")

    def make(self, batches):
        for batch in batches:
            self.made += batch
            yield [item.encode() for item in batch]


def take(session, items, size=2):
    maker, result = Echo(), {}
    session.make(maker, items, batch_keys(items, size), result.__setitem__, stage="making", size=size)
    return maker, [result[row] for row in range(len(items))]


def test_one_process_keeps_nothing_in_the_cache_and_takes_what_others_left(tmp_path):
    items = ["a", "b", "", "d", "e"]
    wanted = [item.encode() for item in items]
    assert take(Session(tmp_path), items)[1] == wanted
    assert not list(tmp_path.rglob("*.npz"))
    first = take(Session(tmp_path, executor=RankExecutor(0, 2)), items)
    assert (first[0].made, first[1]) == (items, wanted)
    # One that is alone finds them, and makes only what is new, together with its batch.
    later = take(Session(tmp_path), [*items, "f"])
    assert (later[0].made, later[1]) == (["e", "f"], [*wanted, b"f"])


def test_equal_items_are_made_for_every_row(tmp_path):
    items = ["a", "a", "a", "a", "b"]
    for _ in range(2):
        assert take(Session(tmp_path, executor=RankExecutor(0, 1)), items)[1] == [i.encode() for i in items]


def test_a_damaged_shard_is_made_again(tmp_path):
    items = ["a", "b", "c", "d"]
    session = Session(tmp_path, executor=RankExecutor(0, 1), note=lambda text: None)
    take(session, items)
    shard = sorted(tmp_path.rglob("*.npz"))[0]
    shard.write_bytes(shard.read_bytes()[:40])
    maker, result = take(session, items)
    assert len(maker.made) == 2
    assert result == [item.encode() for item in items]


def words(n):
    return ["bivlc", "--n", n, "--set", "read.size=32", "--set", "imagine.size=32"]


@pytest.mark.parametrize(("n", "kills"), [(7, 1), pytest.param(70, 20, marks=pytest.mark.slow)])
def test_a_killed_build_goes_on_to_identical_bytes(n, kills, tmp_path, digests):
    script = Path(__file__).with_name("killed_builds.py")
    done = python(script, tmp_path, kills, *words(n))
    assert done.returncode == 0, done.stderr
    whole, again, killed = (digests(tmp_path / name / "b") for name in ("whole", "again", "killed"))
    assert whole == again == killed


@pytest.mark.slow
def test_a_build_of_ranks_is_the_build_of_one_process(tmp_path, digests):
    def build(out, *more):
        command = "-m", "counterfoil", "build", *words(14), "--out", out, "--workers", 0, "--quiet", *more
        done = python(*command)
        assert done.returncode == 0, done.stderr

    build(tmp_path / "alone" / "b", "--cache", tmp_path / "cache-alone")
    for rank in (1, 0):
        place = tmp_path / f"rank-{rank}" / "b"
        build(place, "--cache", tmp_path / "shared", "--executor", f"rank:{rank}/2")
        assert digests(place) == digests(tmp_path / "alone" / "b")
    assert list((tmp_path / "shared").rglob("made/*.npz"))
