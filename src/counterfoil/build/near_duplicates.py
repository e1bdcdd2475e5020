"""Near-duplicates among many texts: MinHash finds candidates, their letters decide.

Texts are alike by the Jaccard similarity of their sets of four letters, as in audits
(`evaluation.duplicates`), where all pairs are compared; here MinHash and banding leave few pairs to compare,
so that a million captions take a minute. What is found is exact. What is missed is little: two texts at the
threshold meet in some band with a chance of 99 % or more, and more surely the more alike they are.

Source: Leskovec, Rajaraman, Ullman, Mining of massive datasets, chapter 3. The library is rensa.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Int
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import InputError, MissingExtraError

#: Letters of a shingle, as in `evaluation.duplicates`.
_LETTERS = 4
#: MinHash values of a text, at most, and the chance to find a pair at the threshold, at least.
_VALUES, _RECALL = 128, 0.99
#: Texts that are hashed together.
_BLOCK = 50_000
#: Of texts that share a band each is compared with so many that come before it, at most.
_COMPARED = 100

Progress = Callable[[str, int, int], None]


def bands_of(threshold: float) -> tuple[int, int]:
    """The number of bands and the values in each, with which pairs at the threshold meet surely enough.

    >>> bands_of(0.8), bands_of(0.5)
    ((21, 6), (42, 3))
    """
    width = next(
        (each for each in range(16, 1, -1) if 1 - (1 - threshold**each) ** (_VALUES // each) >= _RECALL),
        1,
    )
    return _VALUES // width, width


def near_duplicates(
    texts: Sequence[str], *, threshold: float, seed: int, progress: Progress = lambda stage, done, total: None
) -> tuple[Int[ndarray, "pairs 2"], NDArray[np.float64]]:
    """Pairs (i, j), i < j, of different texts that are alike to `threshold` or more, and how alike they are.

    Pairs are in the order of j, then i. Of more than 100 texts that share a band each is compared with the
    100 before it. `seed` decides the hashes; equal texts and seeds give equal pairs. Raises `InputError` for
    a threshold that is not above 0 and below 1, `MissingExtraError` without rensa.

    >>> pairs, alike = near_duplicates(["a red cat on a mat", "two dogs", "a red cat on the mat"],
    ...                                threshold=0.5, seed=0)
    >>> pairs.tolist(), alike.round(2).tolist()
    ([[0, 2]], [0.52])
    """
    if not 0 < threshold < 1:
        raise InputError("threshold of similarity", given=threshold, allowed="above 0, below 1")
    try:
        import rensa
    except ImportError:
        raise MissingExtraError("rensa", "build") from None
    n_bands, width = bands_of(threshold)
    n = len(texts)
    if n < 2:
        return np.zeros((0, 2), dtype=np.int64), np.zeros(0)
    index = rensa.RMinHashLSH(threshold, n_bands * width, n_bands)

    def hashed(block: Sequence[str]) -> "rensa.RMinHashDigestMatrix":
        tokens, offsets = shingle_hashes(block)
        return rensa.RMinHash.digest_matrix_from_flat_token_hashes(tokens, offsets, n_bands * width, seed)

    # First which texts meet another in any band; most do not, and nothing more is kept of them.
    for start in range(0, n, _BLOCK):
        index.insert_matrix(hashed(texts[start : start + _BLOCK]), start)
        progress("hashing captions", min(start + _BLOCK, n), n)
    met = np.concatenate(
        [
            np.array(index.query_duplicate_flags_matrix(hashed(texts[start : start + _BLOCK])), dtype=bool)
            for start in range(0, n, _BLOCK)
        ]
    )
    del index
    rows = np.flatnonzero(met)
    values = np.concatenate(
        [
            np.array(
                hashed([texts[row] for row in rows[start : start + _BLOCK].tolist()]).to_rows(),
                dtype=np.uint32,
            )
            for start in range(0, len(rows), _BLOCK)
        ]
        or [np.zeros((0, n_bands * width), dtype=np.uint32)]
    )
    pairs = _candidates(values, n_bands, width)
    tokens, offsets = shingle_hashes([texts[row] for row in rows.tolist()])
    alike = _jaccard(tokens, offsets, pairs, progress)
    near = alike >= threshold - 1e-9
    return rows[pairs[near]].reshape(-1, 2), alike[near]


def shingle_hashes(texts: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """A 64-bit hash of each run of four letters of each text, and where the texts' hashes begin and end.

    Runs of a text are in its order, repeated ones among them; a text of fewer letters is one run.

    >>> tokens, offsets = shingle_hashes(["abcde", "bcde", "a"])
    >>> offsets.tolist(), bool(tokens[1] == tokens[2])
    ([0, 2, 3, 4], True)
    """
    padded = [text.ljust(_LETTERS, "\0") for text in texts]
    lengths = np.array([len(text) for text in padded], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths - _LETTERS + 1)]).astype(np.uint64)
    codes = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    codes = codes.astype(np.uint64)
    if not len(codes):
        return np.zeros(0, dtype=np.uint64), offsets
    # A code point has 21 bits: three of them fill a word, and the fourth is mixed in.
    n = len(codes) - _LETTERS + 1
    found = codes[:n] | (codes[1 : n + 1] << np.uint64(21)) | (codes[2 : n + 2] << np.uint64(42))
    found ^= codes[3 : n + 3] * np.uint64(0x9E3779B97F4A7C15)
    # The end of SplitMix64, which spreads every bit over all others.
    found ^= found >> np.uint64(30)
    found *= np.uint64(0xBF58476D1CE4E5B9)
    found ^= found >> np.uint64(27)
    found *= np.uint64(0x94D049BB133111EB)
    found ^= found >> np.uint64(31)
    inside = np.ones(n, dtype=bool)
    for back in range(1, _LETTERS):
        inside[np.cumsum(lengths)[:-1] - back] = False
    return found[inside], offsets


def first_of_alike(n: int, pairs: Int[ndarray, "pairs 2"]) -> Int[ndarray, "n"]:
    """For each of n texts the one that is kept in its place: itself, or the first kept one that is alike.

    `pairs` are (i, j) with i < j, in the order of j. A text goes only where one that it is alike to stays.

    >>> first_of_alike(4, np.array([[0, 1], [1, 2], [0, 3]])).tolist()
    [0, 0, 2, 0]
    """
    stands = np.arange(n)
    for i, j in pairs.tolist():
        if stands[i] == i and stands[j] == j:
            stands[j] = i
    return stands


def _candidates(values: NDArray[np.uint32], n_bands: int, width: int) -> NDArray[np.int64]:
    """The pairs of rows that have the same values in some band, in the order of the later row."""
    n = len(values)
    found: list[NDArray[np.int64]] = []
    for band in range(n_bands):
        own = np.ascontiguousarray(values[:, band * width : (band + 1) * width])
        key = own.view(np.dtype((np.void, own.dtype.itemsize * width))).reshape(-1)
        order = np.argsort(key, kind="stable") if n else np.zeros(0, dtype=np.int64)
        same = np.concatenate([key[order][1:] == key[order][:-1], [False]]) if n else np.zeros(0, dtype=bool)
        # Rows of one key lie together; pairs at a distance of 1, 2, ... within them.
        there = same.copy()
        for apart in range(1, _COMPARED + 1):
            at = np.flatnonzero(there)
            if not len(at):
                break
            found.append(np.stack([order[at], order[at + apart]], axis=1))
            there[: n - apart] &= same[apart:]
            there[n - apart :] = False
    if not found:
        return np.zeros((0, 2), dtype=np.int64)
    pairs = np.concatenate(found)
    number = np.unique(pairs[:, 1] * n + pairs[:, 0])
    return np.stack([number % n, number // n], axis=1)


def _jaccard(
    tokens: NDArray[np.uint64], offsets: NDArray[np.uint64], pairs: NDArray[np.int64], progress: Progress
) -> NDArray[np.float64]:
    """How alike the sets of tokens of each pair are."""
    from scipy.sparse import csr_matrix

    if not len(pairs):
        return np.zeros(0)
    names, columns = np.unique(tokens, return_inverse=True)
    table = csr_matrix(
        (np.ones(len(tokens), dtype=np.int32), columns.reshape(-1), offsets.astype(np.int64)),
        shape=(len(offsets) - 1, len(names)),
    )
    table.sum_duplicates()
    table.data[:] = 1
    sizes = np.diff(table.indptr)
    found = np.zeros(len(pairs))
    for start in range(0, len(pairs), _BLOCK):
        one, other = pairs[start : start + _BLOCK].T
        both = np.asarray(table[one].multiply(table[other]).sum(axis=1)).reshape(-1)
        found[start : start + _BLOCK] = both / (sizes[one] + sizes[other] - both)
        progress("comparing captions", min(start + _BLOCK, len(pairs)), len(pairs))
    return found
