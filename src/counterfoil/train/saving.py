"""Files of a training in progress: checkpoints and the resume state."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from lightning_fabric import Fabric
from torch import Tensor, optim

from counterfoil.data.training import TrainingSet
from counterfoil.evaluation.result import or_none
from counterfoil.scorers import checkpoint as checkpoint_folder
from counterfoil.scorers.networks import Backbone
from counterfoil.train import state
from counterfoil.train.devices import of_all
from counterfoil.train.journal import Journal
from counterfoil.train.recipes import Recipe
from counterfoil.train.running_metrics import RunningMetrics
from counterfoil.train.state import TrainState

#: Steps between two agreements of several processes on whether it is time to save.
_TOGETHER = 25


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
    #: Whether the journal is also written for TensorBoard.
    tensorboard: bool = False


DEFAULT_SAVING = Saving()


class Saver:
    """The folder `out` of a training, if it has one; of several processes the first one writes.

    `same` is the training's identity (`state.identity`).
    """

    def __init__(
        self,
        out: Path | None,
        *,
        fabric: Fabric,
        backbone: Backbone,
        recipe: Recipe,
        data: TrainingSet,
        same: Mapping[str, Any],
        saving: Saving,
    ) -> None:
        self._out, self._fabric, self._same = out, fabric, same
        self._folder = out if fabric.is_global_zero else None
        self._backbone, self._recipe, self._data = backbone, recipe, data
        self._every, self._seconds = saving.every, saving.seconds
        self._saved_at = perf_counter()

    def due(self, step: int) -> bool:
        """Whether it is time to save, on all processes alike."""
        due = self._every is not None and step % self._every == 0
        if self._out is not None and (self._fabric.world_size == 1 or step % _TOGETHER == 0):
            due |= bool(self._fabric.broadcast(perf_counter() - self._saved_at >= self._seconds))
        return due

    def save(
        self, now: TrainState, readings: RunningMetrics, journal: Journal, optimiser: optim.Optimizer | None
    ) -> None:
        """Save the resume state, and a checkpoint where the last weights are selected.

        Between two stages there is no optimiser. Raises `StorageError` where the disk is full, leaving what
        was there before.
        """
        readings.settle()
        randoms = of_all(self._fabric, state.random_state())
        self._saved_at = perf_counter()
        if self._folder is None:
            return
        if not now.best_step:
            self.checkpoint(now.step, {})
        journal.sync()
        kept: dict[str, Any] = {"identity": self._same, "standing": asdict(now), "random": randoms}
        kept |= {"readings": readings.state(), "network": self._backbone.network.state_dict()}
        kept |= {"optimiser": None if optimiser is None else optimiser.state_dict()}
        state.save(self._folder, kept)

    def checkpoint(self, step: int, measured: Mapping[str, float]) -> None:
        """Write the weights as they are now as the training's checkpoint; raises as `save`."""
        if self._folder is None:
            return
        facts = {
            "recipe": asdict(self._recipe),
            "data": {"name": self._data.name, "source": self._data.source, "rows": len(self._data)},
            "step": step,
            # The preparation of every picture.
            "pictures": repr(self._backbone.preparation),
            # A caller's own measure may be undefined, which JSON cannot say.
            "validation": {name: or_none(value) for name, value in measured.items()},
        }
        checkpoint_folder.save(self._folder, self._backbone, facts)

    def checkpointed(self) -> Mapping[str, Tensor]:
        """The weights of the checkpoint in the folder."""
        assert self._out is not None
        return checkpoint_folder.read(self._out).network.state_dict()
