"""A dual encoder small enough to learn the world of paper shapes from scratch in half a minute.

Pictures: convolutions over patches, one mixer layer (Tolstikhin et al., 2021). Texts: dilated convolutions
over words (van den Oord et al., 2016). Both: mean and maximum, and a linear map.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor, nn
from torch.nn import functional

from counterfoil.errors import InputError, ModelError
from counterfoil.models.dual import PatchEncoder, Towers
from counterfoil.models.images import Resized
from counterfoil.models.networks import Backbone, Local, Network, PlacesNetwork
from counterfoil.models.runtime import drawn_from

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
    """How large the network is. The defaults are about 0.3 million parameters."""

    picture: int = 48
    patch: int = 4
    #: Channels of a patch, then of each convolution over the grid, the first of which halves its sides.
    channels: tuple[int, ...] = (24, 48, 96)
    #: Numbers in the mixer's hidden layer over channels; the one over cells has twice as many as cells.
    hidden: int = 128
    words: int = 96
    #: Layers over the words; layer k sees words 2**k apart.
    layers: int = 3
    width: int = 128

    def __post_init__(self) -> None:
        if len(self.channels) < 2 or self.picture % self.step or self.picture < 2 * self.step:
            problem = "the pictures cannot be cut into patches and their grid halved"
            given = f"{self.picture} pixels, patches of {self.patch}, {len(self.channels)} layers"
            allowed = f"a multiple of {self.step} pixels, at least {2 * self.step}; two layers or more"
            raise InputError(problem, given=given, allowed=allowed)

    @property
    def step(self) -> int:
        """Pixels to a side of a cell of the last grid."""
        return 2 * self.patch

    @property
    def cells(self) -> int:
        """Cells of the last grid."""
        return (self.picture // self.step) ** 2


class Mixer(nn.Module):
    """(batch, cells, channels) to the same: a hidden layer over cells, then one over channels, both added."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        cells, channels = sizes.cells, sizes.channels[-1]
        self.cells_norm, self.channels_norm = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.cells = _hidden(cells, 2 * cells)
        self.channels = _hidden(channels, sizes.hidden)

    def forward(self, cells: Tensor) -> Tensor:
        cells = cells + self.cells(self.cells_norm(cells).transpose(1, 2)).transpose(1, 2)
        return cells + self.channels(self.channels_norm(cells))


class ImageTower(nn.Module):
    """(batch, 3, side, side) pixels to (batch, width)."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        last = sizes.channels[-1]
        self.body = convolutions(sizes)
        self.position = nn.Parameter(0.02 * torch.randn(sizes.cells, last))
        self.mixer = Mixer(sizes)
        self.norm = nn.LayerNorm(last)
        self.projection = nn.Linear(2 * last, sizes.width, bias=False)

    def forward(self, pixels: Tensor) -> Local:
        cells = self.body(pixels).flatten(2).transpose(1, 2) + self.position
        features = self.norm(self.mixer(cells))
        return Local(self.projection(torch.cat([features.mean(1), features.amax(1)], dim=1)), features)


class TextTower(nn.Module):
    """(batch, length) word ids to (batch, width); 0 is padding, and nothing depends on how much there is."""

    def __init__(self, vocabulary: int, sizes: Sizes) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, sizes.words, padding_idx=_PADDING)
        # Each is a convolution over three words, as one product: with so few channels a real one is slower.
        self.layers = nn.ModuleList(nn.Linear(3 * sizes.words, sizes.words) for _ in range(sizes.layers))
        self.norms = nn.ModuleList(nn.LayerNorm(sizes.words) for _ in range(sizes.layers))
        self.norm = nn.LayerNorm(2 * sizes.words)
        self.projection = nn.Linear(2 * sizes.words, sizes.width, bias=False)

    def forward(self, tokens: Tensor) -> Local:
        there = (tokens != _PADDING).unsqueeze(-1)
        words = self.embedding(tokens)
        length = tokens.shape[1]
        for k, (norm, layer) in enumerate(zip(self.norms, self.layers, strict=True)):
            dilation = 2**k
            padded = functional.pad(norm(words) * there, (0, 0, dilation, dilation))
            around = [padded[:, start : start + length] for start in (0, dilation, 2 * dilation)]
            words = words + functional.relu(layer(torch.cat(around, dim=-1)))
        mean = (words * there).sum(1) / there.sum(1).clamp(min=1)
        most = words.masked_fill(~there, -1e4).amax(1)
        return Local(self.projection(self.norm(torch.cat([mean, most], dim=1))), words, ~there.squeeze(-1))


def convolutions(sizes: Sizes) -> nn.Sequential:
    """Patches, then convolutions: (batch, 3, side, side) pixels to (batch, channels, rows, columns)."""
    layers = [_convolution(3, sizes.channels[0], sizes.patch, stride=sizes.patch)]
    for k, (before, after) in enumerate(pairwise(sizes.channels)):
        layers.append(_convolution(before, after, 3, stride=1 if k else 2))
    return nn.Sequential(*layers)


def _convolution(before: int, after: int, side: int, *, stride: int) -> nn.Sequential:
    """A convolution that keeps the grid's size but for its stride, normalised; patches do not overlap."""
    padding = 0 if stride == side else side // 2
    layer = nn.Conv2d(before, after, side, stride=stride, padding=padding, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(after), nn.ReLU())


def _hidden(size: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(size, hidden), nn.ReLU(), nn.Linear(hidden, size))


class SmallNetwork(PlacesNetwork):
    def __init__(self, vocabulary: int, sizes: Sizes) -> None:
        super().__init__()
        self.visual = ImageTower(sizes)
        self.text = TextTower(vocabulary, sizes)
        self.logit_scale = nn.Parameter(torch.tensor(1 / _TEMPERATURE).log())

    def towers(self, backbone: Backbone, device: torch.device, dtype: torch.dtype, precision: str) -> Towers:
        """The towers for scoring, with the cells of the grid: each as if all cells were like it."""

        def cells(pictures: Sequence[ndarray]) -> Tensor:
            features = self.visual(backbone.pixels(pictures).to(device=device, dtype=dtype)).tokens
            return self.visual.projection(torch.cat([features, features], dim=-1))

        patches = PatchEncoder(cells, backbone.preparation)
        return replace(self.plain_towers(backbone, device, dtype), patches=patches)

    def projections(self) -> Sequence[nn.Parameter]:
        return self.visual.projection.weight, self.text.projection.weight


def backbone(captions: Iterable[str], *, sizes: Sizes | None = None, seed: int = 0) -> Backbone:
    """A new network that knows the words of `captions`, with weights drawn from `seed`.

    >>> made = backbone(["A red star is above a moon."], sizes=Sizes(picture=32, channels=(8, 16)))
    >>> made.tokens(["A red moon", "a blue star."]).tolist()
    [[3, 7, 6, 0], [3, 1, 8, 2]]
    >>> answer = made.network(made.pixels([np.zeros((32, 32, 3), np.uint8)] * 2), made.tokens(["a", "b"]))
    >>> tuple(answer.images.points.shape)
    (2, 128)
    """
    card = {"kind": "small", "vocabulary": words_of(captions), **asdict(sizes or Sizes())}
    return network_from_card(card, seed, SmallNetwork, name="small")


def words_of(captions: Iterable[str]) -> list[str]:
    return sorted({word for caption in captions for word in _WORD.findall(caption.lower())})


def from_card(card: Mapping[str, Any], folder: Path | None = None) -> Backbone:
    """The architecture that `card` describes, with weights of no meaning; it needs no files from `folder`."""
    return network_from_card(card, 0, SmallNetwork, name="small")


def network_from_card(
    card: Mapping[str, Any], seed: int, network_of: Callable[[int, Sizes], Network], *, name: str
) -> Backbone:
    """A network of words and small pictures that a card describes, with weights drawn from `seed`."""
    try:
        facts = {name: card[name] for name in Sizes.__dataclass_fields__}
        vocabulary = {str(word): number for number, word in enumerate(card["vocabulary"], _FIRST)}
    except KeyError as error:
        problem = f"the card of a small network lacks '{error.args[0]}'"
        raise ModelError(problem, given=", ".join(card)) from None
    sizes = Sizes(**{**facts, "channels": tuple(facts["channels"])})
    with drawn_from(seed):
        network = network_of(_FIRST + len(vocabulary), sizes)
    preparation, tokens = Resized(sizes.picture, interpolation="bicubic"), Vocabulary(vocabulary)
    return Backbone(name, network, preparation, _pixels, tokens, dict(card))


def _pixels(pictures: Sequence[ndarray] | ndarray) -> Tensor:
    """(batch, 3, side, side) floats of (side, side, 3) bytes, with the channels last in memory."""
    bytes_of = torch.from_numpy(np.stack(tuple(pictures))).permute(0, 3, 1, 2)
    return bytes_of.float().mul_(1 / 255).sub_(_MEAN).div_(_STD)


@dataclass(frozen=True)
class Vocabulary:
    """Texts to ids of words, as long as the longest text of the batch; 1 is a word it does not know."""

    words: Mapping[str, int]

    def __call__(self, texts: Sequence[str]) -> Tensor:
        words = (_WORD.findall(text.lower()) for text in texts)
        rows = [[self.words.get(word, _UNKNOWN) for word in text] or [_UNKNOWN] for text in words]
        ids = torch.zeros(len(rows), max(map(len, rows), default=1), dtype=torch.int64)
        for row, word_ids in zip(ids, rows, strict=True):
            row[: len(word_ids)] = torch.tensor(word_ids)
        return ids
