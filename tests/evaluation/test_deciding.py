"""How many questions decide a difference, against studies of so many drawn questions."""

from dataclasses import replace

import numpy as np
import pytest

from counterfoil.evaluation.compare import Difference, decided, questions_to_decide


@pytest.mark.parametrize("power", [0.5, 0.8, 0.9])
def test_so_many_questions_decide_it_as_often_as_asked(power: float) -> None:
    # Of the questions 20 % are right for one scorer alone, 16 % for the other alone.
    chances, n = (0.20, 0.16, 0.64), 300
    value = chances[0] - chances[1]
    spread = chances[0] + chances[1] - value**2
    half = 1.96 * np.sqrt(spread / n)
    needed = questions_to_decide(value, value - half, value + half, n, power=power)
    assert needed is not None
    one, other, _ = np.random.default_rng(0).multinomial(needed, chances, size=20_000).T
    found = (one - other) / needed
    error = np.sqrt(((one + other) / needed - found**2) / needed)
    # Three standard errors of a share of 20,000 studies, and half a point for the normal approximation.
    assert np.mean(np.abs(found) > 1.96 * error) == pytest.approx(power, abs=0.016)


def test_no_number_of_questions_decides_what_is_equal() -> None:
    assert questions_to_decide(0.0, -0.1, 0.1, 100) is None


def test_decided_is_what_interval_and_test_both_say() -> None:
    found = Difference("pairs", "accuracy", "a", "b", 0.1, 0.02, 0.18, 0.01, 0.03, None)
    assert decided(found)
    assert decided(replace(found, value=-0.1, low=-0.18, high=-0.02))
    assert not decided(replace(found, p_holm=0.06))
    assert not decided(replace(found, low=-0.01))
