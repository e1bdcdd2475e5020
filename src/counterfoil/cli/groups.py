"""Groups of commands, each of which is imported when it is asked for."""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from inspect import cleandoc
from types import CodeType
from typing import Any, cast

import typer
from typer.core import TyperCommand

from counterfoil.cli.usage import Command, CommandGroup, flowing, with_levels


class _Commands(Mapping[str, Any]):
    """Commands by name, each made when it is asked for."""

    def __init__(self, rows: Mapping[str, str], wrap: Callable[..., Any]) -> None:
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
        module, _, function = self._rows[name].partition(" ")[0].partition(":")
        if not module.startswith("jobs."):
            return self[name]
        # The first paragraph of the function's docstring, from the compiled module.
        spec: Any = find_spec(f"counterfoil.{module}")
        code = spec.loader.get_code(f"counterfoil.{module}")
        functions = {one.co_name: one for one in code.co_consts if isinstance(one, CodeType)}
        doc = cleandoc(functions[function].co_consts[0])
        return TyperCommand(name, help=doc.partition("\n\n")[0].replace("\n", " "))


def _loaded(name: str, row: str, wrap: Callable[..., Any]) -> Any:
    """A command of a job or of a function of `counterfoil.cli`, or a group of an app there.

    A job may be followed by the function that shows its result. The examples of a function are its module's
    `NAME_EPILOG`, else its `EPILOG`.
    """
    source, _, show = row.partition(" ")
    path, _, attribute = source.partition(":")
    module = import_module(f"counterfoil.{path}" if path.startswith("jobs.") else f"counterfoil.cli.{path}")
    target = getattr(module, attribute)
    if isinstance(target, typer.Typer):
        # Completion is installed by the program, not by each of its groups.
        target._add_completion = False
        for command in target.registered_commands:
            if not (command.cls and issubclass(command.cls, Command)):
                command.cls = Command
                command.help = flowing((command.callback and command.callback.__doc__) or "")
                command.epilog = flowing(command.epilog or "")
                command.callback = command.callback and with_levels(command.callback)
    else:
        if hasattr(target, "__job__"):
            from counterfoil.cli.derive import command as derived
            from counterfoil.jobs.job import job_of

            job = job_of(target)
            function, epilog = derived(job, show), job.examples
        else:
            function = with_levels(target)
            name_of_epilog = f"{attribute.rstrip('_').upper()}_EPILOG"
            epilog = getattr(module, name_of_epilog, getattr(module, "EPILOG", ""))
        target = typer.Typer(rich_markup_mode="rich", add_completion=False)
        target.command(name, cls=Command, help=flowing(function.__doc__ or ""), epilog=flowing(epilog))(
            wrap(function)
        )
    loaded = typer.main.get_command(target)
    loaded.name = name
    return loaded


def lazily(
    rows: Mapping[str, str], wrap: Callable[..., Any] = lambda function: function
) -> type[CommandGroup]:
    """A class of groups whose commands are imported when they are asked for.

    `rows` says of each name, of one word or two, which "module:function" of `counterfoil.cli` it is, or which
    "module:app", or which "jobs.module:function" of `counterfoil`. Functions go through `wrap`.
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
    app = typer.Typer(cls=lazily(rows, wrap), help=help, no_args_is_help=True, epilog=epilog)
    # However few commands there are, they are a group.
    app.callback()(lambda: None)
    return app
