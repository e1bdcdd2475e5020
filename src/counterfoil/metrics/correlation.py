"""Correlations of two columns with p-values, and pairwise accuracy, where calling a tie a tie is right.

SciPy takes longer to import than most commands to run, so it is imported where it is used.

Pairwise accuracy is the share of pairs of items of which scores and ratings say the same: one is better, or
both are alike. Scores hardly ever tie, so differences up to a threshold may count as ties; the threshold is
fitted on the pairs that are then counted, which flatters, so the measure without it stands beside it.

Source: D. Deutsch, G. Foster, M. Freitag, Ties Matter: Meta-Evaluating Modern Metrics with Pairwise Accuracy
and Tie Calibration, 2023.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import InputError
from counterfoil.metrics.measures import Measure, by_name


def pearson(first: Float[ndarray, "n"], second: Float[ndarray, "n"]) -> tuple[float, float]:
    """Pearson's correlation and its two-sided p-value under independence: (coefficient, p).

    In [-1, 1]; both are NaN where a column is constant. With a column of zeros and ones it is the
    point-biserial correlation, as in Winoground Table 6. Raises `InputError` for fewer than three rows.

    >>> coefficient, p = pearson(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 4.0]))
    >>> round(coefficient, 4), round(p, 4)
    (0.8, 0.2)
    """
    return _tested("pearsonr", first, second)


def spearman(first: Float[ndarray, "n"], second: Float[ndarray, "n"]) -> tuple[float, float]:
    """Spearman's rank correlation, as `pearson`; equal numbers share the mean of their ranks.

    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 4.0, 9.0]))[0]
    1.0
    """
    return _tested("spearmanr", first, second)


def kendall_tau_b(first: Float[ndarray, "n"], second: Float[ndarray, "n"]) -> float:
    """Kendall's tau-b: the balance of pairs of rows in one order and in opposite orders, ties allowed for.

    (agreeing - opposed) / sqrt((pairs - pairs tied in `first`) * (pairs - pairs tied in `second`)), in [-1,
    1]; NaN where a column is constant. Raises `InputError` for fewer than two rows. Source: ECCV Caption,
    Tables 5 and A.1a.

    >>> round(kendall_tau_b(np.array([0.1, 0.4, 0.4, 0.3]), np.array([1.0, 2.0, 3.0, 1.0])), 6)
    0.8
    """
    return _tested("kendalltau", first, second, fewest=2, variant="b")[0]


def kendall_tau_c(first: Float[ndarray, "n"], second: Float[ndarray, "n"]) -> float:
    """Kendall's tau-c (Stuart's): as tau-b, but measured against the most that tables of this size allow.

    2 (agreeing - opposed) / (n^2 (k - 1) / k) with k the smaller number of distinct values; in [-1, 1], and 1
    only where the k classes are equally many. NaN where a column is constant. Raises `InputError` for fewer
    than two rows. CLIPScore reports it of Flickr8k-Expert and Composite.

    >>> kendall_tau_c(np.array([0.1, 0.4, 0.4, 0.3]), np.array([1.0, 2.0, 3.0, 1.0]))
    0.75
    """
    return _tested("kendalltau", first, second, fewest=2, variant="c")[0]


def middle_ranks(values: Float[ndarray, "n"]) -> Float[ndarray, "n"]:
    """Ranks from 1 for the smallest; equal numbers share the mean of theirs.

    >>> middle_ranks(np.array([0.3, 0.1, 0.3]))
    array([2.5, 1. , 2.5])
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place.reshape(-1)])


def weighted_tau_b(
    values: Float[ndarray, "draws rows columns"], weights: Float[ndarray, "draws rows"]
) -> Float[ndarray, "draws columns columns"]:
    """Kendall's tau-b between all pairs of columns in each of many samples whose rows have whole weights.

    The value is `kendall_tau_b` of the rows written out as often as they weigh. NaN where a column does not
    vary among the rows of weight above 0, or holds a NaN.

    >>> values = np.array([[[1.0, 1.0], [2.0, 3.0], [3.0, 2.0]]])
    >>> weighted_tau_b(values, np.array([[1.0, 1.0, 1.0]]))[:, 0, 1].round(4)
    array([0.3333])
    """
    i, j = np.triu_indices(values.shape[1], 1)
    order = np.sign(values[:, i] - values[:, j])
    return _normalised(order, weights[:, i] * weights[:, j])


def weighted_spearman(
    values: Float[ndarray, "draws rows columns"], weights: Float[ndarray, "draws rows"]
) -> Float[ndarray, "draws columns columns"]:
    """Spearman's correlation of all pairs of columns, as `weighted_tau_b`.

    >>> values = np.array([[[1.0, 1.0], [2.0, 3.0], [3.0, 2.0]]])
    >>> weighted_spearman(values, np.array([[1.0, 1.0, 1.0]]))[:, 0, 1]
    array([0.5])
    """
    # Twice the middle rank of a row, less its mean, is how many rows it beats less how many beat it.
    order = np.sign(values[:, :, None] - values[:, None])
    return _normalised(np.einsum("dijc,dj->dic", order, weights), weights)


def weighted_pearson(
    values: Float[ndarray, "draws rows columns"], weights: Float[ndarray, "draws rows"]
) -> Float[ndarray, "draws columns columns"]:
    """Pearson's correlation of all pairs of columns, as `weighted_tau_b`; rounding makes no column vary.

    >>> values = np.array([[[1.0, 1.0], [2.0, 3.0], [3.0, 2.0]]])
    >>> weighted_pearson(values, np.array([[1.0, 1.0, 1.0]]))[:, 0, 1].round(9)
    array([0.5])
    """
    total = np.maximum(weights.sum(axis=1), 1)[:, None, None]
    centred = values - np.einsum("dic,di->dc", values, weights)[:, None] / total
    rounding = 1e-12 * np.abs(values).max(axis=1, keepdims=True, initial=0)
    return np.clip(_normalised(np.where(np.abs(centred) <= rounding, 0.0, centred), weights), -1.0, 1.0)


def _normalised(
    rows: Float[ndarray, "draws rows columns"], weights: Float[ndarray, "draws rows"]
) -> Float[ndarray, "draws columns columns"]:
    """Weighted products of all pairs of columns over their lengths; whole numbers up to the last division."""
    products = (rows * weights[..., None]).transpose(0, 2, 1) @ rows
    squares = np.diagonal(products, axis1=1, axis2=2)
    lengths = np.sqrt(squares[:, :, None] * squares[:, None])
    return np.divide(products, lengths, out=np.full_like(products, np.nan), where=lengths > 0)


def _tested(
    name: str, first: Float[ndarray, "n"], second: Float[ndarray, "n"], *, fewest: int = 3, **options: str
) -> tuple[float, float]:
    """(coefficient, p) of a function of `scipy.stats`; both are NaN where a column is constant."""
    from scipy import stats

    if len(first) < fewest:
        raise InputError("too few rows for a correlation", given=len(first), allowed=f"{fewest} or more")
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan"), float("nan")
    test = getattr(stats, name)(first, second, **options)
    return float(test.statistic), float(test.pvalue)


def _measure(name: str, label: str, meaning: str, of_all: Callable[..., float]) -> Measure:
    return Measure(name, "rated", label, f"{meaning}, times 100", "0", of_all=of_all, range=(-1.0, 1.0))


_TAU_B = "of pairs that differ in rating and in score, how many more agree than disagree; corrected for ties "
_TAU_C = "the same, corrected for how few ratings there are to give"
_SPEARMAN = "whether ranks by score and ranks by rating go together"
#: The measures by name, in the order of reports: correlations of scores with ratings.
MEASURES: Mapping[str, Measure] = by_name(
    _measure("kendall_tau_b", "Kendall τ-b", f"{_TAU_B}on both sides", kendall_tau_b),
    _measure("kendall_tau_c", "Kendall τ-c", _TAU_C, kendall_tau_c),
    _measure("spearman", "Spearman ρ", _SPEARMAN, lambda scores, ratings: spearman(scores, ratings)[0]),
    _measure(
        *("pearson", "Pearson r", "whether score and rating lie on a line"),
        lambda scores, ratings: pearson(scores, ratings)[0],
    ),
)


#: Pairs that are looked at together.
_BLOCK = 1 << 23


def agreement(
    scores: Float[ndarray, "n"], ratings: Float[ndarray, "n"], *, tie: float = 0.0
) -> Float[ndarray, "n"]:
    """For every item the share of the others with which both say the same; see `pairwise_accuracy`.

    >>> agreement(np.array([0.1, 0.2, 0.9]), np.array([1.0, 1.0, 2.0]), tie=0.1)
    array([1., 1., 1.])
    """
    _check(scores)
    shares = np.empty(len(scores))
    for rows, gaps, rated in _pairs(scores, ratings):
        predicted = (gaps > tie).astype(np.int8) - (gaps < -tie)
        # An item agrees with itself.
        shares[rows] = np.count_nonzero(predicted == rated, axis=1) - 1
    return shares / (len(scores) - 1)


def pairwise_accuracy(
    scores: Float[ndarray, "n"], ratings: Float[ndarray, "n"], *, tie: float = 0.0
) -> float:
    """The share of pairs of items on which scores and ratings say the same, in [0, 1].

    Both that the same one is better, or both that they are alike: scores where they differ by `tie` or less,
    ratings where they are equal. Raises `InputError` for fewer than two items.

    >>> pairwise_accuracy(np.array([0.1, 0.2, 0.9]), np.array([1.0, 1.0, 2.0]))
    0.6666666666666666
    """
    return float(agreement(scores, ratings, tie=tie).mean())


def fitted_tie(scores: Float[ndarray, "n"], ratings: Float[ndarray, "n"]) -> float:
    """The smallest threshold of ties at which the most pairs agree: 0 or a difference of two scores.

    Raises `InputError` for fewer than two items.

    >>> fitted_tie(np.array([0.0, 0.25, 2.0]), np.array([1.0, 1.0, 2.0]))
    0.25
    """
    _check(scores)
    alike = []
    for level in np.unique(ratings):
        level_scores = scores[ratings == level]
        alike.append(np.abs(level_scores[:, None] - level_scores)[np.triu_indices(len(level_scores), 1)])
    # At 0 equal scores are alike, whether there are any or not.
    candidates, counts = np.unique(np.concatenate([np.zeros(1), *alike]), return_counts=True)
    gained = np.cumsum(counts)
    # Pairs that scores order as people do are lost once they count as ties.
    for _, gaps, rated in _pairs(scores, ratings):
        ordered = np.sort(gaps[(rated > 0) & (gaps > 0)])
        gained -= np.searchsorted(ordered, candidates, side="right")
    return float(candidates[np.argmax(gained)])


def tied_ratings(ratings: Float[ndarray, "n"]) -> float:
    """The share of pairs of items whose ratings are equal.

    >>> round(tied_ratings(np.array([1.0, 1.0, 2.0])), 4)
    0.3333
    """
    counts = np.unique(ratings, return_counts=True)[1].astype(np.float64)
    return float((counts * (counts - 1)).sum() / (len(ratings) * (len(ratings) - 1)))


def _pairs(
    scores: NDArray[np.float64], ratings: NDArray[np.float64]
) -> Iterator[tuple[slice, NDArray[np.float64], NDArray[np.int8]]]:
    """Some rows at a time: how far their scores are above those of all items, and the sign of ratings."""
    step = max(1, _BLOCK // len(scores))
    for start in range(0, len(scores), step):
        rows = slice(start, start + step)
        above, below = ratings[rows, None] > ratings, ratings[rows, None] < ratings
        yield rows, scores[rows, None] - scores, above.astype(np.int8) - below


def _check(scores: NDArray[np.float64]) -> None:
    if len(scores) < 2:
        raise InputError("too few items for pairs", given=len(scores), allowed="2 or more")


_PAIRWISE = (
    "of all pairs, on how many scores and ratings say the same: which is better, or that both are alike"
)
_FITTED = (
    "the same, where scores that differ by a threshold or less are alike; the threshold is fitted on the "
    "same pairs, which flatters"
)
#: Measures of pairs by name; reported where a benchmark's card names them.
PAIR_MEASURES: Mapping[str, Measure] = by_name(
    Measure(
        *("pairwise_accuracy", "rated", "Pairwise accuracy", _PAIRWISE, "(1-t)/2"), of_all=pairwise_accuracy
    ),
    Measure(
        *("pairwise_accuracy_fitted", "rated", "Pairwise accuracy, fitted ties", _FITTED, "none"),
        of_all=lambda scores, ratings: pairwise_accuracy(scores, ratings, tie=fitted_tie(scores, ratings)),
    ),
)
