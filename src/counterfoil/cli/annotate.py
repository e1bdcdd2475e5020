"""`counterfoil annotate`: people in the loop, from the question to agreement to a benchmark."""

from typing import Annotated, Any

import typer

from counterfoil.cli import (
    annotate_agreement,
    annotate_create,
    annotate_exchange,
    annotate_export,
    annotate_plan,
    annotate_prolific,
    annotate_review,
    annotate_serve,
    annotate_simulate,
    annotate_status,
    usage,
)
from counterfoil.cli.list import Json, print_facts, print_json, print_table

app = typer.Typer(
    cls=usage.OneLine,
    help="People judge images and captions in the browser: blind, several per item, from one folder.",
    no_args_is_help=True,
    epilog="Start with: counterfoil annotate forms",
)


def forms(
    name: Annotated[
        str | None, typer.Argument(metavar="FORM", help="Show columns and settings of this one.")
    ] = None,
    json: Json = False,
) -> None:
    """The forms of work: what is asked, and which columns a table of items needs."""
    from counterfoil.annotate.forms.registry import WORK_FORMS

    if name is None:
        entries = [WORK_FORMS[each] for each in WORK_FORMS]
        facts = [{"name": e.name, "columns": dict(e.kind.columns), "summary": e.summary} for e in entries]
        if json:
            print_json(facts)
        else:
            print_table(
                ("form", "columns", "what is asked"),
                [(e.name, ", ".join(e.kind.columns), e.summary) for e in entries],
            )
        return
    found = WORK_FORMS.find(name).facts
    if json:
        print_json(found)
    else:
        print_facts({key: value for key, value in found.items() if value != {}})


FORMS_EPILOG = """Examples:

  counterfoil annotate forms

  counterfoil annotate forms best-of-k"""

#: Every command with its examples; a module of its own holds each that is more than a few lines. What they
#: write is about people, so that it is its owner's alone.
COMMANDS: tuple[tuple[Any, str], ...] = (
    (forms, FORMS_EPILOG),
    (annotate_create.create, annotate_create.EPILOG),
    (annotate_plan.plan, annotate_plan.EPILOG),
    (annotate_simulate.simulate, annotate_simulate.EPILOG),
    (annotate_simulate.study, annotate_simulate.STUDY_EPILOG),
    (annotate_status.status, annotate_status.EPILOG),
    (annotate_agreement.agreement, annotate_agreement.EPILOG),
    (annotate_review.review, annotate_review.REVIEW_EPILOG),
    (annotate_review.approve, annotate_review.APPROVE_EPILOG),
    (annotate_review.reject, annotate_review.REJECT_EPILOG),
    (annotate_review.adjudicate, annotate_review.ADJUDICATE_EPILOG),
    (annotate_review.withdraw, annotate_review.WITHDRAW_EPILOG),
    (annotate_review.readmit, annotate_review.READMIT_EPILOG),
    (annotate_review.delete_after, annotate_review.DELETE_EPILOG),
    (annotate_export.export, annotate_export.EPILOG),
    (annotate_exchange.import_, annotate_exchange.IMPORT_EPILOG),
    (annotate_exchange.questions, annotate_exchange.QUESTIONS_EPILOG),
    (annotate_exchange.mturk_review, annotate_exchange.MTURK_REVIEW_EPILOG),
    (annotate_serve.serve, annotate_serve.SERVE_EPILOG),
    (annotate_serve.links, annotate_serve.LINKS_EPILOG),
)
for function, epilog in COMMANDS:
    app.command(
        # A name that Python has a meaning for ends in "_".
        function.__name__.rstrip("_").replace("_", "-"),
        cls=usage.Command,
        help=usage.flowing(function.__doc__ or ""),
        epilog=usage.flowing(epilog),
    )(usage.with_levels(usage.for_owner(function)))


app.add_typer(annotate_prolific.app, name="prolific")


@app.callback()
def _group() -> None:
    """A group of commands, however few it holds itself."""
