"""Ranks of a gallery's right answers in both directions, from one pass over blocks of images x all captions.

Scores of right answers come from small products beforehand; a caption for which these differ from the
block's in the last bit is counted again.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.benchmarks.answers import DirectionRanks, Rankings
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import Gallery, GallerySide, RetrievalDirection
from counterfoil.engine.plan import Progress, silent
from counterfoil.engine.similarity import Blocks, lines
from counterfoil.engine.topk import better, map_ordered
from counterfoil.errors import InputError
from counterfoil.metrics.class_rules import Plausible, precision_at_r
from counterfoil.metrics.ranks import Qrels, distinct_pairs, row_counts, tally

_BLOCK = 50_000_000
#: Scores that are put in order, and pairs that a rule is asked about, at once.
AT_ONCE = 1 << 22
#: Images whose right answers are scored together beforehand.
_BEFOREHAND = 72


def rank(
    benchmarks: Sequence[Benchmark],
    blocks: Blocks,
    *,
    top: int = 50,
    block: int | None = None,
    threads: int | None = None,
    progress: Progress = silent,
) -> list[Rankings]:
    """The places of all right answers of galleries of the same items, and the first `top` of each query."""
    galleries = [benchmark.gallery for benchmark in benchmarks]
    for gallery in galleries:
        if (gallery.n_images, gallery.n_captions) != (blocks.n_images, blocks.n_captions):
            problem = "scores are not of the gallery's items"
            given = f"{blocks.n_images} images x {blocks.n_captions} captions"
            raise InputError(problem, given=given, allowed=f"{gallery.n_images} x {gallery.n_captions}")
    work = _Pass(galleries, blocks, top, block or max(1, _BLOCK // (blocks.n_captions * blocks.itemsize)))
    work.run(threads, progress)
    numbered = enumerate(gallery.sides for gallery in galleries)
    placed = [[work.placed(i, side, threads) for side in sides] for i, sides in numbered]
    return [Rankings(i2t, t2i) for i2t, t2i in placed]


@dataclass(eq=False)
class _Scope:
    """A way to see the gallery: whole, or in parts; and the pairs (of all that are asked for) it is about."""

    gallery: Gallery
    pairs: dict[str, ndarray]

    def __post_init__(self) -> None:
        self.above = {side: np.zeros(len(pairs), np.int64) for side, pairs in self.pairs.items()}
        self.level = {side: np.zeros(len(pairs), np.int64) for side, pairs in self.pairs.items()}
        #: Positions of the images and of the captions of each part; None where all see each other.
        self.parts: list[tuple[ndarray, ndarray]] | None = None
        of_image, of_caption = self.gallery.image_parts, self.gallery.caption_parts
        if of_image is not None and of_caption is not None:
            numbers = range(1 + int(max(of_image.max(initial=0), of_caption.max(initial=0))))
            self.parts = [(np.flatnonzero(of_image == n), np.flatnonzero(of_caption == n)) for n in numbers]

    def views(self, lo: int, hi: int) -> Iterator[tuple[ndarray | slice, ndarray | slice]]:
        if self.parts is None:
            yield slice(0, hi - lo), slice(None)
            return
        for images, captions in self.parts:
            rows = images[np.searchsorted(images, lo) : np.searchsorted(images, hi)] - lo
            if len(rows):
                yield _slice(rows), _slice(captions)


class _Pass:
    def __init__(self, galleries: Sequence[Gallery], blocks: Blocks, top: int, size: int) -> None:
        self.galleries, self.blocks, self.size = galleries, blocks, size
        self.lock = threading.Lock()
        self.n = {"i2t": blocks.n_images, "t2i": blocks.n_captions}
        self.top = {"i2t": min(top, blocks.n_captions), "t2i": min(top, blocks.n_images)}
        # The distinct pairs that are right in any gallery: by image for i2t, by caption for t2i.
        self.query: dict[str, ndarray] = {}
        self.item: dict[str, ndarray] = {}
        self.positions: dict[str, Sequence[ndarray]] = {}
        for side, n_items in (("i2t", self.n["t2i"]), ("t2i", self.n["i2t"])):
            spread = [_spread(getattr(gallery, side), self.n[side]) for gallery in galleries]
            self.query[side], self.item[side], self.positions[side] = distinct_pairs(spread, n_items)
        # Galleries that are seen alike are counted together.
        keys = [
            tuple(None if of is None else of.tobytes() for of in (gallery.image_parts, gallery.caption_parts))
            for gallery in galleries
        ]
        self.scopes: dict[tuple[bytes | None, ...], _Scope] = {}
        for key in dict.fromkeys(keys):
            alike = [i for i, other in enumerate(keys) if other == key]
            pairs = {
                side: np.unique(np.concatenate([positions[i] for i in alike]))
                for side, positions in self.positions.items()
            }
            self.scopes[key] = _Scope(galleries[alike[0]], pairs)
        self.scope_of = [self.scopes[key] for key in keys]
        self.early = np.empty(0)
        self.exact = np.ones(len(self.query["t2i"]), dtype=bool)
        # The queries whose first items are kept: those of galleries that are seen whole.
        none = np.empty(0, np.int64)
        whole = [gallery for gallery in galleries if gallery.image_parts is None]
        self.wanted = dict.fromkeys(self.n, none)
        for side in (side for side, top_of_side in self.top.items() if top_of_side):
            of_galleries = [getattr(gallery, side).queries for gallery in whole]
            self.wanted[side] = np.unique(np.concatenate([none, *of_galleries]))
        self.best = {side: (np.empty((0, 0), np.int64), np.empty((0, 0), np.float32)) for side in self.n}

    def run(self, threads: int | None, progress: Progress) -> None:
        """All blocks, then the captions whose scores were rounded in two ways."""
        self._scores_beforehand(threads)
        first_items: list[tuple[ndarray, ndarray]] = []
        running: tuple[ndarray, ndarray] | None = None
        starts = range(0, self.n["i2t"], self.size)
        for start, (first, turned) in map_ordered(self._block, starts, threads):
            first_items.append(first)
            if turned is not None:
                # Of fewer images than places all are ranked, and padded with what stands behind everything.
                k = turned.shape[1] if running is None else self.top["t2i"]
                items, scores = better(turned, 0, start, min(k, self.top["t2i"]), running)
                if missing := self.top["t2i"] - items.shape[1]:
                    items = np.pad(items, ((0, 0), (0, missing)), constant_values=-1)
                    scores = np.pad(scores, ((0, 0), (0, missing)), constant_values=-np.inf)
                running = items, scores
            progress("ranking", min(start + self.size, self.n["i2t"]), self.n["i2t"])
        if self.top["i2t"] and len(self.wanted["i2t"]):
            items, scores = (np.concatenate(parts) for parts in zip(*first_items, strict=True))
            self.best["i2t"] = items, scores
        if running is not None:
            self.best["t2i"] = running
        self._again()

    def _scores_beforehand(self, threads: int | None) -> None:
        """The scores of captions' right answers; the smallest products would round in another way."""
        caption, image = self.query["t2i"], self.item["t2i"]
        order = np.argsort(image, kind="stable")
        sorted_images = image[order]

        def scores(lo: int) -> tuple[ndarray, ndarray]:
            hi = min(lo + _BEFOREHAND, self.n["i2t"])
            positions = order[slice(*np.searchsorted(sorted_images, [lo, hi]))]
            columns, where = np.unique(caption[positions], return_inverse=True)
            return positions, self.blocks.part(slice(lo, hi), columns)[image[positions] - lo, where]

        for _, (positions, early) in map_ordered(scores, range(0, self.n["i2t"], _BEFOREHAND), threads):
            if not len(self.early):
                self.early = np.empty(len(caption), early.dtype)
            self.early[positions] = early

    def _block(self, lo: int) -> tuple[tuple[ndarray, ndarray], ndarray | None]:
        """Ranks what a block ranks; returns its images' first items, and the block turned round if needed."""
        hi = min(lo + self.size, self.n["i2t"])
        scores = self.blocks.rows(slice(lo, hi))
        caption, image = self.query["t2i"], self.item["t2i"]
        for scope in self.scopes.values():
            for rows, columns in scope.views(lo, hi):
                seen = scores[rows][:, columns]
                pairs = scope.pairs["i2t"]
                of_image, of_caption = self.query["i2t"][pairs], self.item["i2t"][pairs]
                local = np.arange(len(scores))[rows]
                place = np.full(len(scores), -1)
                place[local] = np.arange(len(local))
                here = slice(*np.searchsorted(of_image, [lo, lo + len(scores)]))
                listed = np.flatnonzero(place[of_image[here] - lo] >= 0) + here.start
                query = of_image[listed] - lo
                right = scores[query, of_caption[listed]]
                scope.above["i2t"][listed], scope.level["i2t"][listed] = row_counts(seen, place[query], right)
                self._count_images(scope, seen, columns)
        positions = np.flatnonzero((image >= lo) & (image < hi))
        self.exact[positions] = self.early[positions] == scores[image[positions] - lo, caption[positions]]
        chosen = self.wanted["i2t"]
        rows = chosen[np.searchsorted(chosen, lo) : np.searchsorted(chosen, hi)]
        none = np.empty((0, self.top["i2t"]))
        first = (none.astype(np.int64), none.astype(np.float32))
        if len(rows):
            first = better(np.ascontiguousarray(scores[_slice(rows - lo)]), lo, 0, self.top["i2t"], None)
        turned = None
        if len(self.wanted["t2i"]):
            # A copy in any case: the next block takes the memory of this one.
            turned = np.array(scores.T[_slice(self.wanted["t2i"])], order="C")
        return first, turned

    def _count_images(self, scope: _Scope, seen: ndarray, columns: ndarray | slice) -> None:
        """Text to image: adds what the images of a block contribute to the counts of captions."""
        caption = self.query["t2i"][scope.pairs["t2i"]]
        if isinstance(columns, slice) and columns == slice(None):
            rows, column = np.arange(len(caption)), caption
        else:
            place = np.full(self.n["t2i"], -1)
            place[columns] = np.arange(seen.shape[1])
            rows = np.flatnonzero(place[caption] >= 0)
            column = place[caption[rows]]
        above, level = tally(seen, column, self.early[scope.pairs["t2i"][rows]])
        # Several threads add to the same counts; whole numbers in any order are the same sum.
        with self.lock:
            scope.above["t2i"][rows] += above
            scope.level["t2i"][rows] += level

    def _again(self) -> None:
        """Captions whose right answers got another last bit beforehand: all from one product of their own."""
        caption, image = self.query["t2i"], self.item["t2i"]
        doubtful = np.unique(caption[~self.exact])
        step = max(1, _BLOCK // (self.n["i2t"] * self.blocks.itemsize))
        for lo in range(0, len(doubtful), step):
            chosen = doubtful[lo : lo + step]
            scores = self.blocks.part(slice(None), chosen)
            for scope in self.scopes.values():
                selected = np.flatnonzero(np.isin(caption[scope.pairs["t2i"]], chosen))
                pairs = scope.pairs["t2i"][selected]
                column = np.searchsorted(chosen, caption[pairs])
                right = scores[image[pairs], column]
                if scope.parts is None:
                    scope.above["t2i"][selected], scope.level["t2i"][selected] = tally(scores, column, right)
                    continue
                for rows, columns in scope.parts:
                    affected = np.flatnonzero(np.isin(caption[pairs], columns))
                    counts = tally(scores[rows], column[affected], right[affected])
                    scope.above["t2i"][selected[affected]], scope.level["t2i"][selected[affected]] = counts

    def placed(self, i: int, direction: GallerySide, threads: int | None) -> DirectionRanks:
        scope, side = self.scope_of[i], direction.name
        search, depth = direction.search, direction.sizes
        top = np.empty((len(search), 0), np.int32)
        top_scores = top.astype(np.float32)
        if scope.parts is None and self.top[side]:
            rows = np.searchsorted(self.wanted[side], search.queries)
            top = self.best[side][0][rows].astype(np.int32)
            top_scores = self.best[side][1][rows].astype(np.float32)
        positives, none = search.positives, np.empty(0, np.int64)
        if isinstance(positives, Plausible):
            return DirectionRanks(none, none, depth, top, top_scores, shares(direction, self.blocks, threads))
        above, level = np.full(len(positives.items), -1), np.zeros(len(positives.items), np.int64)
        pairs = _pairs_by_query(search)
        present = pairs[positives.items[pairs] >= 0]
        place = np.searchsorted(scope.pairs[side], self.positions[side][i])
        above[present], level[present] = scope.above[side][place], scope.level[side][place]
        return DirectionRanks(above, level, depth, top, top_scores)


def shares(
    side: GallerySide,
    blocks: Blocks,
    threads: int | None = None,
    levels: Callable[[ndarray, ndarray, ndarray], ndarray] = lambda scores, rows, items: scores,
) -> Float[ndarray, "thresholds 3 queries"]:
    """R-Precision by rule of each query, from the line of its scores, or what `levels` puts in its place."""
    search, rule = side.search, side.search.positives
    assert isinstance(rule, Plausible)
    values = np.full((len(rule.thresholds), 3, len(search)), np.nan)
    parts = [
        (rows[lo : lo + step], items)
        for rows, items in side.views()
        for step in (max(1, AT_ONCE // max(1, len(items))),)
        for lo in range(0, len(rows), step)
    ]

    def of_part(part: tuple[ndarray, ndarray]) -> ndarray:
        rows, items = part
        scores = np.ascontiguousarray(lines(blocks, side.name, search.queries[rows], _slice(items)))
        seen, near = levels(scores, rows, items), rule.distances(rows, items)
        return np.stack([precision_at_r(seen, near <= limit, cap=rule.cap) for limit in rule.thresholds])

    for (rows, _), part_values in map_ordered(of_part, parts, threads):
        values[:, :, rows] = part_values
    return values


def _spread(search: RetrievalDirection, n: int) -> Qrels:
    """The right answers of a search as rows of all n items of its queries' kind; none where a rule says."""
    positives = search.positives
    if isinstance(positives, Plausible):
        return Qrels.of([()] * n)
    counts = np.zeros(n, np.int64)
    counts[search.queries] = positives.counts
    pairs = _pairs_by_query(search)
    return Qrels(np.concatenate([[0], np.cumsum(counts)]), positives.items[pairs], positives.gains[pairs])


def _pairs_by_query(search: RetrievalDirection) -> ndarray:
    positives = search.positives
    assert isinstance(positives, Qrels)
    numbered = Qrels(positives.starts, np.arange(len(positives.items)), positives.gains)
    return numbered.take(np.argsort(search.queries, kind="stable")).items


def _slice(positions: ndarray) -> ndarray | slice:
    if len(positions) and (np.diff(positions) == 1).all():
        return slice(int(positions[0]), int(positions[-1]) + 1)
    return positions
