"""`counterfoil build`: a benchmark or a training set by a recipe, or one step on a table of one's own."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from counterfoil.cli.program import CommandGroup, Sections

HELP = """Build a benchmark or a training set by a recipe; or apply one of its steps to a table of your own.

A build that was stopped goes on where it was. Recipes and steps are below; a recipe of your own is a file
that ends in .toml."""
EPILOG = """Examples:
  counterfoil build bivlc --out build/bivlc
  counterfoil build bivlc --from sugar-crepe/data --images val2017/ --out build/bivlc
  counterfoil build mine.toml --out build/mine
  counterfoil build refine pairs.csv --scores vera.csv --scores cola.csv --out refined.csv"""


class Builds(CommandGroup):
    """Recipes and steps as commands, each made when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for rows in self.listed().values() for name, _ in rows]

    def listed(self) -> Sections:
        from counterfoil.build.pipeline import read_recipe, shipped
        from counterfoil.build.steps.registry import STEPS

        recipes = [(name, read_recipe(name).summary) for name in shipped()]
        return {"Recipes": recipes, "Steps": [(name, STEPS[name].summary) for name in STEPS]}

    def get_command(self, ctx: Any, cmd_name: str) -> click.Command | None:
        """The command of a recipe, a file with one, or a step; None for an unknown name."""
        from counterfoil.build.pipeline import read_recipe, shipped
        from counterfoil.build.steps.registry import STEPS
        from counterfoil.cli.derive import Command
        from counterfoil.jobs.build import build_benchmark
        from counterfoil.jobs.job import job_of

        if cmd_name in STEPS:
            return _step(cmd_name)
        if cmd_name not in shipped() and not cmd_name.endswith(".toml"):
            return None
        job = job_of(build_benchmark)
        summary = read_recipe(cmd_name).summary if cmd_name in shipped() else f"The recipe of {cmd_name}."
        return Command(
            cmd_name,
            job,
            arguments={key: argument for key, argument in job.arguments.items() if key != "recipe"},
            filled=lambda values: {"recipe": cmd_name, **values},
            listing=True,
            help=summary,
            epilog=f"Example: counterfoil build {cmd_name} --out build/{Path(cmd_name).stem}",
        )


app = Builds({}, help=HELP, epilog=EPILOG)


def _step(name: str) -> click.Command:
    """The command of a step: its settings are options."""
    from counterfoil.build.steps.registry import STEPS
    from counterfoil.cli.derive import Command
    from counterfoil.inputs.options import REQUIRED, fields_of, with_default
    from counterfoil.jobs.build import apply_step, nothing
    from counterfoil.jobs.job import job_of

    job, entry = job_of(apply_step), STEPS[name]
    step_fields = {key: argument.left_open for key, argument in fields_of(entry.kind).items()}
    of_job = {key: argument for key, argument in job.arguments.items() if key not in ("step", *step_fields)}
    of_job["out"] = replace(of_job["out"], option=with_default(of_job["out"].option, REQUIRED))
    given: dict[str, Any] = {"step": name}
    if name == "read":
        given["rows"] = nothing()
        del of_job["rows"]

    def filled(values: dict[str, Any]) -> dict[str, Any]:
        settings = {key: values.pop(key) for key in step_fields if key in values}
        return {**given, **values, "settings": settings}

    first = ("rows", "out")
    order = sorted(of_job, key=lambda key: key not in first)
    arguments = {key: of_job[key] for key in order[: 2 - (name == "read")]} | step_fields | of_job
    return Command(
        name,
        job,
        arguments=arguments,
        filled=filled,
        listing=True,
        help=entry.kind.__doc__,
        epilog=f"Example: {entry.example}",
    )
