"""The command line: parse, call, print, exit code. Everything heavy is imported when a command needs it.

Exit codes: 0 on success, 2 on input that cannot be used, 130 on Ctrl-C.
"""

import _thread
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, NoReturn

import typer

from counterfoil import __version__
from counterfoil.cli import (
    bias,
    captions,
    compare,
    demo,
    evaluate,
    list,
    mix,
    pool,
    preferences,
    rankings,
    reproduce,
    train,
    usage,
    world,
)
from counterfoil.cli.processes import main_process
from counterfoil.errors import CounterfoilError

#: The exit code of a process that Ctrl-C stopped.
INTERRUPTED = 130
#: Seconds that a process of several waits for the first one to say what is wrong.
_OTHERS_FIRST = 3.0


def _flowing(text: str) -> str:
    """The same paragraphs, each in one line for the terminal to break; it would keep our own breaks too."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


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
for module in (evaluate, compare, pool, bias, preferences, rankings, reproduce, train, mix, demo):
    name, about = module.__name__.rpartition(".")[2], module.command.__doc__ or ""
    app.command(name, help=_flowing(about), epilog=_flowing(module.EPILOG))(module.command)
for command in (*world.app.registered_commands, *captions.app.registered_commands):
    command.help = _flowing((command.callback and command.callback.__doc__) or "")
    command.epilog = _flowing(command.epilog or "")
app.add_typer(captions.app, name="captions")
app.add_typer(world.app, name="world")
app.add_typer(list.app, name="list")


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
) -> None:
    """Do these images and captions belong together, and how sure can we be of the answer?"""


def _pass_on(otherwise: Callable[[Any], object], unraisable: Any) -> None:
    """Ctrl-C that hit a finaliser or a callback, where Python drops it, comes again a moment later."""
    if unraisable.exc_type is not KeyboardInterrupt:
        otherwise(unraisable)
        return
    # Not at once: that would hit this very function.
    again = threading.Timer(0.05, _thread.interrupt_main)
    again.daemon = True
    again.start()


def main() -> NoReturn:
    """Run the command line; every error we raise on purpose is one line on stderr."""
    hook = sys.unraisablehook
    sys.unraisablehook = partial(_pass_on, hook)
    try:
        app(standalone_mode=True)
    except CounterfoilError as error:
        if not main_process():
            # Of several processes that find the same fault one says it: who starts them ends the others
            # when the first one ends. Who lives on has found a fault of its own.
            time.sleep(_OTHERS_FIRST)
        print(f"counterfoil: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output (head, less) left: not an error, but Python would print one at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (KeyboardInterrupt, SystemExit) as stop:
        # Typer turns Ctrl-C into this exit code before we see it.
        if isinstance(stop, KeyboardInterrupt) or stop.code == INTERRUPTED:
            print("counterfoil: stopped; finished work is kept and will not be repeated", file=sys.stderr)
            sys.stdout.flush()
            sys.stderr.flush()
            # Python notes when Ctrl-C hits code that `exec` runs (every dataclass being imported) and would
            # then end by the signal in spite of sys.exit. All our cleaning up has been done on the way here.
            os._exit(INTERRUPTED)
        raise
    finally:
        sys.unraisablehook = hook
    sys.exit(0)
