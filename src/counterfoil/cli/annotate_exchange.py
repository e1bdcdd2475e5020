"""`counterfoil annotate import`: judgements of other tools."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from counterfoil.cli.options import Json, Overwrite, Quiet

IMPORT_EPILOG = """Examples:

  counterfoil annotate import results.csv --from mturk --item "Input.image{n}" --item "Input.caption{n}"
  --question "match=Answer.match{n}" --out judgements.parquet

  counterfoil annotate import export.json --from label-studio --config labelling.xml --out judgements.csv

  counterfoil annotate import answers.csv --from table --campaign campaign/ --out judgements.parquet

The table that comes out has a row per item, person and question (columns item, person, question, answer,
seconds, golden); all that analyses judgements reads it. {n} stands for the number of an item in its HIT."""


def import_(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Results, an export, or a table.")],
    source: Annotated[
        Literal["mturk", "label-studio", "table"], typer.Option("--from", help="The tool that it came from.")
    ],
    out: Annotated[Path, typer.Option(help="Write the judgements here (.csv or .parquet).")],
    item: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Mechanical Turk: input columns that together name an item."),
    ] = None,
    question: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=COLUMN", help="Mechanical Turk: a question and its answer column."),
    ] = None,
    many: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Mechanical Turk: a question with several options as an answer."),
    ] = None,
    golden: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Mechanical Turk: the right answer of the first question."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="XML", help="Label Studio: the labelling configuration.")
    ] = None,
    campaign: Annotated[
        Path | None,
        typer.Option(help="Hash ids as this campaign does, and judge its golden items."),
    ] = None,
    keep_ids: Annotated[
        bool, typer.Option("--keep-ids", help="Leave ids of people as they are; else they are numbered.")
    ] = False,
    json: Json = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Read judgements of Mechanical Turk, Label Studio or a table into the one table of judgements.

    Ids of people are not kept unless asked for: those of Mechanical Turk lead to profiles.
    """
    from counterfoil.annotate.platforms.mturk_files import HitLayout
    from counterfoil.cli import paths, terminal
    from counterfoil.cli.list import print_facts
    from counterfoil.errors import InputError
    from counterfoil.tasks.annotate_exchange import import_judgements, write_judgements

    paths.check(table=out, json=json)
    questions: dict[str, str] = {}
    for pair in question or ():
        name, sign, column = pair.partition("=")
        if not name.strip() or not sign or not column.strip():
            raise InputError("no question", where="--question", given=pair, allowed="NAME=COLUMN")
        questions[name.strip()] = column.strip()
    usual = HitLayout()
    layout = HitLayout(tuple(item or usual.item), questions or usual.questions, frozenset(many or ()), golden)
    imported = import_judgements(
        path, source, layout=layout, config=config, campaign=campaign, keep_ids=keep_ids
    )
    write_judgements(imported, out)
    if json is not None:
        terminal.write_result(json, imported.facts)
    if json != "-" and not quiet:
        print_facts({name: f"{count:,}" for name, count in imported.facts.items()})
