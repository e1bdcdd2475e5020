"""Contrastive losses and triplets: each against slow loops, values and gradients, and at their limits."""

import math
from functools import partial

import numpy as np
import pytest
import torch

from counterfoil.errors import InputError
from counterfoil.train import losses
from counterfoil.train.losses import RULES, draws, soft_contrastive
from refusals import refuses

pytestmark = pytest.mark.models


def features(seed, *shape, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def cosine(x, y):
    dot = sum(a * b for a, b in zip(x, y, strict=True))
    return dot / math.sqrt(sum(a * a for a in x)) / math.sqrt(sum(b * b for b in y))


def entropy(query, items, right, scale):
    weights = [math.exp(scale * cosine(query, item)) for item in items]
    return -math.log(weights[right] / sum(weights))


def mean(values):
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


def check_slopes(values, slow, places, step, **near):
    """The gradients of values at these places, against finite differences of the loop."""
    for n, at in places:
        sides = []
        for sign in (1, -1):
            moved = [item.detach().clone() for item in values]
            moved[n][at] += sign * step
            sides.append(slow(*[item.tolist() for item in moved]))
        assert values[n].grad[at].item() == pytest.approx((sides[0] - sides[1]) / (2 * step), **near)


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
    assert value.item() == pytest.approx(slow(*[item.tolist() for item in given]), abs=1e-12)
    value.backward()
    rng = np.random.default_rng(seed)
    shapes = [(n, item.shape) for n, item in enumerate(given) for _ in range(6)]
    places = [(n, tuple(int(rng.integers(size)) for size in shape)) for n, shape in shapes]
    check_slopes(given, slow, places, 1e-6, abs=1e-7)


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


def test_the_scale_has_a_gradient_and_each_image_a_text():
    images, texts = features(0, 5, 4), features(1, 5, 4)
    scale = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    losses.info_nce(images, texts, scale).backward()
    more, less = (losses.info_nce(images, texts, scale.detach() + d).item() for d in (1e-5, -1e-5))
    assert scale.grad.item() == pytest.approx((more - less) / 2e-5, abs=1e-5)
    refuses("4 texts for 5 images", losses.info_nce, images, texts[:4], scale, error=InputError)


@pytest.mark.parametrize("mining", ["sum", "semi-hard", "hardest"])
def test_satisfied_triplets_have_no_loss_and_no_gradient(mining):
    scores = (0.5 * torch.eye(4, dtype=torch.float64) + 0.1).requires_grad_()
    loss = losses.triplet(scores, margin=0.3, mining=mining)
    loss.backward()
    assert loss.item() == 0
    assert not scores.grad.any()
    assert losses.triplet(torch.ones(1, 1), mining=mining).item() == 0


def test_heads_apart_have_no_diversity_and_no_gradient_that_is_not_a_number():
    rows = torch.eye(3).expand(2, 3, 3).clone().requires_grad_()
    loss = losses.diversity(rows)
    loss.backward()
    assert loss.item() == 0
    assert not rows.grad.any()
    one = torch.ones(2, 1, 4, requires_grad=True)
    check_finite(losses.diversity(one), [one])
    assert losses.diversity(one).item() == 0


def check_finite(loss, values):
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(item.grad).all() for item in values)


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize("value", [0.0, 1e-30, 1e-7, 1.0, 1e18])
def test_equal_tiny_and_huge_vectors_give_numbers(name, value):
    loss, _, shapes = TWINS[name]
    given = [torch.full(shape, value, requires_grad=True) for shape in shapes]
    check_finite(loss(*given), given)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_summed_in_full(dtype):
    images, texts = (features(n, 64, 32).to(dtype) for n in (0, 1))
    scale = torch.tensor(100.0)
    exact = losses.info_nce(images.float(), texts.float(), scale)
    result = losses.info_nce(images, texts, scale)
    assert (result.dtype, result.item()) == (torch.float32, exact.item())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under = losses.similarity(images.float(), texts.float())
    assert torch.equal(under, losses.similarity(images.float(), texts.float()))


@pytest.mark.parametrize(
    ("rule", "chosen"), [("sum", "011 101 110"), ("semi-hard", "010 001 100"), ("hardest", "010 100 100")]
)
def test_of_equal_negatives_the_first_is_mined(rule, chosen):
    mask = RULES[rule](torch.tensor([[0.5, 0.2, 0.2], [0.5, 0.5, 0.4], [0.3, 0.3, 0.6]], requires_grad=True))
    assert [[int(cell) for cell in row] for row in chosen.split()] == mask.int().tolist()
    assert not mask.requires_grad


N, W, J = 4, 3, 5


def gaussians(seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    sides = [torch.randn((N, W), generator=generator, dtype=dtype) for _ in range(4)]
    return [item.requires_grad_() for item in (*sides, torch.tensor([2.0, 1.5], dtype=dtype))]


def noise(seed):
    """The numbers that the loss draws: of images, then of texts."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn((N, J, W), generator=generator).double().tolist() for _ in range(2)]


def slow_matching(images, image_spread, texts, text_spread, match, *, exact):
    """Pair by pair, sample by sample, with exponentials as the paper writes them."""
    sides, price = [], 0.0
    for means, spreads, drawn in zip((images, texts), (image_spread, text_spread), noise(7), strict=True):
        side = []
        for mean, spread, numbers in zip(means, spreads, drawn, strict=True):
            length = math.sqrt(sum(x * x for x in mean))
            unit = [x / length for x in mean]
            sigma = [math.exp(s) ** 0.5 for s in spread]
            samples = [[m + s * e for m, s, e in zip(unit, sigma, row, strict=True)] for row in numbers]
            side.append(samples)
            for d in range(W):
                if exact:
                    mu, variance = unit[d], sigma[d] ** 2
                    price += 0.5 * (variance + mu * mu - 1 - math.log(variance))
                else:
                    mu, log_sigma = sum(sample[d] for sample in samples) / J, math.log(sigma[d])
                    price += -0.5 * (1 + log_sigma - mu * mu - math.exp(log_sigma))
        sides.append(side)
    total = 0.0
    for i in range(N):
        for j in range(N):
            chances = []
            for x in sides[0][i]:
                for y in sides[1][j]:
                    d = math.sqrt(sum((p - q) ** 2 for p, q in zip(x, y, strict=True)) + 1e-6)
                    logit = match[1] - match[0] * d
                    right = math.exp(logit) / (math.exp(logit) + math.exp(-logit))
                    chances.append(right if i == j else 1 - right)
            total -= 2 * math.log(sum(chances) / len(chances))
    return total + 0.3 * price


def matching_loss(values, **options):
    generator = torch.Generator().manual_seed(7)
    return soft_contrastive(*values, generator=generator, samples=J, vib=0.3, **options)


@pytest.mark.parametrize("information", ["released", "exact"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_loss_agrees_with_a_slow_loop_in_value_and_gradient(information, seed):
    values, exact = gaussians(seed), information == "exact"
    result = matching_loss(values, information=information).loss
    plain = [item.tolist() for item in values]
    assert result.item() == pytest.approx(slow_matching(*plain, exact=exact), rel=1e-10)
    result.backward()
    places = [(n, i) for n in range(4) for i in [(0, 0), (2, 1), (3, 2)]] + [(4, (0,)), (4, (1,))]
    check_slopes(values, partial(slow_matching, exact=exact), places, 1e-6, rel=1e-5, abs=1e-6)


def test_the_loss_is_the_sum_of_its_parts_and_the_mean_is_over_rows():
    whole, over_rows = matching_loss(gaussians()), matching_loss(gaussians(), reduction="mean")
    assert whole.loss.item() == pytest.approx((whole.matching + 0.3 * whole.information).item())
    for one, other in zip(whole, over_rows, strict=True):
        assert one.item() == pytest.approx(N * other.item())


def test_samples_have_the_mean_and_the_variance_they_are_drawn_from():
    mean, spread = torch.tensor([[3.0, 4.0]]), torch.tensor([[math.log(0.25), math.log(4.0)]])
    n = 40_000
    drawn = draws(mean, spread, n, torch.Generator().manual_seed(0))[0].double()
    # Five standard errors of the mean, and of the variance.
    for d, (centre, variance) in enumerate([(0.6, 0.25), (0.8, 4.0)]):
        assert abs(drawn[:, d].mean().item() - centre) < 5 * math.sqrt(variance / n)
        assert abs(drawn[:, d].var().item() - variance) < 5 * variance * math.sqrt(2 / n)


@pytest.mark.parametrize("spread", [-200.0, -20.0, 0.0, 10.0])
@pytest.mark.parametrize("value", [0.0, 1e-12, 1.0])
def test_equal_tiny_certain_and_vague_items_give_numbers(spread, value):
    means = [torch.full((N, W), value, requires_grad=True) for _ in range(2)]
    spreads = [torch.full((N, W), spread, requires_grad=True) for _ in range(2)]
    match = torch.tensor([15.0, 15.0], requires_grad=True)
    values = (means[0], spreads[0], means[1], spreads[1], match)
    result = soft_contrastive(*values, generator=torch.Generator().manual_seed(0), samples=J)
    check_finite(result.loss, values)
