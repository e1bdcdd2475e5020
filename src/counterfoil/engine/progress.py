"""Callbacks for progress and notes. The engine prints nothing itself."""

import warnings
from collections.abc import Callable

#: Called with (stage, done, total) when a stage starts and after every batch. `done` does not start at zero
#: where the cache knew a part already.
Progress = Callable[[str, int, int], None]

#: Called with one line about something that did not stop the run but should be known.
Note = Callable[[str], None]


def silent(stage: str, done: int, total: int) -> None:
    """Default progress: none."""


def warn(message: str) -> None:
    """Default note: a Python warning."""
    warnings.warn(message, UserWarning, stacklevel=2)
