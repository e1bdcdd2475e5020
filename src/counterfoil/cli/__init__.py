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
from counterfoil.cli import faults, groups, usage
from counterfoil.cli.faults import complain, main_process
from counterfoil.errors import expected_error

#: The exit code of a process that Ctrl-C stopped.
INTERRUPTED = 130
#: Seconds that a process waits for the first of several to report an error.
_OTHERS_FIRST = 3.0


#: Every command, in the order of `--help`, and where it stands (`groups.lazily`).
COMMANDS: dict[str, str | typer.Typer] = {
    "evaluate": "jobs.evaluate:evaluate_all tables:show_run",
    "compare": "jobs.compare:compare tables:show_comparison",
    "compare rankings": "jobs.compare:rank tables:show_rankings",
    "compare lengths": "lengths:lengths",
    "audit": "jobs.audit:audit",
    "explain": "jobs.explain:explain_or_grade",
    "captions": groups.group(
        {
            "score": "jobs.captions:score_captions",
            "systems": "jobs.caption_systems:compare_systems",
        },
        help="How good captions are, for images or videos, with or without references.",
        epilog="Example: "
        "counterfoil captions score --metrics bleu,cider --candidates c.json --references r.json",
    ),
    "benchmarks": groups.group(
        {
            "list": "list:benchmarks list:show_entries",
            "show": "list:benchmarks list:show_entries",
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
    "world": groups.group(
        {"build": "jobs.world:build_world demo:show_drawn", "sheet": "jobs.world:draw_sheet demo:show_drawn"},
        help="A small world of paper shapes in which everything is known: "
        "build benchmarks and training sets.",
        epilog="Example: counterfoil world build quads --out world",
    ),
    "demo": "jobs.tour:demo demo:show_demo",
    "list": groups.group(
        {
            name: f"list:{name} list:show_entries"
            for name in ("benchmarks", "scorers", "metrics", "measures", "recipes")
        },
        help="What there is: benchmarks, kinds of scorer, caption metrics, measures, recipes of training.",
        epilog="Example: counterfoil list benchmarks",
    ),
    "cache": groups.group(
        {"list": "cache:list_", "size": "cache:size", "limit": "cache:limit", "clear": "cache:clear"},
        help="Finished work on disk: what there is of which scorer, and room made again.",
        epilog="Example: counterfoil cache limit 5GB",
    ),
    "reproduce": "jobs.reproduce:reproduce reproduce:show_ledger",
}


app = typer.Typer(
    name="counterfoil",
    cls=groups.lazily(COMMANDS),
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
