"""Right answers against judgements, by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from numpy import ndarray

from counterfoil.benchmarks.judgements import Judgements
from counterfoil.errors import DataError
from counterfoil.evaluation.judged_pairs import count, coverage, places, proposals
from counterfoil.stats.dependence import Sharing
from evaluation.test_annotators import worlds


def alone(n: int) -> Sharing:
    """Queries that share nothing."""
    return Sharing(np.arange(n)[:, None], np.full((n, 1), -1))


def test_coverage_by_hand() -> None:
    # Query 0: judged a b c, right a b, accepted a c: precision 1/2, recall 1 - 1/2.
    # Query 1: judged d, right nothing: left out. Query 2: judged e f, right e, accepted nothing: 0 and none.
    found = coverage(
        "mine",
        "t2i",
        query=np.array([0, 0, 0, 1, 2, 2]),
        right=np.array([1, 1, 0, 0, 1, 0], dtype=bool),
        accepted=np.array([1, 0, 1, 1, 0, 0], dtype=bool),
        sharing=alone(3),
    )
    assert found.precision[0] == pytest.approx(1 / 4)
    assert found.recall[0] == pytest.approx(1 / 2)
    assert (found.queries, found.left_out) == (2, 1)
    assert found.precision[1] < 1 / 4 < found.precision[2]
    nothing = coverage(
        "none",
        "t2i",
        query=np.array([0]),
        right=np.array([False]),
        accepted=np.array([True]),
        sharing=alone(1),
    )
    assert nothing.to_json()["precision"] == {"value": None, "low": None, "high": None}


def test_multiplicity() -> None:
    found = count("mine", "t2i", np.array([1, 3, 3, 0]))
    assert found.histogram == {0: 1, 1: 1, 3: 2}
    assert (found.total, found.mean, found.median) == (7, 1.75, 2.0)


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
