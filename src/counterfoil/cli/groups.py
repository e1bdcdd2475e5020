"""Groups of commands, each of which is imported when it is asked for."""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from inspect import cleandoc
from types import CodeType
from typing import Any

import click

from counterfoil.cli import usage
from counterfoil.cli.usage import Documented, Sections


class CommandGroup(Documented, click.Group):
    """Commands that are imported when they are asked for.

    `rows` says of each name, of one word or two, which job it is, "jobs.module:function" of `counterfoil` or
    "module:function" of `counterfoil.cli`, perhaps followed by what shows its result; or which group, itself
    or as "module:app". What commands of a `private` group write is readable by its owner alone.
    """

    def __init__(
        self, rows: Mapping[str, "str | CommandGroup"], *, private: bool = False, **options: Any
    ) -> None:
        super().__init__(**options)
        self.rows, self.private = rows, private

    def list_commands(self, ctx: Any) -> list[str]:
        """The names in the order of the table; "compare rankings" is beside "compare" and not listed."""
        return [name for name in self.rows if " " not in name]

    def get_command(self, ctx: Any, cmd_name: str) -> click.Command | None:
        """The command of a name, made once; None for an unknown name."""
        if cmd_name in self.commands or cmd_name not in self.rows:
            return self.commands.get(cmd_name)
        command: Any = self.rows[cmd_name]
        show = ""
        if isinstance(command, str):
            source, _, show = command.partition(" ")
            command = usage.imported(source)
        if not isinstance(command, CommandGroup):
            from counterfoil.cli.derive import Command
            from counterfoil.jobs.job import job_of

            job = job_of(command)
            below = [f"counterfoil {name}" for name in self.rows if name.startswith(f"{cmd_name} ")]
            epilog = job.examples + (f"\n\nSee also: {', '.join(below)}" if below else "")
            command = Command(cmd_name, job, show, private=self.private, epilog=epilog)
        self.commands[cmd_name] = command
        return self.commands[cmd_name]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As Click does it; without arguments the help is shown."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command that is asked for; of one that was removed or moved what to use instead."""
        usage.check_former(ctx, args[:1])
        words = " ".join(args[:2])
        name, rest = (words, args[2:]) if words in self.rows else (args[0], args[1:])
        command = self.get_command(ctx, name)
        if command is None and not ctx.resilient_parsing:
            near = get_close_matches(name, {**dict.fromkeys(self.list_commands(ctx)), **self.rows})
            hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
            raise click.UsageError(f"No such command {name!r}{hint}", ctx)
        return name, command, rest

    def listed(self) -> Sections:
        """Names and summaries of its commands by heading."""
        return {"Commands": [(name, self._summary(name)) for name in self.rows if " " not in name]}

    def sections(self, ctx: click.Context) -> Sections:
        """Its options, and its commands."""
        return {**super().sections(ctx), **self.listed()}

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Its commands that begin as what was typed, or its options."""
        from click.shell_completion import CompletionItem

        rows = [row for rows in self.listed().values() for row in rows if row[0].startswith(incomplete)]
        items = [CompletionItem(name, help=summary) for name, summary in rows]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def _summary(self, name: str) -> str:
        """The first paragraph of a command's help; of a job from the compiled module, which stays unread."""
        row = self.rows[name]
        if isinstance(row, str):
            module, function = usage.place(row.partition(" ")[0])
            spec: Any = find_spec(module)
            code = spec.loader.get_code(spec.name)
            docs = {one.co_name: one.co_consts[0] for one in code.co_consts if isinstance(one, CodeType)}
            text = docs.get(function) or self.get_command(None, name).help  # type: ignore[union-attr]
        else:
            text = row.help
        return cleandoc(text or "").partition("\n\n")[0]
