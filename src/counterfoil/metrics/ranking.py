"""Retrieval where a query has many right answers: measures from the ranks of the positives.

All take `Ranks` and give one value per query, NaN where the query has no positives; `ties` says what a tie
between items counts for. Where a value depends on what stood behind the end of a list, the list is refused.
"""

from collections.abc import Callable, Mapping
from functools import partial
from math import comb
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.errors import InputError
from counterfoil.metrics.measures import Measure, MeasureAtK, by_name
from counterfoil.metrics.ranks import Ranks
from counterfoil.metrics.ties import Ties, chance_within, positions, tied_items

# More places than any gallery has: the depth of measures over the whole ranking.
_EVERYWHERE = int(np.iinfo(np.int64).max)


def recall_at_k(ranks: Ranks, k: int, *, ties: Ties = Ties.STRICT) -> Float[ndarray, "queries"]:
    """Whether *any* positive is among the first k: the R@K of the papers, 0 or 1 (between under `half`).

    Not the share of the positives found. A list shorter than k must hold a positive. Source: ECCV Caption
    section 4.1 and equation E.2.

    >>> from counterfoil.metrics.ranks import Qrels, positive_ranks
    >>> one = positive_ranks(np.array([[0.5, 0.5, 0.1]]), Qrels.of([[0]]))
    >>> [recall_at_k(one, 1, ties=ties).item() for ties in Ties]
    [0.0, 0.5, 1.0]
    """
    if k < 1:
        raise InputError("recall needs places to look at", given=k, allowed="k of 1 or more")
    _check_depth(ranks, f"recall at {k}", _unless_found(ranks, k))
    if ties != Ties.HALF:
        position, _ = positions(ranks, ties)
        return _per_query(ranks, (position <= k) & _is_first(ranks))
    tie = tied_items(ranks, ranks.before == 0)
    slots = np.clip(k - tie.above, 0, tie.size)
    chance = _cases(_chance_of_none, tie.wrong, tie.size, slots)
    return _per_query(ranks, 1 - chance, tie.query)


def r_precision(ranks: Ranks, *, ties: Ties = Ties.STRICT) -> Float[ndarray, "queries"]:
    """The share of positives among the first R items, R being the number of the query's positives, in [0, 1].

    Absent positives count in R. A list must reach down to R, or hold all positives. Source: ECCV Caption
    equation E.3.

    >>> from counterfoil.metrics.ranks import Qrels, positive_ranks
    >>> r_precision(positive_ranks(np.array([[4.0, 3.0, 2.0, 1.0]]), Qrels.of([[0, 3]])))
    array([0.5])
    """
    return _hits(ranks, "R-Precision", ties, graded=False)


def graded_r_precision(ranks: Ranks, *, ties: Ties = Ties.STRICT) -> Float[ndarray, "queries"]:
    """R-Precision with the gain of each positive among the first R in place of 1.

    R counts full and partial matches alike, so a perfect ranking with partial matches gets less than 1.
    Source: ECCV Caption equations E.3 and E.4 (gains 1 for "100% YES", 0.5 for "Partially YES").
    """
    return _hits(ranks, "graded R-Precision", ties, graded=True)


def graded_recall_at_1(ranks: Ranks, *, ties: Ties = Ties.STRICT) -> Float[ndarray, "queries"]:
    """The gain of the first item, 0 where it is wrong. Source: ECCV Caption equations E.2 and E.4.

    >>> from counterfoil.metrics.ranks import Qrels, positive_ranks
    >>> both = Qrels.of([[0, 1]], [[1.0, 0.5]])
    >>> [graded_recall_at_1(positive_ranks(np.array([[7, 7, 1]]), both), ties=ties).item() for ties in Ties]
    [0.5, 0.75, 1.0]
    """
    _check_depth(ranks, "graded recall at 1", np.ones(len(ranks.depth), np.int64))
    chance, gains = chance_within(ranks, np.ones(len(ranks.query), np.int64), ties)
    return _per_query(ranks, chance * gains)


def map_at_r(ranks: Ranks, *, ties: Ties = Ties.STRICT) -> Float[ndarray, "queries"]:
    """mAP@R of each query: (1 / R) sum over r = 1 .. R of P(r) [item r is positive], P(r) the precision at r.

    In [0, 1]; gains are not looked at. A list must reach down to R, or hold all positives. Source: ECCV
    Caption section 4.1 (after Musgrave et al., A metric learning reality check, 2020).

    >>> from counterfoil.metrics.ranks import Qrels, positive_ranks
    >>> round(map_at_r(positive_ranks(-np.arange(9.0)[None], Qrels.of([list(range(1, 9))]))).item(), 3)
    0.66
    """
    wanted = ranks.positives.counts
    _check_depth(ranks, "mAP@R", wanted)
    return _precisions(ranks, wanted, ties) / np.maximum(wanted, 1)


def average_precision(ranks: Ranks, *, ties: Ties = Ties.STRICT) -> Float[ndarray, "queries"]:
    """The mean over a query's positives of the precision at the place of each; their mean is the mAP.

    In [0, 1]; gains are not looked at, an absent positive counts 0, and a list must hold all positives.
    scikit-learn and torchmetrics give all positives of a tie the precision behind it, which is none of the
    policies here. Source: C. D. Manning, P. Raghavan, H. Schütze, Introduction to Information Retrieval,
    2008, section 8.4.

    >>> from counterfoil.metrics.ranks import Qrels, positive_ranks
    >>> average_precision(positive_ranks(np.array([[4.0, 3.0, 2.0, 1.0]]), Qrels.of([[0, 3]])))
    array([0.75])
    """
    everywhere = np.full(len(ranks.depth), _EVERYWHERE)
    _check_depth(ranks, "average precision", everywhere)
    return _precisions(ranks, everywhere, ties) / np.maximum(ranks.positives.counts, 1)


def _precisions(ranks: Ranks, within: ndarray, ties: Ties) -> Float[ndarray, "queries"]:
    """The sum of the precisions at positives among the first places; the expected one over tied orders."""
    if ties != Ties.HALF:
        position, _ = positions(ranks, ties)
        nth = np.arange(len(position)) - np.searchsorted(ranks.query, ranks.query) + 1
        return _per_query(ranks, np.where(position <= within[ranks.query], nth / position, 0.0))
    tie = tied_items(ranks)
    slots = np.clip(within[tie.query] - tie.above, 0, tie.size)
    last = int((tie.above + slots)[slots > 0].max(initial=1))
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, last + 1))])
    begin = np.minimum(tie.above, len(harmonic) - 1)
    inverse = harmonic[np.minimum(begin + slots, len(harmonic) - 1)] - harmonic[begin]
    inverse = np.where(slots == 1, 1 / (tie.above + 1), inverse)
    # Sum over j of 1 / (a + j), and of (j - 1) / (a + j) = 1 - (a + 1) / (a + j).
    others = (tie.right - 1) / np.maximum(tie.size - 1, 1)
    value = (tie.before + 1) * inverse + others * (slots - (tie.above + 1) * inverse)
    return _per_query(ranks, tie.right / tie.size * value, tie.query)


def reciprocal_rank(ranks: Ranks, *, ties: Ties = Ties.STRICT) -> Float[ndarray, "queries"]:
    """One over the place of the first positive, 0 where the gallery holds none; their mean is the MRR.

    A list must hold a positive.

    >>> from counterfoil.metrics.ranks import Qrels, positive_ranks
    >>> one = positive_ranks(np.array([[0.5, 0.5, 0.9]]), Qrels.of([[0]]))
    >>> [round(reciprocal_rank(one, ties=ties).item(), 4) for ties in Ties]
    [0.3333, 0.4167, 0.5]
    """
    _check_depth(ranks, "the reciprocal rank", _unless_found(ranks, _EVERYWHERE))
    if ties != Ties.HALF:
        position, _ = positions(ranks, ties)
        return _per_query(ranks, _is_first(ranks) / position)
    tie = tied_items(ranks, ranks.before == 0)
    return _per_query(ranks, _cases(_mean_inverse_place, tie.above, tie.wrong, tie.right), tie.query)


def ndcg(ranks: Ranks, *, ties: Ties = Ties.STRICT) -> Float[ndarray, "queries"]:
    """Discounted cumulative gain over the best that the query's positives allow, of the whole ranking.

    The gain of an item at place r is divided by log2(1 + r); gains are as given. In [0, 1]; absent positives
    count in the best. A list must hold all positives. Source: K. Järvelin, J. Kekäläinen, Cumulated
    gain-based evaluation of IR techniques, 2002.

    >>> from counterfoil.metrics.ranks import Qrels, positive_ranks
    >>> round(ndcg(positive_ranks(np.array([[1.0, 2.0, 0.0]]), Qrels.of([[0]]))).item(), 4)
    0.6309
    """
    wanted = ranks.positives
    _check_depth(ranks, "nDCG", np.full(len(ranks.depth), _EVERYWHERE))
    longest = max(ranks.gallery, int(wanted.counts.max(initial=0)), 1)
    discount = 1 / np.log2(1 + np.arange(1, longest + 1))
    if ties == Ties.HALF:
        tie = tied_items(ranks)
        total = np.concatenate([[0.0], np.cumsum(discount)])
        share = (total[tie.above + tie.size] - total[tie.above]) / tie.size
        share = np.where(tie.size == 1, discount[np.minimum(tie.above, longest - 1)], share)
        value = _per_query(ranks, share * tie.gains, tie.query)
    else:
        position, gains = positions(ranks, ties)
        value = _per_query(ranks, discount[position - 1] * gains)
    order = np.lexsort((-wanted.gains, wanted.queries))
    nth = np.arange(len(order)) - wanted.starts[:-1][wanted.queries]
    best = np.bincount(
        wanted.queries, weights=wanted.gains[order] * discount[nth], minlength=len(ranks.depth)
    )
    return np.divide(value, best, out=np.full(len(best), np.nan), where=best > 0)


def _recall(k: Any) -> Measure:
    first = f"{k:,}" if isinstance(k, int) else k
    meaning = "a right answer comes first" if k == 1 else f"a right answer is among the first {first}"
    chance = "R/n" if k == 1 else f"1-C(n-R,{k})/C(n,{k})"
    return _measure(f"recall_at_{k}", f"R@{k}", chance, partial(recall_at_k, k=k), meaning, main=True)


def _measure(
    name: str, label: str, chance: str, per_item: Callable[..., Any], meaning: str, **options: Any
) -> Measure:
    return Measure(name, "gallery", label, meaning, chance, per_item, **options)


_R_PRECISION = "the share of right answers among the first R, where R of them exist"
_MAP_AT_R = "as R-Precision, with right answers worth more the earlier they come"
_AVERAGE_PRECISION = "the mean precision at the places of the right answers, down to the last"
_NDCG = "right answers worth less the later they come, over the best possible order"
_GRADED_RECALL = "what the first place is worth: 1 for a full match, less for a partial one"
_GRADED_R_PRECISION = "as R-Precision, with a partial match worth its part"

#: The measures by name, in the order of reports, without a direction.
MEASURES: Mapping[str, Measure | MeasureAtK] = by_name(
    MeasureAtK(_recall, (1, 5, 10)),
    _measure("r_precision", "R-Precision", "R/n", r_precision, _R_PRECISION),
    _measure("map_at_r", "mAP@R", "by R", map_at_r, _MAP_AT_R),
    _measure("average_precision", "AP", "by R", average_precision, _AVERAGE_PRECISION, needs="card"),
    _measure("mrr", "MRR", "by R", reciprocal_rank, "one over the place of the first right answer"),
    _measure("ndcg", "nDCG", "by gains", ndcg, _NDCG),
    *(
        _measure(name, label, "by gains", arithmetic, meaning, needs="gains")
        for name, label, arithmetic, meaning in (
            ("graded_recall_at_1", "graded R@1", graded_recall_at_1, _GRADED_RECALL),
            ("graded_r_precision", "graded R-Precision", graded_r_precision, _GRADED_R_PRECISION),
        )
    ),
)


def _hits(ranks: Ranks, measure: str, ties: Ties, *, graded: bool) -> Float[ndarray, "queries"]:
    """The expected number of positives, or sum of their gains, among the first R, divided by R."""
    wanted = ranks.positives.counts
    _check_depth(ranks, measure, wanted)
    chance, gains = chance_within(ranks, wanted[ranks.query], ties)
    hits = np.bincount(ranks.query, weights=chance * gains if graded else chance, minlength=len(wanted))
    return np.divide(hits, wanted, out=np.full(len(wanted), np.nan), where=wanted > 0)


def _per_query(ranks: Ranks, values: ndarray, query: ndarray | None = None) -> Float[ndarray, "queries"]:
    """Sums per query, NaN where the query has no positives."""
    total = np.bincount(ranks.query if query is None else query, weights=values, minlength=len(ranks.depth))
    return np.where(ranks.positives.defined, total, np.nan)


def _is_first(ranks: Ranks) -> ndarray:
    """Whether each positive is the first entry of its query."""
    return np.arange(len(ranks.query)) == np.searchsorted(ranks.query, ranks.query)


def _unless_found(ranks: Ranks, depth: int) -> ndarray:
    """How far down a ranking must be known of which one positive is enough: no further where it has one."""
    return np.where(np.isin(np.arange(len(ranks.depth)), ranks.query), 0, depth)


def _check_depth(ranks: Ranks, measure: str, need: ndarray) -> None:
    """Raise where a query's ranking was cut before the place it is needed to."""
    short = ranks.positives.defined & (ranks.depth < need) & ranks.cut
    if short.any():
        query = int(np.flatnonzero(short)[0])
        problem, given = f"the ranking is too short for {measure}", f"{ranks.depth[query]} items"
        allowed = f"{need[query]} or more" if need[query] < _EVERYWHERE else "the whole gallery"
        hint = f"so for {int(short.sum())} queries; give full rankings, or scores"
        raise InputError(problem, where=f"query {query}", given=given, allowed=allowed, hint=hint)


def _cases(value: Callable[..., float], *numbers: ndarray) -> ndarray:
    """`value` of each row of numbers, worked out once per distinct row."""
    if not len(numbers[0]):
        return np.empty(0)
    rows, where = np.unique(np.stack(numbers, axis=1), axis=0, return_inverse=True)
    return np.array([value(*row) for row in rows.tolist()])[where.reshape(-1)]


def _chance_of_none(wrong: int, size: int, depth: int) -> float:
    """The chance that the first places of a tie all hold wrong items, C(w, j) / C(n, j)."""
    if depth <= size - wrong:
        return comb(wrong, depth) / comb(size, depth)
    # The same number with the roles of places and positives exchanged.
    return comb(size - depth, size - wrong) / comb(size, size - wrong)


def _mean_inverse_place(above: int, wrong: int, right: int) -> float:
    """The mean of 1 / place of the first of `right` positives among `wrong` others, below `above` items."""
    ahead = np.arange(wrong + 1)
    # That the first positive has at least x wrong items ahead: the product of (w - i) / (n - i) over i < x.
    factors = np.concatenate([[1.0], (wrong - ahead[:-1]) / (wrong + right - ahead[:-1])])
    chance = np.cumprod(factors) * right / (wrong + right - ahead)
    return float(np.sum(chance / (above + 1 + ahead)))
