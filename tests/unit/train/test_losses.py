"""Contrastive losses and triplets: each against slow loops, values and gradients, and at their limits."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from counterfoil.errors import InputError  # noqa: E402
from counterfoil.train import losses  # noqa: E402

pytestmark = pytest.mark.models


def features(seed: int, *shape: int, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def cosine(x, y):
    """Of two vectors, number by number."""
    dot = sum(a * b for a, b in zip(x, y, strict=True))
    return dot / math.sqrt(sum(a * a for a in x)) / math.sqrt(sum(b * b for b in y))


def entropy(query, items, right: int, scale: float) -> float:
    weights = [math.exp(scale * cosine(query, item)) for item in items]
    return -math.log(weights[right] / sum(weights))


def mean(values) -> float:
    values = list(values)
    return sum(values) / len(values)


def slow_info_nce(images, texts, scale):
    n = len(images)
    return (
        mean(entropy(images[i], texts, i, scale) for i in range(n))
        + mean(entropy(texts[i], images, i, scale) for i in range(n))
    ) / 2


def slow_augmented(images, texts, generated_images, generated_texts, scale):
    return 2 * (
        slow_info_nce(images, texts, scale)
        + 0.05 * slow_info_nce(generated_images, texts, scale)
        + 0.1 * slow_info_nce(images, generated_texts, scale)
    )


def slow_triplet(scores, margin, mining):
    n, total = len(scores), 0.0
    for turned in (False, True):
        for i in range(n):
            own = {j: scores[j][i] if turned else scores[i][j] for j in range(n)}
            counted = [j for j in range(n) if j != i]
            if mining == "semi-hard":
                counted = [j for j in counted if own[j] < own[i]]
            if mining != "sum" and counted:
                counted = [max(counted, key=lambda j: own[j])]
            total += sum(max(0.0, margin - own[i] + own[j]) for j in counted)
    return total / n


def slow_heads(images, texts):
    return [[max(cosine(a, b) for a in image for b in text) for text in texts] for image in images]


def slow_diversity(rows):
    values = []
    for heads in rows:
        k = len(heads)
        squares = sum(cosine(heads[a], heads[b]) ** 2 for a in range(k) for b in range(k) if a != b)
        values.append(math.sqrt(squares) / k**2)
    return mean(values)


def slow_mmd(images, texts, kernel):
    def unit(x):
        return [a / math.sqrt(sum(b * b for b in x)) for a in x]

    def k(a, b):
        square = sum((p - q) ** 2 for p, q in zip(a, b, strict=True))
        return math.exp(-0.5 * (square if kernel == "gaussian" else math.sqrt(square)))

    x, y = ([unit(head) for item in side for head in item] for side in (images, texts))
    return (
        mean(k(a, b) for a in x for b in x)
        + mean(k(a, b) for a in y for b in y)
        - 2 * mean(k(a, b) for a in x for b in y)
    )


SCALE = 7.0
B, D, K = 5, 4, 3

#: Of each loss: it, its slow twin, and the shapes it takes.
TWINS = {
    "info_nce": (
        lambda i, t: losses.info_nce(i, t, torch.tensor(SCALE)),
        lambda i, t: slow_info_nce(i, t, SCALE),
        [(B, D), (B, D)],
    ),
    "negative texts": (
        lambda i, t: losses.info_nce(i, t, torch.tensor(SCALE)),
        lambda i, t: slow_info_nce(i, t, SCALE),
        [(B, D), (2 * B, D)],
    ),
    "augmented": (
        lambda *x: losses.positive_augmented(*x, torch.tensor(SCALE)),
        lambda *x: slow_augmented(*x, SCALE),
        [(B, D)] * 4,
    ),
    **{
        f"triplet {mining}": (
            lambda i, t, mining=mining: losses.triplet(losses.similarity(i, t), margin=0.4, mining=mining),
            lambda i, t, mining=mining: slow_triplet([[cosine(x, y) for y in t] for x in i], 0.4, mining),
            [(2 * B, D), (2 * B, D)],
        )
        for mining in ("sum", "semi-hard", "hardest")
    },
    "heads": (
        lambda i, t: losses.triplet(losses.similarity(i, t), margin=0.3, mining="sum"),
        lambda i, t: slow_triplet(slow_heads(i, t), 0.3, "sum"),
        [(B, K, D), (B, K, D)],
    ),
    "diversity": (losses.diversity, slow_diversity, [(B, K, D)]),
    "mmd gaussian": (losses.mmd, lambda i, t: slow_mmd(i, t, "gaussian"), [(B, K, D), (B, 2, D)]),
    "mmd distance": (
        lambda i, t: losses.mmd(i, t, kernel="distance"),
        lambda i, t: slow_mmd(i, t, "distance"),
        [(B, K, D), (B, 2, D)],
    ),
}


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize("seed", [0, 1])
def test_losses_agree_with_slow_loops_in_value_and_gradient(name, seed):
    loss, slow, shapes = TWINS[name]
    given = [features(10 * seed + n, *shape).requires_grad_() for n, shape in enumerate(shapes)]
    value = loss(*given)
    plain = [each.tolist() for each in given]
    assert value.item() == pytest.approx(slow(*plain), abs=1e-12)
    value.backward()
    # Finite differences of the loop, at places of every argument.
    rng, step = np.random.default_rng(seed), 1e-6
    for n, each in enumerate(given):
        for _ in range(6):
            at = tuple(int(rng.integers(size)) for size in each.shape)
            sides = []
            for sign in (1, -1):
                moved = [x.detach().clone() for x in given]
                moved[n][at] += sign * step
                sides.append(slow(*[x.tolist() for x in moved]))
            assert each.grad[at].item() == pytest.approx((sides[0] - sides[1]) / (2 * step), abs=1e-7)


@pytest.mark.parametrize("name", [name for name in TWINS if "texts" not in name])
def test_the_order_of_rows_does_not_matter(name):
    loss, _, shapes = TWINS[name]
    given = [features(n, *shape) for n, shape in enumerate(shapes)]
    order = torch.randperm(shapes[0][0], generator=torch.Generator().manual_seed(5))
    assert loss(*[each[order] for each in given]).item() == pytest.approx(loss(*given).item(), rel=1e-12)


def test_negative_texts_may_come_in_any_order_and_captions_with_their_images():
    images, texts, scale = features(0, 4, 3), features(1, 8, 3), torch.tensor(5.0)
    order = torch.tensor([2, 0, 3, 1])
    moved = torch.cat([texts[:4][order], texts[4:].flip(0)])
    expected = losses.info_nce(images, texts, scale).item()
    assert losses.info_nce(images[order], moved, scale).item() == pytest.approx(expected)


@pytest.mark.parametrize("n", [1, 2, 33, 400])
def test_chance_is_the_logarithm_of_the_choices(n):
    same, negatives = torch.ones(n, 3), torch.ones(2 * n, 3)
    for scale in (1.0, 100.0):
        assert losses.info_nce(same, same, torch.tensor(scale)).item() == pytest.approx(math.log(n), abs=1e-5)
        both = losses.info_nce(same, negatives, torch.tensor(scale)).item()
        assert both == pytest.approx((math.log(2 * n) + math.log(n)) / 2, abs=1e-5)
        pairs = losses.info_nce(negatives, negatives, torch.tensor(scale)).item()
        assert pairs == pytest.approx(math.log(2 * n), abs=1e-5)


def test_limits_of_the_temperature():
    images, texts = features(0, 6, 8), features(1, 6, 8)
    assert losses.info_nce(images, texts, torch.tensor(0.0)).item() == pytest.approx(math.log(6))
    # Cold, a loss per unit of scale is how far the right one is behind the best.
    scores = losses.similarity(images, texts)
    behind = (scores.amax(1) - scores.diagonal()).mean() + (scores.amax(0) - scores.diagonal()).mean()
    cold = losses.info_nce(images, texts, torch.tensor(1e7, dtype=torch.float64)) / 1e7
    assert cold.item() == pytest.approx(behind.item() / 2, abs=1e-6)
    right = losses.info_nce(torch.eye(6), torch.eye(6), torch.tensor(100.0))
    assert right.item() == pytest.approx(0, abs=1e-30)


def test_length_does_not_matter_and_scale_has_a_gradient():
    images, texts = features(0, 5, 4), features(1, 5, 4)
    scale = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    loss = losses.info_nce(images, texts, scale)
    loss.backward()
    stretched = losses.info_nce(images * 17, texts * torch.arange(1, 6)[:, None], scale)
    assert stretched.item() == pytest.approx(loss.item())
    near = [
        losses.info_nce(images, texts, torch.tensor(3.0 + d, dtype=torch.float64)).item()
        for d in (1e-5, -1e-5)
    ]
    assert scale.grad.item() == pytest.approx((near[0] - near[1]) / 2e-5, abs=1e-5)


def test_negative_texts_are_pushed_by_images_and_ask_nothing():
    images, texts = features(0, 3, 4), features(1, 6, 4).requires_grad_()
    losses.info_nce(images, texts, torch.tensor(4.0)).backward()
    whole = texts.grad[3:].clone()
    # Of the two directions only image to text knows the negatives: half its own gradient.
    again = texts.detach().clone().requires_grad_()
    logits = 4.0 * losses.similarity(images, again)
    (torch.nn.functional.cross_entropy(logits, torch.arange(3)) / 2).backward()
    assert torch.allclose(whole, again.grad[3:])
    assert whole.abs().min() > 0
    with pytest.raises(InputError, match="2 texts for 3 images"):
        losses.info_nce(images, features(1, 2, 4), torch.tensor(4.0))


def test_augmentation_is_nothing_at_zero_and_half_is_half():
    given, scale = [features(n, 4, 3) for n in range(4)], torch.tensor(6.0)
    alone = losses.positive_augmented(*given, scale, lambda_v=0, lambda_t=0).item()
    assert alone == pytest.approx(2 * losses.info_nce(*given[:2], scale).item())
    whole, half = (losses.positive_augmented(*given, scale, halved=h).item() for h in (False, True))
    assert whole == pytest.approx(2 * half)


@pytest.mark.parametrize("mining", ["sum", "semi-hard", "hardest"])
def test_satisfied_triplets_have_no_loss_and_no_gradient(mining):
    scores = (0.5 * torch.eye(4, dtype=torch.float64) + 0.1).requires_grad_()
    loss = losses.triplet(scores, margin=0.3, mining=mining)
    loss.backward()
    assert loss.item() == 0
    assert not scores.grad.any()
    assert losses.triplet(torch.ones(1, 1), mining=mining).item() == 0


def test_only_what_counts_is_moved():
    scores = torch.tensor(
        [[0.5, 0.6, 0.45], [0.0, 0.9, 0.1], [0.0, 0.1, 0.9]], dtype=torch.float64, requires_grad=True
    )
    losses.triplet(scores, margin=0.2, mining="hardest", reduction="sum").backward()
    # Row 0 is held against 0.6 only; down the columns nothing is within 0.2 of 0.5 or 0.9 but 0.6's none.
    assert scores.grad.tolist() == [[-1, 1, 0], [0, 0, 0], [0, 0, 0]]
    scores.grad = None
    losses.triplet(scores, margin=0.2, mining="semi-hard", reduction="sum").backward()
    assert scores.grad.tolist() == [[-1, 0, 1], [0, 0, 0], [0, 0, 0]]
    scores.grad = None
    losses.triplet(scores, margin=0.2, mining="sum", reduction="sum").backward()
    assert scores.grad.tolist() == [[-2, 1, 1], [0, 0, 0], [0, 0, 0]]


def test_one_head_is_the_plain_cosine():
    images, texts = features(0, 5, 4), features(1, 3, 4)
    plain = losses.similarity(images, texts)
    for left, right in ((images[:, None], texts[:, None]), (images, texts[:, None])):
        assert torch.allclose(losses.similarity(left, right), plain)


def test_heads_apart_have_no_diversity_and_no_gradient_that_is_not_a_number():
    rows = torch.eye(3).expand(2, 3, 3).clone().requires_grad_()
    loss = losses.diversity(rows)
    loss.backward()
    assert loss.item() == 0
    assert not rows.grad.any()
    one = torch.ones(2, 1, 4, requires_grad=True)
    losses.diversity(one).backward()
    assert losses.diversity(one).item() == 0
    assert torch.isfinite(one.grad).all()


def test_the_same_spread_has_no_discrepancy_and_another_has():
    x = features(0, 40, 2, 3)
    for kernel in ("gaussian", "distance"):
        assert losses.mmd(x, x.flip(0), kernel=kernel).item() == pytest.approx(0, abs=1e-12)
        apart = losses.mmd(x, x.abs(), kernel=kernel).item()
        assert apart > 0.05


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize("value", [0.0, 1e-30, 1e-7, 1.0, 1e18])
def test_equal_tiny_and_huge_vectors_give_numbers(name, value):
    loss, _, shapes = TWINS[name]
    given = [torch.full(shape, value, requires_grad=True) for shape in shapes]
    found = loss(*given)
    found.backward()
    assert torch.isfinite(found)
    for each in given:
        assert torch.isfinite(each.grad).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_summed_in_full(dtype):
    images, texts = (features(n, 64, 32).to(dtype) for n in (0, 1))
    scale = torch.tensor(100.0)
    exact = losses.info_nce(images.float(), texts.float(), scale)
    found = losses.info_nce(images, texts, scale)
    assert found.dtype == torch.float32
    assert found.item() == exact.item()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under = losses.similarity(images.float(), texts.float())
    assert torch.equal(under, losses.similarity(images.float(), texts.float()))
