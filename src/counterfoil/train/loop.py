"""The training loop: rows in, weights out, from the top to the bottom of `fit`."""

import math
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter

import numpy as np
import torch

from counterfoil.benchmarks.training_rows import TrainingSet
from counterfoil.engine.deduplicate import Note, Progress, silent, warn
from counterfoil.models.networks import Backbone
from counterfoil.models.runtime import fewest_threads
from counterfoil.store import begin, end
from counterfoil.train import state as training_state
from counterfoil.train.dataloaders import course_of, dataloaders, length
from counterfoil.train.gradients import (
    ONE_DEVICE,
    Computing,
    WrappedNetwork,
    check_chunk,
    gather,
    gradients,
)
from counterfoil.train.images import UNVARIED, Variation
from counterfoil.train.journal import Journal, RunningMetrics
from counterfoil.train.objectives import objective
from counterfoil.train.optim import largest, launched, learning_rate, on_first, parameter_groups
from counterfoil.train.optim import optimiser as optimiser_of
from counterfoil.train.recipes import Recipe
from counterfoil.train.saving import DEFAULT_SAVING, NO_MONITORS, Monitors, Saver, Saving, Selection
from counterfoil.train.state import TrainState
from counterfoil.train.validation import Validation

#: The journal of a training, in its folder.
JOURNAL = "journal.csv"


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained backbone, and how it went.

    `step` is the step after which the weights were as they are now: the best by validation, or the last.
    """

    backbone: Backbone
    step: int
    #: The measure that decided, None where the last weights were taken.
    best: float | None
    #: The journal: numbers by name, `step` first.
    history: tuple[Mapping[str, float], ...]
    #: Seconds of training alone, rows (of all devices) in one of them, share of them spent waiting for data
    #: (of several processes by the one that waits longest).
    seconds: float
    rows_per_second: float
    waiting: float
    #: Rows that were not trained on because their pictures could not be read.
    left_out: int = 0


def fit(
    backbone: Backbone,
    recipe: Recipe,
    data: TrainingSet,
    *,
    validation: TrainingSet | None = None,
    monitors: Monitors = NO_MONITORS,
    out: str | Path | None = None,
    saving: Saving = DEFAULT_SAVING,
    device: str = "auto",
    computing: Computing = ONE_DEVICE,
    workers: int = 0,
    progress: Progress = silent,
    note: Note = warn,
) -> Fitted:
    """Train the backbone's network, in place, as the recipe says.

    Rows come in an order that the recipe's seed alone decides, whatever `workers` and devices are; an
    epoch's last rows that make no whole batch are left out. Validation is the recipe's objective on
    `validation` (accuracy within batches, loss, rsum where the recipe selects by it) and the measures of
    `monitors`; the weights of the strictly best validation are kept, and the last ones where there is none.

    A folder `out` gets the selected weights as a checkpoint as soon as they are better, the journal, and as
    often as `saving` states the resume state: a training that was stopped at any moment and is started again
    ends, on a CPU, with the weights of one that never was. One that has ended is not repeated.

    `computing` says on how many devices, and what is done where memory is short; the gradients are those of
    the whole batch whatever it says.

    Raises `InputError` where a folder holds another training, the data lack what the recipe needs, a device
    is not there, or the loss is no number any more (the last checkpoint is kept); `DataError` naming an image
    that cannot be read, unless the recipe skips those; `StorageError` where the disk is full (what was saved
    before is intact).
    """
    out = None if out is None else Path(out)
    fabric = launched(device, computing.devices, recipe.precision)
    place, first, chunk = fabric.device, fabric.is_global_zero, computing.chunk_size
    for stage in recipe.staged():
        check_chunk(chunk, stage.batch_size, fabric.world_size)
    progress, note = (progress, note) if first else (silent, lambda message: None)
    network, stages = backbone.network, recipe.staged()
    aims = [objective(stage) for stage in stages]

    # The state of this training in the folder, if there is one to go on from.
    resume = saving.resume
    same, state = training_state.found(out, backbone, recipe, data, validation, resume=resume, fabric=fabric)
    now = TrainState()
    if state is not None:
        with training_state.fitting(out):
            now = TrainState.restored(state["standing"])

    # The rows whose pictures can be read, and their augmentation in each stage.
    ready = partial(dataloaders, backbone=backbone, aims=aims, workers=workers, seed=recipe.seed)
    ready = partial(ready, pin=place.type == "cuda", progress=progress, note=note)
    skip = recipe.unreadable == "skip"
    variations = [Variation.of(stage) for stage in stages]
    feeds, rows = ready(data, variations=variations, skip=skip and state is None, left_out=now.left_out)
    now.left_out = np.setdiff1d(np.arange(len(data)), rows).tolist()
    total = sum(length(stage, len(rows)) for stage in stages)
    checks: list[Validation] = []
    if validation is not None:
        seen, _ = ready(validation, variations=[UNVARIED] * len(stages), skip=skip)
        checks = [Validation(feed, aim, stage) for feed, aim, stage in zip(seen, aims, stages, strict=True)]

    # The weights, the journal, and the guarded task before training.
    fabric.to_device(network)
    readings = RunningMetrics(partial(largest, fabric))
    if state is not None:
        with training_state.fitting(out):
            network.load_state_dict(state["network"])
            readings.put_back(state["readings"])
    folder = out if first else None
    if folder is not None:
        begin(folder, "training")
    journal = Journal(
        None if folder is None else folder / JOURNAL,
        since=now.step,
        tensorboard=folder / "tensorboard" if folder is not None and saving.tensorboard else None,
    )
    start: dict[str, float] = {}
    if monitors.at_start and checks and state is None:
        at_first = checks[0].measure(fabric, progress=progress)
        start |= {f"validation_{name}": value for name, value in at_first.items()}
    guard = monitors.guard
    if guard is not None and now.held_out is None:
        now.held_out = on_first(fabric, partial(guard.measure, backbone))
        start[guard.name] = now.held_out
    if start:
        journal.write({"step": 0, **start})

    # Checkpoints and resume states, and the selection of the best weights.
    saver = Saver(out, fabric, backbone, recipe, data, same, saving)
    selection = Selection(stages, checks, monitors.validate, guard, saver, progress, note)

    together = partial(gather, fabric=fabric)
    network.train()
    for number in range(now.stage, len(stages) if not now.ended else 0):
        stage, aim, feed = stages[number], aims[number], feeds[number]
        groups = parameter_groups(network, stage)
        if stage.optimiser != "adamp":
            # One kernel for all parameters: where they are many and small, a loop over them takes as long as
            # the rest of the step.
            groups = [{**group, "fused": True} for group in groups]
        model, optimiser = fabric.setup(WrappedNetwork(network), optimiser_of(groups, stage))
        if state is not None:
            with training_state.fitting(out):
                if state["optimiser"] is not None:
                    optimiser.load_state_dict(state["optimiser"])
                training_state.put_back_random(state["random"], fabric, note)
            state = None
        elif number == 0:
            torch.manual_seed(recipe.seed + fabric.global_rank)
        course = course_of(
            stages, number, len(rows), start=now.at, rank=fabric.global_rank, world=fabric.world_size
        )
        with (
            closing(feed.batches(course)) as batches,
            fewest_threads(network, place),
        ):
            progress("training", now.step, total)
            while now.at < course.steps:
                began = perf_counter()
                lr = learning_rate(now.at, recipe=stage, total=course.steps)
                for group in optimiser.param_groups:
                    group["lr"] = lr
                last = now.at + 1 == course.steps
                ends = last or (now.at + 1) % course.per_epoch == 0
                due = ends or (now.step + 1) % saving.journal_every == 0

                # Forward and backward, of all batches of the step as one.
                asked_at = perf_counter()
                parts = list(islice(batches, stage.accumulate))
                waited = perf_counter() - asked_at
                losses = gradients(
                    model, aim, parts, fabric=fabric, gather=together, chunk=computing.chunk_size
                )
                used = np.concatenate([part.rows for part in parts])

                # One step of the optimiser; a loss that is no number raises in `take`.
                norm = None
                if stage.clip_norm is not None:
                    norm = fabric.clip_gradients(
                        model, optimiser, max_norm=stage.clip_norm, error_if_nonfinite=False
                    )
                elif due:
                    parameters = [
                        parameter for group in optimiser.param_groups for parameter in group["params"]
                    ]
                    grads = [parameter.grad for parameter in parameters if parameter.grad is not None]
                    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in grads]))
                readings.take(now.step, losses, lr=lr, rows=rows[used])
                optimiser.step()
                optimiser.zero_grad(set_to_none=True)
                if stage.max_logit_scale is not None:
                    with torch.no_grad():
                        network.logit_scale.clamp_(max=math.log(stage.max_logit_scale))
                seconds = perf_counter() - began
                now.took(stage.batch_size * stage.accumulate, seconds, waited)
                readings.time(stage.batch_size * stage.accumulate, seconds, waited)
                progress("training", now.step, total)

                # Validation, journal, checkpoint and resume state.
                entry: dict[str, float] = {}
                improved = False
                if last or now.at % (stage.validate_every or course.per_epoch) == 0:
                    entry, improved = selection.look(now)
                if due or entry:
                    line = {"step": now.step, "epoch": parts[-1].epoch, "lr": lr, **readings.means()}
                    line |= {} if norm is None else {"grad_norm": float(norm)}
                    line |= {"epoch_waiting": now.end_epoch(partial(largest, fabric))} if ends else {}
                    journal.write(line | {"seconds": now.seconds} | entry)
                if last or (entry and selection.stale(now)):
                    break
                # Called in any case: all processes must reach this at the same steps.
                in_time = saver.due(now.step)
                if improved or in_time:
                    saver.save(now, readings, journal, optimiser)
        now.stage, now.at, now.stale_since = number + 1, 0, now.step
        now.ended = now.stage == len(stages)
        saver.save(now, readings, journal, None)

    selection.put_back(now)
    now.waited = largest(fabric, now.waited)
    journal.close()
    if folder is not None:
        end(folder)
    network.eval()
    return Fitted(
        backbone,
        step=now.best_step or now.step,
        best=now.best,
        history=tuple(journal.entries),
        seconds=now.seconds,
        rows_per_second=now.rows / now.seconds if now.seconds else 0.0,
        waiting=now.waited / now.seconds if now.seconds else 0.0,
        left_out=len(now.left_out),
    )
