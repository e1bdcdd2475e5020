"""Figures that the papers print, beside those that this project computes from the data they released."""

from collections.abc import Sequence
from pathlib import Path

from counterfoil.engine.plan import Progress, silent
from counterfoil.report.reproduction.paper import (
    Basis,
    Entry,
    Paper,
    PaperRow,
    PaperTable,
    Verdict,
    all_papers,
    by_basis,
    chosen,
    judge,
    parse,
    summary,
)
from counterfoil.report.reproduction.recipes import RECIPES, Case, NoDataError, ReleasedFiles

__all__ = ["Basis", "Entry", "Verdict", "all_papers", "by_basis", "files", "reproduce", "summary"]


def reproduce(
    *, data: Path | None = None, papers: Sequence[str] | None = None, progress: Progress = silent
) -> tuple[Entry, ...]:
    """Every printed number beside the recomputed one; a broken file in `data` is an error."""
    entries: list[Entry] = []
    for paper in chosen(papers):
        evidence = ReleasedFiles(data, paper.questions, released=paper.released)
        rows = [(table, row) for table in paper.tables for row in table.rows]
        for done, (table, row) in enumerate(rows):
            progress(f"reproduce {paper.name}", done, len(rows))
            entries.extend(_row(paper, table, row, evidence))
        progress(f"reproduce {paper.name}", len(rows), len(rows))
    return tuple(entries)


def files(
    *, data: Path | None = None, papers: Sequence[str] | None = None
) -> tuple[tuple[str, str, str], ...]:
    """The files that the ledger looks for under `data`: (paper, name, the file that was found, or "")."""
    rows = []
    for paper in chosen(papers):
        evidence = ReleasedFiles(data, paper.questions, released=paper.released)
        for names in paper.files():
            file = next((path for name in names if (path := evidence.find(name)) is not None), None)
            where = "" if file is None else str(file.relative_to(data or Path()))
            rows.append((paper.name, " or ".join(names), where))
    return tuple(rows)


def _row(paper: Paper, table: PaperTable, row: PaperRow, evidence: ReleasedFiles) -> list[Entry]:
    entries = []
    for column, cell in zip(table.columns, row.cells, strict=True):
        if not cell.printed:
            continue
        spec = table.spec(row, column, cell, paper.models.get(row.name))
        reason_text = paper.reasons.get(spec.reason or "", spec.reason or "")
        result, verdict, reason = None, Verdict.NO_DATA, spec.missing or ""
        if not spec.missing:
            try:
                result = RECIPES[str(spec.recipe)](Case(paper, row.name, spec, evidence))
            except NoDataError as missing:
                reason = str(missing)
        if result is None:
            reason = f"{reason}. {reason_text}" if reason_text else reason
        else:
            verdict = judge(cell.printed, result.value)
            # A reason is about one number; any other differs for no known reason.
            other = spec.instead is not None and judge(spec.instead, result.value) is not Verdict.SAME
            reason = reason_text if verdict is Verdict.DIFFERS and not other else ""
        names = paper.called, paper.name, paper.title, table.name, row.name, column.name
        value, source, basis = result or (None, "", Basis.NONE)
        number = cell.printed, *parse(cell.printed), value
        entries.append(Entry(*names, *number, verdict, reason, source, basis))
    return entries
