"""Usage of a command: what was mistyped, in one line, and which files its arguments name."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from counterfoil.errors import InputError

#: What Typer raises for options that are unknown, missing, out of range or no numbers.
_UsageError = cast(type[Exception], typer.BadParameter.__mro__[1])


class Command(TyperCommand):
    """A command that replaces no file which its arguments name as something to read.

    Its help shows a flag as a flag, and the choices of an option with room to break lines.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with what help says of the type of each."""
        return _shown(super().get_params(ctx), ctx)

    def invoke(self, ctx: Any) -> Any:
        """As Typer does it, with what the command reads and writes guarded."""
        from counterfoil.cli.output_paths import guarded
        from counterfoil.data.data_paths import data_folder

        words, above = [], ctx
        while above.parent is not None:
            words.append(above.info_name)
            above = above.parent
        with guarded(" ".join(reversed(words)), ctx.params, data_folder()):
            return super().invoke(ctx)


def _shown(params: list[Any], ctx: Any) -> list[Any]:
    for each in params:
        if each.metavar is not None:
            continue
        if getattr(each, "is_flag", False):
            each.metavar = ""
        # Older versions of Typer have another name for it, and no long lists of choices.
        elif hasattr(each, "display_type_rich") and "|" in (choices := each.display_type_rich(ctx) or ""):
            each.metavar = choices.replace("|", " | ")
    return params


class OneLine(TyperGroup):
    """Commands whose mistyped options are one line on stderr and no box."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with what help says of the type of each."""
        return _shown(super().get_params(ctx), ctx)

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
