"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from counterfoil.inputs.amounts import most

Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace what this command did not write, too; never a file that it reads.",
    ),
]

#: Pages are made to be passed on.
Private = Annotated[
    bool,
    typer.Option(
        "--private", help="Keep paths and users of this machine in the page, which leaves them out."
    ),
]

Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.", rich_help_panel="Model")]

Precision = Annotated[
    Literal["fp32", "bf16", "fp16"],
    typer.Option(help="Of weights and activations.", rich_help_panel="Model"),
]

BatchSize = Annotated[
    int,
    typer.Option(
        min=1,
        max=most("batch_size"),
        help="Items per batch; does not change decisions.",
        rich_help_panel="Work",
    ),
]

Workers = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=most("workers"),
        help="Processes that decode images; default: one per core, at most 8.",
        rich_help_panel="Work",
    ),
]

CacheFolder = Annotated[
    Path | None,
    typer.Option(envvar="COUNTERFOIL_CACHE", help="Folder of finished work.", rich_help_panel="Work"),
]

NoCache = Annotated[
    bool, typer.Option("--no-cache", help="Neither read nor keep finished work.", rich_help_panel="Work")
]
