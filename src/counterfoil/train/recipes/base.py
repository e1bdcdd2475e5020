"""Fields of every recipe. A field that a paper leaves open has a default, named in `left_open`."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from counterfoil.errors import InputError
from counterfoil.inputs.fields import check_fields, setting
from counterfoil.inputs.limits import most


@dataclass(frozen=True)
class Recipe:
    """How a model is trained: what all kinds of training share. The kinds are the subclasses.

    `steps`, where given, ends training there, whatever `epochs` says; the schedule runs over what is trained.
    Raises `InputError` for a value outside its range.

    >>> Recipe("mine", batch_size=0)
    Traceback (most recent call last):
    counterfoil.errors.InputError: recipe mine, batch_size: out of range; given: 0; allowed: 1 to 1,000,000
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
    batch_size: int = setting(
        400, "Rows per step over all devices, hard negatives not counted.", low=1, high=most("batch_size")
    )
    epochs: int = setting(10, "Passes over the data.", low=1, high=most("steps"))
    steps: int | None = setting(None, "Number of steps.", low=1, high=most("steps"))
    optimiser: Literal["adamw", "adam", "adamp"] = "adamw"
    lr: float = setting(1e-6, "Highest learning rate.", above=0, high=1e30)
    betas: tuple[float, float] = setting((0.9, 0.98), "Of the optimiser's moments.", low=0, below=1)
    eps: float = setting(1e-6, "What the optimiser adds to what it divides by.", above=0)
    weight_decay: float = setting(0.1, "Weight decay, decoupled from the gradient.", low=0)
    #: What weight decay is for: matrices (no biases, norms, temperatures), or all that is trained.
    decay: Literal["matrices", "all"] = "matrices"
    #: After the warm-up: down a cosine at every step, or once an epoch, or not at all.
    schedule: Literal["cosine", "cosine-epochs", "constant"] = "cosine"
    warmup: int = setting(50, "Steps over which the learning rate rises linearly.", low=0)
    clip_norm: float | None = setting(None, "Largest norm of the gradient; None clips nothing.", above=0)
    #: Each is held in memory alone, and every negative counts for all of them (GradCache: Gao et al. 2021).
    accumulate: int = setting(1, "Batches that make one step.", low=1, high=most("steps"))
    #: Which parameters are trained: all, the last linear map of each tower, or what stands on top of them.
    trains: Literal["all", "projections", "heads"] = "all"
    #: Whether the temperature is learnt with them.
    temperature: Literal["trained", "fixed"] = "trained"
    max_logit_scale: float | None = setting(None, "Largest inverse temperature; None clamps nothing.", low=1)
    #: What decides which step's weights are kept: a measure of validation, "loss" (less is better) or "last".
    select: str = "accuracy"
    validate_every: int | None = setting(
        None, "Steps between validations; None validates after each epoch.", low=1, high=most("steps")
    )
    patience: int | None = setting(
        None,
        "Steps without a better validation after which training stops; None never stops early.",
        low=1,
        high=most("steps"),
    )
    precision: Literal["fp32", "bf16"] = setting("fp32", "Precision of activations; weights stay fp32.")
    #: "none" is the model's own evaluation transform, as BiVLC trains.
    augment: Literal["none", "crop-flip"] = "none"
    # Both are drawn anew in each epoch; negatives are treated alike.
    erasing: float = setting(0.0, "How probably a patch of each picture is erased.", low=0, high=1)
    word_drop: float = setting(0.0, "How probably each word of a caption is left out.", low=0, high=1)
    #: What happens when a picture cannot be read or is not there: stop, or go on without its rows and say so.
    unreadable: Literal["stop", "skip"] = "stop"
    seed: int = setting(0, "Random seed.", low=0, high=most("seed"))
    #: One after the other, each from where the last ended: what differs in it from the above. Empty is one.
    stages: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        check_fields(self, where=f"recipe {self.name}")
        if self.batch_size * self.accumulate < self.smallest_batch:
            problem = "nothing to choose among in such a batch: its loss is 0 whatever the network does"
            place, given = f"recipe {self.name}, batch_size", self.batch_size * self.accumulate
            raise InputError(problem, where=place, given=given, allowed=f"{self.smallest_batch} or more")

    def staged(self) -> "tuple[Recipe, ...]":
        """The recipe of each stage, in order; just this one where there are none.

        >>> [stage.trains for stage in Recipe("mine", stages=({"trains": "heads"}, {})).staged()]
        ['heads', 'all']
        """
        if not self.stages:
            return (self,)
        return tuple(replace(self, stages=(), **stage) for stage in self.stages)
