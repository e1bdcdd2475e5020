"""`counterfoil reproduce`: the papers' numbers beside the recomputed ones."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from counterfoil.report.ledger import Entry

EPILOG = """Examples:

  counterfoil reproduce --data data/

  counterfoil reproduce --paper winoground --data data/ --only differs

  counterfoil reproduce --data data/ --json ledger.json"""


def command(
    paper: Annotated[list[str] | None, typer.Option(help="Only this paper; may be repeated.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the released files; default: COUNTERFOIL_DATA.")
    ] = None,
    only: Annotated[
        Literal["same", "differs", "no-data"] | None, typer.Option(help="Show only cells of this verdict.")
    ] = None,
    json: Annotated[str | None, typer.Option(metavar="PATH|-", help="Write the ledger as JSON here.")] = None,
) -> None:
    """Recompute what the papers print, as far as the data at hand allow, and show both.

    Each cell is "same" (to the printed digit), "differs" (with the reason where it is known) or "no data"
    (with what is missing).
    """
    from counterfoil.cli import terminal
    from counterfoil.cli.session import data_folder
    from counterfoil.errors import DataError
    from counterfoil.report.ledger import reproduce

    folder = data_folder(data)
    if folder is not None and not folder.is_dir():
        raise DataError("no such folder", where=folder, hint="check --data")
    with terminal.progress() as report:
        entries = reproduce(data=folder, papers=paper, progress=report)
    shown = [entry for entry in entries if only is None or entry.verdict == only.replace("-", " ")]
    if json is not None:
        terminal.write_result(json, [entry.to_json() for entry in shown])
    if json != "-":
        _show(shown, entries)


def _show(shown: "Sequence[Entry]", entries: "Sequence[Entry]") -> None:
    """Paper by paper, table by table: one paragraph per row, then what differs and why, then the count."""
    from itertools import groupby

    from rich.columns import Columns
    from rich.padding import Padding
    from rich.text import Text

    from counterfoil.cli import terminal
    from counterfoil.report.ledger import Verdict, summary

    console = terminal.out()
    for (paper, title), of_paper in groupby(shown, key=lambda e: (e.paper, e.title)):
        console.print(Text(f"{title} ({paper})", style="bold"))
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
    counts = summary(entries)
    console.print(
        Text("\n" + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()), style="bold")
    )


def _cell(entry: "Entry") -> "Text":
    from rich.text import Text

    from counterfoil.report.ledger import Verdict

    same = entry.verdict is Verdict.SAME
    cell = Text(f"{entry.column} ", style="dim", no_wrap=True)
    cell.append(
        f"{entry.printed} {'=' if same else '≠'} {entry.rounded}", style="green" if same else "bold yellow"
    )
    return cell
