"""The learning rate of each step; decay, freezing, and optimisers that take the recipe's values."""

import math

import pytest
import torch
from hypothesis import given, strategies as st
from torch import nn

from counterfoil.errors import InputError
from counterfoil.models.networks import Network
from counterfoil.train.optim import decays, learning_rate, optimiser, parameter_groups, trained_parameters
from counterfoil.train.recipes import RECIPES, Recipe

pytestmark = pytest.mark.models


class Towers(Network):
    """Every kind of name that the rule of decay knows, and a head on top."""

    def __init__(self, *, head=True):
        super().__init__()
        self.visual = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
        self.ln_final = nn.LayerNorm(4)
        self.proj = nn.Parameter(torch.zeros(4, 4))
        # Two dimensions, yet a name of the rule: open_clip leaves such out too.
        self.ln_table = nn.Parameter(torch.zeros(2, 2))
        self.logit_scale = nn.Parameter(torch.tensor(1.0))
        self.head = nn.Linear(4, 2) if head else None

    def projections(self):
        return (self.proj,)

    def heads(self):
        return tuple(self.head.parameters()) if self.head is not None else ()


def names(network, parameters):
    wanted = {id(parameter) for parameter in parameters}
    return {name for name, parameter in network.named_parameters() if id(parameter) in wanted}


def test_only_matrices_decay_or_all_where_the_recipe_says_so():
    network = Towers()
    decayed, rest = parameter_groups(network, RECIPES["coco"])
    assert (decayed["weight_decay"], rest["weight_decay"]) == (0.1, 0.0)
    assert names(network, decayed["params"]) == {"visual.0.weight", "proj", "head.weight"}
    everything = {name for name, _ in network.named_parameters()}
    assert names(network, rest["params"]) == everything - {"visual.0.weight", "proj", "head.weight"}
    (group,) = parameter_groups(network, Recipe("mine", decay="all"))
    assert names(network, group["params"]) == everything


def test_the_rule_is_open_clips():
    # As open_clip_train writes it, on a network of open_clip's own.
    open_clip = pytest.importorskip("open_clip")
    vision = {"layers": 1, "width": 64, "patch_size": 16, "image_size": 32}
    text = {"layers": 1, "width": 64, "heads": 1, "vocab_size": 50}
    model = open_clip.CLIP(embed_dim=8, vision_cfg=vision, text_cfg=text)

    def excluded(name, parameter):
        return parameter.ndim < 2 or any(part in name for part in ("bn", "ln", "bias", "logit_scale"))

    theirs = {name for name, parameter in model.named_parameters() if not excluded(name, parameter)}
    ours = {name for name, parameter in model.named_parameters() if decays(name, parameter, RECIPES["coco"])}
    assert ours == theirs
    assert len(theirs) > 5


def test_what_is_not_trained_is_frozen_and_opened_again():
    network = Towers()
    parameter_groups(network, RECIPES["pac"])
    assert {name for name, item in network.named_parameters() if item.requires_grad} == {"proj"}
    first, second = RECIPES["pcme"].staged()
    parameter_groups(network, first)
    opened = {name for name, item in network.named_parameters() if item.requires_grad}
    assert opened == {"head.weight", "head.bias"}
    parameter_groups(network, second)
    closed = {name for name, item in network.named_parameters() if not item.requires_grad}
    assert closed == {"logit_scale"}  # no loss of PCME has a temperature


def test_the_temperature_is_trained_beside_a_part_and_one_that_is_not_there_is_one_line():
    network = Towers()
    recipe = Recipe("mine", trains="projections")
    assert [name for name, _ in trained_parameters(network, recipe)] == ["proj", "logit_scale"]
    with pytest.raises(InputError, match="recipe pcme: the network has no heads to train; given: Towers"):
        parameter_groups(Towers(head=False), RECIPES["pcme"].staged()[0])


@pytest.mark.parametrize(("name", "kind"), [("coco", "AdamW"), ("detector", "Adam"), ("pcme", "AdamP")])
def test_optimisers_have_the_recipes_values(name, kind):
    network, recipe = Towers(), RECIPES[name].staged()[-1]
    made = optimiser(parameter_groups(network, recipe), recipe)
    assert type(made).__name__ == kind
    for group in made.param_groups:
        assert (group["lr"], tuple(group["betas"]), group["eps"]) == (recipe.lr, recipe.betas, recipe.eps)


def rates(recipe, total):
    return [learning_rate(step, recipe=recipe, total=total) for step in range(total)]


def test_the_cosine_is_the_one_that_bivlc_used_and_a_short_training_only_rises():
    # FORMATS 1c, by hand: lr (step + 1) / 50, then half a cosine over what is left.
    result = rates(RECIPES["coco"], 250)
    assert result[0] == pytest.approx(1e-6 / 50)
    assert result[24] == pytest.approx(1e-6 / 2)
    assert result[49] == result[50] == 1e-6
    assert result[150] == pytest.approx(1e-6 / 2)  # half way: cos(pi / 2) = 0
    assert result[249] == pytest.approx(0.5e-6 * (1 + math.cos(math.pi * 199 / 200)))
    assert rates(Recipe("mine", lr=1.0, warmup=4), 3) == [0.25, 0.5, 0.75]
    assert rates(Recipe("mine", lr=1.0, warmup=4), 4) == [0.25, 0.5, 0.75, 1]


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


@given(
    st.sampled_from(["cosine", "cosine-epochs", "constant"]),
    st.integers(0, 60),
    st.integers(1, 300),
    st.integers(1, 12),
)
def test_it_is_never_zero_never_above_lr_and_falls_after_the_warm_up(schedule, warmup, total, epochs):
    result = rates(Recipe("mine", lr=3e-4, schedule=schedule, warmup=warmup, epochs=epochs), total)
    assert all(0 < rate <= 3e-4 for rate in result)
    rise, fall = result[:warmup], result[warmup:]
    assert rise == sorted(rise)
    assert fall == sorted(fall, reverse=True)


@pytest.mark.parametrize("step", [-1, 10, 11])
def test_a_step_outside_the_training_is_refused(step):
    with pytest.raises(InputError, match=f"given: {step}; allowed: 0 to 9"):
        learning_rate(step, recipe=RECIPES["coco"], total=10)
