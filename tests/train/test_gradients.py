"""A step of several batches has the gradient of one step with all their rows, whatever the loss."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning_fabric")

import numpy as np  # noqa: E402
from lightning_fabric import Fabric  # noqa: E402

import thumbnails  # noqa: E402
from counterfoil.scorers.networks import Answer, Backbone, Encoded  # noqa: E402
from counterfoil.train.dataloaders import Batch  # noqa: E402
from counterfoil.train.objectives import Objective, objective, with_heads  # noqa: E402
from counterfoil.train.optim import (  # noqa: E402
    WrappedNetwork,
    gradients,
    joined,
)
from counterfoil.train.recipes import RECIPES, Recipe, read  # noqa: E402
from counterfoil.train.state import random_state, set_random_state  # noqa: E402

pytestmark = pytest.mark.models

ROWS, TURNS = 4, 3
#: Spreads wide enough for what is drawn to matter, and a KL term that can be seen.
CHANGED = {"pcme": {"log_sigma": -1.0, "vib_beta": 0.1}, "vse++": {"margin": 0.9}}
RECIPES = [name for name in RECIPES if name != "detector"]


def made(name: str, *, dropout: float) -> tuple[Recipe, Backbone, Objective]:
    recipe = read(name, **CHANGED.get(name, {}))
    backbone = with_heads(thumbnails.thumb(dropout=dropout), recipe)
    backbone.network.double().train()
    return recipe, backbone, objective(recipe)


def batch(aim: Objective, rows: np.ndarray) -> Batch:
    """The rows as a feed makes them: role after role. Texts of different batches differ in length."""
    data = thumbnails.rows(ROWS * TURNS, negatives=True)
    columns = {**data.rows}
    for kind in ("image", "caption"):
        columns[f"generated_{kind}"] = columns[f"negative_{kind}"][::-1]
    images = [data.images[i] for role in aim.images for i in columns[role][rows]]
    texts = [data.captions[i].text or "" for role in aim.texts for i in columns[role][rows]]
    pixels = thumbnails.pixels([thumbnails.Shrunk()(image.decode()) for image in images])
    return Batch(0, rows, pixels.double(), thumbnails.tokens(texts))


def parts(aim: Objective) -> list[Batch]:
    return [batch(aim, rows) for rows in np.split(np.arange(ROWS * TURNS), TURNS)]


def grads(backbone: Backbone) -> dict[str, torch.Tensor]:
    named = backbone.network.named_parameters()
    return {name: each.grad.clone() for name, each in named if each.grad is not None}


def by_steps(backbone: Backbone, aim: Objective, batches: list[Batch]) -> tuple[dict, dict]:
    """What `gradients` finds, with torch's generator at one place at the start."""
    fabric = Fabric(accelerator="cpu", devices=1)
    model = fabric.setup_module(WrappedNetwork(backbone.network))
    backbone.network.zero_grad()
    torch.manual_seed(5)
    said = gradients(model, aim, batches, fabric=fabric, gather=lambda rows: rows)
    return {name: value.item() for name, value in said.items()}, grads(backbone)


def in_one_graph(backbone: Backbone, aim: Objective, batches: list[Batch]) -> tuple[dict, dict]:
    """The twin: all batches forward with their graphs, role by role put together by hand, one backward."""
    backbone.network.zero_grad()
    torch.manual_seed(5)
    answers = [backbone.network(each.pixels, each.tokens) for each in batches]

    def side(which: str, roles: int) -> Encoded:
        def together(field: str) -> torch.Tensor | None:
            found = [getattr(getattr(answer, which), field) for answer in answers]
            if field == "attention" or found[0] is None:
                return None
            n = [len(each) // roles for each in found]
            return torch.cat(
                [each[r * k : (r + 1) * k] for r in range(roles) for each, k in zip(found, n, strict=True)]
            )

        return Encoded(*(together(field) for field in Encoded._fields))

    whole = Answer(
        side("images", len(aim.images)),
        side("texts", len(aim.texts)),
        answers[0].logit_scale,
        answers[0].match,
    )
    loss, found = aim(whole)
    loss.backward()
    values = {"loss": loss.item(), **{name: part.item() for name, part in found.items()}}
    return values, grads(backbone)


def close(left: dict, right: dict) -> bool:
    """Up to the rounding of double precision; losses are of the size of one and more."""
    return left.keys() == right.keys() and all(
        torch.allclose(left[name], right[name], rtol=1e-6, atol=1e-7) for name in left
    )


@pytest.mark.parametrize("name", RECIPES)
def test_several_batches_have_the_gradient_of_all_their_rows_with_dropout(name: str) -> None:
    _, backbone, aim = made(name, dropout=0.3)
    said, found = by_steps(backbone, aim, parts(aim))
    values, expected = in_one_graph(backbone, aim, parts(aim))
    assert said == pytest.approx(values, rel=1e-6)
    assert close(found, expected)
    # Dropout did draw, and there is something to agree on.
    undropped = made(name, dropout=0.0)[1]
    assert not close(by_steps(undropped, aim, parts(aim))[1], expected)
    assert max(float(each.abs().max()) for each in expected.values()) > 1e-3


@pytest.mark.parametrize("name", RECIPES)
def test_without_dropout_it_is_the_step_of_the_large_batch(name: str) -> None:
    _, backbone, aim = made(name, dropout=0.0)
    said, found = by_steps(backbone, aim, parts(aim))
    values, expected = by_steps(backbone, aim, [batch(aim, np.arange(ROWS * TURNS))])
    assert said == pytest.approx(values, rel=1e-6)
    assert close(found, expected)


def test_adding_up_small_batches_would_be_something_else() -> None:
    _, backbone, aim = made("coco", dropout=0.0)
    _, expected = by_steps(backbone, aim, parts(aim))
    added: dict[str, torch.Tensor] = {}
    for each in parts(aim):
        _, found = by_steps(backbone, aim, [each])
        added = {name: added.get(name, 0) + value / TURNS for name, value in found.items()}
    assert not close(added, expected)


def test_random_numbers_go_on_after_those_of_the_step() -> None:
    # As if every batch had gone forward once, and the loss had drawn after them.
    _, backbone, aim = made("pcme", dropout=0.3)
    by_steps(backbone, aim, parts(aim))
    after = torch.rand(3)
    in_one_graph(backbone, aim, parts(aim))
    assert torch.equal(torch.rand(3), after)
    state = random_state()
    drawn = torch.rand(2)
    set_random_state(state)
    assert torch.equal(torch.rand(2), drawn)


def test_batch_norm_counts_each_batch_once() -> None:
    _, backbone, aim = made("coco", dropout=0.0)
    norm = torch.nn.BatchNorm1d(32).double()
    backbone.network.image[2] = norm
    by_steps(backbone, aim, parts(aim))
    twin = torch.nn.BatchNorm1d(32).double()
    for each in parts(aim):
        with torch.no_grad():
            twin(backbone.network.image[:2](each.pixels))
    assert norm.num_batches_tracked == TURNS
    assert torch.allclose(norm.running_mean, twin.running_mean)
    assert torch.allclose(norm.running_var, twin.running_var)


def test_one_answer_is_left_as_it_is() -> None:
    _, backbone, aim = made("pvse", dropout=0.0)
    each = parts(aim)[0]
    answer = backbone.network(each.pixels, each.tokens)
    assert joined([answer], image_roles=1, text_roles=1) is answer
    assert answer.images.attention is not None
    assert joined([answer, answer], image_roles=1, text_roles=1).images.attention is None
