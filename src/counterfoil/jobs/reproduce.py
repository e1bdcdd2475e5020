"""The ledger as a result in tables: the papers' numbers beside the recomputed ones."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Unpack

from counterfoil.errors import DataError
from counterfoil.jobs.job import feedback_of, job, option, path_of
from counterfoil.jobs.results import Tabular, declared
from counterfoil.jobs.shared_options import Reporting
from counterfoil.report import reproduction
from counterfoil.report.reproduction import Basis, Entry, by_basis
from counterfoil.report.tables import Column, Table

#: What is said of each released file.
_FILE = ("paper", "file", "found")
#: What the totals of each basis are called.
BASES = {Basis.DATA: "recomputed from data", Basis.DERIVED: "derived from other printed numbers"}


class Reproduction(Tabular):
    """Every number that the papers print in the tables of the ledger, beside the recomputed one."""

    #: The numbers of the verdict and the basis that are wanted, of `whole`.
    entries: tuple[Entry, ...]
    whole: tuple[Entry, ...] = ()
    files: tuple[tuple[str, str, str], ...] = ()

    rows_by = declared(
        number="one per printed number: `paper`, `name`, `title`, `table`, `row`, `column`, `printed`, "
        "`value: float`, `digits: int`, `recomputed: float` (null without data), `verdict` (same, differs, "
        "no data), `reason`, `source`, `basis`",
        file="the released files where these are listed: `paper`, `file`, `found`",
    )

    def _rows(self, by: str) -> Sequence[Any]:
        return self.entries if by == "number" else [dict(zip(_FILE, row, strict=True)) for row in self.files]

    @property
    def tables(self) -> tuple[Table]:
        """How many numbers are the same and how many differ, by what they were recomputed from."""
        if self.files:
            rows = [(paper, name, place or "not there") for paper, name, place in self.files]
            columns = [Column(head, align="left") for head in _FILE[1:]]
            return (Table.of("Released files", _FILE[0], columns, rows),)
        heads, counts = ("same", "differs", "unexplained"), by_basis(self.entries)
        numbers = [(words, *(f"{counts[basis][head]:,}" for head in heads)) for basis, words in BASES.items()]
        return (Table.of("Printed and recomputed numbers", "Model", [*map(Column, heads)], numbers),)

    @property
    def notes(self) -> list[str]:
        """How many numbers there are no data for."""
        return [] if self.files else [f"no data: {by_basis(self.entries)[Basis.NONE]['no data']:,}"]

    def only(self, verdict: str | None = None, basis: str | None = None) -> "Reproduction":
        """The numbers of one verdict ("same", "differs", "no data"), of one basis ("data", "derived")."""
        wanted = (e for e in self.entries if verdict in (None, e.verdict) and basis in (None, e.basis))
        return Reproduction(tuple(wanted), self.whole, self.files)

    def to_json(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.to_arrow(by="file" if self.files else "number").to_pylist()
        return rows


@job(
    outputs="json",
    examples="""Examples:
  counterfoil reproduce --data data/
  counterfoil reproduce --paper winoground --data data/ --only differs
  counterfoil reproduce --data data/ --json ledger.json
  counterfoil reproduce --data data/ --list-files

Files are looked for in --data under names such as bivlc/ViT-B-32.csv and winoground/scores/clip.jsonl, or
anywhere in it under the names they were published with (BiVLC_ViT-B-32.csv); --list-files lists
all of them.""",
)
def reproduce(
    data: Annotated[str | Path | None, option(flag="--data")] = None,
    papers: Annotated[str | Sequence[str], option(flag="--paper", complete="papers")] = (),
    *,
    only: Literal["same", "differs", "no-data"] | None = None,
    basis: Literal["data", "derived"] | None = None,
    files: Annotated[bool, option(flag="--list-files")] = False,
    **reporting: Unpack[Reporting],
) -> Reproduction:
    """Recompute the papers' numbers from the data at hand and show both.

    Each cell is "same" (to the printed digit), "differs" (with the reason, if known) or "no data" (with what
    is missing). Cells derived from other numbers of the same paper are marked and counted separately.

    With `files` nothing is recomputed. Raises `UnknownNameError` for an unknown paper, and `DataError` where
    a file is there but cannot be used.

    Arguments:
        data: Folder of the released files; default: COUNTERFOIL_DATA.
        papers: bivlc, eccv-caption, pac-s or winoground; may be repeated.
        only: Show only cells of this verdict.
        basis: Show only cells recomputed from data, or derived from other printed numbers.
        files: List the files that are needed, and which are present.

    >>> ledger = reproduce(papers="bivlc", only="same", quiet=True)
    >>> [(entry.table, entry.printed, entry.rounded) for entry in ledger.entries][-1]
    ('Table 7', '0.49', '0.49')
    """
    folder = path_of(data or os.environ.get("COUNTERFOIL_DATA"))
    if folder is not None and not folder.is_dir():
        raise DataError("no such folder", where=folder, hint="check --data")
    named = ((papers,) if isinstance(papers, str) else papers) or None
    if files:
        return Reproduction((), files=reproduction.files(data=folder, papers=named))
    with feedback_of(reporting).progress() as progress:
        entries = reproduction.reproduce(data=folder, papers=named, progress=progress)
    return Reproduction(entries, entries).only(only and only.replace("-", " "), basis)
