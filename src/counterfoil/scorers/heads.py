"""Heads on top of a dual encoder: several points per item (PVSE), or the spread around one (PCME).

They look at places of a picture and words of a text (`Network.local_images`, `local_texts`) with attention
of their own, and add what they find there to the point of the whole.
"""

import torch
from torch import Tensor, nn

from counterfoil.scorers.networks import Encoded, Local


class Attention(nn.Module):
    """How much each head looks at each place: softmax of w2 tanh(w1 x) (Lin et al. 2017)."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.w1 = nn.Linear(width, hidden, bias=False)
        self.w2 = nn.Linear(hidden, heads, bias=False)
        nn.init.xavier_uniform_(self.w1.weight)
        nn.init.xavier_uniform_(self.w2.weight)

    def forward(self, local: Local) -> Tensor:
        """(batch, heads, places), zero where there is nothing; each head's sum is one.

        An item of nothing at all is looked at evenly.
        """
        scores = self.w2(torch.tanh(self.w1(local.places))).mT
        if local.nothing is not None:
            # Something must be left to look at: an empty text would get no numbers.
            closed = local.nothing & ~local.nothing.all(dim=1, keepdim=True)
            scores = scores.masked_fill(closed[:, None], -torch.inf)
        return scores.softmax(dim=2)


class Heads(nn.Module):
    """Several views of an item: norm(whole + sigmoid(map(what a head attends to))) (PVSE).

    The paper has one `map` for all heads. Heads that see one and the same place would all be alike with it:
    with `own` each head has one of its own.
    """

    def __init__(
        self, width: int, local: int, heads: int, *, hidden: int | None, dropout: float, own: bool
    ) -> None:
        super().__init__()
        self.attention = Attention(local, heads, hidden or max(1, local // 2))
        self.maps = nn.ModuleList(nn.Linear(local, width) for _ in range(heads if own else 1))
        for each in self.maps:
            nn.init.xavier_uniform_(each.weight)
            nn.init.zeros_(each.bias)
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(width)

    def forward(self, local: Local) -> Encoded:
        """Points (batch, heads, width), or (batch, width) for one head; with attention and residuals."""
        attention = self.attention(local)
        found = attention @ local.places
        if len(self.maps) == 1:
            mapped = self.maps[0](found)
        else:
            mapped = torch.stack([each(found[:, k]) for k, each in enumerate(self.maps)], dim=1)
        residuals = self.dropout(torch.sigmoid(mapped))
        points = self.norm(local.whole[:, None] + residuals)
        return Encoded(points.squeeze(1) if points.shape[1] == 1 else points, None, attention, residuals)


class LogVariance(nn.Module):
    """The log-variance of an item, from what it attends to and from the whole (PCME).

    As in the paper's image side, on both sides: no norm, no sigmoid, and no recurrent layer of its own. The
    sum of the maps is the logarithm of the standard deviation, which begins around `log_sigma`.
    """

    def __init__(self, width: int, local: int, *, hidden: int | None, log_sigma: float) -> None:
        super().__init__()
        self.attention = Attention(local, 1, hidden or max(1, local // 2))
        self.of_places = nn.Linear(local, width)
        self.of_whole = nn.Linear(width, width)
        nn.init.xavier_uniform_(self.of_places.weight)
        nn.init.constant_(self.of_places.bias, log_sigma)

    def forward(self, local: Local) -> Tensor:
        """(batch, width)."""
        found = (self.attention(local) @ local.places).squeeze(1)
        return 2 * (self.of_places(found) + self.of_whole(local.whole))
