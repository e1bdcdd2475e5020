"""Faults that no part of the program foresaw: one line for the user, a report file for the developers.

What lies in the user's input, disk or machine (a name too long, a full disk, no memory left) is a line like
any other error and exit code 2. Anything else is a fault of the program: exit code 70, which is `EX_SOFTWARE`
of sysexits.h, and a file with the traceback.
"""

import errno
import os
import platform
import re
import shlex
import sys
import tempfile
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from counterfoil.errors import CounterfoilError, InputError

#: The exit code of a fault of the program.
SOFTWARE = 70

#: What to do about an error of the operating system, whether or not it names a file.
_ADVICE = {
    errno.ENOSPC: "free some space or choose another folder",
    errno.EDQUOT: "free some space or choose another folder",
    errno.EIO: "the disk or the network drive does not answer properly",
    errno.EMFILE: "raise the limit of open files (ulimit -n) or use fewer --workers",
    errno.ENFILE: "close other programs or use fewer --workers",
    errno.ENAMETOOLONG: "use a shorter name",
    errno.ELOOP: "the links point at each other",
    errno.ENOMEM: "close other programs or use fewer --workers",
}

#: Options that say where results go.
_PLACES = ("--out", "--to", "-o", "--output")

#: What PyTorch says where a process that others wait for is gone.
_LOST = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "Connection refused")


def debugging(arguments: Sequence[str]) -> tuple[bool, list[str]]:
    """Whether `--debug` is among the arguments, and the other arguments; those after a lone `--` are kept.

    >>> debugging(["list", "benchmarks", "--debug"]), debugging(["evaluate", "--", "--debug"])
    ((True, ['list', 'benchmarks']), (False, ['evaluate', '--', '--debug']))
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    others = [word for word in arguments[:end] if word != "--debug"]
    return len(others) < end, [*others, *arguments[end:]]


def check_names(arguments: Sequence[str]) -> None:
    """Raise `InputError` for an argument whose bytes are no text, or that is a file: URL with a host."""
    for before, word in zip(["", *arguments], arguments, strict=False):
        # A path without a name would be the working folder.
        if (before in _PLACES and not word) or (word.removesuffix("=") in _PLACES and word.endswith("=")):
            raise InputError("no name of a file or folder", where=before or word[:-1], given="(empty)")
        try:
            word.encode("utf-8")
        except UnicodeEncodeError:
            shown = os.fsencode(word).decode("utf-8", "backslashreplace")
            raise InputError(
                "an argument is not UTF-8 text", given=shown, hint="rename the file, or type it again"
            ) from None
        # An option that is a path forgets the second slash: file://etc would be /etc.
        if re.match(r"(--?[\w-]+=)?([\w-]+=)?(file|local)://(?!/|localhost/)", word, re.IGNORECASE):
            from counterfoil.places.location import location

            location(word.rpartition("=")[2])


def is_first() -> bool:
    """Whether none of the processes that torchrun started has reported an error yet: its store knows.

    What goes wrong in one of them goes wrong in all, at once or because they wait for each other.
    """
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return True
    try:
        from counterfoil.scorers.runtime import import_torch

        place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = import_torch().distributed.TCPStore(*place, is_master=False, timeout=timedelta(seconds=10))
        count: int = store.add(f"counterfoil/reported/{os.environ.get('TORCHELASTIC_RESTART_COUNT')}", 1)
    # Without the store, which ends with torchrun: better twice than not at all.
    except Exception:
        return True
    return count == 1


def foreseen(error: BaseException) -> CounterfoilError | None:
    """The error of ours for one of Python's, the system's or PyTorch's that the user can do something about.

    None for what is a fault of the program.
    """
    doing = doing_what(error)
    if isinstance(error, CounterfoilError):
        return error
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return InputError(
            f"not enough memory{doing}",
            given=str(error).split("\n")[0] or None,
            hint="use a smaller --batch-size, fewer items or a machine with more",
        )
    if isinstance(error, RecursionError):
        return InputError(f"something is nested too deeply{doing}", hint="is the file what it should be?")
    if isinstance(error, RuntimeWarning | FloatingPointError):
        return InputError(
            f"numbers too large or too small to compute with{doing}",
            given=str(error),
            hint="look for extreme values in the scores, features or options",
        )
    if isinstance(error, RuntimeError) and any(phrase in str(error) for phrase in _LOST):
        return InputError(
            f"another process of this training ended{doing}",
            hint="its own line says why, or the system's log (no memory left); the same command goes on",
        )
    if isinstance(error, UnicodeError):
        return InputError(
            f"text that is no valid Unicode{doing}", given=str(error), hint="mend the file, or its name"
        )
    if isinstance(error, OSError) and (error.filename is not None or error.errno in _ADVICE):
        where = os.fsdecode(error.filename) if isinstance(error.filename, bytes) else error.filename
        reason = (error.strerror or str(error)).lower()
        return InputError(f"{reason}{doing}", where=where, hint=_ADVICE.get(error.errno or 0))
    return None


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


def doing_what(error: BaseException) -> str:
    """What was being done, by the innermost note of `terminal.busy` and `terminal.progress`."""
    notes = [note for note in getattr(error, "__notes__", ()) if note.startswith("while ")]
    return f" {notes[0]}" if notes else ""


def _write_report(error: BaseException, arguments: Sequence[str]) -> Path:
    from counterfoil.data.answers import versions
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
    for folder in _report_folders():
        try:
            write_text(folder / name, text)
        except (OSError, CounterfoilError):
            continue
        return folder / name
    raise OSError(errno.ENOSPC, "no folder for the report")


def _report_folders() -> list[Path]:
    """The user's folder of logs and, where that cannot be written, the one of temporary files."""
    base = Path(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"))
    temporary = Path(tempfile.gettempdir())
    # Without a home or a writable /tmp both may come out as the working folder, which is the user's own.
    return [
        folder
        for folder in (base / "counterfoil", temporary)
        if folder.is_absolute() and folder != Path.cwd()
    ]


def print_traceback(error: BaseException) -> None:
    """The whole traceback on stderr, for `--debug`."""
    text = "".join(traceback.format_exception(error))
    sys.stderr.write(text.encode("utf-8", "backslashreplace").decode("utf-8"))
