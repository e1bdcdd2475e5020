"""Seeded draws over clusters, and sums that come out the same on every machine.

Questions that share an image or a caption succeed and fail together, so what is drawn or flipped is always
a whole cluster of them. Two things make the results bit-for-bit reproducible:

* the draws are made in blocks, and each block has its own child of the seed, so it does not matter who
  computes which block, or in what order;
* what is summed are whole numbers (`Whole`), small enough to be exact in floating point, so it does not
  matter in what order a matrix product adds them up, and equal statistics compare as equal.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

#: Numbers in one block of draws; a block of float32 takes 8 MiB.
_BLOCK = 1 << 21

#: Denominators tried for values such as 1/2 or 1/6, which `half` gives to ties; 2520 covers up to ten ways.
_DENOMINATORS = (1, 2, 12, 60, 2520)

#: Whole numbers up to these are exact.
_EXACT_32 = 2.0**24
_EXACT_64 = 2.0**53


def cluster_draws(n_clusters: int, draws: int, *, seed: int) -> Iterator[Float[ndarray, "block c"]]:
    """How often each cluster is drawn, in `draws` draws of `n_clusters` clusters with replacement.

    Yields blocks of rows of float32 counts, each row summing to `n_clusters`; `draws` rows in all. The same
    seed gives the same rows, and more draws begin with the rows of fewer.

    >>> rows = np.concatenate(list(cluster_draws(3, 4, seed=0)))
    >>> rows.shape, rows.sum(axis=1)
    ((4, 3), array([3., 3., 3., 3.], dtype=float32))
    """
    for rng, rows in _blocks(n_clusters, draws, seed):
        drawn = rng.integers(0, n_clusters, size=(rows, n_clusters), dtype=np.int64)
        drawn += np.arange(rows, dtype=np.int64)[:, None] * n_clusters
        counts = np.bincount(drawn.ravel(), minlength=rows * n_clusters)
        yield counts.reshape(rows, n_clusters).astype(np.float32)


def sign_draws(n_clusters: int, draws: int, *, seed: int) -> Iterator[Float[ndarray, "block c"]]:
    """A fair sign, +1 or -1, for each cluster in each of `draws` draws.

    Yields blocks of rows of float32; `draws` rows in all. The same seed gives the same rows, and more draws
    begin with the rows of fewer.

    >>> rows = np.concatenate(list(sign_draws(5, 2, seed=0)))
    >>> rows.shape, bool((abs(rows) == 1).all())
    ((2, 5), True)
    """
    width = -(-n_clusters // 8)
    for rng, rows in _blocks(n_clusters, draws, seed):
        packed = rng.integers(0, 256, size=(rows, width), dtype=np.uint8)
        bits = np.unpackbits(packed, axis=1, count=n_clusters)
        yield bits.astype(np.float32) * 2 - 1


def _blocks(n_clusters: int, draws: int, seed: int) -> Iterator[tuple[np.random.Generator, int]]:
    """A generator and a number of rows for each block; the rows depend on `n_clusters` alone."""
    rows = max(1, _BLOCK // n_clusters)
    children = np.random.SeedSequence(seed).spawn(-(-draws // rows))
    for number, child in enumerate(children):
        yield np.random.Generator(np.random.PCG64(child)), min(rows, draws - number * rows)


def cluster_sums(values: Float[ndarray, "n m"], clusters: Int[ndarray, "n"]) -> Float[ndarray, "c m"]:
    """The sum of the rows of each cluster; clusters may have any numbers and come in any order of these.

    >>> cluster_sums(np.array([[1.0], [0.5], [2.0]]), np.array([7, 3, 7]))
    array([[0.5],
           [3. ]])
    """
    _, position = np.unique(clusters, return_inverse=True)
    position = position.reshape(-1)
    count = int(position.max(initial=-1)) + 1
    sums = [np.bincount(position, weights=column, minlength=count) for column in values.T]
    return np.stack(sums, axis=1) if sums else np.zeros((count, 0))


@dataclass(frozen=True, eq=False)
class Whole:
    """Numbers as whole multiples of `1 / scale`; `numbers` are float32 or float64 with no fraction."""

    numbers: Float[ndarray, "c m"]
    scale: float

    def weighted(self, weights: Float[ndarray, "draws c"]) -> Float[ndarray, "draws m"]:
        """Whole weights times the numbers: exact, in multiples of `1 / scale`, as float64."""
        return (weights.astype(self.numbers.dtype, copy=False) @ self.numbers).astype(np.float64)


def whole(values: Float[ndarray, "n m"], clusters: Int[ndarray, "n"], *, largest: float = 1.0) -> Whole:
    """The cluster sums of `values` as whole numbers whose weighted sums are exact.

    `largest` bounds the sum of the absolute weights of a draw (the number of clusters for a bootstrap); what
    bounds a weighted sum is `largest` times the largest cluster. Values that are multiples of a small
    fraction (0 and 1, and the 1/2, 1/4, 1/6 of ties) are taken exactly; others are rounded to multiples of a
    power of two, at worst 2**-20 or so of the largest value and commonly far below 1e-9.

    >>> made = whole(np.array([[0.5], [1.0], [1/6]]), np.array([0, 0, 1]))
    >>> made.numbers.ravel(), made.scale
    (array([18.,  2.], dtype=float32), 12.0)
    """
    sums = cluster_sums(np.abs(values), clusters)
    bound = max(float(sums.max(initial=0.0)) * largest, 1e-300)
    for denominator in _DENOMINATORS:
        scaled = values * denominator
        near = np.rint(scaled)
        if np.abs(scaled - near).max(initial=0.0) < 1e-9 and bound * denominator < _EXACT_64:
            numbers = cluster_sums(near, clusters)
            kind = np.float32 if bound * denominator < _EXACT_32 else np.float64
            return Whole(numbers.astype(kind), float(denominator))
    scale = 2.0 ** np.floor(np.log2(_EXACT_64 / bound) - 1)
    return Whole(cluster_sums(np.rint(values * scale), clusters), float(scale))
