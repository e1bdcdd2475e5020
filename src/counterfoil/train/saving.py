"""Files of a training in progress: checkpoints, the resume state, and the selection of the final weights."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from lightning_fabric import Fabric
from torch import Tensor, optim

from counterfoil.benchmarks.training_rows import TrainingSet
from counterfoil.engine.plan import Note, Progress
from counterfoil.errors import InputError
from counterfoil.evaluation.result import or_none
from counterfoil.models import checkpoint as checkpoint_folder
from counterfoil.models.networks import Backbone
from counterfoil.train import state
from counterfoil.train.journal import Journal, RunningMetrics
from counterfoil.train.optim import largest, of_all, on_first
from counterfoil.train.recipes import Recipe
from counterfoil.train.state import TrainState
from counterfoil.train.validation import ForgettingGuard, Validation, better, evaluation_mode

#: Measures of a network in evaluation mode, by name.
Validate = Callable[[Backbone], Mapping[str, float]]


@dataclass(frozen=True)
class Saving:
    """Resume, and how often a training's progress is recorded."""

    #: Go on from the state in the folder, if there is one; False starts anew.
    resume: bool = True
    #: Steps between two resume states, None for no such rule, and seconds between two.
    every: int | None = None
    seconds: float = 300.0
    #: Steps between two rows of the journal.
    journal_every: int = 10


DEFAULT_SAVING = Saving()


@dataclass
class Saver:
    """The folder `out` of a training, if it has one; of several processes the first one writes."""

    out: Path | None
    fabric: Fabric
    backbone: Backbone
    recipe: Recipe
    data: TrainingSet
    same: Mapping[str, Any]
    saving: Saving

    def __post_init__(self) -> None:
        self._folder = self.out if self.fabric.is_global_zero else None
        self._saved_at = perf_counter()

    def due(self, step: int) -> bool:
        """Whether it is time to save, on all processes alike."""
        due = self.saving.every is not None and step % self.saving.every == 0
        if self.out is not None and (self.fabric.world_size == 1 or step % _TOGETHER == 0):
            due |= bool(self.fabric.broadcast(perf_counter() - self._saved_at >= self.saving.seconds))
        return due

    def save(
        self, now: TrainState, readings: RunningMetrics, journal: Journal, optimiser: optim.Optimizer | None
    ) -> None:
        """Save the resume state, and a checkpoint where the last weights are selected."""
        randoms = of_all(self.fabric, state.random_state())
        now.waited = largest(self.fabric, now.waited)
        self._saved_at = perf_counter()
        if self._folder is None:
            return
        if not now.best_step:
            self.checkpoint(now.step, {})
        journal.sync()
        contents: dict[str, Any] = {"identity": self.same, "standing": asdict(now), "random": randoms}
        contents |= {"readings": readings.state(), "network": self.backbone.network.state_dict()}
        contents["optimiser"] = None if optimiser is None else optimiser.state_dict()
        state.save(self._folder, contents)

    def checkpoint(self, step: int, measured: Mapping[str, float]) -> None:
        """Write the weights as they are now as the training's checkpoint."""
        if self._folder is None:
            return
        facts = {
            "recipe": asdict(self.recipe),
            "data": {"name": self.data.name, "source": self.data.source, "rows": len(self.data)},
            "step": step,
            # The preparation of every picture.
            "pictures": repr(self.backbone.preparation),
            # A caller's own measure may be undefined, which JSON cannot say.
            "validation": {name: or_none(value) for name, value in measured.items()},
        }
        checkpoint_folder.save(self._folder, self.backbone, facts)


@dataclass(frozen=True)
class Monitors:
    """Measures of a training beside the recipe's objective on its validation rows."""

    #: Measures at each validation; the recipe may select weights by one of them.
    validate: Validate | None = None
    #: A task whose forgetting is measured at each validation and before the first step.
    guard: ForgettingGuard | None = None
    #: Whether the journal begins with the validation of the weights at the start, which selects nothing.
    at_start: bool = False


NO_MONITORS = Monitors()


@dataclass
class Selection:
    """The validations of a training, and the best weights so far.

    The measure of the last stage decides; earlier stages select weights only where they have the same
    measure. Without any validation the last weights are taken, with a `note`.
    """

    stages: Sequence[Recipe]
    checks: Sequence[Validation]
    monitors: Monitors
    saver: Saver
    progress: Progress
    note: Note
    _weights: Mapping[str, Tensor] | None = None
    #: Whether the last value of the guarded task was one to warn of.
    _warned: bool = False

    def __post_init__(self) -> None:
        self._measure = self.stages[-1].select
        if self._measure != "last" and not self.checks and self.monitors.validate is None:
            best = f"those with the best {self._measure}"
            self.note(f"there is nothing to validate on: the last weights are kept, not {best}")
            self._measure = "last"

    def start(self, now: TrainState, *, resumed: bool) -> dict[str, float]:
        """What is measured before the first step; the guarded task is measured once."""
        entry: dict[str, float] = {}
        if self.monitors.at_start and self.checks and not resumed:
            measured = self.checks[0].measure(self.saver.fabric, progress=self.progress)
            entry |= {f"validation_{name}": value for name, value in measured.items()}
        if (guard := self.monitors.guard) is not None and now.held_out is None:
            now.held_out = entry[guard.name] = self._on_first(guard.measure)
        return entry

    def _on_first(self, measure: Callable[[Backbone], Any]) -> Any:
        return on_first(self.saver.fabric, partial(measure, self.saver.backbone))

    def look(self, now: TrainState) -> tuple[dict[str, float], bool]:
        """Validate: the entries of the journal, and whether these weights are the best so far and kept."""
        measured: dict[str, float] = {}
        backbone, guard, start = self.saver.backbone, self.monitors.guard, now.held_out
        if self.checks:
            measured |= self.checks[now.stage].measure(self.saver.fabric, progress=self.progress)
            # Weights may be beyond all numbers though the loss before the step was not: they are not kept.
            if broken := [name for name, value in measured.items() if not math.isfinite(value)]:
                problem = f"step {now.step}: {broken[0]} in validation is {measured[broken[0]]}; "
                problem += "training stops, and what was saved last is kept"
                raise InputError(problem, hint="try a lower lr, or clip_norm")
        if self.monitors.validate is not None:
            with evaluation_mode(backbone):
                monitored = self._on_first(self.monitors.validate)
            measured |= {name: float(value) for name, value in monitored.items()}
        entry = {f"validation_{name}": value for name, value in measured.items()}
        decides = self._measure != "last" and self.stages[now.stage].select == self._measure
        improved = decides and better(measured, self._measure, now.best)
        if improved:
            now.best, now.best_step, now.stale_since = measured[self._measure], now.step, now.step
            states = backbone.network.state_dict()
            self._weights = {name: tensor.detach().cpu().clone() for name, tensor in states.items()}
            self.saver.checkpoint(now.step, measured)
        if guard is not None and start is not None:
            value = entry[guard.name] = self._on_first(guard.measure)
            lost = guard.exceeded(start, value)
            if lost and not self._warned:
                self.note(
                    f"step {now.step}: {guard.name} fell from {start:.3f} to {value:.3f}, by more than "
                    f"{guard.margin:g}; a mixture of the weights with those of the start may keep both"
                )
            self._warned = lost
        return entry, improved

    def stale(self, now: TrainState) -> bool:
        """Whether no validation was better for as many steps as the stage has patience."""
        patience = self.stages[now.stage].patience
        return self._measure != "last" and patience is not None and now.step - now.stale_since >= patience

    def put_back(self, now: TrainState) -> None:
        """Give the network the weights that were best; where no validation decided it keeps the last."""
        if not now.best_step:
            return
        if self._weights is None:
            # They are from before the training was stopped, and lie where they were written.
            assert self.saver.out is not None
            self._weights = checkpoint_folder.read(self.saver.out).network.state_dict()
        self.saver.backbone.network.load_state_dict(self._weights)


#: Steps between two agreements of several processes on whether it is time to save.
_TOGETHER = 25
