"""How probably two Gaussians match: PCME's scores, by sampling and in closed form (Chun et al. 2021).

A row is an item's mean, of length one, followed by the logarithms of its variances. Two points at a distance
d match with the probability sigmoid(2 (shift - scale d)). Scores are logarithms of probabilities: the order
is the same, and what is nearly impossible or nearly certain is still told apart.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

#: Beneath the root of a squared distance, as in training.
EPSILON = 1e-6
#: Samples of a block that are compared at a time: a few arrays of 16 MB.
_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Sampled:
    """The logarithm of the mean probability over samples x samples pairs of draws of an image and a caption.

    The noise is drawn once from `seed`, for images and for captions, and shared by all items: a score depends
    on nothing but its two rows. For each pair it is an unbiased estimate of the probability; the errors of
    different pairs go together, which disturbs their order less than errors of their own would.
    """

    scale: float
    shift: float
    samples: int = 7
    seed: int = 0

    def draws(
        self, rows: Float[ndarray, "items twice"], *, images: bool
    ) -> Float[ndarray, "items samples width"]:
        """The samples of each item, in the precision of its row."""
        width = rows.shape[1] // 2
        rng = np.random.default_rng([self.seed, int(images)])
        noise = rng.standard_normal((self.samples, width)).astype(rows.dtype)
        return rows[:, None, :width] + np.exp(rows[:, None, width:] / 2) * noise

    def pairs(
        self, captions: Float[ndarray, "pairs twice"], images: Float[ndarray, "pairs twice"]
    ) -> Float[ndarray, "pairs"]:
        """The log-probability of captions[i] with images[i]; at most 0."""
        scores = np.empty(len(captions))
        step = max(1, _AT_ONCE // max(1, self.samples**2 * captions.shape[1]))
        for lo in range(0, len(captions), step):
            left, right = (
                self.draws(rows[lo : lo + step].astype(np.float64), images=side)
                for rows, side in ((captions, False), (images, True))
            )
            squares = np.square(left[:, :, None] - right[:, None]).sum(axis=3)
            logs = log_match(squares.reshape(len(left), -1), self.scale, self.shift)
            scores[lo : lo + step] = _log_mean(logs)
        return scores

    def block(
        self, images: Float[ndarray, "rows twice"], captions: Float[ndarray, "columns twice"]
    ) -> Float[ndarray, "rows columns"]:
        """The log-probabilities of all images with all captions."""
        scores = np.empty((len(images), len(captions)), np.result_type(images, captions))
        draws = self.draws(images, images=True)
        left, n = draws.reshape(-1, draws.shape[2]), self.samples
        lengths = np.square(left).sum(axis=1)[:, None]
        step = max(1, _AT_ONCE // max(1, n * len(left)))
        for lo in range(0, len(captions), step):
            some = self.draws(captions[lo : lo + step], images=False)
            right = some.reshape(-1, some.shape[2])
            squares = left @ right.T
            squares *= -2
            squares += lengths
            squares += np.square(right).sum(axis=1)
            logs = log_match(squares, self.scale, self.shift).reshape(len(images), n, len(some), n)
            each = np.ascontiguousarray(logs.transpose(0, 2, 1, 3)).reshape(len(images), len(some), n * n)
            scores[:, lo : lo + step] = _log_mean(each)
        return scores


@dataclass(frozen=True)
class Expected:
    """The log-probability at the root of the expected squared distance: no sampling, nothing to seed.

    Closed is the expectation: for independent Gaussians E|x - y|^2 is the squared distance of the means plus
    all variances of both, exactly. The probability is approximated: sigmoid and root are taken of the
    expectation, not the expectation of them. It is exact where both variances are zero, and much too low for
    vague items that are far apart, whose samples come near now and then. The order of items is that of the
    expected squared distance.
    """

    scale: float
    shift: float

    def pairs(
        self, captions: Float[ndarray, "pairs twice"], images: Float[ndarray, "pairs twice"]
    ) -> Float[ndarray, "pairs"]:
        """The score of captions[i] with images[i]; at most 0."""
        squares = expected_squared_distance(captions.astype(np.float64), images.astype(np.float64))
        return log_match(squares, self.scale, self.shift)

    def block(
        self, images: Float[ndarray, "rows twice"], captions: Float[ndarray, "columns twice"]
    ) -> Float[ndarray, "rows columns"]:
        """The scores of all images with all captions."""
        width = images.shape[1] // 2
        squares = images[:, :width] @ captions[:, :width].T
        squares *= -2
        squares += _second_moment(images)[:, None]
        squares += _second_moment(captions)
        return log_match(squares, self.scale, self.shift)


def expected_squared_distance(
    captions: Float[ndarray, "pairs twice"], images: Float[ndarray, "pairs twice"]
) -> Float[ndarray, "pairs"]:
    """E|x - y|^2 of x from the Gaussian captions[i] and y from images[i], exactly; 0 or more.

    >>> far, wide = np.array([[3.0, 4.0, -np.inf, -np.inf]]), np.array([[0.0, 0.0, 0.0, np.log(2)]])
    >>> expected_squared_distance(far, wide).round(9)
    array([28.])
    """
    width = captions.shape[1] // 2
    apart = np.square(captions[:, :width] - images[:, :width]).sum(axis=1)
    return apart + np.exp(captions[:, width:]).sum(axis=1) + np.exp(images[:, width:]).sum(axis=1)


def log_match(squares: Float[ndarray, "*any"], scale: float, shift: float) -> Float[ndarray, "*any"]:
    """ln sigmoid(2 (shift - scale d)) of squared distances; at most 0, without overflow.

    Squares below zero, which rounding makes, are zero.

    >>> np.exp(log_match(np.array([0.0, 1.0, 4.0]), scale=15.0, shift=15.0)).round(4)
    array([1. , 0.5, 0. ])
    """
    odds = 2 * (scale * np.sqrt(np.maximum(squares, 0) + squares.dtype.type(EPSILON)) - shift)
    return -(np.maximum(odds, 0) + np.log1p(np.exp(-np.abs(odds))))


def _log_mean(logs: Float[ndarray, "*some draws"]) -> Float[ndarray, "*some"]:
    """The logarithm of the mean of what is given by logarithms, over the last axis."""
    highest = logs.max(axis=-1)
    return highest + np.log(np.exp(logs - highest[..., None]).mean(axis=-1))


def _second_moment(rows: Float[ndarray, "items twice"]) -> Float[ndarray, "items"]:
    """E|x|^2 of each Gaussian."""
    width = rows.shape[1] // 2
    return np.square(rows[:, :width]).sum(axis=1) + np.exp(rows[:, width:]).sum(axis=1)
