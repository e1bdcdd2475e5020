"""Groups of commands, each of which is imported when it is asked for."""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from inspect import cleandoc
from types import CodeType
from typing import Any, cast

import typer
from typer.core import TyperCommand

from counterfoil.cli.usage import Command, CommandGroup, flowing


class _Commands(Mapping[str, Any]):
    """Commands by name, each made when it is asked for."""

    def __init__(self, rows: Mapping[str, "str | typer.Typer"], wrap: Callable[..., Any]) -> None:
        self._rows, self._wrap = rows, wrap
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _loaded(name, self._rows[name], self._wrap)
            below = [f"counterfoil {other}" for other in self._rows if other.startswith(f"{name} ")]
            if below:
                self._loaded[name].epilog += f"\n\nSee also: {', '.join(below)}"
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def summary(self, name: str) -> Any:
        """A command that has a summary and does nothing: of a job, without importing it."""
        if not isinstance(row := self._rows[name], str):
            return self[name]
        module, _, function = row.partition(" ")[0].partition(":")
        # The first paragraph of the function's docstring, from the compiled module.
        spec: Any = find_spec(_module(module))
        code = spec.loader.get_code(spec.name)
        functions = {one.co_name: one for one in code.co_consts if isinstance(one, CodeType)}
        if function not in functions:
            return self[name]
        doc = cleandoc(functions[function].co_consts[0])
        return TyperCommand(name, help=doc.partition("\n\n")[0].replace("\n", " "))


def _module(path: str) -> str:
    return f"counterfoil.{path}" if path.startswith("jobs.") else f"counterfoil.cli.{path}"


def _loaded(name: str, row: str | typer.Typer, wrap: Callable[..., Any]) -> Any:
    """The command of a job, or the group of an app; a job may be followed by what shows its result."""
    target: Any = row
    if isinstance(row, str):
        source, _, show = row.partition(" ")
        path, _, attribute = source.partition(":")
        target = getattr(import_module(_module(path)), attribute)
    if not isinstance(target, typer.Typer):
        from counterfoil.cli.derive import command as derived
        from counterfoil.jobs.job import job_of

        job, function = job_of(target), wrap(derived(job_of(target), show))
        target = typer.Typer(rich_markup_mode="rich", add_completion=False)
        target.command(name, cls=Command, help=flowing(function.__doc__ or ""), epilog=flowing(job.examples))(
            function
        )
    loaded = typer.main.get_command(target)
    loaded.name = name
    return loaded


def lazily(
    rows: Mapping[str, str | typer.Typer], wrap: Callable[..., Any] = lambda function: function
) -> type[CommandGroup]:
    """A class of groups whose commands are imported when they are asked for.

    `rows` says of each name, of one word or two, which job it is, "jobs.module:function" of `counterfoil` or
    "module:function" of `counterfoil.cli`, or which group, itself or as "module:app". Functions go through
    `wrap`.
    """

    class LazyGroup(CommandGroup):
        def __init__(self, *given: Any, **options: Any) -> None:
            super().__init__(*given, **options)
            self.commands = cast(Any, _Commands(rows, wrap))
            self._in_help = False

        def list_commands(self, ctx: Any) -> list[str]:
            return [name for name in rows if " " not in name]

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            # "compare rankings" is a command beside "compare".
            words = " ".join(args[:2])
            if words in rows:
                return words, self.get_command(ctx, words), args[2:]
            return super().resolve_command(ctx, args)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            commands = cast(Any, self.commands)
            if self._in_help and cmd_name in rows:
                return commands.summary(cmd_name)
            return super().get_command(ctx, cmd_name)

        def format_help(self, ctx: Any, formatter: Any) -> None:
            self._in_help = True
            try:
                super().format_help(ctx, formatter)
            finally:
                self._in_help = False

    return LazyGroup


def group(
    rows: Mapping[str, str], help: str, epilog: str, wrap: Callable[..., Any] = lambda function: function
) -> typer.Typer:
    """A group of commands, each of which is imported when it is asked for (`lazily`)."""
    # Completion is installed by the program, not by each of its groups.
    app = typer.Typer(
        cls=lazily(rows, wrap), help=help, no_args_is_help=True, epilog=epilog, add_completion=False
    )
    # However few commands there are, they are a group.
    app.callback()(lambda: None)
    return app
