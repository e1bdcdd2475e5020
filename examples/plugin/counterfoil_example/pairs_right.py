"""A measure: the share of a quad's two right pairs that score above both wrong ones."""

import numpy as np

from counterfoil.metrics.contrast import all_above
from counterfoil.metrics.measures import Measure
from counterfoil.metrics.ties import Ties


def pairs_right(scores: np.ndarray, *, ties: Ties = Ties.STRICT) -> np.ndarray:
    """0, 1/2 or 1 per question, from scores (n, 2, 2) of captions with images."""
    wrong = scores[:, [0, 1], [1, 0]]
    return np.mean([all_above(scores[:, [k], [k]], wrong, ties=ties) for k in (0, 1)], axis=0)


MEASURE = Measure(
    "pairs_right",
    form="quad",
    label="Pairs right",
    meaning="the share of the two right pairs that score above both wrong ones",
    chance="1/3",
    per_item=pairs_right,
)
