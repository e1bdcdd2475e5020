"""Inputs of a training: its arguments, rows, the network to start from, the guard, the plan of stages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from counterfoil import catalog
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.training_rows import Missing, TrainingSet
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.limits import most
from counterfoil.inputs.options import Option, fields_of, rows_of
from counterfoil.jobs.arguments import CACHE, WORKERS, Cache, Reporting, cache_of
from counterfoil.jobs.job import documented, option
from counterfoil.models import checkpoint
from counterfoil.outputs import Folder
from counterfoil.storage import Location, is_distant, local_folder, located, location
from counterfoil.storage.files import names_in
from counterfoil.train.recipes import Detection, Recipe

if TYPE_CHECKING:
    from counterfoil.models.networks import Backbone


def _field(name: str) -> Option:
    """The option of a recipe's field: what is not given is as the recipe has it."""
    return replace(fields_of(Recipe)[name].left_open.option, shown="", panel="Recipe")


@documented
class RunRows(Reporting, total=False):
    """What is trained on what, and where.

    Model and data:
        images: Folder of the images, where the data name files.
        regions: Region features of the images (npz, TSV, folder of npz), in place of pictures: vse, vsrn.
        validation: Rows that decide which weights are kept.
        validation_share: Share of the rows held back for that; default: the data's own split, else 0.2.
        out: Folder of the checkpoint.

    Recipe:
        guard: Benchmark that must not be forgotten, and where its data lie: measured along the way, on the
            questions that are at hand.
        guard_images: Folder of the images of that benchmark.

    Work:
        device: auto, cpu, cuda, mps.
        devices: How many of them.
        chunk_size: Rows that go through the network at a time, on each device, where a batch does not fit
            into memory: the gradients are those of the whole batch (GradCache).
        checkpoint_activations: Compute layers again in the backward pass, in place of keeping what they gave.
        tensorboard: Write the journal for TensorBoard as well (extra 'tensorboard').
    """

    images: Annotated[Path | None, option(None)]
    regions: Annotated[Path | None, option(None)]
    validation: Annotated[Path | None, option(None)]
    validation_share: Annotated[float | None, option(None, low=0, high=0.99)]
    out: Annotated[Path | None, option(None)]
    guard: Annotated[str | None, option(None, metavar="BENCHMARK[=PATH]")]
    guard_images: Annotated[Path | None, option(None, metavar="FOLDER")]
    device: Annotated[str | None, option(None)]
    #: None is one, or as many as torchrun started.
    devices: Annotated[int | None, option(None, low=1, high=most("devices"))]
    chunk_size: Annotated[int | None, option(None, low=1, high=most("batch_size"))]
    checkpoint_activations: Annotated[bool, option(False)]
    workers: Annotated[int | None, WORKERS]
    #: Where the captions of large tables are kept for the other processes of a training, and the next one.
    cache: Annotated[Cache, CACHE]
    tensorboard: Annotated[bool, option(False)]


class TrainRows(RunRows, total=False):
    """The same, and fields of the recipe that are often changed."""

    steps: Annotated[int | None, _field("steps")]
    epochs: Annotated[int | None, _field("epochs")]
    batch_size: Annotated[int | None, _field("batch_size")]
    lr: Annotated[float | None, _field("lr")]
    precision: Annotated[Literal["fp32", "bf16"] | None, _field("precision")]
    seed: Annotated[int | None, _field("seed")]


#: The keys of [run], and the fields of the recipe.
RUN = ("model", "data", *(argument.name for argument in rows_of(RunRows)))
CHANGED = tuple(argument.name for argument in rows_of(TrainRows) if argument.name not in RUN)


def check(options: Mapping[str, Any], needed: Sequence[str]) -> None:
    """Raise `InputError` or `DataError` for what is missing or not there, before anything is loaded."""
    for name in needed:
        if options[name] is None:
            raise InputError(f"--{name} is missing", hint=MISSING[name])
    for name, kind in (
        ("images", "folder"),
        ("validation", "file or folder"),
        ("data", "file or folder"),
        ("regions", "file or folder"),
    ):
        path: Path | None = options[name]
        # A pattern of shards, train-{000..015}.tar, names files that are. A URL is looked at when read.
        at_distance = name != "regions" and path is not None and is_distant(path)
        if (
            path is None
            or at_distance
            or path.is_dir()
            or (name != "images" and (path.exists() or "{" in path.name))
        ):
            continue
        raise DataError(f"no such {kind}", where=path, hint=f"check --{name}")


#: Networks that are made for the words of the data and train from scratch.
SCRATCH = ("small", "vse", "vsrn")
#: What to do where one of these is not named.
MISSING = {
    "model": "name open-clip:ARCH/WEIGHTS, hf:NAME_OR_FOLDER, "
    f"{', '.join(SCRATCH)}, or the folder of a checkpoint",
    "data": "name what is trained on; 'counterfoil world build training' makes some",
    "out": "name the folder that the checkpoint goes to",
}


@dataclass(frozen=True)
class Data:
    """What is trained on, what decides, and in words where the latter is from."""

    training: TrainingSet
    validation: TrainingSet | None
    validated: str


def folder(out: Path) -> Folder:
    """The folder of a training, to be declared."""
    return Folder(out, checkpoint.FILES, checkpoint.is_training)


def data(options: Mapping[str, Any], recipe: Recipe) -> Data:
    """The rows to train on and those to select by: named ones, those the data have, or a share of them.

    Raises `DataError` for what cannot be read, `InputError` where a column is lacking that the recipe needs.
    """
    from counterfoil.benchmarks import training_files

    cache: Path | None = cache_of(options["cache"])
    shelf = None if cache is None else local_folder(cache) / "training"
    path, images, share = (options[name] for name in ("data", "images", "validation_share"))
    # What the training will leave out, or not look at, may as well not be there.
    missing: Missing = "keep" if recipe.unreadable == "skip" else "refuse"
    missing = missing if options["regions"] is None else "unread"
    read = partial(training_files.read, images=images, shelf=shelf, missing=missing)
    whole = read(path)
    held: TrainingSet | None
    if (validation := options["validation"]) is not None:
        held, words = read(validation), located(validation)
    elif share is None and _has_validation(path):
        held, words = read(path, split="validation"), "the data's own split"
    elif share == 0:
        held, words = None, ""
    else:
        part = 0.2 if share is None else share
        whole, held = training_files.split(whole, share=part, seed=42)
        words = f"{part:.0%} of the rows, drawn with seed 42"
    for rows in (whole,) if held is None else (whole, held):
        for role in recipe.needs:
            rows.need(role)
    return Data(whole, held, words)


def _has_validation(path: Path) -> bool:
    """Whether files or folders of both splits lie in a folder, as the hub and COCO name them."""
    if isinstance(where := location(path), Location):
        names = [] if path.suffix.lower() == ".tar" else sorted(names_in(where))
    elif path.is_dir():
        places = (path, path / "data", path / "annotations")
        names = [file.name for folder in places for file in folder.glob("*")]
    else:
        names = []
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


def stages(
    recipe: Recipe, backbone: "Backbone", rows: int, *, processes: int = 1, chunk: int | None = None
) -> tuple[Stage, ...]:
    """What each stage will do: steps, and how many numbers are trained and frozen.

    Raises `InputError` where so many rows, or processes, cannot do it: before any process is started.
    """
    from counterfoil.train.dataloaders import steps_per_epoch
    from counterfoil.train.gradients import check_chunk
    from counterfoil.train.optim import count, trained_parameters

    everything = count(tuple(backbone.network.parameters()))
    if isinstance(recipe, Detection):
        return (Stage(recipe, None, None, everything),)
    stages_of = []
    for stage in recipe.staged():
        if stage.batch_size % processes:
            raise InputError(
                "a batch cannot be divided among the processes",
                given=f"{stage.batch_size} rows, {processes} processes",
                allowed="a batch size that is a multiple of the number of processes",
                hint="choose another --batch-size or --devices",
            )
        check_chunk(chunk, stage.batch_size, processes, hint="choose a smaller --chunk-size")
        per_epoch = steps_per_epoch(rows, stage.batch_size, stage.accumulate)
        if not per_epoch:
            raise InputError(
                "too few rows to train on",
                given=rows,
                allowed=f"at least {stage.batch_size * stage.accumulate}, the rows of one step",
                hint="choose a smaller --batch-size",
            )
        moved = count([parameter for _, parameter in trained_parameters(backbone.network, stage)])
        steps = per_epoch * stage.epochs if stage.steps is None else stage.steps
        stages_of.append(Stage(stage, steps, moved, everything - moved))
    return tuple(stages_of)


def guard(named: str | None, images: Path | None, *, note: Callable[[str], None]) -> Benchmark | None:
    """The guard's benchmark, if one is named; raises what reading it raises.

    Of its questions those whose images and captions are at hand; `note` says where they are not all.
    """
    if named is None:
        return None
    name, _, path = named.partition("=")
    if name not in catalog.benchmarks():
        name, path = named, ""
    whole = catalog.benchmark(name, data=path or None, images=images)
    benchmark = whole.available()
    if len(benchmark) < len(whole):
        note(f"--guard {name}: {len(benchmark):,} of {len(whole):,} questions are at hand")
    return benchmark


def model(spec: str, data: TrainingSet, recipe: Recipe, *, regions: Path | None = None) -> "Backbone":
    """The network to start from: a checkpoint's folder, or what KIND:WHAT names, with the recipe's heads.

    Weights that are random are those of the recipe's seed. Raises `InputError` for regions that the network
    does not read or the recipe would crop, and where a network of regions is given none.
    """
    from counterfoil.models.runtime import import_torch

    import_torch().manual_seed(recipe.seed)
    from counterfoil.train.objectives import with_heads

    if regions is not None:
        for stage in recipe.staged():
            for name, none in (("augment", "none"), ("erasing", 0)):
                if getattr(stage, name) != none:
                    raise InputError(
                        "regions are read as they are, and not as a part of a picture",
                        where=f"recipe {recipe.name}, {name}",
                        given=getattr(stage, name),
                        hint=f"--set {name}={none}",
                    )
    from_scratch = spec in SCRATCH and not _is_folder(spec)
    captions = [caption.text or "" for caption in data.captions] if from_scratch else []
    if not from_scratch:
        backbone = network(spec, allowed=MISSING["model"].removeprefix("name "))
    elif spec == "small":
        from counterfoil.models import small

        backbone = small.backbone(captions, seed=recipe.seed)
    else:
        from counterfoil.models import recurrent
        from counterfoil.models.region_files import read_regions

        features = None if regions is None else read_regions(regions)
        backbone = recurrent.backbone(captions, kind=spec, seed=recipe.seed, regions=features)
        return with_heads(backbone, recipe)
    backbone = checkpoint.regions_of(backbone, regions, where=spec, hint="--regions PATH")
    return with_heads(backbone, recipe)


def network(spec: str, *, allowed: str) -> "Backbone":
    """The network in a checkpoint's folder, or of a model library.

    Raises `InputError` naming what is `allowed` for what is neither, and what reading it raises.
    """
    if _is_folder(spec):
        return checkpoint.read(Path(spec.removeprefix("ckpt:")))
    if ":" not in spec:
        hint = None
        if spec and Path(spec).is_dir():
            known = (Path(spec) / "config.json").is_file()
            hint = f"did you mean hf:{spec}?" if known else "this folder holds no card.json of a checkpoint"
        raise InputError("no such model", given=spec or "(empty)", allowed=allowed, hint=hint)
    from counterfoil.models import registry

    return registry.backbone(spec)


def _is_folder(spec: str) -> bool:
    return spec.startswith("ckpt:") or (Path(spec) / "card.json").is_file()
