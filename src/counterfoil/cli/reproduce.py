"""`counterfoil reproduce`: the papers' numbers beside the recomputed ones."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from counterfoil.cli import options
from counterfoil.cli.options import Json, Overwrite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from counterfoil.report.reproduction import Entry

#: Stands after the column of a number that follows from others printed in the same paper, or from arithmetic.
DERIVED_MARK = "†"

EPILOG = """Examples:
  counterfoil reproduce --data data/
  counterfoil reproduce --paper winoground --data data/ --only differs
  counterfoil reproduce --data data/ --json ledger.json
  counterfoil reproduce --data data/ --files

Files are looked for in --data under names such as bivlc/ViT-B-32.csv and winoground/scores/clip.jsonl, or
anywhere in it under the names they were published with (BiVLC_ViT-B-32.csv); --files lists all of them."""


def command(
    paper: Annotated[
        list[str] | None,
        typer.Option(
            help="bivlc, eccv-caption, pac-s or winoground; may be repeated.",
            autocompletion=options.complete_papers,
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the released files; default: COUNTERFOIL_DATA.")
    ] = None,
    only: Annotated[
        Literal["same", "differs", "no-data"] | None, typer.Option(help="Show only cells of this verdict.")
    ] = None,
    basis: Annotated[
        Literal["data", "derived"] | None,
        typer.Option(help="Show only cells recomputed from data, or derived from other printed numbers."),
    ] = None,
    files: Annotated[
        bool, typer.Option("--files", help="List the files that are looked for, and which are there.")
    ] = False,
    json: Json = None,
    overwrite: Overwrite = False,
) -> None:
    """Recompute what the papers print, as far as the data at hand allow, and show both.

    Each cell is "same" (to the printed digit), "differs" (with the reason where it is known) or "no data"
    (with what is missing). Cells that follow from other numbers printed in the same paper are marked and
    counted apart from those recomputed from data.
    """
    from counterfoil import terminal
    from counterfoil.cli import paths
    from counterfoil.cli.paths import data_folder
    from counterfoil.errors import DataError
    from counterfoil.jobs.feedback import terminal_feedback
    from counterfoil.jobs.reproduce import reproduce

    folder = data_folder(data)
    if folder is not None and not folder.is_dir():
        raise DataError("no such folder", where=folder, hint="check --data")
    paths.check(json=json)
    if files:
        _list_files(folder, paper, json)
        return
    ledger = reproduce(folder, paper, feedback=terminal_feedback())
    shown = ledger.only(None if only is None else only.replace("-", " "), basis)
    if json is not None:
        terminal.write_result(json, shown.to_json())
    if json != "-":
        _show(shown.entries, ledger.entries)


def _list_files(folder: Path | None, papers: "Sequence[str] | None", json: str | None) -> None:
    from counterfoil import terminal
    from counterfoil.cli.tables import word_table
    from counterfoil.report.reproduction import files

    rows = files(data=folder, papers=papers)
    if json is not None:
        keys = ("paper", "file", "found")
        terminal.write_result(json, [dict(zip(keys, row, strict=True)) for row in rows])
    if json != "-":
        console = terminal.out()
        shown = [(paper, name, state or "not there") for paper, name, state in rows]
        for part in word_table(("paper", "file", "found"), shown, console.width):
            console.print(part)


def _show(shown: "Sequence[Entry]", entries: "Sequence[Entry]") -> None:
    """Paper by paper, table by table: one paragraph per row, then what differs and why, then the count."""
    from itertools import groupby

    from rich.columns import Columns
    from rich.padding import Padding
    from rich.text import Text

    from counterfoil import terminal
    from counterfoil.jobs.reproduce import BASES
    from counterfoil.report.reproduction import Basis, Verdict, by_basis

    console = terminal.out()
    for (_, title), of_paper in groupby(shown, key=lambda e: (e.paper, e.title)):
        console.print(Text(title, style="bold"))
        for table, of_table in groupby(of_paper, key=lambda e: e.table):
            console.print(Text(f"  {table}", style="bold cyan"))
            for row, of_row in groupby(of_table, key=lambda e: e.row):
                cells = list(of_row)
                computed = [e for e in cells if e.verdict is not Verdict.NO_DATA]
                console.print(Padding(Text(row), (0, 0, 0, 4)))
                if computed:
                    console.print(
                        Padding(Columns([_cell(e) for e in computed], padding=(0, 3)), (0, 0, 0, 6))
                    )
                for reason in dict.fromkeys(e.reason for e in cells if e.verdict is Verdict.NO_DATA):
                    count = sum(e.verdict is Verdict.NO_DATA and e.reason == reason for e in cells)
                    console.print(Padding(Text(f"no data for {count}: {reason}", style="dim"), (0, 0, 0, 6)))
    differing = [e for e in shown if e.verdict is Verdict.DIFFERS]
    if differing:
        console.print(Text("\nWhat differs, printed ≠ recomputed", style="bold"))
        alike: dict[tuple[str, str, str], list[Entry]] = {}
        for e in differing:
            alike.setdefault((e.paper, e.table, e.reason), []).append(e)
        for (number, table, reason), cells in alike.items():
            numbers = "; ".join(f"{e.row}, {e.column}: {e.printed} ≠ {e.rounded}" for e in cells)
            why = Text(reason or "No reason is known.", style="" if reason else "bold red")
            head = Text(f"{number} {table}, {numbers}. ", style="yellow")
            console.print(Padding(head + why, (0, 0, 0, 2)))
    counts = by_basis(entries)
    console.print()
    for basis, label in BASES.items():
        of = counts[basis]
        label += f" ({DERIVED_MARK})" if basis is Basis.DERIVED else ""
        line = f"{label}: {of['same']:,} same, {of['differs']:,} differ, {of['unexplained']:,} unexplained"
        console.print(Text(line, style="bold"))
    console.print(Text(f"no data: {counts[Basis.NONE]['no data']:,}", style="bold"))


def _cell(entry: "Entry") -> "Text":
    from rich.text import Text

    from counterfoil.report.reproduction import Basis, Verdict

    same = entry.verdict is Verdict.SAME
    mark = DERIVED_MARK if entry.basis is Basis.DERIVED else ""
    cell = Text(f"{entry.column}{mark} ", style="dim", no_wrap=True)
    cell.append(
        f"{entry.printed} {'=' if same else '≠'} {entry.rounded}", style="green" if same else "bold yellow"
    )
    return cell
