"""A training recipe with its loss: a logistic loss for every pair of the batch (SigLIP, Zhai et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from counterfoil.train.recipes import Recipe

if TYPE_CHECKING:
    from counterfoil.train.objectives import Objective


@dataclass(frozen=True)
class Sigmoid(Recipe):
    """Every pair of the batch is a binary question of its own."""

    objective: ClassVar[str] = "counterfoil_example.sigmoid:objective"
    about: ClassVar[str] = "a logistic loss per pair (SigLIP)"
    source: ClassVar[str] = "Zhai et al. 2023, section 3.2"
    smallest_batch: ClassVar[int] = 2

    name: str = "sigmoid"
    #: What is added to every logit; the paper starts at -10, for batches of thousands.
    bias: float = -2.0


def objective(recipe: Sigmoid) -> Objective:
    """The loss; torch is imported here, so that recipes can be listed without it."""
    import torch

    from counterfoil.train.losses import similarity
    from counterfoil.train.objectives import Objective

    def loss(sides):
        (images,), (texts,) = sides.points()
        logits = sides.scale * similarity(images, texts) + recipe.bias
        right = 2 * torch.eye(len(logits), device=logits.device) - 1
        return -torch.nn.functional.logsigmoid(right * logits).sum() / len(logits), {}

    return Objective(images=("image",), texts=("caption",), loss=loss)


RECIPE = Sigmoid()
