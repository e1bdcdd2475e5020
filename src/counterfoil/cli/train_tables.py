"""Tables of `train` and `list recipes`: a recipe, a plan, the outcome."""

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from counterfoil.jobs.training import Outcome
from counterfoil.jobs.training_inputs import Data, Stage
from counterfoil.report.labels import amount
from counterfoil.train.recipes import Detection, Recipe

if TYPE_CHECKING:
    from counterfoil.models.networks import Backbone

#: Fields that are not shown by themselves.
_SILENT = ("name", "stages")


def recipe_text(recipe: Recipe, base: Recipe | None = None, *, all_of_it: bool = False) -> Group:
    """A recipe's heading and, with `all_of_it`, each of its values and what its source leaves open.

    A value that differs from that of `base` has the other one beside it.
    """
    heading = Text.assemble((recipe.name, "bold"), f"  {recipe.about}")
    parts: list[Any] = [heading, Text(recipe.source, style="dim")]
    names = [column.name for column in fields(recipe) if column.name not in _SILENT]
    changed: dict[str, Any] = {}
    if base is not None:
        changed = {
            name: getattr(base, name) for name in names if getattr(recipe, name) != getattr(base, name)
        }
    if all_of_it:
        table = _plain()
        for name in names:
            cell = Text(_word(getattr(recipe, name)))
            if changed.get(name) is not None:
                cell.append(f"  ({_word(changed[name])})", style="dim")
            table.add_row(name, cell)
        parts.append(Padding(table, (1, 0, 0, 2)))
        for number, stage in enumerate(recipe.stages, start=1):
            settings = ", ".join(f"{name} {_word(value)}" for name, value in stage.items()) or "as above"
            parts.append(Padding(Text(f"stage {number}: {settings}"), (0, 0, 0, 2)))
        parts.append(Padding(Text("left open there, and what is done:"), (1, 0, 0, 2)))
        parts += [Padding(Text(f"{line}", style="dim"), (0, 0, 0, 4)) for line in recipe.left_open]
    elif changed:
        settings = ", ".join(
            f"{name} {_word(getattr(recipe, name))} ({_word(old)})" for name, old in changed.items()
        )
        parts.append(Text(f"changed (and what the recipe says): {settings}"))
    return Group(*parts)


def plan_table(rows: Data, backbone: "Backbone", plan: Sequence[Stage]) -> Table:
    """What will be trained on what, stage by stage."""
    table = _plain()
    table.add_row(
        "rows", (f"{len(rows.training):,} of {rows.training.name}: {', '.join(rows.training.rows)}")
    )
    if rows.validation is not None:
        table.add_row("validation", f"{len(rows.validation):,} rows: {rows.validated}")
    for number, stage in enumerate(plan, start=1):
        recipe = stage.recipe
        several = f" of stage {number}" if len(plan) > 1 else ""
        if stage.steps is None or isinstance(recipe, Detection):
            table.add_row(
                "parameters", f"a sigmoid unit per modality; {stage.frozen:,} frozen: {backbone.name}"
            )
            table.add_row("epochs", _detection(recipe))
            continue
        table.add_row(
            f"parameters{several}",
            f"{stage.trained:,} trained ({recipe.trains}), {stage.frozen:,} frozen: {backbone.name}",
        )
        epochs = "" if recipe.steps is not None else f", {recipe.epochs} epochs"
        table.add_row(
            f"steps{several}",
            f"{stage.steps:,} of {recipe.batch_size * recipe.accumulate:,} rows{epochs}; {recipe.precision}, "
            f"{recipe.optimiser} at {recipe.lr:g}, {_schedule(recipe)}",
        )
        if recipe.accumulate > 1:
            table.add_row(
                "", f"{recipe.accumulate} batches of {recipe.batch_size:,} rows, as one: negatives are of all"
            )
        if stage.steps < recipe.warmup:
            reached = recipe.lr * stage.steps / recipe.warmup
            table.add_row("", f"the warm-up is longer than that: the learning rate only gets to {reached:g}")
        table.add_row(f"kept{several}", _kept(recipe) if rows.validation is not None else "the last weights")
    return table


def result_table(outcome: Outcome) -> Group:
    """The validation at the start, at the best step and at the last, and how fast it went."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("validation", no_wrap=True)
    for heading in outcome.points:
        table.add_column(heading, justify="right")
    for name in outcome.measures:
        values = [point.get(name) for point in outcome.points.values()]
        table.add_row(name, *("" if value is None else f"{value:.4f}" for value in values))
    unit = outcome.unit.removesuffix("s") if outcome.steps == 1 else outcome.unit
    speed = f"{outcome.steps:,} {unit} in {_time(outcome.seconds)}"
    if outcome.rows_per_second is not None:
        speed += f", {outcome.rows_per_second:,.1f} rows per second"
    if outcome.waiting is not None:
        speed += f", {outcome.waiting:.1%} of the time waiting for data"
    if outcome.since == outcome.steps:
        speed += "; it had ended before, and nothing was repeated (--no-resume starts anew)"
    elif outcome.since:
        speed += f"; it went on after step {outcome.since:,}"
    if outcome.left_out:
        speed += f"; without {amount(outcome.left_out, 'row')} whose images cannot be read"
    return Group(*([table] if outcome.measures else []), Text(speed, style="dim"))


def _schedule(recipe: Recipe) -> str:
    names = {"cosine": "cosine", "cosine-epochs": "cosine by epochs", "constant": "constant"}
    after = f" after {recipe.warmup} steps of warm-up" if recipe.warmup else ""
    return names[recipe.schedule] + after


def _detection(recipe: Recipe) -> str:
    images = recipe.image_epochs if isinstance(recipe, Detection) else recipe.epochs
    ends = "" if recipe.steps is None else f", {recipe.steps:,} steps of either at most"
    return f"{images} of images, {recipe.epochs} of captions{ends}; {recipe.optimiser} at {recipe.lr:g}"


def _plain() -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _kept(recipe: Recipe) -> str:
    if recipe.select == "last":
        return "the last weights"
    best = "lowest loss" if recipe.select == "loss" else f"highest {recipe.select}"
    often = "each epoch" if recipe.validate_every is None else f"every {recipe.validate_every} steps"
    ends = "" if recipe.patience is None else f"; ends after {recipe.patience:,} steps without a better one"
    return f"the weights with the {best} in validation, {often}{ends}"


def _word(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(_word, value)) if isinstance(value, tuple) else str(value)


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{seconds:.1f} s"
