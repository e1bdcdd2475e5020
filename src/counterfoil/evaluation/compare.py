"""Several models on one benchmark, and whether they differ by more than chance."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from counterfoil.errors import InputError, UnknownNameError
from counterfoil.evaluation.evaluate import IndexPairs, PairedRuns, evaluate, main_measures, measured_run, of
from counterfoil.evaluation.intervals import LEVEL, IntervalMethod
from counterfoil.evaluation.result import Plain, Run, difference_signature
from counterfoil.metrics.measures import averaged
from counterfoil.metrics.ties import Ties
from counterfoil.stats.tests import holm


@dataclass(frozen=True)
class Difference(Plain):
    """Model `a` minus model `b` on one measure, over the same questions, with its 95 % interval. `p` is
    two-sided, `p_holm` adjusted over the family; `mcnemar` is None where questions share items or are
    neither right nor wrong.
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
    #: One line of all that the numbers depend on besides the models and the questions.
    signature: str = ""


@dataclass(frozen=True, eq=False)
class Comparison:
    """All models on one benchmark, with the differences of every pair on the main measures."""

    benchmark: str
    runs: tuple[Run, ...]
    baseline: str | None
    differences: tuple[Difference, ...]

    @property
    def measures(self) -> list[str]:
        """All measures that a run has a value of."""
        return list(dict.fromkeys(name for run in self.runs for name in run.result.measures))

    def families(self) -> tuple["Comparison", ...]:
        """By what Holm's correction ran over: pairs with the baseline, and the other pairs if any."""
        if self.baseline is None:
            return (self,)
        others = tuple(run for run in self.runs if run.name != self.baseline)
        rest = tuple(d for d in self.differences if d.b != self.baseline)
        first = replace(self, differences=self.against_baseline())
        return (first, Comparison(self.benchmark, others, None, rest)) if rest else (first,)

    def against_baseline(self) -> tuple[Difference, ...]:
        """The differences of every other model to the baseline, as "model minus baseline"."""
        return tuple(d for d in self.differences if d.b == self.baseline)


def compare(
    runs: Sequence[Run], *, baseline: str | None = None, interval: IntervalMethod | str = IntervalMethod.AUTO
) -> tuple[Comparison, ...]:
    """One comparison per benchmark that the runs are on, every pair of models on the main measures. Holm's
    correction runs over the pairs with the baseline (the others form a second family), else over all pairs
    times the measures. Pairs without a defined correlation are left out. Raises `InputError` where two runs
    have one name or ask different questions, `UnknownNameError` for a baseline.
    """
    names = sorted({run.name for run in runs})
    if baseline is not None and baseline not in names:
        raise UnknownNameError("baseline", baseline, names)
    if interval not in list(IntervalMethod):
        raise UnknownNameError("interval", interval, [str(method) for method in IntervalMethod])
    comparisons = []
    for benchmark, group in by_benchmark(runs).items():
        of_benchmark = aligned(benchmark, group)
        named = baseline if baseline in {run.name for run in of_benchmark} else None
        # The baseline last, so that every pair with it reads "model minus baseline".
        order = sorted(range(len(group)), key=lambda i: named is not None and group[i].name == named)
        pairs = list(combinations(order, 2))
        differences = _differences(of_benchmark, pairs, named, IntervalMethod(interval))
        comparisons.append(Comparison(benchmark, of_benchmark, named, differences))
    return tuple(comparisons)


def _differences(
    runs: tuple[Run, ...], of_models: IndexPairs, baseline: str | None, interval: IntervalMethod
) -> tuple[Difference, ...]:
    main, benchmark = main_measures(runs[0].benchmark), runs[0].benchmark.name
    form = of(runs[0].benchmark)
    if form.values_per_item:
        kind = runs[0].benchmark.questions.form
        # A mean over groups has a value only where there are some.
        main = tuple(
            name
            for name in main
            if (of_items := averaged(name, kind))
            and all(of_items in r.items and (of_items == name or name in r.result.measures) for r in runs)
        )
    if not main or not of_models:
        return ()
    with_baseline = [baseline is None or runs[b].name == baseline for _, b in of_models]
    first_family = np.asarray(with_baseline).repeat(len(main))
    tested = form.test(PairedRuns(runs, main, of_models, interval))
    p_holm, defined = np.ones(len(first_family)), ~np.isnan(tested.p)
    for family in (first_family & defined, ~first_family & defined):
        p_holm[family] = holm(tested.p[family])
    names = [(runs[a], runs[b], measure) for a, b in of_models for measure in main]
    numbers = np.stack([tested.value, tested.low, tested.high, tested.p, p_holm], axis=1).tolist()
    rows = zip(names, numbers, tested.mcnemar, strict=True)
    return tuple(
        Difference(
            *(benchmark, measure, a.name, b.name, value, low, high, p, adjusted, exact),
            difference_signature(a.result, b.result, measure, tested.interval),
        )
        for (a, b, measure), (value, low, high, p, adjusted), exact in rows
        if not np.isnan(p)
    )


def by_benchmark(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The runs on each benchmark, in order of first appearance."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.benchmark.name, []).append(run)
    return groups


def remeasured(
    run: Run,
    *,
    ties: Ties | str | None = None,
    interval: IntervalMethod | str | None = None,
    draws: int = 10_000,
    seed: int = 0,
) -> Run:
    """The run measured anew with other ties or intervals; all else, and what else its result says, stays."""
    old = run.result
    if interval is None:
        # Of joint measures a result says how variances were made, which is the same for them all.
        method = old.provenance.get("interval", {}).get("method")
        interval = method if method in list(IntervalMethod) else IntervalMethod.AUTO
    result = evaluate(
        run.benchmark,
        run.answers,
        model=old.model,
        ties=old.ties["policy"] if ties is None else ties,
        interval=interval,
        draws=draws,
        seed=seed,
        measures=tuple(old.measures) or None,
        provenance=old.provenance,
    )
    return replace(measured_run(run.benchmark, run.answers, result, run.manifest), name=run.name)


def check_common(runs: Sequence[Run], *, note: Callable[[str], None]) -> None:
    """Raise `InputError` where several runs share no benchmark; `note` names benchmarks of one run."""
    held: dict[str, list[str]] = {}
    for run in runs:
        held.setdefault(run.name, []).append(run.benchmark.name)
    if len(held) == 1:
        return
    groups = by_benchmark(runs)
    alone = {benchmark: group[0].name for benchmark, group in groups.items() if len(group) == 1}
    if len(alone) == len(groups):
        raise InputError(
            "the runs have no benchmark in common, so nothing can be compared",
            given="; ".join(f"'{name}' has {', '.join(its)}" for name, its in held.items()),
            hint="evaluate both on the same benchmark",
        )
    for benchmark, name in alone.items():
        note(f"{benchmark}: only '{name}' was run on it, so nothing is compared there")


def over_shared(
    runs: Sequence[Run],
    *,
    note: Callable[[str], None],
    interval: IntervalMethod | str = IntervalMethod.AUTO,
    draws: int = 10_000,
    seed: int = 0,
) -> tuple[Run, ...]:
    """The runs over the questions that all runs on their benchmark answer, measured anew; not of rankings."""
    shared: dict[str, set[str]] = {}
    for run in runs:
        ids = set(run.benchmark.questions.ids)
        shared[run.benchmark.name] = shared.get(run.benchmark.name, ids) & ids
    measured = []
    for run in runs:
        name = run.benchmark.name
        rows = np.array([i for i, id in enumerate(run.benchmark.questions.ids) if id in shared[name]])
        if len(rows) == len(run.benchmark):
            measured.append(run)
            continue
        if not len(rows):
            raise InputError(f"no question of {name} is answered by all runs", given=run.name)
        # Rankings of galleries have none: what is left of a query depends on all items.
        take = getattr(run.answers, "take", None)
        if take is None:
            raise InputError("these answers cannot be cut to some questions", where=f"{run.name} on {name}")
        note(f"{name}: '{run.name}' is measured on the {len(rows):,} of its questions that all runs answer")
        title = f"{run.benchmark.title} ({len(rows):,} of its {len(run.benchmark):,})"
        part = replace(run, benchmark=run.benchmark.part(rows, title), answers=take(rows))
        measured.append(remeasured(part, interval=interval, draws=draws, seed=seed))
    return tuple(measured)


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
                hint="evaluate both on the same data, or compare where all answer with --shared",
            )
        form, conflict = of(first.benchmark), "questions of two types"
        if form is of(run.benchmark):
            conflict = form.conflict(first.benchmark, run.benchmark)
        if conflict:
            raise InputError(
                f"runs on {benchmark} have {conflict}, so they cannot be paired",
                given=f"'{first.name}' and '{run.name}'",
                hint="evaluate both on the same data, or compare them in two calls",
            )
        policies = {str(either.result.ties["policy"]) for either in (first, run)}
        if len(policies) > 1 and form.by_policy:
            raise InputError(
                f"runs on {benchmark} count ties differently",
                given=", ".join(f"'{r.name}' {r.result.ties['policy']}" for r in (first, run)),
                hint="evaluate both with the same --ties",
            )
    return tuple(runs)


def is_significant(difference: Difference) -> bool:
    """Whether one of the two is ahead: the interval leaves out 0, and the test says so after Holm."""
    return difference.p_holm < LEVEL and not difference.low <= 0 <= difference.high
