"""How a command ends: its exit code, one line about what went wrong, a report of a fault, and Ctrl-C.

Exit codes: 0 on success; 2 on input that cannot be used, or a disk or machine that fails (a name too long, no
room, no memory left), which is one line; 70 on a fault of the program (`EX_SOFTWARE` of sysexits.h), which is
one line for the user and a file with the traceback for the developers; 130 on Ctrl-C.
"""

import os
import platform
import shlex
import sys
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

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
