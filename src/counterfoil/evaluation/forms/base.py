"""The protocol of the evaluation of a form of question, and paired tests between runs."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from counterfoil.data.benchmark import Benchmark
from counterfoil.evaluation.question_means import IntervalMethod
from counterfoil.evaluation.result import Result, Run
from counterfoil.stats.sharing import Sharing


@dataclass(frozen=True, eq=False)
class PairedRuns:
    """A test of differences: the main measures of pairs of runs, given as positions, and the draws."""

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
class Tested:
    """Each difference with interval and p-values: for every pair of scorers, the main measures in turn."""

    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    p: NDArray[np.float64]
    mcnemar: list[float | None]


class FormEvaluation(ABC):
    """The evaluation of one form of question."""

    #: The version of a run folder that holds the form.
    layout: ClassVar[int] = 1
    #: The module that writes and reads the tables of a run: `FILES`, `SCHEMAS`, `to_tables`, `from_tables`.
    tables: ClassVar[Any]
    #: Whether a question has a value of its own under a measure; else measures are of all questions together.
    values_per_item: ClassVar[bool] = True

    @abstractmethod
    def test(self, paired: PairedRuns) -> Tested:
        """Differences between scorers, question by question, with intervals and p-values."""

    def margins(self, benchmark: Benchmark, scores: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """(n,) margins by measure, in the unit of the scores, positive where right; of contrasts alone."""
        return {}

    def conflict(self, first: Benchmark, other: Benchmark) -> str:
        """Why runs on two benchmarks of the same questions cannot be paired: the facts that differ, or ""."""
        return ""

    def stored_measures(self, result: Result) -> tuple[str, ...] | None:
        """The measures whose values a run folder holds; None is all."""
        return None

    def measures_of(self, run: Run) -> tuple[str, ...]:
        """The measures that a run has a value of."""
        return tuple(run.items if self.values_per_item else run.result.measures)

    def has(self, run: Run, measure: str) -> bool:
        """Whether a run has a value of a measure."""
        return measure in run.items and bool(np.isfinite(run.items[measure]).any())

    def overall(self, benchmark: Benchmark, known: Sequence[str]) -> list[str]:
        """Measures besides the main ones by which models are ordered unless some are chosen."""
        return []

    def images(self, benchmark: Benchmark) -> list[str] | None:
        """The image of each question where benchmarks that share images are drawn together, else None."""
        return None

    def mean(self, benchmark: Benchmark, values: NDArray[np.float64]) -> float:
        """A measure from its values per question."""
        return float(values.mean())
