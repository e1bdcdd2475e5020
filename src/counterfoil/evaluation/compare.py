"""Several scorers on one benchmark: is the difference more than luck?"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.data.forms import Gallery, Preference, Rated
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.evaluation.evaluate import IntervalMethod, evaluate, main_measures
from counterfoil.evaluation.galleries.gallery import no_folds
from counterfoil.evaluation.galleries.means import columns as measure_columns
from counterfoil.evaluation.galleries.means import mean as gallery_mean
from counterfoil.evaluation.galleries.means import weights_of
from counterfoil.evaluation.judged import differences as rated_differences
from counterfoil.evaluation.judged import rated
from counterfoil.evaluation.question_means import dependence
from counterfoil.evaluation.run import Run
from counterfoil.metrics.class_rules import Plausible
from counterfoil.stats.estimates import difference_bootstrap, t_over_folds
from counterfoil.stats.sharing import Sharing
from counterfoil.stats.table_estimates import macro_table_differences
from counterfoil.stats.tests import holm, mcnemar, paired_permutation


@dataclass(frozen=True)
class Difference:
    """Scorer `a` minus scorer `b` on one measure, over the same questions.

    `low` and `high` bound the difference (95 %; made as intervals of `evaluate` are); `p` is the paired
    permutation test's, `p_holm` the same after Holm's step-down over the family; `mcnemar` is the exact test
    on the discordant questions, None where questions share items, as all of a gallery do, since it takes them
    as independent, and where nothing is right or wrong, as in correlations with ratings.
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
    runs: Sequence[Run],
    *,
    baseline: str | None = None,
    interval: IntervalMethod | str = IntervalMethod.AUTO,
    draws: int = 10_000,
    seed: int = 0,
) -> tuple[Comparison, ...]:
    """One comparison per benchmark that the runs are on, in order of first appearance.

    Every pair of scorers is compared on the form's main measures, question by question. Holm's correction
    runs over one family per benchmark: the pairs with the baseline times the measures where a baseline is
    named (the other pairs form a second, exploratory family), else all pairs times the measures. The number
    of permutations grows with the family, so that its smallest p-value can still be significant. Pairs of
    which one scorer has no correlation with the ratings, since it says the same of everything, are left out.
    `interval` says how intervals of differences are made and what the test takes as shared, as in `evaluate`
    (`folds`: Student's t over four parts, and the test of `auto`); runs keep their own, see `remeasured`. The
    same seed gives the same numbers to the last bit.

    Raises `InputError` where two runs have one name, or ask different questions of one benchmark, and
    `UnknownNameError` for a baseline that is not among them.
    """
    names = sorted({run.name for run in runs})
    if baseline is not None and baseline not in names:
        raise UnknownNameError("baseline", baseline, names)
    if interval not in list(IntervalMethod):
        raise UnknownNameError("interval", interval, [str(each) for each in IntervalMethod])
    by_benchmark: dict[str, list[Run]] = {}
    for run in runs:
        by_benchmark.setdefault(run.benchmark.name, []).append(run)
    return tuple(
        _compare(benchmark, aligned(benchmark, group), baseline, IntervalMethod(interval), draws, seed)
        for benchmark, group in by_benchmark.items()
    )


def remeasured(run: Run, interval: IntervalMethod | str, *, draws: int = 10_000, seed: int = 0) -> Run:
    """The run with intervals of another kind; all else, and what else its result says, stays."""
    result = evaluate(
        run.benchmark,
        run.answers,
        scorer=run.result.scorer,
        ties=run.result.ties["policy"],
        interval=interval,
        draws=draws,
        seed=seed,
        measures=tuple(run.result.measures) or None,
        provenance=run.result.provenance,
    )
    return replace(run, result=result)


def check_common(runs: Sequence[Run], *, note: Callable[[str], None]) -> None:
    """Raise `InputError` where several runs have no benchmark in common, so that nothing can be compared.

    Where only some benchmarks have one run alone `note` says which.
    """
    held: dict[str, list[str]] = {}
    by_benchmark: dict[str, list[str]] = {}
    for run in runs:
        held.setdefault(run.name, []).append(run.benchmark.name)
        by_benchmark.setdefault(run.benchmark.name, []).append(run.name)
    if len(held) == 1:
        return
    alone = {benchmark: names[0] for benchmark, names in by_benchmark.items() if len(names) == 1}
    if len(alone) == len(by_benchmark):
        raise InputError(
            "the runs have no benchmark in common, so nothing can be compared",
            given="; ".join(f"'{name}' has {', '.join(its)}" for name, its in held.items()),
            hint="evaluate both on the same benchmark",
        )
    for benchmark, name in alone.items():
        note(f"{benchmark}: only '{name}' was run on it, so nothing is compared there")


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
        if not _same_judgements(first, run):
            raise InputError(
                f"runs on {benchmark} have other ratings or votes, so they cannot be paired",
                given=f"'{first.name}' and '{run.name}'",
                hint="evaluate both on the same data, or compare them in two calls",
            )
        if not _same_gallery(first, run):
            raise InputError(
                f"runs on {benchmark} have other galleries, or other right answers, so they cannot be paired",
                given=f"'{first.name}' and '{run.name}'",
                hint="evaluate both on the same data, or compare them in two calls",
            )
        policies = {str(each.result.ties["policy"]) for each in (first, run)}
        if len(policies) > 1 and not isinstance(first.benchmark.questions, Rated):
            raise InputError(
                f"runs on {benchmark} count ties differently",
                given=", ".join(f"'{r.name}' {r.result.ties['policy']}" for r in (first, run)),
                hint="evaluate both with the same --ties",
            )
    return tuple(runs)


def _same_judgements(first: Run, other: Run) -> bool:
    """Whether people said the same of the same questions, and it is measured alike."""
    ours, theirs = first.benchmark.questions, other.benchmark.questions
    if isinstance(ours, Rated) and isinstance(theirs, Rated):
        alike = (ours.raters, ours.decimals) == (theirs.raters, theirs.decimals)
        return alike and np.array_equal(ours.ratings, theirs.ratings, equal_nan=True)
    if isinstance(ours, Preference) and isinstance(theirs, Preference):
        return np.array_equal(ours.label, theirs.label)
    return type(ours) is type(theirs)


def _same_gallery(first: Run, other: Run) -> bool:
    """Whether the items and the right answers are the same; texts may be at hand in one run only."""
    if not isinstance(first.benchmark.questions, Gallery):
        return True
    (items, facts), (other_items, other_facts) = _gallery_facts(first), _gallery_facts(other)
    same_length = items == other_items and len(facts) == len(other_facts)
    return same_length and all(map(np.array_equal, facts, other_facts))


def _gallery_facts(run: Run) -> tuple[list[str], list[ndarray]]:
    """The ids of all items, and what is right where."""
    gallery = run.benchmark.gallery
    facts: list[ndarray] = [gallery.query_parts]
    for found in (gallery.i2t.positives, gallery.t2i.positives):
        if isinstance(found, Plausible):
            rule = np.array([*found.thresholds, found.cap or 0])
            facts += [found.query_codes, found.item_codes, rule]
        else:
            facts += [found.starts, found.items, found.gains]
    images = [image.id for image in run.benchmark.images]
    return [*images, *(caption.id for caption in run.benchmark.captions)], facts


def _compare(
    benchmark: str,
    runs: tuple[Run, ...],
    baseline: str | None,
    interval: IntervalMethod,
    draws: int,
    seed: int,
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
    of_ratings = isinstance(runs[0].benchmark.questions, Rated)
    if not of_ratings:
        main = tuple(name for name in main if all(name in run.items for run in runs))
    if not main:
        return Comparison(benchmark, runs, baseline, ())
    asked = np.asarray([baseline is None or runs[b].name == baseline for _, b in of_scorers]).repeat(
        len(main)
    )
    if of_ratings:
        test = _test_ratings
    else:
        test = _test_gallery if isinstance(runs[0].benchmark.questions, Gallery) else _test
    tested = test(_Asked(runs, main, of_scorers, interval, draws, seed))
    p_holm = np.ones(len(asked))
    defined = ~np.isnan(tested.p)
    for family in (asked & defined, ~asked & defined):
        if family.any():
            p_holm[family] = holm(tested.p[family])
    names = [(runs[a].name, runs[b].name, measure) for a, b in of_scorers for measure in main]
    return Comparison(
        benchmark,
        runs,
        baseline,
        tuple(
            Difference(
                benchmark=benchmark,
                measure=measure,
                a=a,
                b=b,
                value=float(tested.value[i]),
                low=float(tested.low[i]),
                high=float(tested.high[i]),
                p=float(tested.p[i]),
                p_holm=float(p_holm[i]),
                mcnemar=tested.mcnemar[i],
            )
            for i, (a, b, measure) in enumerate(names)
            if defined[i]
        ),
    )


@dataclass(frozen=True, eq=False)
class _Asked:
    """What is tested: the main measures of pairs of runs, given as positions, and by which draws."""

    runs: Sequence[Run]
    main: Sequence[str]
    of_scorers: Sequence[tuple[int, int]]
    interval: IntervalMethod
    draws: int
    seed: int

    @property
    def columns(self) -> NDArray[np.int64]:
        """Pairs of columns, for columns of scorers x measures."""
        wide = len(self.main)
        return np.asarray(
            [(a * wide + k, b * wide + k) for a, b in self.of_scorers for k in range(wide)], dtype=np.int64
        )

    @property
    def permutations(self) -> int:
        """With draws permutations no p-value is below 1 / (draws + 1), and Holm multiplies by the family."""
        return max(self.draws, 100 * len(self.main) * len(self.of_scorers))

    @property
    def sharing(self) -> Sharing:
        """What questions share by any of the runs: some may know images or captions that others lack."""
        return Sharing.joined([run.benchmark.sharing for run in self.runs])


@dataclass(frozen=True, eq=False)
class _Tested:
    """What the tests say of each difference: for every pair of scorers, the main measures in turn."""

    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    p: NDArray[np.float64]
    mcnemar: list[float | None]


def _test(asked: _Asked) -> _Tested:
    """Quads and choices: every question counts the same."""
    values = np.stack([run.items[measure] for run in asked.runs for measure in asked.main], axis=1)
    pairs = asked.columns
    sharing = asked.sharing
    folds = asked.interval is IntervalMethod.FOLDS
    shared = dependence(sharing, IntervalMethod.AUTO if folds else asked.interval)
    p = paired_permutation(values, shared, pairs, seed=asked.seed, draws=asked.permutations)
    if folds:
        gaps = (values[:, a] - values[:, b] for a, b in pairs)
        low, high = np.array([t_over_folds(gap, least=-1.0) for gap in gaps]).T
    else:
        low, high = difference_bootstrap(values, shared, pairs, seed=asked.seed, draws=asked.draws)
    means = values.mean(axis=0)
    value = np.array([means[a] - means[b] for a, b in pairs])
    return _Tested(
        value,
        low,
        high,
        p,
        [mcnemar(values[:, a], values[:, b]) if sharing.independent else None for a, b in pairs],
    )


def _test_ratings(asked: _Asked) -> _Tested:
    """Correlations with ratings: of all questions together, so scores are swapped and not values."""
    if asked.interval in (IntervalMethod.WILSON, IntervalMethod.FOLDS):
        rated.refuse(asked.interval, asked.runs[0].benchmark)
    found = rated_differences.differences(
        asked.runs,
        rated.shared_by(asked.sharing, asked.interval),
        asked.of_scorers,
        asked.main,
        draws=asked.draws,
        permutations=asked.permutations,
        seed=asked.seed,
    )
    value, low, high, p = (array.reshape(-1) for array in found)
    return _Tested(value, low, high, p, [None] * len(value))


def _test_gallery(asked: _Asked) -> _Tested:
    """Galleries: directions and parts count the same, and queries without a value do not count."""
    benchmark = asked.runs[0].benchmark
    of_runs = [{name: run.items[name] for name in asked.main} for run in asked.runs]
    weights = np.stack([weights_of(benchmark, ~np.isnan(of_runs[0][name])) for name in asked.main], axis=1)
    if asked.interval is IntervalMethod.FOLDS:
        raise no_folds(benchmark)
    shared = dependence(asked.sharing, asked.interval)
    # Weights of each measure, so that all share their signs, whatever rows they are about.
    values = np.hstack(
        [np.stack([np.nan_to_num(table[name]) for name in asked.main], axis=1) for table in of_runs]
    )
    pairs = asked.columns
    p = paired_permutation(
        values,
        shared,
        pairs,
        weights=np.tile(weights, len(asked.runs)),
        seed=asked.seed,
        draws=asked.permutations,
    )
    tables, averages = [], np.zeros((0, 0))
    for table in of_runs:
        columns, averages = measure_columns(benchmark, table, asked.main)
        tables.append(columns)
    groups = np.where(np.isnan(tables[0]), -1, benchmark.gallery.query_parts[:, None])
    _, low, high = macro_table_differences(
        np.clip(np.stack(tables), 0.0, 1.0),
        groups,
        shared,
        np.asarray(asked.of_scorers, dtype=np.int64),
        averages=averages,
        seed=asked.seed,
        draws=asked.draws,
    )
    means = [[gallery_mean(benchmark, table[name]) for name in asked.main] for table in of_runs]
    value = [means[a][k] - means[b][k] for a, b in asked.of_scorers for k in range(len(asked.main))]
    return _Tested(np.array(value), low.reshape(-1), high.reshape(-1), p, [None] * len(pairs))
