"""Usage of commands: mistyped options in one line, files that they read and write, --quiet and --verbose."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from counterfoil.errors import InputError
from counterfoil.inputs.options import Option

if TYPE_CHECKING:
    from counterfoil.outputs import Folder

#: What Typer raises for options that are unknown, missing, out of range or no numbers.
UsageError = cast(type[Exception], typer.BadParameter.__mro__[1])


#: What people type for an option, and for its values, as other tools call them.
_OPTION_SYNONYMS = {
    "-o": "--out",
    "--output": "--out",
    "--dtype": "--precision",
    "--num-workers": "--workers",
}
_VALUE_SYNONYMS = {"float32": "fp32", "float16": "fp16", "half": "fp16", "bfloat16": "bf16"}


def as_meant(args: Iterable[str], options: Collection[str]) -> list[str]:
    """Arguments with the names of a command's `options`: underscores are hyphens, and synonyms their option.

    >>> as_meant(["--batch_size=3", "--dtype", "float16", "-o"], ["--batch-size", "--precision", "--out"])
    ['--batch-size=3', '--precision', 'fp16', '--out']
    """
    words: list[str] = []
    rest = iter(args)
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
        words.append(f"{name}{equals}{value}")
    return words


#: Commands that were removed, and what to use instead.
_REMOVED = {
    "annotate study": "run a campaign of your own by simulated people: counterfoil annotate simulate",
    "annotate questions": "let people answer on the campaign's pages: counterfoil annotate serve",
    "annotate mturk-review": "approve and reject assignments on the batch's page at Mechanical Turk",
    "work": "run the command itself with '--executor rank:R/N', and one --cache for all ranks",
    "estimate": "run 'counterfoil evaluate' with --limit, which says what the whole benchmark would take",
    "merge": "run the command once more without --executor, with the --cache that its ranks filled",
}
#: Options that were removed, by command.
_REMOVED_OPTIONS = {
    "pool": {"--device": "leave it out: embeddings are compared on the processor"},
    "pool rounds": dict.fromkeys(
        ("--retrain", "--retrain-command", "--start", "--set"),
        "train on positives.csv with 'counterfoil train', evaluate the models, and pool the new runs",
    ),
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


class _PlainFlags:
    """A command whose help shows a flag as a flag."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with what help says of the type of each."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if param.metavar is None and getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(_PlainFlags, TyperCommand):
    """A command that takes options as people type them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As Typer does it, with options as people type them; one that was removed names its replacement."""
        removed = _REMOVED_OPTIONS.get(ctx.command_path.partition("counterfoil ")[2], {})
        for name in (arg.partition("=")[0] for arg in args):
            if name in removed:
                raise InputError("the option was removed", given=name, hint=removed[name])
        options = {name for param in self.get_params(ctx) for name in (*param.opts, *param.secondary_opts)}
        rest: list[str] = super().parse_args(ctx, as_meant(args, options))
        return rest


class CommandGroup(_PlainFlags, TyperGroup):
    """A group that knows which commands were removed."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As Typer does it; a command that was removed or moved names what to use instead."""
        words = ctx.command_path.partition("counterfoil ")[2].split()
        name = " ".join([*words, *args[:1]])
        if name in _REMOVED:
            raise InputError("the command was removed", given=name, hint=_REMOVED[name])
        if name in _MOVED:
            raise InputError("the command was moved", given=name, hint=f"use 'counterfoil {_MOVED[name]}'")
        return super().resolve_command(ctx, args)


def in_one_line(error: BaseException) -> InputError:
    """Typer's error about what was typed as one of ours, in place of its box."""
    context = getattr(error, "ctx", None)
    words = "" if context is None else context.command_path.partition("counterfoil")[2]
    path = f"counterfoil{words.removeprefix(' -m counterfoil')}"
    message = cast(Any, error).format_message().replace("Value error, ", "").replace(". Did you", "; did you")
    message = message.removesuffix(".")
    return InputError(message[:1].lower() + message[1:], hint=f"see '{path} --help'")


#: Options of every command, and of those with a folder of images.
LEVELS = {
    "quiet": Option("No notes and no progress.", False),
    "verbose": Option("A line of progress every few seconds, where there is no bar.", False),
    "allow_outside": Option("Take images that lie outside of the folder of images, links followed.", False),
}
#: Options that name a folder of images.
IMAGES = {"images", "guard_images"}
#: Options that have a letter.
LETTERS = {"--quiet": ("-q",), "--yes": ("-y",)}


def flowing(text: str) -> str:
    """The same paragraphs, each in one line for the terminal to break; it would keep our own breaks too.

    An example, a line that begins with two spaces and "counterfoil", is a paragraph of its own.
    """
    paragraphs = re.split(r"\n\n|\n(?=  counterfoil )", text)
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def for_owner(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command whose files and folders are readable by their owner alone: they are about people."""

    @wraps(command)
    def run(*given: Any, **options: Any) -> Any:
        from counterfoil.store import owner_only

        with owner_only():
            return command(*given, **options)

    return run


#: Options that name what is written; all other arguments that name a file or a folder are read.
WRITTEN = frozenset(
    {"out", "to", "json", "html", "markdown", "latex", "csv", "plot", "save", "cache", "dropped", "keep"}
)


@contextmanager
def guarded(command: str, arguments: Mapping[str, Any], data: Path) -> Iterator[None]:
    """Guard what `command` reads, as its arguments name it, until the block ends.

    `data` is the folder of benchmark files where no argument names one.
    """
    from counterfoil.outputs import Outputs, existing_paths, guarding

    read = {name: value for name, value in arguments.items() if name not in WRITTEN}
    if "data" in read and not read["data"]:
        read["data"] = data
    # A path or a text, or what an argument lists of these.
    lists = (value if isinstance(value, list | tuple) else (value,) for value in read.values())
    inputs = existing_paths(text for texts in lists for text in texts if isinstance(text, str | Path))
    outputs = Outputs(command, overwrite=bool(arguments.get("overwrite")), reads=inputs)
    with guarding(outputs):
        yield


def check_outputs(*, folders: Sequence["Folder"] = (), **files: str | Path | None) -> None:
    """Declare outputs by option; raises `CounterfoilError` where one of them cannot or must not be written.

    `files` are named after their options. "-" is standard output.
    """
    from counterfoil.outputs import Outputs, active_outputs
    from counterfoil.store import check_writable

    outputs = active_outputs() or Outputs("")
    for option, target in files.items():
        if target is None or target == "-":
            continue
        if str(target) == "":
            raise InputError("no name of a file", where=f"--{option}", given="(empty)", hint="name a file")
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


@contextmanager
def running(ctx: Any, arguments: Mapping[str, Any]) -> Iterator[None]:
    """The run of a command: `--quiet` and `--verbose` hold, and what it reads and writes is guarded."""
    from counterfoil import terminal
    from counterfoil.benchmarks.data_paths import data_folder
    from counterfoil.benchmarks.image_files import outside_allowed

    quiet, verbose = (bool(arguments.get(name)) for name in ("quiet", "verbose"))
    name = ctx.command_path.partition(" ")[2]
    outside = outside_allowed() if arguments.get("allow_outside") else nullcontext()
    with terminal.levels(quiet=quiet, verbose=verbose), guarded(name, ctx.params, data_folder()), outside:
        yield
