"""`counterfoil annotate`: people in the loop, from the question to agreement to a benchmark."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from counterfoil.cli import usage
from counterfoil.cli.list import Json as Printed
from counterfoil.cli.list import print_facts, print_json, print_table
from counterfoil.cli.options import Draws, Html, Json, Overwrite, Seed

#: Every command, in the order of `--help`. What they write is about people, so that it is its owner's alone.
COMMANDS = {
    "forms": "annotate:forms",
    "create": "annotate_campaign:create",
    "plan": "annotate_campaign:plan",
    "simulate": "annotate_campaign:simulate",
    "status": "annotate:status",
    "agreement": "annotate:agreement",
    "review": "annotate_review:review",
    "approve": "annotate_review:approve",
    "reject": "annotate_review:reject",
    "adjudicate": "annotate_review:adjudicate",
    "withdraw": "annotate_review:withdraw",
    "readmit": "annotate_review:readmit",
    "delete-after": "annotate_review:delete_after",
    "export": "annotate:export",
    "import": "annotate:import_",
    "serve": "annotate_campaign:serve",
    "links": "annotate_campaign:links",
    "prolific": "annotate_prolific:app",
}

app = typer.Typer(
    cls=usage.lazily(COMMANDS, usage.for_owner),
    help="People judge images and captions in the browser: blind, several per item, from one folder.",
    no_args_is_help=True,
    epilog="Start with: counterfoil annotate forms",
)


@app.callback()
def _group() -> None:
    """A group of commands, made when they are asked for."""


def forms(
    name: Annotated[
        str | None, typer.Argument(metavar="FORM", help="Show columns and settings of this one.")
    ] = None,
    json: Printed = False,
) -> None:
    """The forms of work: what is asked, and which columns a table of items needs."""
    from counterfoil.annotate.forms.registry import WORK_FORMS

    if name is None:
        entries = [WORK_FORMS[form_name] for form_name in WORK_FORMS]
        facts = [{"name": e.name, "columns": dict(e.kind.columns), "summary": e.summary} for e in entries]
        if json:
            print_json(facts)
        else:
            print_table(
                ("form", "columns", "what is asked"),
                [(e.name, ", ".join(e.kind.columns), e.summary) for e in entries],
            )
        return
    described = WORK_FORMS.find(name).facts
    if json:
        print_json(described)
    else:
        print_facts({key: value for key, value in described.items() if value != {}})


FORMS_EPILOG = """Examples:
  counterfoil annotate forms
  counterfoil annotate forms best-of-k"""


AGREEMENT_EPILOG = """Examples:
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
) -> None:
    """How far people agree: raw, Cohen's and Fleiss' kappa, Krippendorff's alpha, with intervals.

    Per question and kind of item. Golden items and the test before the work do not count. Intervals (95 %)
    are over items and people.
    """
    from counterfoil import terminal
    from counterfoil.cli import paths
    from counterfoil.cli.tables import show_with_json
    from counterfoil.jobs.annotate_agreement import annotate_agreement
    from counterfoil.jobs.feedback import terminal_feedback

    paths.check(json=json, html=html)
    agreements = annotate_agreement(
        source,
        campaign=campaign,
        database=database,
        scale=scale,
        by_kind=not no_kinds,
        draws=draws,
        seed=seed,
        feedback=terminal_feedback(),
    )
    show_with_json(agreements, json)
    if html is not None:
        agreements.to_html(html)
        terminal.note(f"page written to {html}")


STATUS_EPILOG = """Examples:
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
) -> None:
    """Where a campaign stands: people, answers, what is needed, expected end, time, pay, golden items.

    It reads the database, also while the campaign is served, and changes nothing.
    """
    from counterfoil import terminal
    from counterfoil.cli import paths
    from counterfoil.cli.list import print_facts
    from counterfoil.cli.tables import show
    from counterfoil.jobs.annotate_serve import annotate_status

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


EXPORT_EPILOG = """Examples:
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
) -> None:
    """Write a campaign's answers as tables: judgements, labels with their posterior, and what other commands
    of counterfoil read.

    Which tables there are depends on the form of work. People are hashes that only this campaign has.
    """
    from counterfoil.cli import paths
    from counterfoil.cli.tables import show_with_json
    from counterfoil.jobs.annotate_exchange import annotate_export
    from counterfoil.jobs.feedback import terminal_feedback

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
        feedback=terminal_feedback(),
    )
    show_with_json(exported, json)


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
) -> None:
    """Read judgements of Mechanical Turk, Label Studio or a table into the one table of judgements.

    Ids of people are not kept unless asked for: those of Mechanical Turk lead to profiles.
    """
    from counterfoil import terminal
    from counterfoil.annotate.judgement_table import write_judgement_table
    from counterfoil.annotate.platforms.mturk_files import HitLayout
    from counterfoil.cli import paths
    from counterfoil.cli.list import print_facts
    from counterfoil.errors import InputError
    from counterfoil.jobs.annotate_exchange import import_judgements

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
    write_judgement_table(out, imported.table)
    if json is not None:
        terminal.write_result(json, imported.facts)
    if json != "-" and not terminal.quiet:
        print_facts({name: f"{count:,}" for name, count in imported.facts.items()})
