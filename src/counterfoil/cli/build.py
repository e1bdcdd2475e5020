"""`counterfoil build`: a benchmark or a training set by a recipe, or one step on a table of one's own."""

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from counterfoil.cli import groups, usage

HELP = usage.flowing(
    """Build a benchmark or a training set by a recipe; or apply one of its steps to a table of your own.

A build that was stopped goes on where it was. Recipes and steps are below; a recipe of your own is a file
that ends in .toml."""
)
EPILOG = """Examples:
  counterfoil build bivlc --out build/bivlc
  counterfoil build bivlc --from sugar-crepe/data --images val2017/ --out build/bivlc
  counterfoil build mine.toml --out build/mine
  counterfoil build refine pairs.csv --scores vera.csv --scores cola.csv --out refined.csv"""


class SeveralValues(usage.Command):
    """A command whose options that may be repeated take several values at once: `--scores a.csv b.csv`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As Typer does it, with the name of the option before each of its values."""
        several = {
            name for option in self.params if getattr(option, "multiple", False) for name in option.opts
        }
        words: list[str] = []
        current = ""
        taken = 0
        for arg in args:
            if arg.startswith("-"):
                current, taken = (arg if arg in several else ""), 0
            elif current:
                taken += 1
                if taken > 1:
                    words.append(current)
            words.append(arg)
        return super().parse_args(ctx, words)


class Builds(groups.lazily({})):  # type: ignore[misc]
    """Recipes and steps as commands, each made when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Recipes, then steps."""
        from counterfoil.build.run import shipped
        from counterfoil.build.steps.registry import STEPS

        return [*shipped(), *STEPS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a recipe, a file with one, or a step; None for an unknown name."""
        from counterfoil.build.run import shipped
        from counterfoil.build.steps.registry import STEPS

        if cmd_name in STEPS:
            return _step(cmd_name)
        if cmd_name in shipped() or cmd_name.endswith(".toml"):
            return _recipe(cmd_name)
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    cls=Builds, help=HELP, epilog=usage.flowing(EPILOG), no_args_is_help=True, add_completion=False
)


@app.callback()
def _group() -> None:
    """A group of commands, however few it holds itself."""


def _command(name: str, function: Any, epilog: str, panel: str, summary: str | None = None) -> Any:
    """The command of a function, as Typer makes them."""
    own = typer.Typer(add_completion=False)
    own.command(
        name,
        cls=SeveralValues,
        help=usage.flowing(inspect.cleandoc(function.__doc__ or "")),
        short_help=summary,
        epilog=epilog,
        rich_help_panel=panel,
    )(function)
    return typer.main.get_command(own)


def _recipe(name: str) -> Any:
    """The command of a recipe."""
    from counterfoil.build.run import read_recipe, shipped
    from counterfoil.cli.derive import command
    from counterfoil.jobs.build import build_benchmark
    from counterfoil.jobs.job import job_of

    job = job_of(build_benchmark)
    arguments = {key: argument for key, argument in job.arguments.items() if key != "recipe"}
    run = command(job, arguments=arguments, filled=lambda values: {"recipe": name, **values})
    run.__doc__ = read_recipe(name).summary if name in shipped() else f"The recipe of {name}."
    return _command(name, run, f"Example: counterfoil build {name} --out build/{Path(name).stem}", "Recipes")


def _step(name: str) -> Any:
    """The command of a step: its settings are options."""
    from counterfoil.build.steps.registry import STEPS
    from counterfoil.cli.derive import command
    from counterfoil.inputs.options import REQUIRED, fields_of, with_default
    from counterfoil.jobs.build import apply_step, nothing
    from counterfoil.jobs.job import job_of

    job, entry = job_of(apply_step), STEPS[name]
    own = {key: argument.left_open for key, argument in fields_of(entry.kind).items()}
    of_job = {key: argument for key, argument in job.arguments.items() if key not in ("step", *own)}
    of_job["out"] = replace(of_job["out"], option=with_default(of_job["out"].option, REQUIRED))
    given: dict[str, Any] = {"step": name}
    if name == "read":
        given["rows"] = nothing()
        del of_job["rows"]

    def filled(values: dict[str, Any]) -> dict[str, Any]:
        settings = {key: values.pop(key) for key in own if key in values}
        return {**given, **values, "settings": settings}

    first = ("rows", "out")
    order = sorted(of_job, key=lambda key: key not in first)
    arguments = {key: of_job[key] for key in order[: 2 - (name == "read")]} | own | of_job
    run = command(job, arguments=arguments, filled=filled)
    run.__doc__ = entry.kind.__doc__
    return _command(name, run, f"Example: {entry.example}", "Steps", entry.summary)
