"""Inputs of a training: options, rows, the network to start from, the forgetting guard, the plan of stages.

Options are those that a caller gives, else those of the recipe file's table [run].
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterfoil import catalog
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.training_rows import Missing, TrainingSet
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.limits import RANGES
from counterfoil.models import checkpoint
from counterfoil.outputs import Folder, existing_paths
from counterfoil.storage import Location, as_path, is_distant, local_folder, located, location
from counterfoil.storage.files import names_in
from counterfoil.train.recipes import Detection, Recipe
from counterfoil.train.recipes.reading import overridden, parsed

if TYPE_CHECKING:
    from counterfoil.models.networks import Backbone


def recipe_with(recipe: Recipe, options: Mapping[str, Any], settings: Sequence[str] = ()) -> Recipe:
    """The recipe with fields changed: `options` that are not None, and settings as KEY=VALUE."""
    values = {key: value for key, value in options.items() if value is not None}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            raise InputError(
                "no setting", where="--set", given=setting, allowed="KEY=VALUE, such as eps=1e-8"
            )
        values[key] = parsed(type(recipe), key, text, where="--set")
    return overridden(recipe, values) if values else recipe


@dataclass(frozen=True)
class TrainOptions:
    """What is trained on what, and where."""

    model: str | None = None
    data: Path | None = None
    images: Path | None = None
    #: Region features of the images, in place of their pictures.
    regions: Path | None = None
    validation: Path | None = None
    validation_share: float | None = None
    out: Path | None = None
    guard: str | None = None
    guard_images: Path | None = None
    device: str = "auto"
    #: None is one, or as many as torchrun started.
    devices: int | None = None
    #: Rows of a batch that go through the network at a time, on each device; None is all of them.
    chunk_size: int | None = None
    #: Whether layers are computed again in the backward pass, in place of keeping what they gave.
    checkpoint_activations: bool = False
    workers: int | None = None
    #: Where the captions of large tables are kept for the other processes of a training, and the next one.
    cache: Path | None = None
    tensorboard: bool = False

    def __post_init__(self) -> None:
        for name in ("data", "images", "validation"):
            if (path := getattr(self, name)) is not None:
                object.__setattr__(self, name, as_path(path))

    @property
    def reads(self) -> list[Path]:
        """What is read, in whichever place it was named."""
        named = [self.data, self.images, self.regions, self.validation, self.guard_images]
        paths = [path for path in named if path is not None]
        return paths + existing_paths(text for text in (self.model, self.guard) if text is not None)

    def check(self, *, dry_run: bool) -> None:
        """Raise `InputError` for what is missing or not there, before anything is loaded."""
        needed = () if dry_run else ("model", "data", "out")
        for name in needed:
            if getattr(self, name) is None:
                raise InputError(f"--{name} is missing", hint=MISSING[name])
        for name, kind in (
            ("images", "folder"),
            ("validation", "file or folder"),
            ("data", "file or folder"),
            ("regions", "file or folder"),
        ):
            path: Path | None = getattr(self, name)
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


#: Keys of [run] that are numbers, from where to where, and in words; and those that are places.
_NUMBERS = {
    "validation_share": (0, 0.99, "a number from 0 to 0.99"),
    "devices": (*RANGES["devices"], "a whole number, 1 to {1:,}".format(*RANGES["devices"])),
    "chunk_size": (*RANGES["batch_size"], "a whole number, 1 to {1:,}".format(*RANGES["batch_size"])),
    "workers": (*RANGES["workers"], "a whole number, 0 to {1:,}".format(*RANGES["workers"])),
}
_PATHS = ("data", "images", "regions", "validation", "out", "cache")


def train_options(options: Mapping[str, Any], run: Mapping[str, Any], *, where: object) -> TrainOptions:
    """The options that are not None, and for the others the table [run] of the recipe's file."""
    values: dict[str, Any] = {}
    for key, value in run.items():
        if key not in options:
            near = get_close_matches(key, options, n=1, cutoff=0.5)
            raise InputError(
                "unknown key",
                where=f"{where}, [run]",
                given=key,
                allowed=sorted(options),
                hint=f"did you mean '{near[0]}'?" if near else None,
            )
        low, high, words = _NUMBERS.get(key, (None, None, "a text in quotes"))
        fits = isinstance(value, str)
        if key in ("tensorboard", "checkpoint_activations"):
            fits, words = isinstance(value, bool), "true or false"
        if low is not None and high is not None:
            whole = isinstance(value, int) and not isinstance(value, bool)
            fits = (
                whole or (isinstance(value, float) and key == "validation_share")
            ) and low <= value <= high
        if not fits:
            raise InputError("wrong value", where=f"{where}, [run], key '{key}'", given=value, allowed=words)
        values[key] = Path(value) if key in _PATHS else value
    values |= {key: value for key, value in options.items() if value is not None}
    return TrainOptions(**values)


@dataclass(frozen=True)
class Data:
    """What is trained on, what decides, and in words where the latter is from."""

    training: TrainingSet
    validation: TrainingSet | None
    validated: str


def folder(out: Path) -> Folder:
    """The folder of a training, to be declared."""
    return Folder(out, checkpoint.FILES, checkpoint.is_training)


def data(wanted: TrainOptions, recipe: Recipe) -> Data:
    """The rows to train on and those to select by: named ones, those the data have, or a share of them.

    Raises `DataError` for what cannot be read, `InputError` where a column is lacking that the recipe needs.
    """
    from counterfoil.benchmarks import training_files

    shelf = None if wanted.cache is None else local_folder(wanted.cache) / "training"
    path, images, share = wanted.data, wanted.images, wanted.validation_share
    assert path is not None
    # What the training will leave out, or not look at, may as well not be there.
    missing: Missing = "keep" if recipe.unreadable == "skip" else "refuse"
    missing = missing if wanted.regions is None else "unread"
    read = partial(training_files.read, images=images, shelf=shelf, missing=missing)
    whole = read(path)
    held: TrainingSet | None
    if wanted.validation is not None:
        held, words = read(wanted.validation), located(wanted.validation)
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


def guard(wanted: TrainOptions, *, note: Callable[[str], None]) -> Benchmark | None:
    """The guard's benchmark, if one is named; raises what reading it raises.

    Of its questions those whose images and captions are at hand; `note` says where they are not all.
    """
    if wanted.guard is None:
        return None
    name, _, path = wanted.guard.partition("=")
    if name not in catalog.benchmarks():
        name, path = wanted.guard, ""
    whole = catalog.benchmark(name, data=path or None, images=wanted.guard_images)
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
    return with_heads(_model(spec, data, recipe, regions), recipe)


def _model(spec: str, data: TrainingSet, recipe: Recipe, regions: Path | None) -> "Backbone":
    if spec in SCRATCH and not _is_folder(spec):
        from counterfoil.models import recurrent, small

        captions = [caption.text or "" for caption in data.captions]
        if spec != "small":
            from counterfoil.models.region_files import read_regions

            features = None if regions is None else read_regions(regions)
            return recurrent.backbone(captions, kind=spec, seed=recipe.seed, regions=features)
        backbone = small.backbone(captions, seed=recipe.seed)
    else:
        backbone = network(spec, allowed=MISSING["model"].removeprefix("name "))
    return checkpoint.regions_of(backbone, regions, where=spec, hint="--regions PATH")


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
