"""The pairs that people judged, where each model has them, and which of them it proposed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterfoil.data.pools import Judgements
from counterfoil.errors import DataError
from counterfoil.stats.sharing import Sharing


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """The judged pairs of one direction, by query, and what each model does with them.

    `place` is where a model's own list has the pair, from 1 on, 0 where the list as deep as it is known
    (`depth` per model) does not. `proposed` says which model put which pair forward. `sharing` is what
    queries share: photographs, and the texts of captions.
    """

    direction: str
    models: tuple[str, ...]
    query: NDArray[np.int64]
    gain: NDArray[np.float64]
    place: NDArray[np.int64]
    proposed: NDArray[np.bool_]
    depth: tuple[int, ...]
    sharing: Sharing

    @property
    def n_queries(self) -> int:
        """How many queries there are."""
        return len(self.sharing)

    @property
    def found(self) -> NDArray[np.int64]:
        """Per query, how many right answers all models together found."""
        right = (self.gain > 0) & self.proposed.any(axis=1)
        return np.bincount(self.query[right], minlength=self.n_queries)


def places(
    query: NDArray[np.int64], item: NDArray[np.int64], tops: Sequence[NDArray[np.int64]]
) -> NDArray[np.int64]:
    """(pairs, models) where each model's list of a pair's query has its item, from 1 on; 0 where it has not.

    Lists are (queries, length) items, -1 behind the end.

    >>> places(np.array([0, 1]), np.array([7, 7]), [np.array([[4, 7], [5, -1]])]).tolist()
    [[2], [0]]
    """
    width = 1 + max([int(item.max(initial=0)), *(int(top.max(initial=0)) for top in tops)])
    wanted = query * width + item
    found = np.zeros((len(query), len(tops)), dtype=np.int64)
    for model, top in enumerate(tops):
        at, place = np.nonzero(top >= 0)
        codes = at * width + top[at, place]
        order = np.argsort(codes)
        spot = np.searchsorted(codes[order], wanted)
        there = spot < len(codes)
        there[there] = codes[order][spot[there]] == wanted[there]
        found[there, model] = place[order][spot[there]] + 1
    return found


def proposals(judged: Judgements, models: Sequence[str]) -> NDArray[np.int64] | None:
    """(pairs, models) the places at which the table says they were proposed; None where it says nothing.

    Raises `DataError` where it says so of some of the models only.
    """
    there = [name for name in models if name in judged.place]
    if not there:
        return None
    lacking = [name for name in models if name not in judged.place]
    if lacking:
        raise DataError(
            "the table says of some models only what they proposed",
            given=", ".join(lacking),
            allowed=", ".join(f"place:{name}" for name in judged.place),
            hint="give the models that made the pool, or leave those columns out",
        )
    return np.stack([judged.place[name] for name in models], axis=1)
