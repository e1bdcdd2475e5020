"""Recurrent dual encoders `vse` (VSE++, Faghri et al. 2018) and `vsrn` (VSRN, Li et al. 2019).

They train from scratch on regions in files, as in the papers, or on convolutions over small pictures. VSRN's
caption generator is left out, and a layer norm stands for its batch norms.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from numpy import ndarray
from torch import Tensor, nn
from torch.nn.functional import normalize, pad
from torch.nn.utils.rnn import pad_sequence

from counterfoil.errors import InputError, UnknownNameError
from counterfoil.models import small
from counterfoil.models.networks import Backbone, Local, PlacesNetwork
from counterfoil.models.region_files import RegionFile, RegionReader
from counterfoil.models.small import Sizes

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
        states, _ = self.gru(self.embedding(tokens))
        there = tokens != 0
        return Local(self.projection(_last(states, there)), states, ~there)


class RegionTower(nn.Module):
    """What both towers of images begin with: cells of a picture, or regions as they were given."""

    def __init__(self, sizes: Sizes, regions: int | None) -> None:
        super().__init__()
        self.body = small.convolutions(sizes) if regions is None else None
        self.projection = nn.Linear(sizes.channels[-1] if regions is None else regions, sizes.width)

    def region_features(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, regions, width) features, and (batch, regions, 1): 1 for regions, 0 for padding."""
        if self.body is not None:
            cells = self.body(inputs).flatten(2).transpose(1, 2)
            return cells, cells.new_ones(*cells.shape[:2], 1)
        return inputs[:, :, 1:], inputs[:, :, :1]


class MeanTower(RegionTower):
    """The mean of the regions' features through a linear map (VSE++)."""

    def forward(self, inputs: Tensor) -> Local:
        regions, there = self.region_features(inputs)
        mean = (regions * there).sum(dim=1) / there.sum(dim=1)
        return Local(self.projection(mean), regions, there[:, :, 0] == 0)


class Relation(nn.Module):
    """Regions with what they relate to added; the norm begins at zero, so that at first they stay."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.queries, self.keys, self.values = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        # Products of three maps grow without bound; normalised, what is added stays in size.
        self.norm = nn.LayerNorm(width)
        nn.init.zeros_(self.norm.weight)

    def forward(self, regions: Tensor, there: Tensor) -> Tensor:
        many = there.sum(dim=1, keepdim=True)
        related = self.queries(regions) @ self.keys(regions).transpose(1, 2) / many
        return regions + self.norm(self.out(related @ (self.values(regions) * there)))


class ReasoningTower(RegionTower):
    """Regions related to each other, then read by a GRU, whose last state is the image (VSRN)."""

    def __init__(self, sizes: Sizes, regions: int | None) -> None:
        super().__init__(sizes, regions)
        self.relations = nn.ModuleList(Relation(sizes.width) for _ in range(_RELATIONS))
        self.gru = nn.GRU(sizes.width, sizes.width, batch_first=True)
        self.norm = nn.LayerNorm(sizes.width)

    def forward(self, inputs: Tensor) -> Local:
        features, there = self.region_features(inputs)
        regions = normalize(self.projection(features), dim=-1)
        for layer in self.relations:
            regions = layer(regions, there)
        states, _ = self.gru(normalize(regions, dim=-1))
        return Local(self.norm(_last(states, there[:, :, 0])), regions, there[:, :, 0] == 0)


class RecurrentNetwork(PlacesNetwork):
    def __init__(self, vocabulary: int, sizes: Sizes, *, kind: str, regions: int | None = None) -> None:
        super().__init__()
        self.visual = (MeanTower if kind == "vse" else ReasoningTower)(sizes, regions)
        self.text = WordGru(vocabulary, sizes)
        self.logit_scale = nn.Parameter(torch.tensor(1 / _TEMPERATURE).log())

    def projections(self) -> Sequence[nn.Parameter]:
        return self.visual.projection.weight, self.text.projection.weight


def _last(states: Tensor, there: Tensor) -> Tensor:
    last = (there != 0).sum(dim=1).clamp(min=1) - 1
    return states[torch.arange(len(states), device=states.device), last]


def backbone(
    captions: Iterable[str],
    *,
    kind: str = "vse",
    sizes: Sizes | None = None,
    seed: int = 0,
    regions: RegionFile | None = None,
) -> Backbone:
    """A new network that knows the words of `captions`, of `regions` where given, else of pixels."""
    if kind not in KINDS:
        raise UnknownNameError("kind of recurrent network", kind, KINDS)
    card = {"kind": kind, "vocabulary": small.words_of(captions), **asdict(sizes or Sizes())}
    if regions is None:
        return from_card(card, seed=seed)
    return with_regions(from_card({**card, "regions": regions.width}, seed=seed), regions)


def with_regions(backbone: Backbone, regions: RegionFile) -> Backbone:
    if not isinstance(backbone.preparation, RegionReader):
        problem = "the network reads pixels and no regions"
        allowed = f"{', '.join(KINDS)} trained with --regions"
        raise InputError(problem, where=backbone.name, given=regions.where, allowed=allowed)
    reader = replace(backbone.preparation, regions=regions)
    regions.first().within(reader.width, regions.where)
    return replace(backbone, preparation=reader)


def from_card(card: Mapping[str, Any], folder: Path | None = None, *, seed: int = 0) -> Backbone:
    """The architecture that `card` describes, its weights drawn from `seed`; `folder` is not looked at."""
    kind, width = str(card["kind"]), card.get("regions")
    network = partial(RecurrentNetwork, kind=kind, regions=width)
    backbone = small.network_from_card(card, seed, network, name=kind)
    if width is None:
        return backbone
    return replace(backbone, preparation=RegionReader(int(width)), pixels=padded_regions)


def padded_regions(images: Sequence[ndarray]) -> Tensor:
    """(batch, most regions, 1 + width): the features of each region after a 1, and zeros for padding."""
    rows = [pad(torch.from_numpy(features), (1, 0), value=1.0) for features in images]
    return pad_sequence(rows, batch_first=True)
