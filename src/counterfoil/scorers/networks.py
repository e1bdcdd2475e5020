"""Trainable dual encoders: modules with one type of output, whatever library they are from.

A `Network` is only arithmetic. A `Backbone` adds its inputs (pictures to pixels, texts to tokens) and the
card that it is built from again.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from numpy import ndarray
from torch import Tensor, nn

from counterfoil.scorers.dual import Towers
from counterfoil.scorers.images import Preparation


class Encoded(NamedTuple):
    """One tower's output for a batch, not normalised.

    `points` is (batch, width) for one vector per item and (batch, heads, width) for several (PVSE).
    `log_variance` is (batch, width) where an item is a distribution around its point (PCME).
    `attention` is (batch, heads, places): how much each head looks at each place of the picture, or word.
    `residuals` is (batch, heads, width): what each head found there (PVSE keeps them apart).
    """

    points: Tensor
    log_variance: Tensor | None = None
    attention: Tensor | None = None
    residuals: Tensor | None = None


class Local(NamedTuple):
    """One tower's output for a batch, as a whole and place by place, not normalised."""

    #: (batch, width): the same points as those of `Encoded`.
    whole: Tensor
    #: (batch, places, local width): a picture's patches or cells, a text's words.
    places: Tensor
    #: (batch, places), true where there is nothing (padding); None where all places count.
    nothing: Tensor | None = None


class Answer(NamedTuple):
    """A network's output for a batch: all that a loss needs, so that every parameter is used in `forward`."""

    images: Encoded
    texts: Encoded
    #: Logarithm of the inverse temperature, a scalar.
    logit_scale: Tensor
    #: Scale and shift of PCME's matching probability, (2,).
    match: Tensor | None = None


class Network(nn.Module):
    """Two towers and a temperature.

    `logit_scale` is the logarithm of the inverse temperature, as in CLIP. `forward` encodes both sides at
    once, so that wrappers which hook it (distributed training) see every parameter.
    """

    logit_scale: nn.Parameter

    @abstractmethod
    def encode_images(self, pixels: Tensor) -> Encoded:
        """(batch, 3, height, width) normalised pixels to the image tower's output."""

    @abstractmethod
    def encode_texts(self, tokens: Tensor) -> Encoded:
        """(batch, length) token ids to the text tower's output."""

    def local_images(self, pixels: Tensor) -> Local:
        """The same with the tower's features of each place; by default the whole is the one place.

        A network with features of places overrides this and runs its tower once.
        """
        return _one_place(self.encode_images(pixels))

    def local_texts(self, tokens: Tensor) -> Local:
        """The same of texts and their words, padding marked."""
        return _one_place(self.encode_texts(tokens))

    def forward(self, pixels: Tensor, tokens: Tensor) -> Answer:
        """Both, of batches that may differ in size (hard negatives are further rows)."""
        # A scalar, however a library keeps it.
        return Answer(self.encode_images(pixels), self.encode_texts(tokens), self.logit_scale.reshape(()))

    def projections(self) -> Sequence[nn.Parameter]:
        """The last linear map of each tower: all that PAC-S trains. Empty where there is none."""
        return ()

    def heads(self) -> Sequence[nn.Parameter]:
        """The parameters on top of a backbone: all that PCME's first stage trains."""
        return ()

    def rows(self, encoded: Encoded) -> Tensor:
        """(batch, width): one row per item, as a scorer embeds it; not normalised here."""
        return encoded.points

    def plain_towers(self, backbone: "Backbone", device: torch.device, dtype: torch.dtype) -> Towers:
        """The towers by `encode_images` and `encode_texts`, with the weights of the moment of each call."""

        def images(pictures: Sequence[ndarray]) -> Tensor:
            return self.rows(self.encode_images(backbone.pixels(pictures).to(device=device, dtype=dtype)))

        def texts(texts: Sequence[str]) -> Tensor:
            return self.rows(self.encode_texts(backbone.tokens(texts).to(device)))

        @lru_cache(maxsize=1 << 16)
        def count(text: str) -> int:
            return int(backbone.tokens([text]).shape[1])

        return Towers(images, texts, lambda texts: [count(text) for text in texts])

    def towers(
        self, backbone: "Backbone", device: torch.device, dtype: torch.dtype, precision: str
    ) -> Towers:
        """The towers for scoring, of a network that is on `device` with activations of `dtype`.

        A library's network adds what it knows of its tokens, or computes in fewer operations.
        """
        return self.plain_towers(backbone, device, dtype)


class LibraryNetwork(Network):
    """The two towers of a library's model, which is kept as `model`, whole.

    The bias of sigmoid losses (`logit_bias`) becomes a buffer and stays as it is, and so do the parameters
    named `unused`: the bias adds the same to every logit, no loss of this package depends on that, and
    distributed training wants parameters that are used.
    """

    def __init__(self, model: nn.Module, *, unused: Sequence[str] = ()) -> None:
        super().__init__()
        self.model = model
        for name in ("logit_bias", *unused):
            value = getattr(model, name, None)
            if isinstance(value, nn.Parameter):
                delattr(model, name)
                model.register_buffer(name, value.detach())

    @property
    def logit_scale(self) -> nn.Parameter:
        """Logarithm of the inverse temperature."""
        scale: nn.Parameter = self.model.logit_scale
        return scale

    @property
    def logit_bias(self) -> Tensor | None:
        """The bias that a sigmoid loss adds to every logit, where the model has one."""
        return getattr(self.model, "logit_bias", None)


def _one_place(encoded: Encoded) -> Local:
    return Local(encoded.points, encoded.points[:, None])


@dataclass(frozen=True, eq=False)
class Backbone:
    """A network with its inputs and its card.

    `card` is plain values: `build(card)` in `counterfoil.scorers.checkpoint` gives the same architecture.
    """

    name: str
    network: Network
    #: In worker processes, an RGB picture to (height, width, 3) bytes.
    preparation: Preparation
    #: A batch of those bytes to (batch, 3, height, width) floats on the CPU, normalised.
    pixels: Callable[[Sequence[ndarray]], Tensor]
    #: Texts to (batch, length) token ids on the CPU, cut or padded as the tower needs it.
    tokens: Callable[[Sequence[str]], Tensor]
    card: Mapping[str, Any] = field(default_factory=dict)
    #: The files of tokenizer and image processor that a checkpoint keeps, by name.
    files: Callable[[], Mapping[str, bytes]] = dict

    def device(self) -> torch.device:
        """The network's device."""
        return self.network.logit_scale.device
