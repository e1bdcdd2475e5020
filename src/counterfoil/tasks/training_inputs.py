"""Inputs of a training: rows, the network to start from, the forgetting guard, and the plan of stages."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from counterfoil import catalog
from counterfoil.data.benchmark import Benchmark
from counterfoil.data.training_rows import Missing, TrainingSet
from counterfoil.errors import InputError
from counterfoil.outputs.guard import Folder
from counterfoil.scorers import checkpoint
from counterfoil.tasks.training_options import MISSING, TrainOptions
from counterfoil.train.recipes import Detection, Recipe

if TYPE_CHECKING:
    from counterfoil.scorers.networks import Backbone


@dataclass(frozen=True)
class Data:
    """What is trained on, what decides, and in words where the latter is from."""

    training: TrainingSet
    validation: TrainingSet | None
    validated: str


def folder(out: Path) -> Folder:
    """The folder of a training, to be declared."""
    return Folder(out, checkpoint.FILES, partial(checkpoint.why_foreign, origin="recipe"))


def data(wanted: TrainOptions, recipe: Recipe) -> Data:
    """The rows to train on and those to select by: named ones, those the data have, or a share of them.

    Raises `DataError` for what cannot be read, `InputError` where a column is lacking that the recipe needs.
    """
    from counterfoil.data import training_files

    shelf = None if wanted.cache is None else wanted.cache / "training"
    path, images, share = wanted.data, wanted.images, wanted.validation_share
    assert path is not None
    # What the training will leave out may as well not be there.
    missing: Missing = "keep" if recipe.unreadable == "skip" else "refuse"
    read = partial(training_files.read, images=images, shelf=shelf, missing=missing)
    whole = read(path)
    held: TrainingSet | None
    if wanted.validation is not None:
        held, words = read(wanted.validation), str(wanted.validation)
    elif share is None and _has_validation(path):
        held, words = read(path, split="validation"), "the data's own split"
    elif share == 0:
        held, words = None, ""
    else:
        part = 0.2 if share is None else share
        whole, held = training_files.split(whole, share=part, seed=42)
        words = f"{part:.0%} of the rows, drawn with seed 42"
    for each in (whole,) if held is None else (whole, held):
        for role in recipe.needs:
            each.need(role)
    return Data(whole, held, words)


def _has_validation(path: Path) -> bool:
    """Whether files or folders of both splits lie in a folder, as the hub and COCO name them."""
    if not path.is_dir():
        return False
    names = [found.name for each in (path, path / "data", path / "annotations") for found in each.glob("*")]
    splits = [name.removeprefix("captions_") for name in names]
    return all(any(name.startswith(kind) for name in splits) for kind in ("train", "val"))


@dataclass(frozen=True)
class Stage:
    """What one stage will do."""

    recipe: Recipe
    #: None for a detector's, whose units are no part of the network yet and are trained one by one.
    steps: int | None
    trained: int | None
    frozen: int


def stages(recipe: Recipe, backbone: "Backbone", rows: int, *, processes: int = 1) -> tuple[Stage, ...]:
    """What each stage will do: steps, and how many numbers are trained and frozen.

    Raises `InputError` where so many rows, or processes, cannot do it: before any process is started.
    """
    from counterfoil.train.batches import steps_per_epoch
    from counterfoil.train.optim import count, trained_parameters

    everything = count(tuple(backbone.network.parameters()))
    if isinstance(recipe, Detection):
        return (Stage(recipe, None, None, everything),)
    found = []
    for stage in recipe.staged():
        if stage.batch_size % processes:
            raise InputError(
                "a batch cannot be divided among the processes",
                given=f"{stage.batch_size} rows, {processes} processes",
                allowed="a batch size that is a multiple of the number of processes",
                hint="choose another --batch-size or --devices",
            )
        each = steps_per_epoch(rows, stage.batch_size, stage.accumulate)
        if not each:
            raise InputError(
                "too few rows to train on",
                given=rows,
                allowed=f"at least {stage.batch_size * stage.accumulate}, the rows of one step",
                hint="choose a smaller --batch-size",
            )
        moved = count([parameter for _, parameter in trained_parameters(backbone.network, stage)])
        steps = each * stage.epochs if stage.steps is None else stage.steps
        found.append(Stage(stage, steps, moved, everything - moved))
    return tuple(found)


def guard(wanted: TrainOptions, *, note: Callable[[str], None]) -> Benchmark | None:
    """The benchmark that must not be forgotten, if one is named; raises what reading it raises.

    Of its questions those whose images and captions are at hand; `note` says where they are not all.
    """
    if wanted.guard is None:
        return None
    name, _, path = wanted.guard.partition("=")
    if name not in catalog.benchmarks():
        name, path = wanted.guard, ""
    whole = catalog.benchmark(name, data=path or None, images=wanted.guard_images)
    found = whole.available()
    if len(found) < len(whole):
        note(f"--guard {name}: {len(found):,} of {len(whole):,} questions are at hand")
    return found


def model(spec: str, data: TrainingSet, recipe: Recipe) -> "Backbone":
    """The network to start from: a checkpoint's folder, or what KIND:WHAT names, with the recipe's heads.

    Weights that are random are those of the recipe's seed.
    """
    from counterfoil.scorers.runtime import import_torch

    import_torch().manual_seed(recipe.seed)
    from counterfoil.train.objectives import with_heads

    return with_heads(_model(spec, data, recipe), recipe)


def _model(spec: str, data: TrainingSet, recipe: Recipe) -> "Backbone":
    if spec == "small" and not _is_folder(spec):
        from counterfoil.scorers import small

        captions = [caption.text or "" for caption in data.captions]
        return small.backbone(captions, seed=recipe.seed)
    return network(spec, allowed=MISSING["model"].removeprefix("name "))


def network(spec: str, *, allowed: str) -> "Backbone":
    """The network in a checkpoint's folder, or of a model library.

    Raises `InputError` naming what is `allowed` for what is neither, and what reading it raises.
    """
    if _is_folder(spec):
        from counterfoil.scorers import checkpoint

        return checkpoint.read(Path(spec.removeprefix("ckpt:")))
    if ":" not in spec:
        hint = None
        if spec and Path(spec).is_dir():
            known = (Path(spec) / "config.json").is_file()
            hint = f"did you mean hf:{spec}?" if known else "this folder holds no card.json of a checkpoint"
        raise InputError("no such model", given=spec or "(empty)", allowed=allowed, hint=hint)
    from counterfoil.scorers import registry

    return registry.backbone(spec)


def _is_folder(spec: str) -> bool:
    return spec.startswith("ckpt:") or (Path(spec) / "card.json").is_file()
