"""Feedback of a task while it runs (notes, warnings, progress), and options that say how its work is run."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from counterfoil.engine.deduplicate import Note, Progress, silent, warn
from counterfoil.engine.executor import LOCAL, Executor
from counterfoil.engine.session import Session


def ignore(text: object) -> None:
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
    """The functions that work reports to. By default only warnings are seen, as warnings of Python.

    Those of a job print where nothing else is asked for (`terminal_feedback`).
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
    #: Called with each of several results as soon as it is there.
    result: Callable[[Any], None] = ignore


SILENT = Feedback()


def terminal_feedback(*, quiet: bool = False) -> Feedback:
    """The feedback of tasks on stderr; where `quiet`, or of a quiet command, warnings alone."""
    from counterfoil import terminal

    silent = quiet or terminal.quiet
    return Feedback(
        note=ignore if silent else terminal.note,
        warn=terminal.warn,
        remark=ignore if silent else terminal.warn,
        busy=partial(terminal.busy, silent=silent),
        progress=partial(terminal.progress, silent=silent),
    )


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """How work is run; the defaults are those of the command line. Options of tasks derive from it."""

    #: The folder of finished work; None keeps nothing.
    cache: Path | None = None
    batch_size: int = 32
    #: Processes that decode images; None is one per core, at most 8.
    workers: int | None = None
    #: Who computes what the cache lacks (`counterfoil.engine.executor`).
    executor: Executor = LOCAL

    def session(self, feedback: Feedback, progress: Progress = silent) -> Session:
        """The session in which it is run."""
        workers = min(8, os.cpu_count() or 1) if self.workers is None else self.workers
        return Session(self.cache, self.batch_size, workers, progress, feedback.remark, self.executor)
