"""Results as Python users meet them: a run as tables, text, HTML in a notebook, and a figure."""

from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from counterfoil.errors import UnknownNameError
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.result import Estimate
from counterfoil.evaluation.run import Run
from counterfoil.report import figures, tables
from counterfoil.report.interval_basis import rests_on
from counterfoil.report.markup import Cell, Column, Row, Table, to_text
from counterfoil.report.page_frame import fragment


@dataclass(frozen=True, eq=False, repr=False)
class EvaluationRun(Run):
    """One scorer measured on one benchmark: `run.result["group"].value`, tables, and a figure.

    Printed it is a table of its measures, in a notebook the same in HTML.
    """

    @classmethod
    def of(cls, run: Run) -> "EvaluationRun":
        """The same run with these ways to show it."""
        return cls(**{each.name: getattr(run, each.name) for each in fields(Run)})

    def to_json(self) -> dict[str, Any]:
        """The result as plain values, as `evaluate --json` writes it."""
        return self.result.to_json()

    def to_arrow(self, *, by: str = "measure") -> pa.Table:
        """A `pyarrow.Table`.

        By "measure" a row per measure over all questions (`group` is empty) and per group: `benchmark`,
        `scorer`, `group`, `measure`, `value`, `low` and `high` (95 %), `n` questions, `chance`, `effective`
        questions. Ratios are in [0, 1], correlations in [-1, 1]. By "question" a row per question, in a
        gallery per query: `id`, a column per grouping, and one per measure that has values per question.
        """
        if by == "question":
            return _by_question(self)
        if by != "measure":
            raise UnknownNameError("kind of row", by, ("measure", "question"))
        return pa.Table.from_pylist(measure_rows(self))

    def to_frame(self, *, by: str = "measure") -> Any:
        """`to_arrow` as a `pandas.DataFrame`; where pandas is not installed the `pyarrow.Table` itself."""
        return frame(self.to_arrow(by=by))

    def plot(self, measures: list[str] | None = None) -> Any:
        """A matplotlib figure of the measures with intervals and chance, by default of the main ones."""
        return figures.measures(self._alone, measures)

    @property
    def _alone(self) -> Comparison:
        return Comparison(self.benchmark.name, (self,), None, ())

    def _table(self) -> Table:
        title = self.benchmark.card.title or self.benchmark.name
        columns = (Column("%"), Column("chance"))
        rows = tuple(
            Row(name, (Cell(each.value, each.low, each.high), Cell(each.chance)))
            for name, each in self.result.measures.items()
        )
        return Table(f"{self.name} on {title}, {len(self.benchmark):,} questions", columns, rows, "measure")

    def __str__(self) -> str:
        return "\n".join([to_text(self._table()), *rests_on(self.benchmark, [self.result])])

    def __repr__(self) -> str:
        first = [name for name in tables.main_measures(self._alone) if name in self.result][-1:]
        numbers = ", ".join(f"{name} {self.result[name]}" for name in first)
        return f"<EvaluationRun {self.name} on {self.benchmark.name}: {numbers or 'no main measure'}>"

    def _repr_html_(self) -> str:
        return fragment([self._table()], rests_on(self.benchmark, [self.result]))


def frame(table: pa.Table) -> Any:
    """The table as a `pandas.DataFrame`; where pandas is not installed the table itself."""
    return table if find_spec("pandas") is None else table.to_pandas()


def measure_rows(run: Run) -> list[dict[str, Any]]:
    """A row per measure over all questions, and per group, as `EvaluationRun.to_arrow` describes them."""

    def row(group: str, measure: str, estimate: Estimate) -> dict[str, Any]:
        names = {"benchmark": run.benchmark.name, "scorer": run.name, "group": group, "measure": measure}
        return {**names, **{each.name: getattr(estimate, each.name) for each in fields(Estimate)}}

    groups = {"": run.result.measures, **run.result.groups}
    return [row(group, name, each) for group, found in groups.items() for name, each in found.items()]


def _by_question(run: Run) -> pa.Table:
    questions = run.benchmark.questions
    return pa.table(
        {
            "id": list(questions.ids),
            **{name: list(labels) for name, labels in questions.groupings.items()},
            **{name: values for name, values in run.items.items() if len(values) == len(questions)},
        }
    )
