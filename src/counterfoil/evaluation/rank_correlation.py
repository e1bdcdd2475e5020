"""Agreement of measures and benchmarks on the order of models, with intervals (ECCV Caption Table 5).

For every pair of columns, a column being a measure on a benchmark, Kendall's tau-b and Spearman's
correlation. Draws take models with replacement, and whole clusters of queries: galleries that share images
share their draws, other benchmarks are drawn each on their own. Where images and captions are crossed, images
are drawn, and values are moved apart (`forms.bootstrap`). Copies of a model are tied in both columns, so
tau-b leaves them out; counting them as agreement would draw every tau towards 1. Intervals are percentiles,
with three limits:

* Models that agree throughout agree in every draw, so the interval reaches at least as far as perfect
  agreement of all models leaves it (`perfect`).
* Queries drawn anew add their noise a second time: the interval of small benchmarks and close models leans
  towards 0 and is too wide (docs/statistics.md).
* Sizes of one family of models are not independent; then the interval is too narrow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from itertools import combinations
from math import lgamma, log
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.evaluation.compare import aligned, by_benchmark
from counterfoil.evaluation.evaluate import leading, main_measures, of
from counterfoil.evaluation.forms.bootstrap import DrawnQuestions, MeasureDraws
from counterfoil.evaluation.forms.gallery import overall
from counterfoil.evaluation.result import Run, or_none
from counterfoil.metrics.correlation import weighted_spearman, weighted_tau_b
from counterfoil.stats.bootstrap import cluster_draws, percentiles
from counterfoil.stats.dependence import Dependence

#: Fewer models have no useful correlation: two are in the same order or not.
LEAST = 3


@dataclass(frozen=True)
class RankColumn:
    """One measure on one benchmark."""

    benchmark: str
    measure: str
    #: The benchmark's title in print.
    title: str

    @property
    def name(self) -> str:
        """As `--measure` takes it: "eccv:mean_map_at_r"."""
        return f"{self.benchmark}:{self.measure}"


def choose(groups: Mapping[str, tuple[Run, ...]], wanted: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The measures of each benchmark that become columns."""
    allowed = {
        name: tuple(dict.fromkeys(m for run in runs for m in of(run.benchmark).measures_of(run)))
        for name, runs in groups.items()
    }
    chosen: dict[str, dict[str, None]] = {name: {} for name in groups}
    for name, runs in groups.items() if not wanted else ():
        # The main measures, and in a gallery the means of those its authors report (of all, if none).
        first = runs[0].benchmark
        names = [*main_measures(first), *of(first).overall(first, allowed[name])]
        chosen[name] = dict.fromkeys(measure for measure in names if measure in allowed[name])
    for pattern in wanted:
        benchmark, _, measure = pattern.rpartition(":")
        hits = [
            (name, one)
            for name in groups
            if fnmatchcase(name, benchmark or "*")
            for one in allowed[name]
            if fnmatchcase(one, measure) or one == overall(allowed[name], measure)
        ]
        if not hits:
            matching = [name for name in groups if fnmatchcase(name, benchmark or "*")]
            if not matching:
                raise UnknownNameError("benchmark", benchmark, groups, where=f"measure '{pattern}'")
            present = {one for name in matching for one in allowed[name]}
            raise UnknownNameError("measure", measure, present, where=benchmark or None)
        for name, one in hits:
            chosen[name][one] = None
    return {name: tuple(one) for name, one in chosen.items()}


@dataclass(frozen=True, eq=False)
class Sheet:
    """One benchmark and what of it is drawn; benchmarks of one `family` are drawn together."""

    benchmark: Benchmark
    draws: MeasureDraws
    family: int


def sheets_of(
    groups: Mapping[str, tuple[Run, ...]], measures: Sequence[str]
) -> tuple[tuple[Sheet, ...], tuple[str, ...]]:
    """What is drawn of each benchmark, and the names of columns that too few models have."""
    chosen = choose(groups, measures)
    few = []
    sheets = []
    of_runs = {name: [run.benchmark.dependence for run in runs] for name, runs in groups.items()}
    shared = {name: Dependence.joined(parts) for name, parts in of_runs.items()}
    for (name, runs), (family, codes, size) in zip(groups.items(), _families(groups, shared), strict=True):
        having = {m: sum(of(run.benchmark).has(run, m) for run in runs) for m in chosen[name]}
        enough = [measure for measure, many in having.items() if many >= LEAST]
        few += [f"{name}:{measure}" for measure in having if measure not in enough]
        if enough:
            drawn = DrawnQuestions(runs[0].benchmark, codes, size, shared[name])
            sheets.append(Sheet(drawn.benchmark, of(drawn.benchmark).draws(runs, enough, drawn), family))
    return tuple(sheets), tuple(few)


def _families(
    groups: Mapping[str, tuple[Run, ...]], shared: Mapping[str, Dependence]
) -> list[tuple[int, ndarray, int]]:
    """For each benchmark the number of its family, the cluster of each question, and the family's clusters.

    Galleries with an image in common are a family, whose clusters are the images.
    """
    keys: dict[str, list[str]] = {}
    family: dict[str, int] = {}
    for number, (name, runs) in enumerate(groups.items()):
        family[name] = number
        if (images := of(runs[0].benchmark).images(runs[0].benchmark)) is not None:
            keys[name] = images
            for other in [o for o in keys if o != name and not set(keys[o]).isdisjoint(keys[name])]:
                old = family[other]
                family |= {o: number for o, f in family.items() if f == old}
    families = []
    for name in groups:
        if name not in keys:
            codes = shared[name].units
            families.append((family[name], codes, int(codes.max()) + 1))
            continue
        together = sorted({key for o in keys if family[o] == family[name] for key in keys[o]})
        place = {key: i for i, key in enumerate(together)}
        codes = np.asarray([place[key] for key in keys[name]], np.int64)
        families.append((family[name], codes, len(together)))
    return families


@dataclass(frozen=True)
class Agreement:
    """How far two columns agree on the order of the models that both have; NaN where one is constant."""

    a: str
    b: str
    models: int
    tau: float
    tau_low: float
    tau_high: float
    rho: float
    rho_low: float
    rho_high: float

    @property
    def sure(self) -> bool:
        """Whether the interval of tau excludes 0."""
        return self.tau_low > 0 or self.tau_high < 0


@dataclass(frozen=True, eq=False)
class RankCorrelation:
    """Models by columns, NaN where not run, and how far pairs of columns agree; `few` have too few models."""

    models: tuple[str, ...]
    columns: tuple[RankColumn, ...]
    values: Float[ndarray, "models columns"]
    pairs: tuple[Agreement, ...]
    few: tuple[str, ...]
    draws: int
    seed: int
    level: float = 0.95
    lead: int = 0

    @property
    def ranks(self) -> Float[ndarray, "models columns"]:
        """1 for the best of each column; equal models share the best of their ranks; NaN where not run."""
        with np.errstate(invalid="ignore"):
            better = self.values[None] > self.values[:, None]
        return np.where(np.isnan(self.values), np.nan, 1.0 + better.sum(axis=1))

    def pair(self, a: RankColumn, b: RankColumn) -> Agreement | None:
        """The agreement of two columns, in either order; None where too few models have both."""
        names = {a.name, b.name}
        return next((pair for pair in self.pairs if {pair.a, pair.b} == names), None)

    def to_json(self) -> dict[str, Any]:
        """Plain values, None for what is undefined."""
        method = "models and clusters of queries drawn anew, percentiles"
        return {
            "models": list(self.models),
            "columns": [asdict(column) for column in self.columns],
            "values": or_none(self.values.tolist()),
            "ranks": or_none(self.ranks.tolist()),
            "pairs": [or_none(asdict(pair)) for pair in self.pairs],
            "left_out": list(self.few),
            "interval": {"method": method, "level": self.level, "draws": self.draws, "seed": self.seed},
        }


#: The most signs of pairs of models that a block of draws holds.
_AT_ONCE = 1 << 22


def rank_correlation(
    runs: Sequence[Run], *, measures: Sequence[str] = (), draws: int = 1000, seed: int = 0
) -> RankCorrelation:
    """How far measures and benchmarks agree on the order of models, with intervals (see the module). By
    default columns are main measures, and of galleries means over both directions; `measures` chooses
    ("eccv:mean_map_at_r", "map_at_r", "i2t_*"), and the first then orders. Raises `InputError` for fewer
    than three models or two columns, `UnknownNameError` for a measure.
    """
    models = tuple(dict.fromkeys(run.name for run in runs))
    groups = {name: aligned(name, group) for name, group in by_benchmark(runs).items()}
    if len(models) < LEAST:
        raise InputError(
            "too few models to correlate their order",
            given=", ".join(models) or "no run",
            allowed=f"{LEAST} models or more",
            hint="of two, 'counterfoil compare' says by how much they differ",
        )
    sheets, few = sheets_of(groups, measures)
    named = ((sheet.benchmark, measure) for sheet in sheets for measure in sheet.draws.measures)
    columns = tuple(RankColumn(of_.name, measure, of_.title) for of_, measure in named)
    if len(columns) < 2:
        raise InputError(
            "nothing to correlate: fewer than two columns that three models share",
            given="; ".join(f"{name}: {', '.join(r.name for r in group)}" for name, group in groups.items()),
            hint="evaluate the same models on the same benchmarks"
            if few
            else "choose more measures, or give runs on another benchmark",
        )
    values = _assemble(models, sheets, [sheet.draws.values() for sheet in sheets])
    taus, rhos = _draw(models, sheets, draws=draws, seed=seed)
    tau, rho = _correlations(values, np.ones(values.shape[:2]))
    there = ~np.isnan(values[0])
    pairs = []
    for i, j in combinations(range(len(columns)), 2):
        n = int((there[:, i] & there[:, j]).sum())
        if n < LEAST:
            continue
        least, numbers = perfect(n), []
        for value, drawn, limit in ((tau, taus, least), (rho, rhos, as_spearman(least))):
            (low,), (high,) = percentiles(drawn[:, i, j, None]).tolist()
            at_hand = float(value[0, i, j])
            numbers += [at_hand, *widened(at_hand, low, high, least=limit)]
        pairs.append(Agreement(columns[i].name, columns[j].name, n, *numbers))
    first = columns[0].benchmark
    leads = "" if measures else leading(sheets[0].benchmark, *(run.result for run in groups[first]))
    lead = next((i for i, c in enumerate(columns) if (c.benchmark, c.measure) == (first, leads)), 0)
    return RankCorrelation(models, columns, values[0], tuple(pairs), few, draws, seed, lead=lead)


def _assemble(models: Sequence[str], sheets: Sequence[Sheet], values: Sequence[ndarray]) -> ndarray:
    """(draws, models, columns) of all benchmarks side by side; NaN where a model was not run."""
    blocks = []
    for sheet, block in zip(sheets, values, strict=True):
        wide = np.full((len(block), len(models), block.shape[2]), np.nan)
        wide[:, [models.index(name) for name in sheet.draws.models]] = block
        blocks.append(wide)
    return np.concatenate(blocks, axis=2)


def _draw(
    models: Sequence[str], sheets: Sequence[Sheet], *, draws: int, seed: int
) -> tuple[ndarray, ndarray]:
    """tau and rho in every draw, each (draws, columns, columns)."""
    families = {sheet.family: sheet.draws.n_clusters for sheet in sheets}
    # Each family, and the models, have draws of their own.
    streams = np.random.SeedSequence(seed).generate_state(1 + max(families)).tolist()
    blocks: list[list[ndarray]] = [[] for _ in sheets]
    for family, size in families.items():
        for weights in cluster_draws(size, draws, seed=streams[family]):
            for sheet, parts in zip(sheets, blocks, strict=True):
                if sheet.family == family:
                    parts.append(sheet.draws.drawn(weights))
    values = _assemble(models, sheets, [np.concatenate(parts) for parts in blocks])
    copies = np.concatenate(list(cluster_draws(len(models), draws, seed=seed))).astype(np.float64)
    at_once = max(1, _AT_ONCE // (len(models) ** 2 * values.shape[2]))
    starts = range(0, draws, at_once)
    both = [_correlations(values[lo : lo + at_once], copies[lo : lo + at_once]) for lo in starts]
    taus, rhos = (np.concatenate(part) for part in zip(*both, strict=True))
    return taus, rhos


def _correlations(values: ndarray, copies: ndarray) -> tuple[ndarray, ndarray]:
    """tau and rho of each draw for all pairs of columns, over the models that both columns have."""
    there = ~np.isnan(values).all(axis=0)
    n = values.shape[2]
    taus, rhos = np.full((2, len(values), n, n), np.nan)
    # Columns that the same models have go together.
    kinds, of_column = np.unique(there.T, axis=0, return_inverse=True)
    of_column = of_column.reshape(-1)
    for a in range(len(kinds)):
        for b in range(a, len(kinds)):
            both = np.flatnonzero(kinds[a] & kinds[b])
            if len(both) < LEAST:
                continue
            chosen = np.flatnonzero((of_column == a) | (of_column == b))
            part, weights = values[:, both][:, :, chosen], copies[:, both]
            # Of two kinds only what lies between them; what lies within has more models in its own turn.
            cross = (of_column[chosen] == a)[:, None] & (of_column[chosen] == b)[None]
            cross |= cross.T
            rows, columns = np.nonzero(cross)
            for target, correlation in ((taus, weighted_tau_b), (rhos, weighted_spearman)):
                target[:, chosen[rows], chosen[columns]] = correlation(part, weights)[:, rows, columns]
    return taus, rhos


def perfect(models: int) -> float:
    """The least low end of the interval of tau where all pairs of the models agree.

    One order in m! agrees by luck, as log2(m!) tosses of a coin do: p ** log2(m!) is the tail, tau 2 p - 1.
    """
    tosses = lgamma(models + 1) / log(2)
    return 2 * ((1 - 0.95) / 2) ** (1 / tosses) - 1


def as_spearman(tau: float) -> float:
    """Spearman's correlation of two normal columns whose tau is given."""
    return float(6 / np.pi * np.arcsin(np.sin(np.pi * tau / 2) / 2))


def widened(value: float, low: float, high: float, *, least: float) -> tuple[float, float]:
    """An interval no narrower on either side than perfect agreement, or perfect disagreement, would have."""
    if np.isnan(value):
        return float("nan"), float("nan")
    return min(low, least), max(high, -least)
