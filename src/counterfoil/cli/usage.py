"""Usage of commands: their help, mistyped options in one line, files that are read and written, --quiet."""

import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from counterfoil.errors import InputError
from counterfoil.inputs.options import REQUIRED, Argument, Option

if TYPE_CHECKING:
    from counterfoil.outputs import Folder

#: What people type for an option, and for its values, as other tools call them.
_OPTION_SYNONYMS = {
    "-o": "--out",
    "--output": "--out",
    "--dtype": "--precision",
    "--num-workers": "--workers",
}
_VALUE_SYNONYMS = {"float32": "fp32", "float16": "fp16", "half": "fp16", "bfloat16": "bf16"}


def as_meant(args: Iterable[str], options: Collection[str], lists: Collection[str] = ()) -> list[str]:
    """Arguments with the names of a command's `options`: underscores are hyphens, and synonyms their option.

    All words after one of `lists` are its values, before each of which Click wants its name.

    >>> as_meant(["--batch_size=3", "--dtype", "float16", "-o"], ["--batch-size", "--precision", "--out"])
    ['--batch-size=3', '--precision', 'fp16', '--out']
    >>> as_meant(["--scores", "a.csv", "b.csv"], ["--scores"], ["--scores"])
    ['--scores', 'a.csv', '--scores', 'b.csv']
    """
    words: list[str] = []
    rest = iter(args)
    current, values = "", 0
    for word in rest:
        if word == "--":
            return [*words, word, *rest]
        name, equals, value = word.partition("=")
        if name.startswith("-") and name not in options:
            plain = name.replace("_", "-")
            plain = _OPTION_SYNONYMS.get(plain, plain)
            name = plain if plain in options else name
        elif not equals and words and words[-1] == "--precision":
            name = _VALUE_SYNONYMS.get(name, name)
        if name == "--precision":
            value = _VALUE_SYNONYMS.get(value, value)
        if word.startswith("-"):
            current, values = (name if name in lists else ""), len(equals)
        elif current:
            words += [current] * (values > 0)
            values += 1
        words.append(f"{name}{equals}{value}")
    return words


_ON_PROLIFIC = "on the study's page at app.prolific.com"
_RETRAIN = "train on positives.csv with 'counterfoil train', evaluate the models, and pool the new runs"
_MIXTURES = "write mixtures with --alpha and evaluate each"
_COST = "multiply the numbers of rows and answers, which are reported, by the price"
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
    "demo --full": "train and compare with the commands that the page of 'counterfoil demo' prints",
    "demo --dials": "run 'counterfoil train vse0' with --set mining= for the choice of negatives, and "
    "benchmarks/noise_filter.py of the repository for what wrong negatives cost",
    "benchmarks publish --to": f"use --out FOLDER; {_HUB}",
    **{f"benchmarks publish {name}": _HUB for name in ("--execute", "--private")},
    "compare rankings --csv": "write all numbers with --json, or take to_arrow(by='pair') in Python",
    "explain --grade": "hold the cells of --json, or of to_arrow(by='cell'), against masks of your own",
    "work": "run the command itself with '--executor rank:R/N', and one --cache for all ranks",
    "estimate": "run 'counterfoil evaluate' with --limit, which says what the whole benchmark would take",
    "merge": "run the command once more without --executor, with the --cache that its ranks filled",
    "build merge": "concatenate the tables of pairs, as with pandas.concat, for 'build assemble'",
    "world sheet": "run examples/draw_a_world.py of the repository",
    "build negate --wordnet": "let a language model write the negatives, with --by",
    "build format --spelling": "replace the words in the table before, as with pandas.Series.str.replace",
    **{
        f"build {step} {name}": _COST for step in ("filter", "choose") for name in ("--making", "--verifying")
    },
    "build imagine --price": _COST,
    "build refine --scales": "divide the scores by the number in the table before",
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
    "captions score --scorer": "--backbone",
    "captions systems --scorer": "--backbone",
    "pool --golden": "--golden-per-task",
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
                    beside = _broken(text, width, " " * column, " " * column)
                    if len(name) + 4 > column:
                        lines.append(f"  {name}")
                    else:
                        beside[0] = f"  {name}".ljust(column) + beside[0][column:]
                    lines += beside
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


#: Options of every command, and of those with a folder of images.
LEVELS = {
    "quiet": Option("Print no notes and no progress.", False),
    "verbose": Option("Print a line of progress every few seconds where there is no bar.", False),
    "allow_outside": Option("Accept images outside the image folder, also through links.", False),
}
#: Options that name a folder of images.
IMAGES = {"images", "guard_images"}
#: Options that have a letter.
LETTERS = {"--quiet": ("-q",), "--yes": ("-y",)}


#: Options that name what is written; all other arguments that name a file or a folder are read.
WRITTEN = frozenset(
    {"out", "to", "json", "html", "markdown", "latex", "csv", "plot", "save", "cache", "dropped", "keep"}
)


def check_outputs(*, folders: Sequence["Folder"] = (), **files: str | Path | None) -> None:
    """Declare the outputs of options by name; "-" is standard output."""
    from counterfoil.outputs import Outputs, active_outputs
    from counterfoil.store import check_writable

    outputs = active_outputs() or Outputs("")
    for option, target in files.items():
        if target is None or target == "-":
            continue
        path = Path(target)
        check_writable(path)
        if option == "plot":
            from counterfoil.report.figure_style import kind_of

            kind_of(path)
        outputs.file(path)
    for folder in folders:
        check_writable(folder.path, folder=True)
        outputs.folder(folder)


def not_read(*names: str) -> None:
    """Take arguments away that name something else than the file or folder of the same name."""
    from counterfoil.outputs import active_outputs

    outputs = active_outputs()
    if outputs is not None:
        outputs.reads[:] = [path for path in outputs.reads if str(path) not in names]


def main_process() -> bool:
    """Whether this process is the one that prints: of several that torchrun or Fabric started, the first."""
    return all(os.environ.get(name, "0") == "0" for name in ("RANK", "LOCAL_RANK"))


@contextmanager
def running(command: str, arguments: Mapping[str, Any], *, private: bool) -> Iterator[None]:
    """The run of a command: its levels hold, its arguments are guarded, `private` outputs are the owner's."""
    from counterfoil import terminal
    from counterfoil.benchmarks.image_files import outside_allowed
    from counterfoil.outputs import Outputs, existing_paths, guarding
    from counterfoil.storage.location import data_folder
    from counterfoil.store import owner_only

    quiet, verbose = (bool(arguments.get(name)) for name in ("quiet", "verbose"))
    outside = outside_allowed() if arguments.get("allow_outside") else nullcontext()
    read = {name: value for name, value in arguments.items() if name not in WRITTEN}
    if "data" in read and not read["data"]:
        # The folder of benchmark files, where no argument names one.
        read["data"] = data_folder()
    # A path or a text, or what an argument lists of these.
    lists = (value if isinstance(value, list | tuple) else (value,) for value in read.values())
    inputs = existing_paths(text for texts in lists for text in texts if isinstance(text, str | Path))
    outputs = Outputs(command, overwrite=bool(arguments.get("overwrite")), reads=inputs)
    owner = owner_only() if private else nullcontext()
    with terminal.levels(quiet=quiet, verbose=verbose), guarding(outputs), outside, owner:
        yield
