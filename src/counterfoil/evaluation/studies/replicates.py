"""Several runs of one model, trained from different seeds, as one: the mean of their answers per question.

A question's value is its mean over the seeds, and intervals come from drawing clusters of questions, as for
one run (where images and captions are crossed, from the variance over both). So they say how far the mean of
*these* seeds would move with other questions; how far it would move with other seeds is what `Evidence.seeds`
shows, one number per seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.errors import InputError, UnknownNameError
from counterfoil.evaluation.evaluate import chance
from counterfoil.evaluation.forms import of
from counterfoil.evaluation.galleries.means import columns as gallery_columns
from counterfoil.evaluation.run import Run
from counterfoil.evaluation.studies.evidence import Evidence, between
from counterfoil.stats.estimates import cluster_bootstrap, difference_bootstrap
from counterfoil.stats.sharing import Sharing
from counterfoil.stats.table_estimates import macro_table_differences, table_spread
from counterfoil.stats.tests import paired_permutation


@dataclass(frozen=True, eq=False)
class Replicates:
    """Runs of one model on one benchmark, a run per seed.

    Raises `InputError` where there is none, or they ask different questions or count ties differently.
    """

    name: str
    runs: tuple[Run, ...]

    def __post_init__(self) -> None:
        if not self.runs:
            raise InputError("no runs", where=self.name)
        check_same([self])

    @property
    def is_gallery(self) -> bool:
        """Whether the questions are those of a gallery."""
        return self.runs[0].benchmark.questions.directed

    @property
    def sharing(self) -> Sharing:
        """What the questions share."""
        return self.runs[0].benchmark.sharing

    def values(self, measure: str) -> Float[ndarray, "n"]:
        """The mean over seeds of a measure's values per question; NaN where a gallery's query has none."""
        for run in self.runs:
            if not of(run.benchmark).values_per_item:
                raise InputError(
                    "a correlation with ratings is of all captions together: seeds have no values to average",
                    where=f"{self.name}, {run.name}",
                    hint="compare the runs one by one",
                )
            if measure not in run.items:
                raise UnknownNameError("measure", measure, run.items, where=f"{self.name}, {run.name}")
        return np.mean([run.items[measure] for run in self.runs], axis=0)

    def mean(self, measure: str) -> float:
        """The measure: over questions, or as galleries average over directions and parts."""
        return _mean(self.runs[0], self.values(measure))

    def level(self, measure: str, *, draws: int = 10_000, seed: int = 0, label: str = "") -> Evidence:
        """The measure with its interval. One run's own estimate stays what its result says."""
        values = self.values(measure)
        seeds = tuple(_mean(run, run.items[measure]) for run in self.runs)
        label = label or self.name
        n, by_chance = len(self.sharing), chance(self.runs[0].benchmark).get(measure)
        known = self.runs[0].result.measures.get(measure)
        if len(self.runs) == 1 and known is not None:
            return Evidence(
                label, measure, "level", known.value, known.low, known.high, known.n, known.chance, seeds
            )
        if self.is_gallery:
            run = self.runs[0]
            table, averages = gallery_columns(run.benchmark, {measure: values}, (measure,))
            groups = np.where(np.isnan(table), -1, run.benchmark.gallery.query_parts[:, None])
            low, high = table_spread(
                np.clip(table, 0.0, 1.0), groups, self.sharing, averages=averages, draws=draws, seed=seed
            ).wilson(0.95)
            n = int((~np.isnan(values)).sum())
        else:
            inside = np.clip(values, 0.0, 1.0)[:, None]
            low, high = cluster_bootstrap(inside, self.sharing, draws=draws, seed=seed)
        return Evidence(
            label,
            measure,
            "level",
            self.mean(measure),
            float(low[0]),
            float(high[0]),
            n,
            chance=by_chance,
            seeds=seeds,
        )


def check_same(models: Sequence[Replicates]) -> None:
    """Raise `InputError` unless all runs of all models ask the same questions and count ties alike."""
    first = models[0].runs[0]
    for model in models:
        for run in model.runs:
            if run.benchmark.questions.ids != first.benchmark.questions.ids:
                raise InputError(
                    "runs ask different questions, so they cannot be paired",
                    where=model.name,
                    given=f"'{first.benchmark.name}' ({len(first.benchmark):,}) and "
                    f"'{run.benchmark.name}' ({len(run.benchmark):,})",
                    hint="evaluate all models on the same data",
                )
            policies = [str(each.result.ties.get("policy")) for each in (first, run)]
            if policies[0] != policies[1]:
                raise InputError("runs count ties differently", where=model.name, given=", ".join(policies))


#: One side of a difference: the mean of a measure over some models, each a mean over its seeds.
Side = tuple[Sequence[Replicates], str]


def differences(
    asked: Sequence[tuple[str, Side, Side]], *, draws: int = 10_000, seed: int = 0, threshold: float = 0.0
) -> list[Evidence]:
    """Every (label, a, b) as "a minus b" over the same questions, with interval and p-value.

    A side is (models, measure): the mean over the models of the measure. Intervals are Tango's for the
    effective number of questions, p-values the paired permutation test's, over clusters of questions; all
    differences share the same draws. For quads and choices; galleries have `gallery_differences`. Raises
    `InputError` where the models were not asked the same questions.
    """
    if not asked:
        return []
    models = [model for _, one, other in asked for models, _ in (one, other) for model in models]
    check_same(models)
    common = Sharing.joined([model.sharing for model in models])
    table = np.stack([_column(side) for _, one, other in asked for side in (one, other)], axis=1)
    pairs = np.arange(table.shape[1]).reshape(-1, 2)
    low, high = difference_bootstrap(table, common, pairs, draws=draws, seed=seed)
    p = paired_permutation(table, common, pairs, draws=max(draws, 100 * len(pairs)), seed=seed)
    means = table.mean(axis=0)
    return [
        Evidence(
            label,
            between(one[1], other[1]),
            "difference",
            float(means[a] - means[b]),
            float(low[i]),
            float(high[i]),
            len(table),
            seeds=_seed_differences(one, other),
            p=float(p[i]),
            threshold=threshold,
        )
        for i, ((label, one, other), (a, b)) in enumerate(zip(asked, pairs.tolist(), strict=True))
    ]


def gallery_differences(
    asked: Sequence[tuple[str, Replicates, Replicates]],
    measure: str,
    *,
    draws: int = 10_000,
    seed: int = 0,
) -> list[Evidence]:
    """As `differences`, of one measure over a gallery, with intervals and without p-values."""
    if not asked:
        return []
    models = [model for _, one, other in asked for model in (one, other)]
    check_same(models)
    benchmark = models[0].runs[0].benchmark
    tables, averages = [], np.zeros((0, 0))
    for model in models:
        table, averages = gallery_columns(benchmark, {measure: model.values(measure)}, (measure,))
        tables.append(table)
    groups = np.where(np.isnan(tables[0]), -1, benchmark.gallery.query_parts[:, None])
    pairs = np.arange(len(models)).reshape(-1, 2)
    value, low, high = macro_table_differences(
        np.clip(np.stack(tables), 0.0, 1.0),
        groups,
        benchmark.sharing,
        pairs,
        averages=averages,
        draws=draws,
        seed=seed,
    )
    return [
        Evidence(
            label,
            measure,
            "difference",
            float(value[i, 0]),
            float(low[i, 0]),
            float(high[i, 0]),
            int((~np.isnan(one.values(measure))).sum()),
            seeds=_seed_differences(([one], measure), ([other], measure)),
        )
        for i, (label, one, other) in enumerate(asked)
    ]


def _mean(run: Run, values: Float[ndarray, "n"]) -> float:
    return of(run.benchmark).mean(run.benchmark, values)


def _column(side: Side) -> Float[ndarray, "n"]:
    models, measure = side
    # Means of thirds may end in 1 + 2e-16.
    return np.clip(np.mean([model.values(measure) for model in models], axis=0), 0.0, 1.0)


def _seed_differences(one: Side, other: Side) -> tuple[float, ...]:
    """The difference for every seed alone, where all models of both sides have as many."""
    counts = {len(model.runs) for models, _ in (one, other) for model in models}
    if len(counts) != 1:
        return ()

    def of(side: Side, at: int) -> float:
        return float(np.mean([_mean(m.runs[at], m.runs[at].items[side[1]]) for m in side[0]]))

    return tuple(of(one, at) - of(other, at) for at in range(counts.pop()))
