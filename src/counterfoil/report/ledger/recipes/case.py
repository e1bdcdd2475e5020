"""Input and output of a recomputation."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.errors import DataError
from counterfoil.metrics.correlation import pearson
from counterfoil.report.ledger.entry import Basis
from counterfoil.report.ledger.evidence import NoDataError, ReleasedFiles
from counterfoil.report.ledger.paper import Paper, PaperModel, Spec


class Recomputed(NamedTuple):
    """A recomputed number, in the unit of the paper, and what it was computed from."""

    value: float | int
    source: str
    basis: Basis = Basis.DATA


@dataclass(frozen=True)
class Case:
    """One cell: what is said of it, the row it stands in, and where its data may be."""

    paper: Paper
    row: str
    spec: Spec
    evidence: ReleasedFiles

    def need(self, field: str) -> str:
        """What the spec says under `field`; raises `DataError` where the paper's file forgot it."""
        value = getattr(self.spec, field)
        if not value:
            raise DataError(
                f"the row has no '{field}'", where=f"papers/{self.paper.name}.toml", given=self.row
            )
        return str(value)

    @property
    def model(self) -> PaperModel | None:
        """Whose answers the row is about; None where it is about no model."""
        return self.paper.models.get(self.spec.model or self.row)

    def file(self) -> str:
        """The file of the model's answers to the benchmark; raises `NoDataError` where there is none."""
        model, benchmark = self.model, self.need("benchmark")
        if model is None:
            raise DataError("no model of this name", where=f"papers/{self.paper.name}.toml", given=self.row)
        if model.missing or benchmark not in model.files:
            raise NoDataError(model.missing or f"no answers to {benchmark} are known")
        return model.files[benchmark]

    def values(self, measure: str) -> Float[ndarray, "n"]:
        """The measure's value per question of the cell's benchmark, in [0, 1]."""
        return self.evidence.values(self.need("benchmark"), self.file())[measure]

    def pearson(self, x: Float[ndarray, "n"], y: Float[ndarray, "n"]) -> float:
        """Pearson's r, or its p-value where the spec's statistic is "p"."""
        r, p = pearson(x, y)
        if np.isnan(r):
            raise NoDataError("no correlation is defined: a column has the same number everywhere")
        return p if self.need("statistic") == "p" else r

    def columns(self, references: tuple[str, ...] | None, count: int | None = None) -> list[dict[str, float]]:
        """Printed columns by row; raises `DataError` where there are not `count` (for None, not one)."""
        of = references or ()
        if len(of) != count if count is not None else not of:
            raise DataError(
                "wrong number of printed columns",
                where=f"papers/{self.paper.name}.toml, {self.row}",
                given=len(of),
                allowed="1 or more" if count is None else str(count),
            )
        return [self.paper.printed(reference) for reference in of]
