"""The ledger as a result in tables: the papers' numbers beside the recomputed ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from counterfoil.errors import DataError
from counterfoil.jobs.feedback import SILENT, Feedback
from counterfoil.jobs.results import Tabular
from counterfoil.report import reproduction
from counterfoil.report.reproduction import Basis, Entry, by_basis
from counterfoil.report.tables import Cell, Column, Row, Table

#: What the totals of each basis are called.
BASES = {Basis.DATA: "recomputed from data", Basis.DERIVED: "derived from other printed numbers"}


@dataclass(frozen=True, eq=False, repr=False)
class Ledger(Tabular):
    """Every number that the papers print in the tables of the ledger, beside the recomputed one.

    Rows are one per printed number: `paper`, `name`, `title`, `table`, `row`, `column`, `printed`, `value`,
    `digits`, `recomputed` (None without data), `verdict` ("same", "differs", "no data"), `reason`, `source`,
    `basis`.
    """

    entries: tuple[Entry, ...]

    rows_by = ("number",)

    def _rows(self, by: str) -> pa.Table:
        return pa.Table.from_pylist(self.to_json())

    @property
    def tables(self) -> tuple[Table]:
        """How many numbers are the same and how many differ, by what they were recomputed from."""
        heads = ("same", "differs", "unexplained")
        counts = by_basis(self.entries)
        rows = tuple(
            Row(words, tuple(Cell(f"{counts[basis][head]:,}") for head in heads))
            for basis, words in BASES.items()
        )
        return (
            Table(
                "Printed and recomputed numbers", tuple(Column(head, style="text") for head in heads), rows
            ),
        )

    @property
    def notes(self) -> list[str]:
        """How many numbers there are no data for."""
        return [f"no data: {by_basis(self.entries)[Basis.NONE]['no data']:,}"]

    def __repr__(self) -> str:
        papers = dict.fromkeys(entry.name for entry in self.entries)
        return f"<Ledger of {len(self.entries):,} numbers of {', '.join(papers)}>"

    def only(self, verdict: str | None = None, basis: str | None = None) -> "Ledger":
        """The numbers of one verdict ("same", "differs", "no data"), of one basis ("data", "derived")."""
        return Ledger(
            tuple(
                entry
                for entry in self.entries
                if verdict in (None, entry.verdict) and basis in (None, entry.basis)
            )
        )

    def to_json(self) -> list[dict[str, Any]]:
        """All of it as plain values, as `reproduce --json` writes it."""
        return [entry.to_json() for entry in self.entries]


def reproduce(
    data: str | Path | None = None, papers: str | Sequence[str] | None = None, *, feedback: Feedback = SILENT
) -> Ledger:
    """What the papers print, recomputed as far as the released files in `data` allow.

    `papers` are names such as "bivlc" and "winoground", by default all. Raises `UnknownNameError` for an
    unknown paper, and `DataError` where a file is there but cannot be used.

    >>> found = reproduce(papers="bivlc").only("same")
    >>> [(entry.table, entry.printed, entry.rounded) for entry in found.entries][-1]
    ('Table 7', '0.49', '0.49')
    """
    folder = None if data is None else Path(data)
    if folder is not None and not folder.is_dir():
        raise DataError("no such folder", where=folder, hint="check --data")
    named = (papers,) if isinstance(papers, str) else papers
    with feedback.progress() as progress:
        return Ledger(reproduction.reproduce(data=folder, papers=named, progress=progress))
