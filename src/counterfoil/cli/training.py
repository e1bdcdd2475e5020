"""What `train` needs before it can train: the recipe, the network, the data, and the plan they make."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from counterfoil import catalog
from counterfoil.data.benchmark import Benchmark
from counterfoil.data.training import TrainingSet
from counterfoil.errors import DataError, InputError
from counterfoil.train.recipes import Detection, Recipe
from counterfoil.train.recipes.reading import overridden, parsed

if TYPE_CHECKING:
    from counterfoil.scorers.networks import Backbone


def main_process() -> bool:
    """Whether this process is the one that prints: of several that torchrun or Fabric started, the first."""
    return all(os.environ.get(name, "0") == "0" for name in ("RANK", "LOCAL_RANK"))


def processes(devices: int) -> int:
    """How many processes train on this machine: as many as torchrun started, where it did."""
    started = os.environ.get("LOCAL_WORLD_SIZE") if "TORCHELASTIC_RUN_ID" in os.environ else None
    return int(started) if started is not None else devices


def recipe_with(recipe: Recipe, options: Mapping[str, Any], settings: Sequence[str]) -> Recipe:
    """The recipe with what the command line says: options that were given, and `--set key=value`."""
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
class Asked:
    """What is trained on what, and where: what the command line says, else the file's table [run]."""

    model: str | None = None
    data: Path | None = None
    images: Path | None = None
    validation: Path | None = None
    validation_share: float | None = None
    out: Path | None = None
    guard: str | None = None
    device: str = "auto"
    devices: int = 1
    workers: int | None = None
    tensorboard: bool = False

    def check(self, *, dry_run: bool) -> None:
        """Raise `InputError` for what is missing or not there, before anything is loaded."""
        needed = () if dry_run else ("model", "data", "out")
        for name in needed:
            if getattr(self, name) is None:
                raise InputError(f"--{name} is missing", hint=_MISSING[name])
        for name, kind in (
            ("images", "folder"),
            ("validation", "file or folder"),
            ("data", "file or folder"),
        ):
            path: Path | None = getattr(self, name)
            # A pattern of shards, train-{000..015}.tar, names files that are.
            if path is None or path.is_dir() or (name != "images" and (path.exists() or "{" in path.name)):
                continue
            raise DataError(f"no such {kind}", where=path, hint=f"check --{name}")


_MISSING = {
    "model": "name open-clip:ARCH/WEIGHTS, hf:NAME_OR_FOLDER, small, or the folder of a checkpoint",
    "data": "name what is trained on; 'counterfoil world build training' makes some",
    "out": "name the folder that the checkpoint goes to",
}


#: Keys of [run] that are numbers, from where to where, and in words; and those that are places.
_NUMBERS = {
    "validation_share": (0, 0.99, "a number from 0 to 0.99"),
    "devices": (1, 4096, "a whole number, 1 or more"),
    "workers": (0, 4096, "a whole number, 0 or more"),
}
_PATHS = ("data", "images", "validation", "out")


def asked(options: Mapping[str, Any], run: Mapping[str, Any], *, where: object) -> Asked:
    """What the command line says, and where it says nothing, the table [run] of the recipe's file."""
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
        if key == "tensorboard":
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
    return Asked(**values)


def model(spec: str, data: TrainingSet, recipe: Recipe) -> "Backbone":
    """The network to start from: a checkpoint's folder, or what KIND:WHAT names, with the recipe's heads.

    Weights that are random are those of the recipe's seed.
    """
    from counterfoil.scorers.dual import import_torch

    import_torch().manual_seed(recipe.seed)
    from counterfoil.train.objectives import suited

    return suited(_model(spec, data, recipe), recipe)


def _model(spec: str, data: TrainingSet, recipe: Recipe) -> "Backbone":
    folder = spec.removeprefix("ckpt:")
    if folder != spec or (Path(folder) / "card.json").is_file():
        from counterfoil.scorers import trained

        return trained.read(Path(folder))
    if spec == "small":
        from counterfoil.scorers import small

        captions = [caption.text or "" for caption in data.captions]
        return small.backbone(captions, seed=recipe.seed)
    if ":" not in spec:
        raise InputError(
            "no such model", given=spec or "(empty)", allowed=_MISSING["model"].removeprefix("name ")
        )
    from counterfoil.scorers import tuned

    return tuned.backbone(spec)


@dataclass(frozen=True)
class Data:
    """What is trained on, what decides, and in words where the latter is from."""

    training: TrainingSet
    validation: TrainingSet | None
    validated: str


def data(wanted: Asked, recipe: Recipe) -> Data:
    """The rows to train on and those to select by: named ones, those the data have, or a share of them.

    Raises `DataError` for what cannot be read, `InputError` where a column is lacking that the recipe needs.
    """
    from counterfoil.data import training_files

    path, images, share = wanted.data, wanted.images, wanted.validation_share
    assert path is not None
    whole = training_files.read(path, images=images, split=None)
    held: TrainingSet | None
    if wanted.validation is not None:
        held, words = (
            training_files.read(wanted.validation, images=images, split=None),
            str(wanted.validation),
        )
    elif share is None and _has_validation(path):
        held, words = training_files.read(path, images=images, split="validation"), "the data's own split"
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


def stages(recipe: Recipe, backbone: "Backbone", rows: int) -> tuple[Stage, ...]:
    """What each stage will do: steps, and how many numbers are trained and frozen."""
    from counterfoil.train.batches import steps_per_epoch
    from counterfoil.train.groups import count, trained

    everything = count(tuple(backbone.network.parameters()))
    if isinstance(recipe, Detection):
        return (Stage(recipe, None, None, everything),)
    found = []
    for stage in recipe.staged():
        each = steps_per_epoch(rows, stage.batch_size, stage.accumulate)
        if not each:
            raise InputError(
                "too few rows to train on",
                given=rows,
                allowed=f"at least {stage.batch_size * stage.accumulate}, the rows of one step",
                hint="choose a smaller --batch-size",
            )
        moved = count([parameter for _, parameter in trained(backbone.network, stage)])
        steps = each * stage.epochs if stage.steps is None else stage.steps
        found.append(Stage(stage, steps, moved, everything - moved))
    return tuple(found)


@dataclass(frozen=True)
class Outcome:
    """What came of a training: validations by name of the moment, how long it took and how fast it was."""

    points: Mapping[str, Mapping[str, float]]
    #: The step whose weights are kept, and the last one.
    kept: int
    steps: int
    seconds: float
    rows_per_second: float | None = None
    waiting: float | None = None
    #: What steps are called.
    unit: str = "steps"

    @property
    def measures(self) -> tuple[str, ...]:
        """What was measured at any of the moments, in the order it came up."""
        return tuple(dict.fromkeys(name for point in self.points.values() for name in point))

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return asdict(self)


def guard(wanted: Asked) -> Benchmark | None:
    """The benchmark that must not be forgotten, if one is named; raises what reading it raises."""
    return None if wanted.guard is None else catalog.benchmark(wanted.guard)


def train(
    wanted: Asked,
    rows: Data,
    backbone: "Backbone",
    recipe: Recipe,
    *,
    guarded: Benchmark | None,
    resume: bool,
    progress: Callable[[str, int, int], None],
    note: Callable[[str], None],
) -> Outcome:
    """Train, and leave the checkpoint in its folder. Raises what training raises."""
    _quieten()
    if isinstance(recipe, Detection):
        return _train_detector(wanted, rows, backbone, recipe, progress=progress, note=note)
    from counterfoil.train.guard import Guard
    from counterfoil.train.loop import fit

    fitted = fit(
        backbone,
        recipe,
        rows.training,
        validation=rows.validation,
        guard=None if guarded is None else Guard(guarded, name=guarded.name),
        out=wanted.out,
        resume=resume,
        device=wanted.device,
        devices=processes(wanted.devices),
        workers=_workers(wanted),
        tensorboard=wanted.tensorboard,
        progress=progress,
        note=note,
    )
    last = max([fitted.step, *(int(entry["step"]) for entry in fitted.history)])
    return Outcome(
        _moments(fitted.history, fitted.step, "" if guarded is None else guarded.name),
        fitted.step,
        last,
        fitted.seconds,
        fitted.rows_per_second,
        fitted.waiting,
    )


def _train_detector(
    wanted: Asked,
    rows: Data,
    backbone: "Backbone",
    recipe: Detection,
    *,
    progress: Callable[[str, int, int], None],
    note: Callable[[str], None],
) -> Outcome:
    from counterfoil.train.detectors import fit

    if processes(wanted.devices) > 1:
        raise InputError(
            "a detector is trained by one process", given=processes(wanted.devices), hint="set --devices 1"
        )
    began = perf_counter()
    fitted = fit(
        backbone,
        rows.training,
        recipe,
        validation=rows.validation,
        out=wanted.out,
        device=wanted.device,
        workers=_workers(wanted),
        progress=progress,
        note=note,
    )
    # Without validation rows, the share told right while learning.
    right = {
        side: [each.accuracy if each.validation != each.validation else each.validation for each in epochs]
        for side, epochs in fitted.history.items()
    }
    points = {
        "first epoch": {f"accuracy of {side}s": values[0] for side, values in right.items()},
        "kept epoch": {
            f"accuracy of {side}s": values[fitted.kept[side] - 1] for side, values in right.items()
        },
        "last epoch": {f"accuracy of {side}s": values[-1] for side, values in right.items()},
    }
    epochs = max(map(len, right.values()))
    return Outcome(points, max(fitted.kept.values()), epochs, perf_counter() - began, unit="epochs")


def _workers(wanted: Asked) -> int:
    return min(8, os.cpu_count() or 1) if wanted.workers is None else wanted.workers


def _quieten() -> None:
    """Keep Fabric's own lines about processes off the terminal; what matters in them we say ourselves."""
    # The package sets its own level when it is imported; that of its modules stays as it is set here.
    for name in ("lightning_fabric.utilities.distributed", "lightning_fabric.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _moments(history: Sequence[Mapping[str, float]], kept: int, guarded: str) -> dict[str, dict[str, float]]:
    """What was measured first, at the step whose weights are kept, and last, by the name of the moment."""
    measured: dict[int, dict[str, float]] = {}
    for entry in history:
        values = {
            name.removeprefix("validation_"): value
            for name, value in entry.items()
            if name.startswith("validation_") or name == guarded
        }
        if values:
            measured[int(entry["step"])] = values
    if not measured:
        return {}
    first, last = min(measured), max(measured)
    words: dict[int, list[str]] = {step: [] for step in sorted({first, kept, last}) if step in measured}
    for step, word in ((first, "first"), (kept, "kept"), (last, "last")):
        if step in words:
            words[step].append(word)
    return {f"{', '.join(its)} (step {step:,})": measured[step] for step, its in words.items()}
