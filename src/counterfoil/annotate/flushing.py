"""A file that many threads write and wait for: one wait for the disk serves all who came before it.

SQLite in mode FULL waits for the disk within each transaction, so that writers come one per wait. Here a
transaction is committed to the log without waiting (mode NORMAL, in which the log is in order and whole up to
where the disk got), the next writer begins, and what must know that a commit is on the disk waits for the
log: one wait is enough for all commits until it began.
"""

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path

from counterfoil.errors import StorageError


@dataclass(eq=False)
class SharedFlush:
    """Counts what was written to a file, and waits until the disk has it."""

    path: Path
    written: int = 0
    flushed: int = 0
    broken: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wait(self, number: int) -> None:
        """Return when the first `number` writes are on the disk.

        Raises `StorageError` where the disk does not take them, and from then on: after a wait that failed a
        later one can succeed without them.
        """
        if self.flushed >= number:
            return
        with self._lock:
            if self.flushed >= number:
                return
            until = self.written
            if not self.broken:
                try:
                    handle = os.open(self.path, os.O_RDONLY)
                    try:
                        os.fsync(handle)
                    finally:
                        os.close(handle)
                except OSError as error:
                    self.broken = error.strerror or str(error)
            if self.broken:
                raise StorageError(
                    f"the disk did not take what was written: {self.broken}",
                    where=self.path,
                    hint="free some space or mend the disk, then start again; nothing was acknowledged",
                )
            self.flushed = until
