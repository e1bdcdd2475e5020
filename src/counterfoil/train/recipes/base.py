"""Fields of every recipe. A field that a paper leaves open has a default, named in `left_open`."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal

from counterfoil.errors import InputError
from counterfoil.inputs.limits import RANGES


@dataclass(frozen=True)
class Recipe:
    """How a model is trained: what all kinds of training share. The kinds are the subclasses.

    `steps`, where given, ends training there, whatever `epochs` says; the schedule runs over what is trained.
    Raises `InputError` for a value outside its range.

    >>> Recipe("mine", batch_size=0)
    Traceback (most recent call last):
    counterfoil.errors.InputError: recipe mine: batch_size is out of range; given: 0; allowed: 1 to 1,000,000
    """

    #: In a line: what is learnt from what.
    about: ClassVar[str] = ""
    #: Where the values are from.
    source: ClassVar[str] = ""
    #: What the source does not say, or says twice, and what the default is: one line each.
    left_open: ClassVar[tuple[str, ...]] = ()
    #: The "module:function" that makes its `Objective` (`counterfoil.train.objectives`) of the recipe.
    objective: ClassVar[str] = ""
    #: Rows that a batch needs for there to be anything to choose among.
    smallest_batch: ClassVar[int] = 1
    #: The columns of the training data, besides image and caption.
    needs: ClassVar[tuple[str, ...]] = ()

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
    #: After the warm-up: down a cosine at every step, or once an epoch, or not at all.
    schedule: Literal["cosine", "cosine-epochs", "constant"] = "cosine"
    #: Steps over which the learning rate rises linearly.
    warmup: int = 50
    #: Largest norm of the gradient; None clips nothing.
    clip_norm: float | None = None
    #: Batches that make one step, as one large batch of so many times the rows: each is held in memory alone,
    #: and every negative counts for all of them (GradCache: Gao et al. 2021). Takes about 4/3 of the time.
    accumulate: int = 1
    #: Which parameters are trained: all, the last linear map of each tower, or what stands on top of them.
    trains: Literal["all", "projections", "heads"] = "all"
    #: Whether the temperature is learnt with them.
    temperature: Literal["trained", "fixed"] = "trained"
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
    #: "none" is the model's own evaluation transform, as BiVLC trains.
    augment: Literal["none", "crop-flip"] = "none"
    #: How probably a patch of each picture is erased (random erasing), and each word of a caption left out.
    #: Both are drawn anew in each epoch; negatives are treated alike.
    erasing: float = 0.0
    word_drop: float = 0.0
    #: What happens when a picture cannot be read or is not there: stop, or go on without its rows and say so.
    unreadable: Literal["stop", "skip"] = "stop"
    seed: int = 0
    #: One after the other, each from where the last ended: what differs in it from the above. Empty is one.
    stages: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        for parameter in fields(self):
            check_range(parameter.name, getattr(self, parameter.name), where=f"recipe {self.name}")
        if self.batch_size * self.accumulate < self.smallest_batch:
            raise InputError(
                "nothing to choose among in such a batch: its loss is 0 whatever the network does",
                where=f"recipe {self.name}, batch_size",
                given=self.batch_size * self.accumulate,
                allowed=f"{self.smallest_batch} or more",
            )

    def staged(self) -> "tuple[Recipe, ...]":
        """The recipe of each stage, in order; just this one where there are none.

        >>> [stage.trains for stage in Recipe("mine", stages=({"trains": "heads"}, {})).staged()]
        ['heads', 'all']
        """
        if not self.stages:
            return (self,)
        return tuple(replace(self, stages=(), **stage) for stage in self.stages)


def _at_least(low: float) -> tuple[str, Any]:
    return f"{low:g} or more", lambda value: value >= low


def _among(name: str) -> tuple[str, Any]:
    low, high = RANGES[name]
    return f"{low:,} to {high:,}", lambda value: low <= value <= high


_POSITIVE = ("more than 0", lambda value: value > 0)

#: What values a field may have, in words and as a test; None passes where a field may be None.
_RANGES: Mapping[str, tuple[str, Any]] = {
    **dict.fromkeys(
        ("epochs", "steps", "accumulate", "validate_every", "patience", "image_epochs"), _among("steps")
    ),
    **dict.fromkeys(("batch_size", "samples"), _among("batch_size")),
    "heads": _among("heads"),
    "seed": _among("seed"),
    **dict.fromkeys(("warmup", "weight_decay", "margin"), _at_least(0)),
    **dict.fromkeys(("lambda_v", "lambda_t", "diversity", "mmd", "vib_beta"), _at_least(0)),
    **dict.fromkeys(("lr", "eps", "clip_norm"), _POSITIVE),
    **dict.fromkeys(("erasing", "word_drop"), ("0 to 1", lambda value: 0 <= value <= 1)),
    "max_logit_scale": _at_least(1),
    "betas": ("two numbers, each 0 or more and below 1", lambda pair: all(0 <= beta < 1 for beta in pair)),
}


def check_range(name: str, value: Any, *, where: object) -> None:
    """Raise `InputError` where a field's value is outside its range (or not a number at all)."""
    if value is None or name not in _RANGES:
        return
    words, inside = _RANGES[name]
    numbers = value if isinstance(value, tuple) else (value,)
    # Infinity is no learning rate, and a NaN is not caught by any comparison that it should fail.
    if not inside(value) or any(number - number != 0 for number in numbers):
        raise InputError(f"{name} is out of range", where=where, given=value, allowed=words)
