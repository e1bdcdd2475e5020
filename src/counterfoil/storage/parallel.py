"""Work of several threads whose results come in order, no more of it begun ahead than is asked for."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")


def map_ahead(
    work: Callable[[Part], Result], parts: Iterable[Part], *, threads: int, ahead: int
) -> Generator[tuple[Part, Result], None, None]:
    """Each part with what `work` makes of it, in order; at most `ahead` are begun and not taken yet."""
    rest = iter(parts)
    with ThreadPoolExecutor(threads) as pool:
        running = deque((part, pool.submit(work, part)) for part in islice(rest, ahead))
        try:
            while running:
                first, future = running.popleft()
                yield first, future.result()
                running.extend((part, pool.submit(work, part)) for part in islice(rest, 1))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
