"""`counterfoil annotate status`: progress, time, pay and what is still needed."""

from pathlib import Path
from typing import Annotated

import typer

from counterfoil.cli.annotate_agreement import Database
from counterfoil.cli.options import Json, Overwrite, Quiet

EPILOG = """Examples:

  counterfoil annotate status campaign/

  counterfoil annotate status campaign/ --people

  counterfoil annotate status campaign/ --database postgresql://ann@localhost/study --json -"""

#: A campaign's folder.
Folder = Annotated[Path, typer.Argument(metavar="CAMPAIGN", help="A campaign's folder.")]


def status(
    campaign: Folder,
    people: Annotated[bool, typer.Option("--people", help="Also a line per person.")] = False,
    database: Database = None,
    json: Json = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Where a campaign stands: people, answers, what is needed, expected end, time, pay, golden items.

    It reads the database, also while the campaign is served, and changes nothing.
    """
    from counterfoil.cli import paths, terminal
    from counterfoil.cli.list import print_facts
    from counterfoil.cli.tables import show
    from counterfoil.tasks.annotate_status import annotate_status

    paths.check(json=json)
    progress = annotate_status(campaign, database=database)
    if json != "-":
        print_facts(dict(progress.facts))
        show(terminal.out(), progress.tables if people else ())
    if progress.status.overdue:
        terminal.warn(
            f"answers were to be kept until {progress.status.keep_until}: "
            "delete them with 'counterfoil annotate delete-after'"
        )
    if progress.status.pay_warning:
        terminal.warn(progress.status.pay_warning)
    if json is not None:
        terminal.write_result(json, progress.to_json())
