"""How a command ends: its exit code, one line about what went wrong, a report of a fault, and Ctrl-C.

Exit codes: 0 on success; 2 on input that cannot be used, or a disk or machine that fails (a name too long, no
room, no memory left), which is one line; 70 on a fault of the program (`EX_SOFTWARE` of sysexits.h), which is
one line for the user and a file with the traceback for the developers; 130 on Ctrl-C.
"""

import _thread
import os
import platform
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from counterfoil.errors import CounterfoilError, doing_what

#: The exit code of a fault of the program.
SOFTWARE = 70
#: The exit code of a process that Ctrl-C stopped.
INTERRUPTED = 130


def debugging(arguments: Sequence[str]) -> tuple[bool, list[str]]:
    """Whether `--debug` is among the arguments, and the others; those after a lone `--` are kept."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    others = [word for word in arguments[:end] if word != "--debug"]
    return len(others) < end, [*others, *arguments[end:]]


def unforeseen(error: BaseException, arguments: Sequence[str]) -> str:
    """The line about a fault of the program; writes the report that it names."""
    message = " ".join(str(error).split())
    what = type(error).__name__ + (f": {message[:200]}" if message else "")
    try:
        report = f"the report is in {_write_report(error, arguments)}"
    except (OSError, CounterfoilError):
        report = "no report could be written (--debug prints it)"
    command = next((word for word in arguments if not word.startswith("-")), "")
    where = doing_what(error) or (f" in '{command}'" if command else "")
    return f"a fault of counterfoil{where}: {what}; {report}"


def _write_report(error: BaseException, arguments: Sequence[str]) -> Path:
    from counterfoil.benchmarks.answers import versions
    from counterfoil.store import write_text

    now = datetime.now(UTC)
    name = f"fault-{now:%Y%m%d-%H%M%S}-{os.getpid()}.txt"
    text = "\n".join(
        [
            f"counterfoil {now.isoformat(timespec='seconds')}",
            f"command: {shlex.join(['counterfoil', *arguments])}",
            f"system: {platform.platform()}",
            *(f"{library}: {version}" for library, version in versions().items()),
            "",
            *traceback.format_exception(error),
        ]
    )
    # A text of lone surrogates has no bytes in UTF-8, and the report must be written whatever it holds.
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    logs = Path(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"), "counterfoil")
    write_text(logs / name, text)
    return logs / name


def complain(text: str) -> None:
    """One line about what went wrong, on stderr."""
    from counterfoil.terminal import clean

    print(f"counterfoil: {' '.join(clean(text).split())}", file=sys.stderr)


#: Seconds after which it is looked whether Ctrl-C is being obeyed.
_LATER = 0.3


@contextmanager
def kept_interrupts() -> Iterator[None]:
    """A block that Ctrl-C ends by `KeyboardInterrupt`, raised again until the block is being left.

    Finalisers, callbacks and some libraries drop the exception. Where SIGINT is ignored (nohup) it stays so.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        yield
        return
    pressed, over, process = threading.Event(), threading.Event(), os.getpid()
    # Once the block is over nothing is interrupted any more.
    one_at_a_time = threading.Lock()

    def raised(*_: Any) -> None:
        # A forked worker stops with its parent.
        if not pressed.is_set() and os.getpid() == process:
            pressed.set()
            threading.Thread(target=again, daemon=True).start()
        raise KeyboardInterrupt

    def again() -> None:
        while not over.wait(_LATER):
            with one_at_a_time:
                if not over.is_set() and not _leaving():
                    _thread.interrupt_main()

    hook = sys.unraisablehook
    sys.unraisablehook = lambda unraisable: (
        None if unraisable.exc_type is KeyboardInterrupt else hook(unraisable)
    )
    signal.signal(signal.SIGINT, raised)
    try:
        yield
        if pressed.is_set():
            raise KeyboardInterrupt
    finally:
        with one_at_a_time:
            over.set()
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook = hook


def _leaving() -> bool:
    """Whether the main thread runs an `except` or a `finally` because of Ctrl-C."""
    current: Any = sys._current_exceptions().get(threading.main_thread().ident or 0)
    # A triple before Python 3.12.
    error = current[1] if isinstance(current, tuple) else current
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None
