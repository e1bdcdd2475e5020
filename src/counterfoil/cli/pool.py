"""`counterfoil pool`: candidate pairs for people to verify, from what several models put first."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from counterfoil.cli.options import Ids, Json, Overwrite, Quiet, Scores
from counterfoil.inputs.amounts import most

if TYPE_CHECKING:
    from counterfoil.evaluation.pooling import Summary

EPILOG = """Examples:

  counterfoil pool runs/*/eccv --k 5 --out pool.csv

  counterfoil pool pvse.npz vsrn.npz clip.npz --queries queries.txt --direction t2i --out pool.parquet

  counterfoil pool runs/*/eccv similarity.npy --ids ids.npz --k 25 --plot yield.svg --json -

queries.txt has an id per line, of an image or a caption; where an id is both, write i2t/ID or t2i/ID. Give
people the table with a column `answer` to fill in, and hand it to `counterfoil bias --judgements`."""


def command(
    scores: Scores,
    k: Annotated[
        int, typer.Option(min=1, max=most("k"), help="How many items each model proposes per query.")
    ] = 5,
    queries: Annotated[
        Path | None, typer.Option(help="Ids of the queries: one per line, or a table's column query or id.")
    ] = None,
    direction: Annotated[
        Literal["t2i", "i2t", "both"],
        typer.Option(help="Captions ask for images (t2i), images for captions (i2t), or both."),
    ] = "both",
    out: Annotated[Path | None, typer.Option(help="Write the pairs here (.csv or .parquet).")] = None,
    ids: Ids = None,
    exclude_known: Annotated[
        bool,
        typer.Option(
            "--exclude-known", help="Leave out pairs that are right in the runs' benchmark already."
        ),
    ] = False,
    per_task: Annotated[int, typer.Option(min=1, max=most("people"), help="Pairs to judge per task.")] = 18,
    golden: Annotated[
        int, typer.Option(min=0, max=most("people"), help="Pairs of known answer in each task beside them.")
    ] = 2,
    answers: Annotated[
        int, typer.Option(min=1, max=most("people"), help="How many people judge each pair.")
    ] = 1,
    price: Annotated[float, typer.Option(min=0, max=most("price"), help="Price of a task.")] = 1.4,
    plot: Annotated[Path | None, typer.Option(help="Draw the yield curve here (svg, pdf, png).")] = None,
    json: Json = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Pool what several models put first, each pair once, with who proposed it at which place.

    Tasks and prices default to those of ECCV Caption: 18 pairs to judge and 2 of known answer for 1.40.
    """
    from counterfoil.cli import paths, terminal
    from counterfoil.data.pools import pool_kind
    from counterfoil.evaluation.pooling import Tasks
    from counterfoil.tasks.pool import pool

    paths.check(table=out, json=json, plot=plot)
    if out is not None:
        pool_kind(out)
    found = pool(
        scores,
        k=k,
        queries=queries,
        direction=direction,
        ids=ids,
        exclude_known=exclude_known,
        tasks=Tasks(per_task, golden, answers, price),
        feedback=terminal.feedback(quiet=quiet),
    )
    console = terminal.err() if json == "-" else terminal.out()
    for part in () if quiet and json == "-" else _shown(found.summary, console.width):
        console.print(part)
    if out is not None:
        found.save(out)
        if not quiet:
            terminal.note(f"{len(found.pairs):,} rows written to {out}")
    if json is not None:
        terminal.write_result(json, found.to_json())
    if plot is not None:
        from counterfoil.report.drawing import save

        save(found.plot(), plot, title="Pairs to verify by models and k")
        if not quiet:
            terminal.note(f"yield curve drawn in {plot}")


def _shown(found: "Summary", width: int) -> list[Any]:
    from rich.table import Table
    from rich.text import Text

    from counterfoil.report.drawing import short

    heading = Text(found.heading, style="bold")
    by_model = Table(box=None, pad_edge=False, header_style="dim")
    by_model.add_column("model", no_wrap=True)
    for head in ("proposes", "alone", "new in this order"):
        by_model.add_column(head, justify="right")
    for name, proposed, alone, new in zip(found.models, found.proposed, found.alone, found.new, strict=True):
        by_model.add_row(Text(short(name, max(12, width - 47))), f"{proposed:,}", f"{alone:,}", f"{new:,}")
    curve = Table(box=None, pad_edge=False, header_style="dim")
    curve.add_column("pairs by k", no_wrap=True)
    ks = _columns(found.k, max(1, (width - 12) // 11))
    for j in ks:
        curve.add_column(str(j), justify="right", no_wrap=True)
    for m, row in enumerate(found.curve):
        curve.add_row(f"{m + 1} model{'s' if m else ''}", *(f"{row[j - 1]:,.0f}" for j in ks))
    lines = [Text(line) for line in found.lines()]
    return [heading, by_model, Text(), curve, Text(), *lines]


def _columns(k: int, most: int) -> list[int]:
    """The numbers from 1 to k that fit, both ends among them."""
    if k <= most:
        return list(range(1, k + 1))
    most = max(most, 2)
    return sorted({1 + round(i * (k - 1) / (most - 1)) for i in range(most)})
