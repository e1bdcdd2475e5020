"""Amount of output on stderr: `--quiet` and `--verbose`, options of every command."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

#: What the command that runs was asked for: neither notes nor progress, or progress more often.
quiet = False
verbose = False

_OPTIONS: dict[str, Any] = {
    "quiet": Annotated[bool, typer.Option("--quiet", "-q", help="No notes and no progress.")],
    "verbose": Annotated[
        bool, typer.Option("--verbose", help="A line of progress every few seconds, where there is no bar.")
    ],
}


def with_levels(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with `--quiet` and `--verbose`, those of them that it lacks; both hold while it runs."""
    signature = inspect.signature(command)
    added = {name: option for name, option in _OPTIONS.items() if name not in signature.parameters}

    @wraps(command)
    def levelled(**arguments: Any) -> Any:
        global quiet, verbose
        before = quiet, verbose
        quiet, verbose = (bool(arguments.get(name)) for name in ("quiet", "verbose"))
        try:
            return command(**{name: value for name, value in arguments.items() if name not in added})
        finally:
            quiet, verbose = before

    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=option)
        for name, option in added.items()
    ]
    # Typer reads options from the signature and from the annotations.
    own = signature.replace(parameters=[*signature.parameters.values(), *more])
    levelled.__signature__ = own  # type: ignore[attr-defined]
    levelled.__annotations__ = {**inspect.get_annotations(command), **added}
    return levelled
