"""Objectives: roles in their order, each loss against a slow loop, and the same loss from several devices."""

import math
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from counterfoil.errors import InputError, ModelError  # noqa: E402
from counterfoil.models.networks import Answer, Encoded  # noqa: E402
from counterfoil.train.objectives import objective  # noqa: E402
from counterfoil.train.recipes import RECIPES, Recipe, read  # noqa: E402

pytestmark = pytest.mark.models

ROWS, WIDTH, HEADS = 5, 6, 2


def answer(recipe: Recipe, *, seed: int = 0, heads: bool = False, spread: bool = False) -> Answer:
    """What a network might say of five rows, in double precision, all of it with gradients."""
    found = objective(recipe)
    generator = torch.Generator().manual_seed(seed)

    def made(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()

    def side(roles: int) -> Encoded:
        rows = roles * ROWS
        return Encoded(
            made(rows, HEADS, WIDTH) if heads else made(rows, WIDTH),
            made(rows, WIDTH) if spread else None,
            residuals=made(rows, HEADS, WIDTH) if heads else None,
        )

    return Answer(
        side(len(found.images)),
        side(len(found.texts)),
        torch.tensor(0.7, dtype=torch.float64, requires_grad=True),
        torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True) if spread else None,
    )


def cosine(left: torch.Tensor, right: torch.Tensor) -> float:
    return float(left @ right / left.norm() / right.norm())


def chosen(query: torch.Tensor, items: torch.Tensor, right: int, scale: float) -> float:
    """-log of the softmax at the right item, term by term."""
    logits = [scale * cosine(query, item) for item in items]
    return -logits[right] + math.log(sum(math.exp(logit) for logit in logits))


def clip(images: torch.Tensor, texts: torch.Tensor, scale: float) -> float:
    """Images choose among all texts, the texts that have an image among all images."""
    n = len(images)
    one = sum(chosen(image, texts, i, scale) for i, image in enumerate(images)) / n
    other = sum(chosen(text, images, i, scale) for i, text in enumerate(texts[:n])) / n
    return (one + other) / 2


def points(said: Answer) -> tuple[torch.Tensor, torch.Tensor, float]:
    return said.images.points.detach(), said.texts.points.detach(), math.exp(0.7)


@pytest.mark.parametrize(
    ("name", "images", "texts"),
    [("coco", 1, 1), ("trohn-text", 1, 2), ("negclip", 1, 2), ("trohn-img", 2, 2)],
)
def test_contrast_against_a_loop(name: str, images: int, texts: int) -> None:
    said = answer(RECIPES[name])
    left, right, scale = points(said)
    assert (len(left), len(right)) == (images * ROWS, texts * ROWS)
    assert objective(RECIPES[name])(said)[0].item() == pytest.approx(clip(left, right, scale), rel=1e-6)


def test_positive_augmentation_against_a_loop() -> None:
    recipe = read("pac", lambda_v=0.3, lambda_t=0.2)
    said = answer(recipe)
    images, texts, scale = points(said)
    (image, made_image), (text, made_text) = images.split(ROWS), texts.split(ROWS)
    expected = (
        clip(image, text, scale) + 0.3 * clip(made_image, text, scale) + 0.2 * clip(image, made_text, scale)
    )
    # Equations 2 and 3 add the two directions, where `clip` halves them.
    assert objective(recipe)(said)[0].item() == pytest.approx(2 * expected, rel=1e-6)
    halved = objective(replace(recipe, directions="mean"))
    assert halved(said)[0].item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", ["vse0", "vse++"])
def test_the_hinge_against_a_loop(name: str) -> None:
    recipe = RECIPES[name]
    said = answer(recipe)
    images, texts, _ = points(said)
    s = [[cosine(image, text) for text in texts] for image in images]
    total = 0.0
    for i in range(ROWS):
        rows = [max(0.0, 0.2 - s[i][i] + s[i][j]) for j in range(ROWS) if j != i]
        columns = [max(0.0, 0.2 - s[i][i] + s[j][i]) for j in range(ROWS) if j != i]
        total += sum(rows) + sum(columns) if name == "vse0" else max(rows) + max(columns)
    assert objective(recipe)(said)[0].item() == pytest.approx(total, rel=1e-6)
    mean = objective(replace(recipe, reduction="mean"))
    assert mean(said)[0].item() == pytest.approx(total / ROWS, rel=1e-6)


def test_several_vectors_are_compared_by_the_best_of_them() -> None:
    recipe = RECIPES["pvse"]
    said = answer(recipe, heads=True)
    images, texts, _ = points(said)
    s = [[max(cosine(a, b) for a in image for b in text) for text in texts] for image in images]
    hinge = 0.0
    for i in range(ROWS):
        hinge += max(max(0.0, 0.1 - s[i][i] + s[i][j]) for j in range(ROWS) if j != i)
        hinge += max(max(0.0, 0.1 - s[i][i] + s[j][i]) for j in range(ROWS) if j != i)
    loss, parts = objective(recipe)(said)
    assert parts["hinge"].item() == pytest.approx(hinge, rel=1e-6)
    assert not any(part.requires_grad for part in parts.values())
    whole = parts["hinge"] + 0.1 * parts["diversity"] + 0.01 * parts["mmd"]
    assert loss.item() == pytest.approx(whole.item(), rel=1e-9)
    # Two heads: the norm of [[0, c], [c, 0]] over 4, per item and side.
    sides = (said.images.residuals, said.texts.residuals)
    apart = sum(abs(cosine(a, b)) * math.sqrt(2) / 4 / ROWS for side in sides for a, b in side.detach())
    assert parts["diversity"].item() == pytest.approx(apart, rel=1e-6)


def test_distributions_draw_what_torchs_generator_says() -> None:
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
def test_everything_an_objective_needs_gets_a_gradient(name: str) -> None:
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


@pytest.mark.parametrize("name", [name for name in RECIPES if name != "detector"])
def test_two_devices_have_the_loss_and_the_gradients_of_one(name: str) -> None:
    # Each device holds some rows of every role; gathering puts role by role together, as `whole` has them.
    recipe = RECIPES[name]
    found = objective(recipe)
    halves = [answer(recipe, seed=seed, heads=name == "pvse", spread=name == "pcme") for seed in (1, 2)]
    chunks: dict[int, list[torch.Tensor]] = {}

    def record(to: list[torch.Tensor]):
        def gather(rows: torch.Tensor) -> torch.Tensor:
            to.append(rows)
            return rows

        return gather

    for device, half in enumerate(halves):
        torch.manual_seed(0)
        found(half, record(chunks.setdefault(device, [])))
    together = [torch.cat(parts) for parts in zip(*(chunks[0], chunks[1]), strict=True)]

    def whole(side: str, roles: int) -> Encoded:
        def joined(field: str) -> torch.Tensor | None:
            parts = [getattr(getattr(half, side), field) for half in halves]
            if parts[0] is None:
                return None
            split = [part.detach().unflatten(0, (roles, ROWS)) for part in parts]
            return torch.cat(split, dim=1).flatten(0, 1).requires_grad_()

        return Encoded(*(joined(field) for field in Encoded._fields))

    one = Answer(
        whole("images", len(found.images)),
        whole("texts", len(found.texts)),
        halves[0].logit_scale,
        halves[0].match,
    )
    torch.manual_seed(0)
    expected, _ = found(one)
    for half in halves:
        rows = iter(together)
        torch.manual_seed(0)
        loss, _ = found(half, lambda _, rows=rows: next(rows))
        assert loss.item() == pytest.approx(expected.item(), rel=1e-12)


def test_devices_draw_the_same_samples() -> None:
    # The second device's generator stands elsewhere, and it takes the first one's number all the same.
    recipe = RECIPES["pcme"]
    said = answer(recipe, spread=True)
    torch.manual_seed(0)
    alone = objective(recipe)(said)[0].item()
    torch.manual_seed(0)
    first = torch.rand(1, dtype=torch.float64)
    torch.manual_seed(77)

    def gather(rows: torch.Tensor) -> torch.Tensor:
        return torch.cat([first, rows]) if rows.shape == (1,) else rows

    assert objective(recipe)(said, gather)[0].item() == alone


def test_half_precision_is_only_the_towers() -> None:
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


def test_a_network_without_the_heads_is_one_line() -> None:
    with pytest.raises(ModelError, match="recipe pcme: the network does not give a variance per item"):
        objective(RECIPES["pcme"])(answer(RECIPES["pcme"]))
    with pytest.raises(ModelError, match="recipe pvse: the network does not give several vectors per item"):
        objective(RECIPES["pvse"])(answer(RECIPES["pvse"]))


def test_recipes_without_a_loss() -> None:
    with pytest.raises(InputError, match=r"detector \(Detection\); detectors are trained by"):
        objective(RECIPES["detector"])
    with pytest.raises(InputError, match=r"given: mine \(Recipe\)"):
        objective(Recipe("mine"))
