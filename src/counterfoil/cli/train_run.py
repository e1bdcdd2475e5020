"""A training as `train` runs it, and what came of it."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from counterfoil.cli.processes import processes
from counterfoil.cli.train_inputs import Data
from counterfoil.cli.train_options import TrainOptions
from counterfoil.data.benchmark import Benchmark
from counterfoil.errors import InputError
from counterfoil.train.recipes import Detection, Recipe

if TYPE_CHECKING:
    from counterfoil.scorers.networks import Backbone


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
    #: The step after which it went on now, 0 where it began; the last one where there was nothing left to do.
    since: int = 0
    #: Rows that were not trained on because their pictures could not be read.
    left_out: int = 0

    @property
    def measures(self) -> tuple[str, ...]:
        """What was measured at any of the moments, in the order it came up."""
        return tuple(dict.fromkeys(name for point in self.points.values() for name in point))

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return asdict(self)


def train(
    wanted: TrainOptions,
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
    from counterfoil.train.forgetting import ForgettingGuard
    from counterfoil.train.loop import fit
    from counterfoil.train.saving import Saving
    from counterfoil.train.selection import Monitors

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
        devices=processes(wanted.devices),
        workers=_workers(wanted),
        progress=watched,
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
        since=began[0] if began else last,
        left_out=fitted.left_out,
    )


def _train_detector(
    wanted: TrainOptions,
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
        recipe,
        rows.training,
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
    return Outcome(
        points,
        max(fitted.kept.values()),
        epochs,
        perf_counter() - began,
        unit="epochs",
        left_out=fitted.left_out,
    )


def _workers(wanted: TrainOptions) -> int:
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
