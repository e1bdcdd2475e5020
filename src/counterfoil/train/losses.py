"""Losses of batches of matching images and texts: row i of one belongs to row i of the other.

Pure functions of features, in float32 at least. Features are brought to length one inside; `scale` is the
inverse temperature, exp(logit_scale). What is gathered from several devices goes in as one batch; `local`
are then the rows of this device, and the loss is of these as queries among all: the mean over devices is the
loss of the whole batch (open_clip's local loss). None: all rows are of this device.

Mining is a mask over a batch's similarities: row i is a query, column j an item, (i, i) the right pair. In
PCME's loss items are Gaussians, and how probably two of them match is learned (Chun et al. 2021).
"""

import math
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from counterfoil.errors import InputError

Mining = Literal["sum", "semi-hard", "hardest"]


#: Positions among all rows; the right columns of as many queries.
Local = Int[Tensor, "own"] | None


def wrong(similarity: Float[Tensor, "own rows"], local: Local = None) -> Bool[Tensor, "own rows"]:
    """All pairs but the right ones: no mining (VSE0).

    >>> wrong(torch.zeros(2, 2)).tolist()
    [[False, True], [True, False]]
    """
    right = _right(similarity, local)
    return torch.arange(similarity.shape[1], device=similarity.device) != right[:, None]


def hardest(similarity: Float[Tensor, "own rows"], local: Local = None) -> Bool[Tensor, "own rows"]:
    """The most similar wrong item of each row, the first of equals (VSE++: Faghri et al. 2018).

    >>> hardest(torch.tensor([[0.9, 0.1, 0.3], [0.2, 0.1, 0.0], [0.5, 0.5, 0.9]])).int().tolist()
    [[0, 0, 1], [1, 0, 0], [1, 0, 0]]
    """
    return _most_similar(similarity, wrong(similarity, local))


def semi_hard(similarity: Float[Tensor, "own rows"], local: Local = None) -> Bool[Tensor, "own rows"]:
    """The most similar wrong item of each row among those less similar than the right one (FaceNet, 2015).

    >>> semi_hard(torch.tensor([[0.4, 0.5, 0.3], [0.2, 0.1, 0.1], [0.5, 0.6, 0.9]])).int().tolist()
    [[0, 0, 1], [0, 0, 0], [0, 1, 0]]
    """
    right = similarity.gather(1, _right(similarity, local)[:, None])
    return _most_similar(similarity, wrong(similarity, local) & (similarity < right))


#: The rules by name: a similarity to the pairs that count.
RULES: Mapping[Mining, Callable[[Tensor, Local], Tensor]] = {
    "sum": wrong,
    "semi-hard": semi_hard,
    "hardest": hardest,
}


def _right(scores: Float[Tensor, "own rows"], local: Local) -> Int[Tensor, "own"]:
    """The right column of each query."""
    return torch.arange(len(scores), device=scores.device) if local is None else local


def _most_similar(
    similarity: Float[Tensor, "own rows"], among: Bool[Tensor, "own rows"]
) -> Bool[Tensor, "own rows"]:
    """The first of the highest in each row among some, if there are any."""
    open_only = similarity.detach().masked_fill(~among, -torch.inf)
    # argmax promises nothing of equals; the first true of "is the highest" is the first.
    highest = open_only == open_only.amax(dim=1, keepdim=True)
    first = highest & (highest.cumsum(dim=1) == 1)
    return first & among


Scale = Float[Tensor, ""]


def unit(features: Float[Tensor, "*items width"]) -> Float[Tensor, "*items width"]:
    """The features at length one, in float32 or better; below a length of 1e-6 only multiplied by a million.

    >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    if features.dtype in (torch.float16, torch.bfloat16):
        features = features.float()
    return functional.normalize(features, dim=-1, eps=1e-6)


def similarity(
    images: Float[Tensor, "rows *heads width"], texts: Float[Tensor, "columns *other_heads width"]
) -> Float[Tensor, "rows columns"]:
    """The cosine of each image with each text; of several heads the largest (PVSE's multiple instances).

    >>> similarity(torch.tensor([[1.0, 0.0]]), torch.tensor([[[0.0, 2.0], [3.0, 4.0]]])).tolist()
    [[0.6000000238418579]]
    """
    with torch.autocast(images.device.type, enabled=False):
        left, right = unit(images), unit(texts)
        if left.ndim == 2 and right.ndim == 2:
            return left @ right.T
        left, right = (side[:, None] if side.ndim == 2 else side for side in (left, right))
        cosines = left.flatten(0, 1) @ right.flatten(0, 1).T
        return cosines.view(*left.shape[:2], *right.shape[:2]).amax(dim=(1, 3))


def both_ways(
    images: Float[Tensor, "rows *heads width"],
    texts: Float[Tensor, "texts *other_heads width"],
    local: Local = None,
    scale: Scale | float = 1.0,
) -> tuple[Float[Tensor, "own texts"], Float[Tensor, "own rows"]]:
    """`scale` x the cosines of images with all texts, and of the texts that have an image with all images."""
    if local is None:
        scores = scale * similarity(images, texts)
        return scores, scores[:, : len(images)].T
    return scale * similarity(images[local], texts), scale * similarity(texts[local], images)


def info_nce(
    images: Float[Tensor, "rows width"], texts: Float[Tensor, "m width"], scale: Scale, local: Local = None
) -> Float[Tensor, ""]:
    """The mean of both directions' cross-entropies over the batch: CLIP's loss (BiVLC Appendix E).

    Images choose among all texts, and the texts that have an image among all images. Texts beyond the number
    of images are hard negatives (NegCLIP; TROHN-Text); negative captions with images of their own make the
    plain loss of twice the rows (TROHN-Img). Raises `InputError` for fewer texts than images.

    >>> round(info_nce(torch.ones(4, 2), torch.ones(4, 2), torch.tensor(100.0)).item(), 4)  # ln 4
    1.3863
    >>> images, texts = torch.eye(2), torch.cat([torch.eye(2), -torch.eye(2)])
    >>> round(info_nce(images, texts, torch.tensor(0.0)).item(), 4)  # (ln 4 + ln 2) / 2
    1.0397
    """
    if len(texts) < len(images):
        given = f"{len(texts)} texts for {len(images)} images"
        raise InputError("a caption belongs to each image, and negatives come on top", given=given)
    image_scores, text_scores = both_ways(images, texts, local, scale)
    right = _right(image_scores, local)
    return (functional.cross_entropy(image_scores, right) + functional.cross_entropy(text_scores, right)) / 2


def positive_augmented(
    images: Float[Tensor, "rows width"],
    texts: Float[Tensor, "rows width"],
    generated_images: Float[Tensor, "rows width"],
    generated_texts: Float[Tensor, "rows width"],
    scale: Scale,
    *,
    lambda_v: float = 0.05,
    lambda_t: float = 0.1,
    halved: bool = False,
    local: Local = None,
) -> Float[Tensor, ""]:
    """L(V, T) + lambda_v L(V', T) + lambda_t L(V, T') (PAC-S equations 2 to 4).

    V' and T' are generated images and texts of the same rows. Each L is the sum of both directions, as
    equations 2 and 3 have it; whether the released weights were trained with half of it (`halved`) is not
    known.
    """
    whole = (
        info_nce(images, texts, scale, local)
        + lambda_v * info_nce(generated_images, texts, scale, local)
        + lambda_t * info_nce(images, generated_texts, scale, local)
    )
    return whole if halved else 2 * whole


def triplet(
    similarity: Float[Tensor, "own rows"],
    texts: Float[Tensor, "own rows"] | None = None,
    *,
    margin: float = 0.2,
    mining: Mining = "hardest",
    reduction: Literal["mean", "sum"] = "mean",
    local: Local = None,
) -> Float[Tensor, ""]:
    """Hinge on each right pair and the wrong ones that count, in both directions (VSE0, VSE++).

    For image i and a wrong text j: max(0, margin - s(i, i) + s(i, j)), and the same for texts and wrong
    images; `mining` says which count. "mean" divides by the rows, the released code of VSE++ does not
    ("sum"). `texts` are the similarities of texts with images, where they are not the others transposed.

    >>> loss = triplet(torch.tensor([[0.5, 0.4], [0.6, 0.5]]), margin=0.2)
    >>> round(loss.item(), 4)  # 0.1 + 0.3 each way, over two rows
    0.4
    """
    right = _right(similarity, local)
    total = similarity.new_zeros(())
    for scores in (similarity, similarity.T if texts is None else texts):
        hinge = functional.relu(margin - scores.gather(1, right[:, None]) + scores)
        total = total + torch.where(RULES[mining](scores, local), hinge, 0).sum()
    return total / len(similarity) if reduction == "mean" else total * _shares(similarity.shape[1], local)


def _shares(rows: int, local: Local) -> float:
    """By how much a sum over own rows counts more, so that the mean over devices is that over all rows."""
    return 1.0 if local is None else rows / len(local)


def diversity(rows: Float[Tensor, "batch heads width"]) -> Float[Tensor, ""]:
    """How similar the heads of an item are: |G - 1| / heads^2, the mean over the batch (PVSE).

    G are the cosines of what its heads found (`Encoded.residuals`), |.| is Frobenius's norm.

    >>> round(diversity(torch.ones(1, 2, 3)).item(), 4)  # the root of 1 + 1, over 4
    0.3536
    """
    heads = rows.shape[1]
    with torch.autocast(rows.device.type, enabled=False):
        features = unit(rows)
        cosines = features @ features.mT
        off_diagonal = cosines[:, ~torch.eye(heads, dtype=torch.bool, device=rows.device)]
        return torch.linalg.vector_norm(off_diagonal, dim=1).mean() / heads**2


def mmd(
    images: Float[Tensor, "rows *heads width"],
    texts: Float[Tensor, "columns *other_heads width"],
    *,
    gamma: float = 0.5,
    kernel: Literal["gaussian", "distance"] = "gaussian",
    local: Local = None,
) -> Float[Tensor, ""]:
    """How differently the two sides are spread: the squared maximum mean discrepancy (PVSE).

    The mean of k(x, x') + k(y, y') - 2 k(x, y) over all features x of images and y of texts, at length one,
    heads apart. k is exp(-gamma d^2), as PVSE's paper has it, or exp(-gamma d), as its code does
    ("distance").

    >>> mmd(torch.eye(2), torch.eye(2)).item()
    0.0
    """
    with torch.autocast(images.device.type, enabled=False):
        left, right = unit(images), unit(texts)
        x, y = (side.reshape(-1, side.shape[-1]) for side in (left, right))
        mine, other = (
            side if local is None else whole[local].reshape(-1, whole.shape[-1])
            for side, whole in ((x, left), (y, right))
        )

        def mean(left: Tensor, right: Tensor) -> Tensor:
            # Without the shortcut through a product of matrices: it gives an item a distance to itself.
            distance = torch.cdist(left, right, compute_mode="donot_use_mm_for_euclid_dist")
            return torch.exp(-gamma * (distance.square() if kernel == "gaussian" else distance)).mean()

        return mean(mine, x) + mean(other, y) - 2 * mean(mine, y)


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
    """Samples of each item's Gaussian around its mean at length one, drawn where the generator is."""
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
        pairs = logits.view(len(images), images.shape[1], len(texts), texts.shape[1])
        return pairs.transpose(1, 2).flatten(2)


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
    local: Local = None,
) -> Matching:
    """The negative log-likelihood that right pairs match and wrong ones do not, and a price on certainty.

    The probability of a match is the mean over samples x samples of sigmoid(2 (shift - scale d)). All rows x
    rows pairs count, and twice, once for each direction; "mean" divides by the rows, which the released code
    does not. `information` is the KL divergence of both sides from the standard normal, summed: "exact", or
    "released", which takes the mean of the samples as the mean and the logarithm of the standard deviation as
    that of the variance.
    """
    left, right = (
        draws(mean, spread, samples, generator)
        for mean, spread in ((images, image_log_variance), (texts, text_log_variance))
    )
    if local is not None:
        left, images, image_log_variance = left[local], images[local], image_log_variance[local]
    logits = 2 * match_logits(left, right, match)
    sign = 1 - 2 * wrong(logits[:, :, 0], local).to(logits.dtype)
    if local is not None:
        right, texts, text_log_variance = right[local], texts[local], text_log_variance[local]
    likelihood = torch.logsumexp(functional.logsigmoid(sign[:, :, None] * logits), dim=2)
    matching = -2 * (likelihood - math.log(logits.shape[2])).sum()
    if information == "exact":
        price = divergence(unit(images), image_log_variance) + divergence(unit(texts), text_log_variance)
    else:
        price = divergence(left.mean(1), image_log_variance / 2) + divergence(
            right.mean(1), text_log_variance / 2
        )
    over = len(images) if reduction == "mean" else 1 / _shares(logits.shape[1], local)
    matching, price = matching / over, price / over
    return Matching(matching + vib * price, matching, price)


def divergence(
    mean: Float[Tensor, "rows width"], log_variance: Float[Tensor, "rows width"]
) -> Float[Tensor, ""]:
    """The KL divergence of diagonal Gaussians from the standard normal, in nats, summed; 0 or more."""
    spread = log_variance.float() if log_variance.dtype in (torch.float16, torch.bfloat16) else log_variance
    return (spread.exp() + mean.square() - 1 - spread).sum() / 2
