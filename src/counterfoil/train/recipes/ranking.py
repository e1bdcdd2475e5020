"""Recipes of retrieval models as ECCV Caption trains them again: triplets, several vectors, and
distributions.

All three follow ECCV Caption Appendix D.2, which follows PCME's released code: AdamP, a cosine over epochs,
first what was added with the backbone frozen, then everything with a tenth of the learning rate.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from counterfoil.train.recipes.base import Recipe

_SOURCE = "the ECCV Caption paper, Appendix D.2; what it leaves out as in PCME's released code"
_OPEN = (
    "stages: 30 epochs with the backbone frozen at 2e-4, then 30 of everything at 2e-5 (stages)",
    "weight decay: none; gradients are clipped at a norm of 2; batches of 128",
    "the losses of a batch are added up, not averaged (reduction)",
    "augmentation: random crops and flips (augment)",
    "selection: the sum of R@1, R@5 and R@10 of both directions after each epoch (select)",
)
_NOT_DROPPED = "no random erasing, no dropped words: those are PCME's (erasing, word_drop)"


@dataclass(frozen=True)
class Retrieval(Recipe):
    """What VSE, PVSE and PCME share."""

    source: ClassVar[str] = _SOURCE

    name: str = "retrieval"
    batch_size: int = 128
    epochs: int = 30
    optimiser: Literal["adamw", "adam", "adamp"] = "adamp"
    lr: float = 2e-4
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    schedule: Literal["cosine", "cosine-epochs", "constant"] = "cosine-epochs"
    warmup: int = 0
    clip_norm: float | None = 2.0
    #: No loss here has a temperature.
    temperature: Literal["trained", "fixed"] = "fixed"
    select: str = "rsum"
    augment: Literal["none", "crop-flip"] = "crop-flip"
    #: Whether a batch's losses are added up, as in the released code (what clips a gradient depends on it).
    reduction: Literal["sum", "mean"] = "sum"
    #: The first stage's last weights are where the second starts, as in PCME's code.
    stages: tuple[Mapping[str, Any], ...] = (
        {"trains": "heads", "lr": 2e-4, "select": "last"},
        {"trains": "all", "lr": 2e-5},
    )


@dataclass(frozen=True)
class Triplet(Retrieval):
    """A hinge on similarities, added up over all negatives of the batch (VSE0)."""

    objective: ClassVar[str] = "counterfoil.train.objectives:triplet"
    about: ClassVar[str] = "a hinge on cosines, summed over the batch's negatives (VSE0)"
    smallest_batch: ClassVar[int] = 2
    left_open: ClassVar[tuple[str, ...]] = (
        "margin: 0.2, as in VSE++ (margin)",
        _NOT_DROPPED,
        "the first stage trains the last linear map of each tower, as VSE adds nothing else",
        *_OPEN,
    )

    name: str = "vse0"
    margin: float = 0.2
    #: Which wrong pairs count: all; of each row the hardest of those less similar than the right pair; or the
    #: hardest (`train.losses`).
    mining: Literal["sum", "semi-hard", "hardest"] = "sum"
    stages: tuple[Mapping[str, Any], ...] = (
        {"trains": "projections", "lr": 2e-4, "select": "last"},
        {"trains": "all", "lr": 2e-5},
    )


@dataclass(frozen=True)
class HardestTriplet(Triplet):
    """The same with the hardest negative of each row alone (VSE++)."""

    about: ClassVar[str] = "a hinge on cosines, of the hardest negative in the batch (VSE++)"

    name: str = "vse++"
    mining: Literal["sum", "semi-hard", "hardest"] = "hardest"


@dataclass(frozen=True)
class Polysemous(Triplet):
    """PVSE: several vectors per item, the best pair of which is compared."""

    objective: ClassVar[str] = "counterfoil.train.objectives:polysemous"
    about: ClassVar[str] = "several vectors per item, the hinge on the best of them (PVSE)"
    left_open: ClassVar[tuple[str, ...]] = (
        "heads, margin, mining, weights of diversity and MMD: the command its authors published "
        "(heads, margin, mining, diversity, mmd); MMD's kernel: its paper's (kernel)",
        _NOT_DROPPED,
        *_OPEN,
    )

    name: str = "pvse"
    margin: float = 0.1
    mining: Literal["sum", "semi-hard", "hardest"] = "hardest"
    #: Vectors per item, where the model has no heads yet.
    heads: int = 2
    #: Weight of what keeps the heads of one item apart.
    diversity: float = 0.1
    #: Weight of what keeps images and captions in one region.
    mmd: float = 0.01
    #: MMD's kernel, exp(-d^2 / 2) as in PVSE's paper, or exp(-d / 2) as in its code.
    kernel: Literal["gaussian", "distance"] = "gaussian"
    stages: tuple[Mapping[str, Any], ...] = Retrieval.stages


@dataclass(frozen=True)
class Probabilistic(Retrieval):
    """PCME: an item is a Gaussian, a pair a matching probability."""

    objective: ClassVar[str] = "counterfoil.train.objectives:probabilistic"
    about: ClassVar[str] = "a mean and a variance per item, a matching probability per pair (PCME)"
    left_open: ClassVar[tuple[str, ...]] = (
        "scale and shift of the probability start at 15 and are trained; they are clipped with the rest",
        "standard deviations start around exp(-4), in the released code around 1 (log_sigma)",
        "the KL term is that of the code: the mean of the samples as mean (vib_beta, information)",
        "a patch of every fifth picture is erased, in the mean colour (erasing)",
        "a tenth of the words is left out; the code puts an unknown word for as many besides, which the "
        "vocabularies here do not have (word_drop)",
        *_OPEN,
    )

    name: str = "pcme"
    erasing: float = 0.2
    word_drop: float = 0.1
    #: Samples per item.
    samples: int = 7
    #: Logarithm of the standard deviation around which items start, where the model has no heads yet.
    log_sigma: float = -4.0
    #: Weight of the KL divergence from the unit Gaussian.
    vib_beta: float = 1e-5
    #: That divergence, or what the released code has for it.
    information: Literal["released", "exact"] = "released"
