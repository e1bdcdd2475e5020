"""A run that is killed at any moment and started again."""

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from counterfoil.engine.cache import Cache
from counterfoil.engine.plan import shards

#: Rows in a full shard with batches of 24, as the script of the fakes runs.
SHARD = sum(map(len, shards(range(10_000), 24)[0]))


def start(
    fakes, folder: Path, pause: float, *, out: str = "out", questions: int = 500, executor: str = "local"
) -> subprocess.Popen:
    script = [fakes.__file__, folder / "cache", folder / "log", folder / out, pause, questions, executor]
    # The fakes import modules of the tests, as pytest finds them.
    paths = [str(Path(fakes.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-W", "error", *map(str, script)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_killed_runs_lose_at_most_a_shard_and_end_in_the_same_bits(fakes, tmp_path, seed):
    rng = random.Random(seed)
    whole, folder = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    folder.mkdir()
    # 1,000 images and 1,000 captions.
    assert start(fakes, whole, 0).wait(600) == 0
    assert len(fakes.embedded(whole)) == len(set(fakes.embedded(whole))) == 2000

    kills = 0
    for _ in range(3):
        already = len(fakes.embedded(folder))
        process = start(fakes, folder, 0.004)
        fakes.wait_for(folder, process, already + rng.randrange(40, 600))
        process.send_signal(signal.SIGKILL)
        kills += process.wait(600) == -signal.SIGKILL
    assert kills >= 2
    assert not (folder / "out").exists()
    assert start(fakes, folder, 0).wait(600) == 0

    assert (folder / "out").read_bytes() == (whole / "out").read_bytes()
    times = Counter(fakes.embedded(folder))
    assert set(times) == set(fakes.embedded(whole))
    for kind in ("images", "captions"):
        again = sum(count - 1 for (of, _), count in times.items() if of == kind)
        assert again <= kills * SHARD
    # A process that is killed is in one shard of one kind: this holds over both kinds together, too.
    assert sum(times.values()) - 2000 <= kills * SHARD
    # Nothing that a reader looks at is half-written.
    identity = fakes.FakeEmbedder().identity
    for kind in ("images", "captions"):
        assert Cache(folder / "cache", identity).read(kind, ["00" * 16]).broken == ()
    assert fakes.shards_in(folder) == fakes.shards_in(whole)


def test_two_processes_at_once_end_in_the_same_bits(fakes, tmp_path):
    whole, folder = tmp_path / "whole", tmp_path / "both"
    whole.mkdir()
    folder.mkdir()
    assert start(fakes, whole, 0, questions=200).wait(600) == 0
    both = [start(fakes, folder, 0.002, out=name, questions=200) for name in ("out", "other")]
    assert [process.wait(600) for process in both] == [0, 0]
    expected = (whole / "out").read_bytes()
    assert (folder / "out").read_bytes() == (folder / "other").read_bytes() == expected


def test_eight_ranks_in_random_order_two_killed_and_one_started_twice(fakes, tmp_path):
    rng = random.Random(0)
    whole, folder = tmp_path / "whole", tmp_path / "ranks"
    whole.mkdir()
    folder.mkdir()
    assert start(fakes, whole, 0, questions=1000).wait(600) == 0
    ranks = rng.sample(range(8), 8)
    started = [
        start(fakes, folder, 0.02, out=f"out-{n}", questions=1000, executor=f"rank:{rank}/8")
        for n, rank in enumerate([*ranks, ranks[3]])
    ]
    for n, killed in enumerate(started[:2]):
        fakes.wait_for(folder, killed, 150 * (n + 1))
        killed.send_signal(signal.SIGKILL)
        assert killed.wait(600) == -signal.SIGKILL
    assert [process.wait(600) for process in started[2:]] == [0] * 7

    expected = (whole / "out").read_bytes()
    assert all((folder / f"out-{n}").read_bytes() == expected for n in range(2, 9))
    assert fakes.shards_in(folder) == fakes.shards_in(whole)
    # Only what the killed ranks were at was done again, and nothing a third time.
    times = Counter(fakes.embedded(folder))
    assert set(times) == set(fakes.embedded(whole))
    assert max(times.values()) <= 2
    assert sum(times.values()) - len(times) <= 2 * SHARD
    assert not list((folder / "cache" / "leases").glob("*.json"))
