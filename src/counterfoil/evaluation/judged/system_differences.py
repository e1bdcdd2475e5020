"""Two metrics of systems: by how much do their correlations with people differ, and is it luck?

What is drawn for the interval is swapped for the test (D. Deutsch, R. Dror, D. Roth, A statistical analysis
of summarization evaluation metrics using resampling methods, 2021): both metrics' scores of an image, of all
systems, or both metrics' numbers of a system, standardised so that they can be. Williams' test is given
beside it (Y. Graham, T. Baldwin, Testing for significance of increased correlation with human judgment,
2014): it is of Pearson's correlation, with systems as units.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.evaluation.judged.system_draws import LEAST, MEASURES, SystemDraws, measures
from counterfoil.evaluation.judged.system_scores import SystemScores
from counterfoil.evaluation.result import or_none
from counterfoil.stats.resampling import sign_draws
from counterfoil.stats.tests import holm, williams


@dataclass(frozen=True)
class SystemDifference:
    """Metric `a`'s correlation with a human score less metric `b`'s.

    `low` and `high` are over what was drawn, `p` of swapping it, `p_holm` the same over all pairs of metrics
    and measures of the human score; `williams` is of Pearson's correlation alone. NaN what is not known.
    """

    a: str
    b: str
    human: str
    measure: str
    value: float
    low: float
    high: float
    p: float
    p_holm: float
    williams: float

    def to_json(self) -> dict[str, Any]:
        """Plain values, None for NaN."""
        return {name: or_none(value) for name, value in asdict(self).items()}


def differences_of(
    human: str, columns: Mapping[str, tuple[SystemScores, SystemScores]], drawing: SystemDraws
) -> list[SystemDifference]:
    """Every pair of metrics over the systems that both (and people) have."""
    made: list[tuple[str, str, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float]] = []
    for a, b in combinations(columns, 2):
        systems = [s for s in columns[a][0].systems if s in columns[b][0].systems]
        if len(systems) < LEAST:
            continue
        first, second, theirs = (
            of.of_systems(systems) for of in (columns[a][0], columns[b][0], columns[a][1])
        )
        between = measures(np.stack([of.fixed for of in (first, second, theirs)], axis=1)[None])[0]
        values = between[:, 0, 2] - between[:, 1, 2]
        if np.isnan(values).any():
            continue
        ends = np.full((2, len(MEASURES)), np.nan)
        if drawing.drawable(first, second, theirs):
            samples = drawing.correlations(first, second, theirs)
            ends = drawing.ends(samples[:, :, 0, 2] - samples[:, :, 1, 2])
            ends = np.stack([np.fmin(ends[0], values), np.fmax(ends[1], values)])
        p = _swapped(first, second, theirs, values, drawing)
        of_pearson = between[-1]
        both = (
            float("nan")
            if len(systems) < LEAST + 1
            else williams(
                float(of_pearson[0, 2]), float(of_pearson[1, 2]), float(of_pearson[0, 1]), len(systems)
            )
        )
        made.append((a, b, values, ends, p, both))
    tested = np.concatenate([each[4] for each in made]) if made else np.empty(0)
    adjusted = np.full(len(tested), np.nan)
    adjusted[~np.isnan(tested)] = holm(tested[~np.isnan(tested)])
    return [
        SystemDifference(
            a, b, human, name, float(values[k]), float(ends[0][k]), float(ends[1][k]), float(p[k]),
            float(adjusted[len(MEASURES) * i + k]), both if name == "pearson" else float("nan"),
        )
        for i, (a, b, values, ends, p, both) in enumerate(made)
        for k, name in enumerate(MEASURES)
    ]  # fmt: skip


def _swapped(
    first: SystemScores,
    second: SystemScores,
    theirs: SystemScores,
    values: NDArray[np.float64],
    drawing: SystemDraws,
) -> NDArray[np.float64]:
    """p of "both metrics could as well be swapped", image by image or system by system.

    NaN over images where a metric is no mean of images' scores.
    """
    if drawing.over == "systems":
        one, other = (((of.fixed - of.fixed.mean()) / of.fixed.std())[None] for of in (first, second))
        one, other = one.T, other.T
    elif first.scores is None or second.scores is None or first.scores.shape != second.scores.shape:
        return np.full(len(MEASURES), np.nan)
    else:
        one, other = ((of.scores - of.scores.mean()) / of.scores.std() for of in (first, second))  # type: ignore[union-attr]
    reached = np.zeros(len(MEASURES))
    units = len(one) if drawing.over == "systems" else one.shape[1]
    for signs in sign_draws(units, drawing.draws, seed=drawing.seed):
        if drawing.over == "systems":
            moved = signs * (one - other)[:, 0] / 2
            middle = (one + other)[:, 0] / 2
        else:
            moved = signs.astype(np.float64) @ (one - other).T / (2 * units)
            middle = (one + other).mean(axis=1) / 2
        people = np.broadcast_to(theirs.fixed, moved.shape)
        made = measures(np.stack([middle + moved, middle - moved, people], axis=2))
        gap = np.abs(made[:, :, 0, 2] - made[:, :, 1, 2])
        # A mixture that is the same of all systems goes along with nothing.
        reached += (np.nan_to_num(gap) >= np.abs(values) - 1e-9).sum(axis=0)
    return (1 + reached) / (drawing.draws + 1)
