"""Objectives: roles in their order, each with its loss, and the same loss from several devices."""

from dataclasses import replace

import pytest
import torch

from counterfoil.errors import InputError, ModelError
from counterfoil.models.networks import Answer, Encoded
from counterfoil.train import losses
from counterfoil.train.objectives import objective
from counterfoil.train.recipes import RECIPES, Recipe, read
from refusals import refuses

pytestmark = pytest.mark.models

ROWS, WIDTH, HEADS = 5, 6, 2


def answer(recipe, *, seed=0, heads=False, spread=False):
    """What a network might say of five rows, in double precision, all of it with gradients."""
    result = objective(recipe)
    generator = torch.Generator().manual_seed(seed)

    def made(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()

    def side(roles):
        rows = roles * ROWS
        return Encoded(
            made(rows, HEADS, WIDTH) if heads else made(rows, WIDTH),
            made(rows, WIDTH) if spread else None,
            residuals=made(rows, HEADS, WIDTH) if heads else None,
        )

    return Answer(
        side(len(result.images)),
        side(len(result.texts)),
        torch.tensor(0.7, dtype=torch.float64, requires_grad=True),
        torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True) if spread else None,
    )


@pytest.mark.parametrize(
    ("name", "images", "texts"),
    [("coco", 1, 1), ("trohn-text", 1, 2), ("negclip", 1, 2), ("trohn-img", 2, 2)],
)
def test_contrast_is_of_all_its_roles(name, images, texts):
    said = answer(RECIPES[name])
    left, right = said.images.points, said.texts.points
    assert (len(left), len(right)) == (images * ROWS, texts * ROWS)
    expected = losses.info_nce(left, right, said.logit_scale.exp())
    assert objective(RECIPES[name])(said)[0].item() == pytest.approx(expected.item(), rel=1e-6)


@pytest.mark.parametrize("directions", ["sum", "mean"])
def test_generated_positives_have_weights_of_their_own(directions):
    recipe = read("pac", lambda_v=0.3, lambda_t=0.2, directions=directions)
    said = answer(recipe)
    (image, made_image), (text, made_text) = (side.points.split(ROWS) for side in (said.images, said.texts))
    expected = losses.positive_augmented(
        image, text, made_image, made_text, said.logit_scale.exp(), lambda_v=0.3, lambda_t=0.2,
        halved=directions == "mean",
    )  # fmt: skip
    assert objective(recipe)(said)[0].item() == pytest.approx(expected.item(), rel=1e-6)


@pytest.mark.parametrize(("name", "mining"), [("vse0", "sum"), ("vse++", "hardest"), ("pvse", "hardest")])
def test_hinges_are_mined_as_their_recipes_say(name, mining):
    recipe = RECIPES[name]
    said = answer(recipe, heads=name == "pvse")
    similarity = losses.similarity(said.images.points, said.texts.points)
    hinge = losses.triplet(similarity, margin=recipe.margin, mining=mining, reduction="sum").item()
    loss, parts = objective(recipe)(said)
    mean = objective(replace(recipe, reduction="mean"))(said)
    if name != "pvse":
        assert (loss.item(), mean[0].item()) == pytest.approx((hinge, hinge / ROWS), rel=1e-6)
        return
    # Several vectors are compared by the best of them, kept apart, and both sides together.
    assert not any(part.requires_grad for part in parts.values())
    sides = said.images.residuals, said.texts.residuals
    expected = {
        "hinge": hinge,
        "diversity": sum(losses.diversity(side).item() for side in sides),
        "mmd": losses.mmd(said.images.points, said.texts.points).item(),
    }
    assert {name: part.item() for name, part in parts.items()} == pytest.approx(expected, rel=1e-6)
    whole = expected["hinge"] + 0.1 * expected["diversity"] + 0.01 * expected["mmd"]
    assert loss.item() == pytest.approx(whole, rel=1e-6)
    assert mean[1]["hinge"].item() == pytest.approx(hinge / ROWS, rel=1e-6)


def test_distributions_draw_what_torchs_generator_says():
    recipe = RECIPES["pcme"]
    said = answer(recipe, spread=True)
    torch.manual_seed(3)
    first, parts = objective(recipe)(said)
    second, _ = objective(recipe)(said)
    assert first.item() != second.item()
    torch.manual_seed(3)
    assert objective(recipe)(said)[0].item() == first.item()
    assert first.item() == pytest.approx((parts["matching"] + 1e-5 * parts["information"]).item(), rel=1e-9)


@pytest.mark.parametrize("name", [name for name in RECIPES if name != "detector"])
def test_everything_an_objective_needs_gets_a_gradient(name):
    recipe = RECIPES[name]
    said = answer(recipe, heads=name == "pvse", spread=name == "pcme")
    loss, _ = objective(recipe)(said)
    loss.backward()
    assert said.images.points.grad.abs().sum() > 0
    assert said.texts.points.grad.abs().sum() > 0
    learnt = ("coco", "negclip", "trohn-text", "trohn-img", "pac")
    assert (said.logit_scale.grad is not None) == (name in learnt)
    if said.match is not None:
        assert (said.match.grad != 0).all()


def test_half_precision_is_only_the_towers():
    recipe = RECIPES["coco"]
    said = answer(recipe)
    half = said._replace(
        images=Encoded(said.images.points.detach().bfloat16()),
        texts=Encoded(said.texts.points.detach().bfloat16()),
    )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, _ = objective(recipe)(half)
    assert loss.dtype == torch.float32
    full = said._replace(images=Encoded(half.images.points.float()), texts=Encoded(half.texts.points.float()))
    assert loss.item() == pytest.approx(objective(recipe)(full)[0].item(), rel=1e-6)


@pytest.mark.parametrize(
    ("name", "lacks"), [("pcme", "a variance per item"), ("pvse", "several vectors per item")]
)
def test_a_network_without_the_heads_is_one_line(name, lacks):
    words, recipe = f"recipe {name}: the network does not give {lacks}", RECIPES[name]
    refuses(words, objective(recipe), answer(recipe), error=ModelError)


def test_recipes_without_a_loss():
    with pytest.raises(InputError, match=r"detector \(Detection\); detectors are trained by"):
        objective(RECIPES["detector"])
    refuses(r"given: mine \(Recipe\)", objective, Recipe("mine"), error=InputError)
