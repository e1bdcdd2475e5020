"""Options of the commands that are no jobs."""

from pathlib import Path
from typing import Annotated

import typer

Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace files that exist; never one that the command reads."),
]
Json = Annotated[str | None, typer.Option(metavar="PATH|-", help="Write the machine-readable result here.")]


Runs = Annotated[list[Path], typer.Argument(help="Run folders, or folders of them.")]
Available = Annotated[
    bool, typer.Option("--available", help="Only the questions whose images and captions are at hand.")
]
