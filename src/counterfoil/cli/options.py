"""Options that several commands share."""

from typing import Annotated

import typer

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
