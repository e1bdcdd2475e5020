"""`counterfoil preferences`: strengths from pairwise votes, with intervals."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from counterfoil.cli.options import Draws, Json, Overwrite, Seed

if TYPE_CHECKING:
    from counterfoil.evaluation.preferences import Preferences

EPILOG = """Examples:

  counterfoil preferences votes.csv

  counterfoil preferences votes.csv --plot strengths.svg --json strengths.json

votes.csv has a row per vote (columns winner, loser; optionally count, judge), or is a square table: the names
in its first column and in its header, each cell the votes for its row against its column."""


def command(
    votes: Annotated[Path, typer.Argument(help="Votes: CSV, TSV, JSON, JSON Lines or Parquet.")],
    plot: Annotated[Path | None, typer.Option(help="Draw the strengths here (svg, pdf, png).")] = None,
    json: Json = None,
    own: Annotated[
        Literal["leave-out", "error"],
        typer.Option("--self-votes", help="What becomes of votes for something over itself."),
    ] = "leave-out",
    draws: Draws = 10_000,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Who is preferred to whom: Bradley-Terry strengths from votes between two at a time.

    Intervals resample whole judges where a column says who voted (judge, worker, annotator or cluster), else
    the votes of each pair. The same seed gives the same numbers.
    """
    from counterfoil.cli import paths, terminal
    from counterfoil.report.labels import amount
    from counterfoil.tasks.preferences import preferences

    paths.check(json=json, plot=plot)
    result = preferences(votes, self_votes=own, draws=draws, seed=seed)
    found = result.strengths
    console = terminal.err() if json == "-" else terminal.out()
    for part in _shown(found, result.heading, console.width):
        console.print(part)
    if found.own:
        terminal.warn(f"left out, since they prefer something to itself: {amount(found.own, 'vote')}")
    if found.separated:
        # Where it is rare it does not reach the ends of a 95 % interval.
        say = terminal.warn if found.separated > 0.02 * draws else terminal.note
        say(result.separation)
    if json is not None:
        terminal.write_result(json, result.to_json())
    if plot is not None:
        from counterfoil.report.drawing import save

        save(result.plot(), plot, title="Bradley-Terry strengths")
        terminal.note(f"strengths drawn in {plot}")


def _shown(found: "Preferences", title: str, width: int) -> list[Any]:
    """The table of strengths, with chances against each other where there is room, and the order."""
    from rich.table import Table
    from rich.text import Text

    from counterfoil.report.drawing import short

    heading = Text(title, style="bold")
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("name", no_wrap=True)
    table.add_column("strength", justify="right", no_wrap=True)
    table.add_column("95 % interval", justify="center", no_wrap=True)
    table.add_column("rank", justify="center", no_wrap=True)
    # Each chance is about as wide as its name or "100 %".
    against = [i for i in found.order if max(len(found.names[j]) for j in found.order) <= 16]
    room = sum(max(len(found.names[i]) + 5, 7) + 1 for i in against)
    beside = bool(against) and room + max(len(n) for n in found.names) + 38 <= width
    for i in against if beside else ():
        table.add_column(Text(f"over {found.names[i]}"), justify="right", no_wrap=True)
    for i in found.order:
        low, high = found.ranks[i]
        cells = []
        for j in against if beside else ():
            surely = "bold" if found.apart[i, j] and found.chance[i, j] > 0.5 else ""
            cells.append(Text("" if i == j else f"{100 * found.chance[i, j]:.1f} %", style=surely))
        table.add_row(
            Text(short(found.names[i], max(12, width - 38))),
            Text(f"{found.strength[i]:.2f}", style="bold"),
            Text(f"[{found.low[i]:.2f}, {found.high[i]:.2f}]"),
            str(low) if low == high else f"{low} to {high}",
            *cells,
        )
    order = Text("order: ", style="dim").append(Text(found.written_order, style="not dim"))
    parts: list[Any] = [heading, table, order]
    if " ≈ " in found.written_order:
        parts.append(Text("≈: neighbours that these votes do not tell apart", style="dim"))
    return parts
