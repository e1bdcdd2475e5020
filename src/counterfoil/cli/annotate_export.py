"""`counterfoil annotate export`: judgements, labels, and what other commands read."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from counterfoil.cli.options import Json, Overwrite, Quiet

EPILOG = """Examples:

  counterfoil annotate export campaign/

  counterfoil annotate export campaign/ --out labels/ --model dawid-skene --no-people --kind parquet"""


def export(
    campaign: Annotated[Path, typer.Argument(metavar="CAMPAIGN", help="The folder of the campaign.")],
    out: Annotated[
        Path | None, typer.Option(help="The folder to write.", show_default="CAMPAIGN/export")
    ] = None,
    kind: Annotated[Literal["csv", "parquet"], typer.Option(help="The kind of table.")] = "csv",
    model: Annotated[
        str, typer.Option(help="What makes labels: one-coin, majority or dawid-skene.")
    ] = "one-coin",
    partly: Annotated[
        Literal["half", "full", "none"], typer.Option(help="Of 'match': what partly yes counts for.")
    ] = "half",
    people: Annotated[
        bool, typer.Option("--people/--no-people", help="Whether tables say who answered, by a hash.")
    ] = True,
    database: Annotated[
        str | None, typer.Option(metavar="URL", help="The database, where it is not in the folder.")
    ] = None,
    json: Json = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Write a campaign's answers as tables: judgements, labels with their posterior, and what other commands
    of counterfoil read.

    Which tables there are depends on the form of work. People are hashes that only this campaign has.
    """
    from counterfoil.cli import paths, terminal
    from counterfoil.cli.tables import show
    from counterfoil.tasks.annotate_export import annotate_export

    paths.check(json=json)
    exported = annotate_export(
        campaign,
        out,
        kind=kind,
        model=model,
        partly=partly,
        people=people,
        database=database,
        overwrite=overwrite,
        feedback=terminal.feedback(quiet=quiet),
    )
    show(terminal.beside(json), () if quiet and json == "-" else exported.tables)
    if json is not None:
        terminal.write_result(json, exported.to_json())
    for note in () if quiet else exported.notes:
        terminal.note(note)
