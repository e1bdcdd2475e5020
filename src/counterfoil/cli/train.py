"""`counterfoil train`: a recipe, a model, data; out comes a checkpoint that `evaluate` takes."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from counterfoil.cli import options, usage
from counterfoil.cli.options import CacheFolder, Json, Overwrite, Quiet, Workers
from counterfoil.inputs.limits import most

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

    from counterfoil import terminal
    from counterfoil.cli import paths
    from counterfoil.cli.faults import main_process
    from counterfoil.cli.paths import cache_folder
    from counterfoil.cli.train_tables import plan_table, recipe_text, result_table
    from counterfoil.jobs.feedback import terminal_feedback
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
    feedback = terminal_feedback(quiet=quiet)
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
