"""The columns of a rank correlation: which measures of which benchmarks models are put in order by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from counterfoil.data.benchmark import Benchmark
from counterfoil.errors import UnknownNameError
from counterfoil.evaluation.evaluate import main_measures
from counterfoil.evaluation.forms import of
from counterfoil.evaluation.forms.gallery import overall
from counterfoil.evaluation.result import Run

#: A correlation of fewer models says nothing: two are in the same order or not.
LEAST = 3


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
        name: tuple(dict.fromkeys(m for run in runs for m in of(run.benchmark).measures_of(run)))
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
            if fnmatchcase(own, measure) or own == overall(known[name], measure)
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


def _default(benchmark: Benchmark, known: Sequence[str]) -> tuple[str, ...]:
    """The main measures, and in a gallery the means of those its authors report (of all, if none)."""
    names = [*main_measures(benchmark), *of(benchmark).overall(benchmark, known)]
    return tuple(name for name in dict.fromkeys(names) if name in known)
