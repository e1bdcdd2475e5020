"""Feedback of a task while it runs: notes, warnings and progress."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from counterfoil.engine.plan import Note, Progress, silent, warn


def ignore(text: str) -> None:
    """A note that is not shown."""


@contextmanager
def _unseen(text: str) -> Iterator[None]:
    """Nothing is shown; an error gets a note of what was being done."""
    try:
        yield
    except Exception as error:
        error.add_note(f"while {text}")
        raise


@contextmanager
def _no_progress() -> Iterator[Progress]:
    yield silent


@dataclass(frozen=True)
class Feedback:
    """The functions that a task reports to. By default only warnings are seen, as warnings of Python.

    A task knows no terminal: the command line and `counterfoil.api` pass functions that print.
    """

    #: Called with a line about what was decided or found.
    note: Note = ignore
    #: Called with a line that should not be missed.
    warn: Note = warn
    #: Called with a line about something odd that did not stop the work (a damaged shard, unused rows).
    remark: Note = warn
    #: A context in which a line says what is being waited for.
    busy: Callable[[str], AbstractContextManager[None]] = _unseen
    #: A context with a function (stage, done, total).
    progress: Callable[[], AbstractContextManager[Progress]] = _no_progress


SILENT = Feedback()
