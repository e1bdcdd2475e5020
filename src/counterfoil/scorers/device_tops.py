"""The best k of a gallery for every query, on the device that PyTorch computes on.

The same work as `counterfoil.engine.top_lists`, block by block with a threshold per query, where the products
are made: of a block only what survives the threshold is looked at, and only the answers leave the device. The
embeddings must fit on it (all of COCO at a width of 512 is 1.5 GB); a block takes a gigabyte beside them.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from counterfoil.errors import InputError, ScoreError
from counterfoil.scorers.runtime import import_torch

#: Queries and items of a block: wide, so that the device seldom waits for the host to ask for the next.
BLOCK = (4096, 65536)
#: Where more items than this many times k survive in a row, they are thinned before they are sorted.
_CROWDED = 8
#: Scores that are sorted at once where a row is thinned.
_AT_ONCE = 1 << 24


def device_tops(
    queries: Float[ndarray, "queries width"],
    gallery: Float[ndarray, "items same_width"],
    k: int,
    *,
    device: str,
    block: tuple[int, int] = BLOCK,
) -> tuple[Int[ndarray, "queries k"], Float[ndarray, "queries k"]]:
    """The k items of highest inner product with each query, best first, and their products.

    Of equal scores the item of the lower position stands first. Takes float32 or float64; products are
    PyTorch's in that precision (TF32 only where the caller has switched it on). Raises `InputError` where k
    is not 1 to the number of items, where widths differ and for other types, and `ScoreError` for NaN.
    """
    check_tops(queries, gallery, k, types=(np.float32, np.float64))
    torch = import_torch()
    width = max(block[1], k)
    items, values = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), queries.dtype)
    with torch.inference_mode():
        right = torch.from_numpy(np.ascontiguousarray(gallery)).to(device)
        for lo in range(0, len(queries), block[0]):
            left = torch.from_numpy(np.ascontiguousarray(queries[lo : lo + block[0]])).to(device)
            best = None
            for first in range(0, len(gallery), width):
                best = _better(torch, left @ right[first : first + width].T, lo, first, k, best)
            assert best is not None  # there is a block, since there is an item
            items[lo : lo + block[0]], values[lo : lo + block[0]] = (tensor.cpu().numpy() for tensor in best)
    return items, values


def check_tops(
    queries: Float[ndarray, "queries width"],
    gallery: Float[ndarray, "items same_width"],
    k: int,
    *,
    types: tuple[type, ...],
) -> None:
    """Raise `InputError` where no best k can be found: k, the widths or the types do not fit."""
    if not 1 <= k <= len(gallery):
        raise InputError(
            "a gallery has no such number of best items", given=k, allowed=f"1 to {len(gallery)}"
        )
    if queries.shape[1] != gallery.shape[1]:
        raise InputError(
            "queries and gallery differ in width", given=f"{queries.shape[1]} and {gallery.shape[1]}"
        )
    if queries.dtype != gallery.dtype or queries.dtype not in types:
        names = [np.dtype(kind).name for kind in types]
        raise InputError(
            "queries and gallery cannot be multiplied as they are",
            given=f"{queries.dtype} and {gallery.dtype}",
            allowed=", or ".join(f"both {name}" for name in names),
        )


def _better(
    torch: Any, part: Any, first_query: int, first_item: int, k: int, best: tuple[Any, Any] | None
) -> tuple[Any, Any]:
    """Items and scores of the best k of each row among those known and those of a block of later items."""
    rows = len(part)
    # Written so that NaN survives, as it should not go unseen. What is level with the k-th best of those
    # known has a higher position, and stands behind it.
    beaten = part < _floor(part, k)[:, None] if best is None else part <= best[1][:, -1:]
    survives = beaten.logical_not_()
    row, column = survives.nonzero(as_tuple=True)
    broken = part[row, column].isnan()
    if broken.any():
        at = int(broken.nonzero()[0])
        raise ScoreError(
            "a score is not a number",
            where=f"query {first_query + int(row[at])}, item {first_item + int(column[at])}",
            given="NaN",
        )
    count = torch.bincount(row, minlength=rows)
    crowded = (count > _CROWDED * k).nonzero().reshape(-1)
    if len(crowded):
        for some in crowded.split(max(1, _AT_ONCE // part.shape[1])):
            scores = part[some].masked_fill(~survives[some], -torch.inf)
            best_columns = torch.sort(scores, dim=1, descending=True, stable=True).indices[:, :k]
            survives[some] = False
            survives[some[:, None], best_columns] = True
        row, column = survives.nonzero(as_tuple=True)
        count = torch.bincount(row, minlength=rows)
    slot = torch.arange(len(row), device=part.device) - (count.cumsum(0) - count)[row]
    known = 0 if best is None else k
    # What was known, best first, then the survivors by position: a stable sort leaves equal scores in that
    # order, and the padding behind everything else.
    most = int(count.max()) if rows else 0
    lines = torch.full((rows, known + most), -torch.inf, dtype=part.dtype, device=part.device)
    names = torch.full(lines.shape, -1, dtype=torch.int64, device=part.device)
    lines[row, known + slot], names[row, known + slot] = part[row, column], first_item + column
    if best is not None:
        names[:, :k], lines[:, :k] = best
    scores, order = torch.sort(lines, dim=1, descending=True, stable=True)
    return names.gather(1, order[:, :k]), scores[:, :k]


def _floor(part: Any, k: int) -> Any:
    """A score that at least k items of each row reach, cheaply: the k-th best of the best of groups."""
    rows, width = part.shape
    groups = min(width, max(4 * k, 64))
    deep = width // groups
    best = part[:, : deep * groups].reshape(rows, deep, groups).amax(dim=1)
    return best.topk(k, dim=1).values[:, -1]
