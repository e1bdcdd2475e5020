"""What a scorer answered: scores per pair, or, where only those were kept, right and wrong per question."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from counterfoil.data.benchmark import Benchmark
from counterfoil.errors import ScoreError


@dataclass(frozen=True, eq=False)
class Scores:
    """One float64 score per pair a question asks about; higher means a better match.

    `values` is (n, 2 captions, 2 images) for quads and (n, k) for choices.
    """

    values: NDArray[np.float64]

    def check(self, benchmark: Benchmark, *, where: str) -> "Scores":
        """Itself, if it answers all of `benchmark`; `ScoreError` for wrong shapes, NaN and infinities."""
        shape = benchmark.questions.pairs()[0].shape
        if self.values.shape != shape:
            raise ScoreError(
                "scores have the wrong shape", where=where, given=self.values.shape, allowed=str(shape)
            )
        broken = ~np.isfinite(self.values)
        if broken.any():
            at = tuple(int(i) for i in np.argwhere(broken)[0])
            raise ScoreError(
                "score is not a finite number",
                where=f"{where}, question '{benchmark.questions.ids[at[0]]}', position {at[1:]}",
                given=self.values[at],
                allowed="finite numbers",
                hint=f"{int(broken.sum())} of {broken.size} scores are NaN or infinite",
            )
        return self


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Right or wrong per question, for each thing asked: what released result tables often keep.

    `right` maps `ipos2t`, `ineg2t`, `tpos2i`, `tneg2i` (quads) or `accuracy` (choices) to (n,) booleans.
    """

    right: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)


Answers = Scores | Outcomes
