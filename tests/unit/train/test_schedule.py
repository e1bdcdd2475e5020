"""The learning rate: BiVLC's code step by step, PCME's once an epoch, and what holds of every schedule."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.errors import InputError
from counterfoil.train.optim import learning_rate
from counterfoil.train.recipes import RECIPES, Recipe


def rates(recipe, total):
    return [learning_rate(step, recipe=recipe, total=total) for step in range(total)]


def test_the_cosine_is_the_one_that_bivlc_used():
    # FORMATS 1c, by hand: lr (step + 1) / 50, then half a cosine over what is left.
    found = rates(RECIPES["coco"], 250)
    assert found[0] == pytest.approx(1e-6 / 50)
    assert found[24] == pytest.approx(1e-6 / 2)
    assert found[49] == found[50] == 1e-6
    assert found[150] == pytest.approx(1e-6 / 2)  # half way: cos(pi / 2) = 0
    assert found[249] == pytest.approx(0.5e-6 * (1 + math.cos(math.pi * 199 / 200)))


def test_a_cosine_by_epochs_is_torchs_cosine_annealing():
    torch = pytest.importorskip("torch")
    recipe = RECIPES["pcme"].staged()[0]
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=recipe.lr)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=recipe.epochs)
    steps = 7
    ours = rates(recipe, recipe.epochs * steps)
    for epoch in range(recipe.epochs):
        assert ours[epoch * steps : (epoch + 1) * steps] == pytest.approx([theirs.get_last_lr()[0]] * steps)
        optimiser.step()
        theirs.step()


def test_a_training_shorter_than_its_warm_up_only_rises():
    assert rates(Recipe("mine", lr=1.0, warmup=4), 3) == [0.25, 0.5, 0.75]
    assert rates(Recipe("mine", lr=1.0, warmup=4), 4) == [0.25, 0.5, 0.75, 1]


@given(
    st.sampled_from(["cosine", "cosine-epochs", "constant"]),
    st.integers(0, 60),
    st.integers(1, 300),
    st.integers(1, 12),
)
def test_it_is_never_zero_never_above_lr_and_falls_after_the_warm_up(schedule, warmup, total, epochs):
    found = rates(Recipe("mine", lr=3e-4, schedule=schedule, warmup=warmup, epochs=epochs), total)
    assert all(0 < rate <= 3e-4 for rate in found)
    rise, fall = found[:warmup], found[warmup:]
    assert rise == sorted(rise)
    assert fall == sorted(fall, reverse=True)


@pytest.mark.parametrize("step", [-1, 10, 11])
def test_a_step_outside_the_training_is_refused(step):
    with pytest.raises(InputError, match=f"given: {step}; allowed: 0 to 9"):
        learning_rate(step, recipe=RECIPES["coco"], total=10)
