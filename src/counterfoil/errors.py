"""What can go wrong, as one small tree.

* `CounterfoilError` -- everything this package raises on purpose

  * `InputError` -- what the user handed in cannot be used (exit code 2)

    * `DataError` -- a file, row or field of a benchmark or table
    * `ScoreError` -- scores that are missing, doubled, not finite or of the wrong shape
    * `ModelError` -- a checkpoint or model that cannot be loaded as asked
    * `UnknownNameError` -- a name nobody knows, with the nearest one that somebody does
    * `MissingExtraError` -- an optional dependency is not installed

  * `StorageError` -- the disk is full or a folder cannot be written (exit code 2)
"""

from collections.abc import Iterable
from difflib import get_close_matches


class CounterfoilError(Exception):
    """An error that teaches: what is wrong, where, what was given, what is allowed, what to do next.

    Only `what` is required. `str(error)` is always a single line.

    >>> print(InputError("no such file", where="scores.csv", hint="check the path"))
    scores.csv: no such file; check the path
    >>> print(DataError("wrong type", where="data.csv, row 3, column 'type'", given="flip",
    ...                 allowed=("add", "replace", "swap")))
    data.csv, row 3, column 'type': wrong type; given: flip; allowed: add, replace, swap
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
        parts = [f"{where}: {what}" if where is not None else what]
        if given is not None:
            parts.append(f"given: {given}")
        if allowed is not None:
            names = allowed if isinstance(allowed, str) else ", ".join(str(name) for name in allowed)
            parts.append(f"allowed: {names}")
        if hint is not None:
            parts.append(hint)
        super().__init__(" ".join("; ".join(parts).split()))


class InputError(CounterfoilError):
    """What the user handed in cannot be used."""


class DataError(InputError):
    """A file, row or field of a benchmark or table is not as it should be."""


class ScoreError(InputError):
    """Scores are missing, doubled, not finite, or of the wrong shape."""


class ModelError(InputError):
    """A checkpoint or model cannot be loaded as asked."""


class UnknownNameError(InputError):
    """A name nobody knows.

    >>> print(UnknownNameError("benchmark", "winogrund", ["bivlc", "winoground"]))
    unknown benchmark; given: winogrund; allowed: bivlc, winoground; did you mean 'winoground'?
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], *, where: object = None) -> None:
        known = sorted(known)
        near = get_close_matches(name.lower(), known, n=1, cutoff=0.5)
        hint = f"did you mean '{near[0]}'?" if near else None
        super().__init__(f"unknown {kind}", where=where, given=name or "(empty)", allowed=known, hint=hint)


class MissingExtraError(InputError):
    """An optional dependency is not installed.

    >>> print(MissingExtraError("open_clip", "models"))
    the Python package 'open_clip' is not installed; install it with: pip install 'counterfoil[models]'
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"the Python package '{package}' is not installed",
            hint=f"install it with: pip install 'counterfoil[{extra}]'",
        )


class StorageError(CounterfoilError):
    """The disk is full or a folder cannot be written; nothing was left half-written."""
