"""A run that is killed at any moment and started again."""

import os
import random
import signal
import subprocess
import sys
from collections import Counter

import pytest

from counterfoil.engine.cache import Cache
from counterfoil.engine.plan import shards
from engine import fakes

#: Rows in a full shard with batches of 24, as the script of the fakes runs.
SHARD = sum(map(len, shards(range(10_000), 24)[0]))


def start(folder, pause, *, out="out", executor="local"):
    script = [fakes.__file__, folder / "cache", folder / "log", folder / out, pause, 400, executor]
    # The fakes import modules of the tests, as pytest finds them.
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, "-W", "error", *map(str, script)], env=variables)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing stopped, of 400 questions: 800 images and 800 captions."""
    folder = tmp_path_factory.mktemp("whole")
    in_this_process(folder)
    assert len(fakes.embedded(folder)) == len(set(fakes.embedded(folder))) == 1600
    return folder


def in_this_process(folder):
    fakes.main(*(str(folder / name) for name in ("cache", "log", "out")), "0", "400")


def done_again(folder, whole):
    """How often each item was embedded, where all of them and no others were; the shards are the same."""
    times = Counter(fakes.embedded(folder))
    assert set(times) == set(fakes.embedded(whole))
    assert fakes.shards_in(folder) == fakes.shards_in(whole)
    return times


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_killed_runs_lose_at_most_a_shard_and_end_in_the_same_bits(whole, tmp_path, seed):
    rng, kills = random.Random(seed), 0
    for _ in range(2):
        already = len(fakes.embedded(tmp_path))
        process = start(tmp_path, 0.004)
        fakes.wait_for(tmp_path, process, already + rng.randrange(40, 600))
        process.send_signal(signal.SIGKILL)
        kills += process.wait(600) == -signal.SIGKILL
    assert kills >= 1
    assert not (tmp_path / "out").exists()
    in_this_process(tmp_path)
    assert (tmp_path / "out").read_bytes() == (whole / "out").read_bytes()
    times = done_again(tmp_path, whole)
    # A process that is killed is in one shard of one kind: this holds over both kinds together.
    assert sum(times.values()) - len(times) <= kills * SHARD
    # Nothing that a reader looks at is half-written.
    identity = fakes.FakeEmbedder().identity
    for kind in ("images", "captions"):
        assert Cache(tmp_path / "cache", identity).read(kind, ["00" * 16]).broken == ()


@pytest.mark.parametrize("ranks", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_ranks_in_random_order_one_killed_and_one_started_twice(whole, tmp_path, ranks):
    order = random.Random(0).sample(range(ranks), ranks)
    started = [(f"out-{n}", f"rank:{rank}/{ranks}") for n, rank in enumerate([*order, order[1]])]
    killed, *others = [start(tmp_path, 0.02, out=out, executor=executor) for out, executor in started]
    fakes.wait_for(tmp_path, killed, 150)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait(600) == -signal.SIGKILL
    assert [process.wait(600) for process in others] == [0] * ranks
    expected = (whole / "out").read_bytes()
    assert all((tmp_path / f"out-{n}").read_bytes() == expected for n in range(1, ranks + 1))
    # Only what the killed rank was at was done again, and nothing a third time.
    times = done_again(tmp_path, whole)
    assert max(times.values()) <= 2
    assert sum(times.values()) - len(times) <= SHARD
    assert not list((tmp_path / "cache" / "leases").glob("*.json"))
