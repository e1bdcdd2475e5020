"""What is wrong with how a command was typed, in one line, as all other errors are."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import typer
from typer.core import TyperGroup

from counterfoil.errors import InputError

#: What Typer raises for options that are unknown, missing, out of range or no numbers.
_UsageError = cast(type[Exception], typer.BadParameter.__mro__[1])


class OneLine(TyperGroup):
    """Commands whose mistyped options are one line on stderr and no box."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """As Typer does it, with its errors as ours."""
        with _in_one_line():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        """As Typer does it, with its errors as ours."""
        with _in_one_line():
            return super().invoke(ctx)


@contextmanager
def _in_one_line() -> Iterator[None]:
    try:
        yield
    except _UsageError as error:
        # A group without arguments shows its help, which Typer does by an error of its own.
        if type(error).__name__ == "NoArgsIsHelpError":
            raise
        context = getattr(error, "ctx", None)
        words = "" if context is None else context.command_path.partition("counterfoil")[2]
        path = f"counterfoil{words.removeprefix(' -m counterfoil')}"
        said = (
            str(cast(Any, error).format_message())
            .replace("Value error, ", "")
            .replace(". Did you", "; did you")
        )
        said = said.removesuffix(".")
        raise InputError(said[:1].lower() + said[1:], hint=f"see '{path} --help'") from None
