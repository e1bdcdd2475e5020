"""Intervals for many columns at once, each over rows and groups of its own, and for averages of columns.

As `estimates`, for tables such as a gallery's measures, which have values in some of the queries only. All
columns share the same draws, and a column's numbers have the same bits whatever other columns there are.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from counterfoil.errors import InputError
from counterfoil.stats.crossed import crossed_variance
from counterfoil.stats.estimates import deviations, macro_weights
from counterfoil.stats.intervals import Spread
from counterfoil.stats.resampling import ExactSums, cluster_draws, exact_sums
from counterfoil.stats.sharing import Sharing


def table_spread(
    values: Float[ndarray, "n m"],
    groups: Int[ndarray, "n m"],
    clusters: Int[ndarray, "n"] | Sharing,
    *,
    seed: int,
    averages: Float[ndarray, "m k"] | None = None,
    draws: int = 10_000,
) -> Spread:
    """What `macro_bootstrap` makes its interval of, for many columns at once, each with groups of its own.

    A row whose group is negative in a column is left out of that column, and its value there may be anything.
    `averages` makes each result an average of columns: its columns are the weights, which sum to 1, such as
    1/2 and 1/2 for the mean of two directions of retrieval; without it each column is a result. A column none
    of whose rows is drawn is left out of the averages of that draw. All results share the same draws; where a
    `Sharing` is crossed nothing is drawn. Raises `InputError` for no questions, for a column without rows and
    for values outside [0, 1].

    >>> values, groups = np.array([[1.0, 9.0], [0.0, 9.0], [9.0, 1.0]]), np.array([[0, -1], [0, -1], [-1, 0]])
    >>> found = table_spread(
    ...     values, groups, np.arange(3), averages=np.array([[1.0, 0.5], [0.0, 0.5]]), seed=0, draws=100)
    >>> found.value, found.units
    (array([0.5 , 0.75]), array([2., 3.]))
    """
    if averages is None:
        averages = np.eye(values.shape[1])
    if isinstance(clusters, Sharing) and clusters.crossed:
        inside = _checked(values, groups)
        return _crossed(np.where(inside, values, 0.0), groups, clusters, averages)
    columns = _columns(values, groups, _units(clusters))
    value, variance = _resample(columns, [(averages, averages * 0)], draws, seed)
    units = np.array(columns.reached(averages), dtype=np.float64)
    return Spread(value[0], variance[0], units - 1, units)


def macro_table_differences(
    values: Float[ndarray, "s n m"],
    groups: Int[ndarray, "n m"],
    clusters: Int[ndarray, "n"] | Sharing,
    pairs: Int[ndarray, "p 2"],
    *,
    seed: int,
    averages: Float[ndarray, "m k"] | None = None,
    draws: int = 10_000,
    level: float = 0.95,
) -> tuple[Float[ndarray, "p k"], Float[ndarray, "p k"], Float[ndarray, "p k"]]:
    """The differences of scorers a and b, for each pair, in each result of `table_spread`.

    `values` has a table per scorer; groups are those of all. Returns (values, low, high): Tango's interval
    for the effective number of questions, as `difference_bootstrap`, with the same draws for all.

    >>> answers = np.repeat([[[1.0], [1.0], [0.0]], [[0.0], [1.0], [0.0]]], 10, axis=1)
    >>> value, low, high = macro_table_differences(
    ...     answers, np.zeros((30, 1), int), np.arange(30), np.array([[0, 1]]), seed=0)
    >>> bool(0 < low[0, 0] < value[0, 0] < high[0, 0] < 1)
    True
    """
    scorers, _, m = values.shape
    if averages is None:
        averages = np.eye(m)
    inside = groups >= 0
    gaps = np.where(inside, values[pairs[:, 0]] - values[pairs[:, 1]], 0.0)
    weights = np.stack([macro_weights(groups[:, j]) for j in range(m)], axis=1)
    discord = np.array([np.where(inside, weights * np.abs(gap), 0.0).sum(axis=0) @ averages for gap in gaps])
    if isinstance(clusters, Sharing) and clusters.crossed:
        _checked(np.concatenate(list(values), axis=1), np.tile(groups, scorers))
        found = [_crossed(gap, groups, clusters, averages) for gap in gaps]
        ends = [one.tango(of, level) for one, of in zip(found, discord, strict=True)]
        shape = (len(pairs), averages.shape[1])
        low, high = (np.array([end[side] for end in ends]).reshape(shape) for side in (0, 1))
        return np.array([one.value for one in found]).reshape(shape), low, high
    flat = np.concatenate(list(values), axis=1)
    columns = _columns(flat, np.tile(groups, scorers), _units(clusters))
    sides = np.zeros((len(pairs), 2, scorers, m, averages.shape[1]))
    for i, (a, b) in enumerate(pairs):
        sides[i, 0, a] += averages
        sides[i, 1, b] += averages
    both = sides.reshape(len(pairs), 2, scorers * m, -1)
    difference, variance = _resample(columns, [(one, other) for one, other in both], draws, seed)
    low, high = np.zeros(difference.shape), np.zeros(difference.shape)
    ones = np.ones(len(pairs))
    for k, n_clusters in enumerate(columns.reached(np.tile(averages, (scorers, 1)))):
        found_k = Spread(difference[:, k], variance[:, k], (n_clusters - 1) * ones, n_clusters * ones)
        low[:, k], high[:, k] = found_k.tango(discord[:, k], level)
    return difference, low, high


def _units(clusters: Int[ndarray, "n"] | Sharing) -> ndarray:
    return clusters.components if isinstance(clusters, Sharing) else clusters


def _crossed(
    values: Float[ndarray, "n m"],
    groups: Int[ndarray, "n m"],
    sharing: Sharing,
    averages: Float[ndarray, "m k"],
) -> Spread:
    """Averages of columns over crossed images and captions, each over the rows of its columns."""
    made = [deviations(values[:, [j]], groups[:, j]) for j in range(values.shape[1])]
    moved = np.hstack([each for _, each in made]) @ averages
    value = np.concatenate([mean for mean, _ in made]) @ averages
    of_result = (groups >= 0).astype(np.int64) @ (averages > 0) > 0
    kinds, kind = np.unique(of_result, axis=1, return_inverse=True)
    variance, freedom, units = (np.zeros(len(value)) for _ in range(3))
    for number, rows in enumerate(kinds.T):
        chosen, part = kind.reshape(-1) == number, sharing.part(rows)
        variance[chosen], freedom[chosen] = crossed_variance(part, moved[rows][:, chosen])
        units[chosen] = part.shared.apart
    return Spread(value, variance, freedom, units)


@dataclass(frozen=True, eq=False)
class _Columns:
    """Cluster sums for every column and group, with what is needed to make means of them.

    Each part is (the clusters it has rows in, the columns it is of, sums of these and of the rows).
    """

    parts: list[tuple[ndarray, ndarray, ExactSums]]
    width: int
    n_clusters: int

    def means(self, weights: Float[ndarray, "draws c"]) -> Float[ndarray, "draws m"]:
        """The mean over groups of group means of each column; NaN where none of its rows was drawn."""
        total = np.zeros((len(weights), self.width))
        present = np.zeros((len(weights), self.width))
        for members, columns, part in self.parts:
            sums = part.weighted(weights if len(members) == self.n_clusters else weights[:, members])
            size = sums[:, -1:]
            total[:, columns] += sums[:, :-1] / np.maximum(size, 1)
            present[:, columns] += size > 0
        return np.divide(total, present, out=np.full(total.shape, np.nan), where=present > 0)

    def reached(self, averages: Float[ndarray, "m k"]) -> list[int]:
        """How many clusters have rows in the columns that each average is of."""
        inside = np.zeros((self.n_clusters, self.width), dtype=bool)
        for members, columns, _ in self.parts:
            inside[np.ix_(members, columns)] = True
        return [int(inside[:, side > 0].any(axis=1).sum()) for side in averages.T]


def _checked(values: Float[ndarray, "n m"], groups: Int[ndarray, "n m"]) -> ndarray:
    """Where columns have values; raises for columns without any and for values outside [0, 1]."""
    inside = groups >= 0
    if not values.size or not inside.any(axis=0).all():
        raise InputError(
            "no questions to draw from",
            given=f"{values.shape[0]} rows, {values.shape[1]} columns, of which "
            f"{int((~inside.any(axis=0)).sum())} without a value",
        )
    clean = np.where(inside, values, 0.0)
    if not bool(((clean >= 0) & (clean <= 1)).all()):
        raise InputError("values must be in [0, 1]", given=f"{clean.min()} to {clean.max()}")
    return inside


def _columns(
    values: Float[ndarray, "n m"], groups: Int[ndarray, "n m"], clusters: Int[ndarray, "n"]
) -> _Columns:
    inside = _checked(values, groups)
    clean = np.where(inside, values, 0.0)
    # Clusters of rows that no column has would be drawn for nothing.
    used = inside.any(axis=1)
    clean, groups, position = clean[used], groups[used], np.unique(clusters[used], return_inverse=True)[1]
    position = position.reshape(-1)
    n_clusters = int(position.max()) + 1
    # Columns with the same groups count their rows once.
    kinds, kind = np.unique(groups.T, axis=0, return_inverse=True)
    parts = []
    for number, of in enumerate(kinds):
        columns = np.flatnonzero(kind.reshape(-1) == number)
        for label in np.unique(of[of >= 0]):
            rows = np.flatnonzero(of == label)
            members = np.unique(position[rows])
            table = np.hstack([clean[rows][:, columns], np.ones((len(rows), 1))])
            parts.append((members, columns, exact_sums(table, position[rows], repeats=n_clusters)))
    return _Columns(parts, values.shape[1], n_clusters)


def _resample(
    columns: _Columns,
    pairs: list[tuple[Float[ndarray, "m k"], Float[ndarray, "m k"]]],
    draws: int,
    seed: int,
) -> tuple[Float[ndarray, "p k"], Float[ndarray, "p k"]]:
    """For each pair of sets of weights, an average of columns less the other, and its variance over draws."""

    def results(weights: Float[ndarray, "draws c"]) -> Float[ndarray, "p k draws"]:
        means = columns.means(weights)
        known = ~np.isnan(means)
        all_known = bool(known.all())
        found = []
        for sides in pairs:
            value = []
            for side in sides:
                # Column by column, so that a result has the same bits whatever other columns there are.
                row = np.zeros((side.shape[1], len(means)))
                counted = np.zeros_like(row)
                for k, j in zip(*np.nonzero(side.T), strict=True):
                    row[k] += side[j, k] * (means[:, j] if all_known else np.nan_to_num(means[:, j]))
                    counted[k] += side[j, k] * known[:, j]
                if not all_known:
                    row = np.divide(row, counted, out=np.full(row.shape, np.nan), where=counted > 0)
                value.append(row)
            found.append(value[0] - value[1] if sides[1].any() else value[0])
        return np.stack(found)

    centre = results(np.ones((1, columns.n_clusters), dtype=np.float32))[..., 0]
    total, squares = np.zeros(centre.shape), np.zeros(centre.shape)
    for weights in cluster_draws(columns.n_clusters, draws, seed=seed):
        # A result of which nothing was drawn says nothing; it happens to the smallest of groups.
        moved = np.nan_to_num(results(weights) - centre[..., None])
        total += moved.sum(axis=-1)
        squares += (moved * moved).sum(axis=-1)
    variance = np.maximum(squares / draws - (total / draws) ** 2, 0.0)
    return centre, variance * (columns.n_clusters / max(columns.n_clusters - 1, 1))
