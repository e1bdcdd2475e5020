"""The long campaign: a thousand mutations of every file format that is read, and 200 kills of long commands.

    python -m faults.campaign                         # all, from the folder `tests`
    python -m faults.campaign --only .npz --cases 200 --seed 3
    python -m faults.campaign --only clip/config.json --only kills --cases 40

Everything heavy is imported once; each case is a fork in a folder of its own, with limits on processor time
and address space. Each case is decided by the seed, the format and its number, and its outcome is a line of
the log: a campaign that was stopped goes on where it was. At the end: per format cases, faults, hangs, inputs
changed, files left behind and peak memory.
"""

import argparse
import contextlib
import json
import os
import pickle
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from faults import sound
from faults.command import PATIENCE, run, states
from faults.mutation import mutate
from faults.reading import LONG_COMMANDS, READERS

#: The most memory that a command may need to refuse a small file, and what it is given.
MOST_MEMORY, ADDRESS_SPACE = 2 * 2**30, 24 * 2**30
FORMATS = tuple(dict.fromkeys(Path(file).suffix for file in READERS))


def in_a_fork(work: Callable[[], Any], *, kill_after: float | None = None) -> tuple[Any, int, float]:
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


def mutated(suffix: str, number: int, seed: int, base: Path, place: Path) -> dict[str, Any]:
    """One mutation of a file of a format, met by a command that reads it: how that ends."""
    rng = np.random.default_rng([seed, [*FORMATS, *READERS].index(suffix), number])
    files = [file for file in READERS if suffix in (file, Path(file).suffix)]
    file = files[number % len(files)]
    command = READERS[file][int(rng.integers(len(READERS[file])))]
    folder = place / f"{Path(suffix).name.lstrip('.')}-{number}"
    shutil.copytree(base, folder, copy_function=os.link, symlinks=True)
    done = mutate(folder / file, rng, [base / each for each in READERS])
    before = states(folder)
    ended, status, memory = in_a_fork(lambda: run(command.split(), folder, patience=PATIENCE))
    after = states(folder)
    shutil.rmtree(folder)
    code = ended.code if ended is not None else -(status & 127)
    # A training may replace what is in the folder that it was told to write.
    own = "first/" if code == 0 and "--out first" in command else "//"
    changed = [name for name in before if after.get(name) != before[name] and not name.startswith(own)]
    return {
        "format": suffix,
        "number": number,
        "file": file,
        "done": done,
        "command": command,
        "code": code,
        "line": (ended.lines or [ended.err[:300]])[-1] if ended is not None else "",
        "fault": code not in (0, 2) or (code == 2 and len(ended.lines) != 1),
        "hang": ended is not None and ("Hang:" in ended.err or ended.seconds > PATIENCE),
        "changed": changed,
        "left": sorted(set(after) - set(before)) if code else [],
        "memory": memory,
    }


def killed(number: int, seed: int, base: Path, place: Path, wholes: dict[str, Any]) -> dict[str, Any]:
    """A long command killed at a random moment and started again: does it end with the same bytes?"""
    rng = np.random.default_rng([seed, number])
    name = list(LONG_COMMANDS)[number % len(LONG_COMMANDS)]
    command, result = LONG_COMMANDS[name]
    if name not in wholes:
        folder = place / f"whole-{name}"
        began = time.monotonic()
        ended, found = _run_in(base, folder, command, result)
        wholes[name] = (time.monotonic() - began, found)
        assert ended.code == 0, (name, ended.err)
        shutil.rmtree(folder)
    seconds, whole = wholes[name]
    folder = place / f"kill-{number}"
    after = float(rng.uniform(0, 1.05) * seconds)
    # The first run may have met a busier machine: what was over by then is killed again, earlier.
    for _ in range(6):
        shutil.copytree(base, folder, copy_function=os.link, symlinks=True)
        before = states(folder)
        _, status, _ = in_a_fork(lambda: _in(folder, command), kill_after=after)
        if status:
            break
        shutil.rmtree(folder)
        after /= 2
    else:
        raise RuntimeError(f"{name} ends before it can be killed: {command}")
    changed = [each for each, state in before.items() if states(folder).get(each) != state]
    ended, _, memory = in_a_fork(lambda: _in(folder, command))
    found = comparable(folder, result)
    # A process that is killed cannot remove what it was writing; it must never be under a name of a result.
    parts = len(list(folder.rglob("*.part")))
    shutil.rmtree(folder)
    good = ended is not None and ended.code == 0 and found == whole
    differing = sorted(each for each in {*found, *whole} if found.get(each) != whole.get(each))
    return {
        "format": "kills",
        "number": number,
        "file": name,
        "done": f"killed after {after:.2f} of {seconds:.2f} s; {parts} unfinished files",
        "command": command,
        "code": ended.code if ended is not None else None,
        "line": "" if good else f"differs: {differing}; {ended.err[-300:] if ended is not None else ''}",
        "fault": not good,
        "hang": False,
        "changed": changed,
        "left": [],
        "memory": memory,
    }


def _run_in(base: Path, folder: Path, command: str, result: str) -> tuple[Any, dict[str, Any]]:
    shutil.copytree(base, folder, copy_function=os.link, symlinks=True)
    ended, _, _ = in_a_fork(lambda: _in(folder, command))
    return ended, comparable(folder, result)


def _in(folder: Path, command: str) -> Any:
    os.environ["COUNTERFOIL_CACHE"] = str(folder / "kept")
    return run(command.split(), folder, patience=1e6)


#: What says when or how fast something was made; everything else must come out the same.
_TIMES = {
    *("created", "seconds", "rows_per_second", "waiting", "epoch_waiting", "command", "date", "machine"),
    "digests",
}


def comparable(folder: Path, result: str) -> dict[str, Any]:
    """The results of a command by name: bytes, or for JSON the values without times."""
    top = folder / result
    files = [top] if top.is_file() else sorted(path for path in top.rglob("*") if path.is_file())
    # What a killed process was writing stays beside its name, and is never taken for it.
    files = [path for path in files if path.suffix != ".part"]
    found: dict[str, Any] = {}
    for path in files:
        name = str(path.relative_to(folder))
        if path.suffix == ".json":
            found[name] = _timeless(json.loads(path.read_text().replace(str(folder), "HERE")))
        elif path.name != "resume.pt" and path.name != "journal.csv":
            found[name] = path.read_bytes()
    return found


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(each) for key, each in value.items() if key not in _TIMES}
    return [_timeless(each) for each in value] if isinstance(value, list) else value


def summary(outcomes: list[dict[str, Any]]) -> str:
    """A line per format: what was tried, and what must be zero."""
    lines = []
    for name in dict.fromkeys(each["format"] for each in outcomes):
        of = [each for each in outcomes if each["format"] == name]
        counts = {"cases": len(of), "refused": sum(each["code"] == 2 for each in of)}
        counts |= {
            kind: sum(bool(each[kind]) for each in of) for kind in ("fault", "hang", "changed", "left")
        }
        counts["peak MB"] = round(max(each["memory"] for each in of) / 1e6)
        lines.append(f"{name:<14}" + ", ".join(f"{kind} {count:,}" for kind, count in counts.items()))
    return "\n".join(lines)


def main() -> int:
    """Run what is asked for; 1 where anything is not as it must be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", action="append", choices=(*FORMATS, *READERS, "kills"), help="may be repeated"
    )
    parser.add_argument("--cases", type=int, help="per format (1,000) and kills (200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path, default=Path(tempfile.gettempdir()) / "counterfoil-faults.jsonl")
    asked = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="counterfoil-faults-"))
    _environment(place)
    outcomes, wholes = _done_before(asked.log, asked.seed), {}
    done = {(each["format"], each["number"]) for each in outcomes}
    try:
        base = place / "sound"
        # In a child, so that no thread of a library is running when this process forks.
        in_a_fork(lambda: sound.make(base))
        _import_everything()
        with open(asked.log, "a") as log:
            for name in asked.only or [*FORMATS, "kills"]:
                for number in range(asked.cases or (200 if name == "kills" else 1000)):
                    if (name, number) in done:
                        continue
                    if name == "kills":
                        outcome = killed(number, asked.seed, base, place, wholes)
                    else:
                        outcome = mutated(name, number, asked.seed, base, place)
                    outcomes.append(outcome)
                    log.write(json.dumps({"seed": asked.seed, **outcome}) + "\n")
                    log.flush()
                    if bad(outcome):
                        print(
                            f"{name} {number}: {outcome['file']}: {outcome['done']}: {outcome['line'][:300]}"
                        )
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print(summary(outcomes))
    return int(any(map(bad, outcomes)))


def bad(outcome: dict[str, Any]) -> bool:
    """Whether an outcome is one that must not be."""
    wrong = (outcome[each] for each in ("fault", "hang", "changed", "left"))
    return any(wrong) or outcome["memory"] > MOST_MEMORY


def _done_before(log: Path, seed: int) -> list[dict[str, Any]]:
    if not log.exists():
        return []
    found = [json.loads(line) for line in log.read_text().splitlines()]
    return [each for each in found if each.pop("seed") == seed]


def _environment(place: Path) -> None:
    os.environ |= {
        "COUNTERFOIL_CACHE": str(place / "cache"),
        "XDG_CACHE_HOME": str(place / "cache"),
        "XDG_STATE_HOME": str(place / "state"),
        "HF_HUB_OFFLINE": "1",
        "MPLBACKEND": "Agg",
        "COLUMNS": "100",
        "OMP_NUM_THREADS": "1",
    }


def _import_everything() -> None:
    import av  # noqa: F401
    import matplotlib.pyplot  # noqa: F401
    import open_clip  # noqa: F401
    import pyarrow.dataset  # noqa: F401
    import scipy.stats  # noqa: F401
    import torch
    import transformers  # noqa: F401

    import counterfoil.catalog
    import counterfoil.cli.tables
    import counterfoil.evaluation.compare
    import counterfoil.evaluation.evaluate
    import counterfoil.models.small
    import counterfoil.report.page
    import counterfoil.train.loop  # noqa: F401

    torch.set_num_threads(1)


if __name__ == "__main__":
    sys.exit(main())
