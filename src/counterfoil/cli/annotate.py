"""`counterfoil annotate`: people in the loop, from the question to agreement to a benchmark."""

from typing import Annotated

import typer

from counterfoil.cli import usage
from counterfoil.cli.list import Json, print_facts, print_json, print_table

#: Every command, in the order of `--help`. What they write is about people, so that it is its owner's alone.
COMMANDS = {
    "forms": "annotate:forms",
    "create": "annotate_campaign:create",
    "plan": "annotate_campaign:plan",
    "simulate": "annotate_campaign:simulate",
    "status": "annotate_results:status",
    "agreement": "annotate_results:agreement",
    "review": "annotate_review:review",
    "approve": "annotate_review:approve",
    "reject": "annotate_review:reject",
    "adjudicate": "annotate_review:adjudicate",
    "withdraw": "annotate_review:withdraw",
    "readmit": "annotate_review:readmit",
    "delete-after": "annotate_review:delete_after",
    "export": "annotate_results:export",
    "import": "annotate_results:import_",
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
    json: Json = False,
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
