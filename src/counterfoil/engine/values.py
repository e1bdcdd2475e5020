"""Values of items, read from shards or computed: a vector per item, or named rows of any number per item."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy import ndarray

from counterfoil.engine.cache import Cache, Kind, Parts
from counterfoil.errors import ScoreError

#: The place of one item of a batch in words, for an error.
Where = Callable[[int], str]


class Vectors:
    """One vector per item: an array (items, width)."""

    def __init__(self, kind: Kind, keys: Sequence[str]) -> None:
        self.kind, self.keys = kind, keys
        self._values: ndarray | None = None

    @property
    def values(self) -> ndarray:
        """(items, width), complete once every batch is there."""
        assert self._values is not None
        return self._values

    def read(self, kept: Cache) -> tuple[Sequence[int], Sequence[Path]]:
        """The rows that the shards hold, and the shards that cannot be read."""
        known = kept.read(self.kind, self.keys)
        if known.values is not None:
            self._values = np.empty((len(self.keys), known.values.shape[1]), dtype=known.values.dtype)
            self._values[known.rows] = known.values
        return known.rows.tolist(), known.broken

    def put(self, rows: Sequence[int], part: ndarray, where: Where) -> None:
        """Take the vectors of a batch, (batch, width); raises `ScoreError` where they are not."""
        if part.ndim != 2 or len(part) != len(rows):
            raise ScoreError(
                "the scorer gave the wrong number of rows",
                where=where(0),
                given=part.shape,
                allowed=f"({len(rows)}, width)",
            )
        if self._values is None:
            self._values = np.empty((len(self.keys), part.shape[1]), dtype=part.dtype)
        _check_width(part.shape[1], self._values.shape[1], where(0))
        _check_finite(~np.isfinite(part).all(axis=1), where)
        self._values[rows] = part

    def write(self, kept: Cache, rows: Sequence[int], parts: Sequence[ndarray]) -> None:
        """Keep the vectors of some batches as one shard."""
        kept.write(self.kind, [self.keys[row] for row in rows], np.concatenate(parts))


class NamedRows:
    """Named arrays per item, "vectors" among them, each of any number of rows: frames of videos, tokens."""

    def __init__(self, kind: Kind, keys: Sequence[str]) -> None:
        self.kind, self.keys = kind, keys
        self._found: dict[int, Parts] = {}
        self._width: int | None = None

    @property
    def values(self) -> list[Parts]:
        """The arrays of each item, complete once every batch is there."""
        return [self._found[row] for row in range(len(self.keys))]

    def read(self, kept: Cache) -> tuple[Sequence[int], Sequence[Path]]:
        """The rows that the shards hold, and the shards that cannot be read."""
        found, broken = kept.read_parts(self.kind, self.keys)
        for row, parts in found.items():
            self._take(row, parts, kept.identity.name)
        return sorted(found), broken

    def put(self, rows: Sequence[int], part: Sequence[Parts], where: Where) -> None:
        """Take the arrays of a batch; raises `ScoreError` for an item of no rows too."""
        if len(part) != len(rows):
            raise ScoreError(
                "the scorer gave the wrong number of items",
                where=where(0),
                given=len(part),
                allowed=str(len(rows)),
            )
        for at, parts in enumerate(part):
            if not len(parts["vectors"]):
                raise ScoreError("an item without any part", where=where(at))
        _check_finite(np.array([not _finite(parts) for parts in part]), where)
        for at, (row, parts) in enumerate(zip(rows, part, strict=True)):
            self._take(row, parts, where(at))

    def write(self, kept: Cache, rows: Sequence[int], parts: Sequence[Sequence[Parts]]) -> None:
        """Keep the arrays of some batches as one shard."""
        kept.write_parts(
            self.kind, [self.keys[row] for row in rows], [each for part in parts for each in part]
        )

    def _take(self, row: int, parts: Parts, where: str) -> None:
        width = parts["vectors"].shape[1]
        self._width = width if self._width is None else self._width
        _check_width(width, self._width, where)
        self._found[row] = parts


def _check_width(width: int, before: int, where: str) -> None:
    if width != before:
        raise ScoreError("embeddings of different widths", where=where, given=f"{width} after {before}")


def _check_finite(broken: ndarray, where: Where) -> None:
    if broken.any():
        raise ScoreError(
            "the scorer gave numbers that are not finite",
            where=where(int(np.argmax(broken))),
            given=f"{int(broken.sum())} of {len(broken)} rows of the batch",
            hint="a half-precision model may overflow: try --precision fp32",
        )


def _finite(parts: Mapping[str, ndarray]) -> bool:
    return all(np.isfinite(array).all() for array in parts.values() if array.dtype.kind == "f")
