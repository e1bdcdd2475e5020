"""The command line: parse, call, print, exit code. Everything heavy is imported when a command needs it.

Exit codes: 0 on success; 2 on input that cannot be used, or a disk or machine that fails (a name too long, no
room, no memory left), which is one line; 70 on a fault of the program (`EX_SOFTWARE` of sysexits.h), which is
one line for the user and a file with the traceback for the developers; 130 on Ctrl-C.
"""

import _thread
import errno
import io
import os
import platform
import re
import shlex
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from importlib.util import find_spec
from inspect import cleandoc
from pathlib import Path
from types import CodeType
from typing import Any, NoReturn

import click

from counterfoil import __version__
from counterfoil.cli import usage
from counterfoil.errors import CounterfoilError, InputError, doing_what, expected_error

#: Seconds that a process waits for the first of several to report an error.
_OTHERS_FIRST = 3.0


#: The exit code of a fault of the program.
SOFTWARE = 70
#: The exit code of a process that Ctrl-C stopped.
INTERRUPTED = 130


class CommandGroup(usage.Documented, click.Group):
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
    debug, arguments = debugging(sys.argv[1:])
    try:
        with kept_interrupts(), warnings.catch_warnings():
            # Numbers that overflow are an error; what else libraries warn of is for those who develop.
            warnings.filterwarnings("error", "(overflow|invalid value|divide by zero)", RuntimeWarning)
            if not debug:
                warnings.filterwarnings("ignore", append=True)
            if (asked_for := os.environ.get(_COMPLETE)) is not None:
                from click.shell_completion import shell_complete

                sys.exit(shell_complete(app, {}, "counterfoil", _COMPLETE, asked_for))
            check_names(arguments)
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
        os._exit(INTERRUPTED)
    except SystemExit:
        raise
    except BaseException as error:
        if not usage.main_process():
            # Of several processes that find the same fault one reports it: the launcher ends the others
            # when the first one ends. A process that is still alive has found a fault of its own.
            time.sleep(_OTHERS_FIRST)
        if debug:
            traceback.print_exception(error)
        known = expected_error(error)
        if isinstance(error, click.UsageError):
            known = usage.in_one_line(error)
        if is_first():
            complain(unforeseen(error, arguments) if known is None else str(known))
        sys.exit(SOFTWARE if known is None else 2)
    sys.exit(0)


def debugging(arguments: Sequence[str]) -> tuple[bool, list[str]]:
    """Whether `--debug` is among the arguments, and the other arguments; those after a lone `--` are kept.

    >>> debugging(["list", "benchmarks", "--debug"]), debugging(["evaluate", "--", "--debug"])
    ((True, ['list', 'benchmarks']), (False, ['evaluate', '--', '--debug']))
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    others = [word for word in arguments[:end] if word != "--debug"]
    return len(others) < end, [*others, *arguments[end:]]


def check_names(arguments: Sequence[str]) -> None:
    """Raise `InputError` for an argument whose bytes are no text, or that is a file: URL with a host."""
    for word in arguments:
        try:
            word.encode("utf-8")
        except UnicodeEncodeError:
            shown = os.fsencode(word).decode("utf-8", "backslashreplace")
            raise InputError(
                "an argument is not UTF-8 text", given=shown, hint="rename the file, or type it again"
            ) from None
        # An option that is a path forgets the second slash: file://etc would be /etc.
        if re.match(r"(--?[\w-]+=)?([\w-]+=)?(file|local)://(?!/|localhost/)", word, re.IGNORECASE):
            from counterfoil.storage.location import location

            location(word.rpartition("=")[2])


def is_first() -> bool:
    """Whether none of the processes that torchrun started has reported an error yet: its store knows.

    What goes wrong in one of them goes wrong in all, at once or because they wait for each other.
    """
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return True
    try:
        from counterfoil.models.runtime import import_torch

        place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = import_torch().distributed.TCPStore(*place, is_master=False, timeout=timedelta(seconds=10))
        count: int = store.add(f"counterfoil/reported/{os.environ.get('TORCHELASTIC_RESTART_COUNT')}", 1)
    # Without the store, which ends with torchrun: better twice than not at all.
    except Exception:
        return True
    return count == 1


def unforeseen(error: BaseException, arguments: Sequence[str]) -> str:
    """The line about a fault of the program; writes the report that it names."""
    message = " ".join(str(error).split())
    what = type(error).__name__ + (f": {message[:200]}" if message else "")
    try:
        report = f"the report is in {_write_report(error, arguments)}"
    except (OSError, CounterfoilError):
        report = "no report could be written (--debug prints it)"
    command = next((word for word in arguments if not word.startswith("-")), "")
    where = doing_what(error) or (f" in '{command}'" if command else "")
    return f"a fault of counterfoil{where}: {what}; {report}"


def _write_report(error: BaseException, arguments: Sequence[str]) -> Path:
    from counterfoil.benchmarks.answers import versions
    from counterfoil.store import write_text

    now = datetime.now(UTC)
    name = f"fault-{now:%Y%m%d-%H%M%S}-{os.getpid()}.txt"
    text = "\n".join(
        [
            f"counterfoil {now.isoformat(timespec='seconds')}",
            f"command: {shlex.join(['counterfoil', *arguments])}",
            f"system: {platform.platform()}",
            *(f"{library}: {version}" for library, version in versions().items()),
            "",
            *traceback.format_exception(error),
        ]
    )
    # A text of lone surrogates has no bytes in UTF-8, and the report must be written whatever it holds.
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    # The user's folder of logs and, where that cannot be written, the one of temporary files. Without a home
    # or a writable /tmp both may come out as the working folder, which is the user's own.
    logs = Path(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"), "counterfoil")
    for folder in (logs, Path(tempfile.gettempdir())):
        if not folder.is_absolute() or folder == Path.cwd():
            continue
        try:
            write_text(folder / name, text)
        except (OSError, CounterfoilError):
            continue
        return folder / name
    raise OSError(errno.ENOSPC, "no folder for the report")


def complain(text: str) -> None:
    """One line about what went wrong, on stderr."""
    from counterfoil.terminal import clean

    print(f"counterfoil: {' '.join(clean(text).split())}", file=sys.stderr)


#: Seconds after which it is looked whether Ctrl-C is being obeyed.
_LATER = 0.3


@contextmanager
def kept_interrupts() -> Iterator[None]:
    """A block that Ctrl-C ends by `KeyboardInterrupt`, raised again until the block is being left.

    Python drops an exception in a finaliser or in a callback of a library, and some libraries drop it
    themselves. Cleanup on the way out is not disturbed. Where SIGINT is ignored, as under nohup, it stays so.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        yield
        return
    pressed, over, process = threading.Event(), threading.Event(), os.getpid()
    # Once the block is over nothing is interrupted any more.
    one_at_a_time = threading.Lock()

    def raised(*_: Any) -> None:
        # A forked worker stops with its parent.
        if not pressed.is_set() and os.getpid() == process:
            pressed.set()
            threading.Thread(target=again, daemon=True).start()
        raise KeyboardInterrupt

    def again() -> None:
        while not over.wait(_LATER):
            with one_at_a_time:
                if not over.is_set() and not _leaving():
                    _thread.interrupt_main()

    hook = sys.unraisablehook
    sys.unraisablehook = lambda unraisable: (
        None if unraisable.exc_type is KeyboardInterrupt else hook(unraisable)
    )
    signal.signal(signal.SIGINT, raised)
    try:
        yield
        if pressed.is_set():
            raise KeyboardInterrupt
    finally:
        with one_at_a_time:
            over.set()
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook = hook


def _leaving() -> bool:
    """Whether the main thread runs an `except` or a `finally` because of Ctrl-C."""
    current: Any = sys._current_exceptions().get(threading.main_thread().ident or 0)
    # A triple before Python 3.12.
    error = current[1] if isinstance(current, tuple) else current
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None
