"""Turns at the database: all who wait to write do so together, in one transaction of one thread.

A transaction has a price of its own (a connection, its beginning, the commit, the wait for the disk) that is
the same for one answer and for twenty. While one is under way others come in, and the next takes them all.
None gets a result before the transaction that it was in is on the disk.
"""

import asyncio
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from counterfoil.annotate.database import Database
from counterfoil.annotate.statements import Ask, Write

#: The most that are written together, so that none of them waits for long.
_MOST = 32

_Turn = tuple[Write, Ask | None, asyncio.Future[Any], asyncio.AbstractEventLoop]


class Turns:
    """Writes of an event loop's requests, done by one thread in the order in which they came."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._waiting: deque[_Turn] = deque()
        self._lock = threading.Lock()
        self._busy = False
        self._thread = ThreadPoolExecutor(1, "counterfoil-writes")

    async def write(self, write: Write, ask: Ask | None = None) -> Any:
        """What `write` returns, once all that it wrote is on the disk; raises what it raises.

        It may run more than once, of which only the last run is kept, so it changes the database alone. `ask`
        gives what it asks first.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        with self._lock:
            self._waiting.append((write, ask, future, loop))
            begin, self._busy = not self._busy, True
        if begin:
            self._thread.submit(self._work)
        return await future

    def _work(self) -> None:
        """Write until nothing waits."""
        while True:
            with self._lock:
                taken = [self._waiting.popleft() for _ in range(min(_MOST, len(self._waiting)))]
                if not taken:
                    self._busy = False
                    return
            writes, questions = [turn[0] for turn in taken], [turn[1] for turn in taken]
            outcomes = self.database.write_together(writes, questions)
            for (*_, future, loop), outcome in zip(taken, outcomes, strict=True):
                # The loop is gone where the server was stopped: the page sends the answer again.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(_deliver, future, outcome)


def _deliver(future: asyncio.Future[Any], outcome: Any) -> None:
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
