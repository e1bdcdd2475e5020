"""Diversity of the lists that models rank first (ECCV Caption section 3.1 and Appendix A.2).

For every pair of models, over the queries of one direction: the mean tau-b between their first k items, the
share of items in common, and the average place in the other's list of what a model puts first. Tau is over
the items of either list, one that a list lacks standing level behind its end; lists without a common item get
-2k / (3k - 1). ECCV Caption does not say over which items it takes tau; the union needs nothing but the lists
and punishes what one model finds and the other misses. So values do not compare with those it prints.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from counterfoil.benchmarks.forms import GallerySide
from counterfoil.errors import InputError
from counterfoil.evaluation.compare import aligned, by_benchmark
from counterfoil.evaluation.result import Run, or_none

#: About so many items are compared at once.
_AT_ONCE = 1 << 17


@dataclass(frozen=True, eq=False)
class Diversity:
    """How the first `k` items of models differ, each (models, models); `tau` and `common` are means.

    `place` is the mean place in the column's list of the row's first choice, `beyond` how often it has none.
    """

    benchmark: str
    title: str
    direction: str
    k: int
    queries: int
    models: tuple[str, ...]
    tau: Float[ndarray, "models models"]
    common: Float[ndarray, "models models"]
    place: Float[ndarray, "models models"]
    beyond: Float[ndarray, "models models"]

    @property
    def matrices(self) -> dict[str, Float[ndarray, "models models"]]:
        """All four by name."""
        return {"tau": self.tau, "common": self.common, "place": self.place, "beyond": self.beyond}

    def to_json(self) -> dict[str, Any]:
        """Plain values, None for what is undefined."""
        plain = {name: or_none(matrix.tolist()) for name, matrix in self.matrices.items()}
        about = {name: getattr(self, name) for name in ("benchmark", "direction", "k", "queries")}
        return {**about, "models": list(self.models), **plain}


def diversity(runs: Sequence[Run], *, k: int = 25) -> tuple[Diversity, ...]:
    """Both directions of every gallery that at least two models were run on, in order of first appearance. A
    gallery whose queries are all among those of another of the same items is left out, and so are runs
    without lists. Raises `InputError` where `k` is below 2 or more than a run keeps.
    """
    if k < 2:
        raise InputError("lists are too short to have an order", given=f"k {k}", allowed="2 or more")
    ranked = [(run, run.answers.rankings) for run in runs if run.answers.has_rankings]
    listing = [run for run, both in ranked if both.i2t.top.shape[1] or both.t2i.top.shape[1]]
    groups = [aligned(name, group) for name, group in by_benchmark(listing).items() if len(group) > 1]
    lists = []
    for i, group in enumerate(groups):
        if not any(_covers(other, group, earlier=j < i) for j, other in enumerate(groups) if j != i):
            sides = group[0].benchmark.gallery.sides
            lists += [_diversity(group, side, k) for side in sides if len(side.search)]
    return tuple(lists)


def list_tau(
    first: Int[ndarray, "queries k"], second: Int[ndarray, "queries k"]
) -> Float[ndarray, "queries"]:
    """Kendall's tau-b of two lists per query over the items of either; NaN for an empty list or one item."""
    taus = np.empty(len(first))
    step = max(1, _AT_ONCE // max(first.shape[1], 1))
    for lo in range(0, len(first), step):
        taus[lo : lo + step] = _list_tau(first[lo : lo + step], second[lo : lo + step])
    return taus


def common_share(
    first: Int[ndarray, "queries k"], second: Int[ndarray, "queries k"]
) -> Float[ndarray, "queries"]:
    """Twice the common items over all of both lists, in [0, 1]; NaN where both are empty."""
    other = np.ascontiguousarray(second.T)
    common = np.zeros(len(first), dtype=np.int64)
    for items in np.ascontiguousarray(first.T):
        common += ((other == items) & (items >= 0)).any(axis=0)
    listed = (first >= 0).sum(axis=1) + (second >= 0).sum(axis=1)
    return np.divide(2.0 * common, listed, out=np.full(len(first), np.nan), where=listed > 0)


def place_of_first(
    first: Int[ndarray, "queries k"], second: Int[ndarray, "queries k"]
) -> Float[ndarray, "queries"]:
    """The place in the second list of the first's first item, k + 1 where it is not there; NaN if empty."""
    hits = second == first[:, :1]
    places = np.where(hits.any(axis=1), hits.argmax(axis=1) + 1.0, first.shape[1] + 1.0)
    return np.where(first[:, 0] >= 0, places, np.nan)


def _list_tau(first: ndarray, second: ndarray) -> ndarray:
    k = first.shape[1]
    # Places down, queries across: what is compared lies side by side in memory.
    mine, other = np.ascontiguousarray(first.T), np.ascontiguousarray(second.T)
    place = np.full(mine.shape, -1, dtype=np.int16)
    shared = np.zeros(mine.shape, dtype=bool)
    for j in range(k):
        same = (mine == other[j]) & (mine >= 0)
        np.copyto(place, np.int16(j), where=same)
        shared[j] = same.any(axis=0)
    common = place >= 0, shared
    # Pairs of common items in one order less those in opposite orders; what is missing is never above, or
    # never below, anything else.
    never_below = np.where(place >= 0, place, np.iinfo(place.dtype).max)
    balance = np.zeros(len(first), dtype=np.int64)
    for i in range(k - 1):
        balance += (place[i + 1 :] > never_below[i]).sum(axis=0, dtype=np.int16)
        balance -= (never_below[i + 1 :] < place[i]).sum(axis=0, dtype=np.int16)
    n_common, n_alone = common[0].sum(axis=0), []
    for both, items in zip(common, (mine, other), strict=True):
        one = (items >= 0) & ~both
        # An item of one list alone stands behind the other list: right of those common ones that stand before
        # it in its own list, wrong of those behind it.
        before = np.cumsum(both, axis=0, dtype=np.int16)
        balance += ((2 * before - before[-1]) * one).sum(axis=0, dtype=np.int64)
        n_alone.append(one.sum(axis=0))
    # Of two items, each in one list alone, each list puts its own first.
    balance -= n_alone[0] * n_alone[1]
    union = n_common + n_alone[0] + n_alone[1]
    # A list ties all those items that the other has alone.
    untied = [union * (union - 1) // 2 - n * (n - 1) // 2 for n in n_alone]
    length = np.sqrt(untied[0].astype(np.float64) * untied[1])
    defined = (length > 0) & (n_common + n_alone[0] > 0) & (n_common + n_alone[1] > 0)
    return np.divide(balance, length, out=np.full(len(first), np.nan), where=defined)


def _covers(other: tuple[Run, ...], group: tuple[Run, ...], *, earlier: bool) -> bool:
    """Whether another gallery of the same items has the same models on all of these queries and more."""
    items, queries = [], []
    for benchmark in (group[0].benchmark, other[0].benchmark):
        parts, images = benchmark.gallery.image_parts, [image.id for image in benchmark.images]
        captions = [caption.id for caption in benchmark.captions]
        items.append((images, captions, None if parts is None else parts.tolist()))
        queries.append(set(benchmark.questions.ids))
    as_many = len(queries[0]) == len(queries[1]) and len(group) == len(other)
    of_models = {run.name for run in group} <= {run.name for run in other}
    return of_models and items[0] == items[1] and queries[0] <= queries[1] and (earlier or not as_many)


def _diversity(runs: tuple[Run, ...], side: GallerySide, k: int) -> Diversity:
    benchmark = runs[0].benchmark
    # A query of this direction sees so many items at the least: those of its part.
    parts, reach = side.item_parts, side.n_items
    if parts is not None:
        reach = int(np.bincount(parts)[np.unique(parts)].min())
    lists = []
    for run in runs:
        top = getattr(run.answers.rankings, side.name).top
        if top.shape[1] < min(k, reach):
            raise InputError(
                f"the run of '{run.name}' on {benchmark.name} keeps too few of each query's first items",
                given=f"k {k}",
                allowed=f"2 to {top.shape[1]}" if top.shape[1] > 1 else "none",
                hint="ask for a smaller --k, or evaluate again",
            )
        lists.append(top[:, :k])
    n = len(runs)
    tau, common, place = np.ones((3, n, n))
    beyond = np.zeros((n, n))
    for a, b in combinations(range(n), 2):
        tau[a, b] = tau[b, a] = _mean(list_tau(lists[a], lists[b]))
        common[a, b] = common[b, a] = _mean(common_share(lists[a], lists[b]))
        for x, y in ((a, b), (b, a)):
            places = place_of_first(lists[x], lists[y])
            place[x, y] = _mean(places)
            beyond[x, y] = _mean(np.where(np.isnan(places), np.nan, places > lists[y].shape[1]))
    names, title = tuple(run.name for run in runs), benchmark.title
    matrices = tau, common, place, beyond
    return Diversity(benchmark.name, title, side.name, k, len(lists[0]), names, *matrices)


def _mean(values: ndarray) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")
