"""Right answers against judgements, by hand."""

import numpy as np
import pytest

from counterfoil.evaluation.judged_pairs import count, coverage
from counterfoil.stats.dependence import Sharing


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
