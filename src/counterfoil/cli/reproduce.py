"""`counterfoil reproduce`: the papers' numbers beside the recomputed ones."""

from pathlib import Path
from typing import Annotated, Literal

import typer

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
        _show(shown, entries, folder)


def _show(shown: list, entries: tuple, folder: Path | None) -> None:  # type: ignore[type-arg]
    raise NotImplementedError
