"""Accuracy of preferences against counting question by question."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.metrics import contrast
from counterfoil.metrics.ties import Ties

_WORTH = {Ties.STRICT: 0.0, Ties.HALF: 0.5, Ties.OPTIMISTIC: 1.0}


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(0, 3))
def test_by_counting(seed: int, n: int, draws: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 3, (n, 2, draws) if draws else (n, 2)).astype(float)
    label = rng.integers(0, 2, n)
    for ties, worth in _WORTH.items():
        found = contrast.preference_accuracy(scores, label, ties=ties)
        for q in range(n):
            each = []
            for draw in range(draws or 1):
                pair = scores[q, :, draw] if draws else scores[q]
                gap = pair[label[q]] - pair[1 - label[q]]
                each.append(1.0 if gap > 0 else worth if gap == 0 else 0.0)
            assert abs(found[q] - sum(each) / len(each)) < 1e-12
    second = contrast.ties_to_second(scores, label)
    half, tied = (
        contrast.preference_accuracy(scores, label, ties=Ties.STRICT),
        contrast.preference_tied(scores, label),
    )
    # A tie is right where the second is preferred.
    assert np.allclose(second, half + tied * label)
