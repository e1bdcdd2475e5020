"""Evaluation of galleries: both directions count the same in a mean, and in a direction all parts do.

Queries of both directions are rows of one table, images first; a value of `i2t_X` or `t2i_X` is NaN in the
rows of the other direction, and where a query has no right answer. `mean_X` is the mean of both.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from counterfoil.benchmarks.answers import Answers, DirectionRanks, Rankings
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import Gallery, GallerySide, RetrievalDirection
from counterfoil.errors import DataError, InputError, ScoreError, UnknownNameError
from counterfoil.evaluation.evaluate import (
    EvaluationSettings,
    FormEvaluation,
    PairedRuns,
    Prepared,
    Tested,
    check_answers,
    tie_facts,
)
from counterfoil.evaluation.intervals import IntervalMethod, facts, resampled_by
from counterfoil.evaluation.result import Estimate
from counterfoil.inputs.columns import ColumnSchema
from counterfoil.inputs.limits import check_amount
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.measures import DIRECTIONS, MeasureAtK, at_k, find, of_form, split_direction
from counterfoil.metrics.ranks import Qrels, Ranks, from_places
from counterfoil.metrics.ties import Ties
from counterfoil.stats import Reals, Truths, Wholes, intervals
from counterfoil.stats.dependence import Dependence
from counterfoil.stats.intervals import wilson


def base_names(benchmark: Benchmark) -> tuple[str, ...]:
    """The measures without a direction, those that the card names first."""
    has, named = _has(benchmark), benchmark.card.measures
    needed = ((of.name, of.needs) for of in of_form("gallery"))
    every = [name for name, needs in needed if needs in has or (needs == "card" and name in named)]
    first = [name for name in named if name in every or _at_k(name, has) is not None]
    return tuple(dict.fromkeys([*first, *every]))


def _has(benchmark: Benchmark) -> tuple[str, ...]:
    """What measures may need (`Measure.needs`) of a gallery's right answers."""
    answers = [side.search.positives for side in benchmark.gallery.sides]
    if any(isinstance(positives, Plausible) for positives in answers):
        return ("classes",)
    graded = any(bool((qrels.gains != 1).any()) for qrels in answers if isinstance(qrels, Qrels))
    return ("", "gains") if graded else ("",)


def _at_k(name: str, has: Sequence[str]) -> tuple[MeasureAtK, int] | None:
    """The measure at K places that a name without a direction is of, and the K, which may be 0."""
    for family in at_k("gallery"):
        k = family.k_of(name)
        if k is not None and family.general.needs in has:
            return family, k
    return None


def sides(benchmark: Benchmark) -> tuple[str, ...]:
    """The directions that have queries with right answers, and "mean" where both have."""
    gallery = benchmark.gallery
    directions = [side.name for side in gallery.sides if bool(side.search.defined.any())]
    if not directions:
        raise InputError("no query has a right answer", where=benchmark.name, given=f"{len(gallery)} queries")
    return tuple(DIRECTIONS) if len(directions) == 2 else tuple(directions)


def expand(names: Sequence[str], benchmark: Benchmark) -> tuple[str, ...]:
    """Full names: "recall_at_20" asks for all directions; raises `UnknownNameError` for no measure of it."""
    present, bases, has = sides(benchmark), base_names(benchmark), _has(benchmark)
    full_names: list[str] = []
    for name in names:
        side, rest = split_direction(name)
        chosen = (side,) if side else present
        if (family_and_k := _at_k(rest, has)) is not None:
            family, k = family_and_k
            check_amount("k", k, what=f"places that {name} looks at")
            # "recall_at_05" is another way to write "recall_at_5".
            rest = family.at(k).name
        elif rest not in bases:
            families = (family.name for family in at_k("gallery") if family.general.needs in has)
            measures = [f"{side}_{base}" if side else base for base in (*bases, *families)]
            raise UnknownNameError("measure", name, measures, where=benchmark.name)
        for direction in chosen:
            if direction not in present:
                what = "no query of that direction has a right answer"
                raise InputError(what, where=benchmark.name, given=name, allowed=present)
            full_names.append(f"{direction}_{rest}")
    return tuple(dict.fromkeys(full_names))


#: The rows of one threshold in `DirectionRanks.shares`.
POLICIES = (Ties.STRICT, Ties.HALF, Ties.OPTIMISTIC)


def directions_of(gallery: Gallery, rankings: Rankings) -> tuple[tuple[GallerySide, DirectionRanks], ...]:
    """Both directions of a gallery, each with its ranks."""
    return tuple(zip(gallery.sides, (rankings.i2t, rankings.t2i), strict=True))


def rows_of(side: GallerySide) -> slice:
    """The rows of a direction's queries among those of both."""
    return slice(side.first, side.first + len(side.search))


def tied(benchmark: Benchmark, rankings: Rankings) -> Bool[ndarray, "n"]:
    """In which queries a right and a wrong item tie; by rule, where such a tie decides something."""
    of_sides = []
    for side, placed in directions_of(benchmark.gallery, rankings):
        if placed.shares is not None and isinstance(side.search.positives, Plausible):
            strict, optimistic = placed.shares[:, 0], placed.shares[:, 2]
            of_sides.append((strict < optimistic).any(axis=0))
        else:
            of = _ranks(side, placed)
            of_sides.append(np.bincount(of.query, weights=of.tied > 0, minlength=len(side.search)) > 0)
    return np.concatenate(of_sides)


def _ranks(side: GallerySide, placed: DirectionRanks) -> Ranks:
    """Where the right answers stand that are listed, not said by a rule."""
    # Parts may differ in size. A rank does not depend on how large the gallery is, only whether a ranking is
    # whole does: those that are get the depth of the largest part.
    sizes, positives = side.sizes, side.search.positives
    largest = int(sizes.max(initial=0))
    depth = np.where(placed.depth >= sizes, largest, placed.depth)
    assert isinstance(positives, Qrels)  # `check` wants shares where a rule says what is right
    return from_places(positives, placed.above, placed.level, depth=depth, gallery=largest)


def constant(benchmark: Benchmark) -> Rankings:
    """The answers of a model to which all pairs are alike."""
    of_sides = []
    for side in benchmark.gallery.sides:
        n, positives, sizes = len(side.search), side.search.positives, side.sizes
        above, level, shares = np.empty(0, np.int64), np.empty(0, np.int64), None
        if isinstance(positives, Plausible):
            shares = _constant_shares(side, positives)
        else:
            present = positives.items >= 0
            above, level = np.where(present, 0, -1), np.where(present, sizes[positives.queries], 0)
        top, scores = np.empty((n, 0), np.int32), np.empty((n, 0), np.float32)
        of_sides.append(DirectionRanks(above, level, sizes, top, scores, shares=shares))
    return Rankings(of_sides[0], of_sides[1])


def _constant_shares(side: GallerySide, rule: Plausible) -> Float[ndarray, "thresholds 3 queries"]:
    """The R-Precision of a constant (strict, half, optimistic) from how many items match each query.

    Of n items p match, all level: the first r = min(p, cap) hold p r / n on average, r - (n - p) to r.
    """
    sizes = side.sizes
    shares = np.full((len(rule.thresholds), len(POLICIES), len(sizes)), np.nan)
    for queries, items in side.views():
        codes, of = np.unique(rule.query_codes[queries], axis=0, return_inverse=True)
        groups, many = np.unique(rule.item_codes[items], axis=0, return_counts=True)
        few, of = Plausible(codes, groups, rule.thresholds, rule.cap), of.reshape(-1)
        for lo in range(0, len(codes), 1024):
            distances = few.distances(slice(lo, lo + 1024))
            inside = (of >= lo) & (of < lo + 1024)
            rows = queries[inside]
            for t, threshold in enumerate(rule.thresholds):
                p = ((distances <= threshold) @ many)[of[inside] - lo]
                r = p if rule.cap is None else np.minimum(p, rule.cap)
                n = sizes[rows]
                values = np.stack([np.maximum(r - (n - p), 0), r * p / n, r])
                shares[t][:, rows] = np.divide(values, r, out=np.full(values.shape, np.nan), where=r > 0)
    return shares


def mean(benchmark: Benchmark, values: Float[ndarray, "n"]) -> float:
    """The mean over directions of the mean over parts of their means; NaN where no query has a value."""
    gallery = benchmark.gallery
    defined = ~np.isnan(values)
    of_sides = []
    for direction in (0, 1):
        chosen = defined & (gallery.directions == direction)
        if chosen.any():
            parts, inside = gallery.query_parts[chosen], values[chosen]
            of_sides.append(float(np.mean([inside[parts == part].mean() for part in np.unique(parts)])))
    return float(np.mean(of_sides)) if of_sides else float("nan")


def chance(benchmark: Benchmark, names: Sequence[str] | None = None) -> dict[str, float]:
    """The value of each measure under a random order of the gallery: what a constant gets under `half`."""
    by_query = GalleryEvaluation().per_item(benchmark, constant(benchmark), ties=Ties.HALF, measures=names)
    return {name: mean(benchmark, values) for name, values in by_query.items()}


def _table(
    benchmark: Benchmark, values: Mapping[str, Float[ndarray, "n"]], names: Sequence[str]
) -> tuple[Float[ndarray, "n m"], Int[ndarray, "n m"], Float[ndarray, "m k"]]:
    """Columns that measures are made of, each row's part there (-1: none), and weights of columns by name."""
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


def _estimates(
    benchmark: Benchmark,
    values: Mapping[str, Reals],
    chances: Mapping[str, float],
    *,
    interval: IntervalMethod,
    shared: Wholes | Dependence,
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
        table, groups, averages = _table(benchmark, values, names)
        spreads = intervals.spread(table, shared, groups=groups, averages=averages)
        low, high = spreads.wilson()
        bounds = list(zip(low.tolist(), high.tolist(), strict=True))
        effective = list(spreads.effective().tolist())
    return {
        name: Estimate(value[name], float(low), float(high), counts[name], chances[name], many)
        for name, (low, high), many in zip(names, bounds, effective, strict=True)
    }


class GalleryEvaluation(FormEvaluation):
    """Galleries. Intervals are over images with their captions, crossed where captions repeat over images."""

    captions_drawn: ClassVar[bool] = False

    def main_measures(self, benchmark: Benchmark) -> tuple[str, ...]:
        first = (benchmark.card.measures or super().main_measures(benchmark))[0]
        return tuple(f"{side}_{first}" for side in DIRECTIONS)

    def measure_names(self, benchmark: Benchmark) -> tuple[str, ...]:
        present = sides(benchmark)
        return tuple(f"{side}_{base}" for base in base_names(benchmark) for side in present)

    def check_measures(self, benchmark: Benchmark, names: Sequence[str]) -> None:
        expand(names, benchmark)

    def chance(self, benchmark: Benchmark) -> dict[str, float]:
        return chance(benchmark)

    def check(self, benchmark: Benchmark, answers: Answers, *, where: str) -> None:
        if not answers.has_rankings:
            raise ScoreError(
                "a gallery is answered by rankings",
                where=where,
                given=type(answers).__name__.lower(),
                allowed="rankings, a similarity of all pairs, or embeddings",
            )
        for side, placed in directions_of(benchmark.gallery, answers.rankings):
            name, search = side.name, side.search
            lengths = {"depth": (len(placed.depth), len(search)), "top": (len(placed.top), len(search))}
            if isinstance(search.positives, Plausible):
                thresholds = (len(search.positives.thresholds), len(POLICIES), len(search))
                if placed.shares is None or placed.shares.shape != thresholds:
                    raise ScoreError(
                        f"rankings of {name} lack the shares of right answers",
                        where=where,
                        given=None if placed.shares is None else placed.shares.shape,
                        allowed=str(thresholds),
                    )
            else:
                pairs = len(search.positives.items)
                lengths |= {"above": (len(placed.above), pairs), "level": (len(placed.level), pairs)}
            for part, (given, allowed) in lengths.items():
                if given != allowed:
                    what = f"rankings of {name} do not fit the gallery: wrong number of rows in '{part}'"
                    raise ScoreError(what, where=where, given=given, allowed=str(allowed))

    def per_item(
        self, benchmark: Benchmark, answers: Answers, *, ties: Ties, measures: Sequence[str] | None = None
    ) -> dict[str, Reals]:
        return self.measured(benchmark, answers.rankings, ties=ties, measures=measures)[0]

    def measured(
        self,
        benchmark: Benchmark,
        rankings: Rankings,
        *,
        ties: Ties = Ties.STRICT,
        measures: Sequence[str] | None = None,
    ) -> tuple[dict[str, Float[ndarray, "n"]], dict[str, str]]:
        """Each measure's value per query, and why (cut) rankings do not support the others."""
        self.check(benchmark, rankings, where=benchmark.name)
        gallery = benchmark.gallery
        names = self.measure_names(benchmark) if measures is None else expand(measures, benchmark)
        values, unsupported = dict[str, Float[ndarray, "n"]](), dict[str, str]()
        by_direction: dict[str, Float[ndarray, "n"] | str] = {}
        # What measures take in either direction: ranks, or the shares of right answers by rule.
        taken: dict[str, tuple[Any, dict[str, Ties]]] = {}
        for side, placed in directions_of(gallery, rankings):
            if placed.shares is not None and isinstance(side.search.positives, Plausible):
                taken[side.name] = placed.shares[:, POLICIES.index(ties)], {}
            else:
                taken[side.name] = _ranks(side, placed), {"ties": ties}
        rows = {side.name: rows_of(side) for side in gallery.sides}
        for name in names:
            (direction, base), reason = split_direction(name), ""
            measure, table = find(base, "gallery"), np.full(len(gallery), np.nan)
            assert measure is not None  # `expand` has seen to it
            for one in ("i2t", "t2i") if direction == "mean" else (direction,):
                key = f"{one}_{base}"
                if key not in by_direction:
                    try:
                        by_direction[key] = measure(taken[one][0], **taken[one][1])
                    except InputError as error:
                        by_direction[key] = str(error)
                value = by_direction[key]
                if isinstance(value, str):
                    reason = reason or f"{DIRECTIONS[one].title.lower()}, {value}"
                else:
                    table[rows[one]] = value
            if reason:
                unsupported[name] = reason
            else:
                values[name] = table
        if unsupported and (measures is not None or not values):
            name, reason = next(iter(unsupported.items()))
            raise InputError(f"{name} cannot be measured: {reason}", where=benchmark.name)
        return values, unsupported

    def score_columns(self, shape: tuple[int, ...]) -> list[str]:
        """None: scores of all pairs are not kept."""
        return []

    def answer_columns(self, benchmark: Benchmark, answers: Answers) -> dict[str, pa.Array]:
        """A table of rankings, a row per query (see `_COLUMNS`), by name of column."""
        gallery, rankings = benchmark.gallery, answers.rankings
        sides = (rankings.i2t, rankings.t2i)
        answered = np.concatenate([_counts(gallery.i2t), _counts(gallery.t2i)])
        tops = np.repeat([placed.top.shape[1] for placed in sides], [len(placed.top) for placed in sides])

        def lists(counts: Wholes, parts: list[ndarray], kind: pa.DataType) -> pa.Array:
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
                    shares.setdefault(name, np.full(len(gallery), np.nan))[rows_of(side)] = values
        return columns | {name: pa.array(column, pa.float64()) for name, column in shares.items()}

    def read_answers(self, benchmark: Benchmark, table: pa.Table, *, where: object) -> Answers:
        gallery = benchmark.gallery
        shares = {name: _SHARE for side in gallery.sides for name in _share_names(side.search)}
        table = check_answers(table, _COLUMNS | shares, gallery.ids, where=where)
        placed = []
        for side in gallery.sides:
            search, rows = side.search, rows_of(side)
            part = table.slice(rows.start, rows.stop - rows.start)
            widths = part["items"].combine_chunks().value_lengths().to_numpy(zero_copy_only=False)
            width = int(widths.max(initial=0))
            lengths = {"above": _counts(search), "items": np.full(len(search), width)}
            lengths |= {"level": lengths["above"], "scores": lengths["items"]}
            # The lists of a column, one after another, of as many items as each query has.
            flat: dict[str, ndarray] = {}
            for name, wanted in lengths.items():
                lists = part[name].combine_chunks()
                counts = lists.value_lengths().to_numpy(zero_copy_only=False)
                if (counts != wanted).any():
                    row = int(np.argmax(counts != wanted))
                    place = f"{where}, column '{name}', row {rows.start + row + 1}"
                    what, given = "not as many items as its query has", int(counts[row])
                    raise DataError(what, where=place, given=given, allowed=str(wanted[row]))
                flat[name] = np.array(lists.flatten().to_numpy(zero_copy_only=False))
            names = _share_names(search)
            shares_of = np.stack([part[name].to_numpy() for name in names]) if names else np.empty(0)
            ranks = DirectionRanks(
                flat["above"].astype(np.int64),
                flat["level"].astype(np.int64),
                part["depth"].to_numpy().astype(np.int64),
                flat["items"].reshape(len(search), width).astype(np.int32),
                flat["scores"].reshape(len(search), width).astype(np.float32),
                shares_of.reshape(-1, len(POLICIES), len(search)) if names else None,
            )
            _check_places(ranks, search, side.n_items, where)
            placed.append(ranks)
        return Rankings(placed[0], placed[1])

    def item_columns(self, benchmark: Benchmark) -> dict[str, pa.Array]:
        gallery = benchmark.gallery
        return {
            "direction": pa.array([("i2t", "t2i")[side] for side in gallery.directions], pa.string()),
            "query": pa.array(np.concatenate([gallery.i2t.queries, gallery.t2i.queries]), pa.int64()),
            "part": pa.array(gallery.query_parts, pa.int64()),
        }

    def without(self, benchmark: Benchmark, measure: str) -> Truths | None:
        """The queries of the other direction."""
        side = {"i2t": 0, "t2i": 1}.get(measure.partition("_")[0])
        return None if side is None else benchmark.gallery.directions != side

    def prepared(self, benchmark: Benchmark, answers: Answers, settings: EvaluationSettings) -> Prepared:
        interval, rankings = settings.interval, answers.rankings
        # All queries look through the same items, so `auto` never takes them as independent.
        shared = resampled_by(benchmark.dependence, interval)
        measured, unsupported = self.measured(
            benchmark, rankings, ties=settings.ties, measures=settings.measures
        )
        names = tuple(measured)
        by_chance = self.per_item(benchmark, constant(benchmark), ties=Ties.HALF, measures=names)

        def estimates(rows: Truths) -> dict[str, Estimate]:
            values = {name: np.where(rows, column, np.nan) for name, column in measured.items()}
            chances = {name: mean(benchmark, np.where(rows, by_chance[name], np.nan)) for name in names}
            return _estimates(benchmark, values, chances, interval=interval, shared=shared)

        described = facts(benchmark, interval)
        if interval is IntervalMethod.AUTO and not benchmark.dependence.crossed:
            described["method"] = "clusters"
        means = {}
        for ties in Ties:
            values = measured
            if ties is not settings.ties:
                values = self.per_item(benchmark, rankings, ties=ties, measures=names)
            means[ties] = {name: mean(benchmark, column) for name, column in values.items()}
        about = {**_facts(benchmark, rankings), "unsupported": dict(unsupported)}
        tie_counts = tie_facts(settings.ties, tied(benchmark, rankings), means)
        return Prepared(estimates, tie_counts, {"interval": described, "gallery": about})

    def test(self, paired: PairedRuns) -> Tested:
        """Tango's intervals and their p-values; queries weigh what they do in the measures."""
        benchmark = paired.runs[0].benchmark
        of_runs = [{name: run.items[name] for name in paired.main} for run in paired.runs]
        dependence = paired.dependence
        shared = resampled_by(dependence, paired.interval)
        of_models = np.asarray(paired.of_models, dtype=np.int64)
        tables = [_table(benchmark, values, paired.main) for values in of_runs]
        _, groups, averages = tables[0]
        stacked = np.stack([table for table, _, _ in tables])
        tested = intervals.differences(stacked, shared, of_models, groups=groups, averages=averages)
        low, high, p = (part.reshape(-1) for part in tested[1:])
        means = [[mean(benchmark, table[name]) for name in paired.main] for table in of_runs]
        value = [means[a][k] - means[b][k] for a, b in paired.of_models for k in range(len(paired.main))]
        return Tested(np.array(value), low, high, p, [None] * len(p), paired.facts(dependence))

    def conflict(self, first: Benchmark, other: Benchmark) -> str:
        """Whether items or right answers differ; texts may be at hand in one benchmark only."""
        (items, facts), (other_items, other_facts) = _contents(first), _contents(other)
        same_length = items == other_items and len(facts) == len(other_facts)
        same = same_length and all(map(np.array_equal, facts, other_facts))
        return "" if same else "other galleries, or other right answers"

    def overall(self, benchmark: Benchmark, measures: Sequence[str]) -> list[str]:
        return [overall(measures, base) for base in benchmark.card.measures] or [
            name for name in measures if split_direction(name)[0] == "mean"
        ]

    def images(self, benchmark: Benchmark) -> list[str]:
        """The image of each query: its own, or that of its caption; else the caption itself."""
        questions = benchmark.gallery
        images = [f"image {benchmark.images[i].id}" for i in questions.i2t.queries.tolist()]
        for caption in questions.t2i.queries.tolist():
            owner = int(questions.owners[caption])
            own_caption = f"caption {benchmark.captions[caption].id}"
            images.append(f"image {benchmark.images[owner].id}" if owner >= 0 else own_caption)
        return images

    def mean(self, benchmark: Benchmark, values: Reals) -> float:
        return mean(benchmark, values)


def _facts(benchmark: Benchmark, rankings: Rankings) -> dict[str, Any]:
    gallery, cut = benchmark.gallery, dict[str, int | None]()
    parts = 1 if gallery.image_parts is None else len(np.unique(gallery.image_parts))
    described: dict[str, Any]
    described = {"images": gallery.n_images, "captions": gallery.n_captions, "parts": parts}
    for side, placed in directions_of(gallery, rankings):
        name, search = side.name, side.search
        listed = search.positives.items if isinstance(search.positives, Qrels) else None
        described[name] = {
            "queries": len(search),
            "undefined": int((~search.defined).sum()),
            "positives": None if listed is None else len(listed),
            "outside_gallery": 0 if listed is None else int((listed < 0).sum()),
        }
        cut[name] = int(placed.depth.min()) if bool((placed.depth < side.sizes).any()) else None
    return {**described, "cut": cut if any(depth is not None for depth in cut.values()) else None}


def overall(measures: Sequence[str], base: str) -> str:
    """The measure of a gallery in both directions, or in the only one that has queries; empty if neither."""
    return next((name for side in ("mean", *DIRECTIONS) if (name := f"{side}_{base}") in measures), "")


def _contents(benchmark: Benchmark) -> tuple[list[str], list[ndarray]]:
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


def _counts(search: RetrievalDirection) -> Wholes:
    positives = search.positives
    return np.zeros(len(search), np.int64) if isinstance(positives, Plausible) else positives.counts


def _share_names(search: RetrievalDirection) -> list[str]:
    positives = search.positives
    thresholds = positives.thresholds if isinstance(positives, Plausible) else ()
    return [f"share:{threshold}:{policy}" for threshold in thresholds for policy in POLICIES]


def _check_places(ranks: DirectionRanks, search: RetrievalDirection, size: int, where: object) -> None:
    """Raise `DataError` where there are more items than the gallery of `size` has, or too few."""
    for name, values, high in (("depth", ranks.depth, size), ("items", ranks.top, size - 1)):
        if (given := int(values.max(initial=-1))) > high:
            place, allowed = f"{where}, column '{name}'", f"at most {high}"
            raise DataError("out of range", where=place, given=given, allowed=allowed)
    if isinstance(search.positives, Plausible):
        return
    above, level = ranks.above, ranks.level
    ranked = above >= 0
    odd = (above + level > size) | (ranked != (level > 0)) | (ranked & (search.positives.items < 0))
    if odd.any():
        i = int(np.argmax(odd))
        raise DataError(
            "the numbers of items above and level with a right answer cannot both be",
            where=f"{where}, columns 'above' and 'level'",
            given=f"{above[i]} above (-1 where not found), {level[i]} level, {size} items",
        )
