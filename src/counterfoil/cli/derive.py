"""Commands made of jobs: an option per declared argument, whose value the job converts and checks."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import click

from counterfoil import terminal
from counterfoil.benchmarks.image_files import outside_allowed
from counterfoil.cli import program
from counterfoil.cli.program import Documented, described
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.inputs.files import read_toml
from counterfoil.inputs.options import REQUIRED, Argument, Option, arguments_of
from counterfoil.jobs.job import Job, closing_at_end, ignore, prose, terminal_feedback
from counterfoil.jobs.shared_options import OVERWRITE
from counterfoil.outputs import Outputs, active_outputs, existing_paths, guarding
from counterfoil.storage.object_store import data_folder
from counterfoil.store import check_writable, owner_only, write_text

_CONFIG = Option(
    "Read arguments from this command's table in a TOML file; the command line overrides them.",
    None,
    flag="--config",
)
#: The options of outputs, and what notes call them.
_OUTPUTS = {
    "json": ("result", Option("Write the machine-readable result here.", None, metavar="PATH|-")),
    "html": ("page", Option("Write one self-contained HTML page here.", None)),
    "markdown": ("tables", Option("Write the tables as Markdown here.", None)),
    "latex": ("tables", Option("Write the tables as LaTeX (booktabs) here.", None)),
    "csv": ("numbers", Option("Write all numbers, at full precision, as CSV here.", None)),
    "plot": ("figure", Option("Draw the figure here (svg, pdf, png).", None)),
    "save": ("table", Option("Write the table here (.csv, .json, .parquet).", None, flag="--out")),
}


class Command(Documented):
    """The command of a job, which also shows and writes its result.

    `show` is the "module:function" of `cli` that prints a result; its further arguments are options.
    `arguments` are those of a command that has others than the job, of whose values `filled` makes the job's.
    With `listing` an option that may be repeated takes several values at once: `--scores a b`.
    """

    def __init__(
        self,
        name: str,
        job: Job,
        show: str = "",
        *,
        arguments: Mapping[str, Argument] | None = None,
        filled: Callable[[dict[str, Any]], dict[str, Any]] = dict,
        listing: bool = False,
        private: bool = False,
        help: str | None = None,
        epilog: str = "",
    ) -> None:
        self.job, self.filled, self.private = job, filled, private
        self.show = show or "tables:show_result"
        kind = job.function.__annotations__["return"]
        # Of several results that of each.
        self.kind = get_args(kind)[0] if get_args(kind) else kind
        self.of_job = job.arguments if arguments is None else arguments
        of_show = arguments_of(program.imported(show)) if show else ()
        self.of_show = {argument.name: argument for argument in of_show}
        of_page = arguments_of(self.kind.to_html) if "html" in job.outputs else ()
        self.of_page = {argument.name: argument for argument in of_page if argument.name != "overwrite"}
        self.options = self._declared()
        params = [param for argument in self.options.values() for param in _parameters(argument)]
        #: The options of which each word that follows is one more value.
        self.lists = {
            flag
            for param in params
            if isinstance(param, click.Option)
            and param.multiple
            and (listing or self.options[str(param.name)].positional)
            for flag in param.opts
        }
        if help is None:
            # The paragraphs that speak of no Python.
            plain = (text for text in prose(job.function.__doc__) if not text.startswith("Raises"))
            help = "\n\n".join(text for text in plain if "`" not in text and ">>>" not in text)
        super().__init__(name, params=params, help=help, epilog=epilog)

    def _declared(self) -> dict[str, Argument]:
        """The arguments of the job, of what writes and shows its result, and of all commands."""
        outputs = {}
        for name in self.job.outputs:
            option = replace(_OUTPUTS[name][1], panel="Results")
            if name == "save" and hasattr(self.kind, "save_help"):
                option = replace(option, help=self.kind.save_help)
            outputs[name] = Argument(name, Path | None, option)
        all_of_them = {**self.of_job, **outputs, **self.of_page, **self.of_show}
        options = {name: argument for name, argument in all_of_them.items() if not argument.option.hidden}
        written = {name for name, argument in options.items() if bool not in argument.members}
        if WRITTEN & written - {"cache"}:
            options.setdefault("overwrite", Argument("overwrite", bool, OVERWRITE))
        if self.job.reports:
            options["config_file"] = Argument("config_file", Path | None, _CONFIG)
        for name, option in LEVELS.items():
            if name != "allow_outside" or IMAGES & set(options):
                options.setdefault(name, Argument(name, bool, option))
        return options

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As Click does it, with options as people type them; one that was removed names its replacement."""
        program.check_former(ctx, (arg for arg in args if arg.startswith("-")))
        options = {name for param in self.get_params(ctx) for name in (*param.opts, *param.secondary_opts)}
        return super().parse_args(ctx, as_meant(args, options, self.lists))

    def invoke(self, ctx: click.Context) -> None:
        """Run the job with what was typed, print its result, and write what was asked for."""
        from counterfoil.catalog import BENCHMARKS, benchmark_name

        typed: dict[str, Any] = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in ctx.params.items()
            if value not in (None, ())
        }
        sources = self._configured(ctx, typed)
        command = ctx.command_path.partition(" ")[2]
        with running(command, {**ctx.params, **typed}, private=self.private), closing_at_end():
            outputs = {name: self.options[name] for name in self.job.outputs}
            targets = {
                name: typed[name] if name == "json" else path
                for name, path in _converted(outputs, typed).items()
            }
            files: dict[str, Any] = {"out" if name == "save" else name: targets[name] for name in targets}
            check_outputs(files)
            if "html" in targets and getattr(self.kind, "page_has_figures", True):
                from counterfoil.report.figure_style import check

                check()
            if "save" in targets:
                self.kind.check_kind(targets["save"])
            # Choices, and names of benchmarks, are not taken for files of such names that the command reads.
            for name, argument in {**self.of_show, **self.of_page, **self.of_job}.items():
                value = typed.get(name)
                if argument.option.complete == "benchmarks":
                    for text in value if isinstance(value, list) else [value] if value else []:
                        if benchmark_name(text) in BENCHMARKS:
                            not_read(text)
                elif argument.choices and isinstance(value, str):
                    not_read(value)
            json: Any = targets.get("json")
            shown: list[Any] = []

            def print_result(result: Any) -> None:
                shown.append(result)
                if result is not None and not (terminal.quiet and json == "-"):
                    show = program.imported(self.show)
                    show(result, terminal.table_console(json), **_converted(self.of_show, typed))

            given: dict[str, Any] = self.filled({name: typed[name] for name in self.of_job if name in typed})
            # Of several processes that work together one prints and writes.
            first = program.main_process()
            if self.job.reports:
                given["feedback"] = replace(
                    terminal_feedback(quiet=not first), result=print_result if first else ignore
                )
            checked = self.job.checked(given, lambda argument: sources.get(argument.name, _called(argument)))
            page = _converted(self.of_page, typed)
            result = self.job.function(**checked)
            if first and not shown:
                print_result(result)
            _write(shown, targets, page)

    def _configured(self, ctx: click.Context, typed: dict[str, Any]) -> dict[str, str]:
        """Add what the file of `--config` says to what was typed; where each value stands."""
        command = ctx.command_path.partition(" ")[2].replace(" ", ".")
        options, sources = self.options, dict[str, str]()
        if (file := typed.get("config_file")) is not None:
            table: Any = read_toml(file)
            for name in command.split("."):
                table = table.get(name) if isinstance(table, dict) else None
            if not isinstance(table, dict):
                raise InputError("no table of this command", where=file, allowed=f"[{command}]")
            names = {argument.flag[2:].replace("-", "_"): name for name, argument in options.items()}
            for key, value in table.items():
                plain = key.replace("-", "_")
                name = plain if plain in options else names.get(plain, plain.removeprefix("no_"))
                if name not in options or name == "config_file":
                    raise UnknownNameError("argument", key, options, where=f"{file}, [{command}]")
                if name in typed or value == []:
                    continue
                sources[name] = f"{file}, {command}.{key}"
                negated = plain not in options and plain.startswith("no_")
                if negated or bool in options[name].members:
                    value = Argument(key, bool, Option("")).converted(value, sources[name])
                if not negated:
                    typed[name] = value
                elif value:
                    typed[name] = False
        flags = {
            flag
            for param in self.params
            if isinstance(param, click.Option)
            for flag in (*param.opts, *param.secondary_opts)
        }
        for name, argument in options.items():
            if isinstance(typed.get(name), str) and typed[name] in flags:
                problem = f"option '{argument.flag}' requires an argument"
                raise InputError(problem, given=typed[name], hint=f"see '{ctx.command_path} --help'")
            if typed.get(name) is False and bool not in argument.members:
                # The `--no-` of what is not a switch.
                typed[name] = None
            if argument.default is REQUIRED and name not in typed:
                called = _called(argument)
                missing = f"missing {'option' if called == argument.flag else 'argument'} '{called}'"
                raise InputError(missing, hint=f"see '{ctx.command_path} --help'")
        return sources


def _called(argument: Argument) -> str:
    """The option of an argument, or the name of one that has none."""
    return argument.name if argument.positional and not argument.option.flag else argument.flag


def _converted(arguments: Mapping[str, Argument], values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: argument.converted(values[name], argument.flag)
        for name, argument in arguments.items()
        if name in values
    }


def _write(results: list[Any], targets: Mapping[str, Any], page: Mapping[str, Any]) -> None:
    """Write results as options ask: JSON of all of them, the others of one."""
    for name, target in targets.items() if results else ():
        if name == "json":
            plain = [result.to_json() for result in results]
            terminal.write_result(target, plain[0] if len(plain) == 1 else plain)
            continue
        (result,) = results
        if name == "html":
            result.to_html(target, **page)
        elif name == "plot":
            from counterfoil.report.figure_style import save

            save(result.plot(), target, title=result.plot_title)
        elif name == "save":
            result.save(target)
        else:
            write_text(target, getattr(result, f"to_{name}")())
        terminal.note(f"{_OUTPUTS[name][0]} written to {target}")


def _parameters(argument: Argument) -> list[click.Parameter]:
    """The argument or options of Click, each None where nothing was typed: defaults are the job's."""
    option, name, flag = argument.option, argument.name, argument.flag
    if option.hidden:
        return []
    plain: dict[str, Any] = {"type": click.UNPROCESSED, "default": None}
    off = flag if flag.startswith("--no-") else f"--no-{flag[2:]}"
    if bool in argument.members:
        text = described(argument)
        if off == flag or argument.default:
            text = text.replace("Whether to ", "Do not ", 1)
        plain |= {"is_flag": True, "help": text}
        if argument.default is None:
            return [click.Option([f"{flag}/{off}", name], default=None, help=described(argument))]
        if argument.default is False:
            return [click.Option([flag, *LETTERS.get(flag, ()), name], flag_value=True, **plain)]
        on = [] if off == flag else [click.Option([flag, name], flag_value=True, hidden=True, **plain)]
        return [click.Option([off, name], flag_value=False, **plain), *on]
    several = (argument.several and not option.commas) or argument.mapping
    plain["shell_complete"] = partial(_completed, argument)
    if argument.positional and not option.flag:
        metavar, nargs = f"[{option.metavar or name}]{'...' * several}", -1 if several else 1
        return [click.Argument([name], metavar=metavar, nargs=nargs, required=False, **plain)]
    names = ((int, "INTEGER"), (float, "NUMBER"), (Path, "PATH"), (object, "TEXT"))
    of_kind = next(name for kind, name in names if kind in (*argument.members, object))
    choices = " | ".join(map(str, argument.choices))
    plain["metavar"] = option.metavar or choices or ("KEY=VALUE" if argument.mapping else of_kind)
    plain |= {"multiple": several, "envvar": option.variable or None, "help": described(argument)}
    parameters: list[click.Parameter] = [click.Option([flag, name], **plain)]
    if argument.optional and option.default not in (None, REQUIRED):
        # Click lets the last of several options with one name say what holds where none is typed.
        none = click.Option([off, name], is_flag=True, flag_value=False, type=click.UNPROCESSED, default=None)
        parameters.insert(0, none)
    return parameters


def _completed(argument: Argument, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """The names of a kind, or the choices, that begin as what was typed; else files."""
    from click.shell_completion import CompletionItem

    from counterfoil.cli import completion

    kind, choices = argument.option.complete, argument.choices or argument.option.among
    names = completion.complete(kind, incomplete) if kind else map(str, choices)
    fitting = [CompletionItem(text) for text in names if text.startswith(incomplete)]
    return fitting or [CompletionItem(incomplete, type="file")]


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


def check_outputs(files: Mapping[str, str | Path | None]) -> None:
    """Declare the outputs of options by name; "-" is standard output, which takes JSON alone."""
    outputs = active_outputs() or Outputs("")
    for option, target in files.items():
        if str(target) == "-" and option != "json":
            raise InputError("standard output takes JSON alone", where=f"--{option}", allowed="a path")
        if target is None or target == "-":
            continue
        path = Path(target)
        check_writable(path)
        if option == "plot":
            from counterfoil.report.figure_style import kind_of

            kind_of(path)
        outputs.file(path)


def not_read(*names: str) -> None:
    """Take arguments away that name something else than the file or folder of the same name."""
    outputs = active_outputs()
    if outputs is not None:
        outputs.reads[:] = [path for path in outputs.reads if str(path) not in names]


@contextmanager
def running(command: str, arguments: Mapping[str, Any], *, private: bool) -> Iterator[None]:
    """The run of a command: its levels hold, its arguments are guarded, `private` outputs are the owner's."""
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
