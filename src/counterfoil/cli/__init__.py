"""The command line: parse, call, print, exit code. Everything heavy is imported when a command needs it.

Exit codes: 0 on success, 2 on input that cannot be used, 70 on a fault of the program, 130 on Ctrl-C.
"""

import io
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from inspect import cleandoc
from types import CodeType
from typing import Annotated, Any, NoReturn, cast

import typer
from typer.core import TyperCommand

from counterfoil import __version__
from counterfoil.cli import faults, usage
from counterfoil.cli.faults import complain, main_process
from counterfoil.cli.usage import Command, CommandGroup, flowing, with_levels
from counterfoil.errors import expected_error

#: The exit code of a process that Ctrl-C stopped.
INTERRUPTED = 130
#: Seconds that a process waits for the first of several to report an error.
_OTHERS_FIRST = 3.0


#: Every command, in the order of `--help`, and where it stands in this package.
COMMANDS = {
    "evaluate": "jobs.evaluate:evaluate_all tables:show_run",
    "explain": "jobs.heat_grades:explain_or_grade",
    "audit": "jobs.audit:audit",
    "fetch": "benchmark_files:fetch",
    "compare": "jobs.compare:compare tables:show_comparison",
    "pool": "jobs.pool:pool",
    "bias": "jobs.bias:bias",
    "preferences": "jobs.preferences:preferences",
    "rankings": "jobs.compare:rank tables:show_rankings",
    "lengths": "lengths:lengths",
    "reproduce": "jobs.reproduce:reproduce reproduce:show_ledger",
    "save": "benchmark_files:save",
    "publish": "jobs.publish:publish",
    "train": "jobs.training:train_model",
    "mix": "jobs.mix:mix",
    "demo": "jobs.tour:demo demo:show_demo",
    "build": "build:app",
    "annotate": "annotate:app",
    "captions": "captions:app",
    "world": "world:app",
    "list": "list:app",
    "cache": "cache:app",
}


class _Commands(Mapping[str, Any]):
    """Commands by name, each made when it is asked for."""

    def __init__(self, rows: Mapping[str, str], wrap: Callable[..., Any]) -> None:
        self._rows, self._wrap = rows, wrap
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _loaded(name, self._rows[name], self._wrap)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def summary(self, name: str) -> Any:
        """A command that has a summary and does nothing: of a job, without importing it."""
        row = self._rows[name]
        return TyperCommand(name, help=_first_paragraph(row)) if row.startswith("jobs.") else self[name]


def _first_paragraph(row: str) -> str:
    """The first paragraph of a function's docstring, from the compiled module."""
    module, _, name = row.partition(" ")[0].partition(":")
    spec = find_spec(f"counterfoil.{module}")
    code = cast(Any, spec).loader.get_code(f"counterfoil.{module}")
    functions = {one.co_name: one for one in code.co_consts if isinstance(one, CodeType)}
    return cleandoc(functions[name].co_consts[0]).partition("\n\n")[0].replace("\n", " ")


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
            epilog = getattr(module, f"{attribute.rstrip('_').upper()}_EPILOG", None) or module.EPILOG
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

    `rows` says of each name which "module:function" of `counterfoil.cli` it is, or which "module:app", or
    which "jobs.module:function" of `counterfoil`. Functions go through `wrap`.
    """

    class LazyGroup(CommandGroup):
        def __init__(self, *given: Any, **options: Any) -> None:
            super().__init__(*given, **options)
            self.commands = cast(Any, _Commands(rows, wrap))
            self._in_help = False

        def list_commands(self, ctx: Any) -> list[str]:
            return [*rows]

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


app = typer.Typer(
    name="counterfoil",
    cls=lazily(COMMANDS),
    help="Do these images and captions belong together, and how sure can we be of the answer?",
    epilog="Start with: counterfoil demo",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool | None) -> None:
    if wanted:
        print(f"counterfoil {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool | None,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave."),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Print the traceback of an error; also after the command.")
    ] = False,
) -> None:
    """Do these images and captions belong together, and how sure can we be of the answer?"""


def main() -> NoReturn:
    """Run the command line; whatever goes wrong is one line on stderr."""
    for stream in (sys.stdout, sys.stderr):
        # What the terminal's encoding lacks is written as an escape, not a reason to stop.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    debug, arguments = faults.debugging(sys.argv[1:])
    try:
        with faults.kept_interrupts(), warnings.catch_warnings():
            # Numbers that overflow are an error; what else libraries warn of is for those who develop.
            warnings.filterwarnings("error", "(overflow|invalid value|divide by zero)", RuntimeWarning)
            if not debug:
                warnings.filterwarnings("ignore", append=True)
            faults.check_names(arguments)
            # The exit code is that of --help and --version, and of Ctrl-C, which Typer turns into it.
            if app(args=arguments, prog_name="counterfoil", standalone_mode=False) == INTERRUPTED:
                raise KeyboardInterrupt
    except BrokenPipeError:
        # The reader of our output (head, less) left: not an error, but Python would print one at exit.
        from counterfoil.terminal import drop_output

        drop_output()
        sys.exit(0)
    except KeyboardInterrupt:
        complain("stopped; finished work is kept and will not be repeated")
        sys.stdout.flush()
        sys.stderr.flush()
        # Python notes when Ctrl-C hits code that `exec` runs (every dataclass being imported) and would
        # then end by the signal in spite of sys.exit. All our cleanup is done by now.
        os._exit(INTERRUPTED)
    except SystemExit:
        raise
    except BaseException as error:
        # A group without arguments has shown its help, which Typer does by an error of its own.
        if type(error).__name__ == "NoArgsIsHelpError":
            sys.exit(2)
        if not main_process():
            # Of several processes that find the same fault one reports it: the launcher ends the others
            # when the first one ends. A process that is still alive has found a fault of its own.
            time.sleep(_OTHERS_FIRST)
        if debug:
            faults.print_traceback(error)
        typed = isinstance(error, usage.UsageError)
        known = usage.in_one_line(error) if typed else expected_error(error)
        if faults.is_first():
            complain(faults.unforeseen(error, arguments) if known is None else str(known))
        sys.exit(faults.SOFTWARE if known is None else 2)
    sys.exit(0)
