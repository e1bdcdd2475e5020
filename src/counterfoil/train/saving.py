"""Files of a training in progress: checkpoints and the resume state."""

from collections.abc import Mapping
from dataclasses import asdict
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

#: Steps between two questions, among several processes, whether it is time to save.
_TOGETHER = 25


class Saver:
    """The folder `out` of a training, if it has one, as one of its processes sees it: the first one writes.

    It is time to save every `every` steps (None for never) and every `seconds` seconds, from now on. `same`
    is the training's identity (`resuming.identity`).
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
        every: int | None,
        seconds: float,
    ) -> None:
        self._out, self._fabric, self._same = out, fabric, same
        self._folder = out if fabric.is_global_zero else None
        self._backbone, self._recipe, self._data = backbone, recipe, data
        self._every, self._seconds = every, seconds
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
        """Write down all that it takes to go on from here; where the last weights count, those too.

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
            # What was made of every picture before the network saw it.
            "pictures": repr(self._backbone.preparation),
            # A caller's own measure may be undefined, which JSON cannot say.
            "validation": {name: or_none(value) for name, value in measured.items()},
        }
        checkpoint_folder.save(self._folder, self._backbone, facts)

    def checkpointed(self) -> Mapping[str, Tensor]:
        """The weights of the checkpoint in the folder."""
        assert self._out is not None
        return checkpoint_folder.read(self._out).network.state_dict()
