"""Measures of quads, choices and preferences against definitions written out, and twins over tie orders."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, strategies as st
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


def orders(scores):
    """Every strict order that respects the scores, as pairs of a score and its place among equals."""
    flat = scores.ravel()
    return [
        [[(flat[0], p[0]), (flat[1], p[1])], [(flat[2], p[2]), (flat[3], p[3])]]
        for p in permutations(range(4))
    ]


@given(TIED)
def test_every_policy_of_ties_is_what_it_says_of_orders(scores):
    for name, defined in DEFINED.items():
        strict, half, optimistic = (contrast.QUAD[name](scores[None], ties=ties)[0] for ties in Ties)
        assert half == pytest.approx(np.mean([defined(order) for order in orders(scores)]), abs=1e-12), name
        assert strict == float(defined(scores)), name
        # Not losing is the strict comparison after the true pairs get a push smaller than any gap.
        assert optimistic == float(defined(scores + 0.5 * np.eye(2))), name


@given(TIED)
def test_group_match_compares_the_two_matchings(scores):
    gap = float(scores[0, 0] + scores[1, 1] - scores[0, 1] - scores[1, 0])
    for ties, at_tie in zip(Ties, (0.0, 0.5, 1.0), strict=True):
        expected = 1.0 if gap > 0 else 0.0 if gap < 0 else at_tie
        assert contrast.group_match(scores[None], ties=ties)[0] == expected


@pytest.mark.parametrize("name", OF_QUADS)
def test_chance_is_the_mean_over_all_orders_of_distinct_scores(name):
    # Group match depends on the numbers, not only on their order; with these no two matchings are equal.
    scores = np.array(list(permutations([1.0, 2.0, 4.0, 8.0]))).reshape(24, 2, 2)
    assert contrast.QUAD[name](scores).mean() == pytest.approx(contrast.QUAD[name].expected, abs=1e-12)
    constant = contrast.QUAD[name](np.full((1, 2, 2), 1e300), ties=Ties.HALF)
    assert constant == pytest.approx(contrast.QUAD[name].expected, abs=1e-12)
    assert not contrast.quad_tied(scores).any()


@given(ANY)
def test_the_margin_is_positive_where_all_is_right(scores):
    margin = contrast.quad_margin(scores[None])[0]
    assert (margin > 0) == (contrast.QUAD["group"](scores[None], ties=Ties.STRICT)[0] == 1)
    assert (margin >= 0) == (contrast.QUAD["group"](scores[None], ties=Ties.OPTIMISTIC)[0] == 1)


def test_a_tie_of_group_match_survives_rounding():
    # 0.0 + 0.5 = 0.4 + 0.1 in floating point, while 0.0 + 0.5 - 0.4 - 0.1 is -2.8e-17 there.
    scores = np.array([[[0.0, 0.4], [0.1, 0.5]]])
    assert contrast.group_match(scores, ties=Ties.OPTIMISTIC)[0] == 1


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(0, 3))
def test_by_counting(seed, n, draws):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 3, (n, 2, draws) if draws else (n, 2)).astype(float)
    label = rng.integers(0, 2, n)
    for ties, worth in ((Ties.STRICT, 0.0), (Ties.HALF, 0.5), (Ties.OPTIMISTIC, 1.0)):
        result = contrast.preference_accuracy(scores, label, ties=ties)
        for q in range(n):
            item = []
            for draw in range(draws or 1):
                pair = scores[q, :, draw] if draws else scores[q]
                gap = pair[label[q]] - pair[1 - label[q]]
                item.append(1.0 if gap > 0 else worth if gap == 0 else 0.0)
            assert abs(result[q] - sum(item) / len(item)) < 1e-12
    second = contrast.ties_to_second(scores, label)
    strict = contrast.preference_accuracy(scores, label, ties=Ties.STRICT)
    # A tie is right where the second is preferred.
    assert np.allclose(second, strict + contrast.preference_tied(scores, label) * label)


FORMS = [(k, m) for k in range(2, 7) for m in range(1, k)]


@pytest.mark.parametrize(("k", "m"), FORMS)
@pytest.mark.parametrize("constant", [0.0, -3.5, 1e300])
def test_a_constant_choice_gets_nothing_chance_or_everything(k, m, constant):
    scores = np.full((3, k), constant)
    assert (contrast.choice_accuracy(scores, correct=m, ties=Ties.STRICT) == 0).all()
    chance = np.mean([min(order[:m]) > max(order[m:]) for order in permutations(range(k))])
    assert contrast.choice_accuracy(scores, correct=m, ties=Ties.HALF) == pytest.approx(chance, abs=1e-12)
    assert (contrast.choice_accuracy(scores, correct=m, ties=Ties.OPTIMISTIC) == 1).all()
    assert contrast.choice_tied(scores, correct=m).all()


@given(st.sampled_from(FORMS), st.data())
def test_margin_and_tied_say_what_the_policies_do(form, data):
    k, m = form
    scores = np.array([data.draw(st.lists(st.integers(0, 3).map(float), min_size=k, max_size=k))])
    strict, _, optimistic = (contrast.choice_accuracy(scores, correct=m, ties=ties)[0] for ties in Ties)
    margin = contrast.choice_margin(scores, correct=m)[0]
    assert (margin > 0) == (strict == 1)
    assert (margin >= 0) == (optimistic == 1)
    # A question is tied exactly where the policies disagree about it.
    assert contrast.choice_tied(scores, correct=m)[0] == (strict != optimistic)
