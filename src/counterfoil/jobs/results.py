"""Results as Python users meet them: a run as tables, text, HTML in a notebook, and a figure."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal

import pyarrow as pa

from counterfoil.errors import UnknownNameError
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.result import Estimate, Run
from counterfoil.jobs.outputs import guarded_file, write
from counterfoil.report import comparison_tables
from counterfoil.report.notes import rests_on
from counterfoil.report.tables import Cell, Column, Row, Table, to_csv, to_latex, to_markdown, to_text
from counterfoil.store import check_table_kind, write_table

#: Which images a page carries: those whose licence lets a report carry them, all, or none.
Pictures = Literal["auto", "always", "never"]


class Tabular(ABC):
    """A result in tables: printed as text, in a notebook as HTML, in `to_arrow` and `to_frame` as rows."""

    #: The kinds of row of `to_arrow`, the default first; the docstring of each class describes them.
    rows_by: ClassVar[tuple[str, ...]]

    @property
    @abstractmethod
    def tables(self) -> Sequence[Table]:
        """The tables that are printed."""

    @property
    def notes(self) -> Sequence[str]:
        """Lines below the tables: what the numbers rest on, what was left out."""
        return ()

    @abstractmethod
    def _rows(self, by: str) -> pa.Table | list[dict[str, Any]]: ...

    def to_arrow(self, *, by: str | None = None) -> pa.Table:
        """A `pyarrow.Table` with a row per `by`; raises `UnknownNameError` for another kind of row."""
        by = self.rows_by[0] if by is None else by
        if by not in self.rows_by:
            raise UnknownNameError("kind of row", by, self.rows_by)
        rows = self._rows(by)
        return pa.Table.from_pylist(rows) if isinstance(rows, list) else rows

    def to_frame(self, *, by: str | None = None) -> Any:
        """`to_arrow` as a `pandas.DataFrame`; where pandas is not installed the `pyarrow.Table` itself."""
        table = self.to_arrow(by=by)
        return table if find_spec("pandas") is None else table.to_pandas()

    def __str__(self) -> str:
        return "\n".join(["\n\n".join(map(to_text, self.tables)), *self.notes])

    def _repr_html_(self) -> str:
        from counterfoil.report.html import fragment

        return fragment(self.tables, self.notes)


class SavedTable(Tabular):
    """A result one kind of whose rows is written to a file."""

    #: The command, and the kind of row that is written where it is not the first.
    command: ClassVar[str]
    saved_by: ClassVar[str | None] = None
    check_kind = staticmethod(check_table_kind)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the rows to `path`, as CSV, JSON or Parquet by its suffix."""
        check_table_kind(Path(path))
        with guarded_file(path, command=self.command, overwrite=overwrite):
            write_table(Path(path), self.to_arrow(by=self.saved_by))


class TextTables(Tabular):
    """A result whose tables are also text for papers: Markdown, LaTeX, and CSV of all numbers."""

    @property
    def text_tables(self) -> Sequence[Table]:
        """The tables of Markdown and LaTeX."""
        return self.tables

    @property
    def csv_tables(self) -> Sequence[Table]:
        """The tables of CSV."""
        return self.tables

    def to_markdown(self) -> str:
        """The tables in Markdown, with intervals; best in bold, second best in italics."""
        pages = [to_markdown(table, intervals=True) for table in self.text_tables]
        return "\n".join([*pages, *(f"{note}.\n" for note in self.notes)])

    def to_latex(self) -> str:
        """The tables as LaTeX floats (booktabs), with intervals; best in bold, second best underlined."""
        pages = [to_latex(table, intervals=True) for table in self.text_tables]
        return "\n".join([*pages, *(f"% {note}.\n" for note in self.notes)])

    def to_csv(self) -> str:
        """The tables as CSV: a line per number at full precision, with interval and count."""
        return to_csv(*self.csv_tables)


@dataclass(frozen=True, eq=False, repr=False)
class EvaluationRun(Tabular, Run):
    """One scorer measured on one benchmark: `run.result["group"].value`, tables, and a figure.

    Rows by "measure" are one per measure over all questions (`group` is empty) and per group: `benchmark`,
    `scorer`, `group`, `measure`, `value`, `low` and `high` (95 %), `n` questions, `chance`, `effective`
    questions. Ratios are in [0, 1], correlations in [-1, 1]. Rows by "question" are one per question, in a
    gallery per query: `id`, a column per grouping, and one per measure that has values per question.
    """

    rows_by = ("measure", "question")

    @classmethod
    def of(cls, run: Run) -> "EvaluationRun":
        """The same run with these ways to show it."""
        return cls(**{column.name: getattr(run, column.name) for column in fields(Run)})

    def to_json(self) -> dict[str, Any]:
        """The result as plain values, as `evaluate --json` writes it."""
        return self.result.to_json()

    def _rows(self, by: str) -> pa.Table | list[dict[str, Any]]:
        if by == "measure":
            return measure_rows(self)
        questions = self.benchmark.questions
        items = {name: values for name, values in self.items.items() if len(values) == len(questions)}
        labels = {name: list(values) for name, values in questions.groupings.items()}
        return pa.table({"id": list(questions.ids), **labels, **items})

    def plot(self, measures: list[str] | None = None) -> Any:
        """A matplotlib figure of the measures with intervals and chance, by default of the main ones."""
        from counterfoil.report import figures

        return figures.measures(self._alone, measures)

    def to_html(
        self,
        path: str | Path,
        *,
        title: str = "counterfoil report",
        pictures: Pictures = "auto",
        private: bool = False,
        overwrite: bool = False,
    ) -> None:
        """Write the page of this run alone, as `RunComparison.to_html` writes that of several."""
        write_page((self._alone,), path, title=title, pictures=pictures, private=private, overwrite=overwrite)

    @property
    def _alone(self) -> Comparison:
        return Comparison(self.benchmark.name, (self,), None, ())

    @property
    def tables(self) -> tuple[Table]:
        """The measures, each with its interval and chance."""
        title = self.benchmark.card.title or self.benchmark.name
        columns = (Column("%"), Column("chance"))
        rows = tuple(
            Row(name, (Cell(estimate.value, estimate.low, estimate.high), Cell(estimate.chance)))
            for name, estimate in self.result.measures.items()
        )
        heading = f"{self.name} on {title}, {len(self.benchmark):,} questions"
        return (Table(heading, columns, rows, "measure"),)

    @property
    def notes(self) -> list[str]:
        """What the intervals rest on."""
        return rests_on(self.benchmark, [self.result])

    def __repr__(self) -> str:
        first = [name for name in (comparison_tables.leading(self._alone),) if name in self.result]
        numbers = ", ".join(f"{name} {self.result[name]}" for name in first)
        return f"<EvaluationRun {self.name} on {self.benchmark.name}: {numbers or 'no main measure'}>"


def write_page(
    comparisons: Sequence[Comparison],
    path: str | Path,
    *,
    title: str,
    pictures: Pictures,
    private: bool,
    overwrite: bool,
) -> None:
    """Write the page of these comparisons, with the pictures that are allowed; needs matplotlib."""
    from counterfoil.report.drawing import check
    from counterfoil.report.page import page

    check()
    html = page(comparisons, title=title, pictures=pictures, private=private)
    write(path, html, command="compare", overwrite=overwrite)


def measure_rows(run: Run) -> list[dict[str, Any]]:
    """A row per measure over all questions, and per group, as `EvaluationRun.to_arrow` describes them."""
    names, numbers = {"benchmark": run.benchmark.name, "scorer": run.name}, [f.name for f in fields(Estimate)]
    return [
        {**names, "group": group, "measure": measure, **{name: getattr(estimate, name) for name in numbers}}
        for group, estimates in {"": run.result.measures, **run.result.groups}.items()
        for measure, estimate in estimates.items()
    ]
