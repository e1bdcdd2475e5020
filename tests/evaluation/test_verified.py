"""Where models have the pairs that people judged."""

import numpy as np
from hypothesis import given, settings
from numpy import ndarray

from counterfoil.evaluation.verified import places

from .test_annotators import worlds


@settings(deadline=None)
@given(worlds())
def test_places_are_those_in_the_lists(world: tuple[list[ndarray], ndarray, int]) -> None:
    tops, gains, _ = world
    short = [np.where(np.arange(top.shape[1]) < top.shape[1] - m, top, -1) for m, top in enumerate(tops)]
    pairs = [(q, i) for q in range(len(gains)) for i in range(gains.shape[1])]
    query, item = np.array(pairs).T
    found = places(query, item, short)
    for row, (q, i) in zip(found.tolist(), pairs, strict=True):
        assert row == [list(top[q]).index(i) + 1 if i in top[q] else 0 for top in short]
