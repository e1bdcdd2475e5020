"""Choices against a twin over tie orders, for every number of candidates and of correct ones."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.metrics import contrast
from counterfoil.metrics.ties import Ties

FORMS = [(k, m) for k in range(2, 7) for m in range(1, k)]


@pytest.mark.parametrize(("k", "m"), FORMS)
@pytest.mark.parametrize("constant", [0.0, -3.5, 1e300])
def test_a_constant_scorer_gets_nothing_chance_or_everything(k: int, m: int, constant: float) -> None:
    scores = np.full((3, k), constant)
    assert (contrast.choice_accuracy(scores, correct=m, ties=Ties.STRICT) == 0).all()
    chance = np.mean([min(order[:m]) > max(order[m:]) for order in permutations(range(k))])
    assert contrast.choice_accuracy(scores, correct=m, ties=Ties.HALF) == pytest.approx(chance, abs=1e-12)
    assert (contrast.choice_accuracy(scores, correct=m, ties=Ties.OPTIMISTIC) == 1).all()
    assert contrast.choice_tied(scores, correct=m).all()


@given(st.sampled_from([f for f in FORMS if f[0] <= 5]), st.data())
def test_half_is_the_mean_over_all_orders_of_tied_scores(form: tuple[int, int], data: st.DataObject) -> None:
    k, m = form
    scores = data.draw(st.lists(st.integers(0, 2).map(float), min_size=k, max_size=k))
    wins = []
    for tiebreak in permutations(range(k)):
        rank = list(zip(scores, tiebreak, strict=True))
        wins.append(min(rank[:m]) > max(rank[m:]))
    half = contrast.choice_accuracy(np.array([scores]), correct=m, ties=Ties.HALF)[0]
    assert half == pytest.approx(np.mean(wins), abs=1e-12)


@given(st.sampled_from(FORMS), st.data())
def test_margin_and_tied_say_what_the_policies_do(form: tuple[int, int], data: st.DataObject) -> None:
    k, m = form
    scores = np.array([data.draw(st.lists(st.integers(0, 3).map(float), min_size=k, max_size=k))])
    strict, _, optimistic = (contrast.choice_accuracy(scores, correct=m, ties=ties)[0] for ties in Ties)
    margin = contrast.choice_margin(scores, correct=m)[0]
    assert (margin > 0) == (strict == 1)
    assert (margin >= 0) == (optimistic == 1)
    # A question is tied exactly where the policies disagree about it.
    assert contrast.choice_tied(scores, correct=m)[0] == (strict != optimistic)
