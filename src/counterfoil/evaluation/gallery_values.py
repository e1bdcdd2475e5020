"""Values of a gallery's queries: the measures it has, from places of right answers to values, means, chance.

A measure `i2t_X` is of image queries, `t2i_X` of caption queries, `mean_X` the mean of both. Queries of both
directions are rows of one table, images first, as in the benchmark's questions; a value is NaN in the rows of
the other direction, and where a query has no right answer. Both directions count the same in a mean, and in
a direction all parts of the gallery do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from counterfoil.benchmarks.answers import Answers, DirectionRanks, Rankings
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import Gallery, GallerySide
from counterfoil.errors import InputError, ScoreError, UnknownNameError
from counterfoil.inputs.limits import check_amount
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.measure import DIRECTIONS, MeasureAtK, split_direction
from counterfoil.metrics.measures import at_k, find, of_form
from counterfoil.metrics.ranks import Qrels, Ranks, from_places
from counterfoil.metrics.ties import Ties


def base_names(benchmark: Benchmark) -> tuple[str, ...]:
    """The measures without a direction, those that the card names first."""
    has = _has(benchmark)
    named = benchmark.card.measures
    every = [
        measure.name
        for measure in of_form("gallery")
        if measure.needs in has or (measure.needs == "card" and measure.name in named)
    ]
    first = [name for name in benchmark.card.measures if name in every or _at_k(name, has) is not None]
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
    """The directions that have queries with right answers, and "mean" where both have.

    Raises `InputError` where neither has.
    """
    gallery = benchmark.gallery
    directions = [side.name for side in gallery.sides if bool(side.search.defined.any())]
    if not directions:
        raise InputError("no query has a right answer", where=benchmark.name, given=f"{len(gallery)} queries")
    return tuple(DIRECTIONS) if len(directions) == 2 else tuple(directions)


def measure_names(benchmark: Benchmark) -> tuple[str, ...]:
    """Every measure that is reported unless some are chosen, main first, each in all directions."""
    present = sides(benchmark)
    return tuple(f"{side}_{base}" for base in base_names(benchmark) for side in present)


def expand(names: Sequence[str], benchmark: Benchmark) -> tuple[str, ...]:
    """Full names for names with or without a direction: "recall_at_20" asks for all directions.

    Raises `UnknownNameError` for a measure that this benchmark does not have, `InputError` for a recall at no
    place.
    """
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
            known = [f"{side}_{base}" if side else base for base in (*bases, *families)]
            raise UnknownNameError("measure", name, known, where=benchmark.name)
        for direction in chosen:
            if direction not in present:
                what = "no query of that direction has a right answer"
                raise InputError(what, where=benchmark.name, given=name, allowed=present)
            full_names.append(f"{direction}_{rest}")
    return tuple(dict.fromkeys(full_names))


#: The rows of one threshold in `DirectionRanks.shares`.
POLICIES = (Ties.STRICT, Ties.HALF, Ties.OPTIMISTIC)


@dataclass(frozen=True, eq=False)
class QueryValues:
    """Each measure's value per query, and why the others that exist have none: the rankings were cut."""

    values: Mapping[str, Float[ndarray, "n"]]
    unsupported: Mapping[str, str]


def directions_of(gallery: Gallery, rankings: Rankings) -> tuple[tuple[GallerySide, DirectionRanks], ...]:
    """Both directions of a gallery, each with its ranks."""
    return tuple(zip(gallery.sides, (rankings.i2t, rankings.t2i), strict=True))


def rows_of(side: GallerySide) -> slice:
    """The rows of a direction's queries among those of both."""
    return slice(side.first, side.first + len(side.search))


def per_item(
    benchmark: Benchmark,
    rankings: Rankings,
    *,
    ties: Ties = Ties.STRICT,
    measures: Sequence[str] | None = None,
) -> dict[str, Float[ndarray, "n"]]:
    """Each measure's value per query, in [0, 1]; NaN where it has none. Errors as `measured`."""
    return dict(measured(benchmark, rankings, ties=ties, measures=measures).values)


def measured(
    benchmark: Benchmark,
    rankings: Rankings,
    *,
    ties: Ties = Ties.STRICT,
    measures: Sequence[str] | None = None,
) -> QueryValues:
    """Each measure's value per query; with `measures` None all that the rankings can support.

    Raises `InputError` where the rankings were cut before what a measure needs that was asked for by name, or
    before what every measure needs.
    """
    check(benchmark, rankings, where=benchmark.name)
    gallery = benchmark.gallery
    names = measure_names(benchmark) if measures is None else expand(measures, benchmark)
    values: dict[str, Float[ndarray, "n"]] = {}
    unsupported: dict[str, str] = {}
    by_direction: dict[str, Float[ndarray, "n"] | str] = {}
    # What measures take in either direction: the shares of right answers by rule under the policy, or ranks.
    taken: dict[str, tuple[Any, dict[str, Ties]]] = {}
    for side, placed in directions_of(gallery, rankings):
        if placed.shares is not None and isinstance(side.search.positives, Plausible):
            taken[side.name] = placed.shares[:, POLICIES.index(ties)], {}
        else:
            taken[side.name] = _ranks(side, placed), {"ties": ties}
    rows = {side.name: rows_of(side) for side in gallery.sides}
    for name in names:
        direction, base = split_direction(name)
        measure = find(base, "gallery")
        assert measure is not None  # `expand` has seen to it
        table = np.full(len(gallery), np.nan)
        reason = ""
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
    return QueryValues(values, unsupported)


def check(benchmark: Benchmark, answers: Answers, *, where: str) -> None:
    """Raise `ScoreError` unless `answers` are rankings of every query of the gallery."""
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
                raise ScoreError(
                    f"rankings of {name} do not fit the gallery: wrong number of rows in '{part}'",
                    where=where,
                    given=given,
                    allowed=str(allowed),
                )


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


def chance(benchmark: Benchmark, names: Sequence[str] | None = None) -> dict[str, float]:
    """The value of each measure under a random order of the gallery, in closed form.

    It is what a scorer that returns a constant gets under `half`, where the rankings are whole.
    """
    return {name: mean(benchmark, values) for name, values in chance_per_item(benchmark, names).items()}


def chance_per_item(
    benchmark: Benchmark, names: Sequence[str] | None = None
) -> dict[str, Float[ndarray, "n"]]:
    """What chance gives each query, as `per_item`."""
    return per_item(benchmark, constant(benchmark), ties=Ties.HALF, measures=names)


def constant(benchmark: Benchmark) -> Rankings:
    """The answers of a scorer to which all pairs are alike."""
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
    """The R-Precision of a constant: strict, half and optimistic, from how many items match a query.

    Of n items of which p match, all level, the first r = min(p, cap) hold p r / n matches on average, at
    least r - (n - p), at most r. Items with the same code are counted once.
    """
    sizes = side.sizes
    shares = np.full((len(rule.thresholds), len(POLICIES), len(sizes)), np.nan)
    for queries, items in side.views():
        codes, of = np.unique(rule.query_codes[queries], axis=0, return_inverse=True)
        known, many = np.unique(rule.item_codes[items], axis=0, return_counts=True)
        few, of = Plausible(codes, known, rule.thresholds, rule.cap), of.reshape(-1)
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
    """A measure from its values per query: the mean over directions of the mean over parts of their means.

    NaN where no query has a value. Directions and parts without one do not count.
    """
    gallery = benchmark.gallery
    known = ~np.isnan(values)
    of_sides = []
    for direction in (0, 1):
        chosen = known & (gallery.directions == direction)
        if chosen.any():
            parts, inside = gallery.query_parts[chosen], values[chosen]
            of_sides.append(float(np.mean([inside[parts == part].mean() for part in np.unique(parts)])))
    return float(np.mean(of_sides)) if of_sides else float("nan")
