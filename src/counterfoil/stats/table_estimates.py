"""Intervals for many columns at once, each over rows and groups of its own, and for averages of columns.

As `estimates`, for tables such as a gallery's measures, which have values in some of the queries only. A
column's numbers have the same bits whatever other columns there are.
"""

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import InputError
from counterfoil.stats.crossed import mean_variance
from counterfoil.stats.estimates import macro_weights
from counterfoil.stats.intervals import Spread
from counterfoil.stats.sharing import Sharing, column_sums


def table_spread(
    values: Float[ndarray, "n m"],
    groups: Int[ndarray, "n m"],
    clusters: Int[ndarray, "n"] | Sharing,
    *,
    averages: Float[ndarray, "m k"] | None = None,
) -> Spread:
    """What `macro_interval` makes its interval of, for many columns at once, each with groups of its own.

    A row whose group is negative in a column is left out of that column, and its value there may be anything.
    `averages` makes each result an average of columns that have no row in common: its columns are the
    weights, which sum to 1, such as 1/2 and 1/2 for the mean of two directions of retrieval; without it each
    column is a result. Raises `InputError` for no questions, for a column without rows, for values outside
    [0, 1] and for averages of columns that share rows.

    >>> values, groups = np.array([[1.0, 9.0], [0.0, 9.0], [9.0, 1.0]]), np.array([[0, -1], [0, -1], [-1, 0]])
    >>> found = table_spread(values, groups, np.arange(3), averages=np.array([[1.0, 0.5], [0.0, 0.5]]))
    >>> found.value, found.units
    (array([0.5 , 0.75]), array([2., 3.]))
    """
    _check(values, groups)
    return _spread(values[None], groups, clusters, averages)


def macro_table_differences(
    values: Float[ndarray, "s n m"],
    groups: Int[ndarray, "n m"],
    clusters: Int[ndarray, "n"] | Sharing,
    pairs: Int[ndarray, "p 2"],
    *,
    averages: Float[ndarray, "m k"] | None = None,
    level: float = 0.95,
) -> tuple[Float[ndarray, "p k"], Float[ndarray, "p k"], Float[ndarray, "p k"], Float[ndarray, "p k"]]:
    """The differences of scorers a and b, for each pair, in each result of `table_spread`.

    `values` has a table per scorer; groups are those of all. Returns (values, low, high, p): Tango's interval
    for the effective number of questions and its p-value, as `difference_interval`.

    >>> answers = np.repeat([[[1.0], [1.0], [0.0]], [[0.0], [1.0], [0.0]]], 10, axis=1)
    >>> value, low, high, p = macro_table_differences(
    ...     answers, np.zeros((30, 1), int), np.arange(30), np.array([[0, 1]]))
    >>> bool(0 < low[0, 0] < value[0, 0] < high[0, 0] < 1), bool(p[0, 0] < 0.01)
    (True, True)
    """
    for table in values:
        _check(table, groups)
    if averages is None:
        averages = np.eye(groups.shape[1])
    gaps = values[pairs[:, 0]] - values[pairs[:, 1]]
    found = _spread(gaps, groups, clusters, averages)
    weights = np.stack([macro_weights(column) for column in groups.T], axis=1)
    discord = np.stack(
        [column_sums(np.where(groups >= 0, weights * np.abs(gap), 0.0)) @ averages for gap in gaps]
    ).reshape(-1)
    shape = (len(pairs), averages.shape[1])
    low, high = found.tango(discord, level)
    parts = found.value, low, high, found.tango_p(discord)
    value, low, high, p = (part.reshape(shape) for part in parts)
    return value, low, high, p


def _spread(
    tables: Float[ndarray, "s n m"],
    groups: Int[ndarray, "n m"],
    clusters: Int[ndarray, "n"] | Sharing,
    averages: Float[ndarray, "m k"] | None,
) -> Spread:
    """The spread of every average of columns of every table, a table after the other."""
    sharing = clusters if isinstance(clusters, Sharing) else Sharing.of_clusters(clusters)
    if averages is None:
        averages = np.eye(groups.shape[1])
    found = np.zeros((4, len(tables), averages.shape[1]))
    of_columns = np.stack([macro_weights(column) for column in groups.T], axis=1)
    # Results over the same rows, groups and weights are worked out together.
    kinds: dict[bytes, list[int]] = {}
    made = []
    for k, average in enumerate(averages.T):
        strata, weights, column = _rows_of(groups, of_columns, average)
        made.append((strata, weights, column))
        kinds.setdefault(strata.tobytes() + weights.tobytes(), []).append(k)
    for members in kinds.values():
        strata, weights, _ = made[members[0]]
        rows = strata >= 0
        chosen = [tables[:, rows, made[k][2][rows]].T for k in members]
        part = sharing.part(rows)
        of_kind = mean_variance(part, np.hstack(chosen), strata[rows], weights[rows])
        for number, each in enumerate(of_kind):
            found[number][:, members] = each.reshape(len(members), -1).T
        found[3][:, members] = part.apart
    value, variance, freedom, units = found.reshape(4, -1)
    return Spread(value, variance, freedom, units)


def _rows_of(
    groups: Int[ndarray, "n m"], weights: Float[ndarray, "n m"], average: Float[ndarray, "m"]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """For an average of columns the group of each row, -1 for none, its weight, and the column it is of."""
    inside = (groups >= 0) & (average > 0)
    if (inside.sum(axis=1) > 1).any():
        raise InputError("an average of columns that have rows in common")
    column = inside.argmax(axis=1)
    every, wide = np.arange(len(groups)), int(groups.max(initial=0)) + 1
    strata = np.where(inside.any(axis=1), column * wide + groups[every, column], -1)
    return strata, np.where(strata >= 0, (weights * average)[every, column], 0.0), column


def _check(values: Float[ndarray, "n m"], groups: Int[ndarray, "n m"]) -> None:
    """Raise for columns without a value and for values outside [0, 1]."""
    inside = groups >= 0
    if not values.size or not inside.any(axis=0).all():
        raise InputError(
            "no questions to measure",
            given=f"{values.shape[0]} rows, {values.shape[1]} columns, of which "
            f"{int((~inside.any(axis=0)).sum())} without a value",
        )
    clean = np.where(inside, values, 0.0)
    if not bool(((clean >= 0) & (clean <= 1)).all()):
        raise InputError("values must be in [0, 1]", given=f"{clean.min()} to {clean.max()}")
