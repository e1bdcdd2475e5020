"""A gallery's measures from values per query: means over directions, of means over parts, of their means."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
from counterfoil.metrics.measure import split_direction
from counterfoil.stats.estimates import macro_weights


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


def weights_of(benchmark: Benchmark, rows: Bool[ndarray, "n"]) -> Float[ndarray, "n"]:
    """What each query counts in a measure that has values in `rows`; 0 in the others, 1 altogether.

    Both directions count the same, and in a direction all parts that have rows.
    """
    gallery = benchmark.gallery
    weights = np.zeros(len(gallery))
    for direction in (0, 1):
        chosen = rows & (gallery.directions == direction)
        if chosen.any():
            weights += macro_weights(np.where(chosen, gallery.query_parts, -1))
    total = weights.sum()
    return weights / round(total) if total else weights


def columns(
    benchmark: Benchmark, values: Mapping[str, Float[ndarray, "n"]], names: Sequence[str]
) -> tuple[Float[ndarray, "n m"], Float[ndarray, "m k"]]:
    """The columns that measures are made of, one per direction and measure, and which each averages.

    A direction's measure is its own column, and `mean_X` half of one and half of the other, so that no column
    is worked out twice. Returns the columns and the weights of each, a column of weights per name.
    """
    directions = benchmark.gallery.directions
    found: dict[str, Float[ndarray, "n"]] = {}
    made_of: list[list[int]] = []
    for name in names:
        side, base = split_direction(name)
        made_of.append([])
        for direction, one in enumerate(("i2t", "t2i")):
            if side in (one, "mean"):
                key = f"{one}_{base}"
                found.setdefault(key, np.where(directions == direction, values[name], np.nan))
                made_of[-1].append(list(found).index(key))
    averages = np.zeros((len(found), len(names)))
    for k, parts in enumerate(made_of):
        averages[parts, k] = 1 / len(parts)
    return np.stack(list(found.values()), axis=1), averages
