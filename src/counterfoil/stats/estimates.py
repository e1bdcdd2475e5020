"""Intervals for means of per-question values in [0, 1].

Which interval? Questions that share an image or a caption stand and fall together, so the spread of a mean
is measured by drawing whole clusters with replacement. What is then made of the draws matters where clusters
are few or nearly all answers are right. Coverage of nominal 95 % intervals in a simulation (beta-binomial
clusters of about five questions, intraclass correlation 0.3, 4,000 repetitions, so +- 0.7):

    clusters, proportion              10, 0.8   25, 0.8   25, 0.95   60, 0.95   200, 0.8
    percentiles of the draws             87.6      91.9       85.3       90.8       94.7
    bias-corrected and accelerated       90.3      92.8       89.8       92.9       94.9
    Student's t                          90.0      92.5       82.6       89.8       95.1
    studentised draws                    97.8      96.0       99.0*      97.1       95.3
    score interval, as here              94.4      93.7       93.3       93.5       95.0
    Wilson, as if independent            79.4      79.7       80.4       80.6       79.1
    * at five times the width

So the draws give the *effective number of questions*, the number of independent ones whose mean would spread
as much, and the interval is the score interval for that number: Wilson's for a mean, Tango's for a paired
difference, with Student's t quantile for the number of clusters in place of the normal one. It stays in
range, is not symmetric near 0 and 1, and never has zero width.
"""

import random
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.special import ndtri, stdtrit

from counterfoil.errors import InputError
from counterfoil.stats.resampling import Whole, cluster_draws, whole
from counterfoil.stats.score_intervals import tango_score, wilson_score

#: Variances below this are rounding: a single wrong answer in a million questions makes one of 1e-12.
_NO_VARIANCE = 1e-20


def wilson(successes: float, n: float, *, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a proportion of independent trials.

    `successes` of `n` may be fractional, as half points for ties make them. Returns (low, high) in [0, 1];
    it never has zero width, also not at 0 and at `n` successes. Raises `InputError` where there are no
    trials, or more successes than trials.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference, 1927.

    >>> low, high = wilson(8, 10)
    >>> round(low, 4), round(high, 4)
    (0.4902, 0.9433)
    """
    if not n > 0 or not 0 <= successes <= n:
        raise InputError("no proportion", given=f"{successes} of {n}", allowed="0 to n successes, n above 0")
    low, high = wilson_score(np.array([successes / n]), np.array([float(n)]), np.array([_normal(level)]))
    return float(low[0]), float(high[0])


def cluster_bootstrap(
    values: Float[ndarray, "n m"],
    clusters: Int[ndarray, "n"],
    *,
    seed: int,
    draws: int = 10_000,
    level: float = 0.95,
) -> tuple[Float[ndarray, "m"], Float[ndarray, "m"]]:
    """Intervals for the mean of each column, where questions of one cluster stand or fall together.

    `values` are in [0, 1]; `clusters` gives each question's cluster, any numbers. Returns (low, high), each
    (m,), in [0, 1]: Wilson's interval for the effective number of questions, `p (1 - p)` over the variance of
    the mean in `draws` draws of clusters (see the module). A column that does not vary between clusters, such
    as one that is right throughout, gets Wilson's interval for as many questions as there are clusters.

    All columns share the same draws; the same seed gives the same intervals. Raises `InputError` for no
    questions and for values outside [0, 1].

    >>> right, image = np.array([[1.0], [1.0], [0.0], [0.0], [1.0], [1.0]]), np.array([0, 0, 1, 1, 2, 2])
    >>> cluster_bootstrap(right, image, seed=0)[0] < cluster_bootstrap(right, np.arange(6), seed=0)[0]
    array([ True])
    """
    value, variance, n_clusters = _resample(values, clusters, None, None, draws, seed)
    return _around_means(value, variance, n_clusters, level)


def macro_bootstrap(
    values: Float[ndarray, "n"],
    groups: Int[ndarray, "n"],
    clusters: Int[ndarray, "n"],
    *,
    seed: int,
    draws: int = 10_000,
    level: float = 0.95,
) -> tuple[float, float, float]:
    """The mean over groups of the group means (`accuracy_macro`) with its interval: (value, low, high).

    Groups may share clusters. A group none of whose questions is drawn is left out of that draw. Rows with a
    negative group are left out. Otherwise as `cluster_bootstrap`.

    >>> value, low, high = macro_bootstrap(
    ...     np.array([1.0, 1.0, 0.0, 1.0]), np.array([0, 0, 0, 1]), np.arange(4), seed=0)
    >>> round(value, 4), low < value < high
    (0.8333, True)
    """
    value, variance, n_clusters = _resample(values[:, None], clusters, groups, None, draws, seed)
    low, high = _around_means(value, variance, n_clusters, level)
    return float(value[0]), float(low[0]), float(high[0])


def macro_table_bootstrap(
    values: Float[ndarray, "n m"],
    groups: Int[ndarray, "n m"],
    clusters: Int[ndarray, "n"],
    *,
    seed: int,
    averages: Float[ndarray, "m k"] | None = None,
    draws: int = 10_000,
    level: float = 0.95,
) -> tuple[Float[ndarray, "k"], Float[ndarray, "k"], Float[ndarray, "k"]]:
    """`macro_bootstrap` of many columns at once, each with groups of its own: (values, low, high).

    A row whose group is negative in a column is left out of that column, and its value there may be anything.
    `averages` makes each result an average of columns: its columns are the weights, which sum to 1, such as
    1/2 and 1/2 for the mean of two directions of retrieval; without it each column is a result. A column none
    of whose rows is drawn is left out of the averages of that draw. All results share the same draws. Raises
    `InputError` for no questions, for a column without rows and for values outside [0, 1].

    >>> values, groups = np.array([[1.0, 9.0], [0.0, 9.0], [9.0, 1.0]]), np.array([[0, -1], [0, -1], [-1, 0]])
    >>> value, low, high = macro_table_bootstrap(
    ...     values, groups, np.arange(3), averages=np.array([[1.0, 0.5], [0.0, 0.5]]), seed=0, draws=100)
    >>> value
    array([0.5 , 0.75])
    """
    if averages is None:
        averages = np.eye(values.shape[1])
    columns = _columns(values, groups, clusters)
    value, variance = _resample_columns(columns, [(averages, averages * 0)], draws, seed)
    bounds = [
        _around_means(value[0, [k]], variance[0, [k]], n_clusters, level)
        for k, n_clusters in enumerate(columns.reached(averages))
    ]
    low, high = np.array(bounds).reshape(-1, 2).T
    return value[0], low, high


def macro_table_differences(
    values: Float[ndarray, "s n m"],
    groups: Int[ndarray, "n m"],
    clusters: Int[ndarray, "n"],
    pairs: Int[ndarray, "p 2"],
    *,
    seed: int,
    averages: Float[ndarray, "m k"] | None = None,
    draws: int = 10_000,
    level: float = 0.95,
) -> tuple[Float[ndarray, "p k"], Float[ndarray, "p k"], Float[ndarray, "p k"]]:
    """The differences of scorers a and b, for each pair, in each result of `macro_table_bootstrap`.

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
    flat = np.concatenate(list(values), axis=1)
    columns = _columns(flat, np.tile(groups, scorers), clusters)
    sides = np.zeros((len(pairs), 2, scorers, m, averages.shape[1]))
    for i, (a, b) in enumerate(pairs):
        sides[i, 0, a] += averages
        sides[i, 1, b] += averages
    both = sides.reshape(len(pairs), 2, scorers * m, -1)
    difference, variance = _resample_columns(columns, [(one, other) for one, other in both], draws, seed)
    inside = groups >= 0
    weights = np.stack([macro_weights(groups[:, j]) for j in range(m)], axis=1)
    discord = np.stack(
        [
            np.where(inside, weights * np.abs(np.where(inside, values[a] - values[b], 0.0)), 0.0).sum(axis=0)
            @ averages
            for a, b in pairs
        ]
    )
    low, high = np.zeros(difference.shape), np.zeros(difference.shape)
    for k, n_clusters in enumerate(columns.reached(np.tile(averages, (scorers, 1)))):
        single = discord[:, k] - difference[:, k] ** 2
        effective, z = _effective(single, variance[:, k], n_clusters, level)
        low[:, k], high[:, k] = tango_score(difference[:, k], discord[:, k], effective, z)
    return difference, low, high


def difference_bootstrap(
    values: Float[ndarray, "n m"],
    clusters: Int[ndarray, "n"],
    pairs: Int[ndarray, "p 2"],
    *,
    seed: int,
    groups: Int[ndarray, "n"] | None = None,
    draws: int = 10_000,
    level: float = 0.95,
) -> tuple[Float[ndarray, "p"], Float[ndarray, "p"]]:
    """Intervals for mean(column a) - mean(column b), for each pair (a, b) of columns, paired by question.

    Columns are scorers, or scorers x measures. With `groups` it is the difference of the means over groups of
    group means; rows with a negative group are left out. Returns (low, high), each (p,), in [-1, 1]: Tango's
    score interval for the effective number of questions. Two columns whose difference does not vary between
    clusters, such as two that agree throughout, get the interval for as many questions as there are clusters.

    All pairs share the same draws. Raises `InputError` for no questions and for values outside [0, 1].

    Source: T. Tango, Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design, 1998.

    >>> answers = np.repeat([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]], 10, axis=0)
    >>> low, high = difference_bootstrap(answers, np.arange(30), np.array([[0, 1], [0, 0]]), seed=0)
    >>> bool(0 < low[0] < 1 / 3 < high[0] < 1), bool(low[1] < 0 < high[1])
    (True, True)
    """
    _, variance, n_clusters = _resample(values, clusters, groups, pairs, draws, seed)
    weights = np.full(len(values), 1 / len(values)) if groups is None else macro_weights(groups)
    gaps = [values[:, a] - values[:, b] for a, b in pairs]
    difference = np.array([float(weights @ gap) for gap in gaps])
    discord = np.array([float(weights @ np.abs(gap)) for gap in gaps])
    effective, z = _effective(discord - difference**2, variance, n_clusters, level)
    return tango_score(difference, discord, effective, z)


def macro_weights(groups: Int[ndarray, "n"]) -> Float[ndarray, "n"]:
    """Weights that make a weighted sum the mean over groups of group means; 0 where the group is negative.

    >>> macro_weights(np.array([0, 0, 1, -1]))
    array([0.25, 0.25, 0.5 , 0.  ])
    """
    inside = groups >= 0
    _, position, sizes = np.unique(groups[inside], return_inverse=True, return_counts=True)
    weights = np.zeros(len(groups))
    weights[inside] = 1 / (len(sizes) * sizes[position.reshape(-1)])
    return weights


def t_over_folds(
    values: Float[ndarray, "n"], *, folds: int = 4, level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Student's t interval over the means of `folds` equal parts of the shuffled questions, cut to [0, 1].

    As in Winoground's appendix A, whose intervals come out to the printed digit with the defaults: the
    numbers 0 to 399 shuffled by Python's `random` from seed 0, then cut into quarters. Where `folds` does not
    divide the number of questions the first parts are longer by one. Returns (low, high); parts that agree
    exactly give zero width. With four parts it rests on three degrees of freedom: `cluster_bootstrap` is
    tighter and knows about shared images. Raises `InputError` for fewer than two parts, or fewer questions
    than parts.

    Source: P003, appendix A.

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
    return max(0.0, centre - half), min(1.0, centre + half)


def _resample(
    values: Float[ndarray, "n m"],
    clusters: Int[ndarray, "n"],
    groups: Int[ndarray, "n"] | None,
    pairs: Int[ndarray, "p 2"] | None,
    draws: int,
    seed: int,
) -> tuple[Float[ndarray, "m"], Float[ndarray, "k"], int]:
    """The columns' means, the variance of each (or of each pair's difference) over draws, the clusters."""
    if groups is not None:
        values, clusters, groups = values[groups >= 0], clusters[groups >= 0], groups[groups >= 0]
    if not values.size:
        raise InputError(
            "no questions to draw from", given=f"{values.shape[0]} rows, {values.shape[1]} columns"
        )
    if not bool(((values >= 0) & (values <= 1)).all()):
        raise InputError("values must be in [0, 1]", given=f"{values.min()} to {values.max()}")
    n_clusters = len(np.unique(clusters))
    parts = _parts(values, clusters, groups, n_clusters)
    every = _means(parts, np.ones((1, n_clusters), dtype=np.float32))
    centre = _chosen(every, pairs)
    total = np.zeros(centre.shape[1])
    squares = np.zeros(centre.shape[1])
    for weights in cluster_draws(n_clusters, draws, seed=seed):
        # Around the centre, so that nothing is lost to cancellation; columns made rows, so that a column's
        # sum has the same bits whatever other columns there are.
        moved = np.ascontiguousarray((_chosen(_means(parts, weights), pairs) - centre).T)
        total += moved.sum(axis=1)
        squares += (moved * moved).sum(axis=1)
    variance = np.maximum(squares / draws - (total / draws) ** 2, 0.0)
    # A bootstrap of C clusters understates the variance by (C - 1) / C.
    return every[0], variance * (n_clusters / max(n_clusters - 1, 1)), n_clusters


def _parts(
    values: Float[ndarray, "n m"],
    clusters: Int[ndarray, "n"],
    groups: Int[ndarray, "n"] | None,
    n_clusters: int,
) -> list[Whole]:
    """For each group (or for all), cluster sums of every column and, last, of the number of questions."""
    if groups is None:
        groups = np.zeros(len(values), dtype=np.int64)
    parts = []
    for label in np.unique(groups):
        member = (groups == label)[:, None].astype(np.float64)
        parts.append(whole(np.hstack([values * member, member]), clusters, repeats=n_clusters))
    return parts


@dataclass(frozen=True, eq=False)
class _Columns:
    """Cluster sums for every column and group, with what is needed to make means of them.

    Each part is (the clusters it has rows in, the columns it is of, sums of these and of the rows).
    """

    parts: list[tuple[ndarray, ndarray, Whole]]
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


def _columns(
    values: Float[ndarray, "n m"], groups: Int[ndarray, "n m"], clusters: Int[ndarray, "n"]
) -> _Columns:
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
            parts.append((members, columns, whole(table, position[rows], repeats=n_clusters)))
    return _Columns(parts, values.shape[1], n_clusters)


def _resample_columns(
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


def _means(parts: list[Whole], weights: Float[ndarray, "draws c"]) -> Float[ndarray, "draws m"]:
    """The mean over parts of the columns' means, with each cluster counted `weights` times."""
    total = np.zeros((len(weights), parts[0].numbers.shape[1] - 1))
    present = np.zeros((len(weights), 1))
    for part in parts:
        sums = part.weighted(weights)
        size = sums[:, -1:]
        total += sums[:, :-1] / np.maximum(size, 1)
        present += size > 0
    return total / present


def _chosen(means: Float[ndarray, "draws m"], pairs: Int[ndarray, "p 2"] | None) -> Float[ndarray, "draws k"]:
    return means if pairs is None else means[:, pairs[:, 0]] - means[:, pairs[:, 1]]


def _around_means(
    value: Float[ndarray, "m"], variance: Float[ndarray, "m"], n_clusters: int, level: float
) -> tuple[Float[ndarray, "m"], Float[ndarray, "m"]]:
    effective, z = _effective(value * (1 - value), variance, n_clusters, level)
    return wilson_score(value, effective, z)


def _effective(
    single: Float[ndarray, "k"], variance: Float[ndarray, "k"], n_clusters: int, level: float
) -> tuple[Float[ndarray, "k"], Float[ndarray, "k"]]:
    """How many independent questions, of variance `single` each, have means of `variance`; and the quantile.

    Where nothing varies between clusters it is the number of clusters, and nothing was estimated: the normal
    quantile holds.
    """
    varies = variance > _NO_VARIANCE
    effective = np.where(varies, np.maximum(single, 1e-12) / np.where(varies, variance, 1.0), n_clusters)
    student = float(stdtrit(n_clusters - 1, (1 + level) / 2)) if n_clusters > 1 else np.inf
    return effective, np.where(varies, student, _normal(level))


def _normal(level: float) -> float:
    return float(ndtri((1 + level) / 2))
