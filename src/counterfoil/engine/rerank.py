"""Scorers of pairs on a whole gallery: they rank again what a cheaper scorer puts first.

A cross-encoder looks at one image and one caption at a time, which for all of a gallery would take days. It
is asked about the first `depth` items of each query alone. These come first in the order it gives them, its
ties kept; all others keep the order and the ties of the first stage, below them. Both directions ask about
pairs of their own, and each distinct pair is scored once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Float64, Int64
from numpy import ndarray

from counterfoil.data.answers import DirectionRanks
from counterfoil.data.forms import Gallery, Ids, Search
from counterfoil.engine.blocks import Blocks
from counterfoil.engine.top_lists import top_k_in_blocks
from counterfoil.metrics.class_rules import Plausible, precision_at_r

# Scores that are put in order at once where a rule says what is right.
_AT_ONCE = 1 << 22


def name(scorer: str, first_stage: str, depth: int) -> str:
    """What a scorer that ranks the first items of another is called, so that no result hides it.

    >>> name("blip", "open-clip:ViT-B-32", 32)
    'blip over the first 32 of open-clip:ViT-B-32'
    """
    return f"{scorer} over the first {depth} of {first_stage}"


@dataclass(frozen=True, eq=False)
class Candidates:
    """The first items of each query of one direction by the first stage, best first; -1 behind their end.

    A query of a gallery in parts has those of its own part.
    """

    side: str
    search: Search
    items: Int64[ndarray, "queries depth"]

    def pairs(self) -> tuple[Int64[ndarray, "pairs"], Int64[ndarray, "pairs"]]:
        """Captions and images of all of them, query by query."""
        row, column = np.nonzero(self.items >= 0)
        query, item = self.search.queries[row], self.items[row, column]
        return (item, query) if self.side == "i2t" else (query, item)

    def scored(self, scores: Float64[ndarray, "pairs"]) -> Float64[ndarray, "queries depth"]:
        """The scores of `pairs` at their places; what is behind the end scores below everything."""
        spread = np.full(self.items.shape, -np.inf)
        spread[self.items >= 0] = scores
        return spread


def candidates(gallery: Gallery, side: str, blocks: Blocks, depth: int) -> Candidates:
    """The first `depth` items of each query of `side`, of equal scores the lower position first."""
    search: Search = getattr(gallery, side)
    found = np.full((len(search), min(depth, _items(gallery, side))), -1, dtype=np.int64)
    for rows, items in _views(gallery, side):
        k = min(depth, len(items))
        if not len(rows) or not k:
            continue
        queries = search.queries[rows]

        def block(some: slice, part: slice, queries: Ids = queries, items: Ids = items) -> ndarray:
            if side == "i2t":
                return blocks.part(queries[some], items[part])
            return blocks.part(items[part], queries[some]).T

        best, _ = top_k_in_blocks(block, len(rows), len(items), k)
        found[rows, :k] = items[best]
    return Candidates(side, search, found)


def reordered(
    gallery: Gallery,
    first: DirectionRanks,
    chosen: Candidates,
    scores: Float64[ndarray, "queries depth"],
    blocks: Blocks,
) -> DirectionRanks:
    """Where right answers stand once the candidates are put in the order of `scores` (higher is better).

    `first` is where the first stage, whose scores `blocks` are, puts them. A right answer that is a candidate
    is counted among the candidates; any other has at least all of these above it.
    """
    top, top_scores = _first_items(first, chosen, scores)
    placed = replace(first, top=top, top_scores=top_scores)
    positives = chosen.search.positives
    if isinstance(positives, Plausible):
        return replace(placed, shares=_shares(gallery, positives, chosen, scores, blocks))
    above, level = first.above.copy(), first.level.copy()
    number = np.count_nonzero(chosen.items >= 0, axis=1)
    present = np.flatnonzero(positives.items >= 0)
    step = max(1, _AT_ONCE // max(1, chosen.items.shape[1]))
    for lo in range(0, len(present), step):
        at = present[lo : lo + step]
        query = positives.queries[at]
        here = chosen.items[query] == positives.items[at][:, None]
        among = here.any(axis=1)
        # Of the candidates as high as the last one some may be left out: these stand above now.
        more = np.maximum(0, number[query] - above[at])
        above[at], level[at] = above[at] + more, np.maximum(1, level[at] - more)
        place, own, line = at[among], here[among], scores[query[among]]
        value = line[own][:, None]
        above[place], level[place] = (line > value).sum(axis=1), (line == value).sum(axis=1)
    return replace(placed, above=above, level=level)


def _first_items(
    first: DirectionRanks, chosen: Candidates, scores: Float64[ndarray, "queries depth"]
) -> tuple[ndarray, ndarray]:
    """The first items in the new order; behind the candidates the first stage's, whose scores say nothing."""
    top, top_scores = np.full_like(first.top, -1), np.full_like(first.top_scores, np.nan)
    width = top.shape[1]
    if not width:
        return top, top_scores
    # Of equal scores the lower position first; what is behind the end of the candidates stays there.
    order = np.lexsort((chosen.items, -scores, chosen.items < 0), axis=1)
    items, values = np.take_along_axis(chosen.items, order, 1), np.take_along_axis(scores, order, 1)
    for at in range(len(top)):
        own = items[at][items[at] >= 0][:width]
        others = first.top[at][~np.isin(first.top[at], items[at])][: width - len(own)]
        top[at, : len(own)], top[at, len(own) : len(own) + len(others)] = own, others
        top_scores[at, : len(own)] = values[at, : len(own)]
    return top, top_scores


def _shares(
    gallery: Gallery,
    rule: Plausible,
    chosen: Candidates,
    scores: Float64[ndarray, "queries depth"],
    blocks: Blocks,
) -> Float[ndarray, "thresholds 3 queries"]:
    """R-Precision by rule in the new order, from whole lines of scores put in order."""
    search = chosen.search
    values = np.full((len(rule.thresholds), 3, len(search)), np.nan)
    place = np.empty(_items(gallery, chosen.side), dtype=np.int64)
    for rows, items in _views(gallery, chosen.side):
        place[items] = np.arange(len(items))
        step = max(1, _AT_ONCE // max(1, len(items)))
        for lo in range(0, len(rows), step):
            own = rows[lo : lo + step]
            queries = search.queries[own]
            lines = blocks.part(queries, items) if chosen.side == "i2t" else blocks.part(items, queries).T
            # Numbers of levels in place of scores: whatever these are, candidates can stand above them all.
            levels = np.stack([np.unique(line, return_inverse=True)[1].reshape(-1) for line in lines])
            for row, query in enumerate(own):
                there = chosen.items[query] >= 0
                mine = np.unique(scores[query, there], return_inverse=True)[1].reshape(-1)
                levels[row, place[chosen.items[query, there]]] = len(items) + mine
            near = rule.distances(own, items)
            for nth, limit in enumerate(rule.thresholds):
                values[nth][:, own] = precision_at_r(levels, near <= limit, cap=rule.cap)
    return values


def _items(gallery: Gallery, side: str) -> int:
    return gallery.n_captions if side == "i2t" else gallery.n_images


def _views(gallery: Gallery, side: str) -> Iterator[tuple[Ids, Ids]]:
    """Rows of a search and the items that they see."""
    search: Search = getattr(gallery, side)
    if gallery.image_parts is None or gallery.caption_parts is None:
        yield np.arange(len(search)), np.arange(_items(gallery, side))
        return
    of_query, of_item = gallery.image_parts, gallery.caption_parts
    if side == "t2i":
        of_query, of_item = of_item, of_query
    for part in np.unique(of_query[search.queries]):
        yield np.flatnonzero(of_query[search.queries] == part), np.flatnonzero(of_item == part)
