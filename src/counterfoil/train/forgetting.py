"""Forgetting: a held-out task measured during training, and interpolation of weights."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from counterfoil.data.benchmark import Benchmark
from counterfoil.engine.plan import Note
from counterfoil.errors import InputError, ModelError
from counterfoil.scorers.networks import Backbone
from counterfoil.train.validation import accuracy

#: What a model does on a task: a number, higher is better.
Task = Callable[[Backbone], float]


@dataclass(frozen=True)
class ForgettingGuard:
    """A task that training is not about, and how much may be lost on it.

    `task` is a function of the backbone, or a benchmark, of which the accuracy is taken (group of quads,
    accuracy of choices, the mean first measure of a gallery). A warning is given when it has fallen by more
    than `margin` since the start. It is looked at whenever the training is validated.
    """

    task: Task | Benchmark
    margin: float = 0.02
    name: str = "held_out"

    def measure(self, backbone: Backbone) -> float:
        """The value of the task now."""
        if isinstance(self.task, Benchmark):
            return accuracy(backbone, self.task)
        return float(self.task(backbone))


@dataclass
class Watch:
    """A guard during one training: the value at the start, the last one, and whether it said something."""

    guard: ForgettingGuard
    start: float
    last: float = field(default=float("nan"))
    warned: bool = False

    def see(self, value: float, step: int, note: Note) -> None:
        """Take in a value; warns once each time that the loss comes to exceed the margin."""
        # A tenth of a millionth for the rounding of a difference; a NaN is a loss, too.
        lost = not value >= self.start - self.guard.margin - 1e-7
        if lost and not self.warned:
            note(
                f"step {step}: {self.guard.name} fell from {self.start:.3f} to {value:.3f}, by more than "
                f"{self.guard.margin:g}; a mixture of the weights with those of the start may keep both"
            )
        self.last, self.warned = value, lost


def interpolate(start: Mapping[str, Tensor], tuned: Mapping[str, Tensor], alpha: float) -> dict[str, Tensor]:
    """Weights between two states of one network: (1 - alpha) start + alpha tuned, name by name.

    `alpha` in [0, 1]; 0 and 1 give the ends to the last bit. Whole numbers (counters, positions) are those
    of the nearer end, of `tuned` in the middle. Source: Wortsman et al., Robust fine-tuning of zero-shot
    models (WiSE-FT), 2022. Raises `InputError` for another `alpha` and `ModelError` where the states are
    not of one network.

    >>> interpolate({"w": torch.zeros(2)}, {"w": torch.ones(2)}, 0.25)
    {'w': tensor([0.2500, 0.2500])}
    """
    if not 0 <= alpha <= 1:
        raise InputError("a mixture of weights", given=f"alpha {alpha}", allowed="0 (start) to 1 (tuned)")
    shapes = [{name: tuple(tensor.shape) for name, tensor in state.items()} for state in (start, tuned)]
    if shapes[0] != shapes[1]:
        names = [name for name in {**shapes[0], **shapes[1]} if shapes[0].get(name) != shapes[1].get(name)]
        raise ModelError(
            "weights of two different networks do not mix",
            given="{} is {} in the one, {} in the other".format(
                names[0], *(_said(each, names[0]) for each in shapes)
            ),
        )
    return {name: _between(start[name], tuned[name], alpha) for name in tuned}


def _said(shapes: Mapping[str, tuple[int, ...]], name: str) -> str:
    return "not there" if name not in shapes else "x".join(map(str, shapes[name])) or "a number"


def _between(start: Tensor, tuned: Tensor, alpha: float) -> Tensor:
    tuned = tuned.detach()
    start = start.detach().to(tuned.device)
    if alpha in (0, 1) or not tuned.is_floating_point():
        return (tuned if alpha >= 0.5 else start).clone()
    return torch.lerp(start, tuned, alpha)


class Mixture(NamedTuple):
    """What a mixture of weights does on both tasks: what each was found to be, a number or an estimate."""

    alpha: float
    task: Any
    held_out: Any


def sweep(
    backbone: Backbone,
    start: Mapping[str, Tensor],
    tuned: Mapping[str, Tensor],
    *,
    task: Callable[[Backbone], Any],
    held_out: Callable[[Backbone], Any],
    alphas: Sequence[float] = tuple(np.linspace(0, 1, 11).round(2).tolist()),
) -> tuple[Mixture, ...]:
    """Both tasks at each mixture of the weights, in the order of `alphas`.

    The network is left as it was, whatever happens on the way; `start` and `tuned` may be its own state.
    """
    # A state is of the network's own tensors, which every mixture is loaded into.
    before, start, tuned = (
        {name: tensor.detach().clone() for name, tensor in state.items()}
        for state in (backbone.network.state_dict(), start, tuned)
    )
    try:
        found = []
        for alpha in alphas:
            backbone.network.load_state_dict(interpolate(start, tuned, alpha))
            found.append(Mixture(alpha, task(backbone), held_out(backbone)))
        return tuple(found)
    finally:
        backbone.network.load_state_dict(before)
