"""The command line: parse, call, print, exit code. Everything heavy is imported when a command needs it.

Exit codes: 0 on success, 2 on input that cannot be used, 70 on a fault of the program, 130 on Ctrl-C.
"""

import io
import os
import sys
import time
import warnings
from typing import Annotated, NoReturn

import typer

from counterfoil import __version__
from counterfoil.cli import (
    annotate,
    annotation,
    audit,
    benchmark_files,
    build,
    cache,
    captions,
    demo,
    estimate,
    evaluate,
    explain,
    faults,
    interrupts,
    jobs,
    list,
    mix,
    publish,
    reproduce,
    runs,
    train,
    usage,
    world,
)
from counterfoil.cli.plain_text import complain, main_process

#: The exit code of a process that Ctrl-C stopped.
INTERRUPTED = 130
#: Seconds that a process waits for the first of several to report an error.
_OTHERS_FIRST = 3.0


app = typer.Typer(
    name="counterfoil",
    cls=usage.OneLine,
    help="Do these images and captions belong together, and how sure can we be of the answer?",
    epilog="Start with: counterfoil demo",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for function, epilog in (
    (evaluate.command, evaluate.EPILOG),
    (explain.command, explain.EPILOG),
    (audit.command, audit.EPILOG),
    (benchmark_files.fetch, benchmark_files.FETCH_EPILOG),
    (runs.compare, runs.COMPARE_EPILOG),
    (annotation.pool, annotation.POOL_EPILOG),
    (annotation.bias, annotation.BIAS_EPILOG),
    (annotation.preferences, annotation.PREFERENCES_EPILOG),
    (runs.rankings, runs.RANKINGS_EPILOG),
    (runs.lengths, runs.LENGTHS_EPILOG),
    (reproduce.command, reproduce.EPILOG),
    (benchmark_files.save, benchmark_files.SAVE_EPILOG),
    (publish.command, publish.EPILOG),
    (train.command, train.EPILOG),
    (mix.command, mix.EPILOG),
    (demo.command, demo.EPILOG),
    (estimate.command, estimate.EPILOG),
    (jobs.work, jobs.WORK_EPILOG),
    (jobs.merge, jobs.MERGE_EPILOG),
):
    name = function.__name__ if function.__name__ != "command" else function.__module__.rpartition(".")[2]
    app.command(
        name,
        cls=usage.Command,
        help=usage.flowing(function.__doc__ or ""),
        epilog=usage.flowing(epilog),
        # What follows the name of another command is that command's.
        context_settings={"allow_interspersed_args": function is not estimate.command},
    )(usage.with_levels(function))
for command in (
    *world.app.registered_commands,
    *captions.app.registered_commands,
    *list.app.registered_commands,
    *cache.app.registered_commands,
):
    command.cls = usage.Command
    command.callback = command.callback and usage.with_levels(command.callback)
    command.help = usage.flowing((command.callback and command.callback.__doc__) or "")
    command.epilog = usage.flowing(command.epilog or "")
app.add_typer(build.app, name="build")
app.add_typer(annotate.app, name="annotate")
app.add_typer(captions.app, name="captions")
app.add_typer(world.app, name="world")
app.add_typer(list.app, name="list")
app.add_typer(cache.app, name="cache")


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
        with interrupts.kept(), warnings.catch_warnings():
            # Numbers that overflow are an error; what else libraries warn of is for those who develop.
            warnings.filterwarnings("error", "(overflow|invalid value|divide by zero)", RuntimeWarning)
            if not debug:
                warnings.filterwarnings("ignore", append=True)
            faults.check_names(arguments)
            app(args=arguments, prog_name="counterfoil", standalone_mode=True)
    except BrokenPipeError:
        # The reader of our output (head, less) left: not an error, but Python would print one at exit.
        from counterfoil.cli.terminal import drop_output

        drop_output()
        sys.exit(0)
    except (KeyboardInterrupt, SystemExit) as stop:
        # Typer turns Ctrl-C into this exit code before we see it.
        if isinstance(stop, KeyboardInterrupt) or stop.code == INTERRUPTED:
            complain("stopped; finished work is kept and will not be repeated")
            sys.stdout.flush()
            sys.stderr.flush()
            # Python notes when Ctrl-C hits code that `exec` runs (every dataclass being imported) and would
            # then end by the signal in spite of sys.exit. All our cleanup is done by now.
            os._exit(INTERRUPTED)
        raise
    except BaseException as error:
        if not main_process():
            # Of several processes that find the same fault one reports it: the launcher ends the others
            # when the first one ends. A process that is still alive has found a fault of its own.
            time.sleep(_OTHERS_FIRST)
        if debug:
            faults.print_traceback(error)
        known = faults.foreseen(error)
        if faults.is_first():
            complain(faults.unforeseen(error, arguments) if known is None else str(known))
        sys.exit(faults.SOFTWARE if known is None else 2)
    sys.exit(0)
