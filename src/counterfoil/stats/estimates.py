"""Intervals for means of per-question values in [0, 1], and tests of their differences.

Which interval? Questions that share an image or a caption stand and fall together, so the spread of a mean is
measured over whole clusters (`stats.two_way_clustering`). What is then made of it matters where clusters are
few or nearly all answers are right. Coverage of nominal 95 % intervals in a simulation (beta-binomial
clusters of about five questions, intraclass correlation 0.3, 4,000 repetitions, so +- 0.7):

    clusters, proportion              10, 0.8   25, 0.8   25, 0.95   60, 0.95   200, 0.8
    percentiles of draws of clusters     87.6      91.9       85.3       90.8       94.7
    bias-corrected and accelerated       90.3      92.8       89.8       92.9       94.9
    Student's t                          90.0      92.5       82.6       89.8       95.1
    studentised draws                    97.8      96.0       99.0*      97.1       95.3
    score interval                       94.4      93.7       93.3       93.5       95.0
    Wilson, as if independent            79.4      79.7       80.4       80.6       79.1
    * at five times the width

So the variance gives the *effective number of questions*, the number of independent ones whose mean would
spread as much, and the interval is the score interval for that number: Wilson's for a mean, Tango's for a
paired difference, with Student's t quantile for the variance's degrees of freedom in place of the normal one.
It stays in range, is not symmetric near 0 and 1, and never has zero width. The p-value of a difference is the
level at which its interval just reaches 0, so that the two never contradict each other.
"""

import random

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.special import stdtrit

from counterfoil.errors import InputError
from counterfoil.stats.dependence import Sharing, column_sums
from counterfoil.stats.intervals import Spread
from counterfoil.stats.two_way_clustering import mean_variance


def cluster_interval(
    values: Float[ndarray, "n m"],
    clusters: Int[ndarray, "n"] | Sharing,
    *,
    level: float = 0.95,
) -> tuple[Float[ndarray, "m"], Float[ndarray, "m"]]:
    """Intervals for the mean of each column, where questions of one cluster depend on one another.

    `values` are in [0, 1]; `clusters` gives each question's cluster, any numbers, or what questions share.
    Returns (low, high), each (m,), in [0, 1]: Wilson's interval for the effective number of questions,
    `p (1 - p)` over the variance of the mean (see the module). A column that does not vary between clusters,
    such as one that is right throughout, gets Wilson's interval for as many questions as there are clusters.

    Raises `InputError` for no questions and for values outside [0, 1].

    >>> right, image = np.array([[1.0], [1.0], [0.0], [0.0], [1.0], [1.0]]), np.array([0, 0, 1, 1, 2, 2])
    >>> cluster_interval(right, image)[0] < cluster_interval(right, np.arange(6))[0]
    array([ True])
    """
    return spread(values, clusters).wilson(level)


def difference_interval(
    values: Float[ndarray, "n m"],
    clusters: Int[ndarray, "n"] | Sharing,
    pairs: Int[ndarray, "p 2"],
    *,
    groups: Int[ndarray, "n"] | None = None,
    shares: Float[ndarray, "groups"] | None = None,
    level: float = 0.95,
) -> tuple[Float[ndarray, "p"], Float[ndarray, "p"], Float[ndarray, "p"]]:
    """Interval and test of mean(column a) - mean(column b), for each pair (a, b), paired by question.

    Columns are scorers, or scorers x measures. With `groups` it is the difference of the means over groups of
    group means (`shares` as in `macro_weights`); rows with a negative group are left out. Returns (low, high,
    p), each (p,): Tango's score interval in [-1, 1] for the effective number of questions, and the two-sided
    p-value of no difference that belongs to it: at most 0.05 where the 95 % interval leaves 0 out. Two
    columns whose difference does not vary between clusters, such as two that agree throughout, get the
    interval for as many questions as there are clusters.

    Raises `InputError` for no questions and for values outside [0, 1].

    Source: T. Tango, Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design, 1998.

    >>> answers = np.repeat([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]], 10, axis=0)
    >>> low, high, p = difference_interval(answers, np.arange(30), np.array([[0, 1], [0, 0]]))
    >>> bool(0 < low[0] < 1 / 3 < high[0] < 1), bool(low[1] < 0 < high[1]), p.round(4)
    (True, True, array([0.0042, 1.    ]))
    """
    gaps = spread(values, clusters, groups=groups, shares=shares, pairs=pairs)
    weights = np.full(len(values), 1 / len(values)) if groups is None else macro_weights(groups, shares)
    discord = column_sums(weights[:, None] * np.abs(values[:, pairs[:, 0]] - values[:, pairs[:, 1]]))
    return *gaps.tango(discord, level), gaps.tango_p(discord)


def macro_weights(
    groups: Int[ndarray, "n"], shares: Float[ndarray, "groups"] | None = None
) -> Float[ndarray, "n"]:
    """Weights that make a weighted sum the mean over groups of group means; 0 where the group is negative.

    `shares` are the weights of groups 0, 1, ..., which sum to 1; None where all weigh the same.

    >>> macro_weights(np.array([0, 0, 1, -1]))
    array([0.25, 0.25, 0.5 , 0.  ])
    >>> macro_weights(np.array([0, 0, 1, 2]), np.array([0.5, 0.25, 0.25]))
    array([0.25, 0.25, 0.25, 0.25])
    """
    inside = groups >= 0
    labels, position, sizes = np.unique(groups[inside], return_inverse=True, return_counts=True)
    weights = np.zeros(len(groups))
    of_row = position.reshape(-1)
    if shares is None:
        weights[inside] = 1 / (len(sizes) * sizes[of_row])
    else:
        weights[inside] = (shares[labels] / sizes)[of_row]
    return weights


def t_over_folds(
    values: Float[ndarray, "n"], *, folds: int = 4, level: float = 0.95, seed: int = 0, least: float = 0.0
) -> tuple[float, float]:
    """Student's t over the means of `folds` equal parts of the shuffled questions, cut to [least, 1].

    As in Winoground's appendix A, whose intervals come out to the printed digit with the defaults: the
    numbers 0 to 399 shuffled by Python's `random` from seed 0, then cut into quarters. Where `folds` does not
    divide the number of questions the first parts are longer by one. Returns (low, high); parts that agree
    exactly give zero width. With four parts it rests on three degrees of freedom: `cluster_interval` is
    tighter and knows about shared images. Raises `InputError` for fewer than two parts, or fewer questions
    than parts.

    Source: Winoground, appendix A.

    >>> t_over_folds(np.array([1.0, 1.0, 0.0, 0.0]), folds=2)
    (0.5, 0.5)
    """
    if folds < 2 or len(values) < folds:
        raise InputError(
            "cannot be cut into folds",
            given=f"{folds} folds of {len(values)} questions",
            allowed="2 folds or more, and a question for each",
        )
    order = list(range(len(values)))
    random.Random(seed).shuffle(order)
    means = np.array([part.mean() for part in np.array_split(values[order], folds)])
    centre = float(values.mean())
    half = float(stdtrit(folds - 1, (1 + level) / 2) * means.std(ddof=1)) / folds**0.5
    return max(least, centre - half), min(1.0, centre + half)


def spread(
    values: Float[ndarray, "n m"],
    clusters: Int[ndarray, "n"] | Sharing,
    *,
    groups: Int[ndarray, "n"] | None = None,
    shares: Float[ndarray, "groups"] | None = None,
    pairs: Int[ndarray, "p 2"] | None = None,
) -> Spread:
    """What the intervals above are made of: the means of the columns, or the differences of pairs of them.

    Arguments and errors as there; `shares` are the weights of groups 0, 1, ..., None where all weigh the
    same. The variance is that of `stats.two_way_clustering.mean_variance`.

    >>> found = spread(np.array([[1.0], [0.0], [1.0]]), np.array([0, 0, 1]))
    >>> found.value.round(3), found.units
    (array([0.667]), array([2.]))
    """
    if groups is None:
        groups = np.zeros(len(values), dtype=np.int64)
    weights, inside = macro_weights(groups, shares), groups >= 0
    values, groups, weights = values[inside], groups[inside], weights[inside]
    if not values.size:
        given = f"{values.shape[0]} rows, {values.shape[1]} columns"
        raise InputError("no questions to measure", given=given)
    if not bool(((values >= 0) & (values <= 1)).all()):
        raise InputError("values must be in [0, 1]", given=f"{values.min()} to {values.max()}")
    sharing = clusters if isinstance(clusters, Sharing) else Sharing.of_clusters(clusters)
    sharing = sharing.part(inside)
    columns = values if pairs is None else values[:, pairs[:, 0]] - values[:, pairs[:, 1]]
    value, variance, freedom = mean_variance(sharing, columns, groups, weights)
    return Spread(value, variance, freedom, np.full(len(value), sharing.n_independent))


def deviations(
    values: Float[ndarray, "n m"],
    groups: Int[ndarray, "n"],
    shares: Float[ndarray, "groups"] | None = None,
) -> tuple[Float[ndarray, "m"], Float[ndarray, "n m"]]:
    """The mean over groups of group means of each column, and what each row adds to its error.

    To first order, and summing to 0: (value - mean of its group) times its weight. Rows of a negative group
    add 0.

    >>> deviations(np.array([[1.0], [0.0], [1.0]]), np.array([0, 0, 1]))[0]
    array([0.75])
    """
    weights = macro_weights(groups, shares)
    moved = np.zeros(values.shape)
    for label in np.unique(groups[groups >= 0]):
        rows = groups == label
        moved[rows] = (values[rows] - values[rows].mean(axis=0)) * weights[rows, None]
    return weights @ values, moved


# Tables such as a gallery's measures have values in some of the questions only: each column has rows and
# groups of its own. A column's numbers have the same bits whatever other columns there are.


def table_spread(
    values: Float[ndarray, "n m"],
    groups: Int[ndarray, "n m"],
    clusters: Int[ndarray, "n"] | Sharing,
    *,
    averages: Float[ndarray, "m k"] | None = None,
) -> Spread:
    """As `spread`, for many columns at once, each with groups of its own.

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
    spreads = _spread(gaps, groups, clusters, averages)
    weights = np.stack([macro_weights(column) for column in groups.T], axis=1)
    discord = np.stack(
        [column_sums(np.where(groups >= 0, weights * np.abs(gap), 0.0)) @ averages for gap in gaps]
    ).reshape(-1)
    shape = (len(pairs), averages.shape[1])
    low, high = spreads.tango(discord, level)
    parts = spreads.value, low, high, spreads.tango_p(discord)
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
    table = np.zeros((4, len(tables), averages.shape[1]))
    of_columns = np.stack([macro_weights(column) for column in groups.T], axis=1)
    # Results over the same rows, groups and weights are worked out together.
    kinds: dict[bytes, list[int]] = {}
    results = []
    every, wide = np.arange(len(groups)), int(groups.max(initial=0)) + 1
    for k, average in enumerate(averages.T):
        # The column that each row is of, its group there, -1 for none, and its weight.
        inside = (groups >= 0) & (average > 0)
        if (inside.sum(axis=1) > 1).any():
            raise InputError("an average of columns that have rows in common")
        column = inside.argmax(axis=1)
        strata = np.where(inside.any(axis=1), column * wide + groups[every, column], -1)
        weights = np.where(strata >= 0, (of_columns * average)[every, column], 0.0)
        results.append((strata, weights, column))
        kinds.setdefault(strata.tobytes() + weights.tobytes(), []).append(k)
    for members in kinds.values():
        strata, weights, _ = results[members[0]]
        rows = strata >= 0
        chosen = [tables[:, rows, results[k][2][rows]].T for k in members]
        part = sharing.part(rows)
        of_kind = mean_variance(part, np.hstack(chosen), strata[rows], weights[rows])
        for number, numbers in enumerate(of_kind):
            table[number][:, members] = numbers.reshape(len(members), -1).T
        table[3][:, members] = part.n_independent
    value, variance, freedom, units = table.reshape(4, -1)
    return Spread(value, variance, freedom, units)


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
