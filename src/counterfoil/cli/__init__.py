"""The command line: parse, call, print, exit code. Everything heavy is imported when a command needs it."""

import io
import os
import sys
import time
import traceback
import warnings
from collections.abc import Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from inspect import cleandoc
from types import CodeType
from typing import Any, NoReturn

import click

from counterfoil import __version__
from counterfoil.cli import exits, usage
from counterfoil.errors import expected_error

#: Seconds that a process waits for the first of several to report an error.
_OTHERS_FIRST = 3.0


class CommandGroup(usage.Documented, click.Group):
    """Commands that are imported when they are asked for.

    `rows` has by name "jobs.module:function" or "module:function" of `cli`, perhaps followed by what shows
    its result; or a group, itself or as "module:app". What a `private` group writes is its owner's alone.
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

    def listed(self) -> usage.Sections:
        """Names and summaries of its commands by heading."""
        return {"Commands": [(name, self._summary(name)) for name in self.rows if " " not in name]}

    def sections(self, ctx: click.Context) -> usage.Sections:
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


#: Every command, in the order of `--help`, and where it stands (`CommandGroup`).
COMMANDS: dict[str, str | CommandGroup] = {
    "evaluate": "jobs.evaluate:evaluate_all tables:show_run",
    "compare": "jobs.compare:compare tables:show_comparison",
    "compare rankings": "jobs.compare:rank",
    "compare lengths": "lengths:lengths",
    "audit": "jobs.audit:audit",
    "explain": "jobs.explain:explain",
    "captions": CommandGroup(
        {
            "score": "jobs.captions:score_captions",
            "systems": "jobs.caption_systems:compare_systems",
        },
        help="How good captions are, for images or videos, with or without references.",
        epilog="Example: "
        "counterfoil captions score --metrics bleu,cider --candidates c.json --references r.json",
    ),
    "benchmarks": CommandGroup(
        {
            "list": "listings:benchmarks listings:show_entries",
            "show": "listings:benchmarks listings:show_entries",
            "fetch": "benchmarks:fetch",
            "save": "benchmarks:save",
            "publish": "jobs.publish:publish",
        },
        help="Benchmarks: what there is, released files, folders of one's own, and data sets for others.",
        epilog="Example: counterfoil benchmarks fetch sugarcrepe",
    ),
    "build": "build:app",
    "pool": "jobs.pool:pool",
    "pool rounds": "jobs.pool_rounds:pool_rounds",
    "pool bias": "jobs.bias:bias",
    "annotate": "annotate:app",
    "train": "jobs.training:train_model",
    "train mix": "jobs.mix:mix",
    "world": CommandGroup(
        {"build": "jobs.world:build_world show:show_drawn"},
        help="A small world of paper shapes in which everything is known: "
        "build benchmarks and training sets.",
        epilog="Example: counterfoil world build quads --out world",
    ),
    "demo": "jobs.tour:demo show:show_demo",
    "list": CommandGroup(
        {
            name: f"listings:{name} listings:show_entries"
            for name in ("benchmarks", "scorers", "metrics", "measures", "recipes")
        },
        help="What there is: benchmarks, kinds of scorer, caption metrics, measures, recipes of training.",
        epilog="Example: counterfoil list benchmarks",
    ),
    "cache": CommandGroup(
        {
            "list": "cache:list_ listings:show_entries",
            "limit": "cache:limit",
            "clear": "cache:clear",
        },
        help="Finished work on disk: what there is of which scorer, and room made again.",
        epilog="Example: counterfoil cache limit 5GB",
    ),
    "reproduce": "jobs.reproduce:reproduce show:show_ledger",
}


#: The variable by which a shell asks for completions.
_COMPLETE = "_COUNTERFOIL_COMPLETE"


def _print(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    """What an option prints in place of running a command."""
    if not wanted or param.name == "debug":
        return
    if param.name == "version":
        print(f"counterfoil {__version__}")
    else:
        from counterfoil.cli.completion import shell_script

        print(shell_script(ctx.command, _COMPLETE, install=param.name == "install_completion"))
    ctx.exit()


app = CommandGroup(
    COMMANDS,
    name="counterfoil",
    help="Do these images and captions belong together, and how sure can we be of the answer?",
    epilog="Start with: counterfoil demo --files first",
    context_settings={"help_option_names": ["--help", "-h"]},
    params=[
        click.Option([f"--{name}"], is_flag=True, is_eager=True, callback=_print, help=text)
        for name, text in (
            ("version", "Print the version and leave."),
            # `main` takes it from wherever it stands.
            ("debug", "Print the traceback of an error; also after the command."),
            ("install-completion", "Install completion for the current shell."),
            ("show-completion", "Show completion for the current shell, to copy it."),
        )
    ],
)


def main() -> NoReturn:
    """Run the command line; whatever goes wrong is one line on stderr."""
    for name in ("stdout", "stderr"):
        # One that was closed before the start takes all and keeps nothing.
        stream = getattr(sys, name) or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        setattr(sys, name, stream)
        # What the terminal's encoding lacks is written as an escape, not a reason to stop.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    debug, arguments = exits.debugging(sys.argv[1:])
    try:
        with warnings.catch_warnings():
            # Numbers that overflow are an error; what else libraries warn of is for those who develop.
            warnings.filterwarnings("error", "(overflow|invalid value|divide by zero)", RuntimeWarning)
            if not debug:
                warnings.filterwarnings("ignore", append=True)
            if (asked_for := os.environ.get(_COMPLETE)) is not None:
                from click.shell_completion import shell_complete

                sys.exit(shell_complete(app, {}, "counterfoil", _COMPLETE, asked_for))
            with app.make_context("counterfoil", arguments) as context:
                app.invoke(context)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except BrokenPipeError:
        # The reader of our output (head, less) left: not an error, but Python would print one at exit.
        from counterfoil.terminal import drop_output

        drop_output()
        sys.exit(0)
    except KeyboardInterrupt:
        exits.complain("stopped; finished work is kept and will not be repeated")
        sys.stdout.flush()
        sys.stderr.flush()
        # Python notes when Ctrl-C hits code that `exec` runs (every dataclass being imported) and would
        # then end by the signal in spite of sys.exit. All our cleanup is done by now.
        os._exit(exits.INTERRUPTED)
    except SystemExit:
        raise
    except BaseException as error:
        if not usage.main_process():
            # Of several processes that find the same fault one reports it: the launcher ends the others
            # when the first one ends. A process that is still alive has found a fault of its own.
            time.sleep(_OTHERS_FIRST)
        if debug:
            traceback.print_exception(error)
        expected = expected_error(error)
        if isinstance(error, click.UsageError):
            expected = usage.in_one_line(error)
        exits.complain(exits.unforeseen(error, arguments) if expected is None else str(expected))
        sys.exit(exits.SOFTWARE if expected is None else 2)
    sys.exit(0)
