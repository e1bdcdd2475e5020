"""Options that several commands share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from counterfoil.errors import InputError
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


def key_values(pairs: Sequence[str]) -> dict[str, str]:
    """The values of `--set KEY=VALUE` by key.

    Raises `InputError` for what is no such pair, and for a key twice.

    >>> key_values(["prefix=", "references=paper"])
    {'prefix': '', 'references': 'paper'}
    """
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InputError("--set needs KEY=VALUE", given=pair, allowed="such as references=paper")
        if key in found:
            raise InputError("--set names one key twice", given=pair)
        found[key] = value
    return found
