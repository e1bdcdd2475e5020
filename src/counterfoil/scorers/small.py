"""A dual encoder from scratch, small enough to learn the world of paper shapes on a laptop in a minute.

Pictures are cut into patches, and four neighbours made one until the grid is coarse; every cell is given
its position. What was found is summed in four ways: how much of it there is (mean), how far right and how far
down it lies (first moments, so that how things lie can be told), and whether it is there at all (maximum).
Captions are words of a vocabulary of the model's own, with dilated convolutions over them (van den Oord et
al., 2016), which see a whole sentence after three layers. Nothing in it knows of shapes or colours.
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
from counterfoil.scorers.images import Resized
from counterfoil.scorers.networks import Backbone, Encoded, Local, Network

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
    """How large the network is. The defaults are about 0.5 million parameters."""

    #: Pixels to a side.
    picture: int = 48
    #: Pixels to a side of a patch.
    patch: int = 4
    #: Channels of a patch, then each time four cells become one.
    channels: tuple[int, ...] = (48, 96)
    #: Numbers per word.
    words: int = 128
    #: Layers over the words; layer k sees words 2**k apart.
    layers: int = 3
    #: Numbers in the hidden layer of each tower.
    hidden: int = 256
    #: Numbers per embedding.
    width: int = 128

    def __post_init__(self) -> None:
        if self.picture % self.step or self.picture < 2 * self.step:
            raise InputError(
                "the pictures cannot be cut into patches and those halved so often",
                given=f"{self.picture} pixels, patches of {self.patch}, {len(self.channels)} layers",
                allowed=f"a multiple of {self.step} pixels, at least {2 * self.step}",
            )

    @property
    def step(self) -> int:
        """Pixels to a side of a cell of the last grid."""
        return self.patch * 2 ** (len(self.channels) - 1)


class Gathered(nn.Module):
    """(batch, rows, columns, channels) to a grid `side` times coarser: each square of cells becomes one.

    A convolution without overlap, as one product of matrices: with so few channels a real one takes longer.
    """

    def __init__(self, side: int, before: int, after: int) -> None:
        super().__init__()
        self.side = side
        self.linear = nn.Linear(side * side * before, after, bias=False)
        self.norm = nn.BatchNorm1d(after)

    def forward(self, found: Tensor) -> Tensor:
        """What is found in each square."""
        rows, columns = (size // self.side for size in found.shape[1:3])
        squares = found.unflatten(1, (rows, self.side)).unflatten(3, (columns, self.side)).transpose(2, 3)
        flat = squares.reshape(len(found) * rows * columns, -1)
        return functional.relu(self.norm(self.linear(flat))).view(len(found), rows, columns, -1)


class ImageTower(nn.Module):
    """(batch, 3, side, side) pixels to (batch, width)."""

    moments: Tensor

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        sides = [sizes.patch] + [2] * (len(sizes.channels) - 1)
        channels = (3, *sizes.channels)
        self.body = nn.Sequential(*map(Gathered, sides, channels, channels[1:]))
        side, last = sizes.picture // sizes.step, channels[-1]
        self.position = nn.Parameter(0.02 * torch.randn(side * side, last))
        self.norm = nn.LayerNorm(last)
        self.cells = nn.Sequential(nn.Linear(last, last), nn.ReLU(), nn.Linear(last, last))
        self.register_buffer("moments", _moments(side), persistent=False)
        self.pooled = Pooled((len(self.moments) + 1) * last, sizes)

    @property
    def projection(self) -> nn.Linear:
        """The last linear map."""
        return self.pooled.projection

    def forward(self, pixels: Tensor) -> Local:
        """The whole, and what was found in each cell of the grid."""
        cells = self.body(pixels.permute(0, 2, 3, 1)).flatten(1, 2) + self.position
        found = cells + self.cells(self.norm(cells))
        where = (self.moments @ found).flatten(1)
        return Local(self.pooled(torch.cat([where, found.amax(1)], dim=1)), found)


class Pooled(nn.Module):
    """(batch, features) that were gathered from all places to (batch, width).

    The last map sees the features themselves besides a hidden layer of them: much of what captions and
    pictures say is a sum over their places, and is learned in fewer steps as one.
    """

    def __init__(self, features: int, sizes: Sizes) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.hidden = nn.Sequential(nn.Linear(features, sizes.hidden), nn.GELU())
        self.projection = nn.Linear(sizes.hidden + features, sizes.width, bias=False)

    def forward(self, gathered: Tensor) -> Tensor:
        """The whole."""
        normed = self.norm(gathered)
        projected: Tensor = self.projection(torch.cat([self.hidden(normed), normed], dim=1))
        return projected


class TextTower(nn.Module):
    """(batch, length) word ids to (batch, width); 0 is padding, and nothing depends on how much there is."""

    def __init__(self, vocabulary: int, sizes: Sizes) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, sizes.words, padding_idx=_PADDING)
        # Each is a convolution over three words, as one product: a few channels make poor convolutions.
        self.layers = nn.ModuleList(nn.Linear(3 * sizes.words, sizes.words) for _ in range(sizes.layers))
        self.norms = nn.ModuleList(nn.LayerNorm(sizes.words) for _ in range(sizes.layers))
        self.pooled = Pooled(2 * sizes.words, sizes)

    @property
    def projection(self) -> nn.Linear:
        """The last linear map."""
        return self.pooled.projection

    def forward(self, tokens: Tensor) -> Local:
        """The whole, and each word as it stands in its sentence."""
        there = (tokens != _PADDING).unsqueeze(-1)
        words = self.embedding(tokens)
        length = tokens.shape[1]
        for k, (norm, layer) in enumerate(zip(self.norms, self.layers, strict=True)):
            apart = 2**k
            padded = functional.pad(norm(words) * there, (0, 0, apart, apart))
            around = [padded[:, at : at + length] for at in (0, apart, 2 * apart)]
            words = words + functional.gelu(layer(torch.cat(around, dim=-1)))
        mean = (words * there).sum(1) / there.sum(1).clamp(min=1)
        most = words.masked_fill(~there, -1e4).amax(1)
        return Local(self.pooled(torch.cat([mean, most], dim=1)), words, ~there.squeeze(-1))


def _moments(side: int) -> Tensor:
    """(3, cells) weights that give of the cells of a grid the mean, and how far right and down it lies."""
    at = torch.linspace(-1.5, 1.5, side)
    down, right = torch.meshgrid(at, at, indexing="ij")
    return torch.stack([torch.ones(side, side), right, down]).flatten(1) / side


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
        network=network,
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
