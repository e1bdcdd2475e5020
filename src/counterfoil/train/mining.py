"""Mining of negatives for a triplet loss, as masks over a batch's similarities.

Row i is a query, column j an item, and (i, i) the right pair; transposed, the items ask. Where a gradient
flows is the loss's business: a mask has none.
"""

from collections.abc import Callable, Mapping
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Mining = Literal["sum", "semi-hard", "hardest"]


def wrong(similarity: Float[Tensor, "rows rows"]) -> Bool[Tensor, "rows rows"]:
    """All pairs but the right ones: no mining (VSE0).

    >>> wrong(torch.zeros(2, 2)).tolist()
    [[False, True], [True, False]]
    """
    return ~torch.eye(len(similarity), dtype=torch.bool, device=similarity.device)


def hardest(similarity: Float[Tensor, "rows rows"]) -> Bool[Tensor, "rows rows"]:
    """The most similar wrong item of each row, the first of equals (VSE++: Faghri et al. 2018).

    A batch of one has no wrong item, and an empty mask.

    >>> hardest(torch.tensor([[0.9, 0.1, 0.3], [0.2, 0.1, 0.0], [0.5, 0.5, 0.9]])).int().tolist()
    [[0, 0, 1], [1, 0, 0], [1, 0, 0]]
    """
    return _most_similar(similarity, wrong(similarity))


def semi_hard(similarity: Float[Tensor, "rows rows"]) -> Bool[Tensor, "rows rows"]:
    """The most similar wrong item of each row among those less similar than the right one.

    These are right already, if by little: what is more similar than the right item, such as an unmarked
    right one, is left alone (FaceNet: Schroff et al. 2015). A row without any counts nothing. With a margin
    m, an item less similar by m or more has no loss, so only those within the margin are felt.

    >>> semi_hard(torch.tensor([[0.4, 0.5, 0.3], [0.2, 0.1, 0.1], [0.5, 0.6, 0.9]])).int().tolist()
    [[0, 0, 1], [0, 0, 0], [0, 1, 0]]
    """
    right = similarity.diagonal()[:, None]
    return _most_similar(similarity, wrong(similarity) & (similarity < right))


#: The rules by name: a similarity to the pairs that count.
RULES: Mapping[Mining, Callable[[Tensor], Tensor]] = {
    "sum": wrong,
    "semi-hard": semi_hard,
    "hardest": hardest,
}


def _most_similar(
    similarity: Float[Tensor, "rows rows"], among: Bool[Tensor, "rows rows"]
) -> Bool[Tensor, "rows rows"]:
    """The first of the highest in each row among some, if there are any."""
    open_only = similarity.detach().masked_fill(~among, -torch.inf)
    # argmax promises nothing of equals; the first true of "is the highest" is the first.
    highest = open_only == open_only.amax(dim=1, keepdim=True)
    first = highest & (highest.cumsum(dim=1) == 1)
    return first & among
