"""Dual encoders with heads, which attend to places and words: several points per item (PVSE), or PCME."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from counterfoil.errors import InputError
from counterfoil.models.matching_probability import MostSimilarHeads, RowSimilarity, Sampled
from counterfoil.models.networks import Answer, Backbone, Encoded, Local, Network
from counterfoil.models.runtime import drawn_from


class Attention(nn.Module):
    """How much each head looks at each place: softmax of w2 tanh(w1 x) (Lin et al. 2017)."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.w1 = nn.Linear(width, hidden, bias=False)
        self.w2 = nn.Linear(hidden, heads, bias=False)
        nn.init.xavier_uniform_(self.w1.weight)
        nn.init.xavier_uniform_(self.w2.weight)

    def forward(self, local: Local) -> Tensor:
        """(batch, heads, places), zero where there is nothing; each head's sum is one."""
        scores = self.w2(torch.tanh(self.w1(local.tokens))).mT
        if local.nothing is not None:
            # At least one place stays unmasked: an empty text would give NaN.
            closed = local.nothing & ~local.nothing.all(dim=1, keepdim=True)
            scores = scores.masked_fill(closed[:, None], -torch.inf)
        return scores.softmax(dim=2)


class Heads(nn.Module):
    """Several views of an item: norm(whole + sigmoid(map(what a head attends to))) (PVSE).

    With `per_head` each head has a map (the paper has one for all), so that heads on one place differ.
    """

    def __init__(
        self, width: int, local: int, heads: int, *, hidden: int | None, dropout: float, per_head: bool
    ) -> None:
        super().__init__()
        self.attention = Attention(local, heads, hidden or max(1, local // 2))
        self.maps = nn.ModuleList(nn.Linear(local, width) for _ in range(heads if per_head else 1))
        for layer in self.maps:
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(width)

    def forward(self, local: Local) -> Encoded:
        attention = self.attention(local)
        attended = attention @ local.tokens
        if len(self.maps) == 1:
            mapped = self.maps[0](attended)
        else:
            mapped = torch.stack([layer(attended[:, k]) for k, layer in enumerate(self.maps)], dim=1)
        residuals = self.dropout(torch.sigmoid(mapped))
        points = self.norm(local.whole[:, None] + residuals)
        return Encoded(points.squeeze(1) if points.shape[1] == 1 else points, None, attention, residuals)


class LogVariance(nn.Module):
    """The log-variance of an item (PCME); the log of standard deviations begins around `log_sigma`."""

    def __init__(self, width: int, local: int, *, hidden: int | None, log_sigma: float) -> None:
        super().__init__()
        self.attention = Attention(local, 1, hidden or max(1, local // 2))
        self.of_places = nn.Linear(local, width)
        self.of_whole = nn.Linear(width, width)
        nn.init.xavier_uniform_(self.of_places.weight)
        nn.init.constant_(self.of_places.bias, log_sigma)

    def forward(self, local: Local) -> Tensor:
        attended = (self.attention(local) @ local.tokens).squeeze(1)
        return 2 * (self.of_places(attended) + self.of_whole(local.whole))


Projection = Literal["auto", "shared", "own"]

_SENTENCE = "a picture of several things in a row"


class _OnTop(Network):
    def __init__(self, below: Network) -> None:
        super().__init__()
        self.below = below

    @property
    def logit_scale(self) -> nn.Parameter:
        return self.below.logit_scale

    def projections(self) -> Sequence[nn.Parameter]:
        return self.below.projections()

    def heads(self) -> Sequence[nn.Parameter]:
        backbone_parameters = {id(parameter) for parameter in self.below.parameters()}
        return [parameter for parameter in self.parameters() if id(parameter) not in backbone_parameters]

    def rows(self, encoded: Encoded) -> Tensor:
        """The finished rows that `comparison` compares; the point itself where that is the inner product."""
        finished = encoded.log_variance is not None or encoded.points.ndim == 3
        return rows(encoded) if finished else encoded.points


class PVSE(_OnTop):
    """PVSE: several points per item (Song and Soleymani 2019)."""

    def __init__(self, below: Network, image_heads: Heads, text_heads: Heads) -> None:
        super().__init__(below)
        self.image_heads, self.text_heads = image_heads, text_heads

    def encode_images(self, pixels: Tensor) -> Encoded:
        return self.image_heads(self.below.local_images(pixels))

    def encode_texts(self, tokens: Tensor) -> Encoded:
        return self.text_heads(self.below.local_texts(tokens))

    def comparison(self, *, seed: int = 0) -> RowSimilarity | None:
        heads = self.image_heads.attention.w2.out_features
        return MostSimilarHeads(heads) if heads > 1 else None


class PCME(_OnTop):
    """PCME: a Gaussian per item, and how a distance becomes a probability (Chun et al. 2021)."""

    def __init__(
        self,
        below: Network,
        image_heads: tuple[Heads, LogVariance],
        text_heads: tuple[Heads, LogVariance],
        match: tuple[float, float],
        *,
        samples: int = 7,
    ) -> None:
        super().__init__(below)
        self.samples = samples
        self.image_heads, self.image_spread = image_heads
        self.text_heads, self.text_spread = text_heads
        #: Scale and shift: two points at a distance d match with sigmoid(2 (shift - scale d)).
        self.match = nn.Parameter(torch.tensor(match))

    def forward(self, pixels: Tensor, tokens: Tensor) -> Answer:
        return super().forward(pixels, tokens)._replace(match=self.match)

    def encode_images(self, pixels: Tensor) -> Encoded:
        local = self.below.local_images(pixels)
        return self.image_heads(local)._replace(log_variance=self.image_spread(local))

    def encode_texts(self, tokens: Tensor) -> Encoded:
        local = self.below.local_texts(tokens)
        return self.text_heads(local)._replace(log_variance=self.text_spread(local))

    def comparison(self, *, seed: int = 0) -> RowSimilarity:
        scale, shift = (float(value) for value in self.match.detach().cpu())
        return Sampled(scale, shift, samples=self.samples, seed=seed)


def pvse(
    backbone: Backbone,
    *,
    heads: int = 2,
    hidden: int | None = None,
    dropout: float = 0.0,
    projection: Projection = "auto",
    seed: int = 0,
) -> Backbone:
    """`backbone` with several points per item: PVSE, with fresh weights from `seed`.

    `projection`: one map for all heads ("shared", as in the paper), one each ("own"), or ("auto") one each
    where the backbone knows nothing of places. The backbone's network is not copied.
    """
    if heads < 1:
        raise InputError("heads of PVSE", given=heads, allowed="1 or more")
    if projection not in get_args(Projection):
        raise InputError("projection of PVSE", given=projection, allowed=get_args(Projection))
    options = {"heads": heads, "hidden": hidden, "dropout": dropout, "projection": projection, "seed": seed}
    shown, sides = _shown(backbone), []
    with drawn_from(seed):
        for widths, positions in shown:
            own_projection = projection == "own" or (projection == "auto" and positions == 1)
            sides.append(Heads(*widths, heads, hidden=hidden, dropout=dropout, per_head=own_projection))
    return _with(backbone, PVSE(backbone.network, *sides), "pvse", options)


def pcme(
    backbone: Backbone,
    *,
    samples: int = 7,
    scale: float = 15.0,
    shift: float = 15.0,
    hidden: int | None = None,
    dropout: float = 0.0,
    log_sigma: float = -4.0,
    seed: int = 0,
) -> Backbone:
    """`backbone` with a Gaussian per item: PCME, with fresh weights from `seed`.

    The released code begins at `log_sigma` 0, where samples lie so far from their means that a short training
    forgets what the towers knew.
    """
    if samples < 1:
        raise InputError("samples of PCME", given=samples, allowed="1 or more")
    options: dict[str, Any] = {"samples": samples, "scale": scale, "shift": shift, "hidden": hidden}
    options |= {"dropout": dropout, "log_sigma": log_sigma, "seed": seed}
    shown, sides = _shown(backbone), []
    with drawn_from(seed):
        for widths, _ in shown:
            head = Heads(*widths, 1, hidden=hidden, dropout=dropout, per_head=False)
            sides.append((head, LogVariance(*widths, hidden=hidden, log_sigma=log_sigma)))
    images, texts = sides
    network = PCME(backbone.network, images, texts, (scale, shift), samples=samples)
    return _with(backbone, network, "pcme", options)


def rows(encoded: Encoded) -> Float[Tensor, "batch _"]:
    """One flat float32 row per item: points at length one, or the mean and log-variances of a Gaussian."""
    points = functional.normalize(encoded.points.float(), dim=-1)
    if encoded.log_variance is not None:
        return torch.cat([points, encoded.log_variance.float()], dim=1)
    return points.flatten(1)


def _shown(backbone: Backbone) -> list[tuple[tuple[int, int], int]]:
    """Of pictures and of texts the widths of the whole and of places, and how many places there are."""
    network = backbone.network
    if isinstance(network, _OnTop):
        problem = "heads stand on a network that has none"
        given = backbone.card.get("kind", type(network).__name__)
        raise InputError(problem, where=backbone.name, given=given, allowed="one point per item")
    pixels, tokens = backbone.sample(), backbone.tokens([_SENTENCE])
    training, device = network.training, backbone.device()
    network.eval()
    try:
        with torch.no_grad():
            both = network.local_images(pixels.to(device)), network.local_texts(tokens.to(device))
    finally:
        network.train(training)
    return [((local.whole.shape[1], local.tokens.shape[2]), local.tokens.shape[1]) for local in both]


def _with(backbone: Backbone, network: Network, kind: str, options: Mapping[str, object]) -> Backbone:
    network.to(backbone.device()).train(backbone.network.training)
    card = {"kind": kind, "on": backbone.card, **options}
    return replace(backbone, name=f"{kind}({backbone.name})", network=network, card=card)
