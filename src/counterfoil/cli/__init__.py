"""The command line: parse, call, print, exit code. Everything heavy is imported when a command needs it.

Exit codes: 0 on success, 2 on input that cannot be used, 70 on a fault of the program, 130 on Ctrl-C.
"""

import io
import os
import sys
import time
import traceback
import warnings
from typing import NoReturn

import click

from counterfoil import __version__
from counterfoil.cli import errors, usage
from counterfoil.cli.errors import complain, main_process
from counterfoil.cli.groups import CommandGroup
from counterfoil.errors import expected_error

#: Seconds that a process waits for the first of several to report an error.
_OTHERS_FIRST = 3.0


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
    "world": CommandGroup(
        {"build": "jobs.world:build_world show:show_drawn"},
        help="A small world of paper shapes in which everything is known: "
        "build benchmarks and training sets.",
        epilog="Example: counterfoil world build quads --out world",
    ),
    "demo": "jobs.tour:demo show:show_demo",
    "list": CommandGroup(
        {
            name: f"list:{name} list:show_entries"
            for name in ("benchmarks", "scorers", "metrics", "measures", "recipes")
        },
        help="What there is: benchmarks, kinds of scorer, caption metrics, measures, recipes of training.",
        epilog="Example: counterfoil list benchmarks",
    ),
    "cache": CommandGroup(
        {
            "list": "cache:list_ list:show_entries",
            "size": "cache:size",
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
    epilog="Start with: counterfoil demo",
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
    for stream in (sys.stdout, sys.stderr):
        # What the terminal's encoding lacks is written as an escape, not a reason to stop.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    debug, arguments = errors.debugging(sys.argv[1:])
    try:
        with errors.kept_interrupts(), warnings.catch_warnings():
            # Numbers that overflow are an error; what else libraries warn of is for those who develop.
            warnings.filterwarnings("error", "(overflow|invalid value|divide by zero)", RuntimeWarning)
            if not debug:
                warnings.filterwarnings("ignore", append=True)
            if (asked_for := os.environ.get(_COMPLETE)) is not None:
                from click.shell_completion import shell_complete

                sys.exit(shell_complete(app, {}, "counterfoil", _COMPLETE, asked_for))
            errors.check_names(arguments)
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
        complain("stopped; finished work is kept and will not be repeated")
        sys.stdout.flush()
        sys.stderr.flush()
        # Python notes when Ctrl-C hits code that `exec` runs (every dataclass being imported) and would
        # then end by the signal in spite of sys.exit. All our cleanup is done by now.
        os._exit(errors.INTERRUPTED)
    except SystemExit:
        raise
    except BaseException as error:
        if not main_process():
            # Of several processes that find the same fault one reports it: the launcher ends the others
            # when the first one ends. A process that is still alive has found a fault of its own.
            time.sleep(_OTHERS_FIRST)
        if debug:
            traceback.print_exception(error)
        known = expected_error(error)
        if isinstance(error, click.UsageError):
            known = usage.in_one_line(error)
        if errors.is_first():
            complain(errors.unforeseen(error, arguments) if known is None else str(known))
        sys.exit(errors.SOFTWARE if known is None else 2)
    sys.exit(0)
