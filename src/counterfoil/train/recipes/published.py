"""Recipes of the papers: contrastive training, retrieval models, and detectors.

Retrieval models follow ECCV Caption Appendix D.2, which follows PCME's released code: AdamP, a cosine over
epochs, first what was added with the backbone frozen, then everything with a tenth of the learning rate.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from counterfoil.errors import InputError
from counterfoil.inputs.fields import setting
from counterfoil.inputs.limits import most
from counterfoil.train.recipes.base import Recipe

_BIVLC_OPEN = (
    "transform: the model's own evaluation transform, no augmentation (augment)",
    "pictures for models of transformers: resized by Pillow where that is within a grey level of the model's "
    "processor, which hf:NAME scores with; the checkpoint's own scores use the same pictures as its training",
    "temperature: trained like the rest, and not clamped (temperature, max_logit_scale)",
    "weight decay: on matrices only (decay); gradients are not clipped (clip_norm)",
    "validation accuracy: within a batch, mean of both directions, strictly greater is better (select)",
    "an image that comes twice in a batch is not masked",
)


@dataclass(frozen=True)
class Coco(Recipe):
    """InfoNCE on images and captions that belong together, as CLIP_COCO of BiVLC."""

    objective: ClassVar[str] = "counterfoil.train.objectives:contrastive"
    about: ClassVar[str] = "pairs only: InfoNCE on images and their captions"
    smallest_batch: ClassVar[int] = 2
    source: ClassVar[str] = "the BiVLC paper, Appendix E.3, and its released code for what that leaves out"
    left_open: ClassVar[tuple[str, ...]] = _BIVLC_OPEN

    name: str = "coco"


@dataclass(frozen=True)
class NegativeTexts(Coco):
    """InfoNCE with one hard negative caption per pair, as CLIP_TROHN-Text of BiVLC."""

    about: ClassVar[str] = "hard negative texts: images choose among 2B captions, captions among B images"
    needs: ClassVar[tuple[str, ...]] = ("negative_caption",)

    name: str = "trohn-text"
    batch_size: int = 200


@dataclass(frozen=True)
class NegClip(NegativeTexts):
    """The same loss with the values of NegCLIP."""

    about: ClassVar[str] = "hard negative texts, with the values of NegCLIP"
    source: ClassVar[str] = "Yuksekgonul et al. 2023 and the command its authors published"
    left_open: ClassVar[tuple[str, ...]] = (
        "betas, eps, weight decay: open_clip's for ViT, which BiVLC has too",
        "temperature: clamped at 100, as in open_clip's training (max_logit_scale)",
        "not done: further rows with the nearest images; put such rows next to each other in the data",
        "selection: by validation accuracy, as BiVLC (select); NegCLIP's authors do not say",
        "one negative caption per row, where NegCLIP draws one of several per epoch",
    )

    name: str = "negclip"
    batch_size: int = 256
    epochs: int = 5
    max_logit_scale: float | None = 100.0


@dataclass(frozen=True)
class NegativePairs(Coco):
    """InfoNCE over positive and negative pairs alike, 2B x 2B, as CLIP_TROHN-Img of BiVLC."""

    about: ClassVar[str] = "hard negative texts and images: InfoNCE over 2B pairs"
    smallest_batch: ClassVar[int] = 1
    needs: ClassVar[tuple[str, ...]] = ("negative_caption", "negative_image")

    name: str = "trohn-img"
    batch_size: int = 200


@dataclass(frozen=True)
class PositiveAugmented(Recipe):
    """Contrast with generated images and captions as further positives (PAC-S section 4.1, eq. 2-4)."""

    objective: ClassVar[str] = "counterfoil.train.objectives:positive_augmented"
    about: ClassVar[str] = "generated images and captions as further positives; final projections only"
    smallest_batch: ClassVar[int] = 2
    source: ClassVar[str] = "the PAC-S paper, section 4.1 and equations 2 to 4"
    left_open: ClassVar[tuple[str, ...]] = (
        "temperature: fixed, as only the projections are named (temperature)",
        "betas, eps, weight decay: PyTorch's defaults for AdamW (betas, eps, weight_decay)",
        "schedule: constant, no warm-up (schedule, warmup)",
        "validation: every 100 steps, on the loss (validate_every); at most 100 epochs (epochs)",
        "each term: the sum of both directions, as equations 2 and 3, or their mean (directions)",
        "one caption per row, as the data have it; no augmentation (augment)",
    )
    needs: ClassVar[tuple[str, ...]] = ("generated_image", "generated_caption")

    name: str = "pac"
    batch_size: int = 256
    epochs: int = 100
    lr: float = 1e-4
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01
    schedule: Literal["cosine", "cosine-epochs", "constant"] = "constant"
    warmup: int = 0
    trains: Literal["all", "projections", "heads"] = "projections"
    temperature: Literal["trained", "fixed"] = "fixed"
    select: str = "loss"
    validate_every: int | None = 100
    patience: int | None = 1500
    lambda_v: float = setting(0.05, "Weight of generated images against captions.", low=0)
    lambda_t: float = setting(0.1, "Weight of images against generated captions.", low=0)
    #: Whether the two directions of a term are added or averaged.
    directions: Literal["sum", "mean"] = "sum"


@dataclass(frozen=True)
class Detection(Recipe):
    """A sigmoid unit per modality on frozen encoders, natural (0) or synthetic (1). BiVLC section 5.3."""

    about: ClassVar[str] = "natural against synthetic: one sigmoid unit per modality on frozen encoders"
    source: ClassVar[str] = "the BiVLC paper, section 5.3 and Appendix E.3"
    left_open: ClassVar[tuple[str, ...]] = (
        "learning rate: the paper's 1e-6; the code that made its numbers has 1e-3 (lr)",
        "what the unit sees: the projected embedding, not normalised, as in the code",
        "a batch is 400 rows: 400 natural and 400 synthetic items",
    )
    needs: ClassVar[tuple[str, ...]] = ("negative_caption", "negative_image")

    name: str = "detector"
    optimiser: Literal["adamw", "adam", "adamp"] = "adam"
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    schedule: Literal["cosine", "cosine-epochs", "constant"] = "constant"
    warmup: int = 0
    trains: Literal["all", "projections", "heads"] = "heads"
    temperature: Literal["trained", "fixed"] = "fixed"
    image_epochs: int = setting(
        1, "Epochs of the detector of images; 'epochs' is that of captions.", low=1, high=most("steps")
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, usual in (("augment", "none"), ("erasing", 0), ("word_drop", 0), ("accumulate", 1)):
            if getattr(self, name) != usual:
                problem = "a detector learns from what its frozen encoder says of each item once"
                place = f"recipe {self.name}, {name}"
                raise InputError(problem, where=place, given=getattr(self, name), allowed=str(usual))


_SOURCE = "the ECCV Caption paper, Appendix D.2, and PCME's released code for what that leaves out"
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
    margin: float = setting(0.2, "By how much a wrong pair is to be less similar.", low=0)
    #: Which wrong pairs count (`train.losses`).
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
class WarmHardestTriplet(HardestTriplet):
    """The same for networks from scratch, which begin with the sum over all negatives.

    Of a random network the hardest negatives alone draw all points into one place, which no gradient leaves.
    """

    about: ClassVar[str] = "VSE++ from scratch: all negatives for some steps, then the hardest alone"
    source: ClassVar[str] = "Faghri et al. 2018, and the code its authors published"
    left_open: ClassVar[tuple[str, ...]] = (
        "first 500 steps with all negatives of the batch, then 30 epochs with the hardest (stages); VSE++'s "
        "pictures come from a trained network, so that it needs no such steps",
        "a cosine over epochs in place of a tenth of the rate after 15 (schedule)",
        "no augmentation: regions cannot be cropped, and captions may speak of left and right (augment)",
        "the losses of a batch are averaged, so that the two stages are alike in size (reduction)",
    )

    name: str = "vse++-warm"
    optimiser: Literal["adamw", "adam", "adamp"] = "adam"
    augment: Literal["none", "crop-flip"] = "none"
    reduction: Literal["sum", "mean"] = "mean"
    stages: tuple[Mapping[str, Any], ...] = (
        {"mining": "sum", "steps": 500, "schedule": "constant", "select": "last"},
        {},
    )


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
    heads: int = setting(2, "Vectors per item, where the model has no heads yet.", low=1, high=most("heads"))
    diversity: float = setting(0.1, "Weight of what keeps the heads of one item apart.", low=0)
    mmd: float = setting(0.01, "Weight of what keeps images and captions in one region.", low=0)
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
    samples: int = setting(7, "Samples per item.", low=1, high=most("batch_size"))
    #: Logarithm of the standard deviation around which items start, where the model has no heads yet.
    log_sigma: float = -4.0
    vib_beta: float = setting(1e-5, "Weight of the KL divergence from the unit Gaussian.", low=0)
    #: That divergence, or what the released code has for it.
    information: Literal["released", "exact"] = "released"


#: Those that are known by their names.
SHIPPED: tuple[Recipe, ...] = (
    *(Coco(), NegClip(), NegativeTexts(), NegativePairs(), PositiveAugmented()),
    *(Triplet(), HardestTriplet(), WarmHardestTriplet(), Polysemous(), Probabilistic(), Detection()),
)
