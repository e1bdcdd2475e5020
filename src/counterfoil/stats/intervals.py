"""Intervals for means of per-question values in [0, 1], and tests of their differences.

Questions that share an image or a caption stand and fall together, so the spread of a mean is measured over
whole clusters (`stats.two_way_clustering`; Wilson's interval of a share is `wilson`). Coverage
of nominal 95 % intervals in a simulation (beta-binomial clusters of about five questions, intraclass
correlation 0.3, 4,000 repetitions, so +- 0.7):

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
paired difference, with Student's t quantile. It stays in range, never has zero width, and the p-value of a
difference is the level at which its interval just reaches 0.
"""

import random
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from counterfoil.errors import InputError
from counterfoil.stats import Reals
from counterfoil.stats.dependence import Dependence, column_sums
from counterfoil.stats.two_way_clustering import mean_variance

#: Where 95 % intervals end, and the normal quantile there, so that independent questions wait for no SciPy.
QUANTILE, NORMAL = (1 + 0.95) / 2, 1.959963984540054

#: Variances below this are rounding: a single wrong answer in a million questions makes one of 1e-12.
_NO_VARIANCE = 1e-20


@dataclass(frozen=True, eq=False)
class Spread:
    """Estimates, the variance of each, and what that is known from.

    `freedom` are the degrees of freedom of each variance; `units` is how many questions have nothing to do
    with one another: an estimate that does not vary is one of that many.
    """

    value: Float[ndarray, "k"]
    variance: Float[ndarray, "k"]
    freedom: Float[ndarray, "k"]
    units: Float[ndarray, "k"]

    def effective(self, single: Float[ndarray, "k"] | None = None) -> Float[ndarray, "k"]:
        """How many independent questions, of variance `single` each (a share's), would spread as much."""
        if single is None:
            single = self.value * (1 - self.value)
        varies = self.variance > _NO_VARIANCE
        return np.where(varies, np.maximum(single, 1e-12) / np.where(varies, self.variance, 1.0), self.units)

    def quantile(self) -> Float[ndarray, "k"]:
        """Student's quantile; the normal one where nothing varies, since no variance was estimated."""
        from scipy.special import stdtrit

        some = self.freedom > 0
        student = np.where(some, stdtrit(np.where(some, self.freedom, 1.0), QUANTILE), np.inf)
        return np.where(self.variance > _NO_VARIANCE, student, NORMAL)

    def wilson(self) -> tuple[Reals, Reals]:
        """Wilson's intervals for the effective numbers of questions."""
        return wilson_score(self.value, self.effective(), self.quantile())

    def tango(self, discord: Float[ndarray, "k"]) -> tuple[Reals, Reals, Reals]:
        """(low, high, p) of Tango's for differences, on this share of discordant questions."""
        effective = self.effective(discord - self.value**2)
        p = self.tail(np.abs(self.value) * np.sqrt(effective / np.where(discord > 0, discord, 1.0)))
        return *tango_score(self.value, discord, effective, self.quantile()), p

    def student(self, *, widest: float = 1.0) -> tuple[Reals, Reals, Reals]:
        """(low, high, p) of Student's t for estimates in [-widest, widest] that are nearly normal.

        An estimate that does not vary is known as well as one of that many units that agree throughout.
        """
        if widest != 1:
            parts = self.value / widest, self.variance / widest**2, self.freedom, self.units
            low, high, p = Spread(*parts).student()
            return widest * low, widest * high, p
        varies, z = self.variance > _NO_VARIANCE, self.quantile()
        size = np.minimum(np.abs(self.value), 1.0)
        error = np.sqrt(np.where(varies, self.variance, 1.0))
        reach = np.where(varies, z * error, z**2 / (self.units + z**2))
        constant = np.sqrt(self.units * size / np.maximum(1 - size, 1e-12))
        p = self.tail(np.where(varies, np.abs(self.value) / error, constant))
        return np.maximum(self.value - reach, -1.0), np.minimum(self.value + reach, 1.0), p

    def tail(self, reach: Float[ndarray, "k"]) -> Float[ndarray, "k"]:
        """How much of Student's distribution is as far from 0; of the normal one where nothing varies."""
        from scipy.special import ndtr, stdtr

        some = self.freedom > 0
        student = 2 * stdtr(np.where(some, self.freedom, 1.0), -reach)
        return np.where(self.variance > _NO_VARIANCE, np.where(some, student, 1.0), 2 * ndtr(-reach))


def wilson_score(
    p: Float[ndarray, "k"], n: Float[ndarray, "k"], z: Float[ndarray, "k"]
) -> tuple[Float[ndarray, "k"], Float[ndarray, "k"]]:
    """Wilson's interval around proportions `p` of `n` trials: (low, high) in [0, 1].

    >>> low, high = wilson_score(np.array([0.0]), np.array([4.0]), np.array([2.0]))
    >>> low, high
    (array([0.]), array([0.5]))
    """
    shift = z * z / n
    centre = (p + shift / 2) / (1 + shift)
    half = np.sqrt(shift * (p * (1 - p) + shift / 4)) / (1 + shift)
    # The interval contains the proportion by definition; at 0 and 1 rounding might say otherwise.
    return np.clip(np.minimum(centre - half, p), 0, 1), np.clip(np.maximum(centre + half, p), 0, 1)


def tango_score(
    difference: Float[ndarray, "k"],
    discord: Float[ndarray, "k"],
    n: Float[ndarray, "k"],
    z: Float[ndarray, "k"],
) -> tuple[Float[ndarray, "k"], Float[ndarray, "k"]]:
    """Tango's interval around a difference of paired proportions: (low, high) in [-1, 1].

    `discord` is the share of questions on which the two differ (of fractional values the mean absolute
    difference). Without discord it is +- z**2 / (n + z**2).

    >>> low, high = tango_score(np.array([0.0]), np.array([0.0]), np.array([12.0]), np.array([2.0]))
    >>> low.round(6), high.round(6)
    (array([-0.25]), array([0.25]))
    """
    only_second = (discord - difference) / 2

    def distance(d: Float[ndarray, "k"]) -> Float[ndarray, "k"]:
        # The share of "only the second right" that is likeliest if the difference were d.
        b = (2 - difference) * d - discord
        c = -only_second * d * (1 - d)
        q = (np.sqrt(np.maximum(b * b - 8 * c, 0)) - b) / 4
        spread = np.sqrt(np.maximum(2 * q + d * (1 - d), 1e-300) / n)
        return (difference - d) / spread

    def search(inner: Float[ndarray, "k"], outer: float) -> Float[ndarray, "k"]:
        """The farthest from `inner` towards `outer` that is not rejected; 60 halvings exhaust a float64."""
        accepted, rejected = inner.copy(), np.full(len(inner), outer)
        for _ in range(60):
            middle = (accepted + rejected) / 2
            inside = np.abs(distance(middle)) <= z
            accepted, rejected = np.where(inside, middle, accepted), np.where(inside, rejected, middle)
        return accepted

    return search(difference, -1.0), search(difference, 1.0)


def wilson(successes: float, n: float) -> tuple[float, float]:
    """Wilson's 95 % score interval for a proportion of independent trials: (low, high) in [0, 1].

    `successes` may be fractional. Raises `InputError` for no trials, or more successes than trials. Source:
    E. B. Wilson, Probable inference, the law of succession, and statistical inference, 1927.

    >>> low, high = wilson(8, 10)
    >>> round(low, 4), round(high, 4)
    (0.4902, 0.9433)
    """
    if not n > 0 or not 0 <= successes <= n:
        raise InputError("no proportion", given=f"{successes} of {n}", allowed="0 to n successes, n above 0")
    low, high = wilson_score(np.array([successes / n]), np.array([float(n)]), np.array([NORMAL]))
    return float(low[0]), float(high[0])


def cluster_interval(
    values: Float[ndarray, "n m"], clusters: Int[ndarray, "n"] | Dependence
) -> tuple[Float[ndarray, "m"], Float[ndarray, "m"]]:
    """95 % intervals for the mean of each column, where questions of one cluster depend on one another.

    `values` are in [0, 1]; `clusters` gives each question's cluster, or what questions share. Returns (low,
    high), each (m,): Wilson's interval for the effective number of questions, or for the number of clusters
    where a column does not vary between them. Raises `InputError` for no questions and values outside [0, 1].

    >>> right, image = np.array([[1.0], [1.0], [0.0], [0.0], [1.0], [1.0]]), np.array([0, 0, 1, 1, 2, 2])
    >>> cluster_interval(right, image)[0] < cluster_interval(right, np.arange(6))[0]
    array([ True])
    """
    return spread(values, clusters).wilson()


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
    values: Float[ndarray, "n"], *, folds: int = 4, seed: int = 0, least: float = 0.0
) -> tuple[float, float]:
    """Student's t over the means of `folds` equal parts of the shuffled questions, cut to [least, 1].

    As in Winoground's appendix A, to the printed digit: the numbers 0 to 399 shuffled by Python's `random`
    from seed 0, then cut into quarters; the first parts are longer by one where there is a remainder. Returns
    (low, high); parts that agree exactly give zero width. Raises `InputError` for fewer than two parts, or
    fewer questions than parts.

    >>> t_over_folds(np.array([1.0, 1.0, 0.0, 0.0]), folds=2)
    (0.5, 0.5)
    """
    from scipy.special import stdtrit

    if folds < 2 or len(values) < folds:
        given, allowed = f"{folds} folds of {len(values)} questions", "2 folds or more, a question for each"
        raise InputError("cannot be cut into folds", given=given, allowed=allowed)
    order = list(range(len(values)))
    random.Random(seed).shuffle(order)
    means = np.array([part.mean() for part in np.array_split(values[order], folds)])
    centre = float(values.mean())
    half = float(stdtrit(folds - 1, QUANTILE) * means.std(ddof=1)) / folds**0.5
    return max(least, centre - half), min(1.0, centre + half)


def deviations(
    values: Float[ndarray, "n m"], groups: Int[ndarray, "n"], shares: Float[ndarray, "groups"] | None = None
) -> tuple[Float[ndarray, "m"], Float[ndarray, "n m"]]:
    """The mean over groups of group means of each column, and what each row adds to its error.

    To first order, and summing to 0: (value - mean of its group) times its weight; 0 for negative groups.

    >>> deviations(np.array([[1.0], [0.0], [1.0]]), np.array([0, 0, 1]))[0]
    array([0.75])
    """
    weights = macro_weights(groups, shares)
    moved = np.zeros(values.shape)
    for label in np.unique(groups[groups >= 0]):
        rows = groups == label
        moved[rows] = (values[rows] - values[rows].mean(axis=0)) * weights[rows, None]
    return weights @ values, moved


# Each column has rows and groups of its own, and the same bits whatever other columns there are.


def spread(
    values: Float[ndarray, "n m"],
    clusters: Int[ndarray, "n"] | Dependence,
    *,
    groups: Int[ndarray, "n"] | Int[ndarray, "n m"] | None = None,
    shares: Float[ndarray, "groups"] | None = None,
    averages: Float[ndarray, "m k"] | None = None,
) -> Spread:
    """The mean of each column over groups of group means, and its variance: what the intervals are made of.

    `groups` are of all columns, or a column for each, by default one; rows of a negative group are left out.
    `shares` are the weights of groups (`macro_weights`). `averages` makes each result an average of columns
    that have no row in common, its columns being the weights, such as 1/2 and 1/2 for both directions of
    retrieval.

    Raises `InputError` for no questions, a column without rows, values outside [0, 1] and averages of columns
    that share rows.

    >>> found = spread(np.array([[1.0], [0.0], [1.0]]), np.array([0, 0, 1]))
    >>> found.value.round(3), found.units
    (array([0.667]), array([2.]))
    >>> values, groups = np.array([[1.0, 9.0], [0.0, 9.0], [9.0, 1.0]]), np.array([[0, -1], [0, -1], [-1, 0]])
    >>> averages = np.array([[1.0, 0.5], [0.0, 0.5]])
    >>> found = spread(values, np.arange(3), groups=groups, averages=averages)
    >>> found.value, found.units
    (array([0.5 , 0.75]), array([2., 3.]))
    """
    tables = values[None]
    return _spread(tables, _groups_of(tables, groups), clusters, shares, averages)


def differences(
    values: Float[ndarray, "s n m"],
    clusters: Int[ndarray, "n"] | Dependence,
    pairs: Int[ndarray, "p 2"],
    *,
    groups: Int[ndarray, "n"] | Int[ndarray, "n m"] | None = None,
    shares: Float[ndarray, "groups"] | None = None,
    averages: Float[ndarray, "m k"] | None = None,
) -> Float[ndarray, "4 p k"]:
    """(value, low, high, p) of model a minus model b, for each pair (a, b), in each result of `spread`.

    `values` has a table per model. Tango's score interval in [-1, 1] for the effective number of questions,
    or of clusters where the difference does not vary between them, and its two-sided p-value: at most 0.05
    where the 95 % interval leaves 0 out. Raises what `spread` raises.

    Source: T. Tango, Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design, 1998.

    >>> answers = np.repeat([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]], 10, axis=0).T[:, :, None]
    >>> value, low, high, p = differences(answers, np.arange(30), np.array([[0, 1], [0, 0]]))[:, :, 0]
    >>> bool(0 < low[0] < 1 / 3 < high[0] < 1), bool(low[1] < 0 < high[1]), p.round(4)
    (True, True, array([0.0042, 1.    ]))
    """
    groups = _groups_of(values, groups)
    gaps = values[pairs[:, 0]] - values[pairs[:, 1]]
    spreads = _spread(gaps, groups, clusters, shares, averages)
    weights = np.stack([macro_weights(column, shares) for column in groups.T], axis=1)
    discord = np.stack([column_sums(np.where(groups >= 0, weights * np.abs(gap), 0.0)) for gap in gaps])
    if averages is not None:
        discord = np.stack([of_columns @ averages for of_columns in discord])
    numbers = spreads.value, *spreads.tango(discord.reshape(-1))
    return np.stack([part.reshape(discord.shape) for part in numbers])


def _spread(
    tables: Float[ndarray, "s n m"],
    groups: Int[ndarray, "n m"],
    clusters: Int[ndarray, "n"] | Dependence,
    shares: Float[ndarray, "groups"] | None,
    averages: Float[ndarray, "m k"] | None,
) -> Spread:
    """The spread of every average of columns of every table, a table after the other."""
    dependence = clusters if isinstance(clusters, Dependence) else Dependence.of_clusters(clusters)
    if averages is None:
        averages = np.eye(groups.shape[1])
    table = np.zeros((4, len(tables), averages.shape[1]))
    of_columns = np.stack([macro_weights(column, shares) for column in groups.T], axis=1)
    # Results over the same rows, groups and weights are worked out together.
    kinds: dict[bytes, list[int]] = {}
    results = []
    every, wide = np.arange(len(groups)), int(groups.max(initial=0)) + 1
    for k, average in enumerate(averages.T):
        # The column that each row is of, its group there, and its weight.
        members = np.flatnonzero(average > 0)
        inside = groups[:, members] >= 0
        many = inside.sum(axis=1)
        if (many > 1).any():
            raise InputError("an average of columns that have rows in common")
        rows, column = many > 0, members[inside.argmax(axis=1)]
        numbers = (column * wide + groups[every, column])[rows]
        strata = np.unique(numbers, return_inverse=True)[1].reshape(-1)
        weights = (of_columns[every, column] * average[column])[rows]
        results.append((rows, strata, weights, column[rows]))
        kinds.setdefault(rows.tobytes() + strata.tobytes() + weights.tobytes(), []).append(k)
    for alike in kinds.values():
        rows, strata, weights, _ = results[alike[0]]
        chosen = [tables[:, rows, results[k][3]].T for k in alike]
        part = dependence.part(rows)
        for number, of_kind in enumerate(mean_variance(part, np.hstack(chosen), strata, weights)):
            table[number][:, alike] = of_kind.reshape(len(alike), -1).T
        table[3][:, alike] = part.n_independent
    return Spread(*table.reshape(4, -1))


def _groups_of(
    tables: Float[ndarray, "s n m"], groups: Int[ndarray, "n"] | Int[ndarray, "n m"] | None
) -> Int[ndarray, "n m"]:
    """The group of each row in each column; raises for columns without a value, and values outside [0, 1]."""
    shape = tables.shape[1:]
    if groups is None or groups.ndim == 1:
        groups = np.tile(np.zeros((shape[0], 1), np.int64) if groups is None else groups[:, None], shape[1])
    inside = groups >= 0
    if not tables.size or not inside.any(axis=0).all():
        empty = int((~inside.any(axis=0)).sum())
        given = f"{shape[0]} rows, {shape[1]} columns, of which {empty} without a value"
        raise InputError("no questions to measure", given=given)
    for values in tables:
        clean = np.where(inside, values, 0.0)
        if not bool(((clean >= 0) & (clean <= 1)).all()):
            raise InputError("values must be in [0, 1]", given=f"{clean.min()} to {clean.max()}")
    return groups
