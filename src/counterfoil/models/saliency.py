"""Heatmaps from the inside of cross-encoders: what words look at.

* ViLT, FLAVA and VisualBERT, one transformer over both: *rollout*, attention rollout over its layers from the
  class token and from each word.
* BLIP and LXMERT, whose words look at the image: *grad-cam*, the cross-attention of a layer
  times the positive part of the gradient of the logit of a match, averaged over heads, as ALBEF and BLIP show
  it (Selvaraju et al. 2017; Li et al. 2021, section 5); two thirds up, layer 8 of 0 to 11 as there.

Numbers of regions are painted into a grid: a cell gets the largest of the regions over its middle.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from counterfoil.benchmarks.records import Caption, Image
from counterfoil.errors import DataError, ModelError
from counterfoil.metrics.heatmaps import rollout
from counterfoil.models.base import Identity, prompted
from counterfoil.models.hf_loading import HfTokens
from counterfoil.models.region_files import BOXES

#: A row of numbers per token of a text, a column per cell of the grid over the picture.
TokenMaps = Float[ndarray, "tokens rows columns"]
Maps = tuple[ndarray, TokenMaps]
Fill = Callable[[ndarray], ndarray]
_CELLS = 24


@dataclass(frozen=True, eq=False)
class PairSaliency:
    identity: Identity
    matcher: Any
    tokens: HfTokens
    read: Callable[[Image], Any] = lambda image: np.asarray(image.decode())

    @property
    def methods(self) -> tuple[str, ...]:
        protocol = getattr(self.matcher, "protocol", "itm")
        if hasattr(self.matcher, "attention_maps"):
            return ("grad-cam",) if protocol != "itc" else ()
        return ("rollout",) if hasattr(self.matcher, "stream") and protocol == "itm" else ()

    def maps(
        self, method: str, image: Image, caption: Caption, parts: Sequence[tuple[int, int]]
    ) -> tuple[Float[ndarray, "rows columns"], Float[ndarray, "parts rows columns"]]:
        """The heatmap of the caption, and of each part (first letter, one behind the last) by its tokens."""
        (text,) = prompted(self.identity, [caption])
        (ids,), options = self.tokens.ids([text]), {"truncation": True, "max_length": self.tokens.length}
        try:
            # The letters that each token is of; none of marks.
            positions = self.tokens.tokenizer(text, return_offsets_mapping=True, **options)["offset_mapping"]
        except NotImplementedError:
            problem = "its tokenizer does not say which letters a token is of"
            hint = "--method occlusion needs no tokens"
            raise ModelError(problem, where=self.identity.name, hint=hint) from None
        if method == "rollout":
            whole, tokens = self.matcher.stream(self.read(image), ids)
        else:
            # Gradient-weighted cross-attention of every token; of the whole the mean over the caption's.
            tokens = self.matcher.attention_maps(self.read(image), ids)
            whole = (tokens[1:-1] if len(ids) > 2 else tokens).mean(axis=0)
        # The prompt moves the caption's letters.
        shift = self.identity.prompt.index("{}")
        part_maps = np.zeros((len(parts), *whole.shape))
        for row, (start, end) in zip(part_maps, parts, strict=True):
            chosen = [i for i, (a, b) in enumerate(positions) if a < end + shift and b > start + shift]
            if chosen:
                row[:] = tokens[chosen].mean(axis=0)
        return whole, part_maps


def rolled_out(attentions: Any, words: slice, patches: slice, fill: Fill) -> Maps:
    """Of one transformer over the class token of the pair, then a text's tokens and patches or regions."""
    flow = rollout([layer[0].float().cpu().numpy() for layer in attentions])
    return fill(flow[:1, patches])[0], fill(flow[words, patches])


def inner_layer(layers: Any) -> Any:
    """The layer two thirds up; never the last: there the head reads [CLS] alone, not the words."""
    return layers[max(0, min(2 * len(layers) // 3, len(layers) - 2))]


def weighted_attention(logit: Callable[[], Tensor], module: nn.Module) -> Float[ndarray, "rows places"]:
    """The attention of a module, at its first call, times the positive part of the gradient of a logit."""
    seen: list[Tensor] = []
    with module.register_forward_hook(lambda _, args, output: seen.append(output[1])), torch.enable_grad():
        (gradient,) = torch.autograd.grad(logit(), seen[:1])
    weighted: ndarray = (seen[0] * gradient.clamp(min=0))[0].mean(dim=0).detach().double().cpu().numpy()
    return weighted


def squared(rows: Float[ndarray, "tokens patches"]) -> TokenMaps:
    side = isqrt(rows.shape[1])
    return rows.reshape(len(rows), side, side)


def painted(regions: Any, where: object) -> Fill:
    """What paints numbers of regions into a grid; raises `DataError` for regions without boxes."""
    if regions.boxes is None:
        problem = "the regions have no boxes, so nothing says where in the picture they are"
        raise DataError(problem, where=where, hint=BOXES)
    middle = (np.arange(_CELLS) + 0.5) / _CELLS
    left, top, right, bottom = regions.boxes.T[:, :, None]
    across, down = (left <= middle) & (middle < right), (top <= middle) & (middle < bottom)
    over = down[:, :, None] & across[:, None, :]

    def fill(rows: ndarray) -> ndarray:
        grids: ndarray = np.where(over, rows[:, :, None, None], -np.inf).max(axis=1)
        return np.where(over.any(axis=0), grids, 0.0)

    return fill
