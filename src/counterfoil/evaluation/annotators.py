"""Bias that the choice of machine annotators gives a benchmark (ECCV Caption, appendix E).

A set of annotators makes a benchmark of what people accepted of their proposals; the bias of a set is how far
models are from their values on the benchmark of all. A query without a right answer is left out (`out`), or
counts 0 (`zero`): then a model's R@1 on its own benchmark is exactly that on all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from counterfoil.errors import InputError
from counterfoil.evaluation.judged_pairs import JudgedPairs
from counterfoil.evaluation.result import or_none
from counterfoil.metrics.annotators import Bias, bias, by_size, subsets
from counterfoil.stats import Reals, Truths, Wholes
from counterfoil.stats.bootstrap import cluster_draws, exact_sums, percentiles
from counterfoil.stats.intervals import spread
from counterfoil.stats.two_way_clustering import inflation, linear_variance

#: What can be measured, and whether the gain of a match counts (ECCV Caption equation E.4) or only that it is
#: one.
MEASURES = ("graded_recall_at_1", "graded_r_precision", "recall_at_1", "r_precision")
#: The most annotators whose sets are all gone through: 4,095 of 12.
MOST = 12
#: The sets of one size from which the effect of queries on its mean bias is taken.
_MOVED = 50

#: The biases of a set of annotators: what they are called, and of which of `metrics.annotators.Bias`.
KINDS = {"bias": "total", "self-bias": "own", "non-self-bias": "others"}


@dataclass(frozen=True, eq=False)
class Bounds:
    """Ends of an interval per entry."""

    low: Reals
    high: Reals


@dataclass(frozen=True, eq=False)
class AnnotatorBias:
    """One measure in one direction on the benchmarks of all sets of annotators, the last set being all of
    them. `performance` is (sets, models), `queries` counts those with a right answer, and `bias` is per set.
    `single` and `ends` have intervals of the first sets (and of all), `by_number` of mean bias by size.
    """

    direction: str
    measure: str
    models: tuple[str, ...]
    annotators: Truths
    performance: Reals
    queries: Wholes
    bias: Bias
    single: Mapping[str, Bounds]
    ends: Bounds
    by_number: Mapping[str, Mapping[int, tuple[float, float]]]

    @property
    def shown(self) -> tuple[int, ...]:
        """The sets that `ends` are of: one annotator each, and all together."""
        return (*range(len(self.models)), len(self.annotators) - 1)

    @property
    def name(self) -> str:
        """As in JSON: direction and measure."""
        return f"{self.direction}_{self.measure}"

    def curves(self) -> dict[str, dict[int, float]]:
        """Mean bias by number of annotators, all of them left out: there it is 0 by definition."""
        some = ~self.annotators.all(axis=1)
        biases = {name: getattr(self.bias, field)[some] for name, field in KINDS.items()}
        return {name: by_size(values, self.annotators[some]) for name, values in biases.items()}


def to_json(study: AnnotatorBias) -> dict[str, Any]:
    """A study as JSON values: null where nothing can be averaged; sets are named "PVSE+PCME"."""
    names = ["+".join(m for m, yes in zip(study.models, row, strict=True) if yes) for row in study.annotators]
    sets: dict[str, dict[str, Any]] = {}
    for i, name in enumerate(names):
        performance = dict(zip(study.models, map(or_none, study.performance[i]), strict=True))
        of_set = {"queries": int(study.queries[i]), "performance": performance}
        if i in study.shown:
            row = study.shown.index(i)
            ends = zip(study.models, study.ends.low[row], study.ends.high[row], strict=True)
            of_set["performance_interval"] = {model: list(map(or_none, both)) for model, *both in ends}
        of_set |= {kind: or_none(getattr(study.bias, field)[i]) for kind, field in _in_json(KINDS).items()}
        if i < len(study.models):
            for kind, field in _in_json(KINDS).items():
                bounds = study.single[field]
                of_set[f"{kind}_interval"] = [or_none(bounds.low[i]), or_none(bounds.high[i])]
        sets[name] = of_set
    return {
        "annotators": sets,
        "by_number": {
            kind: {str(size): or_none(value) for size, value in curve.items()}
            for kind, curve in _in_json(study.curves()).items()
        },
        "by_number_interval": {
            kind: {str(size): list(map(or_none, ends)) for size, ends in of.items()}
            for kind, of in _in_json(study.by_number).items()
        },
    }


def _in_json(by_kind: Mapping[str, Any]) -> dict[str, Any]:
    return {kind.replace("-", "_"): value for kind, value in by_kind.items()}


def per_query(verified: JudgedPairs, annotators: Truths, measure: str, *, undefined: str = "out") -> Reals:
    """(queries, models) values for a set of annotators, NaN where none (ECCV Caption E.1 to E.4)."""
    right = (verified.gain > 0) & verified.proposed[:, annotators].any(axis=1)
    query, place = verified.query[right], verified.place[right]
    worth = verified.gain[right] if measure.startswith("graded") else np.ones(len(query))
    wanted = np.bincount(query, minlength=verified.n_queries)
    up_to = np.ones(len(query), np.int64) if measure.endswith("recall_at_1") else wanted[query]
    hits = ((place > 0) & (place <= up_to[:, None])) * worth[:, None]
    values = np.zeros((verified.n_queries, place.shape[1]))
    if len(query):
        first = np.flatnonzero(np.diff(query, prepend=-1))
        values[query[first]] = np.add.reduceat(hits, first, axis=0)
    if measure.endswith("r_precision"):
        values /= np.maximum(wanted, 1)[:, None]
    # On no benchmark counts a query for which no annotator found anything.
    counts = wanted > 0 if undefined == "out" else verified.n_found > 0
    values[~counts] = np.nan
    return values


def study(
    verified: JudgedPairs,
    measures: Sequence[str] = MEASURES[:2],
    *,
    undefined: str = "out",
    draws: int = 2000,
    seed: int = 0,
) -> tuple[AnnotatorBias, ...]:
    """Bias of all sets of annotators under each measure (ECCV Caption appendix E, equation E.5)."""
    for measure in measures:
        if measure not in MEASURES:
            raise InputError("not a measure of bias", given=measure or "(empty)", allowed=MEASURES)
    right_counts = verified.n_found
    if not right_counts.any():
        hint = "do models and judgements go together?"
        raise InputError("no proposal was accepted", where=verified.direction, hint=hint)
    if any(measure.endswith("r_precision") for measure in measures):
        for model, depth in zip(verified.models, verified.depth, strict=True):
            if depth < right_counts.max():
                raise InputError(
                    "the lists are too short for R-Precision",
                    where=f"{model}, {verified.direction}",
                    given=f"{depth} items",
                    allowed=f"{right_counts.max()} or more, as many as a query has right answers",
                    hint="give embeddings, or evaluate again with a deeper --top",
                )
    n = len(verified.models)
    if not 2 <= n <= MOST:
        raise InputError("bias compares sets of models", given=f"{n}", allowed=f"2 to {MOST} models")
    annotators = subsets(n)
    # The sets of one annotator each, and that of all.
    singles = np.concatenate([np.eye(n, dtype=bool), np.ones((1, n), dtype=bool)])
    studies = []
    for measure in measures:
        performance, queries = _means(verified, annotators, measure, undefined)
        biases = bias(performance, annotators, performance[-1])
        of_singles = [per_query(verified, members, measure, undefined=undefined) for members in singles]
        single = _single(verified, singles, of_singles, draws, seed)
        # Intervals of every model's mean on the benchmarks of one annotator each, and of all together.
        values = np.hstack(of_singles)
        there = ~np.isnan(values)
        some = there.any(axis=0)
        low, high = np.full((2, values.shape[1]), np.nan)
        if some.any():
            groups = np.where(there, 0, -1)[:, some]
            inside = np.clip(np.nan_to_num(values[:, some]), 0.0, 1.0)
            low[some], high[some] = spread(inside, verified.dependence, groups=groups).wilson()
        ends = Bounds(low.reshape(n + 1, n), high.reshape(n + 1, n))
        named = verified.direction, measure, verified.models
        one = AnnotatorBias(*named, annotators, performance, queries, biases, single, ends, {})
        studies.append(replace(one, by_number=_by_number(verified, one, undefined, seed)))
    return tuple(studies)


def _moves(values: Reals, whole: Reals) -> Reals:
    """(queries, models) what each query adds to the error of each model's distance between two benchmarks."""
    means, moved = [], []
    for table in (values, whole):
        counted = ~np.isnan(table[:, 0])
        n = max(int(counted.sum()), 1)
        mean = table[counted].sum(axis=0) / n
        means.append(mean)
        moved.append(np.where(counted[:, None], np.nan_to_num(table) - mean, 0.0) / n)
    moves: Reals = np.sign(means[0] - means[1]) * (moved[0] - moved[1])
    return moves


def _kinds(of_models: Reals, members: Truths) -> dict[str, Reals]:
    chosen = {"total": of_models, "own": of_models[..., members], "others": of_models[..., ~members]}
    nothing = np.full(of_models.shape[:-1], np.nan)
    return {name: of.mean(axis=-1) if of.shape[-1] else nothing for name, of in chosen.items()}


def _by_number(
    verified: JudgedPairs, of: AnnotatorBias, undefined: str, seed: int
) -> dict[str, dict[int, tuple[float, float]]]:
    rng, means, annotators = np.random.default_rng(seed), of.curves(), of.annotators
    whole = per_query(verified, annotators[-1], of.measure, undefined=undefined)
    ends: dict[str, dict[int, tuple[float, float]]] = {name: {} for name in KINDS}
    sizes = annotators.sum(axis=1)
    for size in sorted(set(sizes[~annotators.all(axis=1)].tolist())):
        rows = np.flatnonzero(sizes == size)
        rows = rows if len(rows) <= _MOVED else rng.choice(rows, _MOVED, replace=False)
        moved = np.zeros((verified.n_queries, 3))
        for members in annotators[rows]:
            moves = _moves(per_query(verified, members, of.measure, undefined=undefined), whole)
            moved += np.stack(list(_kinds(moves, members).values()), axis=1) / len(rows)
        variance, freedom = linear_variance(verified.dependence, moved)
        reach = stdtrit(freedom, (1 + 0.95) / 2) * np.sqrt(variance)
        for name, half in zip(KINDS, reach.tolist(), strict=True):
            if size in means[name]:
                ends[name][size] = max(means[name][size] - half, 0.0), means[name][size] + half
    return ends


def _means(verified: JudgedPairs, annotators: Truths, measure: str, undefined: str) -> tuple[Reals, Wholes]:
    """(sets, models) the means of `per_query`, and how many queries have a right answer in each set."""
    right = verified.gain > 0
    query, proposed = verified.query[right], verified.proposed[right]
    worth = verified.gain[right] if measure.startswith("graded") else np.ones(len(query))
    # A row per model; what is not in its list stands behind everything.
    place = np.where(verified.place > 0, verified.place, np.iinfo(np.int32).max)[right].T.astype(np.int32)
    place = np.ascontiguousarray(place)
    first = (place == 1).astype(np.float64)
    # The proposers of a pair as bits of a number, so that testing a set of annotators is one comparison.
    bits = 1 << np.arange(proposed.shape[1], dtype=np.int64)
    who = proposed @ bits
    everyone = int((verified.n_found > 0).sum())
    means, queries = np.full(annotators.shape, np.nan), np.zeros(len(annotators), np.int64)
    for i, members in enumerate(annotators @ bits):
        chosen = (who & members) != 0
        wanted = np.bincount(query[chosen], minlength=verified.n_queries)
        queries[i] = np.count_nonzero(wanted)
        counted = queries[i] if undefined == "out" else everyone
        if not counted:
            continue
        if measure.endswith("recall_at_1"):
            means[i] = first @ (worth * chosen) / counted
        else:
            up_to = wanted[query] * chosen
            share = np.divide(worth, up_to, out=np.zeros(len(query)), where=chosen)
            means[i] = (place <= up_to.astype(np.int32)).astype(np.float64) @ share / counted
    return means, queries


def _single(
    verified: JudgedPairs, sets: Truths, of_sets: Sequence[Reals], draws: int, seed: int
) -> dict[str, Bounds]:
    """Intervals of the biases of one annotator each, from draws of clusters of queries."""
    n, columns = len(verified.models), []
    for values in of_sets:
        counted = ~np.isnan(values[:, :1])
        columns.append(np.hstack([np.where(counted, values, 0.0), counted]))
    units = np.unique(verified.dependence.units, return_inverse=True)[1].reshape(-1)
    clusters = int(units.max()) + 1
    sums = exact_sums(np.hstack(columns), units, repeats=clusters)

    def biases(weights: NDArray[np.float32]) -> dict[str, Reals]:
        drawn = sums.weighted(weights).reshape(len(weights), n + 1, n + 1)
        # Where a draw has no query that counts there is nothing to average; such draws are left out.
        size = drawn[:, :, -1:]
        means = np.divide(drawn[:, :, :-1], size, out=np.full((*drawn.shape[:2], n), np.nan), where=size > 0)
        away = np.abs(means[:, :-1] - means[:, -1:])
        kinds = [_kinds(away[:, k], members) for k, members in enumerate(sets[:-1])]
        return {name: np.stack([one[name] for one in kinds], axis=1) for name in kinds[0]}

    blocks = [biases(weights) for weights in cluster_draws(clusters, draws, seed=seed)]
    centre = biases(np.ones((1, clusters), dtype=np.float32))
    moves = [_kinds(_moves(of_sets[k], of_sets[-1]), members) for k, members in enumerate(sets[:-1])]
    ends = {}
    for name, value in centre.items():
        low, high = percentiles(np.concatenate([block[name] for block in blocks]))
        if verified.dependence.crossed:
            moved = np.stack([one[name] for one in moves], axis=1)
            wide = inflation(verified.dependence, moved)
            low, high = (value[0] + wide * (end - value[0]) for end in (low, high))
        ends[name] = Bounds(np.maximum(low, 0.0), high)
    return ends
