"""A scorer of pairs ranks again what a first stage put first: how cross-encoders are used on large galleries.

Of each query, the first stage's first `depth` items come first, in the order of the second scorer with its
ties; all others stay behind them as the first stage had them.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from counterfoil.data.questions import Search
from counterfoil.data.scores import Placed
from counterfoil.errors import InputError
from counterfoil.metrics.plausible import Plausible

#: (captions, images) positions of pairs to their scores.
PairScores = Callable[[Int[ndarray, "pairs"], Int[ndarray, "pairs"]], Float[ndarray, "pairs"]]


def name(scorer: str, first_stage: str, depth: int) -> str:
    """What results call such a pair of scorers.

    >>> name("blip", "open-clip:ViT-B-32/openai", 32)
    'blip over the first 32 of open-clip:ViT-B-32/openai'
    """
    return f"{scorer} over the first {depth} of {first_stage}"


def listed(search: Search, placed: Placed, depth: int) -> tuple[Int[ndarray, "pairs"], Int[ndarray, "pairs"]]:
    """The query and the item of every pair to be scored again, by query."""
    top = placed.top[:, :depth]
    return np.repeat(search.queries, top.shape[1]), top.reshape(-1).astype(np.int64)


def reranked(search: Search, placed: Placed, again: Float[ndarray, "pairs"], depth: int) -> Placed:
    """The places after the second scorer gave `again` to the pairs of `listed`, in their order.

    What scores above a right answer that is not listed changes by as many listed items as were not above it
    before: those level with it. Raises `InputError` where a rule says what is right, which needs more than
    the places of single items.
    """
    if isinstance(search.positives, Plausible):
        raise InputError(
            "PMRP cannot be ranked again", hint="measure it with a dual encoder, or another benchmark"
        )
    n, depth = len(search), min(depth, placed.top.shape[1])
    values = again.reshape(n, depth)
    items, query = search.positives.items, search.positives.queries
    above, level = placed.above.copy(), placed.level.copy()
    found = above >= 0
    over = np.minimum(depth, above)
    above[found] += (depth - over)[found]
    level[found] -= (depth - over)[found]
    for q in range(n):
        own = slice(search.positives.starts[q], search.positives.starts[q + 1])
        hit, place = np.nonzero(items[own][:, None] == placed.top[q, :depth][None, :])
        mine = values[q, place]
        above[own.start + hit] = (values[q][None, :] > mine[:, None]).sum(axis=1)
        level[own.start + hit] = (values[q][None, :] == mine[:, None]).sum(axis=1)
    assert len(query) == len(above)
    order = np.argsort(-values, axis=1, kind="stable")
    top, scores = placed.top.copy(), placed.top_scores.copy()
    top[:, :depth] = np.take_along_axis(top[:, :depth], order, 1)
    scores[:, :depth] = np.take_along_axis(values, order, 1)
    # Two scorers' numbers do not compare.
    scores[:, depth:] = np.nan
    return Placed(above, level, placed.depth, top, scores)
