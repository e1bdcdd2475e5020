"""The columns of a rank correlation: which measures of which benchmarks models are put in order by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.forms import Gallery, Rated
from counterfoil.errors import UnknownNameError
from counterfoil.evaluation.evaluate import main_measures
from counterfoil.evaluation.run import Run

#: A correlation of fewer models says nothing: two are in the same order or not.
LEAST = 3
#: What the mean over both directions of a gallery begins with.
_MEAN = "mean_"


@dataclass(frozen=True)
class RankColumn:
    """One measure on one benchmark."""

    benchmark: str
    measure: str
    #: The benchmark as print calls it.
    title: str

    @property
    def name(self) -> str:
        """As `--measure` takes it: "eccv:mean_map_at_r"."""
        return f"{self.benchmark}:{self.measure}"


def choose(groups: Mapping[str, tuple[Run, ...]], wanted: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The measures of each benchmark that become columns."""
    known = {
        name: tuple(dict.fromkeys(m for run in runs for m in measures_of(run)))
        for name, runs in groups.items()
    }
    if not wanted:
        return {name: _default(runs[0].benchmark, known[name]) for name, runs in groups.items()}
    found: dict[str, list[str]] = {name: [] for name in groups}
    for pattern in wanted:
        benchmark, _, measure = pattern.rpartition(":")
        hits = [
            (name, own)
            for name in groups
            if fnmatchcase(name, benchmark or "*")
            for own in known[name]
            if fnmatchcase(own, measure) or own == _overall(known[name], measure)
        ]
        if not hits:
            asked = [name for name in groups if fnmatchcase(name, benchmark or "*")]
            if not asked:
                raise UnknownNameError("benchmark", benchmark, groups, where=f"measure '{pattern}'")
            raise UnknownNameError(
                "measure", measure, {own for name in asked for own in known[name]}, where=benchmark or None
            )
        for name, own in hits:
            if own not in found[name]:
                found[name].append(own)
    return {name: tuple(own) for name, own in found.items()}


def measures_of(run: Run) -> tuple[str, ...]:
    """What a run can be ordered by: what its questions have values of, and correlations that are defined."""
    return tuple(run.result.measures if isinstance(run.benchmark.questions, Rated) else run.items)


def has(run: Run, measure: str) -> bool:
    """Whether a run has a value of a measure."""
    if isinstance(run.benchmark.questions, Rated):
        return measure in run.result.measures
    return measure in run.items and bool(np.isfinite(run.items[measure]).any())


def _default(benchmark: Benchmark, known: Sequence[str]) -> tuple[str, ...]:
    """The main measures, and in a gallery the means of those its authors report (of all, if none)."""
    names = list(main_measures(benchmark))
    if isinstance(benchmark.questions, Gallery):
        names += [_overall(known, base) for base in benchmark.card.measures] or [
            name for name in known if name.startswith(_MEAN)
        ]
    return tuple(name for name in dict.fromkeys(names) if name in known)


def _overall(known: Sequence[str], base: str) -> str:
    """The measure of a gallery in both directions, or in the only one that has queries; empty if neither."""
    return next((name for side in ("mean", "i2t", "t2i") if (name := f"{side}_{base}") in known), "")
