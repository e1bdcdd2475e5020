"""PCME's loss: items are Gaussians, and how probably two of them match is learned (Chun et al. 2021)."""

import math
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from counterfoil.train.losses import unit

#: Beneath the root of a squared distance, as in the released code: the gradient at zero is finite.
EPSILON = 1e-6


class Matching(NamedTuple):
    """The soft contrastive loss and what it is made of: `loss` = `matching` + vib x `information`."""

    loss: Float[Tensor, ""]
    matching: Float[Tensor, ""]
    information: Float[Tensor, ""]


def draws(
    mean: Float[Tensor, "rows width"],
    log_variance: Float[Tensor, "rows width"],
    samples: int,
    generator: torch.Generator,
) -> Float[Tensor, "rows samples width"]:
    """Samples of each item's Gaussian around its mean at length one; samples are not brought to length one.

    Numbers are drawn where the generator is: one on the CPU gives the same on every device.
    """
    shape = (len(mean), samples, mean.shape[1])
    noise = torch.randn(shape, generator=generator, device=generator.device).to(mean.device)
    if log_variance.dtype in (torch.float16, torch.bfloat16):
        log_variance = log_variance.float()
    centre = unit(mean)
    return centre[:, None] + torch.exp(log_variance / 2)[:, None] * noise.to(centre.dtype)


def match_logits(
    images: Float[Tensor, "rows samples width"],
    texts: Float[Tensor, "columns others width"],
    match: Float[Tensor, "2"],
) -> Float[Tensor, "rows columns pairs"]:
    """shift - scale x distance for each sample of an image with each of a text; `match` is (scale, shift)."""
    with torch.autocast(images.device.type, enabled=False):
        left, right = images.flatten(0, 1), texts.flatten(0, 1)
        squares = left.square().sum(1)[:, None] + right.square().sum(1) - 2 * left @ right.T
        distances = torch.sqrt(squares.clamp(min=0) + EPSILON)
        logits = match[1] - match[0] * distances
        each = logits.view(len(images), images.shape[1], len(texts), texts.shape[1])
        return each.transpose(1, 2).flatten(2)


def soft_contrastive(
    images: Float[Tensor, "rows width"],
    image_log_variance: Float[Tensor, "rows width"],
    texts: Float[Tensor, "rows width"],
    text_log_variance: Float[Tensor, "rows width"],
    match: Float[Tensor, "2"],
    *,
    generator: torch.Generator,
    samples: int = 7,
    vib: float = 1e-5,
    information: Literal["released", "exact"] = "released",
    reduction: Literal["sum", "mean"] = "sum",
) -> Matching:
    """The negative log-likelihood that right pairs match and wrong ones do not, and a price on certainty.

    The probability of a match is the mean over samples x samples of sigmoid(2 (shift - scale d)), since
    exp(l) / (exp(l) + exp(-l)) is sigmoid(2 l). All rows x rows pairs count, and twice, once for each
    direction; "mean" divides everything by the rows, which the released code does not. `information` is the
    KL divergence of both sides from the standard normal, summed over items and dimensions: "exact", or
    "released", which takes the mean of the samples as the mean and the logarithm of the standard deviation
    as that of the variance. Draws images first, then texts.
    """
    left, right = (
        draws(mean, spread, samples, generator)
        for mean, spread in ((images, image_log_variance), (texts, text_log_variance))
    )
    logits = 2 * match_logits(left, right, match)
    sign = 2 * torch.eye(len(images), device=logits.device, dtype=logits.dtype) - 1
    likelihood = torch.logsumexp(functional.logsigmoid(sign[:, :, None] * logits), dim=2)
    matching = -2 * (likelihood - math.log(logits.shape[2])).sum()
    if information == "exact":
        price = divergence(unit(images), image_log_variance) + divergence(unit(texts), text_log_variance)
    else:
        price = divergence(left.mean(1), image_log_variance / 2) + divergence(
            right.mean(1), text_log_variance / 2
        )
    if reduction == "mean":
        matching, price = matching / len(images), price / len(images)
    return Matching(matching + vib * price, matching, price)


def divergence(
    mean: Float[Tensor, "rows width"], log_variance: Float[Tensor, "rows width"]
) -> Float[Tensor, ""]:
    """The KL divergence of diagonal Gaussians from the standard normal, in nats, summed; 0 or more.

    >>> divergence(torch.ones(1, 3), torch.zeros(1, 3)).item()
    1.5
    """
    spread = log_variance.float() if log_variance.dtype in (torch.float16, torch.bfloat16) else log_variance
    return (spread.exp() + mean.square() - 1 - spread).sum() / 2
