"""`counterfoil train`: a recipe, a model, data; out comes a checkpoint that `evaluate` takes. Its tables."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from counterfoil.cli import options, usage
from counterfoil.cli.options import CacheFolder, Json, Overwrite, Quiet, Workers
from counterfoil.inputs.limits import most
from counterfoil.jobs.training import Outcome
from counterfoil.jobs.training_inputs import Data, Stage
from counterfoil.report.labels import amount
from counterfoil.train.recipes import Detection, Recipe

if TYPE_CHECKING:
    from counterfoil.models.networks import Backbone

EPILOG = """Examples:
  counterfoil train trohn-img --model open-clip:ViT-B-32-quickgelu/openai --data TROHN-Img/ --out ckpt/
  counterfoil train coco --model ckpt/ --data world/ --steps 500 --guard world-quads --out more/
  counterfoil train mine.toml --model hf:./my-clip --data pairs.parquet --images photos/ --out ckpt/
  counterfoil train pcme --model ckpt/ --data shards/ --out pcme/ --dry-run
  counterfoil train coco --model ckpt/ --data 's3://bucket/shards/{00000..00099}.tar' --out more/
  counterfoil train trohn-img --model ckpt/ --data TROHN-Img/ --out ckpt/ --batch-size 400 --chunk-size 50

  torchrun --nproc-per-node 2 -m counterfoil train coco --model hf:./my-clip --data coco/ --out ckpt/"""


@usage.panels(
    Model_and_data="model data images regions validation validation_share out",
    Recipe="steps epochs batch_size lr precision seed settings guard guard_images",
    Work="resume device devices chunk_size checkpoint_activations workers cache tensorboard dry_run json "
    "quiet",
)
def command(
    recipe: Annotated[
        str,
        typer.Argument(
            help="Name of a recipe (see 'counterfoil list recipes'), or a .toml file.",
            autocompletion=options.complete_recipes,
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="What is trained: open-clip:ARCH/WEIGHTS, open-clip:ARCH (from scratch), hf:NAME_OR_FOLDER, "
            "small, vse, vsrn (from scratch), or the folder of a checkpoint.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Benchmark folder, Parquet file or folder, table, or WebDataset shards to train on; shards "
            "also behind a URL."
        ),
    ] = None,
    images: Annotated[
        Path | None, typer.Option(help="Folder of the images, where the data name files.")
    ] = None,
    regions: Annotated[
        Path | None,
        typer.Option(
            help="Region features of the images (npz, TSV, folder of npz), in place of pictures: vse, vsrn."
        ),
    ] = None,
    validation: Annotated[Path | None, typer.Option(help="Rows that decide which weights are kept.")] = None,
    validation_share: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=0.99,
            help="Share of the rows held back for that; default: the data's own split, else 0.2.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the checkpoint.")] = None,
    steps: Annotated[int | None, typer.Option(help="End after this many steps.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the data.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Rows per step, over all devices.")] = None,
    lr: Annotated[float | None, typer.Option(help="Highest learning rate.")] = None,
    precision: Annotated[
        Literal["fp32", "bf16"] | None, typer.Option(help="Of activations; weights stay fp32.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any other field of the recipe; may be repeated."),
    ] = None,
    guard: Annotated[
        str | None,
        typer.Option(
            metavar="BENCHMARK[=PATH]",
            help="Benchmark that must not be forgotten, and where its data lie: measured along the way, on "
            "the questions that are at hand.",
        ),
    ] = None,
    guard_images: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder of the images of that benchmark.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume/--no-resume", help="Go on where a training into the same folder was stopped."),
    ] = True,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda, mps.")] = None,
    devices: Annotated[int | None, typer.Option(min=1, max=most("devices"), help="How many of them.")] = None,
    chunk_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=most("batch_size"),
            help="Rows that go through the network at a time, on each device, where a batch does not fit "
            "into memory: the gradients are those of the whole batch (GradCache).",
        ),
    ] = None,
    checkpoint_activations: Annotated[
        bool,
        typer.Option(
            "--checkpoint-activations",
            help="Compute layers again in the backward pass, in place of keeping what they gave.",
        ),
    ] = False,
    workers: Workers = None,
    cache: CacheFolder = None,
    tensorboard: Annotated[
        bool,
        typer.Option(
            "--tensorboard", help="Write the journal for TensorBoard as well (extra 'tensorboard')."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the recipe and the plan, train nothing.")
    ] = False,
    json: Json = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Train a dual encoder by a recipe of the papers, or fine-tune one, and keep its best weights.

    What is trained is what --model names; what of a paper's values is not wanted is said with options, --set
    or in a .toml file. A training that was stopped goes on where it was.
    """
    import re
    from dataclasses import replace

    from counterfoil.cli import paths, terminal
    from counterfoil.cli.faults import main_process
    from counterfoil.cli.paths import cache_folder
    from counterfoil.jobs.training import prepare
    from counterfoil.jobs.training_inputs import SCRATCH, folder, recipe_with, train_options
    from counterfoil.train.recipes import read_file

    read = read_file(recipe)
    wanted = train_options(
        {
            "model": model,
            "data": data,
            "images": images,
            "regions": regions,
            "validation": validation,
            "validation_share": validation_share,
            "out": out,
            "guard": guard,
            "guard_images": guard_images,
            "device": device,
            "devices": devices,
            "chunk_size": chunk_size,
            "checkpoint_activations": checkpoint_activations or None,
            "workers": workers,
            "cache": cache,
            "tensorboard": tensorboard or None,
        },
        read.run,
        where=recipe,
    )
    changed = {
        "steps": steps,
        "epochs": epochs,
        "batch_size": batch_size,
        "lr": lr,
        "precision": precision,
        "seed": seed,
    }
    chosen = recipe_with(read.recipe, changed, settings or ())
    wanted.check(dry_run=dry_run)
    folders = [] if dry_run or wanted.out is None else [folder(wanted.out)]
    paths.check(json=json, folders=folders, reads=wanted.reads)
    first = main_process()
    quiet = quiet or not first
    console = terminal.beside(json)
    if not quiet:
        console.print(recipe_text(chosen, read.base, all_of_it=dry_run))
    if wanted.data is None or wanted.model is None:
        return
    feedback = terminal.feedback(quiet=quiet)
    training = prepare(chosen, replace(wanted, cache=cache_folder(wanted.cache)), feedback=feedback)
    if not quiet:
        console.print(plan_table(training.rows, training.backbone, training.stages))
    if dry_run:
        return
    trained = training.run(resume=resume, feedback=feedback)
    if not first:
        return
    if json is not None:
        terminal.write_result(json, trained.to_json())
    if not quiet:
        console.print(result_table(trained.outcome))
    if json != "-" and not quiet:
        # The data at hand are likely the world that a network from scratch was trained on.
        next_on = (wanted.guard or "").partition("=")[0] or (
            "world-quads" if set(re.split(r"[()]", training.backbone.name)) & set(SCRATCH) else "bivlc"
        )
        console.print(f"counterfoil evaluate {wanted.out} {next_on}", soft_wrap=True)


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
        names = {"cosine": "cosine", "cosine-epochs": "cosine by epochs", "constant": "constant"}
        after = f" after {recipe.warmup} steps of warm-up" if recipe.warmup else ""
        table.add_row(
            f"steps{several}",
            f"{stage.steps:,} of {recipe.batch_size * recipe.accumulate:,} rows{epochs}; {recipe.precision}, "
            f"{recipe.optimiser} at {recipe.lr:g}, {(names[recipe.schedule] + after)}",
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
