"""Parts of work in threads, results in order: while one part is multiplied, others are compared."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import threadpool_limits

Part = TypeVar("Part")
Result = TypeVar("Result")

#: Default number of threads at most.
_MOST = 8


def map_ordered(
    work: Callable[[Part], Result], parts: Sequence[Part], threads: int | None = None
) -> Iterator[tuple[Part, Result]]:
    """Each part with what `work` makes of it, in order; one more than there are cores at a time by default.

    As many results as threads are held at most. Meanwhile a matrix product keeps to the thread it is called
    in: several that each spread over all cores would spend more time waiting for each other than working.

    >>> list(map_ordered(lambda part: part * 10, [1, 2, 3], threads=2))
    [(1, 10), (2, 20), (3, 30)]
    """
    threads = min(threads or min(os.cpu_count() or 1, _MOST) + 1, len(parts))
    if threads <= 1:
        yield from ((part, work(part)) for part in parts)
        return
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        running = []
        try:
            for part in parts:
                running.append((part, pool.submit(work, part)))
                if len(running) > threads:
                    first, found = running.pop(0)
                    yield first, found.result()
            while running:
                first, found = running.pop(0)
                yield first, found.result()
        finally:
            for _, found in running:
                found.cancel()
