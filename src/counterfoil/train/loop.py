"""The training loop: rows in, weights out."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from numpy import ndarray
from torch import Tensor

from counterfoil.benchmarks.training_rows import TrainingSet
from counterfoil.engine.plan import Note, Progress, silent, warn
from counterfoil.models.networks import Backbone
from counterfoil.models.runtime import fewest_threads
from counterfoil.store import begin, end
from counterfoil.train import optim, state as training_state
from counterfoil.train.dataloaders import Batch, Feed, course_of, dataloaders, length
from counterfoil.train.gradients import ONE_DEVICE, Computing, WrappedNetwork, check_chunk, gradients
from counterfoil.train.images import UNVARIED, Variation
from counterfoil.train.journal import Journal, RunningMetrics
from counterfoil.train.objectives import Objective, objective
from counterfoil.train.recipes import Recipe
from counterfoil.train.saving import DEFAULT_SAVING, NO_MONITORS, Monitors, Saver, Saving, Selection
from counterfoil.train.state import TrainState
from counterfoil.train.validation import Validation

#: The journal of a training, in its folder.
JOURNAL = "journal.csv"


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained backbone, and how it went."""

    backbone: Backbone
    #: The step whose weights it has: the best by validation, or the last.
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

    Rows come in an order that the recipe's seed alone decides; an epoch's last rows that make no whole batch
    are left out. Validation is the recipe's objective on `validation` and the measures of `monitors`; the
    weights of the strictly best one are kept, or the last ones where there is none.

    A folder `out` gets the selected weights as a checkpoint, the journal, and the resume state: a training
    that was stopped and is started again ends, on a CPU, with the weights of one that never was. One that has
    ended is not repeated. `computing` says on how many devices, and what is done where memory is short;
    gradients are those of the whole batch whatever it says.

    Raises `InputError` where a folder holds another training, the data lack what the recipe needs, a device
    is not there, or the loss is no number any more (the last checkpoint is kept); `DataError` naming an image
    that cannot be read, unless the recipe skips those; `StorageError` where the disk is full.
    """
    out = None if out is None else Path(out)
    fabric = optim.launched(device, computing.devices, recipe.precision)
    first, stages, network, now = fabric.is_global_zero, recipe.staged(), backbone.network, TrainState()
    chunk = computing.chunk_size
    for stage in stages:
        check_chunk(chunk, stage.batch_size, fabric.world_size)
    progress, note = (progress, note) if first else (silent, lambda message: None)

    # The state of this training in the folder, if there is one to go on from.
    resume = saving.resume
    same, state = training_state.opened(out, backbone, recipe, data, validation, resume=resume, fabric=fabric)
    readings, resumed = RunningMetrics(partial(optim.largest, fabric)), None
    if state is not None:
        with training_state.fitting(out):
            now = TrainState.restored(state["standing"])
            network.load_state_dict(state["network"])
            readings.put_back(state["readings"])
            resumed = state["optimiser"], state["random"]
    del state  # What was restored takes memory.

    # The rows whose pictures can be read, and their augmentation in each stage.
    aims = [objective(stage) for stage in stages]
    ready = partial(dataloaders, backbone=backbone, aims=aims, workers=workers, seed=recipe.seed)
    ready = partial(ready, pin=fabric.device.type == "cuda", progress=progress, note=note)
    skip = recipe.unreadable == "skip"
    variations = [Variation.of(stage) for stage in stages]
    feeds, rows = ready(data, variations=variations, skip=skip and not resumed, left_out=now.left_out)
    now.left_out = np.setdiff1d(np.arange(len(data)), rows).tolist()
    unvaried = [UNVARIED] * len(stages)
    seen = [] if validation is None else ready(validation, variations=unvaried, skip=skip)[0]
    checks = [Validation(*parts) for parts in zip(seen, aims, stages, strict=False)]

    # The journal, and what is measured before training.
    fabric.to_device(network)
    folder = out if first else None
    if folder is not None:
        begin(folder, "training")
    journal = Journal(None if folder is None else folder / JOURNAL, since=now.step)
    saver = Saver(out, fabric, backbone, recipe, data, same, saving)
    selection = Selection(stages, checks, monitors, saver, progress, note)
    if entry := selection.start(now, resumed=resumed is not None):
        journal.write({"step": 0, **entry})
    run = _Run(rows, now, readings, journal, selection, chunk, resumed)
    network.train()
    for number in range(now.stage, len(stages) if not now.ended else 0):
        run.train(number, aims[number], feeds[number])
    selection.put_back(now)
    now.waited = optim.largest(fabric, now.waited)
    if folder is not None:
        end(folder)
    network.eval()
    rate, waiting = (part / now.seconds if now.seconds else 0.0 for part in (now.rows, now.waited))
    step, history = now.best_step or now.step, tuple(journal.entries)
    return Fitted(backbone, step, now.best, history, now.seconds, rate, waiting, len(now.left_out))


@dataclass(eq=False)
class _Run:
    """A training in progress: what its stages share."""

    rows: Int[ndarray, "n"]
    now: TrainState
    readings: RunningMetrics
    journal: Journal
    selection: Selection
    chunk_size: int | None
    #: The states of the optimiser and of the random generators from which the first stage goes on.
    resumed: tuple[Mapping[str, Any] | None, Sequence[Mapping[str, Any]]] | None

    @property
    def saver(self) -> Saver:
        return self.selection.saver

    def train(self, number: int, aim: Objective, feed: Feed) -> None:
        """Train stage `number` from the step that `now` says to its end."""
        now, stages, saver, progress = self.now, self.selection.stages, self.saver, self.selection.progress
        stage, fabric, network = stages[number], saver.fabric, saver.backbone.network
        groups = optim.parameter_groups(network, stage)
        if stage.optimiser != "adamp":
            # One kernel for all parameters: a loop over many small ones takes as long as the rest of a step.
            groups = [{**group, "fused": True} for group in groups]
        model, optimiser = fabric.setup(WrappedNetwork(network), optim.optimiser(groups, stage))
        if self.resumed is not None:
            of_optimiser, generators = self.resumed
            with training_state.fitting(saver.out):
                if of_optimiser is not None:
                    optimiser.load_state_dict(of_optimiser)
                training_state.put_back_random(generators, fabric, self.selection.note)
            self.resumed = None
            del of_optimiser
        elif number == 0:
            torch.manual_seed(saver.recipe.seed + fabric.global_rank)
        n, rank, world = len(self.rows), fabric.global_rank, fabric.world_size
        course = course_of(stages, number, n, start=now.at, rank=rank, world=world)
        total = sum(length(one, n) for one in stages)
        with closing(feed.batches(course)) as batches, fewest_threads(network, fabric.device):
            progress("training", now.step, total)
            while now.at < course.steps:
                last = now.at + 1 == course.steps
                ends = last or (now.at + 1) % course.per_epoch == 0
                due = ends or (now.step + 1) % saver.saving.journal_every == 0
                epoch, lr, norm = self._step(
                    stage, course.steps, aim, batches, model, optimiser, measures_norm=due
                )
                progress("training", now.step, total)
                # Validation, journal, checkpoint and resume state.
                entry: dict[str, float] = {}
                improved = False
                if last or now.at % (stage.validate_every or course.per_epoch) == 0:
                    entry, improved = self.selection.look(now)
                if due or entry:
                    line = {"step": now.step, "epoch": epoch, "lr": lr, **self.readings.means()}
                    line |= {} if norm is None else {"grad_norm": float(norm)}
                    line |= {"epoch_waiting": now.end_epoch(partial(optim.largest, fabric))} if ends else {}
                    self.journal.write(line | {"seconds": now.seconds} | entry)
                if last or (entry and self.selection.stale(now)):
                    break
                # Called in any case: all processes must reach this at the same steps.
                in_time = saver.due(now.step)
                if improved or in_time:
                    saver.save(now, self.readings, self.journal, optimiser)
        now.stage, now.at, now.stale_since = number + 1, 0, now.step
        now.ended = now.stage == len(stages)
        saver.save(now, self.readings, self.journal, None)

    def _step(
        self,
        stage: Recipe,
        steps: int,
        aim: Objective,
        batches: Iterator[Batch],
        model: Any,
        optimiser: Any,
        *,
        measures_norm: bool,
    ) -> tuple[int, float, Tensor | None]:
        """Take one of the stage's `steps`: its epoch, learning rate and gradient norm if it is measured."""
        began, now, fabric = perf_counter(), self.now, self.saver.fabric
        lr = optim.learning_rate(now.at, recipe=stage, total=steps)
        for group in optimiser.param_groups:
            group["lr"] = lr
        # Forward and backward, of all batches of the step as one.
        asked_at = perf_counter()
        parts = list(islice(batches, stage.accumulate))
        waited = perf_counter() - asked_at
        losses = gradients(model, aim, parts, fabric=fabric, chunk=self.chunk_size)
        used = np.concatenate([part.rows for part in parts])
        norm = None
        if stage.clip_norm is not None:
            norm = fabric.clip_gradients(model, optimiser, max_norm=stage.clip_norm, error_if_nonfinite=False)
        elif measures_norm:
            parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
            grads = [parameter.grad for parameter in parameters if parameter.grad is not None]
            norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in grads]))
        self.readings.take(now.step, losses, lr=lr, rows=self.rows[used])
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if stage.max_logit_scale is not None:
            with torch.no_grad():
                self.saver.backbone.network.logit_scale.clamp_(max=math.log(stage.max_logit_scale))
        seconds = perf_counter() - began
        now.took(stage.batch_size * stage.accumulate, seconds, waited)
        self.readings.time(stage.batch_size * stage.accumulate, seconds, waited)
        return parts[-1].epoch, lr, norm
