"""The exact best k of a gallery for every query, and the first items of each model in one numbering."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int, Real
from numpy import ndarray
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from counterfoil.benchmarks.answers import Rankings
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import Ids
from counterfoil.benchmarks.judgements import ROLES, Direction
from counterfoil.engine.plan import Progress, silent
from counterfoil.engine.similarity import Matrix, lines, product, unit
from counterfoil.errors import DataError, InputError, ScoreError
from counterfoil.models.precomputed_galleries import PrecomputedEmbeddings
from counterfoil.storage.parallel import Part, Result, map_ahead

_MOST = 8


def map_ordered(
    work: Callable[[Part], Result], parts: Sequence[Part], threads: int | None = None
) -> Iterator[tuple[Part, Result]]:
    """Each part with what `work` makes of it, in order, by threads in which BLAS keeps to its own."""
    threads = min(threads or min(os.cpu_count() or 1, _MOST) + 1, len(parts))
    if threads <= 1:
        yield from ((part, work(part)) for part in parts)
        return
    with threadpool_limits(1, user_api="blas"):
        yield from map_ahead(work, parts, threads=threads, ahead=threads + 1)


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
    progress: Progress = silent,
) -> tuple[Int[ndarray, "queries k"], Float[ndarray, "queries k"]]:
    """The k items of highest inner product with each query, and their products; ties by position."""
    if queries.shape[1] != gallery.shape[1]:
        raise InputError(
            "queries and gallery differ in width", given=f"{queries.shape[1]} and {gallery.shape[1]}"
        )
    if queries.dtype != gallery.dtype or queries.dtype not in (np.float32, np.float64):
        problem = "queries and gallery cannot be multiplied as they are"
        given = f"{queries.dtype} and {gallery.dtype}"
        raise InputError(problem, given=given, allowed="both float32, or both float64")
    workspace = threading.local()

    def scores(rows: slice, columns: slice) -> ndarray:
        return product(queries[rows], gallery[columns], workspace)

    return top_k_in_blocks(scores, len(queries), len(gallery), k, block=block, progress=progress)


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
    """`top_k` of scores that come from elsewhere: a similarity on disk, or another rule."""
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
    for done, (rows, (best_items, their)) in enumerate(map_ordered(of_part, parts, threads)):
        if not done:
            values = np.empty(values.shape, their.dtype)
        items[rows], values[rows] = best_items, their
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
        # A score that at least k items of each row reach, cheaply: the k-th best of the best of groups of
        # items that stand `groups` apart, so that the maximum runs along memory.
        rows, width = part.shape
        groups = min(width, max(4 * k, 64))
        deep = width // groups
        of_groups = part[:, : deep * groups].reshape(rows, deep, groups).max(axis=1)
        np.less(part, np.partition(of_groups, groups - k, axis=1)[:, groups - k, None], out=survives)
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
    n_best = 0 if best is None else k
    # One line per row that has survivors: what was known, best first, then the survivors by position.
    # A stable sort leaves equal scores in that order, and padding behind everything else.
    lines = np.full((len(touched), n_best + int(count.max(initial=0))), -np.inf, score.dtype)
    names = np.full(lines.shape, -1)
    lines[nth, n_best + slot], names[nth, n_best + slot] = score, first_item + column
    if best is None:
        order = np.argsort(-lines, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(names, order, 1), np.take_along_axis(lines, order, 1)
    items, values = best
    lines[:, :k], names[:, :k] = values[touched], items[touched]
    order = np.argsort(-lines, axis=1, kind="stable")[:, :k]
    items[touched], values[touched] = np.take_along_axis(names, order, 1), np.take_along_axis(lines, order, 1)
    return items, values


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
        for i in crowded.tolist():
            line = part[i]
            among = np.flatnonzero(survives[i])
            _refuse_nan(part, np.full(len(among), i), among, first_query, first_item)
            last = np.partition(line[among], len(among) - k)[len(among) - k]
            over = among[line[among] > last]
            level = among[line[among] == last][: k - len(over)]
            survives[i] = False
            survives[i, over] = survives[i, level] = True
    return row, column


def _refuse_nan(part: ndarray, row: ndarray, column: ndarray, first_query: int, first_item: int) -> None:
    if part.dtype.kind != "f":
        return
    broken = np.isnan(part[row, column])
    if broken.any():
        i = int(np.argmax(broken))
        where = f"query {first_query + int(row[i])}, item {first_item + int(column[i])}"
        raise ScoreError("a score is not a number", where=where, given="NaN")


#: The first k items (positions) of queries (positions), best first, -1 behind the end of a list.
First = Callable[[Direction, NDArray[np.int64], int, Progress], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class ModelLists:
    """One model's lists over a gallery; `texts` and `benchmark` of one asked."""

    name: str
    image_ids: tuple[str, ...]
    caption_ids: tuple[str, ...]
    query_ids: Mapping[Direction, tuple[str, ...]]
    depth: Mapping[Direction, int]
    first: First
    texts: tuple[str | None, ...] | None = None
    benchmark: Benchmark | None = None

    def ids(self, direction: Direction) -> tuple[tuple[str, ...], tuple[str, ...]]:
        both = {"image": self.image_ids, "caption": self.caption_ids}
        asker, item_kind = ROLES[direction]
        return both[asker], both[item_kind]


def topk_lists(
    lists: ModelLists, direction: Direction, queries: Sequence[str], k: int, *, progress: Progress = silent
) -> NDArray[np.int64]:
    n_items = len(lists.ids(direction)[1])
    if n_items < k:
        problem = f"the gallery of {direction} is smaller than k"
        hint = "choose a smaller --k"
        raise InputError(problem, where=lists.name, given=f"k {k:,}", allowed=f"1 to {n_items:,}", hint=hint)
    if lists.depth[direction] < k:
        problem = f"the lists of {direction} are too short"
        given = f"{lists.depth[direction]} items"
        hint = "evaluate again with a deeper --top, or give embeddings"
        raise InputError(problem, where=lists.name, given=given, allowed=f"{k} or more", hint=hint)
    place = {name: rows for rows, name in enumerate(lists.ids(direction)[0])}
    rows = np.array([place[name] for name in queries], dtype=np.int64)
    top = lists.first(direction, rows, k, progress)
    short = np.flatnonzero((top < 0).any(axis=1))
    if len(short):
        where = f"{lists.name}, {direction}/{queries[short[0]]}"
        given = f"{int((top[short[0]] >= 0).sum())} items"
        hint = f"so for {len(short):,} of {len(top):,} queries; choose a smaller --k"
        raise InputError("a list ends early", where=where, given=given, allowed=f"{k} or more", hint=hint)
    return top


def common(models: Sequence[ModelLists], direction: Direction) -> tuple[str, ...]:
    """The queries that every model answers, in the order of the first."""
    others = [set(m.query_ids[direction]) for m in models[1:]]
    return tuple(name for name in models[0].query_ids[direction] if all(name in other for other in others))


def of_rankings(name: str, benchmark: Benchmark, rankings: Rankings) -> ModelLists:
    """The lists that rankings of a gallery keep: of its queries, down to what was kept."""
    image_ids = tuple(image.id for image in benchmark.images)
    caption_ids = tuple(caption.id for caption in benchmark.captions)
    ids: Mapping[Direction, tuple[str, ...]] = {"i2t": image_ids, "t2i": caption_ids}
    top: Mapping[Direction, ndarray] = {way: getattr(rankings, way).top for way in ids}
    queries: dict[Direction, Ids] = {}
    rows = {way: np.full(len(names), -1) for way, names in ids.items()}
    for way in ids:
        numbers = queries[way] = getattr(benchmark.gallery, way).queries
        rows[way][numbers] = np.arange(len(numbers))
    query_ids = {way: tuple(ids[way][i] for i in numbers) for way, numbers in queries.items()}
    depth = {way: items.shape[1] for way, items in top.items()}

    def first(way: Direction, i: NDArray[np.int64], k: int, progress: Progress) -> NDArray[np.int64]:
        return top[way][rows[way][i], :k].astype(np.int64)

    texts = tuple(caption.text for caption in benchmark.captions)
    return ModelLists(name, image_ids, caption_ids, query_ids, depth, first, texts, benchmark)


def of_embeddings(
    name: str, given: PrecomputedEmbeddings, image_ids: tuple[str, ...], caption_ids: tuple[str, ...]
) -> ModelLists:
    """The lists that embeddings give by their cosines, of every query, down to the last item."""
    of = {"image": unit(given.images), "caption": unit(given.captions)}

    def first(direction: Direction, rows: NDArray[np.int64], k: int, progress: Progress) -> NDArray[np.int64]:
        asker, items = ROLES[direction]
        return top_k(of[asker][rows], of[items], k, progress=progress)[0]

    return _whole(name, image_ids, caption_ids, first)


def of_similarity(
    name: str, values: ndarray, image_ids: tuple[str, ...], caption_ids: tuple[str, ...]
) -> ModelLists:
    """The lists of a similarity, (images, captions), of every query, down to the last item."""
    matrix = Matrix(values, where=name, names=(image_ids, caption_ids))

    def first(direction: Direction, rows: NDArray[np.int64], k: int, progress: Progress) -> NDArray[np.int64]:
        def block(queries: slice, items: slice) -> ndarray:
            return lines(matrix, direction, rows[queries], items)

        n_items = values.shape[1 if direction == "i2t" else 0]
        return top_k_in_blocks(block, len(rows), n_items, k, progress=progress)[0]

    return _whole(name, image_ids, caption_ids, first)


def _whole(name: str, image_ids: tuple[str, ...], caption_ids: tuple[str, ...], first: First) -> ModelLists:
    """Lists of which every query can be asked, down to the last item."""
    query_ids: Mapping[Direction, tuple[str, ...]] = {"i2t": image_ids, "t2i": caption_ids}
    depth: Mapping[Direction, int] = {"i2t": len(caption_ids), "t2i": len(image_ids)}
    return ModelLists(name, image_ids, caption_ids, query_ids, depth, first)


def renumbered(lists: ModelLists, reference: ModelLists) -> ModelLists:
    """The same lists with items numbered as in the reference; the galleries must hold the same."""
    moves: dict[str, NDArray[np.int64]] = {}
    for kind, numbers, other in (
        ("image", lists.image_ids, reference.image_ids),
        ("caption", lists.caption_ids, reference.caption_ids),
    ):
        place = {name: i for i, name in enumerate(other)}
        to = np.array([place.get(name, -1) for name in numbers], dtype=np.int64)
        lacking = set(other) - set(numbers)
        if (to < 0).any() or lacking:
            extra = int((to < 0).sum())
            example = numbers[int(np.argmax(to < 0))] if extra else min(lacking)
            problem = f"{lists.name} and {reference.name} rank different {kind}s"
            given = f"{extra:,} only in the first, {len(lacking):,} only in the second, such as {example}"
            raise DataError(problem, given=given, allowed="the same gallery for all models")
        moves[kind] = to
    if all((to == np.arange(len(to))).all() for to in moves.values()):
        return lists
    back = {kind: np.argsort(to) for kind, to in moves.items()}

    def first(direction: Direction, rows: NDArray[np.int64], k: int, progress: Progress) -> NDArray[np.int64]:
        asker, items = ROLES[direction]
        top = lists.first(direction, back[asker][rows], k, progress)
        return np.where(top >= 0, moves[items][top], -1)

    texts = lists.texts and tuple(lists.texts[i] for i in back["caption"].tolist())
    ids = reference.image_ids, reference.caption_ids
    return replace(lists, image_ids=ids[0], caption_ids=ids[1], first=first, texts=texts)
