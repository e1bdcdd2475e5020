"""Score intervals: the values that a score test does not reject, column by column.

`n` counts independent questions and need not be whole; `z` is the quantile of the test's distribution.
"""

import numpy as np
from jaxtyping import Float
from numpy import ndarray


def wilson_score(
    p: Float[ndarray, "k"], n: Float[ndarray, "k"], z: Float[ndarray, "k"]
) -> tuple[Float[ndarray, "k"], Float[ndarray, "k"]]:
    """Wilson's interval around proportions `p` of `n` trials: (low, high) in [0, 1].

    >>> low, high = wilson_score(np.array([0.0]), np.array([4.0]), np.array([2.0]))
    >>> low, high
    (array([0.]), array([0.5]))
    """
    shift = z * z / n
    centre = (p + shift / 2) / (1 + shift)
    half = np.sqrt(shift * (p * (1 - p) + shift / 4)) / (1 + shift)
    # The interval contains the proportion by definition; at 0 and 1 rounding might say otherwise.
    return np.clip(np.minimum(centre - half, p), 0, 1), np.clip(np.maximum(centre + half, p), 0, 1)


def tango_score(
    difference: Float[ndarray, "k"],
    discord: Float[ndarray, "k"],
    n: Float[ndarray, "k"],
    z: Float[ndarray, "k"],
) -> tuple[Float[ndarray, "k"], Float[ndarray, "k"]]:
    """Tango's interval around a difference of paired proportions: (low, high) in [-1, 1].

    `discord` is the share of questions on which the two differ (for fractional values the mean absolute
    difference), at least as large as the difference. Without discord it is +- z**2 / (n + z**2).

    >>> low, high = tango_score(np.array([0.0]), np.array([0.0]), np.array([12.0]), np.array([2.0]))
    >>> low.round(6), high.round(6)
    (array([-0.25]), array([0.25]))
    """
    only_second = (discord - difference) / 2

    def distance(d: Float[ndarray, "k"]) -> Float[ndarray, "k"]:
        # The share of "only the second right" that is likeliest if the difference were d.
        b = (2 - difference) * d - discord
        c = -only_second * d * (1 - d)
        q = (np.sqrt(np.maximum(b * b - 8 * c, 0)) - b) / 4
        spread = np.sqrt(np.maximum(2 * q + d * (1 - d), 1e-300) / n)
        return (difference - d) / spread

    def search(inner: Float[ndarray, "k"], outer: float) -> Float[ndarray, "k"]:
        """The farthest from `inner` towards `outer` that is not rejected; 60 halvings exhaust a float64."""
        kept, rejected = inner.copy(), np.full(len(inner), outer)
        for _ in range(60):
            middle = (kept + rejected) / 2
            inside = np.abs(distance(middle)) <= z
            kept, rejected = np.where(inside, middle, kept), np.where(inside, rejected, middle)
        return kept

    return search(difference, -1.0), search(difference, 1.0)
