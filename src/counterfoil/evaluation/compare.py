"""Several scorers on one benchmark: is the difference more than luck?"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import InputError, UnknownNameError
from counterfoil.evaluation.evaluate import main_measures
from counterfoil.evaluation.run import Run
from counterfoil.stats.estimates import difference_bootstrap
from counterfoil.stats.tests import holm, mcnemar, paired_permutation


@dataclass(frozen=True)
class Difference:
    """Scorer `a` minus scorer `b` on one measure, over the same questions.

    `low` and `high` bound the difference (95 %, clustered bootstrap); `p` is the paired permutation test's,
    `p_holm` the same after Holm's step-down over the family; `mcnemar` is the exact test on the discordant
    questions, None where questions share items, since it takes them as independent.
    """

    benchmark: str
    measure: str
    a: str
    b: str
    value: float
    low: float
    high: float
    p: float
    p_holm: float
    mcnemar: float | None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Comparison:
    """All scorers on one benchmark, with the differences of every pair on the main measures."""

    benchmark: str
    runs: tuple[Run, ...]
    baseline: str | None
    differences: tuple[Difference, ...]

    def against_baseline(self) -> tuple[Difference, ...]:
        """The differences of every other scorer to the baseline, as "scorer minus baseline"."""
        return tuple(d for d in self.differences if d.b == self.baseline)


def compare(
    runs: Sequence[Run], *, baseline: str | None = None, draws: int = 10_000, seed: int = 0
) -> tuple[Comparison, ...]:
    """One comparison per benchmark that the runs are on, in order of first appearance.

    Every pair of scorers is compared on the form's main measures, question by question. Holm's correction
    runs over one family per benchmark: the pairs with the baseline times the measures where a baseline is
    named (the other pairs form a second, exploratory family), else all pairs times the measures. The number
    of permutations grows with the family, so that its smallest p-value can still be significant.
    The same seed gives the same numbers to the last bit.

    Raises `InputError` where two runs have one name, or ask different questions of one benchmark, and
    `UnknownNameError` for a baseline that is not among them.
    """
    names = sorted({run.name for run in runs})
    if baseline is not None and baseline not in names:
        raise UnknownNameError("baseline", baseline, names)
    by_benchmark: dict[str, list[Run]] = {}
    for run in runs:
        by_benchmark.setdefault(run.benchmark.name, []).append(run)
    return tuple(
        _compare(benchmark, aligned(benchmark, group), baseline, draws, seed)
        for benchmark, group in by_benchmark.items()
    )


def aligned(benchmark: str, runs: Sequence[Run]) -> tuple[Run, ...]:
    first = runs[0]
    names = [run.name for run in runs]
    for run in runs[1:]:
        if names.count(run.name) > 1:
            raise InputError(f"two runs on {benchmark} have one name", given=run.name, hint="rename a folder")
        if run.benchmark.questions.ids != first.benchmark.questions.ids:
            raise InputError(
                f"runs on {benchmark} ask different questions, so they cannot be paired",
                given=f"'{first.name}' {len(first.benchmark):,} and '{run.name}' {len(run.benchmark):,}",
                hint="evaluate both on the same data, or compare them in two calls",
            )
        if run.result.ties["policy"] != first.result.ties["policy"]:
            raise InputError(
                f"runs on {benchmark} count ties differently",
                given=", ".join(f"'{r.name}' {r.result.ties['policy']}" for r in (first, run)),
                hint="evaluate both with the same --ties",
            )
    return tuple(runs)


def _compare(
    benchmark: str, runs: tuple[Run, ...], baseline: str | None, draws: int, seed: int
) -> Comparison:
    if baseline not in {run.name for run in runs}:
        baseline = None
    main = main_measures(runs[0].benchmark)
    order = list(range(len(runs)))
    if baseline is not None:
        # The baseline last, so that every pair with it reads "scorer minus baseline".
        order.sort(key=lambda i: runs[i].name == baseline)
    of_scorers = list(combinations(order, 2))
    if not of_scorers:
        return Comparison(benchmark, runs, baseline, ())
    values = np.stack([run.items[measure] for run in runs for measure in main], axis=1)
    wide = len(main)
    pairs = np.asarray(
        [(a * wide + k, b * wide + k) for a, b in of_scorers for k in range(wide)], dtype=np.int64
    )
    clusters = _common_clusters(runs)
    independent = len(np.unique(clusters)) == len(clusters)
    # With draws permutations no p-value is below 1 / (draws + 1), and Holm multiplies by the family.
    permutations = max(draws, 100 * len(pairs))
    p = paired_permutation(values, clusters, pairs, seed=seed, draws=permutations)
    low, high = difference_bootstrap(values, clusters, pairs, seed=seed, draws=draws)
    asked = np.asarray([baseline is None or runs[b].name == baseline for _, b in of_scorers]).repeat(wide)
    p_holm = np.ones(len(pairs))
    for family in (asked, ~asked):
        if family.any():
            p_holm[family] = holm(p[family])
    means = values.mean(axis=0)
    return Comparison(
        benchmark,
        runs,
        baseline,
        tuple(
            Difference(
                benchmark=benchmark,
                measure=main[int(a) % wide],
                a=runs[int(a) // wide].name,
                b=runs[int(b) // wide].name,
                value=float(means[a] - means[b]),
                low=float(low[i]),
                high=float(high[i]),
                p=float(p[i]),
                p_holm=float(p_holm[i]),
                mcnemar=mcnemar(values[:, a], values[:, b]) if independent else None,
            )
            for i, (a, b) in enumerate(pairs)
        ),
    )


def _common_clusters(runs: Sequence[Run]) -> NDArray[np.int64]:
    """The coarsest clusters of the runs: some may know images or captions that others lack."""
    from counterfoil.data.questions import clusters

    return clusters([run.benchmark.clusters for run in runs])
