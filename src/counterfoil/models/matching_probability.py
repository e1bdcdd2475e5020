"""Similarity of items that are not one point each, in NumPy alone, and PCME's matching probability.

A Gaussian's row is its mean, of length one, then its log-variances. Points at a distance d match with
probability sigmoid(2 (shift - scale d)) (Chun et al. 2021); scores are logarithms of its mean over samples.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from numpy import ndarray

#: A row for each of some pairs, and a number for each; rows of images and of captions, and a number for all.
PairRows = Float[ndarray, "pairs width"]
PairScores = Float[ndarray, "pairs"]
ImageRows = Float[ndarray, "rows width"]
CaptionRows = Float[ndarray, "columns width"]
Block = Float[ndarray, "rows columns"]


@runtime_checkable
class RowSimilarity(Protocol):
    """A score of two rows; higher is a better match. Pure: the same rows always get the same score."""

    def pairs(self, captions: PairRows, images: PairRows) -> PairScores:
        """captions[i] with images[i], computed in float64."""

    def block(self, images: ImageRows, captions: CaptionRows) -> Block:
        """All images with all captions, in the precision of the rows; asked by several threads."""


@dataclass(frozen=True)
class MostSimilarHeads:
    """The largest cosine between any head of an image and any of a caption (PVSE's multiple instances).

    A row is its heads one after the other, each of length one.

    >>> caption, image = np.array([[1.0, 0.0, 0.0, 1.0]]), np.array([[0.0, -1.0, 0.6, 0.8]])
    >>> MostSimilarHeads(2).pairs(caption, image)
    array([0.8])
    """

    heads: int

    def pairs(self, captions: PairRows, images: PairRows) -> PairScores:
        left, right = (
            rows.astype(np.float64).reshape(len(rows), self.heads, rows.shape[1] // self.heads)
            for rows in (captions, images)
        )
        return np.einsum("nkd,nld->nkl", left, right).max(axis=(1, 2))

    def block(self, images: ImageRows, captions: CaptionRows) -> Block:
        best: ndarray | None = None
        for left in np.split(images, self.heads, axis=1):
            for right in np.split(captions, self.heads, axis=1):
                scores = left @ right.T
                best = scores if best is None else np.maximum(best, scores, out=best)
        assert best is not None  # there is a head
        return best


#: Beneath the root of a squared distance, as in training.
EPSILON = 1e-6
#: Pairs of samples of a block that are compared at a time: a few arrays of 2 MB, which stay near.
_AT_ONCE = 1 << 19


@dataclass(frozen=True)
class Sampled:
    """The logarithm of the mean probability over samples x samples pairs of draws of an image and a caption.

    The noise is drawn once from `seed` and shared by all items: a score depends on its two rows alone.
    """

    scale: float
    shift: float
    samples: int = 7
    seed: int = 0

    def draws(
        self, rows: Float[ndarray, "items twice"], *, images: bool
    ) -> Float[ndarray, "items samples width"]:
        width = rows.shape[1] // 2
        rng = np.random.default_rng([self.seed, int(images)])
        noise = rng.standard_normal((self.samples, width)).astype(rows.dtype)
        return rows[:, None, :width] + np.exp(rows[:, None, width:] / 2) * noise

    def pairs(self, captions: PairRows, images: PairRows) -> PairScores:
        scores = np.empty(len(captions))
        step = max(1, _AT_ONCE // max(1, self.samples**2 * captions.shape[1]))
        for lo in range(0, len(captions), step):
            left, right = (
                self.draws(rows[lo : lo + step].astype(np.float64), images=side)
                for rows, side in ((captions, False), (images, True))
            )
            squares = np.square(left[:, :, None] - right[:, None]).sum(axis=3)
            scores[lo : lo + step] = log_mean_match(squares, self.scale, self.shift, axis=(1, 2))
        return scores

    def block(self, images: ImageRows, captions: CaptionRows) -> Block:
        scores = np.empty((len(images), len(captions)), np.result_type(images, captions))
        n, width = self.samples, images.shape[1] // 2
        # First samples, then second ones, and so on: sums over samples then run along whole lines of items.
        left = self.draws(images, images=True).transpose(1, 0, 2).reshape(-1, width)
        lengths = np.square(left).sum(axis=1)[:, None]
        step = max(1, _AT_ONCE // max(1, n * len(left)))
        for lo in range(0, len(captions), step):
            some = self.draws(captions[lo : lo + step], images=False)
            right = some.transpose(1, 0, 2).reshape(-1, width)
            squares = left @ right.T
            squares *= -2
            squares += lengths
            squares += np.square(right).sum(axis=1)
            distances = squares.reshape(n, len(images), n, len(some))
            scores[:, lo : lo + step] = log_mean_match(distances, self.scale, self.shift, axis=(0, 2))
        return scores


def log_mean_match(
    squares: Float[ndarray, "*any"], scale: float, shift: float, *, axis: tuple[int, ...]
) -> Float[ndarray, "*others"]:
    """The logarithm of the mean over some axes of sigmoid(2 (shift - scale d)) of squared distances.

    At most 0, without overflow; squares below zero, which rounding makes, are zero.

    >>> np.exp(log_mean_match(np.array([0.0, 1.0]), 15.0, 15.0, axis=(0,))).round(4)
    np.float64(0.75)
    """
    # With t = exp(odds) the probability is 1 / (1 + t). Both are divided by the smallest t where that is
    # above one, so nothing underflows; where it is not, what is far from certain is added up instead.
    odds = np.maximum(squares, 0)
    odds += EPSILON
    np.sqrt(odds, out=odds)
    odds *= 2 * scale
    odds -= 2 * shift
    least = np.maximum(odds.min(axis=axis, keepdims=True), 0)
    odds -= least
    # Of no weight beside the likeliest pair, and still a number.
    t = np.exp(np.minimum(odds, odds.dtype.type(80), out=odds), out=odds)
    part = 1 / (np.exp(-least) + t)
    unlikely = least.squeeze(axis) > 0
    chance = part.mean(axis=axis)
    part *= t
    # Neither branch is read where it is not the right one, but both must be numbers.
    certain = np.log1p(-np.where(unlikely, 0, part.mean(axis=axis)))
    return np.where(unlikely, np.log(chance) - least.squeeze(axis), certain)
