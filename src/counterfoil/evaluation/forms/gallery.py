"""Evaluation of galleries: directions and parts count the same, queries without a value do not count."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.benchmarks.answers import Answers, DirectionRanks, Rankings
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import RetrievalDirection
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation import gallery_values
from counterfoil.evaluation.forms.base import (
    EvaluationSettings,
    FormEvaluation,
    PairedRuns,
    Prepared,
    Tested,
    check_answers,
    tie_facts,
)
from counterfoil.evaluation.gallery_values import POLICIES, directions_of, mean, measured, per_item, tied
from counterfoil.evaluation.intervals import IntervalMethod, dependence, facts
from counterfoil.evaluation.result import Estimate, Result
from counterfoil.inputs.columns import ColumnSchema
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.measure import DIRECTIONS, split_direction
from counterfoil.metrics.ranks import Qrels
from counterfoil.metrics.ties import Ties
from counterfoil.stats import estimates
from counterfoil.stats.dependence import Sharing
from counterfoil.stats.intervals import Spread, wilson


def _table(
    benchmark: Benchmark, values: Mapping[str, Float[ndarray, "n"]], names: Sequence[str]
) -> tuple[Float[ndarray, "n m"], Int[ndarray, "n m"], Float[ndarray, "m k"]]:
    """The columns that measures are made of, the part of each row there, and which columns each averages.

    A direction's measure is its own column, and `mean_X` half of one and half of the other, so that no column
    is worked out twice. Values are within [0, 1], parts -1 where a column has none, and the weights of the
    columns a column of weights per name.
    """
    directions = benchmark.gallery.directions
    columns: dict[str, Float[ndarray, "n"]] = {}
    made_of: list[list[int]] = []
    for name in names:
        side, base = split_direction(name)
        made_of.append([])
        for direction, one in enumerate(("i2t", "t2i")):
            if side in (one, "mean"):
                key = f"{one}_{base}"
                columns.setdefault(key, np.where(directions == direction, values[name], np.nan))
                made_of[-1].append(list(columns).index(key))
    averages = np.zeros((len(columns), len(names)))
    for k, parts in enumerate(made_of):
        averages[parts, k] = 1 / len(parts)
    table = np.stack(list(columns.values()), axis=1)
    groups = np.where(np.isnan(table), -1, benchmark.gallery.query_parts[:, None])
    return np.clip(table, 0.0, 1.0), groups, averages


def spread(
    benchmark: Benchmark,
    values: Mapping[str, Float[ndarray, "n"]],
    names: Sequence[str],
    shared: Int[ndarray, "n"] | Sharing,
) -> Spread:
    """How far each measure moves with other queries."""
    table, groups, averages = _table(benchmark, values, names)
    return estimates.spread(table, shared, groups=groups, averages=averages)


def differences(
    benchmark: Benchmark,
    of_scorers: Sequence[Mapping[str, Float[ndarray, "n"]]],
    names: Sequence[str],
    shared: Int[ndarray, "n"] | Sharing,
    pairs: Int[ndarray, "p 2"],
) -> Float[ndarray, "4 p k"]:
    """(value, low, high, p) of the differences between pairs of scorers in each measure."""
    of_each = [_table(benchmark, values, names) for values in of_scorers]
    _, groups, averages = of_each[0]
    tables = np.stack([table for table, _, _ in of_each])
    return estimates.differences(tables, shared, pairs, groups=groups, averages=averages)


def _estimates(
    benchmark: Benchmark,
    values: Mapping[str, NDArray[np.float64]],
    chances: Mapping[str, float],
    *,
    interval: IntervalMethod,
    shared: NDArray[np.int64] | Sharing,
) -> dict[str, Estimate]:
    """Measures that no row of `values` says anything about are left out, and means of one direction only."""
    gallery = benchmark.gallery
    counts: dict[str, int] = {}
    for name, column in values.items():
        i2t, t2i = (int((~np.isnan(column[gallery.directions == side])).sum()) for side in (0, 1))
        if (i2t and t2i) or (i2t + t2i and split_direction(name)[0] != "mean"):
            counts[name] = i2t + t2i
    names = list(counts)
    if not names:
        return {}
    # Values within rounding of 1 are 1: a mean of shares may end in 1 + 2e-16.
    value = {name: min(1.0, mean(benchmark, values[name])) for name in names}
    effective = [float(n) for n in counts.values()]
    if interval is IntervalMethod.WILSON:
        bounds = [wilson(value[name] * n, n) for name, n in counts.items()]
    else:
        spreads = spread(benchmark, values, names, shared)
        low, high = spreads.wilson(0.95)
        bounds = list(zip(low.tolist(), high.tolist(), strict=True))
        effective = list(spreads.effective().tolist())
    return {
        name: Estimate(value[name], float(low), float(high), counts[name], chances[name], many)
        for name, (low, high), many in zip(names, bounds, effective, strict=True)
    }


class GalleryEvaluation(FormEvaluation):
    """Galleries.

    Intervals are from the variance over images with their captions; where captions repeat over images from
    the crossed variance; with `wilson` as if queries had nothing in common.
    """

    captions_drawn: ClassVar[bool] = False

    def main_measures(self, benchmark: Benchmark) -> tuple[str, ...]:
        """The first measure of the card, in both directions and their mean."""
        first = (benchmark.card.measures or super().main_measures(benchmark))[0]
        return tuple(f"{side}_{first}" for side in DIRECTIONS)

    def measure_names(self, benchmark: Benchmark) -> tuple[str, ...]:
        return gallery_values.measure_names(benchmark)

    def check_measures(self, benchmark: Benchmark, names: Sequence[str]) -> None:
        gallery_values.expand(names, benchmark)

    def chance(self, benchmark: Benchmark) -> dict[str, float]:
        return gallery_values.chance(benchmark)

    def check(self, benchmark: Benchmark, answers: Answers, *, where: str) -> None:
        gallery_values.check(benchmark, answers, where=where)

    def per_item(
        self, benchmark: Benchmark, answers: Answers, *, ties: Ties, measures: Sequence[str] | None = None
    ) -> dict[str, NDArray[np.float64]]:
        return gallery_values.per_item(benchmark, answers.rankings, ties=ties, measures=measures)

    def score_columns(self, shape: tuple[int, ...]) -> list[str]:
        """None: scores of all pairs are not kept."""
        return []

    def answer_columns(self, benchmark: Benchmark, answers: Answers) -> dict[str, pa.Array]:
        """A table of rankings, a row per query (see `_COLUMNS`), by name of column."""
        gallery, rankings = benchmark.gallery, answers.rankings
        sides = (rankings.i2t, rankings.t2i)
        answered = np.concatenate([_counts(gallery.i2t), _counts(gallery.t2i)])
        tops = np.repeat([placed.top.shape[1] for placed in sides], [len(placed.top) for placed in sides])

        def lists(counts: NDArray[np.int64], parts: list[ndarray], kind: pa.DataType) -> pa.Array:
            starts = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
            return pa.ListArray.from_arrays(starts, pa.array(np.concatenate(parts), kind))

        columns = {
            "depth": pa.array(np.concatenate([placed.depth for placed in sides]), pa.int64()),
            "above": lists(answered, [placed.above for placed in sides], pa.int64()),
            "level": lists(answered, [placed.level for placed in sides], pa.int64()),
            "items": lists(tops, [placed.top.reshape(-1) for placed in sides], pa.int32()),
            "scores": lists(tops, [placed.top_scores.reshape(-1) for placed in sides], pa.float32()),
        }
        shares: dict[str, ndarray] = {}
        for side, placed in directions_of(gallery, rankings):
            if placed.shares is not None:
                of_names = placed.shares.reshape(-1, len(side.search))
                for name, values in zip(_share_names(side.search), of_names, strict=True):
                    shares.setdefault(name, np.full(len(gallery), np.nan))[gallery_values.rows_of(side)] = (
                        values
                    )
        return columns | {name: pa.array(column, pa.float64()) for name, column in shares.items()}

    def read_answers(self, benchmark: Benchmark, table: pa.Table, *, where: object) -> Answers:
        """The rankings that `answer_columns` gave; raises `DataError` naming the column that does not fit."""
        gallery = benchmark.gallery
        shares = {name: _SHARE for side in gallery.sides for name in _share_names(side.search)}
        table = check_answers(table, _COLUMNS | shares, gallery.ids, where=where)
        placed = []
        for side in gallery.sides:
            search, rows = side.search, gallery_values.rows_of(side)
            part = table.slice(rows.start, rows.stop - rows.start)
            above, level = (
                _flat(part, name, _counts(search), f"{where}, column '{name}'", rows)
                for name in ("above", "level")
            )
            widths = part["items"].combine_chunks().value_lengths().to_numpy(zero_copy_only=False)
            width = int(widths.max(initial=0))
            items, scores = (
                _flat(part, name, np.full(len(search), width), f"{where}, column '{name}'", rows)
                for name in ("items", "scores")
            )
            names = _share_names(search)
            shares_of = np.stack([part[name].to_numpy() for name in names]) if names else np.empty(0)
            ranks = DirectionRanks(
                above.astype(np.int64),
                level.astype(np.int64),
                part["depth"].to_numpy().astype(np.int64),
                items.reshape(len(search), width).astype(np.int32),
                scores.reshape(len(search), width).astype(np.float32),
                shares_of.reshape(-1, len(POLICIES), len(search)) if names else None,
            )
            _check_places(ranks, search, side.n_items, where)
            placed.append(ranks)
        return Rankings(placed[0], placed[1])

    def item_columns(self, benchmark: Benchmark) -> dict[str, pa.Array]:
        """The direction, the position of the query among the images (or the captions), and its part."""
        gallery = benchmark.gallery
        return {
            "direction": pa.array([("i2t", "t2i")[side] for side in gallery.directions], pa.string()),
            "query": pa.array(np.concatenate([gallery.i2t.queries, gallery.t2i.queries]), pa.int64()),
            "part": pa.array(gallery.query_parts, pa.int64()),
        }

    def without(self, benchmark: Benchmark, measure: str) -> NDArray[np.bool_] | None:
        """The queries of the other direction."""
        side = {"i2t": 0, "t2i": 1}.get(measure.partition("_")[0])
        return None if side is None else benchmark.gallery.directions != side

    def _shared(
        self, benchmark: Benchmark, sharing: Sharing, interval: IntervalMethod
    ) -> NDArray[np.int64] | Sharing:
        """What an interval takes as shared; raises `InputError` for the one that galleries do not have."""
        if interval is IntervalMethod.FOLDS:
            raise InputError(
                "a gallery has no folds: a query needs all of its items",
                where=benchmark.name,
                given=f"interval '{interval}'",
                allowed=tuple(one for one in IntervalMethod if one is not interval),
            )
        return dependence(sharing, interval)

    def prepared(self, benchmark: Benchmark, answers: Answers, settings: EvaluationSettings) -> Prepared:
        interval, rankings = settings.interval, answers.rankings
        # All queries look through the same items, so `auto` never takes them as independent.
        shared = self._shared(benchmark, benchmark.sharing, interval)
        query_values = measured(benchmark, rankings, ties=settings.ties, measures=settings.measures)
        names = tuple(query_values.values)
        by_chance = gallery_values.chance_per_item(benchmark, names)

        def estimates(rows: NDArray[np.bool_]) -> dict[str, Estimate]:
            values = {name: np.where(rows, column, np.nan) for name, column in query_values.values.items()}
            chances = {name: mean(benchmark, np.where(rows, by_chance[name], np.nan)) for name in names}
            return _estimates(benchmark, values, chances, interval=interval, shared=shared)

        def means(ties: Ties) -> dict[str, float]:
            values = query_values.values
            if ties is not settings.ties:
                values = per_item(benchmark, rankings, ties=ties, measures=names)
            return {name: mean(benchmark, column) for name, column in values.items()}

        described = facts(benchmark, interval)
        if interval is IntervalMethod.AUTO and not benchmark.sharing.crossed:
            described["method"] = "clusters"
        ties = tie_facts(settings.ties, tied(benchmark, rankings), means)
        about = self._facts(benchmark, rankings, query_values.unsupported)
        return Prepared(estimates, ties, {"interval": described, "gallery": about})

    def _facts(
        self, benchmark: Benchmark, rankings: Rankings, unsupported: Mapping[str, str]
    ) -> dict[str, Any]:
        """What a result says of the gallery: its size, what was left out, and what was cut."""
        gallery = benchmark.gallery
        cut: dict[str, int | None] = {}
        described: dict[str, Any] = {
            "images": gallery.n_images,
            "captions": gallery.n_captions,
            "parts": 1 if gallery.image_parts is None else len(np.unique(gallery.image_parts)),
        }
        for side, placed in directions_of(gallery, rankings):
            name, search = side.name, side.search
            listed = search.positives if isinstance(search.positives, Qrels) else None
            described[name] = {
                "queries": len(search),
                "undefined": int((~search.defined).sum()),
                "positives": None if listed is None else len(listed.items),
                "outside_gallery": 0 if listed is None else int((listed.items < 0).sum()),
            }
            cut[name] = int(placed.depth.min()) if bool((placed.depth < side.sizes).any()) else None
        described["cut"] = cut if any(depth is not None for depth in cut.values()) else None
        return {**described, "unsupported": dict(unsupported)}

    def test(self, paired: PairedRuns) -> Tested:
        """Tango's intervals and their p-values; queries weigh what they do in the measures."""
        benchmark = paired.runs[0].benchmark
        of_runs = [{name: run.items[name] for name in paired.main} for run in paired.runs]
        sharing = paired.sharing
        shared = self._shared(benchmark, sharing, paired.interval)
        of_scorers = np.asarray(paired.of_scorers, dtype=np.int64)
        tested = differences(benchmark, of_runs, paired.main, shared, of_scorers)
        low, high, p = (part.reshape(-1) for part in tested[1:])
        means = [[mean(benchmark, table[name]) for name in paired.main] for table in of_runs]
        value = [means[a][k] - means[b][k] for a, b in paired.of_scorers for k in range(len(paired.main))]
        return Tested(np.array(value), low, high, p, [None] * len(p), paired.facts(sharing))

    def conflict(self, first: Benchmark, other: Benchmark) -> str:
        """Whether items or right answers differ; texts may be at hand in one benchmark only."""
        (items, facts), (other_items, other_facts) = _contents(first), _contents(other)
        same_length = items == other_items and len(facts) == len(other_facts)
        same = same_length and all(map(np.array_equal, facts, other_facts))
        return "" if same else "other galleries, or other right answers"

    def stored_measures(self, result: Result) -> tuple[str, ...]:
        """Those that the result has, for recall has any K."""
        return tuple(result.measures)

    def overall(self, benchmark: Benchmark, known: Sequence[str]) -> list[str]:
        """The means of the measures its authors report (of all, if none)."""
        return [overall(known, base) for base in benchmark.card.measures] or [
            name for name in known if split_direction(name)[0] == "mean"
        ]

    def images(self, benchmark: Benchmark) -> list[str]:
        """The image of each query: its own, or that of its caption; else the caption itself."""
        questions = benchmark.gallery
        images = [f"image {benchmark.images[i].id}" for i in questions.i2t.queries.tolist()]
        for caption in questions.t2i.queries.tolist():
            owner = int(questions.owners[caption])
            own = f"caption {benchmark.captions[caption].id}"
            images.append(f"image {benchmark.images[owner].id}" if owner >= 0 else own)
        return images

    def mean(self, benchmark: Benchmark, values: NDArray[np.float64]) -> float:
        """The mean over directions of means over parts."""
        return mean(benchmark, values)


def overall(known: Sequence[str], base: str) -> str:
    """The measure of a gallery in both directions, or in the only one that has queries; empty if neither."""
    return next((name for side in ("mean", *DIRECTIONS) if (name := f"{side}_{base}") in known), "")


def _contents(benchmark: Benchmark) -> tuple[list[str], list[ndarray]]:
    """The ids of all items, and what is right where."""
    gallery = benchmark.gallery
    facts: list[ndarray] = [gallery.query_parts]
    for positives in (gallery.i2t.positives, gallery.t2i.positives):
        if isinstance(positives, Plausible):
            rule = np.array([*positives.thresholds, positives.cap or 0])
            facts += [positives.query_codes, positives.item_codes, rule]
        else:
            facts += [positives.starts, positives.items, positives.gains]
    images = [image.id for image in benchmark.images]
    return [*images, *(caption.id for caption in benchmark.captions)], facts


#: Columns of a gallery's answers; in a column `share:THRESHOLD:POLICY` is, where right is a rule, the share
#: of right answers, NaN in the other direction.
_COLUMNS = {
    # How far down the ranking is known.
    "depth": ColumnSchema("whole", low=0),
    # Per right answer, in their order: how many items score above it, -1 where it was not found, ...
    "above": ColumnSchema("wholes", low=-1),
    # ... and how many as high, itself included.
    "level": ColumnSchema("wholes", low=0),
    # What was ranked first, as positions, -1 behind the end; and its scores.
    "items": ColumnSchema("wholes", low=-1),
    "scores": ColumnSchema("reals", nan=True),
}
_SHARE = ColumnSchema("real", nan=True, low=0, high=1)


def _counts(search: RetrievalDirection) -> NDArray[np.int64]:
    """How many right answers are listed per query; none where a rule says what is right."""
    positives = search.positives
    return np.zeros(len(search), np.int64) if isinstance(positives, Plausible) else positives.counts


def _share_names(search: RetrievalDirection) -> list[str]:
    positives = search.positives
    thresholds = positives.thresholds if isinstance(positives, Plausible) else ()
    return [f"share:{threshold}:{policy}" for threshold in thresholds for policy in POLICIES]


def _flat(table: pa.Table, name: str, lengths: NDArray[np.int64], where: str, rows: slice) -> ndarray:
    """The lists of a column, one after another; raises `DataError` where they have other lengths."""
    lists = table[name].combine_chunks()
    counts = lists.value_lengths().to_numpy(zero_copy_only=False)
    if (counts != lengths).any():
        row = int(np.argmax(counts != lengths))
        raise DataError(
            "not as many items as its query has",
            where=f"{where}, row {rows.start + row + 1}",
            given=int(counts[row]),
            allowed=str(lengths[row]),
        )
    return np.array(lists.flatten().to_numpy(zero_copy_only=False))


def _check_places(ranks: DirectionRanks, search: RetrievalDirection, size: int, where: object) -> None:
    """Raise `DataError` where there are more items than the gallery of `size` has, or too few."""
    for name, values, high in (("depth", ranks.depth, size), ("items", ranks.top, size - 1)):
        if values.max(initial=-1) > high:
            raise DataError(
                "out of range",
                where=f"{where}, column '{name}'",
                given=int(values.max()),
                allowed=f"at most {high}",
            )
    if isinstance(search.positives, Plausible):
        return
    above, level = ranks.above, ranks.level
    ranked = above >= 0
    odd = (above + level > size) | (ranked != (level > 0)) | (ranked & (search.positives.items < 0))
    if odd.any():
        at = int(np.argmax(odd))
        raise DataError(
            "the numbers of items above and level with a right answer cannot both be",
            where=f"{where}, columns 'above' and 'level'",
            given=f"{above[at]} above (-1 where not found), {level[at]} level, {size} items",
        )
