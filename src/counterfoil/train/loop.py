"""The loop: rows in, weights out. One optimiser step after the other, from the top to the bottom of `fit`."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy import ndarray
from torch import Tensor

from counterfoil.data.training import TrainingSet
from counterfoil.engine.progress import Note, Progress, silent, warn
from counterfoil.scorers import trained
from counterfoil.scorers.networks import Backbone, Network
from counterfoil.store import check_writable
from counterfoil.train import resuming
from counterfoil.train.batches import Batch, Course, Feed, steps_per_epoch
from counterfoil.train.devices import Trained, launched
from counterfoil.train.gather import gather
from counterfoil.train.groups import optimiser as optimiser_of
from counterfoil.train.groups import parameter_groups
from counterfoil.train.guard import Guard, Watch
from counterfoil.train.journal import Journal
from counterfoil.train.live import asked
from counterfoil.train.objectives import objective as objective_of
from counterfoil.train.pictures import Pictures, say_unreadable
from counterfoil.train.readings import Readings
from counterfoil.train.recipes import Recipe
from counterfoil.train.resuming import Standing
from counterfoil.train.schedule import learning_rate
from counterfoil.train.tokens import Tokens
from counterfoil.train.validation import Objective, Validation, better

#: The journal of a training, in its folder.
JOURNAL = "journal.csv"
#: Steps between two questions, among several processes, whether it is time to save.
_TOGETHER = 25


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
    #: Seconds of training alone, rows (of all devices) in one of them, share of them spent waiting for data.
    seconds: float
    rows_per_second: float
    waiting: float


def fit(
    backbone: Backbone,
    recipe: Recipe,
    data: TrainingSet,
    *,
    validation: TrainingSet | None = None,
    validate: Callable[[Backbone], Mapping[str, float]] | None = None,
    guard: Guard | None = None,
    out: Path | None = None,
    resume: bool = True,
    device: str = "auto",
    devices: int = 1,
    workers: int = 0,
    save_every: int | None = None,
    save_seconds: float = 300.0,
    journal_every: int = 10,
    tensorboard: bool = False,
    objective: Callable[[Recipe], Objective] = objective_of,
    progress: Progress = silent,
    note: Note = warn,
) -> Fitted:
    """Train the backbone's network, in place, as the recipe says.

    Rows come in an order that the recipe's seed alone decides, whatever `workers` and `devices` are; an
    epoch's last rows that make no whole batch are left out. Validation is the recipe's objective on
    `validation` (accuracy within batches, loss, rsum where the recipe selects by it) and whatever `validate`
    adds, called with the network ready to answer; the weights of the strictly best one are kept. Without
    either the last weights are.

    With a folder `out` the selected weights lie there as a checkpoint as soon as they are better, the journal
    beside them, and every `save_every` steps, every `save_seconds` seconds and at the end all that it takes
    to go on: a training that was stopped at any moment and is started again ends, on a CPU, with the weights
    of one that never was. One that has ended is not repeated. `resume` False begins anew.

    Raises `InputError` where a folder holds another training, the data lack what the recipe needs, a device
    is not there, or the loss is no number any more (the last checkpoint is kept); `DataError` naming an image
    that cannot be read, unless the recipe skips those; `StorageError` where the disk is full (what was saved
    before is intact).
    """
    fabric = launched(device, devices, recipe.precision)
    first = fabric.is_global_zero
    progress, note = (progress, note) if first else (silent, _to_nobody)
    network, stages = backbone.network, recipe.staged()
    aims = [objective(stage) for stage in stages]

    # What is there already: this training, and then it goes on from where it was saved, or none.
    folder = out if first else None
    same: Mapping[str, Any] = {}
    state = None
    if out is not None:
        same = resuming.identity(backbone, recipe, data, validation)
        check_writable(out, folder=True)
        state = resuming.load(out) if resume else None
        if state is not None:
            resuming.check_same(state["identity"], same, where=out)
        fabric.barrier()
        if first and state is None:
            resuming.forget(out)
    now = Standing() if state is None else Standing(**state["standing"])

    # The rows, without those whose pictures cannot be read, and what is done to them in each stage.
    stock = partial(_stock, backbone=backbone, aims=aims, workers=workers, seed=recipe.seed)
    stock = partial(stock, pin=fabric.device.type == "cuda", progress=progress, note=note)
    skip = recipe.unreadable == "skip"
    feeds, rows = stock(
        data,
        varies=[stage.augment == "crop-flip" for stage in stages],
        skip=skip and state is None,
        left_out=now.left_out,
    )
    now.left_out = np.setdiff1d(np.arange(len(data)), rows).tolist()
    epoch_steps = [steps_per_epoch(len(rows), each.batch_size, each.accumulate) for each in stages]
    totals = [each.steps or each.epochs * steps for each, steps in zip(stages, epoch_steps, strict=True)]
    checks: list[Validation] = []
    if validation is not None:
        varies = [False] * len(stages)
        seen, _ = stock(validation, varies=varies, skip=skip, left_out=[])
        checks = [
            Validation(feed, aim, stage.batch_size, retrieval=stage.select == "rsum")
            for feed, aim, stage in zip(seen, aims, stages, strict=True)
        ]
    # Weights are chosen by what the last stage says; earlier ones only where they say the same.
    select = stages[-1].select
    if select != "last" and not checks and validate is None:
        note(f"there is nothing to validate on: the last weights are kept, not those with the best {select}")
        select = "last"

    # The weights, the journal, and the guard's first look.
    fabric.to_device(network)
    place = fabric.device
    if state is not None:
        network.load_state_dict(state["network"])
    readings = Readings(place)
    if state is not None:
        readings.put_back(state["readings"])
    journal = Journal(
        None if folder is None else folder / JOURNAL,
        since=now.step,
        tensorboard=folder / "tensorboard" if folder is not None and tensorboard else None,
    )
    if guard is not None and now.held_out is None:
        now.held_out = _on_first(fabric, partial(guard.measure, backbone))
        journal.write({"step": 0, guard.name: now.held_out})
    watch = None if guard is None or now.held_out is None else Watch(guard, now.held_out)
    best_weights: Mapping[str, Tensor] | None = None
    saved_at = perf_counter()

    def save(optimiser: Any) -> None:
        """Write down all that it takes to go on from here; where the last weights count, those too."""
        nonlocal saved_at
        readings.settle()
        randoms = _of_all(fabric, resuming.random_state())
        saved_at = perf_counter()
        if folder is None:
            return
        if not now.best_step:
            trained.save(folder, backbone, _facts(recipe, data, now.step, {}))
        journal.sync()
        kept: dict[str, Any] = {"identity": same, "standing": asdict(now), "random": randoms}
        kept |= {"readings": readings.state(), "network": network.state_dict()}
        kept |= {"optimiser": None if optimiser is None else optimiser.state_dict()}
        resuming.save(folder, kept)

    network.train()
    for number in range(now.stage, len(stages) if not now.ended else 0):
        stage, aim, feed, total = stages[number], aims[number], feeds[number], totals[number]
        groups = parameter_groups(network, stage)
        parameters = [each for group in groups for each in group["params"]]
        if stage.optimiser != "adamp":
            # One kernel for all parameters: where they are many and small, a loop over them takes as long
            # as the rest of the step.
            groups = [{**group, "fused": True} for group in groups]
        model, optimiser = fabric.setup(Trained(network), optimiser_of(groups, stage))
        together = partial(gather, fabric=fabric)
        if state is not None:
            if state["optimiser"] is not None:
                optimiser.load_state_dict(state["optimiser"])
            _put_back_random(fabric, state["random"], note)
            state = None
        elif number == 0:
            torch.manual_seed(recipe.seed + fabric.global_rank)
        course = Course(
            n=len(rows),
            batch_size=stage.batch_size,
            steps=total,
            accumulate=stage.accumulate,
            seed=stage.seed,
            rank=fabric.global_rank,
            world=fabric.world_size,
            start=now.at,
            first_epoch=sum(-(-t // steps) for t, steps in zip(totals[:number], epoch_steps, strict=False)),
        )
        with closing(feed.batches(course)) as batches:
            progress("training", now.step, sum(totals))
            while now.at < total:
                began = perf_counter()
                lr = learning_rate(now.at, recipe=stage, total=total)
                for group in optimiser.param_groups:
                    group["lr"] = lr
                last = now.at + 1 == total
                due = last or (now.step + 1) % journal_every == 0

                # Forward and backward, once for each batch of the step.
                said: dict[str, Tensor] = {}
                used: list[ndarray] = []
                waited = 0.0
                for turn in range(stage.accumulate):
                    asked_at = perf_counter()
                    batch = next(batches)
                    waited += perf_counter() - asked_at
                    with fabric.no_backward_sync(model, enabled=turn + 1 < stage.accumulate):
                        pixels = batch.pixels.to(place, non_blocking=True)
                        tokens = batch.tokens.to(place, non_blocking=True)
                        loss, parts = aim(model(pixels, tokens), together)
                        fabric.backward(loss / stage.accumulate)
                    for name, value in {"loss": loss, **parts}.items():
                        share = value.detach() / stage.accumulate
                        said[name] = said[name] + share if name in said else share
                    used.append(batch.rows)

                # One step of the optimiser, unless what was said is no number.
                norm = None
                if stage.clip_norm is not None:
                    norm = fabric.clip_gradients(
                        model, optimiser, max_norm=stage.clip_norm, error_if_nonfinite=False
                    )
                elif due:
                    norm = _norm(parameters)
                readings.take(now.step, said, lr=lr, rows=rows[np.concatenate(used)])
                optimiser.step()
                optimiser.zero_grad(set_to_none=True)
                if stage.max_logit_scale is not None:
                    with torch.no_grad():
                        network.logit_scale.clamp_(max=math.log(stage.max_logit_scale))
                now.step, now.at = now.step + 1, now.at + 1
                readings.time(stage.batch_size * stage.accumulate, perf_counter() - began, waited)
                now.rows += stage.batch_size * stage.accumulate
                now.seconds, now.waited = now.seconds + perf_counter() - began, now.waited + waited
                progress("training", now.step, sum(totals))

                # Validation: the best weights are kept, and what is forgotten on the way is said.
                entry: dict[str, float] = {}
                improved = False
                if last or now.at % (stage.validate_every or epoch_steps[number]) == 0:
                    readings.settle()
                    measured: dict[str, float] = {}
                    if checks:
                        measured |= checks[number].measure(fabric, progress=progress)
                    if validate is not None:
                        measured |= _on_first(fabric, partial(_ask, validate, backbone))
                    entry = {f"validation_{name}": value for name, value in measured.items()}
                    if select != "last" and stage.select == select and better(measured, select, now.best):
                        improved = True
                        now.best, now.best_step, now.stale_since = measured[select], now.step, now.step
                        best_weights = _copy(network)
                        if folder is not None:
                            trained.save(folder, backbone, _facts(recipe, data, now.step, measured))
                    if watch is not None:
                        watch.see(_on_first(fabric, partial(watch.guard.measure, backbone)), now.step, note)
                        entry[watch.guard.name] = watch.last
                stops = (
                    bool(entry)
                    and select != "last"
                    and stage.patience is not None
                    and now.step - now.stale_since >= stage.patience
                )
                if due or entry:
                    line = {"step": now.step, "epoch": batch.epoch, "lr": lr, **readings.means()}
                    line |= {} if norm is None else {"grad_norm": float(norm)}
                    journal.write(line | {"seconds": now.seconds} | entry)
                if last or stops:
                    break
                in_time = save_every is not None and now.step % save_every == 0
                if out is not None and (fabric.world_size == 1 or now.step % _TOGETHER == 0):
                    in_time |= bool(fabric.broadcast(perf_counter() - saved_at >= save_seconds))
                if improved or in_time:
                    save(optimiser)
        now.stage, now.at, now.stale_since = number + 1, 0, now.step
        now.ended = now.stage == len(stages)
        save(None)

    if now.best_step:
        if best_weights is None:
            # They are from before the training was stopped, and lie where they were written.
            assert out is not None
            best_weights = trained.read(out).network.state_dict()
        network.load_state_dict(best_weights)
    journal.close()
    network.eval()
    return Fitted(
        backbone,
        step=now.best_step or now.step,
        best=now.best,
        history=tuple(journal.entries),
        seconds=now.seconds,
        rows_per_second=now.rows / now.seconds if now.seconds else 0.0,
        waiting=now.waited / now.seconds if now.seconds else 0.0,
    )


def _stock(
    data: TrainingSet,
    *,
    backbone: Backbone,
    aims: Sequence[Objective],
    varies: Sequence[bool],
    skip: bool,
    left_out: Sequence[int],
    workers: int,
    seed: int,
    pin: bool,
    progress: Progress,
    note: Note,
) -> tuple[list[Feed], ndarray]:
    """A feed for each stage, and the rows of `data` that they feed; stages share what is prepared."""
    rows = np.setdiff1d(np.arange(len(data)), np.asarray(left_out, dtype=np.int64))
    roles = sorted({role for aim in aims for role in aim.images})
    shared: dict[bool, Pictures] = {}
    for varied in sorted(set(varies)):
        shared[varied] = Pictures(
            data.images,
            np.unique(np.concatenate([data.need(role)[rows] for role in roles])),
            backbone.preparation,
            workers=workers,
            varies=varied,
            skip=skip,
            progress=progress,
        )
    lost = sorted({position for pictures in shared.values() for position in pictures.unreadable})
    if lost:
        gone = np.any([np.isin(data.need(role)[rows], lost) for role in roles], axis=0)
        say_unreadable(data.images, lost, int(gone.sum()), note)
        rows = rows[~gone]
    tokens = Tokens(data.captions, backbone.tokens)
    finish = _pinned if pin else _as_is
    chosen = data.select(rows)
    feeds = []
    for aim, varied in zip(aims, varies, strict=True):
        pictures = shared[varied]
        works_ahead = pin or not pictures.in_memory
        roles_of = (aim.images, aim.texts)
        feeds.append(Feed(chosen, backbone, pictures, tokens, *roles_of, varied, seed, finish, works_ahead))
    return feeds, rows


def _pinned(batch: Batch) -> Batch:
    """A batch that can be copied to a GPU while it computes."""
    return batch._replace(pixels=batch.pixels.pin_memory(), tokens=batch.tokens.pin_memory())


def _as_is(batch: Batch) -> Batch:
    return batch


def _norm(parameters: Sequence[Tensor]) -> Tensor:
    """The norm of the whole gradient."""
    norms = [torch.linalg.vector_norm(each.grad) for each in parameters if each.grad is not None]
    return torch.linalg.vector_norm(torch.stack(norms))


def _copy(network: Network) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().clone() for name, tensor in network.state_dict().items()}


def _ask(validate: Callable[[Backbone], Mapping[str, float]], backbone: Backbone) -> dict[str, float]:
    with asked(backbone):
        return {name: float(value) for name, value in validate(backbone).items()}


_Value = TypeVar("_Value")


def _on_first(fabric: Fabric, work: Callable[[], _Value]) -> _Value:
    """What the first process finds, on all of them."""
    found = work() if fabric.is_global_zero else None
    return fabric.broadcast(found)


def _of_all(fabric: Fabric, value: Any) -> list[Any]:
    """The values of all processes, in their order."""
    if fabric.world_size == 1:
        return [value]
    values: list[Any] = [None] * fabric.world_size
    torch.distributed.all_gather_object(values, value)
    return values


def _put_back_random(fabric: Fabric, states: Sequence[Mapping[str, Any]], note: Note) -> None:
    if len(states) == fabric.world_size:
        resuming.set_random_state(states[fabric.global_rank])
        return
    note(
        f"this training ran on {len(states)} processes and goes on with {fabric.world_size}: "
        "what it draws at random (dropout, samples) is no longer what it would have been"
    )
    resuming.set_random_state(states[fabric.global_rank % len(states)])


def _facts(recipe: Recipe, data: TrainingSet, step: int, measured: Mapping[str, float]) -> dict[str, Any]:
    """What a checkpoint says of how it was made."""
    return {
        "recipe": asdict(recipe),
        "data": {"name": data.name, "source": data.source, "rows": len(data)},
        "step": step,
        "validation": dict(measured),
    }


def _to_nobody(message: str) -> None:
    """The `Note` of a process that another speaks for."""
