"""A training by a recipe: data and network ready, then a checkpoint and what was measured on the way."""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.engine.deduplicate import Note, Progress
from counterfoil.errors import InputError
from counterfoil.jobs import training_inputs as inputs
from counterfoil.jobs.feedback import SILENT, Feedback
from counterfoil.jobs.outputs import guarded as guarding
from counterfoil.jobs.results import Tabular
from counterfoil.jobs.training_inputs import Data, Stage, TrainOptions, recipe_with, train_options
from counterfoil.report import figures
from counterfoil.report.tables import Cell, Column, Row, Table
from counterfoil.storage import located
from counterfoil.store import check_writable
from counterfoil.train.recipes import Detection, Recipe, read_file

if TYPE_CHECKING:
    from counterfoil.models.networks import Backbone


@dataclass(frozen=True)
class Outcome:
    """The outcome of a training: validations by name of the moment, duration and speed."""

    points: Mapping[str, Mapping[str, float]]
    #: The step whose weights are kept, and the last one.
    kept: int
    steps: int
    seconds: float
    rows_per_second: float | None = None
    waiting: float | None = None
    #: What steps are called.
    unit: str = "steps"
    #: The step after which it went on now, 0 where it began; the last one where there was nothing left to do.
    since: int = 0
    #: Rows that were not trained on because their pictures could not be read.
    left_out: int = 0
    #: The loss and what was validated, from step (or epoch) to value.
    curves: Mapping[str, Mapping[int, float]] = field(default_factory=dict)

    @property
    def measures(self) -> tuple[str, ...]:
        """What was measured at any of the moments, in the order it came up."""
        return tuple(dict.fromkeys(name for point in self.points.values() for name in point))

    def to_json(self) -> dict[str, Any]:
        """The same as plain values, without the curves: the checkpoint's journal has them."""
        return {name: value for name, value in asdict(self).items() if name != "curves"}


@dataclass(frozen=True, eq=False)
class Training:
    """A training that is ready: rows, network and guard are read and checked, nothing is trained yet."""

    recipe: Recipe
    options: TrainOptions
    rows: Data
    backbone: "Backbone"
    stages: tuple[Stage, ...]
    guarded: Benchmark | None

    def run(self, *, resume: bool = True, feedback: Feedback = SILENT) -> "TrainedModel":
        """Train, and leave the checkpoint in its folder; `resume` goes on where it was stopped."""
        with feedback.progress() as progress:
            outcome = _train(self, resume=resume, progress=progress, note=feedback.remark)
        assert self.options.out is not None
        return TrainedModel(self.recipe.name, self.options.out, outcome)


@dataclass(frozen=True, eq=False, repr=False)
class TrainedModel(Tabular):
    """A checkpoint, and what was measured on the way to it.

    Rows are one per moment and measure: `moment` ("first (step 5)", "kept, last (step 40)"), `measure` (a
    loss, the accuracy of a guard) and its `value`.
    """

    recipe: str
    #: The folder of the checkpoint, which `load_scorer("ckpt:FOLDER")` and `evaluate` take.
    checkpoint: Path
    outcome: Outcome

    rows_by = ("measure",)

    def _rows(self, by: str) -> pa.Table:
        rows = [
            {"moment": moment, by: name, "value": value}
            for moment, values in self.outcome.points.items()
            for name, value in values.items()
        ]
        schema = pa.schema([("moment", pa.string()), (by, pa.string()), ("value", pa.float64())])
        return pa.Table.from_pylist(rows, schema=schema)

    @property
    def tables(self) -> tuple[Table]:
        """What was measured first, at the weights that are kept, and last."""
        names = self.outcome.measures
        rows = tuple(
            Row(moment, tuple(Cell(values.get(name)) for name in names))
            for moment, values in self.outcome.points.items()
        )
        columns = tuple(Column(name, style="score") for name in names)
        return (Table(f"{self.recipe}, {self.checkpoint}", columns, rows, "moment"),)

    @property
    def notes(self) -> list[str]:
        """Which weights are kept."""
        outcome = self.outcome
        return [f"kept: {outcome.unit.removesuffix('s')} {outcome.kept:,} of {outcome.steps:,}"]

    def plot(self) -> Any:
        """A matplotlib figure of the loss and of what was validated over the training, a panel each.

        A dashed line marks the weights that are kept. Raises `InputError` where nothing was measured on the
        way.
        """
        curves = self.outcome.curves
        if not curves:
            raise InputError("nothing was measured on the way to these weights", where=self.checkpoint)
        return figures.training_curves(curves, kept_step=self.outcome.kept, unit=self.outcome.unit)

    def __repr__(self) -> str:
        return f"<TrainedModel by {self.recipe} in {self.checkpoint}>"

    def to_json(self) -> dict[str, Any]:
        """What was measured and how long it took as plain values, as `train --json` writes it."""
        return self.outcome.to_json()


def prepare(recipe: Recipe, options: TrainOptions, *, feedback: Feedback = SILENT) -> Training:
    """The training of `options.model` on `options.data` by a recipe: read, loaded and checked.

    Raises `InputError` where something is missing, or rows or processes cannot do it, and `DataError` for
    files that cannot be read.
    """
    assert options.data is not None
    assert options.model is not None
    _check_devices(recipe, options)
    guarded = inputs.guard(options, note=feedback.note)
    with feedback.busy(f"reading {located(options.data)}"):
        rows = inputs.data(options, recipe)
    with feedback.busy(f"loading {options.model}"):
        backbone = inputs.model(options.model, rows.training, recipe, regions=options.regions)
    stages = inputs.stages(
        recipe, backbone, len(rows.training), processes=_processes(options), chunk=options.chunk_size
    )
    return Training(recipe, options, rows, backbone, stages, guarded)


def train(
    recipe: str | Path | Recipe,
    options: Mapping[str, Any],
    *,
    changed: Mapping[str, Any] | None = None,
    resume: bool = True,
    overwrite: bool = False,
    feedback: Feedback = SILENT,
) -> TrainedModel:
    """A dual encoder trained by a recipe (its name, its .toml file, or itself) with fields `changed`.

    `options` are those of `TrainOptions` by name; for what is None the table [run] of the file is asked.
    Raises what `prepare` and training raise, and `InputError` where the folder of the checkpoint holds
    something else.
    """
    table: Mapping[str, Any] = {}
    where = "recipe"
    if not isinstance(recipe, Recipe):
        where = str(recipe)
        read = read_file(recipe)
        recipe, table = read.recipe, read.run
    wanted = train_options(options, table, where=where)
    wanted.check(dry_run=False)
    assert wanted.out is not None
    with guarding("train", overwrite=overwrite, reads=wanted.reads) as outputs:
        check_writable(wanted.out, folder=True)
        outputs.folder(inputs.folder(wanted.out))
        training = prepare(recipe_with(recipe, changed or {}), wanted, feedback=feedback)
        return training.run(resume=resume, feedback=feedback)


def _train(training: Training, *, resume: bool, progress: Progress, note: Note) -> Outcome:
    # The package sets its own level when it is imported; that of its modules stays as it is set here.
    for name in ("lightning_fabric.utilities.distributed", "lightning_fabric.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.WARNING)
    wanted, rows, recipe, guarded = training.options, training.rows, training.recipe, training.guarded
    backbone = training.backbone
    if isinstance(recipe, Detection):
        return _train_detector(wanted, rows, backbone, recipe, progress=progress, note=note)
    from counterfoil.train.gradients import Computing
    from counterfoil.train.loop import fit
    from counterfoil.train.saving import Monitors, Saving
    from counterfoil.train.validation import ForgettingGuard

    began: list[int] = []

    def watched(stage: str, done: int, total: int) -> None:
        if stage == "training" and not began:
            began.append(done)
        progress(stage, done, total)

    guard = None if guarded is None else ForgettingGuard(guarded, name=guarded.name)
    fitted = fit(
        backbone,
        recipe,
        rows.training,
        validation=rows.validation,
        monitors=Monitors(guard=guard, at_start=True),
        out=wanted.out,
        saving=Saving(resume=resume, tensorboard=wanted.tensorboard),
        device=wanted.device,
        computing=Computing(wanted.devices or 1, wanted.chunk_size, wanted.checkpoint_activations),
        workers=_workers(wanted),
        progress=watched,
        note=note,
    )
    guarded_name = "" if guarded is None else guarded.name
    _warn_of_worse(_curves(fitted.history, ""), fitted.step, recipe.select, note)
    last = max([fitted.step, *(int(entry["step"]) for entry in fitted.history)])
    return Outcome(
        _moments(fitted.history, fitted.step, guarded_name),
        fitted.step,
        last,
        fitted.seconds,
        fitted.rows_per_second,
        fitted.waiting,
        since=began[0] if began else last,
        left_out=fitted.left_out,
        curves=_curves(fitted.history, guarded_name),
    )


def _warn_of_worse(
    curves: Mapping[str, Mapping[int, float]], best_step: int, measure: str, note: Note
) -> None:
    """Say so where the weights that are kept validate worse than those that the training began with."""
    from counterfoil.train.validation import better

    curve = curves.get(measure, {})
    if 0 in curve and best_step in curve and better({measure: curve[0]}, measure, curve[best_step]):
        note(
            f"the training made the model worse: {measure} was {curve[0]:.4f} at the start and is "
            f"{curve[best_step]:.4f} at step {best_step:,}, whose weights are kept; try a lower learning rate"
        )


def _train_detector(
    wanted: TrainOptions,
    rows: Data,
    backbone: "Backbone",
    recipe: Detection,
    *,
    progress: Progress,
    note: Note,
) -> Outcome:
    from counterfoil.train.detectors import fit

    began = perf_counter()
    fitted = fit(
        backbone,
        recipe,
        rows.training,
        validation=rows.validation,
        out=wanted.out,
        device=wanted.device,
        workers=_workers(wanted),
        progress=progress,
        note=note,
    )
    # Without validation rows, the share classified correctly during training.
    right = {
        side: [
            epoch.accuracy if epoch.validation != epoch.validation else epoch.validation for epoch in epochs
        ]
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
    return Outcome(
        points,
        max(fitted.kept.values()),
        epochs,
        perf_counter() - began,
        unit="epochs",
        left_out=fitted.left_out,
        curves={f"accuracy of {side}s": dict(enumerate(values, 1)) for side, values in right.items()},
    )


def _workers(wanted: TrainOptions) -> int:
    return min(8, os.cpu_count() or 1) if wanted.workers is None else wanted.workers


def _moments(
    history: Sequence[Mapping[str, float]], best_step: int, guarded: str
) -> dict[str, dict[str, float]]:
    """What was measured first, at the step whose weights are kept, and last, by the name of the moment."""
    measured: dict[int, dict[str, float]] = {}
    for name, curve in _curves(history, guarded).items():
        for step, value in curve.items() if name != "training loss" else ():
            measured.setdefault(step, {})[name] = value
    if not measured:
        return {}
    first, last = min(measured), max(measured)
    words: dict[int, list[str]] = {step: [] for step in sorted({first, best_step, last}) if step in measured}
    for step, word in ((first, "first"), (best_step, "kept"), (last, "last")):
        if step in words:
            words[step].append(word)
    return {f"{', '.join(its)} (step {step:,})": measured[step] for step, its in words.items()}


def _curves(history: Sequence[Mapping[str, float]], guarded: str) -> dict[str, dict[int, float]]:
    """The loss and what was validated, from step to value, of the entries of a journal."""
    curves: dict[str, dict[int, float]] = {}
    for entry in history:
        for name, value in entry.items():
            if name == "loss" or name == guarded or name.startswith("validation_"):
                known = "training loss" if name == "loss" else name.removeprefix("validation_")
                curves.setdefault(known, {})[int(entry["step"])] = value
    return curves


def _processes(options: TrainOptions) -> int:
    """How many processes train: as many as torchrun started, where it did."""
    started = os.environ.get("WORLD_SIZE") if "TORCHELASTIC_RUN_ID" in os.environ else None
    return int(started) if started is not None else options.devices or 1


def _check_devices(recipe: Recipe, options: TrainOptions) -> None:
    """Raise `InputError` where --devices and torchrun disagree, and for what no detector's training has."""
    here = os.environ.get("LOCAL_WORLD_SIZE") if "TORCHELASTIC_RUN_ID" in os.environ else None
    if here is not None and options.devices not in (None, int(here)):
        raise InputError(
            "--devices and torchrun disagree",
            given=f"{options.devices}, and {here} processes on this machine",
            hint="leave --devices out: torchrun's --nproc-per-node says how many",
        )
    if not isinstance(recipe, Detection):
        return
    unused = {
        "--devices": _processes(options) if _processes(options) > 1 else None,
        "--chunk-size": options.chunk_size,
        "--checkpoint-activations": "given" if options.checkpoint_activations else None,
    }
    for name, given in unused.items():
        if given is not None:
            raise InputError(
                "a detector is trained by one process, on what its frozen encoder gives",
                where=name,
                given=given,
                hint=f"leave {name} out",
            )
