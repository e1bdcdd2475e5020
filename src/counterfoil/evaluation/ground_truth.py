"""The right answers that a benchmark knows already, by ids: to hold against pools and judgements."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.forms import Search
from counterfoil.errors import DataError
from counterfoil.metrics.class_rules import Plausible
from counterfoil.stats.sharing import Sharing


def right_pairs(
    benchmark: Benchmark, direction: Literal["i2t", "t2i"], queries: Sequence[str], items: Sequence[str]
) -> NDArray[np.int64]:
    """(pairs, 2) positions in `queries` and in `items` of all right answers that the benchmark lists.

    Queries and items that the benchmark does not have are left out. Raises `DataError` where right is what a
    rule says: those are too many to list.
    """
    search, asked, found = _sides(benchmark, direction)
    if isinstance(search.positives, Plausible):
        raise DataError("right is what a rule says, not a list", where=benchmark.name)
    positives = search.positives
    row = _renumbered([asked[i] for i in search.queries.tolist()], queries)
    column = np.append(_renumbered(found, items), -1)
    pairs = np.stack([row[positives.queries], column[positives.items]], axis=1)
    return pairs[(pairs >= 0).all(axis=1)]


def are_right(
    benchmark: Benchmark,
    direction: Literal["i2t", "t2i"],
    queries: Sequence[str],
    items: Sequence[str],
    query: NDArray[np.int64],
    item: NDArray[np.int64],
) -> dict[str, NDArray[np.bool_]]:
    """Which pairs of a query and an item the benchmark calls right, by the benchmark's name.

    Where right is what a rule says, for each of its thresholds, named "pmrp (0)", "pmrp (1)", ....
    """
    search, asked, found = _sides(benchmark, direction)
    if not isinstance(search.positives, Plausible):
        known = right_pairs(benchmark, direction, queries, items)
        width = len(items)
        return {benchmark.name: np.isin(query * width + item, known[:, 0] * width + known[:, 1])}
    rule = search.positives
    row = _renumbered(queries, [asked[i] for i in search.queries.tolist()])[query]
    column = _renumbered(items, found)[item]
    there = (row >= 0) & (column >= 0)
    apart = (rule.query_codes[row[there]] != rule.item_codes[column[there]]).sum(axis=1)
    named = {}
    for threshold in rule.thresholds:
        right = np.zeros(len(query), dtype=bool)
        right[there] = apart <= threshold
        many = len(rule.thresholds) > 1
        named[f"{benchmark.name} ({threshold})" if many else benchmark.name] = right
    return named


def how_many(
    benchmark: Benchmark, direction: Literal["i2t", "t2i"], queries: Sequence[str]
) -> NDArray[np.int64]:
    """How many right answers each query has, those outside the gallery included; 0 where it is no query.

    Raises `DataError` where right is what a rule says.
    """
    search, asked, _ = _sides(benchmark, direction)
    if isinstance(search.positives, Plausible):
        raise DataError("right is what a rule says, not a list", where=benchmark.name)
    row = _renumbered(queries, [asked[i] for i in search.queries.tolist()])
    return np.where(row >= 0, search.positives.counts[row], 0)


def asked_about(
    benchmark: Benchmark | None,
    direction: Literal["i2t", "t2i"],
    queries: Sequence[str],
) -> Sharing:
    """What queries share: captions the image they were written for, and their text, as the benchmark says."""
    n = len(queries)
    images, captions = np.arange(n), np.full(n, -1)
    if benchmark is not None and direction == "t2i":
        gallery = benchmark.gallery
        at = _renumbered(queries, [caption.id for caption in benchmark.captions])
        owner = np.where(at >= 0, gallery.owners[at], -1)
        images = np.where(owner >= 0, owner, gallery.n_images + np.arange(n))
        texts = [benchmark.captions[row].text if row >= 0 else None for row in at.tolist()]
        number = {text: k for k, text in enumerate(dict.fromkeys(texts))}
        captions = np.array([-1 if text is None else number[text] for text in texts])
    return Sharing(images[:, None], captions[:, None])


def _sides(
    benchmark: Benchmark, direction: Literal["i2t", "t2i"]
) -> tuple[Search, Sequence[str], Sequence[str]]:
    """The search of a direction, the ids of what asks and of what is found."""
    images = [image.id for image in benchmark.images]
    captions = [caption.id for caption in benchmark.captions]
    if direction == "i2t":
        return benchmark.gallery.i2t, images, captions
    return benchmark.gallery.t2i, captions, images


def _renumbered(names: Sequence[str], among: Sequence[str]) -> NDArray[np.int64]:
    """The position of each name among others, -1 where it is none of them."""
    place = {name: at for at, name in enumerate(among)}
    return np.array([place.get(name, -1) for name in names], dtype=np.int64)
