"""The recipe of BiVLC's detectors: is this item natural or synthetic?"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from counterfoil.errors import InputError
from counterfoil.train.recipes.base import Recipe


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
    #: Epochs of the detector of images; `epochs` is that of captions.
    image_epochs: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, usual in (("augment", "none"), ("erasing", 0), ("word_drop", 0), ("accumulate", 1)):
            if getattr(self, name) != usual:
                raise InputError(
                    "a detector learns from what its frozen encoder says of each item once",
                    where=f"recipe {self.name}, {name}",
                    given=getattr(self, name),
                    allowed=str(usual),
                )
