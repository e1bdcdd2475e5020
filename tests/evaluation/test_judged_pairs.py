"""Where models have the pairs that people judged."""

import numpy as np
import pytest
from hypothesis import given, settings
from numpy import ndarray

from counterfoil.data.judgements import Judgements
from counterfoil.errors import DataError
from counterfoil.evaluation.judged_pairs import places, proposals

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


def test_a_table_says_of_all_models_what_they_proposed_or_of_none() -> None:
    place = {"b": np.array([2, 0]), "a": np.array([1, 3])}
    pairs = (np.array([0, 0]), np.array([0, 1]), np.ones(2))
    judged = Judgements("t2i", ("7",), ("5", "6"), *pairs, place)
    found = proposals(judged, ("a", "b"))
    assert found is not None
    assert found.tolist() == [[1, 2], [3, 0]]
    assert proposals(judged, ("c", "d")) is None
    with pytest.raises(DataError, match="of some models only what they proposed; given: c; allowed: place:b"):
        proposals(judged, ("a", "c"))
