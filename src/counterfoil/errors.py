"""The error tree: every error is one line for the user, and ends a command with code 2."""

import copyreg
import errno
import os
import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any

#: A URL. A path that went through pathlib has one slash where the URL had two, so that one is enough. One
#: letter before a colon is a drive of Windows, not a scheme.
URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/{1,3})(.*)", re.DOTALL)

#: Names that are all listed where one is unknown, and of more the most that are suggested.
_FEW, _SUGGESTED = 8, 3
#: The command that lists all names of a kind.
_LISTS = {
    "benchmark": "list benchmarks",
    "kind of model": "list models",
    "caption metric": "list metrics",
    "measure": "list measures",
    "recipe": "list recipes",
    "release": "benchmarks fetch",
}
#: How many characters of each part of an error are shown.
_WHERE, _WHAT, _GIVEN, _ALLOWED = 300, 400, 200, 400


def _cut(value: object, most: int, *, middle: bool = False) -> str:
    """At most `most` characters in one line, cut at the end or in the middle."""
    try:
        text = str(value)
    except Exception:
        # What is wrong with a value may be that it has no text.
        text = f"({type(value).__name__})"
    if isinstance(value, PurePath) and (url := URL.fullmatch(text)):
        text = f"{url[1]}://{url[3]}"
    # Splitting a text of gigabytes into words to show the first of them would take its time.
    if len(text) > 8 * most:
        text = text[: 4 * most] + "…" + text[-4 * most :]
    text = " ".join(text.split())
    if len(text) <= most:
        return text
    tail = most // 2 if middle else 0
    return text[: most - tail - 1] + "…" + text[len(text) - tail :]


def _names(names: Iterable[object]) -> str:
    """As many of the names as fit, and how many there are where not all do."""
    shown: list[str] = []
    room, count = _ALLOWED, 0
    for name in names:
        count += 1
        text = _cut(name, _GIVEN)
        room -= len(text) + 2
        if room >= 0:
            shown.append(text)
    return ", ".join(shown) if len(shown) == count else f"{', '.join(shown)}, … ({count:,} in all)"


class CounterfoilError(Exception):
    """An error in one line: what is wrong, where, what was given, what is allowed, what to do next.

    Only `what` is required. `str(error)` is always a single line, and each part is cut where it would fill
    the screen: what was given, or what a file holds, may be of any length.

    >>> print(InputError("no such file", where="scores.csv", hint="check the path"))
    scores.csv: no such file; check the path
    >>> print(DataError("wrong type", where="data.csv, row 3, column 'type'", given="flip",
    ...                 allowed=("add", "replace", "swap")))
    data.csv, row 3, column 'type': wrong type; given: flip; allowed: add, replace, swap

    A path that was made of a URL, and so lost a slash, is shown as the URL.

    >>> print(DataError("no such file", where=PurePath("s3://bucket/a.csv")))
    s3://bucket/a.csv: no such file
    """

    def __init__(
        self,
        what: str,
        *,
        where: object = None,
        given: object = None,
        allowed: str | Iterable[object] | None = None,
        hint: str | None = None,
    ) -> None:
        what = _cut(what, _WHAT)
        # Of a place its end matters as much as its start: the file's name, the row, the column.
        parts = [f"{_cut(where, _WHERE, middle=True)}: {what}" if where is not None else what]
        if given is not None:
            parts.append(f"given: {_cut(given, _GIVEN)}")
        if allowed is not None:
            listed = _cut(allowed, _ALLOWED) if isinstance(allowed, str) else _names(allowed)
            parts.append(f"allowed: {listed}")
        if hint is not None:
            parts.append(_cut(hint, _WHAT))
        super().__init__("; ".join(parts))

    def __reduce__(self) -> tuple[Any, ...]:
        # The line goes to another process, not the parts that it was made of.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__ or None  # type: ignore[attr-defined]


class InputError(CounterfoilError):
    """The user's input cannot be used."""


class DataError(InputError):
    """A file, row or field of a benchmark or table is not as it should be."""


class ScoreError(InputError):
    """Scores are missing, doubled, not finite, or of the wrong shape."""


class ModelError(InputError):
    """A checkpoint or model cannot be loaded as asked."""


class UnknownNameError(InputError):
    """An unknown name.

    >>> print(UnknownNameError("benchmark", "winogrund", ["bivlc", "winoground"]))
    unknown benchmark; given: winogrund; allowed: bivlc, winoground; did you mean 'winoground'?

    Of many names the nearest three, or `nearest` of them, are shown, with the command that lists all.

    >>> print(UnknownNameError("recipe", "swp-7", [f"swap-{n}" for n in range(50)]))
    unknown recipe; given: swp-7; allowed: swap-7, swap-47, swap-37, … (50 in all); did you mean 'swap-7'? ...
    """

    def __init__(
        self, kind: str, name: str, names: Iterable[str], *, where: object = None, nearest: int | None = None
    ) -> None:
        names, name = sorted(names), str(name)
        near = get_close_matches(name.lower(), names, n=1)
        hint = [f"did you mean '{near[0]}'?"] if near else []
        allowed: str | list[str] = names
        if len(names) > (nearest or _FEW):
            # Less near ones are named beside a near one alone.
            least = 0.5 if near else 0.6
            alike = get_close_matches(name, names, n=nearest or _SUGGESTED, cutoff=0.0 if nearest else least)
            alike = alike or [other for other in names if name and name.lower() in other.lower()][:_SUGGESTED]
            if alike:
                allowed = ", ".join([*alike, f"… ({len(names):,} in all)"])
            elif kind in _LISTS:
                allowed = f"{len(names):,} names"
            if kind in _LISTS:
                hint.append(f"'counterfoil {_LISTS[kind]}' lists all")
            if kind == "benchmark" and not near:
                hint[-1] += "; name your own by its folder or TOML file, a table by 'pairs --data TABLE'"
        what, advice = f"unknown {kind}", " ".join(hint) or None
        super().__init__(what, where=where, given=name or "(empty)", allowed=allowed, hint=advice)


class MissingExtraError(InputError):
    """An optional dependency is not installed.

    >>> print(MissingExtraError("open_clip", "models"))
    the Python package 'open_clip' is not installed; pip install 'counterfoil[models]'
    """

    def __init__(self, package: str, extra: str) -> None:
        hint = f"pip install 'counterfoil[{extra}]'"
        super().__init__(f"the Python package '{package}' is not installed", hint=hint)


class StorageError(CounterfoilError):
    """The disk is full or a folder cannot be written; nothing was left half-written."""


#: What to do about an error of the operating system, whether or not it names a file.
_ADVICE = {
    errno.ENOSPC: "free some space or choose another folder",
    errno.EDQUOT: "free some space or choose another folder",
    errno.EFBIG: "raise the limit of the size of files (ulimit -f)",
    errno.ENOENT: "if the working folder was removed, change to one that exists",
    errno.EIO: "the disk or the network drive does not answer properly",
    errno.EMFILE: "raise the limit of open files (ulimit -n) or use fewer --workers",
    errno.ENFILE: "close other programs or use fewer --workers",
    errno.ENAMETOOLONG: "use a shorter name",
    errno.ELOOP: "the links point at each other",
    errno.ENOMEM: "close other programs or use fewer --workers",
}

#: What PyTorch says where a process that others wait for is gone.
_LOST = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "Connection refused")


def expected_error(error: BaseException) -> CounterfoilError | None:
    """The error of ours for one of Python's, the system's or PyTorch's; None for a fault of the program."""
    where = given = hint = None
    if isinstance(error, CounterfoilError):
        return error
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        what, given = "not enough memory", str(error).split("\n")[0] or None
        hint = "use a smaller --batch-size, fewer items or a machine with more"
    elif isinstance(error, RecursionError):
        what, hint = "something is nested too deeply", "is the file what it should be?"
    elif isinstance(error, RuntimeWarning | FloatingPointError):
        what, given = "numbers too large or too small to compute with", str(error)
        hint = "look for extreme values in the scores, features or options"
    elif isinstance(error, RuntimeError) and any(phrase in str(error) for phrase in _LOST):
        what = "another process of this training ended"
        hint = "its own line says why, or the system's log (no memory left); the same command goes on"
    elif isinstance(error, ValueError) and "null byte" in str(error):
        what = "a name with a null byte"
    elif isinstance(error, UnicodeError):
        what, given, hint = "text that is no valid Unicode", str(error), "mend the file, or its name"
    elif isinstance(error, OSError) and (error.filename is not None or error.errno in _ADVICE):
        where = os.fsdecode(error.filename) if isinstance(error.filename, bytes) else error.filename
        what, hint = (error.strerror or str(error)).lower(), _ADVICE.get(error.errno or 0)
    else:
        return None
    return InputError(f"{what}{doing_what(error)}", where=where, given=given, hint=hint)


def doing_what(error: BaseException) -> str:
    """What was being done, by the innermost note of `terminal.busy` and `terminal.progress`."""
    notes = [note for note in getattr(error, "__notes__", ()) if note.startswith("while ")]
    return f" {notes[0]}" if notes else ""
