"""Group commit: all who wait to write share one transaction, which costs the same for one and for twenty."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from counterfoil.annotate.database import Database
from counterfoil.annotate.tables import Connection

#: The most that are written together, so that none of them waits for long.
_MOST = 32
T = TypeVar("T")


class GroupCommit:
    """Writes of a server's requests, done in the order in which they came."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._waiting: deque[tuple[Callable[[Connection], Any], asyncio.Future[Any]]] = deque()
        self._writing = False
        self._thread = ThreadPoolExecutor(1, "counterfoil-writes")

    async def write(self, function: Callable[[Connection], T]) -> T:
        """What `function` returns, once all that it wrote is on the disk; raises what it raises.

        It may run twice, the first time for nothing, so it changes the database alone.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((function, future))
        if not self._writing:
            self._write_waiting()
        return await future

    def _write_waiting(self) -> None:
        taken = [self._waiting.popleft() for _ in range(min(_MOST, len(self._waiting)))]
        self._writing = bool(taken)
        if not taken:
            return

        def deliver(commit: asyncio.Future[list[Any]]) -> None:
            for (_, future), outcome in zip(taken, commit.result(), strict=True):
                # Of a request that was given up nobody waits for the outcome.
                if future.done():
                    continue
                if isinstance(outcome, BaseException):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)
            self._write_waiting()

        functions = [function for function, _ in taken]
        commit = asyncio.get_running_loop().run_in_executor(self._thread, self._commit, functions)
        commit.add_done_callback(deliver)

    def _commit(self, functions: list[Callable[[Connection], Any]]) -> list[Any]:
        """What each function returns or raises; where one raises, each has a transaction of its own."""
        try:
            with self.database.writing() as connection:
                return [function(connection) for function in functions]
        except Exception as error:
            # Of a commit that failed, too: what became of it each finds out for itself.
            if len(functions) == 1:
                return [error]
            return [self._commit([function])[0] for function in functions]
