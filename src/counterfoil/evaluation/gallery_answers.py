"""Answers of a gallery as columns of a table, a row per query, written and read.

depth     how far down the ranking is known
above     per right answer, in their order: how many items score above it, -1 where it was not found
level     per right answer: how many score as high, itself included
items     what was ranked first: positions, -1 behind the end
scores    the scores of these
share:THRESHOLD:POLICY    where right is a rule: the share of right answers; NaN in the other direction
"""

import numpy as np
import pyarrow as pa
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.data.answers import DirectionRanks, Rankings
from counterfoil.data.forms import Gallery, Search
from counterfoil.errors import DataError
from counterfoil.evaluation.forms.base import check_answers
from counterfoil.inputs.columns import ColumnSchema
from counterfoil.metrics.class_rules import Plausible

_COLUMNS = {
    "depth": ColumnSchema("whole", low=0),
    "above": ColumnSchema("wholes", low=-1),
    "level": ColumnSchema("wholes", low=0),
    "items": ColumnSchema("wholes", low=-1),
    "scores": ColumnSchema("reals", nan=True),
}
_SHARE = ColumnSchema("real", nan=True, low=0, high=1)
_POLICIES = ("strict", "half", "optimistic")


def columns(gallery: Gallery, rankings: Rankings) -> dict[str, pa.Array]:
    """The columns by name."""
    sides = (rankings.i2t, rankings.t2i)
    answered = np.concatenate([_counts(gallery.i2t), _counts(gallery.t2i)])
    tops = np.repeat([placed.top.shape[1] for placed in sides], [len(placed.top) for placed in sides])

    def lists(counts: NDArray[np.int64], parts: list[ndarray], kind: pa.DataType) -> pa.Array:
        starts = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
        return pa.ListArray.from_arrays(starts, pa.array(np.concatenate(parts), kind))

    found = {
        "depth": pa.array(np.concatenate([placed.depth for placed in sides]), pa.int64()),
        "above": lists(answered, [placed.above for placed in sides], pa.int64()),
        "level": lists(answered, [placed.level for placed in sides], pa.int64()),
        "items": lists(tops, [placed.top.reshape(-1) for placed in sides], pa.int32()),
        "scores": lists(tops, [placed.top_scores.reshape(-1) for placed in sides], pa.float32()),
    }
    shares: dict[str, ndarray] = {}
    for search, rows, placed in zip(*_directions(gallery), sides, strict=True):
        if placed.shares is not None:
            for name, values in zip(
                _share_names(search), placed.shares.reshape(-1, len(search)), strict=True
            ):
                shares.setdefault(name, np.full(len(gallery), np.nan))[rows] = values
    return found | {name: pa.array(column, pa.float64()) for name, column in shares.items()}


def read(gallery: Gallery, table: pa.Table, *, where: object) -> Rankings:
    """The rankings that `columns` gave; raises `DataError` naming the column that does not fit."""
    searches, directions = _directions(gallery)
    shares = {name: _SHARE for search in searches for name in _share_names(search)}
    table = check_answers(table, _COLUMNS | shares, gallery.ids, where=where)
    sizes = (gallery.n_captions, gallery.n_images)
    placed = []
    for search, rows, size in zip(searches, directions, sizes, strict=True):
        part = table.slice(rows.start, rows.stop - rows.start)
        above, level = (
            _flat(part, name, _counts(search), f"{where}, column '{name}'", rows)
            for name in ("above", "level")
        )
        widths = part["items"].combine_chunks().value_lengths().to_numpy(zero_copy_only=False)
        width = int(widths.max(initial=0))
        items, scores = (
            _flat(part, name, np.full(len(search), width), f"{where}, column '{name}'", rows)
            for name in ("items", "scores")
        )
        found = DirectionRanks(
            above.astype(np.int64),
            level.astype(np.int64),
            part["depth"].to_numpy().astype(np.int64),
            items.reshape(len(search), width).astype(np.int32),
            scores.reshape(len(search), width).astype(np.float32),
            _shares(part, search),
        )
        _check_places(found, search, size, where)
        placed.append(found)
    return Rankings(placed[0], placed[1])


def _directions(gallery: Gallery) -> tuple[tuple[Search, Search], tuple[slice, slice]]:
    """Both directions, and the rows of their queries."""
    split = len(gallery.i2t)
    return (gallery.i2t, gallery.t2i), (slice(0, split), slice(split, len(gallery)))


def _counts(search: Search) -> NDArray[np.int64]:
    """How many right answers are listed per query; none where a rule says what is right."""
    found = search.positives
    return np.zeros(len(search), np.int64) if isinstance(found, Plausible) else found.counts


def _share_names(search: Search) -> list[str]:
    found = search.positives
    thresholds = found.thresholds if isinstance(found, Plausible) else ()
    return [f"share:{threshold}:{policy}" for threshold in thresholds for policy in _POLICIES]


def _shares(table: pa.Table, search: Search) -> NDArray[np.float64] | None:
    names = _share_names(search)
    if not names:
        return None
    return np.stack([table[name].to_numpy() for name in names]).reshape(-1, len(_POLICIES), len(search))


def _flat(table: pa.Table, name: str, lengths: NDArray[np.int64], where: str, rows: slice) -> ndarray:
    """The lists of a column, one after another; raises `DataError` where they have other lengths."""
    lists = table[name].combine_chunks()
    found = lists.value_lengths().to_numpy(zero_copy_only=False)
    if (found != lengths).any():
        row = int(np.argmax(found != lengths))
        raise DataError(
            "not as many items as its query has",
            where=f"{where}, row {rows.start + row + 1}",
            given=int(found[row]),
            allowed=str(lengths[row]),
        )
    return np.array(lists.flatten().to_numpy(zero_copy_only=False))


def _check_places(found: DirectionRanks, search: Search, size: int, where: object) -> None:
    """Raise `DataError` where there are more items than the gallery of `size` has, or too few."""
    for name, values, high in (("depth", found.depth, size), ("items", found.top, size - 1)):
        if values.max(initial=-1) > high:
            raise DataError(
                "out of range",
                where=f"{where}, column '{name}'",
                given=int(values.max()),
                allowed=f"at most {high}",
            )
    if isinstance(search.positives, Plausible):
        return
    above, level = found.above, found.level
    ranked = above >= 0
    odd = (above + level > size) | (ranked != (level > 0)) | (ranked & (search.positives.items < 0))
    if odd.any():
        at = int(np.argmax(odd))
        raise DataError(
            "the numbers of items above and level with a right answer cannot both be",
            where=f"{where}, columns 'above' and 'level'",
            given=f"{above[at]} above (-1 where not found), {level[at]} level, {size} items",
        )
