"""A dual encoder from scratch, small enough to learn the world of paper shapes on a laptop in a minute.

Pictures go through a few strided convolutions; what they found is read in three ways: where it is (a linear
map of the whole grid), how much of it there is (mean) and whether it is there at all (maximum). Captions are
words of a vocabulary of the model's own, with dilated convolutions over them (van den Oord et al., 2016),
which see a whole sentence after three layers. Nothing in it knows of shapes or colours.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor, nn
from torch.nn import functional

from counterfoil.errors import InputError, ModelError
from counterfoil.scorers.networks import Backbone, Encoded, Local, Network
from counterfoil.scorers.pictures import Resized

#: Words and the marks that change what a sentence says.
_WORD = re.compile(r"[a-z0-9]+|[,.]")
#: Ids that are no words: padding, and whatever the vocabulary does not hold.
_PADDING, _UNKNOWN, _FIRST = 0, 1, 2
#: The middle and the spread of pixels, in parts of 255.
_MEAN, _STD = 0.5, 0.25
#: CLIP's first inverse temperature (Radford et al., 2021, section 2.5).
_TEMPERATURE = 0.07


@dataclass(frozen=True)
class Sizes:
    """How large the network is. The defaults are about 0.7 million parameters."""

    #: Pixels to a side.
    picture: int = 48
    #: Channels after each convolution, each of which halves the picture.
    channels: tuple[int, ...] = (16, 32, 64)
    #: Numbers per word.
    words: int = 64
    #: Layers over the words; layer k sees words 2**k apart.
    layers: int = 3
    #: Numbers in the hidden layer of each tower.
    hidden: int = 256
    #: Numbers per embedding.
    width: int = 128

    def __post_init__(self) -> None:
        step = 2 ** len(self.channels)
        if self.picture % step or self.picture < 2 * step:
            raise InputError(
                "the convolutions cannot halve the picture so often",
                given=f"{self.picture} pixels, {len(self.channels)} convolutions",
                allowed=f"a multiple of {step} pixels, at least {2 * step}",
            )


class ImageTower(nn.Module):
    """(batch, 3, side, side) pixels to (batch, width)."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 3
        for number, after in enumerate(sizes.channels):
            # The first sees four pixels at once, which is what a stripe takes.
            kernel = 4 if not number else 3
            layers += [nn.Conv2d(before, after, kernel, stride=2, padding=1, bias=False)]
            layers += [nn.BatchNorm2d(after), nn.ReLU()]
            before = after
        self.body = nn.Sequential(*layers)
        grid = sizes.picture // 2 ** len(sizes.channels)
        self.where = nn.Linear(grid * grid * before, sizes.hidden)
        self.mix = nn.Sequential(
            nn.LayerNorm(sizes.hidden + 2 * before),
            nn.Linear(sizes.hidden + 2 * before, sizes.hidden),
            nn.GELU(),
        )
        self.projection = nn.Linear(sizes.hidden, sizes.width, bias=False)

    def forward(self, pixels: Tensor) -> Local:
        """The whole, and what the last convolution found in each cell of its grid."""
        found = self.body(pixels)
        where = functional.gelu(self.where(found.flatten(1)))
        mixed = self.mix(torch.cat([where, found.mean((2, 3)), found.amax((2, 3))], dim=1))
        return Local(self.projection(mixed), found.flatten(2).transpose(1, 2))


class TextTower(nn.Module):
    """(batch, length) word ids to (batch, width); 0 is padding, and nothing depends on how much there is."""

    def __init__(self, vocabulary: int, sizes: Sizes) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, sizes.words, padding_idx=_PADDING)
        self.layers = nn.ModuleList(
            nn.Conv1d(sizes.words, sizes.words, 3, padding=2**k, dilation=2**k) for k in range(sizes.layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(sizes.words) for _ in range(sizes.layers))
        self.mix = nn.Sequential(
            nn.LayerNorm(2 * sizes.words), nn.Linear(2 * sizes.words, sizes.hidden), nn.GELU()
        )
        self.projection = nn.Linear(sizes.hidden, sizes.width, bias=False)

    def forward(self, tokens: Tensor) -> Local:
        """The whole, and each word as it stands in its sentence."""
        there = (tokens != _PADDING).unsqueeze(-1)
        words = self.embedding(tokens)
        for norm, layer in zip(self.norms, self.layers, strict=True):
            heard = layer((norm(words) * there).transpose(1, 2)).transpose(1, 2)
            words = words + functional.gelu(heard)
        mean = (words * there).sum(1) / there.sum(1).clamp(min=1)
        most = words.masked_fill(~there, -1e4).amax(1)
        return Local(self.projection(self.mix(torch.cat([mean, most], dim=1))), words, ~there.squeeze(-1))


class SmallNetwork(Network):
    """Both towers."""

    def __init__(self, vocabulary: int, sizes: Sizes) -> None:
        super().__init__()
        self.visual = ImageTower(sizes)
        self.text = TextTower(vocabulary, sizes)
        self.logit_scale = nn.Parameter(torch.tensor(1 / _TEMPERATURE).log())

    def encode_images(self, pixels: Tensor) -> Encoded:
        """(batch, width) points of (batch, 3, side, side) pixels."""
        return Encoded(self.visual(pixels).whole)

    def encode_texts(self, tokens: Tensor) -> Encoded:
        """(batch, width) points of (batch, length) word ids."""
        return Encoded(self.text(tokens).whole)

    def local_images(self, pixels: Tensor) -> Local:
        """The same, and the cells of the last convolution."""
        return self.visual(pixels)

    def local_texts(self, tokens: Tensor) -> Local:
        """The same, and the words."""
        return self.text(tokens)

    def projections(self) -> Sequence[nn.Parameter]:
        """The last linear map of each tower."""
        return self.visual.projection.weight, self.text.projection.weight


def backbone(captions: Iterable[str], *, sizes: Sizes | None = None, seed: int = 0) -> Backbone:
    """A new network that knows the words of `captions`, with weights drawn from `seed`.

    torch's own random state stays as it is.

    >>> made = backbone(["A red star is above a moon."], sizes=Sizes(picture=32, channels=(8, 16)))
    >>> made.tokens(["A red moon", "a blue star."]).tolist()
    [[3, 7, 6, 0], [3, 1, 8, 2]]
    >>> answer = made.network(made.pixels([np.zeros((32, 32, 3), np.uint8)] * 2), made.tokens(["a", "b"]))
    >>> tuple(answer.images.points.shape)
    (2, 128)
    """
    words = sorted({word for caption in captions for word in _WORD.findall(caption.lower())})
    return _made({"kind": "small", "vocabulary": words, **asdict(sizes or Sizes())}, seed)


def from_card(card: Mapping[str, Any], folder: Path | None = None) -> Backbone:
    """The architecture that `card` describes, with weights of no meaning; it needs no files from `folder`.

    Raises `ModelError` where the card lacks a fact.
    """
    return _made(card, 0)


def _made(card: Mapping[str, Any], seed: int) -> Backbone:
    try:
        facts = {name: card[name] for name in Sizes.__dataclass_fields__}
        vocabulary = {str(word): number for number, word in enumerate(card["vocabulary"], _FIRST)}
    except KeyError as error:
        raise ModelError(
            f"the card of a small network lacks '{error.args[0]}'", given=", ".join(card)
        ) from None
    sizes = Sizes(**{**facts, "channels": tuple(facts["channels"])})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = SmallNetwork(_FIRST + len(vocabulary), sizes)
    return Backbone(
        name="small",
        # Convolutions of few channels are fastest with the channels last in memory.
        network=network.to(memory_format=torch.channels_last),
        preparation=Resized(sizes.picture, interpolation="bicubic"),
        pixels=_pixels,
        tokens=Vocabulary(vocabulary),
        card=dict(card),
    )


def _pixels(pictures: Sequence[ndarray] | ndarray) -> Tensor:
    """(batch, 3, side, side) floats of (side, side, 3) bytes, with the channels last in memory."""
    bytes_of = torch.from_numpy(np.stack(tuple(pictures))).permute(0, 3, 1, 2)
    return bytes_of.float().mul_(1 / 255).sub_(_MEAN).div_(_STD)


@dataclass(frozen=True)
class Vocabulary:
    """Texts to ids of words, as long as the longest text of the batch; 1 is a word it does not know."""

    words: Mapping[str, int]

    def __call__(self, texts: Sequence[str]) -> Tensor:
        """(batch, length) ids, 0 after the end; an empty text is one unknown word."""
        rows = [
            [self.words.get(word, _UNKNOWN) for word in _WORD.findall(text.lower())] or [_UNKNOWN]
            for text in texts
        ]
        ids = torch.zeros(len(rows), max(map(len, rows), default=1), dtype=torch.int64)
        for row, found in zip(ids, rows, strict=True):
            row[: len(found)] = torch.tensor(found)
        return ids
