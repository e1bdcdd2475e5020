"""Options of a task that say how its work is run: what is kept, in what batches, by how many processes."""

import os
from dataclasses import dataclass
from pathlib import Path

from counterfoil.engine.executor import LOCAL, Executor
from counterfoil.engine.plan import Progress, silent
from counterfoil.engine.session import Session
from counterfoil.tasks.feedback import Feedback


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
