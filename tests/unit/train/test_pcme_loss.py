"""PCME's loss against a slow loop, its price on certainty, its samples, and its limits."""

import math

import pytest

torch = pytest.importorskip("torch")

from counterfoil.train.losses import divergence, draws, soft_contrastive  # noqa: E402

pytestmark = pytest.mark.models

B, D, J = 4, 3, 5


def given(seed: int = 0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    sides = [torch.randn((B, D), generator=generator, dtype=dtype) for _ in range(4)]
    return [each.requires_grad_() for each in (*sides, torch.tensor([2.0, 1.5], dtype=dtype))]


def noise(seed: int) -> list[list]:
    """The numbers that the loss draws: of images, then of texts."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn((B, J, D), generator=generator).double().tolist() for _ in range(2)]


def slow(images, image_spread, texts, text_spread, match, *, exact: bool) -> float:
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
            for d in range(D):
                if exact:
                    mu, variance = unit[d], sigma[d] ** 2
                    price += 0.5 * (variance + mu * mu - 1 - math.log(variance))
                else:
                    mu, log_sigma = sum(sample[d] for sample in samples) / J, math.log(sigma[d])
                    price += -0.5 * (1 + log_sigma - mu * mu - math.exp(log_sigma))
        sides.append(side)
    total = 0.0
    for i in range(B):
        for j in range(B):
            chances = []
            for x in sides[0][i]:
                for y in sides[1][j]:
                    d = math.sqrt(sum((p - q) ** 2 for p, q in zip(x, y, strict=True)) + 1e-6)
                    logit = match[1] - match[0] * d
                    right = math.exp(logit) / (math.exp(logit) + math.exp(-logit))
                    chances.append(right if i == j else 1 - right)
            total -= 2 * math.log(sum(chances) / len(chances))
    return total + 0.3 * price


def loss(values, **options):
    generator = torch.Generator().manual_seed(7)
    return soft_contrastive(*values, generator=generator, samples=J, vib=0.3, **options)


@pytest.mark.parametrize("information", ["released", "exact"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_loss_agrees_with_a_slow_loop_in_value_and_gradient(information, seed):
    values, exact = given(seed), information == "exact"
    found = loss(values, information=information).loss
    plain = [each.tolist() for each in values]
    assert found.item() == pytest.approx(slow(*plain, exact=exact), rel=1e-10)
    found.backward()
    for n, each in enumerate(values):
        for at in [(0, 0), (2, 1), (3, 2)] if n < 4 else [(0,), (1,)]:
            sides = []
            for sign in (1, -1):
                moved = [x.detach().clone() for x in values]
                moved[n][at] += sign * 1e-6
                sides.append(slow(*[x.tolist() for x in moved], exact=exact))
            assert each.grad[at].item() == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-5, abs=1e-6)


def test_the_loss_is_the_sum_of_its_parts_and_the_mean_is_over_rows():
    whole, over_rows = loss(given()), loss(given(), reduction="mean")
    assert whole.loss.item() == pytest.approx((whole.matching + 0.3 * whole.information).item())
    for one, other in zip(whole, over_rows, strict=True):
        assert one.item() == pytest.approx(B * other.item())


def test_samples_have_the_mean_and_the_variance_they_are_drawn_from():
    mean, spread = torch.tensor([[3.0, 4.0]]), torch.tensor([[math.log(0.25), math.log(4.0)]])
    n = 40_000
    drawn = draws(mean, spread, n, torch.Generator().manual_seed(0))[0].double()
    # Five standard errors of the mean, and of the variance.
    for d, (centre, variance) in enumerate([(0.6, 0.25), (0.8, 4.0)]):
        assert abs(drawn[:, d].mean().item() - centre) < 5 * math.sqrt(variance / n)
        assert abs(drawn[:, d].var().item() - variance) < 5 * variance * math.sqrt(2 / n)


def test_divergence_is_that_of_gaussians_and_zero_for_the_standard_normal():
    mean, spread = torch.randn(2, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([[0.3, -1, 0]])
    spread = spread.expand(2, 3)
    normal = torch.distributions.Normal(mean, (spread / 2).exp())
    standard = torch.distributions.Normal(torch.zeros(2, 3), torch.ones(2, 3))
    expected = torch.distributions.kl_divergence(normal, standard).sum()
    assert divergence(mean, spread).item() == pytest.approx(expected.item(), rel=1e-6)
    assert divergence(torch.zeros(2, 3), torch.zeros(2, 3)).item() == 0


@pytest.mark.parametrize("spread", [-200.0, -20.0, 0.0, 10.0])
@pytest.mark.parametrize("value", [0.0, 1e-12, 1.0])
def test_equal_tiny_certain_and_vague_items_give_numbers(spread, value):
    means = [torch.full((B, D), value, requires_grad=True) for _ in range(2)]
    spreads = [torch.full((B, D), spread, requires_grad=True) for _ in range(2)]
    match = torch.tensor([15.0, 15.0], requires_grad=True)
    values = (means[0], spreads[0], means[1], spreads[1], match)
    found = soft_contrastive(*values, generator=torch.Generator().manual_seed(0), samples=J)
    found.loss.backward()
    assert torch.isfinite(found.loss)
    for each in values:
        assert torch.isfinite(each.grad).all()


def test_training_brings_pairs_together_and_learns_scale_and_shift():
    generator = torch.Generator().manual_seed(0)
    images, tight = torch.eye(6), torch.full((6, 6), -8.0)
    texts = torch.randn((6, 6), generator=generator).requires_grad_()
    spread = torch.full((6, 6), -2.0, requires_grad=True)
    match = torch.tensor([5.0, 5.0], requires_grad=True)
    optimiser = torch.optim.Adam([texts, spread, match], lr=0.05)
    history = []
    for _ in range(150):
        found = soft_contrastive(images, tight, texts, spread, match, generator=generator, reduction="mean")
        optimiser.zero_grad()
        found.loss.backward()
        optimiser.step()
        history.append(found.loss.item())
    assert history[-1] < history[0] / 10
    assert torch.equal((images @ texts.detach().T).argmax(1), torch.arange(6))
    # Right pairs are near, wrong ones at the root of two; the border lies between, samples stay close.
    assert 0 < match[1].item() / match[0].item() < 2**0.5
    assert spread.mean().item() < -3
