"""The columns of ratings in a rank correlation of scorers: correlations, taken anew in every draw."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from counterfoil.evaluation.judged import rated
from counterfoil.evaluation.result import Run
from counterfoil.metrics.weighted_correlation import MEASURES, WeightedCorrelation
from counterfoil.stats.crossed import inflation
from counterfoil.stats.sharing import Sharing


@dataclass(frozen=True, eq=False)
class RatedColumns:
    """What each scorer's correlations are over, and which of them are columns."""

    points: tuple[tuple[rated.Points, ...], ...]
    measures: tuple[str, ...]
    clusters: Int[ndarray, "n"]

    @classmethod
    def of(cls, runs: Sequence[Run], measures: Sequence[str], clusters: Int[ndarray, "n"]) -> "RatedColumns":
        """Those of these runs, which are all on one benchmark."""
        points = tuple(rated.points(run.benchmark.rated, run.answers.scores) for run in runs)
        return cls(points, tuple(measures), clusters)

    def wide(self, sharing: Sharing) -> Float[ndarray, "models measures"]:
        """How much farther correlations move than draws of units say (`stats.crossed.inflation`)."""
        where = [MEASURES.index(name) for name in self.measures]
        moves = [rated.influence(parts, len(sharing))[:, where] for parts in self.points]
        return np.stack([inflation(sharing, moved) for moved in moves])

    def drawn(self, weights: Float[ndarray, "draws all"]) -> Float[ndarray, "draws models measures"]:
        """The correlations in each draw; NaN where one is not defined."""
        where = [MEASURES.index(name) for name in self.measures]
        return np.stack([rated.correlations(ready, [weights])[:, where] for ready in self._ready], axis=1)

    @cached_property
    def _ready(self) -> tuple[tuple[WeightedCorrelation, ...], ...]:
        return tuple(rated.prepared(parts, self.clusters) for parts in self.points)
