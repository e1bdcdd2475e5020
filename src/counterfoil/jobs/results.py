"""Results as Python users meet them: a run as tables, text, HTML in a notebook, and a figure."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from inspect import cleandoc
from pathlib import Path
from string import Formatter
from textwrap import fill
from typing import Any, ClassVar, Literal, dataclass_transform

import pyarrow as pa

from counterfoil.errors import InputError, UnknownNameError
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.result import Estimate, Run
from counterfoil.inputs.options import checked
from counterfoil.outputs import guarded_file
from counterfoil.report.tables import Column, Table, amount, to_csv, to_latex, to_markdown, to_text
from counterfoil.store import check_table_kind, write_table, write_text

#: Which images a page carries: those whose licence lets a report carry them, all, or none.
Pictures = Literal["auto", "always", "never"]

_TYPES = {"": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
_TYPES |= {"texts": pa.list_(pa.string()), "ints": pa.list_(pa.int64())}
_COLUMN = re.compile(r"`(\w+)(?:: (\w+))?`")


def declared(**kinds: str) -> Mapping[str, str]:
    """The kinds of row of a result, the default first, each with a sentence that lists its columns.

    Names of columns are in backticks, with the type of those that are not text: int, float, bool, texts,
    ints, or interval for the columns of an `Estimate`, of which those of bounds end in `_low` and `_high`.
    NaN is null. `Tabular.to_arrow` and the docstring of the class follow from it.
    """
    return kinds


def lines(*parts: object) -> list[str]:
    """Lines of notes: the parts that are not empty, so that `n and f"{n} are left out"` is one or none."""
    return [str(part) for part in parts if part]


class _Cells(Formatter):
    """Templates of cells, in which a value that is missing or empty is a dash."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return "–" if value is None or value == "" else format(value, format_spec)


@dataclass_transform(eq_default=False, frozen_default=True)
class Tabular(ABC):
    """A result in tables: printed as text, in a notebook as HTML, in `to_arrow` and `to_frame` as rows.

    Every kind of result is a frozen dataclass.

    >>> class Votes(Tabular):
    ...     rows_by = declared(vote="`person`, and `times: int` that they voted")
    ...     tables = property(lambda votes: votes.table("Votes", {"who": "{person:.3}", "n": "{times:,}"}))
    ...     def _rows(self, by): return [{"person": "annabel", "times": 1200}]
    >>> Votes().to_arrow().to_pylist()
    [{'person': 'annabel', 'times': 1200}]
    >>> print(Votes())
    Votes
    who      n
    ann  1,200
    """

    #: The kinds of row of `to_arrow`, the default first: `declared`, or their names.
    rows_by: ClassVar[Mapping[str, str] | tuple[str, ...]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(frozen=True, eq=False, repr=False)(cls)
        if isinstance(kinds := vars(cls).get("rows_by"), Mapping):
            rows = [fill(f'Rows by "{by}": {columns}.', 100) for by, columns in kinds.items()]
            cls.__doc__ = "\n\n".join([cleandoc(cls.__doc__ or ""), *rows])
        for name in {"to_html", "save", "plot"} & vars(cls).keys():
            setattr(cls, name, checked(getattr(cls, name)))

    @property
    @abstractmethod
    def tables(self) -> Sequence[Table]:
        """The tables that are printed."""

    @property
    def notes(self) -> Sequence[str]:
        """Lines below the tables: what the numbers rest on, what was left out."""
        return ()

    @abstractmethod
    def _rows(self, by: str) -> pa.Table | Iterable[Any]:
        """The rows of a kind, each an object or mapping that has the columns, or several in a tuple."""

    @checked
    def to_arrow(self, *, by: str | None = None) -> pa.Table:
        """A `pyarrow.Table` with a row per `by`; raises `UnknownNameError` for another kind of row."""
        by = next(iter(self.rows_by)) if by is None else by
        if by not in self.rows_by:
            raise UnknownNameError("kind of row", by, self.rows_by)
        rows = self._rows(by)
        if isinstance(rows, pa.Table):
            return rows
        columns = _COLUMN.findall(self.rows_by[by]) if isinstance(self.rows_by, Mapping) else []
        if not columns:
            return pa.Table.from_pylist(rows)
        # By column its type, and the path by which a row has it: an interval is three columns.
        plain: list[tuple[str, str, tuple[str, ...]]] = []
        for name, type in columns:
            if type == "interval":
                ends = (("", "value"), ("_low", "low"), ("_high", "high"))
                plain += [(name + suffix, "float", (name, end)) for suffix, end in ends]
            else:
                plain.append((name, type, (name,)))
        schema = pa.schema([(name, _TYPES[type]) for name, type, _ in plain])
        return pa.Table.from_pylist(
            [{name: _value(row, path, type) for name, type, path in plain} for row in rows], schema
        )

    def to_frame(self, *, by: str | None = None) -> Any:
        """`to_arrow` as a `pandas.DataFrame`; where pandas is not installed the `pyarrow.Table` itself."""
        table = self.to_arrow(by=by)
        return table if find_spec("pandas") is None else table.to_pandas()

    def table(
        self,
        caption: str,
        heads: Mapping[str | Column, str | Callable[[Mapping[str, Any]], object]],
        *,
        by: str | None = None,
        sort: Callable[[Mapping[str, Any]], Any] | None = None,
    ) -> tuple[Table, ...]:
        """A printed table of one kind of rows, none where there are no rows.

        Below each head stands a template such as "{items:,}" or a function of the row; below a `Column` the
        number of that name with its interval.
        """
        if not isinstance(heads, Mapping):
            raise InputError("wrong type", where="heads", given=type(heads).__name__, allowed="cells by head")
        rows = self.to_arrow(by=by).to_pylist()
        if sort is not None:
            rows.sort(key=sort)
        corner, *others = heads
        cells = [[_cell(row, head, of) for head, of in heads.items()] for row in rows]
        return (Table.of(caption, str(corner), others, cells),) if rows else ()

    def to_json(self) -> Any:
        """The result as plain values, as its command writes them with --json."""
        return {f"{by}s": self.to_arrow(by=by).to_pylist() for by in self.rows_by}

    def __repr__(self) -> str:
        by = next(iter(self.rows_by))
        return f"<{type(self).__name__}: {amount(len(self.to_arrow()), by)}>"

    def __str__(self) -> str:
        return "\n".join(["\n\n".join(map(to_text, self.tables)), *self.notes])

    def _repr_html_(self) -> str:
        from counterfoil.report.html import fragment

        return fragment(self.tables, self.notes)


def _value(row: Any, path: tuple[str, ...], type: str) -> Any:
    """The value of a column, None for NaN; where the row's part with it is None, "" of texts, else None."""
    for name in path:
        parts = row if isinstance(row, tuple) else (row,)
        for part in parts:
            if isinstance(part, Mapping):
                if name in part:
                    row = part[name]
                    break
            elif hasattr(part, name):
                row = getattr(part, name)
                break
        else:
            if any(part is None for part in parts):
                return None if type else ""
            raise AttributeError(f"no part of the row has {name!r}")
    return None if row != row else row


def _cell(row: Mapping[str, Any], head: str | Column, of: Any) -> object:
    if callable(of):
        return of(row)
    if isinstance(head, Column):
        return row[of], row.get(f"{of}_low"), row.get(f"{of}_high")
    try:
        return _Cells().vformat(of, (), row)
    except (AttributeError, LookupError, TypeError, ValueError):
        fields = [f"{{{name}}}" for name in row]
        raise InputError("no template of a cell", where=head, given=of, allowed=fields) from None


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
        pages = [to_markdown(table) for table in self.text_tables]
        return "\n".join([*pages, *(f"{note}.\n" for note in self.notes)])

    def to_latex(self) -> str:
        """The tables as LaTeX floats (booktabs), with intervals; best in bold, second best underlined."""
        pages = [to_latex(table) for table in self.text_tables]
        return "\n".join([*pages, *(f"% {note}.\n" for note in self.notes)])

    def to_csv(self) -> str:
        """The tables as CSV: a line per number at full precision, with interval and count."""
        return to_csv(*self.csv_tables)


def write_page(comparisons: Sequence[Comparison], path: str | Path, *, overwrite: bool, **how: Any) -> None:
    """Write the page of these comparisons as `report.page.page` makes it; needs matplotlib."""
    from counterfoil.report.figure_style import check
    from counterfoil.report.page import page

    check()
    write(path, page(comparisons, **how), command="compare", overwrite=overwrite)


def write(path: str | Path, text: str, *, command: str, overwrite: bool) -> None:
    """Write a text file as `guarded_file` allows it."""
    with guarded_file(path, command=command, overwrite=overwrite):
        write_text(Path(path), text)


def measure_rows(run: Run) -> list[dict[str, Any]]:
    """A row per measure over all questions, and per group, as `EvaluationRun.to_arrow` describes them."""
    names, numbers = {"benchmark": run.benchmark.name, "model": run.name}, [f.name for f in fields(Estimate)]
    return [
        {**names, "group": group, "measure": measure, **{name: getattr(estimate, name) for name in numbers}}
        for group, estimates in {"": run.result.measures, **run.result.groups}.items()
        for measure, estimate in estimates.items()
    ]
