"""The command line as a user calls it, in this process: arguments in; exit code, output and time out."""

import contextlib
import io
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: Seconds of processor time that a command may take to refuse what it is given; a campaign reports more.
PATIENCE = 10.0
#: What counts as a hang on any machine, however slow.
HUNG = 100.0


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, what it printed, and the processor time it took."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def lines(self) -> list[str]:
        """The lines on stderr that speak of an error; notes and warnings stand apart from them."""
        return [line for line in self.err.splitlines() if line.startswith("counterfoil: ")]


class Hang(BaseException):
    """A command that took longer than its patience."""


def run(arguments: list[str], folder: Path, *, patience: float = HUNG) -> Ended:
    """Call `counterfoil.cli.main` with `arguments` in `folder`; a command that hangs is stopped."""
    from counterfoil.cli import main

    out, err, began = _stream(), _stream(), time.process_time()
    with (
        _within(folder),
        _patience(patience),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        argv, sys.argv = sys.argv, ["counterfoil", *arguments]
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        finally:
            sys.argv = argv
    return Ended(code, _text(out), _text(err), time.process_time() - began)


def run_apart(arguments: list[str], folder: Path) -> Ended:
    """The same in a process of its own, for what might end the process or harm what it does later."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(
        [sys.executable, "-m", "counterfoil", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Ended(ended.returncode, ended.stdout, ended.stderr, after.ru_utime - before.ru_utime)


def states(folder: Path) -> dict[str, object]:
    """What tells every file below `folder` from any other: written into or replaced, it is another one.

    The time of the last change, the size and the number of the file on its disk, which is quicker to see than
    the digest of its bytes, and stricter: a file that was replaced by the same bytes was replaced.
    """
    result: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        if not stat.S_ISDIR(about.st_mode):
            result[str(path.relative_to(folder))] = (about.st_ino, about.st_mtime_ns, about.st_size)
    return result


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    raw = stream.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode("utf-8")


@contextlib.contextmanager
def _within(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def _patience(most: float) -> Iterator[None]:
    """Processor time is what counts: a busy machine does not stretch it. Sleeping long is a hang, too."""

    def stop(*_: object) -> None:
        raise Hang(f"more than {most:g} s")

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, most), (signal.SIGALRM, signal.ITIMER_REAL, 12 * most))
    before = [signal.signal(sign, stop) for sign, _, _ in timers]
    for _, timer, seconds in timers:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (sign, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(sign, handler)
