"""Recipes: how a model is trained, as values. A field that a paper leaves open has a default that says so."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Recipe:
    """What every recipe says.

    `steps`, where given, ends training there, whatever `epochs` says; the schedule runs over what is trained.
    """

    name: str
    #: Rows per step, over all devices; hard negatives come on top.
    batch_size: int = 400
    epochs: int = 10
    steps: int | None = None
    optimiser: Literal["adamw", "adam", "adamp"] = "adamw"
    lr: float = 1e-6
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-6
    weight_decay: float = 0.1
    #: What weight decay is for: matrices (no biases, norms, temperatures), or all that is trained.
    decay: Literal["matrices", "all"] = "matrices"
    schedule: Literal["cosine", "constant"] = "cosine"
    #: Steps over which the learning rate rises linearly.
    warmup: int = 50
    #: Largest norm of the gradient; None clips nothing.
    clip_norm: float | None = None
    #: Batches whose gradients are added up before a step of the optimiser.
    accumulate: int = 1
    #: Which parameters are trained: all, the last linear map of each tower, or what stands on top of them.
    trains: Literal["all", "projections", "heads"] = "all"
    #: Largest inverse temperature; None clamps nothing.
    max_logit_scale: float | None = None
    #: What decides which step's weights are kept: a measure of validation (higher is better), "loss" (lower
    #: is better), or "last".
    select: str = "accuracy"
    #: Steps between validations; None validates after each epoch.
    validate_every: int | None = None
    #: Steps without a better validation after which training stops; None never stops early.
    patience: int | None = None
    precision: Literal["fp32", "bf16"] = "fp32"
    #: "none" is the model's own evaluation transform, as P000 trains.
    augment: Literal["none", "crop-flip"] = "none"
    #: What happens when a picture cannot be read: stop, or go on without its rows and say so.
    unreadable: Literal["stop", "skip"] = "stop"
    seed: int = 0
