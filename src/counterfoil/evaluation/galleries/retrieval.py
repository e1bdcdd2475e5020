"""A gallery's values: from the places of right answers to a value per query.

Queries of both directions are rows of one table, images first, as in the benchmark's questions. A measure
`i2t_X` has values in the rows of images, `t2i_X` in those of captions, `mean_X` in both; NaN elsewhere, and
where a query has no right answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.forms import Search
from counterfoil.data.scores import Answers, DirectionRanks, Rankings
from counterfoil.errors import InputError, ScoreError
from counterfoil.evaluation.galleries.measures import expand, measure_names
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.measure import DIRECTIONS, Measure, split_direction
from counterfoil.metrics.measures import find
from counterfoil.metrics.ranks import Positives, Ranks, from_places
from counterfoil.metrics.ties import Ties

#: The rows of `Placed.shares`.
POLICIES = (Ties.STRICT, Ties.HALF, Ties.OPTIMISTIC)


@dataclass(frozen=True, eq=False)
class QueryValues:
    """Each measure's value per query, and why the others that exist have none: the rankings were cut."""

    values: Mapping[str, Float[ndarray, "n"]]
    unsupported: Mapping[str, str]


def ranks(benchmark: Benchmark, rankings: Rankings) -> tuple[Ranks, Ranks]:
    """Where the right answers stand, images' and captions'.

    Raises `ScoreError` where the rankings are not those of the benchmark, and `InputError` where right is
    what a rule says: such answers are not kept one by one.
    """
    check(benchmark, rankings, where=benchmark.name)
    gallery = benchmark.gallery
    found = [
        _side_ranks(search, placed, sizes)
        for search, placed, sizes in zip(
            (gallery.i2t, gallery.t2i), (rankings.i2t, rankings.t2i), gallery.sizes, strict=True
        )
    ]
    return found[0], found[1]


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
    found: dict[str, Float[ndarray, "n"] | str] = {}
    of_side = {
        side: _values_of(search, placed, sizes, ties)
        for side, search, placed, sizes in zip(
            DIRECTIONS,
            (gallery.i2t, gallery.t2i),
            (rankings.i2t, rankings.t2i),
            gallery.sizes,
            strict=False,
        )
    }
    split = len(gallery.i2t)
    rows = {"i2t": slice(0, split), "t2i": slice(split, None)}
    for name in names:
        side, base = split_direction(name)
        table = np.full(len(gallery), np.nan)
        reason = ""
        for one in ("i2t", "t2i") if side == "mean" else (side,):
            key = f"{one}_{base}"
            if key not in found:
                try:
                    found[key] = of_side[one](base)
                except InputError as error:
                    found[key] = str(error)
            value = found[key]
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
    gallery, found = benchmark.gallery, answers.rankings
    for name, search, placed in (("i2t", gallery.i2t, found.i2t), ("t2i", gallery.t2i, found.t2i)):
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
    gallery = benchmark.gallery
    found = []
    for search, placed, sizes in zip(
        (gallery.i2t, gallery.t2i), (rankings.i2t, rankings.t2i), gallery.sizes, strict=True
    ):
        if placed.shares is not None and isinstance(search.positives, Plausible):
            strict, optimistic = placed.shares[:, 0], placed.shares[:, 2]
            found.append((strict < optimistic).any(axis=0))
        else:
            of = _side_ranks(search, placed, sizes)
            found.append(np.bincount(of.query, weights=of.tied > 0, minlength=len(search)) > 0)
    return np.concatenate(found)


def _values_of(
    search: Search, placed: DirectionRanks, sizes: Int[ndarray, "queries"], ties: Ties
) -> Callable[[str], Float[ndarray, "queries"]]:
    """The function that gives a measure's values in one direction."""
    if isinstance(search.positives, Plausible):
        assert placed.shares is not None  # `check` has seen to it
        shares = placed.shares[:, POLICIES.index(ties)]
        return lambda base: _measure(base)(shares)
    of = _side_ranks(search, placed, sizes)
    return lambda base: _measure(base)(of, ties=ties)


def _measure(base: str) -> Measure:
    found = find(base, "gallery")
    assert found is not None  # `expand` has seen to it
    return found


def _side_ranks(search: Search, placed: DirectionRanks, sizes: Int[ndarray, "queries"]) -> Ranks:
    # Parts may differ in size. A rank does not depend on how large the gallery is, only whether a ranking is
    # whole does: those that are get the depth of the largest part.
    largest = int(sizes.max(initial=0))
    depth = np.where(placed.depth >= sizes, largest, placed.depth)
    return from_places(_listed(search), placed.above, placed.level, depth=depth, gallery=largest)


def _listed(search: Search) -> Positives:
    if isinstance(search.positives, Plausible):
        raise InputError("right answers by rule have no ranks", hint="their measure is 'pmrp'")
    return search.positives
