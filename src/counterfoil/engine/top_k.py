"""The best k of a gallery for every query, exactly, from blocks of scores that are thrown away at once.

A block is some queries x some items. Once k items of a query are known, only what scores above the k-th of
them matters: one comparison per score, and few survive it. The cost is that of the scores themselves, and
the memory that of a few blocks, whatever the size of the gallery.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int, Real
from numpy import ndarray
from threadpoolctl import threadpool_limits

from counterfoil.engine.plan import Progress, silent
from counterfoil.errors import InputError, ScoreError

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


#: The scores of some queries with some items, higher being better; asked for by several threads at once.
Block = Callable[[slice, slice], Real[ndarray, "queries items"]]

#: Queries and items of a block: four million scores, which a product of matrices fills at its full speed.
QUERIES, ITEMS = 1024, 4096
#: Where more items than this many times k survive in a row, they are thinned before they are sorted.
_CROWDED = 8


def top_k(
    queries: Float[ndarray, "queries width"],
    gallery: Float[ndarray, "items same_width"],
    k: int,
    *,
    block: tuple[int, int] = (QUERIES, ITEMS),
    threads: int | None = None,
    progress: Progress = silent,
) -> tuple[Int[ndarray, "queries k"], Float[ndarray, "queries k"]]:
    """The k items of highest inner product with each query, best first, and their products.

    Of equal scores the item of the lower position stands first, in whatever blocks the work is done. Takes
    float32 or float64 and computes in that precision; memory-mapped arrays are read a block at a time.
    Raises `InputError` where k is not 1 to the number of items, where widths differ and for other types, and
    `ScoreError` for NaN.

    >>> items, scores = top_k(np.array([[1.0, 0.0]]), np.array([[0.5, 1.0], [2.0, 0.0], [0.5, 9.0]]), 2)
    >>> items.tolist(), scores.tolist()
    ([[1, 0]], [[2.0, 0.5]])
    """
    if queries.shape[1] != gallery.shape[1]:
        raise InputError(
            "queries and gallery differ in width", given=f"{queries.shape[1]} and {gallery.shape[1]}"
        )
    if queries.dtype != gallery.dtype or queries.dtype not in (np.float32, np.float64):
        raise InputError(
            "queries and gallery cannot be multiplied as they are",
            given=f"{queries.dtype} and {gallery.dtype}",
            allowed="both float32, or both float64",
        )
    own = threading.local()

    def products(rows: slice, columns: slice) -> ndarray:
        left, right = queries[rows], gallery[columns]
        # Each thread fills one piece of memory again and again: new pages cost as much as comparing.
        if getattr(own, "memory", np.empty(0)).size < len(left) * len(right):
            own.memory = np.empty(len(left) * len(right), queries.dtype)
        out: ndarray = own.memory[: len(left) * len(right)].reshape(len(left), len(right))
        return np.matmul(left, right.T, out=out)

    return top_k_in_blocks(
        products, len(queries), len(gallery), k, block=block, threads=threads, progress=progress
    )


def top_k_in_blocks(
    scores: Block,
    n_queries: int,
    n_items: int,
    k: int,
    *,
    block: tuple[int, int] = (QUERIES, ITEMS),
    threads: int | None = None,
    progress: Progress = silent,
) -> tuple[Int[ndarray, "queries k"], Float[ndarray, "queries k"]]:
    """`top_k` of scores that come from elsewhere: a similarity on disk, another rule than the inner product.

    `scores(queries, items)` is asked for one block at a time in each thread, items ascending, and may hand
    out the same memory again at the next call. float32 and float16 scores give float32, others float64.

    >>> given = np.array([[3, 1, 3], [0, 2, 1]])
    >>> top_k_in_blocks(lambda rows, columns: given[rows, columns], 2, 3, 2)[0].tolist()
    [[0, 2], [1, 2]]
    """
    if not 1 <= k <= n_items:
        raise InputError("a gallery has no such number of best items", given=k, allowed=f"1 to {n_items}")
    if min(block) < 1:
        raise InputError("a block has no scores", given=block, allowed="1 query and item or more")
    # The first block must hold k items; where that makes it wider, it is made as much lower.
    width = min(max(block[1], k), n_items)
    height = min(block[0], max(1, block[0] * block[1] // width))
    parts = [slice(lo, min(lo + height, n_queries)) for lo in range(0, n_queries, height)]
    columns = [slice(lo, min(lo + width, n_items)) for lo in range(0, n_items, width)]

    def of_part(rows: slice) -> tuple[ndarray, ndarray]:
        best: tuple[ndarray, ndarray] | None = None
        for items in columns:
            part = np.ascontiguousarray(scores(rows, items))
            best = better(part, rows.start, items.start, k, best)
        assert best is not None  # there is a block, since there is an item
        return best

    items, values = np.empty((n_queries, k), np.int64), np.empty((n_queries, k), np.float64)
    for done, (rows, (found, their)) in enumerate(map_ordered(of_part, parts, threads)):
        if not done:
            values = np.empty(values.shape, their.dtype)
        items[rows], values[rows] = found, their
        progress("best items", rows.stop, n_queries)
    return items, values


def better(
    part: Real[ndarray, "rows width"],
    first_query: int,
    first_item: int,
    k: int,
    best: tuple[Int[ndarray, "rows k"], Float[ndarray, "rows k"]] | None,
) -> tuple[Int[ndarray, "rows k"], Float[ndarray, "rows k"]]:
    """The best k of each row among those known and those of a block of later items."""
    # Written so that NaN survives, as it should not go unseen.
    survives: Bool[ndarray, "rows width"] = np.empty(part.shape, dtype=bool)
    if best is None:
        np.less(part, _floor(part, k)[:, None], out=survives)
    else:
        # What is level with the k-th best has a higher position, and stands behind it.
        np.less_equal(part, best[1][:, -1:], out=survives)
    np.logical_not(survives, out=survives)
    row, column = _few(part, survives, k, first_query, first_item)
    score = part[row, column].astype(np.float32 if part.dtype in (np.float16, np.float32) else np.float64)
    if not len(row) and best is not None:
        return best
    touched, nth, count = np.unique(row, return_inverse=True, return_counts=True)
    slot = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    known = 0 if best is None else k
    # One line per row that has survivors: what was known, best first, then the survivors by position.
    # A stable sort leaves equal scores in that order, and padding behind everything else.
    lines = np.full((len(touched), known + int(count.max(initial=0))), -np.inf, score.dtype)
    names = np.full(lines.shape, -1)
    lines[nth, known + slot], names[nth, known + slot] = score, first_item + column
    if best is None:
        order = np.argsort(-lines, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(names, order, 1), np.take_along_axis(lines, order, 1)
    items, values = best
    lines[:, :k], names[:, :k] = values[touched], items[touched]
    order = np.argsort(-lines, axis=1, kind="stable")[:, :k]
    items[touched], values[touched] = np.take_along_axis(names, order, 1), np.take_along_axis(lines, order, 1)
    return items, values


def _floor(part: Real[ndarray, "rows width"], k: int) -> Real[ndarray, "rows"]:
    """A score that at least k items of each row reach, cheaply: the k-th best of the best of groups."""
    rows, width = part.shape
    groups = min(width, max(4 * k, 64))
    deep = width // groups
    # Groups of items that stand `groups` apart: the maximum runs along memory.
    best = part[:, : deep * groups].reshape(rows, deep, groups).max(axis=1)
    return np.partition(best, groups - k, axis=1)[:, groups - k]


def _few(
    part: Real[ndarray, "rows width"],
    survives: Bool[ndarray, "rows width"],
    k: int,
    first_query: int,
    first_item: int,
) -> tuple[Int[ndarray, "few"], Int[ndarray, "few"]]:
    """Row and column of the survivors, in order; of rows with many of them the best k alone."""
    rows, width = part.shape
    most = _CROWDED * k
    for thinned in (False, True):
        few = np.count_nonzero(survives) <= rows * most
        if few or thinned:
            row, column = np.divmod(np.flatnonzero(survives.reshape(-1)), width)
            crowded = np.flatnonzero(np.bincount(row, minlength=rows) > most)
            _refuse_nan(part, row, column, first_query, first_item)
        else:
            crowded = np.flatnonzero(survives.sum(axis=1) > most)
        if not len(crowded):
            break
        for at in crowded.tolist():
            line = part[at]
            among = np.flatnonzero(survives[at])
            _refuse_nan(part, np.full(len(among), at), among, first_query, first_item)
            last = np.partition(line[among], len(among) - k)[len(among) - k]
            over = among[line[among] > last]
            level = among[line[among] == last][: k - len(over)]
            survives[at] = False
            survives[at, over] = survives[at, level] = True
    return row, column


def _refuse_nan(part: ndarray, row: ndarray, column: ndarray, first_query: int, first_item: int) -> None:
    if part.dtype.kind != "f":
        return
    broken = np.isnan(part[row, column])
    if broken.any():
        at = int(np.argmax(broken))
        raise ScoreError(
            "a score is not a number",
            where=f"query {first_query + int(row[at])}, item {first_item + int(column[at])}",
            given="NaN",
        )
