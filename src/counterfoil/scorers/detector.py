"""Detectors: frozen towers and one sigmoid unit per modality that says whether an item is synthetic.

BiVLC section 5.3 and Appendix E.3; as in the released code the unit sees the projected embedding, which is
not normalised.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import PIL.Image
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from counterfoil.data.records import Caption, Image
from counterfoil.errors import InputError
from counterfoil.scorers.base import Ability, Identity, text_of
from counterfoil.scorers.dual import Towers
from counterfoil.scorers.images import Preparation, prepared
from counterfoil.scorers.networks import Backbone, Encoded, Network


class DetectorNetwork(Network):
    """A unit per modality on top of a network that stays as it is, whatever mode this one is put into.

    Its points are (batch, 1): the logit of being synthetic.
    """

    def __init__(self, inner: Network, width: int) -> None:
        super().__init__()
        self.inner = inner.requires_grad_(False).eval()
        self.image_unit, self.text_unit = nn.Linear(width, 1), nn.Linear(width, 1)

    @property
    def logit_scale(self) -> nn.Parameter:
        """The temperature of the network below; no detector depends on it."""
        return self.inner.logit_scale

    def train(self, mode: bool = True) -> "DetectorNetwork":
        """The units in that mode; the network below answers, it does not learn."""
        super().train(mode)
        self.inner.eval()
        return self

    def encode_images(self, pixels: Tensor) -> Encoded:
        """(batch, 3, height, width) to logits (batch, 1)."""
        return Encoded(self.image_unit(features(self.inner.encode_images(pixels))))

    def encode_texts(self, tokens: Tensor) -> Encoded:
        """(batch, length) to logits (batch, 1)."""
        return Encoded(self.text_unit(features(self.inner.encode_texts(tokens))))

    def heads(self) -> Sequence[nn.Parameter]:
        """Weight and bias of both units."""
        return (*self.image_unit.parameters(), *self.text_unit.parameters())


def features(encoded: Encoded) -> Tensor:
    """(batch, width): what a unit sees of an item; several points are put side by side."""
    return encoded.points.flatten(1)


def on(backbone: Backbone) -> Backbone:
    """`backbone` with two fresh units that know nothing: torch's random state decides their weights.

    The network below is frozen, and not copied. Raises `InputError` where there are units already.
    """
    if isinstance(backbone.network, DetectorNetwork):
        raise InputError("a detector stands on an encoder", where=backbone.name, given="a detector")
    network, device = backbone.network.eval(), backbone.device()
    picture = backbone.preparation(PIL.Image.new("RGB", (64, 64), (128, 128, 128)))
    with torch.inference_mode():
        # Captions are as wide, or nothing could be compared.
        width = features(network.encode_images(backbone.pixels([picture]).to(device))).shape[1]
    made = DetectorNetwork(network, width).to(device)
    card = {"kind": "detector", "on": backbone.card}
    return replace(backbone, name=f"detector({backbone.name})", network=made, card=card)


@dataclass(frozen=True, eq=False)
class Detector:
    """A `Classifier`: how probably each image, and each caption, was made by a machine."""

    does: ClassVar[tuple[Ability, ...]] = ("classifies",)

    identity: Identity
    preparation: Preparation
    #: Prepared pictures, and texts, to logits (batch, 1).
    towers: Towers
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def image_probabilities(
        self, batches: Sequence[Sequence[Image]], *, workers: int = 0
    ) -> Iterator[Float[np.ndarray, "batch"]]:
        """(batch,) float32 in [0, 1] per batch; raises `DataError` naming a file that cannot be read."""
        with closing(prepared(batches, self.preparation, workers=workers)) as stream:
            for arrays in stream:
                yield _probabilities(self.towers.images, arrays)

    def caption_probabilities(
        self, batches: Sequence[Sequence[Caption]]
    ) -> Iterator[Float[np.ndarray, "batch"]]:
        """(batch,) float32 in [0, 1] per batch; raises `DataError` where a text is not at hand."""
        for batch in batches:
            yield _probabilities(self.towers.texts, [text_of(caption) for caption in batch])

    def lengths(self, captions: Sequence[Caption]) -> Sequence[int]:
        """Tokens of each caption."""
        return self.towers.count([text_of(caption) for caption in captions])


def _probabilities(encode: Callable[[Any], Tensor], batch: Any) -> Float[np.ndarray, "batch"]:
    with torch.inference_mode():
        found: ndarray = encode(batch).float().sigmoid()[:, 0].cpu().numpy()
    return found
