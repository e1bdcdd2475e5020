"""The quad measures against definitions written out, and the same measures from a twin over tie orders."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from counterfoil.metrics import contrast
from counterfoil.metrics.ties import Ties

#: A quad of few distinct numbers, so that ties are common, and one of any finite numbers.
TIED = arrays(np.float64, (2, 2), elements=st.integers(0, 2).map(float))
ANY = arrays(np.float64, (2, 2), elements=st.floats(-1e6, 1e6, allow_nan=False))

#: Winoground equations 1 to 3 and BiVLC appendix D, written out; `a[c][i]` are strictly ordered scores.
DEFINED = {
    "ipos2t": lambda a: a[0][0] > a[1][0],
    "ineg2t": lambda a: a[1][1] > a[0][1],
    "tpos2i": lambda a: a[0][0] > a[0][1],
    "tneg2i": lambda a: a[1][1] > a[1][0],
    "i2t": lambda a: a[0][0] > a[1][0] and a[1][1] > a[0][1],
    "t2i": lambda a: a[0][0] > a[0][1] and a[1][1] > a[1][0],
    "group": lambda a: a[0][0] > a[1][0] and a[1][1] > a[0][1] and a[0][0] > a[0][1] and a[1][1] > a[1][0],
}


#: Those with a value per quad; the others are means of these over groups.
OF_QUADS = [name for name, measure in contrast.QUAD.items() if not measure.macro_of]


def orders(scores: np.ndarray) -> list[list[list[tuple[float, int]]]]:
    """Every strict order that respects the scores, as pairs of a score and its place among equals."""
    flat = scores.ravel()
    return [
        [[(flat[0], p[0]), (flat[1], p[1])], [(flat[2], p[2]), (flat[3], p[3])]]
        for p in permutations(range(4))
    ]


@pytest.mark.parametrize("name", DEFINED)
@given(TIED)
def test_half_is_the_mean_over_all_orders_of_tied_scores(name: str, scores: np.ndarray) -> None:
    expected = np.mean([DEFINED[name](order) for order in orders(scores)])
    assert contrast.QUAD[name](scores[None], ties=Ties.HALF)[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", DEFINED)
@given(TIED)
def test_strict_needs_every_order_and_optimistic_needs_each_comparison_not_lost(
    name: str, scores: np.ndarray
) -> None:
    strict = contrast.QUAD[name](scores[None], ties=Ties.STRICT)[0]
    assert strict == float(DEFINED[name](scores))
    optimistic = contrast.QUAD[name](scores[None], ties=Ties.OPTIMISTIC)[0]
    # Not losing is the strict comparison after the true pairs get a push smaller than any gap.
    assert optimistic == float(DEFINED[name](scores + 0.5 * np.eye(2)))


@given(TIED)
def test_group_match_compares_the_two_matchings(scores: np.ndarray) -> None:
    gap = float(scores[0, 0] + scores[1, 1] - scores[0, 1] - scores[1, 0])
    for ties, at_tie in zip(Ties, (0.0, 0.5, 1.0), strict=True):
        expected = 1.0 if gap > 0 else 0.0 if gap < 0 else at_tie
        assert contrast.group_match(scores[None], ties=ties)[0] == expected


@pytest.mark.parametrize("name", OF_QUADS)
@given(st.floats(-1e300, 1e300), st.integers(1, 5))
def test_a_constant_scorer_gets_nothing_chance_or_everything(name: str, constant: float, n: int) -> None:
    scores = np.full((n, 2, 2), constant)
    measure = contrast.QUAD[name]
    assert (measure(scores, ties=Ties.STRICT) == 0).all()
    assert (measure(scores, ties=Ties.HALF) == contrast.QUAD[name].expected).all()
    assert (measure(scores, ties=Ties.OPTIMISTIC) == 1).all()
    assert contrast.quad_tied(scores).all()


@pytest.mark.parametrize("name", OF_QUADS)
def test_chance_is_the_mean_over_all_orders_of_distinct_scores(name: str) -> None:
    # Group match depends on the numbers, not only on their order; with these no two matchings are equal.
    scores = np.array(list(permutations([1.0, 2.0, 4.0, 8.0]))).reshape(24, 2, 2)
    assert contrast.QUAD[name](scores).mean() == pytest.approx(contrast.QUAD[name].expected, abs=1e-12)
    assert not contrast.quad_tied(scores).any()


@pytest.mark.parametrize("name", OF_QUADS)
@given(ANY)
def test_margins_are_positive_where_the_strict_measure_is_won(name: str, scores: np.ndarray) -> None:
    margin = contrast.quad_margins(scores[None])[name][0]
    assert (margin > 0) == (contrast.QUAD[name](scores[None], ties=Ties.STRICT)[0] == 1)
    assert (margin >= 0) == (contrast.QUAD[name](scores[None], ties=Ties.OPTIMISTIC)[0] == 1)


def test_margins_of_group_match_survive_rounding() -> None:
    # 0.0 + 0.5 = 0.4 + 0.1 in floating point, while 0.0 + 0.5 - 0.4 - 0.1 is -2.8e-17 there.
    scores = np.array([[[0.0, 0.4], [0.1, 0.5]]])
    assert contrast.group_match(scores, ties=Ties.OPTIMISTIC)[0] == 1
    assert contrast.quad_margins(scores)["group_match"][0] == 0


@given(arrays(np.bool_, (4, 9)))
def test_outcomes_give_the_measures_that_strict_scores_give(right: np.ndarray) -> None:
    names = ("ipos2t", "ineg2t", "tpos2i", "tneg2i")
    values = contrast.from_directions(dict(zip(names, right, strict=True)))
    assert values["i2t"].tolist() == (right[0] & right[1]).astype(float).tolist()
    assert values["t2i"].tolist() == (right[2] & right[3]).astype(float).tolist()
    assert values["group"].tolist() == right.all(axis=0).astype(float).tolist()
    assert "group_match" not in values


@given(arrays(np.float64, (5, 2, 2), elements=st.integers(0, 3).map(float)))
def test_group_is_both_directions_and_matching_is_no_harder(scores: np.ndarray) -> None:
    for ties in (Ties.STRICT, Ties.OPTIMISTIC):
        both = contrast.i2t(scores, ties=ties) * contrast.t2i(scores, ties=ties)
        assert contrast.group(scores, ties=ties).tolist() == both.tolist()
    for one in ("i2t", "t2i", "group"):
        assert (contrast.QUAD[one](scores) <= contrast.group_match(scores)).all()
