"""`counterfoil compare lengths`: what measures have to do with the lengths of captions."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from counterfoil.errors import InputError
from counterfoil.jobs.job import job
from counterfoil.jobs.results import Tabular
from counterfoil.jobs.shared_options import RUNS
from counterfoil.report.tables import Column, Table

if TYPE_CHECKING:
    from counterfoil.evaluation.lengths import LengthCorrelation


@dataclass(frozen=True, eq=False, repr=False)
class Lengths(Tabular):
    """The correlation of each main measure of runs with the length of captions."""

    correlations: "tuple[LengthCorrelation, ...]"

    rows_by = ("correlation",)

    def _rows(self, by: str) -> list[Any]:
        return [correlation.to_json() for correlation in self.correlations]

    def to_json(self) -> list[Any]:
        return self._rows("correlation")

    @property
    def tables(self) -> list[Table]:
        """A table per benchmark."""
        columns = [Column("measure", align="left"), Column("r"), Column("95 % interval"), Column("p")]
        tables = []
        for benchmark in dict.fromkeys(of.benchmark for of in self.correlations):
            its, rows = [of for of in self.correlations if of.benchmark == benchmark], []
            for of in its:
                p = "<0.0001" if of.p < 1e-4 else f"{of.p:.4f}"
                numbers = (f"{of.value:+.2f}", f"[{of.low:+.2f}, {of.high:+.2f}]", p)
                varies = of.value == of.value
                rows.append((of.scorer, of.measure, *(numbers if varies else ("–", "does not vary", ""))))
            title = f"{benchmark}, {its[0].questions:,} questions, {its[0].words:.1f} words a caption"
            tables.append(Table.of(title, "scorer", columns, rows))
        return tables


@job(
    outputs="json",
    examples="""Examples:
  counterfoil compare lengths runs/clip/winoground
  counterfoil compare lengths runs/* --json lengths.json""",
)
def lengths(runs: Annotated[Sequence[Path], RUNS], *, data: Path | None = None) -> Lengths:
    """Correlate a run's main measures with the length of the captions in words (Pearson).

    As in Table 6 of Winoground's paper, with intervals that account for shared images and captions. For rated
    captions, the score itself is correlated with the caption's length.

    Arguments:
        data: Data of Winoground, where its captions are not at hand: its tags hold lengths.
    """
    from counterfoil.evaluation.lengths import length_correlations, mean_words
    from counterfoil.evaluation.run import find_runs

    loaded = [run for run in find_runs(runs) if not run.benchmark.questions.directed]
    if not loaded:
        raise InputError("galleries alone: their queries have no captions of their own", given=runs[0])
    correlations = (length_correlations(run, words=mean_words(run.benchmark, data)) for run in loaded)
    return Lengths(tuple(chain.from_iterable(correlations)))
