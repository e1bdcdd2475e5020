"""`counterfoil captions score | systems`: how good captions are, by metrics of the field."""

import typer

from counterfoil.cli import groups

#: Commands of the group, and their jobs.
COMMANDS = {
    "score": "jobs.captions:score_captions",
    "systems": "jobs.caption_systems:compare_systems",
}

app = typer.Typer(
    cls=groups.lazily(COMMANDS),
    help="How good captions are, for images or videos, with or without references.",
    no_args_is_help=True,
    epilog="Example: counterfoil captions score --metrics bleu,cider --candidates c.json --references r.json",
)


@app.callback()
def _captions() -> None:
    """How good captions are, for images or videos, with or without references."""
