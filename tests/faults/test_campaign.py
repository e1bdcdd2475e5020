"""The long campaign: mutations of every file format that is read, and kills of long commands.

`make slow` tries a few of each; `make faults` a thousand of each format and 200 kills. Each case is decided
by the format and its number, and is a fork with limits on processor time and address space.
"""

import contextlib
import importlib
import json
import os
import pickle
import resource
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from faults.command import PATIENCE, run, states
from faults.command_lines import LONG_COMMANDS, READERS
from faults.corpus import EITHER, Case, check
from faults.mutation import mutate

pytestmark = pytest.mark.slow

#: The most memory that a command may need to refuse a small file, and what it is given.
MOST_MEMORY, ADDRESS_SPACE = 2 * 2**30, 24 * 2**30
FORMATS = tuple(dict.fromkeys(Path(file).suffix for file in READERS))
MUTATIONS = int(os.environ.get("COUNTERFOIL_MUTATIONS", 4))
KILLS = max(len(LONG_COMMANDS), MUTATIONS // 5)


@pytest.fixture(scope="module", autouse=True)
def imported():
    """All that forks would import anew."""
    ours = ("cli.tables", "evaluation.compare", "models.small", "report.page", "train.loop")
    theirs = (
        "av", "matplotlib.pyplot", "open_clip", "pyarrow.dataset", "scipy.stats", "torch", "transformers",
    )  # fmt: skip
    for name in (*theirs, *(f"counterfoil.{module}" for module in ours)):
        importlib.import_module(name)


def in_a_fork(work, *, kill_after=None):
    """What `work` returns in a child (None where it died), how that ended, and its peak memory in bytes."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(work(), pipe)
        os._exit(0)
    os.close(writing)
    if kill_after is not None:
        time.sleep(kill_after)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    _, status, usage = os.wait4(child, 0)
    try:
        return pickle.loads(data), status, usage.ru_maxrss * 1024.0
    except (EOFError, pickle.UnpicklingError):
        return None, status, usage.ru_maxrss * 1024.0


@pytest.mark.parametrize("number", range(MUTATIONS))
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_mutated_file_is_read_or_refused(suffix, number, sound_folder, folder):
    rng = np.random.default_rng([0, FORMATS.index(suffix), number])
    files = [file for file in READERS if Path(file).suffix == suffix]
    file = files[number % len(files)]
    command = READERS[file][int(rng.integers(len(READERS[file])))].split()
    done = mutate(folder / file, rng, [sound_folder / name for name in READERS])
    before = states(folder)
    ended, status, memory = in_a_fork(lambda: run(command, folder, patience=PATIENCE))
    assert ended is not None, f"{file}, {done}: ended by signal {status & 127}: {command}"
    check(Case("mutation", f"{file}, {done}", tuple(command), wanted=EITHER), ended, before, folder)
    assert max(ended.seconds - PATIENCE, memory - MOST_MEMORY) < 0, f"{file}, {done}"


@pytest.fixture(scope="module")
def wholes():
    """The seconds that a long command takes, and its results, by its name."""
    return {}


@pytest.mark.parametrize("number", range(KILLS))
def test_a_killed_command_ends_with_the_same_bytes_when_it_is_run_again(number, sound_folder, folder, wholes):
    rng = np.random.default_rng([0, number])
    name = list(LONG_COMMANDS)[number % len(LONG_COMMANDS)]
    command, result = LONG_COMMANDS[name]

    def anew():
        shutil.rmtree(folder)
        shutil.copytree(sound_folder, folder, copy_function=os.link)

    def work():
        os.environ["COUNTERFOIL_CACHE"] = str(folder / "kept")
        return run(command.split(), folder, patience=1e6)

    if name not in wholes:
        began = time.monotonic()
        ended, _, _ = in_a_fork(work)
        assert ended.code == 0, ended.err
        wholes[name] = (time.monotonic() - began, comparable(folder, result))
    seconds, whole = wholes[name]
    after = float(rng.uniform(0, 1.05) * seconds)
    # The first run may have met a busier machine: what was over by then is killed again, earlier.
    for _ in range(6):
        anew()
        before = states(folder)
        _, status, _ = in_a_fork(work, kill_after=after)
        if status:
            break
        after /= 2
    assert status, "ends before it can be killed"
    now = states(folder)
    assert [file for file, state in before.items() if now.get(file) != state] == []
    ended, _, _ = in_a_fork(work)
    assert ended.code == 0, ended.err
    again = comparable(folder, result)
    assert sorted(file for file in {*again, *whole} if again.get(file) != whole.get(file)) == []


#: What says when or how fast something was made; everything else must come out the same.
_TIMES = {
    *("created", "seconds", "rows_per_second", "waiting", "epoch_waiting", "command", "date", "machine"),
    "digests",
}


def comparable(folder, result):
    """The results of a command by name: bytes, or for JSON the values without times."""
    top = folder / result
    results = {}
    for path in [top] if top.is_file() else filter(Path.is_file, top.rglob("*")):
        name = str(path.relative_to(folder))
        if path.suffix == ".json":
            results[name] = _timeless(json.loads(path.read_text().replace(str(folder), "HERE")))
        # What a killed process was writing stays beside its name, and is never taken for it.
        elif path.suffix != ".part" and path.name not in ("resume.pt", "journal.csv"):
            results[name] = path.read_bytes()
    return results


def _timeless(value):
    if isinstance(value, dict):
        return {key: _timeless(part) for key, part in value.items() if key not in _TIMES}
    return [_timeless(part) for part in value] if isinstance(value, list) else value
