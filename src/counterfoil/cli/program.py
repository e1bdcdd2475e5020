"""The program: groups of commands and their help, what was typed and removed, and how a command ends.

Exit codes: 0 on success; 2 on input that cannot be used, or a disk or machine that fails (a name too long, no
room, no memory left), which is one line; 70 on a fault of the program (`EX_SOFTWARE` of sysexits.h), which is
one line for the user and a file with the traceback for the developers; 130 on Ctrl-C.
"""

import atexit
import gc
import io
import os
import platform
import re
import shlex
import shutil
import sys
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from inspect import cleandoc
from pathlib import Path
from textwrap import wrap
from types import CodeType
from typing import Any, NoReturn

import click

from counterfoil import __version__
from counterfoil.errors import CounterfoilError, InputError, doing_what, expected_error
from counterfoil.inputs.options import REQUIRED, Argument

_ON_PROLIFIC = "on the study's page at app.prolific.com"
_RETRAIN = "train on positives.csv with 'counterfoil train', evaluate the models, and pool the new runs"
_MIXTURES = "write mixtures with --alpha and evaluate each"
_COST = "multiply the numbers of rows and answers, which are reported, by the price"
_COMPLETION = (
    'put eval "$(_COUNTERFOIL_COMPLETE=bash_source counterfoil)" into ~/.bashrc, or zsh_source into ~/.zshrc'
)
_TASKS = "divide the number of pairs, which is printed, by those of a task, and multiply by answers and price"
_HUB = "'hf upload OWNER/NAME FOLDER --repo-type dataset' puts a published folder on the hub"
#: Commands and options that were removed, and what to do instead.
_REMOVED = {
    "cache size": "use cache list, whose last line has it",
    **{f"train mix {name}": _MIXTURES for name in ("--task", "--held-out", "--points", "--json")},
    "annotate plan": "create the campaign, which counts hours and pay, and run annotate simulate on it",
    "annotate study": "run a campaign of your own by simulated people: counterfoil annotate simulate",
    "annotate questions": "let people answer on the campaign's pages: counterfoil annotate serve",
    "annotate mturk-review": "approve and reject assignments on the batch's page at Mechanical Turk",
    "annotate import --labelling-config": "name questions with several answers by --many",
    "annotate import --campaign": "leave it out; 'annotate agreement TABLE' takes --campaign",
    "annotate prolific create": "make the study at app.prolific.com with the address that 'annotate serve' "
    'prints, and write completion = "completed=CODE, study=ID" into campaign.toml',
    "annotate prolific publish": f"preview and publish the draft {_ON_PROLIFIC}",
    "annotate prolific pause": f"pause it {_ON_PROLIFIC}",
    "annotate prolific start": f"start it again {_ON_PROLIFIC}",
    "annotate prolific stop": f"stop it {_ON_PROLIFIC}",
    "annotate prolific places": f"increase places {_ON_PROLIFIC}",
    "annotate prolific reject --from": "decide with 'annotate reject': its decisions are sent",
    "annotate prolific bonus": f"pay bonuses {_ON_PROLIFIC}, which takes lines of id and amount",
    **{
        f"annotate create --{name}": f"write it into {name}.md of the campaign's folder, images into figures/"
        for name in ("instructions", "consent")
    },
    **{
        f"annotate serve {name}": "let nginx, Caddy or a tunnel speak https, and name it with --public-url"
        for name in ("--certificate", "--key")
    },
    "annotate adjudicate --question": "leave it out: the form's main question is decided, which has labels",
    "annotate preferences --self-votes": "leave it out: such votes are left out, with a warning",
    "annotate simulate --http": "leave it out: simulated people call the functions that the server calls",
    **dict.fromkeys(("--install-completion", "--show-completion"), _COMPLETION),
    "demo --full": "train and compare with the commands that the page of 'counterfoil demo' prints",
    "demo --dials": "run 'counterfoil train vse0' with --set mining= for the choice of negatives, and "
    "benchmarks/noise_filter.py of the repository for what wrong negatives cost",
    "benchmarks publish --to": f"use --out FOLDER; {_HUB}",
    **{f"benchmarks publish {name}": _HUB for name in ("--execute", "--private")},
    "benchmarks publish --split": "name the split of every question in a column 'split' of the table",
    "compare rankings --k": "leave it out: 'counterfoil pool' says how many first items models share",
    "pool bias --html": "draw the figure with --plot, or write all numbers with --json",
    **{
        f"pool {name}": _TASKS
        for name in ("--per-task", "--golden-per-task", "--golden", "--answers", "--price")
    },
    "compare rankings --csv": "write all numbers with --json, or take to_arrow(by='pair') in Python",
    "explain --grade": "hold the cells of --json, or of to_arrow(by='cell'), against masks of your own",
    "work": "run the command itself with '--executor rank:R/N', and one --cache for all ranks",
    "estimate": "run 'counterfoil evaluate' with --limit, which says what the whole benchmark would take",
    "merge": "run the command once more without --executor, with the --cache that its ranks filled",
    "build merge": "concatenate the tables of pairs, as with pandas.concat, for 'build assemble'",
    "world sheet": "run examples/draw_a_world.py of the repository",
    "build author": "let people write in a campaign: counterfoil annotate create quad-authoring",
    "build negate --wordnet": "let a language model write the negatives, with --by",
    "build format --spelling": "replace the words in the table before, as with pandas.Series.str.replace",
    **{
        f"build {step} {name}": _COST for step in ("filter", "choose") for name in ("--making", "--verifying")
    },
    "build imagine --price": _COST,
    "build refine --scales": "divide the scores by the number in the table before",
    **{
        f"build refine --{name}": "balance the model with --balance, or measure it with --held-out"
        for name in ("against", "share", "least")
    },
    "build select --minus": "add a column of the difference to the table before, and name it with --by",
    "build select --lowest": "add a column of the negated scores to the table before, and name it with --by",
    **{
        f"build clean {name}": "give the table of the other split with --against"
        for name in ("--split", "--drop-from")
    },
    "train --tensorboard": "read journal.csv in the folder of the training, which has the same numbers",
    "train --checkpoint-activations": "use --chunk-size N, whose gradient is that of the whole batch",
    "pool --device": "leave it out: embeddings are compared on the processor",
    **{f"pool rounds {name}": _RETRAIN for name in ("--retrain", "--retrain-command", "--start", "--set")},
}
#: Options that were renamed, by command, and what they are called now: each name has one meaning everywhere.
_RENAMED = {
    "evaluate --protocol": "--set protocol=NAME",
    "evaluate --question": "--set question=TEXT",
    "evaluate --scorer": "--backbone",
    **{
        f"{command} --scorer": "--model" for command in ("audit", "build choose", "build rate", "cache clear")
    },
    **{f"build {step} --scorers": "--models" for step in ("filter", "positives")},
    "captions score --scorer": "--backbone",
    "captions systems --scorer": "--backbone",
    "reproduce --files": "--list-files",
    "annotate status --people": "--by-person",
    "annotate export --people": "--person-ids",
    "annotate export --no-people": "--no-person-ids",
    "annotate export --kind": "--format",
    "annotate export --model": "--label-model",
    "annotate import --from": "--format",
    "annotate import --question": "--question-column",
    "annotate import --golden": "--golden-column",
    "annotate prolific status --release": "--release-items",
}
#: Commands that were moved, and where to.
_MOVED = {
    **{name: f"benchmarks {name}" for name in ("fetch", "save", "publish")},
    **{name: f"compare {name}" for name in ("rankings", "lengths")},
    "list scorers": "list models",
    "bias": "pool bias",
    "build pool": "pool rounds",
    "preferences": "annotate preferences",
    "mix": "train mix",
}


def place(source: str) -> tuple[str, str]:
    """The module and name of "jobs.module:name" of `counterfoil`, or "module:name" of `counterfoil.cli`."""
    module, _, name = source.partition(":")
    return f"counterfoil.{module}" if module.startswith("jobs.") else f"counterfoil.cli.{module}", name


def imported(source: str) -> Any:
    """What stands at a place."""
    module, name = place(source)
    return getattr(import_module(module), name)


def check_former(ctx: click.Context, args: Iterable[str]) -> None:
    """Raise `InputError` for a command or an option that was removed or moved, with what to use instead."""
    path = ctx.command_path.partition(" ")[2]
    for word in (arg.partition("=")[0] for arg in args):
        name = f"{path} {word}".strip()
        kind, given = ("option", word) if word.startswith("-") else ("command", name)
        if name in _REMOVED:
            raise InputError(f"the {kind} was removed", given=given, hint=_REMOVED[name])
        if name in _RENAMED:
            raise InputError("the option was renamed", given=given, hint=f"use {_RENAMED[name]}")
        if name in _MOVED:
            raise InputError(f"the {kind} was moved", given=given, hint=f"use 'counterfoil {_MOVED[name]}'")


def in_one_line(error: click.UsageError) -> InputError:
    """Click's error about what was typed as one of ours, in place of its lines."""
    if isinstance(error, click.NoSuchOption):
        near = ", ".join(sorted(error.possibilities or ()))
        message = f"no such option: {error.option_name}{near and f' (Possible options: {near})'}"
    else:
        message = error.format_message().removesuffix(".")
    path = "counterfoil" if error.ctx is None else error.ctx.command_path
    return InputError(message[:1].lower() + message[1:], hint=f"see '{path} --help'")


#: A name that is longer stands in a line of its own, above its text.
_LONGEST_NAME = 28

#: Names and their texts by heading.
Sections = dict[str, list[tuple[str, str]]]


class Documented(click.Command):
    """A command that prints its help in the width of the terminal."""

    #: What is declared of its parameters, by name.
    options: Mapping[str, Argument] = {}

    def sections(self, ctx: click.Context) -> Sections:
        """Its arguments and options; one without a text stands in that of another."""
        sections: Sections = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            declared = self.options.get(str(param.name))
            if not isinstance(param, click.Option):
                assert declared is not None
                sections["Arguments"].append((str(param.metavar).strip("[]."), described(declared)))
            elif param.help and not param.hidden:
                panel = (declared.option.panel if declared else "") or "Options"
                name = " / ".join(filter(None, (", ".join(param.opts), *param.secondary_opts)))
                sections.setdefault(panel, []).append((f"{name} {param.metavar or ''}".rstrip(), param.help))
        return sections

    def get_help(self, ctx: click.Context) -> str:
        """Usage, description, sections and examples."""
        width = max(shutil.get_terminal_size().columns, 40)
        usage = f"Usage: {ctx.command_path} {' '.join(self.collect_usage_pieces(ctx))}"
        parts = ["\n".join(_broken(usage, width, "", " " * 7)), *_paragraphs(self.help or "", width)]
        for heading, rows in self.sections(ctx).items():
            if rows:
                lines = [click.style(f"{heading}:", bold=True)]
                column = 4 + min(_LONGEST_NAME, max(len(name) for name, _ in rows))
                for name, text in rows:
                    columns = _broken(text, width, " " * column, " " * column)
                    if len(name) + 4 > column:
                        lines.append(f"  {name}")
                    else:
                        columns[0] = f"  {name}".ljust(column) + columns[0][column:]
                    lines += columns
                parts.append("\n".join(lines))
        return "\n\n".join((*parts, *_paragraphs(self.epilog or "", width)))


def described(argument: Argument) -> str:
    """The help of an argument with what it may be, and what it is where it is not given."""
    option, default = argument.option, argument.default
    facts = [argument.allowed] if argument.allowed and not argument.choices else []
    if default is REQUIRED:
        facts.append("required")
    if option.variable:
        facts.append(f"env var: {option.variable}")
    if isinstance(default, tuple):
        default = ",".join(map(str, default))
    if option.shown or not (default in (REQUIRED, None, "") or isinstance(default, bool)):
        facts.append(f"default: {option.shown or default}")
    return option.help + (f" [{'; '.join(facts)}]" if facts else "")


def _broken(text: str, width: int, first: str, more: str) -> list[str]:
    """The words of a text in lines, which end at spaces: names of options have hyphens."""
    return wrap(
        " ".join(text.split()),
        width,
        initial_indent=first,
        subsequent_indent=more,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _paragraphs(text: str, width: int) -> Iterator[str]:
    """Paragraphs; an example, which begins with two spaces and "counterfoil", has lines of its own."""
    for paragraph in filter(None, text.split("\n\n")):
        lines: list[str] = []
        for part in re.split(r"\n(?=  counterfoil )", paragraph):
            indents = ("  ", "      ") if part.startswith("  ") else ("", "")
            lines += _broken(part, width, *indents)
        yield "\n".join(lines)


def main_process() -> bool:
    """Whether this process is the one that prints: of several that torchrun or Fabric started, the first."""
    return all(os.environ.get(name, "0") == "0" for name in ("RANK", "LOCAL_RANK"))


#: The exit code of a fault of the program.
SOFTWARE = 70
#: The exit code of a process that Ctrl-C stopped.
INTERRUPTED = 130


def debugging(arguments: Sequence[str]) -> tuple[bool, list[str]]:
    """Whether `--debug` is among the arguments, and the others; those after a lone `--` are kept."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    others = [word for word in arguments[:end] if word != "--debug"]
    return len(others) < end, [*others, *arguments[end:]]


def unexpected(error: BaseException, arguments: Sequence[str]) -> str:
    """The line about a fault of the program; writes the report that it names."""
    from counterfoil.benchmarks.answers import versions
    from counterfoil.store import write_text

    message = " ".join(str(error).split())
    what = type(error).__name__ + (f": {message[:200]}" if message else "")
    try:
        now = datetime.now(UTC)
        logs = Path(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"), "counterfoil")
        path = logs / f"fault-{now:%Y%m%d-%H%M%S}-{os.getpid()}.txt"
        lines = [
            f"counterfoil {now.isoformat(timespec='seconds')}",
            f"command: {shlex.join(['counterfoil', *arguments])}",
            f"system: {platform.platform()}",
            *(f"{library}: {version}" for library, version in versions().items()),
            "",
            *traceback.format_exception(error),
        ]
        # A text of lone surrogates has no bytes in UTF-8, and the report must be written whatever it holds.
        write_text(path, "\n".join(lines).encode("utf-8", "backslashreplace").decode("utf-8"))
        report = f"the report is in {path}"
    except (OSError, CounterfoilError):
        report = "no report could be written (--debug prints it)"
    command = next((word for word in arguments if not word.startswith("-")), "")
    where = doing_what(error) or (f" in '{command}'" if command else "")
    return f"a fault of counterfoil{where}: {what}; {report}"


def complain(text: str) -> None:
    """One line about what went wrong, on stderr."""
    from counterfoil.terminal import clean

    print(f"counterfoil: {' '.join(clean(text).split())}", file=sys.stderr)


#: Seconds that a process waits for the first of several to report an error.
_OTHERS_FIRST = 3.0


class CommandGroup(Documented, click.Group):
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
            command = imported(source)
        if not isinstance(command, CommandGroup):
            job = imported("jobs.job:job_of")(command)
            below = [f"counterfoil {name}" for name in self.rows if name.startswith(f"{cmd_name} ")]
            epilog = job.examples + (f"\n\nSee also: {', '.join(below)}" if below else "")
            command = imported("derive:Command")(cmd_name, job, show, private=self.private, epilog=epilog)
        self.commands[cmd_name] = command
        return self.commands[cmd_name]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As Click does it; without arguments the help is shown, and former names say the present ones."""
        check_former(ctx, args[:1])
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command that is asked for, whose name may have two words."""
        words = " ".join(args[:2])
        name, rest = (words, args[2:]) if words in self.rows else (args[0], args[1:])
        command = self.get_command(ctx, name)
        if command is None and not ctx.resilient_parsing:
            near = get_close_matches(name, {**dict.fromkeys(self.list_commands(ctx)), **self.rows})
            hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
            raise click.UsageError(f"No such command {name!r}{hint}", ctx)
        return name, command, rest

    def listed(self) -> Sections:
        """Every command with the first paragraph of its help, of a job as the compiled module has it."""
        commands = []
        for name, row in self.rows.items():
            if " " in name:
                continue
            text = None if isinstance(row, str) else row.help
            if isinstance(row, str):
                module, function = place(row.partition(" ")[0])
                spec: Any = find_spec(module)
                code = spec.loader.get_code(spec.name)
                docs = {one.co_name: one.co_consts[0] for one in code.co_consts if isinstance(one, CodeType)}
                text = docs.get(function) or self.get_command(None, name).help  # type: ignore[union-attr]
            commands.append((name, cleandoc(text or "").partition("\n\n")[0]))
        return {"Commands": commands}

    def sections(self, ctx: click.Context) -> Sections:
        """Its options, and its commands."""
        return {**super().sections(ctx), **self.listed()}

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Its commands that begin as what was typed, or its options."""
        from click.shell_completion import CompletionItem

        rows = [row for rows in self.listed().values() for row in rows if row[0].startswith(incomplete)]
        items = [CompletionItem(name, help=summary) for name, summary in rows]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]


#: The variable by which a shell asks for completions.
_COMPLETE = "_COUNTERFOIL_COMPLETE"


def print_and_leave(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    """What an option prints in place of running a command."""
    if wanted and param.name == "version":
        print(f"counterfoil {__version__}")
        ctx.exit()


def run(app: click.Command) -> NoReturn:
    """Run the command line; whatever goes wrong is one line on stderr."""
    # At its end Python looks through all that was loaded for what it can free: a tenth of a second.
    atexit.register(gc.freeze)
    for name in ("stdout", "stderr"):
        # One that was closed before the start takes all and keeps nothing.
        stream = getattr(sys, name) or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        setattr(sys, name, stream)
        # What the terminal's encoding lacks is written as an escape, not a reason to stop.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    debug, arguments = debugging(sys.argv[1:])
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
        complain("stopped; finished work is kept and will not be repeated")
        sys.stdout.flush()
        sys.stderr.flush()
        # Python notes when Ctrl-C hits code that `exec` runs (every dataclass being imported) and would
        # then end by the signal in spite of sys.exit. All our cleanup is done by now.
        os._exit(INTERRUPTED)
    except SystemExit:
        raise
    except BaseException as error:
        if not main_process():
            # Of several processes that find the same fault one reports it: the launcher ends the others
            # when the first one ends. A process that is still alive has found a fault of its own.
            time.sleep(_OTHERS_FIRST)
        if debug:
            traceback.print_exception(error)
        expected = expected_error(error)
        if isinstance(error, click.UsageError):
            expected = in_one_line(error)
        complain(unexpected(error, arguments) if expected is None else str(expected))
        sys.exit(SOFTWARE if expected is None else 2)
    sys.exit(0)
