"""Rankings of galleries by any kind of model.

A model of pairs reorders the first `depth` items of a cheaper model. What stands behind the end of a given
list is unknown; a measure that depends on it is refused, unless `truncated_as_miss` counts it as wrong.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from jaxtyping import Float64, Int32, Int64
from numpy import ndarray

from counterfoil.benchmarks.answers import DirectionRanks, Rankings
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import GallerySide, Ids
from counterfoil.engine.gallery import AT_ONCE, rank, shares
from counterfoil.engine.join_scores import item_rows
from counterfoil.engine.plan import Note, ability_for, few, warn
from counterfoil.engine.session import Session, with_provenance
from counterfoil.engine.similarity import Blocks, CustomSimilarity, Matrix, Products, lines, unit
from counterfoil.engine.topk import top_k_in_blocks
from counterfoil.errors import InputError, ScoreError
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ranks import list_places
from counterfoil.models import precomputed_galleries as galleries
from counterfoil.models.base import Classifier, Embedder, Model, PairModel, abilities
from counterfoil.models.baselines import LearnedModel
from counterfoil.models.captions.base import CaptionMetric
from counterfoil.models.precomputed import PrecomputedTable
from counterfoil.models.precomputed_galleries import PrecomputedEmbeddings, PrecomputedRankings, RankedLists

Given = PrecomputedTable | PrecomputedEmbeddings | galleries.PrecomputedSimilarity | PrecomputedRankings

#: The most pairs of a gallery that a model of pairs is asked about whole.
ALL_PAIRS = 1_000_000


def rank_gallery(benchmark: Benchmark, model: Any, *, session: Session) -> Rankings:
    """What `model` answers to one gallery."""
    return rank_galleries([benchmark], model, session=session)[0]


def rank_galleries(
    benchmarks: Sequence[Benchmark],
    model: Embedder | PairModel | Model | Classifier | Given | CaptionMetric | LearnedModel,
    *,
    first_stage: Embedder | PairModel | Model | Given | None = None,
    depth: int = 32,
    top: int = 50,
    truncated_as_miss: bool = False,
    session: Session = Session(),
) -> list[Rankings]:
    """What `model` answers to galleries: the places of right answers, and the first `top` of each query.

    A model of pairs scores all pairs of up to a million, or the first `depth` items of a `first_stage`.
    """
    able = {ability_for(model, benchmark) for benchmark in benchmarks}
    if able == {"given_rankings"}:
        lists = cast(PrecomputedRankings, model)
        how: Any = {"top": top, "truncated_as_miss": truncated_as_miss}
        ranked = (rank_precomputed(benchmark, lists, **how, note=session.note) for benchmark in benchmarks)
        return [with_provenance(rankings, model, session=session) for rankings in ranked]
    if first_stage is not None and able != {"scores_pairs"}:
        hint = "leave --first-stage out: this model ranks the whole gallery"
        raise InputError("a first stage is for models of pairs", given=model.identity.name, hint=hint)
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, benchmark in enumerate(benchmarks):
        image_items = tuple((image.id, image.crop) for image in benchmark.images)
        caption_items = tuple((caption.id, caption.text) for caption in benchmark.captions)
        groups.setdefault((image_items, caption_items), []).append(i)
    rankings_of: dict[int, Rankings] = {}
    for group in groups.values():
        chosen = [benchmarks[i] for i in group]
        if first_stage is not None:
            part = _again(chosen, model, first_stage, depth, top, session)  # type: ignore[arg-type]
        else:
            part = rank(chosen, _blocks(chosen[0], model, session), top=top, progress=session.progress)
        rankings_of |= dict(zip(group, part, strict=True))
    return [
        with_provenance(rankings_of[i], model, first=first_stage, session=session)
        for i in range(len(benchmarks))
    ]


def _blocks(benchmark: Benchmark, model: Any, session: Session) -> Blocks:
    ability = ability_for(model, benchmark)
    n, m = len(benchmark.images), len(benchmark.captions)
    if ability == "embeds":
        work, cache = session.prepare(benchmark, model)
        captions, images = session.embed(model, work, cache)
        sides = images[work.image_of], captions[work.caption_of]
        comparison = getattr(model, "comparison", None)
        return Products(*sides) if comparison is None else CustomSimilarity(comparison, *sides)
    if ability == "scores_pairs":
        if n * m > ALL_PAIRS:
            problem = f"{benchmark.name} has too many pairs for a model of pairs"
            where, given = model.identity.name, f"{n:,} x {m:,} = {n * m:,}"
            hint = "let a dual encoder choose: --first-stage MODEL --depth 32"
            raise InputError(problem, where=where, given=given, allowed=f"up to {ALL_PAIRS:,}", hint=hint)
        rows, columns = np.divmod(np.arange(n * m), m)
        return Matrix(session.scores(benchmark, model, (columns, rows)).reshape(n, m))
    named = model.image_ids is not None or model.caption_ids is not None
    if ability == "given_similarity" and not named and model.values.shape != (n, m):
        height, width = model.values.shape
        problem, given = f"the similarity has another shape than {benchmark.name}", f"{height} x {width}"
        hint = "say with --ids which rows and columns are whose"
        if (m, n) == (height, width):
            hint = "rows are images, columns captions: transpose it"
        where, allowed = model.identity.name, f"{n} images x {m} captions"
        raise ScoreError(problem, where=where, given=given, allowed=allowed, hint=hint)
    row_of = item_rows("image", benchmark.images, model, benchmark.name)
    column_of = item_rows("caption", benchmark.captions, model, benchmark.name)
    if ability == "given_embeddings":
        return Products(unit(model.images)[row_of], unit(model.captions)[column_of])
    names = [image.id for image in benchmark.images], [caption.id for caption in benchmark.captions]
    return Matrix(model.values, row_of, column_of, where=model.identity.name, names=names)


def _again(
    benchmarks: Sequence[Benchmark],
    model: PairModel | Model,
    first_stage: Embedder | Given,
    depth: int,
    top: int,
    session: Session,
) -> list[Rankings]:
    """A model of pairs over the first items of a first stage."""
    if not {"embeds", "given_embeddings", "given_similarity"}.intersection(abilities(first_stage)):
        problem = "the first stage must score the whole gallery"
        given = first_stage.identity.name
        raise InputError(problem, given=given, allowed="a dual encoder, embeddings or a similarity")
    if depth < 1:
        raise InputError("number of items to rank again", given=depth, allowed="1 or more")
    blocks = _blocks(benchmarks[0], first_stage, session)
    first = rank(benchmarks, blocks, top=top, progress=session.progress)
    placed = [
        (getattr(rankings, side.name), candidates(side, blocks, depth))
        for benchmark, rankings in zip(benchmarks, first, strict=True)
        for side in benchmark.gallery.sides
    ]
    pairs = [chosen.pairs() for _, chosen in placed]
    captions, images = (np.concatenate(some) for some in zip(*pairs, strict=True))
    scores = session.scores(benchmarks[0], model, (captions, images))
    parts = np.split(scores, np.cumsum([len(some) for some, _ in pairs])[:-1])
    ranks = [
        reordered(ranked, chosen, chosen.scored(part), blocks)
        for (ranked, chosen), part in zip(placed, parts, strict=True)
    ]
    return [Rankings(*sides) for sides in zip(ranks[::2], ranks[1::2], strict=True)]


def name(model: str, first_stage: str, depth: int) -> str:
    """What a model that ranks the first items of another is called, so that no result hides it."""
    return f"{model} over the first {depth} of {first_stage}"


@dataclass(frozen=True, eq=False)
class Candidates:
    """The first items of each query of one direction by the first stage, best first; -1 behind their end."""

    side: GallerySide
    items: Int64[ndarray, "queries depth"]

    def pairs(self) -> tuple[Int64[ndarray, "pairs"], Int64[ndarray, "pairs"]]:
        row, column = np.nonzero(self.items >= 0)
        query, item = self.side.search.queries[row], self.items[row, column]
        return (item, query) if self.side.name == "i2t" else (query, item)

    def scored(self, scores: Float64[ndarray, "pairs"]) -> Float64[ndarray, "queries depth"]:
        """The scores of `pairs` at their places; what is behind the end scores below everything."""
        spread = np.full(self.items.shape, -np.inf)
        spread[self.items >= 0] = scores
        return spread


def candidates(side: GallerySide, blocks: Blocks, depth: int) -> Candidates:
    """The first `depth` items of each query of `side`, of equal scores the lower position first."""
    items_of = np.full((len(side.search), min(depth, side.n_items)), -1, dtype=np.int64)
    for rows, items in side.views():
        k = min(depth, len(items))
        if not len(rows) or not k:
            continue
        queries = side.search.queries[rows]

        def block(some: slice, part: slice, queries: Ids = queries, items: Ids = items) -> ndarray:
            return lines(blocks, side.name, queries[some], items[part])

        best, _ = top_k_in_blocks(block, len(rows), len(items), k)
        items_of[rows, :k] = items[best]
    return Candidates(side, items_of)


def reordered(
    first: DirectionRanks, chosen: Candidates, scores: Float64[ndarray, "queries depth"], blocks: Blocks
) -> DirectionRanks:
    """Where right answers stand once the candidates are put in the order of `scores` (higher is better)."""
    top, top_scores = _first_items(first, chosen, scores)
    placed = replace(first, top=top, top_scores=top_scores)
    positives = chosen.side.search.positives
    if isinstance(positives, Plausible):

        def levels(of_queries: ndarray, rows: ndarray, items: ndarray) -> ndarray:
            # Numbers of levels in place of scores: whatever these are, candidates can stand above them all.
            of_lines = np.stack([np.unique(line, return_inverse=True)[1].reshape(-1) for line in of_queries])
            for level, query in zip(of_lines, rows, strict=True):
                there = chosen.items[query] >= 0
                mine = np.unique(scores[query, there], return_inverse=True)[1].reshape(-1)
                level[np.searchsorted(items, chosen.items[query, there])] = len(items) + mine
            return of_lines

        return replace(placed, shares=shares(chosen.side, blocks, levels=levels))
    above, level = first.above.copy(), first.level.copy()
    number = np.count_nonzero(chosen.items >= 0, axis=1)
    present = np.flatnonzero(positives.items >= 0)
    step = max(1, AT_ONCE // max(1, chosen.items.shape[1]))
    for lo in range(0, len(present), step):
        positions = present[lo : lo + step]
        query = positives.queries[positions]
        here = chosen.items[query] == positives.items[positions][:, None]
        among = here.any(axis=1)
        # Of the candidates as high as the last one some may be left out: these stand above now.
        more = np.maximum(0, number[query] - above[positions])
        above[positions], level[positions] = above[positions] + more, np.maximum(1, level[positions] - more)
        place, kept_items, line = positions[among], here[among], scores[query[among]]
        value = line[kept_items][:, None]
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
    for i in range(len(top)):
        valid = items[i][items[i] >= 0][:width]
        others = first.top[i][~np.isin(first.top[i], items[i])][: width - len(valid)]
        top[i, : len(valid)], top[i, len(valid) : len(valid) + len(others)] = valid, others
        top_scores[i, : len(valid)] = values[i, : len(valid)]
    return top, top_scores


_HINT = "give full rankings, or scores"


def rank_precomputed(
    benchmark: Benchmark,
    given: PrecomputedRankings,
    *,
    top: int = 50,
    truncated_as_miss: bool = False,
    note: Note = warn,
) -> Rankings:
    """Where the right answers of a gallery stand in given rankings, in both directions; nothing is level.

    Lists that end too early for a gallery of parts, or before R, are refused without `truncated_as_miss`.
    """
    images, captions = ([item.id for item in items] for items in (benchmark.images, benchmark.captions))
    placed, cut = [], []
    for side, ids in zip(benchmark.gallery.sides, ((images, captions), (captions, images)), strict=True):
        where = f"{given.identity.name}, {side.name}"
        direction = _Direction(benchmark.name, where, side, *ids, getattr(given, side.name))
        placed.append(direction.placed(top, truncated_as_miss))
        cut.append(int((direction.lengths < direction.sizes)[side.search.defined].sum()))
    if truncated_as_miss and any(cut):
        note(
            f"{given.identity.name}: {cut[0]} rankings of images and {cut[1]} of captions end before the "
            f"gallery of {benchmark.name} does; what is not listed counts as wrong, and the numbers change "
            "with the length of the lists"
        )
    return Rankings(placed[0], placed[1])


@dataclass(eq=False)
class _Direction:
    """One direction of a gallery: what is asked, the ids of what asks and of the items, and the lists."""

    benchmark: str
    where: str
    side: GallerySide
    query_ids: list[str]
    item_ids: list[str]
    lists: RankedLists

    def __post_init__(self) -> None:
        self.search, self.sizes, self.query_parts = self.side.search, self.side.sizes, self.side.query_parts

    def placed(self, top: int, truncated_as_miss: bool) -> DirectionRanks:
        short = (self.lengths < self.sizes) & self.search.defined
        if self.query_parts is not None and short.any() and not truncated_as_miss:
            i = int(np.argmax(short))
            raise InputError(
                f"{self.benchmark} needs full rankings: each query is ranked within its own part, "
                "of which a cut list holds only what chance left in it",
                where=f"{self.where}, query '{self._query(i)}'",
                given=f"{self.lengths[i]} of the {self.sizes[i]} items of its part",
                hint=f"so for {int(short.sum())} of {len(short)} queries; {_HINT}",
            )
        positives, none = self.search.positives, np.empty(0, dtype=np.int64)
        depth = self.sizes if truncated_as_miss else self.lengths
        best = np.full((len(self.search), min(top, len(self.item_ids))), -1, dtype=np.int32)
        unscored = np.full(best.shape, np.nan, dtype=np.float32)
        if isinstance(positives, Plausible):
            shares = self._shares(positives, best, truncated_as_miss)
            return DirectionRanks(none, none, depth, best, unscored, shares)
        above = list_places(self._listed(best, 0), positives, gallery=len(self.item_ids))
        return DirectionRanks(above, (above >= 0).astype(np.int64), depth, best, unscored)

    @cached_property
    def lengths(self) -> Int64[ndarray, "queries"]:
        """How many items of its gallery each query's list names."""
        if self.query_parts is None:
            return np.where(self._rows >= 0, np.append(self.lists.lengths, 0)[self._rows], 0)
        return np.array([len(self._items(i)) for i in range(len(self.search))], dtype=np.int64)

    def _query(self, position: int) -> str:
        return self.query_ids[self.search.queries[position]]

    @cached_property
    def _rows(self) -> Int64[ndarray, "queries"]:
        """The list of every query; -1 without one, where nothing is right and so nothing is measured."""
        row_of = {name: row for row, name in enumerate(self.lists.queries)}
        rows = np.array([row_of.get(self._query(i), -1) for i in range(len(self.search))], dtype=np.int64)
        missing = np.flatnonzero((rows < 0) & self.search.defined)
        if len(missing):
            names = few([self._query(int(i)) for i in missing])
            problem = f"queries of {self.benchmark} have no ranking"
            given = f"{len(missing)} of {len(rows)} missing: {names}"
            hint = f"the first ranking is of '{self.lists.queries[0]}'" if self.lists.queries else None
            raise ScoreError(problem, where=self.where, given=given, hint=hint)
        return rows

    @cached_property
    def _positions(self) -> Int32[ndarray, "items"]:
        """The position of everything that the lists name, -1 where the gallery does not hold it."""
        position = {name: i for i, name in enumerate(self.item_ids)}
        return np.array([position.get(name, -1) for name in self.lists.items], dtype=np.int32)

    def _items(self, position: int) -> Int32[ndarray, "listed"]:
        """The positions of a query's items, best first; those of other parts left out."""
        row = self._rows[position]
        if row < 0:
            return np.empty(0, dtype=np.int32)
        entries = self.lists.entries[self.lists.starts[row] : self.lists.starts[row + 1]]
        items = self._positions[entries]
        if len(items) and items.min() < 0:
            strange = self.lists.items[entries[int(np.argmin(items))]]
            problem = f"a ranking names an item that the gallery of {self.benchmark} does not hold"
            where, count = f"{self.where}, query '{self._query(position)}'", len(self.item_ids)
            hint = f"is it of another gallery? this one has {count} items, the first is '{self.item_ids[0]}'"
            raise ScoreError(problem, where=where, given=f"'{strange}'", hint=hint)
        if self.query_parts is not None and self.side.item_parts is not None:
            items = items[self.side.item_parts[items] == self.query_parts[position]]
        return items

    def _listed(self, best: Int32[ndarray, "queries top"], lo: int) -> Iterator[Int32[ndarray, "listed"]]:
        """The items of each query from `lo` on in turn, the first of which are put into its row of `best`."""
        for i, row in enumerate(best, start=lo):
            items = self._items(i)
            row[: len(items)] = items[: len(row)]
            yield items

    def _shares(
        self, rule: Plausible, best: Int32[ndarray, "queries top"], truncated_as_miss: bool
    ) -> Float64[ndarray, "thresholds 3 queries"]:
        """R-Precision of each query at each threshold (there are no ties); fills in the best items."""
        n = len(self.search)
        shares = np.full((len(rule.thresholds), 3, n), np.nan)
        step = max(1, AT_ONCE // max(len(self.item_ids), 1))
        for lo in range(0, n, step):
            queries = slice(lo, min(lo + step, n))
            distances = rule.distances(queries)
            if self.query_parts is not None:
                # Farther than any two codes are: never right.
                distances[self.query_parts[queries, None] != self.side.item_parts] = np.iinfo(
                    distances.dtype
                ).max
            ranked = list(self._listed(best[queries], lo))
            for nth, threshold in enumerate(rule.thresholds):
                right = distances <= threshold
                positions = np.minimum(right.sum(axis=1), rule.cap or len(self.item_ids))
                short = (self.lengths[queries] < positions) & (not truncated_as_miss)
                if short.any():
                    i = int(np.argmax(short))
                    problem = f"the ranking is too short for R-Precision on {self.benchmark}"
                    where = f"{self.where}, query '{self._query(lo + i)}'"
                    given, allowed = f"{self.lengths[lo + i]} items", f"{positions[i]} or more"
                    raise InputError(problem, where=where, given=given, allowed=allowed, hint=_HINT)
                for i in np.flatnonzero(positions).tolist():
                    hits = np.count_nonzero(right[i, ranked[i][: positions[i]]])
                    shares[nth, :, lo + i] = hits / positions[i]
        return shares
