"""Bias, precision and recall of machine annotators, whose top k people verify.

A benchmark made so favours the models that proposed (ECCV Caption section 3 and appendix E).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from counterfoil.errors import InputError
from counterfoil.metrics.ranks import Qrels


def subsets(n: int) -> Bool[ndarray, "subsets n"]:
    """All non-empty sets of n annotators as rows of members, small ones first; the last is all of them.

    >>> subsets(2).astype(int).tolist()
    [[1, 0], [0, 1], [1, 1]]
    """
    chosen = [c for size in range(1, n + 1) for c in combinations(range(n), size)]
    return np.array([[i in c for i in range(n)] for c in chosen], dtype=bool).reshape(-1, n)


@dataclass(frozen=True)
class Bias:
    """Mean absolute differences to the reference, per set of annotators, in the unit of the performance.

    `total` over all models, `own` (self-bias) over those in the set, `others` over the rest; NaN for none.
    """

    total: Float[ndarray, "subsets"]
    own: Float[ndarray, "subsets"]
    others: Float[ndarray, "subsets"]


def bias(
    performance: Float[ndarray, "subsets models"],
    annotators: Bool[ndarray, "subsets models"],
    reference: Float[ndarray, "models"],
) -> Bias:
    """How far models are from their true performance on benchmarks verified from each set of annotators.

    `performance[t, m]` is what model m gets where the proposals of the models in `annotators[t]` were
    verified, `reference[m]` where those of all were. Source: ECCV Caption equation E.5 and the text below
    E.6.

    >>> first = bias(np.array([[70.0, 60.0]]), np.array([[True, False]]), np.array([71.0, 65.0]))
    >>> first.total.item(), first.own.item(), first.others.item()
    (3.0, 1.0, 5.0)
    """
    away = np.abs(performance - reference)
    own_values, others = (
        _share(np.where(chosen, away, 0.0).sum(axis=1), chosen.sum(axis=1))
        for chosen in (annotators, ~annotators)
    )
    return Bias(away.mean(axis=1), own_values, others)


def by_size(
    values: Float[ndarray, "subsets"], annotators: Bool[ndarray, "subsets models"]
) -> dict[int, float]:
    """The mean over the sets of each number of annotators: a curve of ECCV Caption Figure E.2.

    >>> by_size(np.array([4.0, 2.0, 0.0]), subsets(2))
    {1: 3.0, 2: 0.0}
    """
    size = annotators.sum(axis=1)
    return {int(s): float(values[size == s].mean()) for s in np.unique(size)}


def precision_recall(
    dataset: Qrels, judged: Qrels, positive: Qrels
) -> tuple[Float[ndarray, "queries"], Float[ndarray, "queries"]]:
    """Per query, how many of a data set's positives people confirm, and how many of theirs it has.

    `dataset` are its positives (r), `judged` the pairs that people looked at (h), `positive` those they
    accepted (t); absent items are left out. Only what was judged counts, r' = r and h:

        precision = |r' and t| / |r'|,     recall = 1 - |t without r'| / |t|.

    Precision is NaN where r' is empty, recall where t is; ECCV Caption leaves the queries of an empty r' out
    of both means. Raises `InputError` for different numbers of queries and an accepted pair that was not
    judged. Source: ECCV Caption section 3.3 and Table 2.

    >>> r, h, t = Qrels.of([[1, 2, 9]]), Qrels.of([[1, 2, 3, 4]]), Qrels.of([[1, 3, 4]])
    >>> [round(value.item(), 4) for value in precision_recall(r, h, t)]
    [0.5, 0.3333]
    """
    n = len(dataset.starts) - 1
    if not n == len(judged.starts) - 1 == len(positive.starts) - 1:
        given = f"{n}, {len(judged.starts) - 1} and {len(positive.starts) - 1} queries"
        raise InputError("judgements are of other queries", given=given, allowed="the same queries in all")
    width = 1 + max(int(p.items.max(initial=0)) for p in (dataset, judged, positive))
    r, h, t = ((p.queries * width + p.items)[p.items >= 0] for p in (dataset, judged, positive))
    stray = np.flatnonzero(~np.isin(t, h))
    if len(stray):
        query, item = divmod(int(t[stray[0]]), width)
        raise InputError("an accepted pair was never judged", where=f"query {query}", given=f"item {item}")
    judged_pairs = r[np.isin(r, h)]
    both = np.bincount(judged_pairs[np.isin(judged_pairs, t)] // width, minlength=n)
    judged_of, accepted_of = (np.bincount(of // width, minlength=n) for of in (judged_pairs, t))
    return _share(both, judged_of), _share(both, accepted_of)


@dataclass(frozen=True)
class Pool:
    """Candidate pairs to verify, each once, and the place (from 1, 0 for none) that each model gives it."""

    query: Int[ndarray, "pairs"]
    item: Int[ndarray, "pairs"]
    place: Int[ndarray, "pairs models"]

    def within(self, k: int) -> Bool[ndarray, "pairs models"]:
        """Which model proposes which pair when each hands in its first k."""
        return (self.place > 0) & (self.place <= k)


def pool(tops: Sequence[Int[ndarray, "queries k"]]) -> Pool:
    """The union of the first k items of several models for the same queries, by query and item.

    Raises `InputError` for no model. Source: ECCV Caption section 3.2 (the top 5 of five models).

    >>> both = pool([np.array([[7, 4]]), np.array([[4, 9]])])
    >>> both.item.tolist(), both.place.tolist()
    ([4, 7, 9], [[2, 1], [1, 0], [0, 2]])
    """
    if not tops:
        raise InputError("no model proposes pairs", given="0 models", allowed="1 or more")
    n, k = tops[0].shape
    width = 1 + max(int(top.max(initial=0)) for top in tops)
    codes = [(np.arange(n)[:, None] * width + top).reshape(-1) for top in tops]
    pairs, where = np.unique(np.concatenate(codes), return_inverse=True)
    place = np.zeros((len(pairs), len(tops)), dtype=np.int64)
    for model, positions in enumerate(np.split(where.reshape(-1), len(tops))):
        place[positions, model] = np.tile(np.arange(1, k + 1), n)
    return Pool(pairs // width, pairs % width, place)


def pool_yield(pooled: Pool, k: int) -> Float[ndarray, "models k"]:
    """How many pairs come together: entry [m - 1, j - 1] for m models that hand in their first j each.

    The mean over all choices of m of the M models: a pair of c of them is in with chance 1 - C(M - c, m) /
    C(M, m).

    >>> pool_yield(pool([np.array([[7, 4]]), np.array([[4, 9]])]), 2)
    array([[1., 2.],
           [2., 3.]])
    """
    models = pooled.place.shape[1]
    curve = np.empty((models, k))
    chance = np.array(
        [[1 - comb(models - c, m) / comb(models, m) for c in range(models + 1)] for m in range(1, models + 1)]
    )
    for j in range(1, k + 1):
        proposers = np.bincount(pooled.within(j).sum(axis=1), minlength=models + 1)
        curve[:, j - 1] = chance @ proposers
    return curve


def _share(part: ndarray, whole: ndarray) -> ndarray:
    """part / whole, NaN where there is nothing."""
    return np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)
