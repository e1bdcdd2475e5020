"""Commands made of jobs: an option per declared argument, checked as the same call from Python is checked.

Typer parts the words of a command and writes its help; values go to the job as texts, which it converts. What
writes a result has options too, such as `--html` and `--title` of `to_html`.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from rich.markup import escape

from counterfoil import terminal
from counterfoil.cli import usage
from counterfoil.cli.faults import main_process
from counterfoil.errors import CounterfoilError, InputError, UnknownNameError
from counterfoil.inputs.options import REQUIRED, Argument, Option, arguments_of
from counterfoil.jobs.arguments import OVERWRITE
from counterfoil.jobs.job import Job, closing_at_end, ignore, prose, terminal_feedback

_CONFIG = Option(
    "Arguments from the table of this command in a TOML file; what is given here comes first.",
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


def command(
    job: Job,
    show: str = "",
    *,
    arguments: Mapping[str, Argument] | None = None,
    filled: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> Callable[..., None]:
    """The function that Typer makes a command of.

    `arguments` are those of a command that has others than the job, of whose values `filled` makes the job's.
    `show` is the "module:function" of `counterfoil.cli` that prints a result on a console; its further
    arguments are options of the command. Without it the tables and notes of the result are printed.
    """
    module, _, name = (show or "tables:show_result").partition(":")
    printing = getattr(import_module(f"counterfoil.cli.{module}"), name)
    kind = job.function.__annotations__["return"]
    # Of several results that of each.
    kind = get_args(kind)[0] if get_args(kind) else kind
    of_show = {argument.name: argument for argument in arguments_of(printing)}
    declared = arguments_of(kind.to_html) if "html" in job.outputs else ()
    of_page = {argument.name: argument for argument in declared if argument.name != "overwrite"}
    outputs = {}
    for name in job.outputs:
        option = replace(_OUTPUTS[name][1], panel="Results")
        if name == "save" and hasattr(kind, "save_help"):
            option = replace(option, help=kind.save_help)
        outputs[name] = Argument(name, Path | None, option)
    of_job = job.arguments if arguments is None else arguments
    typed_for = {**of_show, **of_page, **of_job}
    options = {**of_job, **outputs, **of_page, **of_show}
    written = {name for name, argument in options.items() if bool not in argument.members}
    if usage.WRITTEN & written - {"cache"}:
        options.setdefault("overwrite", Argument("overwrite", bool, OVERWRITE))
    if job.reports and all(argument.flag != _CONFIG.flag for argument in options.values()):
        options["config_file"] = Argument("config_file", Path | None, _CONFIG)
    for name, option in usage.LEVELS.items():
        if name != "allow_outside" or usage.IMAGES & set(options):
            options.setdefault(name, Argument(name, bool, option))

    @wraps(job.function)
    def run(ctx: Any, **typed: Any) -> None:
        from counterfoil.catalog import benchmark_name, benchmarks

        places = _configured(ctx, typed, options)
        with usage.running(ctx, typed), closing_at_end():
            values = {
                name: value
                for name, option in typed_for.items()
                if (value := _typed(option, typed)) is not None
            }
            targets = {
                name: target if name == "json" else Path(target)
                for name in outputs
                if (target := typed.get(name)) is not None
            }
            files: dict[str, Any] = {"out" if name == "save" else name: targets[name] for name in targets}
            usage.check_outputs(**files)
            if "html" in targets and getattr(kind, "page_has_figures", True):
                from counterfoil.report.figure_style import check

                check()
            if "save" in targets:
                kind.check_kind(targets["save"])
            # Choices, and names of benchmarks, are not taken for files of such names that the command reads.
            for name, value in values.items():
                option = typed_for[name].option
                if option.complete == "benchmarks":
                    names = value if isinstance(value, list) else [value]
                    usage.not_read(*(text for text in names if benchmark_name(text) in benchmarks()))
                elif typed_for[name].choices and isinstance(value, str):
                    usage.not_read(value)
            json: Any = targets.get("json")
            shown: list[Any] = []

            def print_result(result: Any) -> None:
                shown.append(result)
                if result is not None and not (terminal.quiet and json == "-"):
                    printing(result, terminal.beside(json), **_converted(of_show, values))

            given: dict[str, Any] = filled(
                {name: None if values[name] is _OFF else values[name] for name in of_job if name in values}
            )
            # Of several processes that work together one prints and writes.
            first = main_process()
            if job.reports:
                given["feedback"] = replace(
                    terminal_feedback(quiet=not first), result=print_result if first else ignore
                )
            checked = job.checked(given, lambda argument: places.get(argument.name, _called(argument)))
            page = _converted(of_page, values)
            try:
                result = job.function(**checked)
            except CounterfoilError:
                # What was measured before one of several could not be is written all the same.
                _write(shown, targets, page)
                raise
            if not first:
                return
            if not shown:
                print_result(result)
            _write(shown, targets, page)

    # The paragraphs that speak of no Python.
    plain = (text for text in prose(job.function.__doc__) if not text.startswith("Raises"))
    run.__doc__ = "\n\n".join(text for text in plain if "`" not in text and ">>>" not in text)
    # Typer reads the signature: its context, and the options.
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [
        context.replace(name=name, annotation=annotation, default=default)
        for argument in options.values()
        for name, annotation, default in _parameters(argument)
    ]
    signature = inspect.Signature([context, *parameters])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {name: option.annotation for name, option in signature.parameters.items()}
    return run


def _configured(ctx: Any, typed: dict[str, Any], options: Mapping[str, Argument]) -> dict[str, str]:
    """Add what the file of `--config` says to what was typed, which comes first; where each value stands.

    Raises `InputError` for a table or a key that it does not have, and for arguments that are missing.
    """
    command = ctx.command_path.partition(" ")[2].replace(" ", ".")
    places: dict[str, str] = {}
    if (file := typed.pop("config_file", None)) is not None:
        from counterfoil.inputs.files import read_toml

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
            switched = plain.startswith("no_") and plain not in options
            parameter = f"no_{name}" if switched else name
            source = ctx.get_parameter_source(parameter)
            if source is None or source.name in ("DEFAULT", "DEFAULT_MAP"):
                typed[parameter], places[name] = value, f"{file}, {command}.{key}"
    for name, argument in options.items():
        if argument.default is REQUIRED and typed.get(name) in (None, []):
            word = "option" if _called(argument) == argument.flag else "argument"
            raise InputError(f"missing {word} '{_called(argument)}'", hint=f"see '{ctx.command_path} --help'")
    return places


def _called(argument: Argument) -> str:
    """The option of an argument, or the name of one that has none."""
    return argument.name if argument.positional and not argument.option.flag else argument.flag


def _typed(argument: Argument, typed: Mapping[str, Any]) -> Any:
    """What was typed for an argument; None where nothing was."""
    value = typed.get(argument.name)
    if typed.get(f"no_{argument.name}"):
        return False if bool in argument.members else _OFF
    if value and typed.get(f"more_{argument.name}"):
        value = [*value, *typed[f"more_{argument.name}"]]
    # What has no default is switched off by an option of its own.
    open_switch = bool in argument.members and argument.default is None
    return None if value in (None, []) or (value is False and not open_switch) else value


#: Typed for an argument that is None by its `--no-` option.
_OFF = object()


def _converted(arguments: Mapping[str, Argument], values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: argument.converted(values[name], argument.flag)
        for name, argument in arguments.items()
        if name in values
    }


def _write(results: list[Any], targets: Mapping[str, Any], page: Mapping[str, Any]) -> None:
    """Write results as options ask: JSON of all of them, the others of one."""
    from counterfoil.store import write_text

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


def _parameters(argument: Argument) -> list[tuple[str, Any, Any]]:
    """What Typer makes the option, or the argument of the command, of: its name, annotation and default."""
    option, name = argument.option, argument.name
    if option.hidden:
        return []
    bounds = "" if argument.choices or not argument.allowed else rf" {escape(f'[{argument.allowed}]')}"
    required = option.default is REQUIRED
    bounds += r" \[required]" if required else ""
    given: dict[str, Any] = {"help": option.help + bounds, "rich_help_panel": option.panel or None}
    if option.complete:
        given["autocompletion"] = _completion(option.complete)
    if option.shown:
        given["show_default"] = option.shown
    if bool in argument.members:
        return [_switch(argument, given)]
    if option.metavar or option.flag or not argument.positional:
        names = ((int, "INTEGER"), (float, "NUMBER"), (Path, "PATH"), (object, "TEXT"))
        of_kind = next(name for kind, name in names if kind in (*argument.members, object))
        choices = " | ".join(map(str, argument.choices))
        given["metavar"] = option.metavar or choices or ("KEY=VALUE" if argument.mapping else of_kind)
    several = (argument.several and not option.commas) or argument.mapping
    kind: Any = (list[str] if several else str) | None
    default: Any = option.default
    if option.commas and isinstance(default, tuple):
        default = ",".join(default) or None
    default = None if required or default in (None, ()) or option.shown else str(default)
    if argument.positional and not option.flag:
        return [(name, Annotated[kind, typer.Argument(**given)], None)]
    if option.variable:
        given["envvar"] = option.variable
    parameters = [(name, Annotated[kind, typer.Option(argument.flag, **given)], default)]
    if several and required and argument.positional:
        # A shell makes words of a pattern: those after the first are arguments of the command.
        more = typer.Argument(hidden=True, metavar="[FILE]...")
        parameters.append((f"more_{name}", Annotated[list[str] | None, more], None))
    if argument.optional and option.default not in (None, REQUIRED):
        off = typer.Option(f"--no-{argument.flag[2:]}", rich_help_panel=option.panel or None)
        parameters.append((f"no_{name}", Annotated[bool, off], False))
    return parameters


def _completion(kind: str) -> Callable[[str], list[str]]:
    """The function that completes names of a kind, imported when it is asked."""

    def complete(incomplete: str) -> list[str]:
        from counterfoil.jobs import completion

        return completion.complete(kind, incomplete)

    return complete


def _switch(argument: Argument, given: Mapping[str, Any]) -> tuple[str, Any, Any]:
    """A flag: of what is on by default its `--no-`, of what has no default both."""
    flag = argument.flag
    if argument.default is True:
        off = flag if flag.startswith("--no-") else f"--no-{flag[2:]}/{flag}"
        return f"no_{argument.name}", Annotated[bool, typer.Option(off, **given)], False
    if argument.default is None:
        both = typer.Option(f"{flag}/--no-{flag[2:]}", **given)
        return argument.name, Annotated[bool | None, both], None
    letters = usage.LETTERS.get(flag, ())
    return argument.name, Annotated[bool, typer.Option(flag, *letters, **given)], False
