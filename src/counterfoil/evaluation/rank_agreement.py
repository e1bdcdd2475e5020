"""Rank correlation of models' values between columns."""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.evaluation.rank_columns import RankColumn
from counterfoil.evaluation.result import or_none


@dataclass(frozen=True)
class Agreement:
    """How far two columns agree on the order of the models that both have; NaN where one is constant.

    `a` and `b` are names of columns, `tau` is Kendall's tau-b and `rho` Spearman's correlation, with the ends
    of their intervals.
    """

    a: str
    b: str
    models: int
    tau: float
    tau_low: float
    tau_high: float
    rho: float
    rho_low: float
    rho_high: float

    @property
    def sure(self) -> bool:
        """Whether the interval of tau leaves out 0."""
        return self.tau_low > 0 or self.tau_high < 0


@dataclass(frozen=True, eq=False)
class RankCorrelation:
    """Models by columns, and how far each pair of columns agrees on their order.

    `values` is (models, columns), NaN where a model was not run. `pairs` lacks those pairs of columns that
    have fewer than three models in common. `few` names columns that were left out for having too few models.
    """

    models: tuple[str, ...]
    columns: tuple[RankColumn, ...]
    values: Float[ndarray, "models columns"]
    pairs: tuple[Agreement, ...]
    few: tuple[str, ...]
    draws: int
    seed: int
    level: float

    @property
    def ranks(self) -> Float[ndarray, "models columns"]:
        """1 for the best of each column; equal models share the best of their ranks; NaN where not run."""
        with np.errstate(invalid="ignore"):
            better = self.values[None] > self.values[:, None]
        return np.where(np.isnan(self.values), np.nan, 1.0 + better.sum(axis=1))

    def pair(self, a: RankColumn, b: RankColumn) -> Agreement | None:
        """The agreement of two columns, in either order; None where too few models have both."""
        return self._by_names.get(frozenset((a.name, b.name)))

    @cached_property
    def _by_names(self) -> dict[frozenset[str], Agreement]:
        return {frozenset((pair.a, pair.b)): pair for pair in self.pairs}

    def to_json(self) -> dict[str, Any]:
        """Plain values, None for what is undefined."""
        return {
            "models": list(self.models),
            "columns": [asdict(column) for column in self.columns],
            "values": [[or_none(v) for v in row] for row in self.values.tolist()],
            "ranks": [[or_none(v) for v in row] for row in self.ranks.tolist()],
            "pairs": [{key: or_none(v) for key, v in asdict(pair).items()} for pair in self.pairs],
            "left_out": list(self.few),
            "interval": {
                "method": "models and clusters of queries drawn anew, percentiles",
                "level": self.level,
                "draws": self.draws,
                "seed": self.seed,
            },
        }
