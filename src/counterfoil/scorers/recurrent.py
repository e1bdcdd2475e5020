"""Recurrent dual encoders: a GRU over words beside what is found in the cells of a picture.

`vse` is after VSE++ (Faghri et al. 2018): the mean of the picture's features, and the state of a GRU at a
caption's last word, each through a linear map. `vsrn` is after VSRN (Li et al. 2019): the features of each
region go through layers that relate regions to each other, then a GRU reads them one after another. The
papers take their features from a ResNet and from a detector; here a few convolutions over small pictures
stand in their place, one cell for one region, so that the networks train from scratch (`counterfoil train
vse++ --model vsrn`). VSRN's caption generator, which is a loss of its training, is left out, and a layer norm
stands for its batch norms.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from counterfoil.errors import UnknownNameError
from counterfoil.scorers import small
from counterfoil.scorers.networks import Backbone, Encoded, Local, Network
from counterfoil.scorers.small import Sizes

KINDS = ("vse", "vsrn")
#: Layers that relate regions, as VSRN has them.
_RELATIONS = 4
#: How far the embeddings of words are spread at first (VSE++).
_SPREAD = 0.1
_TEMPERATURE = 0.07


class WordGru(nn.Module):
    """(batch, length) word ids to (batch, width): a GRU's state at the last word, through a linear map."""

    def __init__(self, vocabulary: int, sizes: Sizes) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, sizes.words, padding_idx=0)
        nn.init.uniform_(self.embedding.weight, -_SPREAD, _SPREAD)
        self.gru = nn.GRU(sizes.words, sizes.width, batch_first=True)
        self.projection = nn.Linear(sizes.width, sizes.width, bias=False)

    def forward(self, tokens: Tensor) -> Local:
        """The last state through a linear map, and the state after each word.

        Padding stands behind the last word, so that no state before it depends on how much there is.
        """
        states, _ = self.gru(self.embedding(tokens))
        there = tokens != 0
        last = there.sum(dim=1).clamp(min=1) - 1
        whole = states[torch.arange(len(states), device=states.device), last]
        return Local(self.projection(whole), states, ~there)


class MeanTower(nn.Module):
    """The mean of the cells' features through a linear map (VSE++)."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.body = small.convolutions(sizes)
        self.projection = nn.Linear(sizes.channels[-1], sizes.width)

    def forward(self, pixels: Tensor) -> Local:
        """The whole, and the features of each cell."""
        cells = self.body(pixels).flatten(2).transpose(1, 2)
        return Local(self.projection(cells.mean(dim=1)), cells)


class Relation(nn.Module):
    """(batch, regions, width) to the same: each region takes in the others by how they relate to it.

    A residual graph convolution over all pairs of regions (VSRN). The scale of its norm begins at zero, so
    that at first a region stays as it is.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.queries, self.keys, self.values = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        # Products of three maps grow without bound; normalised, what is added stays in size.
        self.norm = nn.LayerNorm(width)
        nn.init.zeros_(self.norm.weight)

    def forward(self, regions: Tensor) -> Tensor:
        """The regions with what they relate to added."""
        related = self.queries(regions) @ self.keys(regions).transpose(1, 2) / regions.shape[1]
        added: Tensor = regions + self.norm(self.out(related @ self.values(regions)))
        return added


class ReasoningTower(nn.Module):
    """Regions related to each other, then read by a GRU, whose last state is the image (VSRN)."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.body = small.convolutions(sizes)
        self.projection = nn.Linear(sizes.channels[-1], sizes.width)
        self.relations = nn.Sequential(*(Relation(sizes.width) for _ in range(_RELATIONS)))
        self.gru = nn.GRU(sizes.width, sizes.width, batch_first=True)
        self.norm = nn.LayerNorm(sizes.width)

    def forward(self, pixels: Tensor) -> Local:
        """The whole, and each region as it stands among the others."""
        cells = self.body(pixels).flatten(2).transpose(1, 2)
        regions = self.relations(normalize(self.projection(cells), dim=-1))
        states, _ = self.gru(normalize(regions, dim=-1))
        return Local(self.norm(states[:, -1]), regions)


class RecurrentNetwork(Network):
    """Both towers; cosines of their points are the scores."""

    def __init__(self, vocabulary: int, sizes: Sizes, *, kind: str) -> None:
        super().__init__()
        self.visual = MeanTower(sizes) if kind == "vse" else ReasoningTower(sizes)
        self.text = WordGru(vocabulary, sizes)
        self.logit_scale = nn.Parameter(torch.tensor(1 / _TEMPERATURE).log())

    def encode_images(self, pixels: Tensor) -> Encoded:
        """(batch, width) points of (batch, 3, side, side) pixels."""
        return Encoded(self.visual(pixels).whole)

    def encode_texts(self, tokens: Tensor) -> Encoded:
        """(batch, width) points of (batch, length) word ids."""
        return Encoded(self.text(tokens).whole)

    def projections(self) -> Sequence[nn.Parameter]:
        """The maps of the picture's features, and of the GRU's last state."""
        return self.visual.projection.weight, self.text.projection.weight

    def local_images(self, pixels: Tensor) -> Local:
        """The same, and the cells of the picture."""
        found: Local = self.visual(pixels)
        return found

    def local_texts(self, tokens: Tensor) -> Local:
        """The same, and the words."""
        found: Local = self.text(tokens)
        return found


def backbone(
    captions: Iterable[str], *, kind: str = "vse", sizes: Sizes | None = None, seed: int = 0
) -> Backbone:
    """A new network of a kind that knows the words of `captions`, with weights drawn from `seed`.

    Raises `UnknownNameError` for other kinds than `vse` and `vsrn`.

    >>> found = backbone(["A red star."], kind="vsrn", sizes=Sizes(picture=32, channels=(8, 16)))
    >>> tuple(found.network.encode_texts(found.tokens(["a red moon", "a star"])).points.shape)
    (2, 128)
    """
    if kind not in KINDS:
        raise UnknownNameError("kind of recurrent network", kind, KINDS)
    card = {"kind": kind, "vocabulary": small.words_of(captions), **asdict(sizes or Sizes())}
    return _made(card, seed)


def from_card(card: Mapping[str, Any], folder: Path | None = None) -> Backbone:
    """The architecture that `card` describes, with weights of no meaning; it needs no files from `folder`.

    Raises `ModelError` where the card lacks a fact.
    """
    return _made(card, 0)


def _made(card: Mapping[str, Any], seed: int) -> Backbone:
    kind = str(card["kind"])
    return small.made(card, seed, partial(RecurrentNetwork, kind=kind), name=kind)
