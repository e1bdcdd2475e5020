"""The best k of a gallery for every query, found in half precision and decided in full.

Products of matrices in half precision take a fraction of the time on a device with units for them, and their
order is not to be trusted. Here they only choose candidates, tile by tile: the largest of every few scores
says which of a tile need to be looked at, without a sort and without the host. The candidates are scored
again from the float32 embeddings, and a bound on what rounding can have done says whether one that was left
out could belong among the best. Queries of which that cannot be ruled out are answered over the whole
gallery, so the answer is always that of a full sort.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from counterfoil.errors import InputError, ScoreError
from counterfoil.scorers.device_tops import check_tops
from counterfoil.scorers.runtime import import_torch

#: Queries and items of a tile: a gigabyte of scores.
TILE = (4096, 131_072)
#: Scores of which the largest is kept; items of a group are spread over their tile.
_GROUP = 16
#: Unit roundoffs of the types that products are made in.
_ROUNDOFF = {"fp16": 2.0**-11, "bf16": 2.0**-9}
#: Below these numbers rounding is no longer relative.
_TINY = {"fp16": 2.0**-24, "bf16": 2.0**-126}
#: Numbers of the candidates' embeddings that are multiplied at once, in float64.
_AT_ONCE = 1 << 26


@dataclass(frozen=True, eq=False)
class HalfTops:
    """The best k of every query, best first; `again` queries were answered over the whole gallery."""

    items: Int[ndarray, "queries k"]
    #: Inner products, summed in float64 and rounded to float32.
    scores: Float[ndarray, "queries k"]
    again: int


def half_tops(
    queries: Float[ndarray, "queries width"],
    gallery: Float[ndarray, "items same_width"],
    k: int,
    *,
    device: str,
    half: str = "fp16",
    spare: int | None = None,
    tile: tuple[int, int] = TILE,
) -> HalfTops:
    """The k items of highest inner product with each query, as a stable sort of all scores has them.

    Takes float32. Scores are products summed in float64 and rounded to float32; of equal scores the item of
    the lower position stands first. `half` is "fp16" or "bf16", the type of the products that choose, and
    `spare` the number of candidates beyond k (by default k, at least 16): few are fast, and leave more
    queries to be answered over the whole gallery. Neither they nor `tile` change an answer.

    Raises `InputError` where k is not 1 to the number of items, where widths differ and for other types, and
    `ScoreError` for NaN.

    >>> gallery = np.array([[1.0, 0.0], [0.6, 0.8], [0.6, 0.8]], dtype=np.float32)
    >>> half_tops(gallery[1:2], gallery, 2, device="cpu", half="bf16").items.tolist()
    [[1, 2]]
    """
    check_tops(queries, gallery, k, types=(np.float32,))
    if half not in _ROUNDOFF:
        raise InputError("no such half precision", given=half, allowed=tuple(_ROUNDOFF))
    torch = import_torch()
    best_items, values = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
    again = 0
    with torch.inference_mode(), _plain_sums(torch):
        right = _Gallery.of(torch, gallery, device, half)
        wanted = min(len(gallery), k + (max(k, 16) if spare is None else spare))
        for lo in range(0, len(queries), tile[0]):
            left = torch.from_numpy(np.ascontiguousarray(queries[lo : lo + tile[0]])).to(device)
            names, last = right.candidates(left, wanted, max(1, tile[1]))
            items, scores = right.best(left, names, k)
            if wanted < len(gallery):
                # Written so that NaN and infinities are unsure.
                unsure = (scores[:, -1].double() > right.at_most(left, last)).logical_not_().nonzero()[:, 0]
                again += len(unsure)
                for some in unsure.split(max(1, (1 << 27) // len(gallery))):
                    items[some], scores[some] = right.all_of(left[some], k)
            if scores.isnan().any():
                at = scores.isnan().nonzero()[0]
                raise ScoreError(
                    "a score is not a number",
                    where=f"query {lo + int(at[0])}, item {int(items[at[0], at[1]])}",
                    given="NaN",
                )
            best_items[lo : lo + tile[0]], values[lo : lo + tile[0]] = (
                items.cpu().numpy(),
                scores.cpu().numpy(),
            )
    return HalfTops(best_items, values, again)


@dataclass(frozen=True, eq=False)
class _Gallery:
    """A gallery on the device, as it is and rounded, with what rounding did to it at most."""

    torch: Any
    full: Any
    half: Any
    name: str
    #: The greatest length of an item, and of the difference that rounding made.
    length: Any
    apart: Any

    @classmethod
    def of(cls, torch: Any, gallery: ndarray, device: str, name: str) -> "_Gallery":
        """A gallery on a device."""
        full = torch.from_numpy(np.ascontiguousarray(gallery)).to(device)
        half = full.to(torch.float16 if name == "fp16" else torch.bfloat16)
        # In pieces, since float64 takes four times the room of what is rounded.
        parts = [
            (_lengths(torch, whole).max(), _lengths(torch, whole, rounded).max())
            for whole, rounded in zip(full.split(65_536), half.split(65_536), strict=True)
        ]
        length, apart = (torch.stack(lengths).max() for lengths in zip(*parts, strict=True))
        return cls(torch, full, half, name, length, apart)

    def candidates(self, left: Any, wanted: int, width: int) -> tuple[Any, Any]:
        """(rows, wanted) items by scores in half precision, and the lowest score of each row of them.

        No other item has a higher one.
        """
        torch = self.torch
        rounded = left.to(self.half.dtype)
        best: tuple[Any, Any] | None = None
        for first in range(0, len(self.half), width):
            scores, names = self._tile(rounded @ self.half[first : first + width].T, wanted)
            names = names + first
            if best is not None:
                scores, names = (torch.cat(pair, dim=1) for pair in zip(best, (scores, names), strict=True))
            if scores.shape[1] > wanted:
                scores, order = torch.topk(scores, wanted, dim=1)
                names = names.gather(1, order)
            best = scores, names
        assert best is not None  # there is a tile, since there is an item
        return best[1], best[0].amin(dim=1)

    def _tile(self, part: Any, wanted: int) -> tuple[Any, Any]:
        """The highest scores of each row of a tile and where they stand; all of them in a narrow tile."""
        torch = self.torch
        rows, width = part.shape
        deep = min(_GROUP, width // max(1, 2 * wanted))
        if deep < 2:
            scores, names = torch.topk(part, min(wanted, width), dim=1)
            return scores, names
        # The best `wanted` stand in as many groups at most, in those of the highest maxima. The groups'
        # members are `groups` apart, so that neighbouring threads read neighbouring scores.
        groups = width // deep
        whole = groups * deep
        _, chosen = torch.topk(part[:, :whole].view(rows, deep, groups).amax(dim=1), wanted, dim=1)
        steps = torch.arange(0, whole, groups, device=part.device)
        names = (chosen[:, :, None] + steps).view(rows, -1)
        if whole < width:
            rest = torch.arange(whole, width, device=part.device).expand(rows, -1)
            names = torch.cat([names, rest], dim=1)
        scores, order = torch.topk(part.gather(1, names), wanted, dim=1)
        return scores, names.gather(1, order)

    def best(self, left: Any, names: Any, k: int) -> tuple[Any, Any]:
        """The best k of each row's candidates by exact scores; of equal ones that of the lower position."""
        torch = self.torch
        names = torch.sort(names, dim=1).values
        scores = torch.empty(names.shape, dtype=torch.float32, device=left.device)
        step = max(1, _AT_ONCE // max(1, names.shape[1] * left.shape[1]))
        for lo in range(0, len(left), step):
            items = self.full[names[lo : lo + step]].double()
            exact = torch.bmm(items, left[lo : lo + step].double()[:, :, None])
            scores[lo : lo + step] = exact[:, :, 0].float()
        return _first(torch, scores, names, k)

    def all_of(self, left: Any, k: int) -> tuple[Any, Any]:
        """The best k of each row by the exact scores of the whole gallery."""
        torch = self.torch
        wide = left.double()
        parts = [(wide @ some.double().T).float() for some in self.full.split(65_536)]
        scores = torch.cat(parts, dim=1)
        return _first(torch, scores, torch.arange(len(self.full), device=left.device).expand_as(scores), k)

    def at_most(self, left: Any, last: Any) -> Any:
        """(rows,) float64: more than any exact score of an item whose score in half precision is not above
        `last`.

        Of a query q and an item g, rounded to q' and g', q g - q' g' = (q - q') g' + q (g - g'), which
        lengths bound (Cauchy-Schwarz). Then come the sum of products in float32, of which device units lose
        up to a unit in the last place at each step, the rounding of that sum to half precision, and that of
        exact scores to float32.
        """
        torch, rounded = self.torch, left.to(self.half.dtype)
        length, apart = _lengths(torch, left), _lengths(torch, left, rounded)
        longest = (length + apart) * (self.length + self.apart)
        inputs = apart * (self.length + self.apart) + length * self.apart
        sums = left.shape[1] * 2.0**-22 * longest + 2.0**-22 * longest
        output = 2 * _ROUNDOFF[self.name] * last.double().abs() + _TINY[self.name]
        return last.double() + inputs + sums + output


def _lengths(torch: Any, rows: Any, other: Any = None) -> Any:
    """(rows,) float64 lengths of rows, or of their differences from others."""
    wide = rows.double() if other is None else rows.double() - other.double()
    return torch.linalg.vector_norm(wide, dim=1)


def _first(torch: Any, scores: Any, names: Any, k: int) -> tuple[Any, Any]:
    """Names and scores of the first k of each row, whose names ascend: a stable sort keeps them so."""
    # -0 and 0 are one score.
    ordered, order = torch.sort(scores + 0.0, dim=1, descending=True, stable=True)
    return names.gather(1, order[:, :k]), ordered[:, :k]


@contextmanager
def _plain_sums(torch: Any) -> Iterator[None]:
    """Sums of products are kept in float32: cuBLAS may keep parts of them in half precision otherwise."""
    settings = torch.backends.cuda.matmul
    names = (
        "allow_fp16_reduced_precision_reduction",
        "allow_bf16_reduced_precision_reduction",
    )
    before = {name: getattr(settings, name) for name in names}
    try:
        for name in names:
            setattr(settings, name, False)
        yield
    finally:
        for name, value in before.items():
            setattr(settings, name, value)
