"""`counterfoil annotate agreement`: how far people agree, per question and kind of item."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from counterfoil.cli.options import Draws, Html, Json, Overwrite, Quiet, Seed

EPILOG = """Examples:

  counterfoil annotate agreement campaign/

  counterfoil annotate agreement campaign/ --html agreement.html --json agreement.json

  counterfoil annotate agreement ratings.csv --scale ordinal

A table has the columns item, person, question, answer; optionally seconds, golden (right or wrong) and kind.
'counterfoil annotate import' makes it from a platform's results."""

Database = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="The campaign's database where it is not in its folder: postgresql://..."
    ),
]


def agreement(
    source: Annotated[
        Path, typer.Argument(metavar="CAMPAIGN|TABLE", help="A campaign's folder, or a table of judgements.")
    ],
    campaign: Annotated[
        Path | None,
        typer.Option(help="Of a table: the campaign whose questions it answers, for scales and readings."),
    ] = None,
    scale: Annotated[
        Literal["nominal", "ordinal", "interval"] | None,
        typer.Option(help="How near answers are for Krippendorff's alpha. Default: the question's own."),
    ] = None,
    no_kinds: Annotated[
        bool, typer.Option("--no-kinds", help="Only over all items, not by kind of item.")
    ] = False,
    database: Database = None,
    json: Json = None,
    html: Html = None,
    draws: Draws = 400,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """How far people agree: raw, Cohen's and Fleiss' kappa, Krippendorff's alpha, with intervals.

    Per question and kind of item. Golden items and the test before the work do not count. Intervals (95 %)
    are over items and people.
    """
    from counterfoil.cli import paths, terminal
    from counterfoil.cli.tables import show
    from counterfoil.tasks.annotate_agreement import annotate_agreement

    paths.check(json=json, html=html)
    agreements = annotate_agreement(
        source,
        campaign=campaign,
        database=database,
        scale=scale,
        by_kind=not no_kinds,
        draws=draws,
        seed=seed,
        feedback=terminal.feedback(quiet=quiet),
    )
    show(terminal.beside(json), () if quiet and json == "-" else agreements.tables)
    for note in () if quiet else agreements.notes:
        terminal.note(note)
    if html is not None:
        agreements.to_html(html)
        if not quiet:
            terminal.note(f"page written to {html}")
    if json is not None:
        terminal.write_result(json, agreements.to_json())
