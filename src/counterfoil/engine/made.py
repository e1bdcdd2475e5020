"""Bytes that models make of items, drawings and texts, shared by executors as ratings are.

A maker is given items that are made together, and answers with bytes for each: an image, a text. Those are
taken one by one as they come, from the maker or from the cache where another process has put them, so that
no more than a few lie in memory. One process alone keeps nothing in the cache: what it makes lies in the
build.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from counterfoil.engine.cache import Cache, Kind, Parts, Where
from counterfoil.errors import ScoreError
from counterfoil.models.base import Identity
from counterfoil.store import digest_value

#: Called with the row of an item and what was made for it.
Take = Callable[[int, bytes], None]


@runtime_checkable
class Maker(Protocol):
    """Makes bytes for items; equal identities and equal batches give equal bytes."""

    @property
    def identity(self) -> Identity:
        """All that the bytes depend on, besides the items."""
        ...

    def make(self, batches: Sequence[Sequence[Any]]) -> Iterator[Sequence[bytes]]:
        """The bytes for the items of each batch, as a stream."""
        ...


class MadeBytes:
    """The bytes of each item; they go to `take` and are not held. Those of a batch are one shard."""

    def __init__(
        self, kind: Kind, keys: Sequence[str], take: Take | None = None, *, keeps: bool = True
    ) -> None:
        self.kind, self.keys = kind, keys
        self._take, self._keeps = take, keeps
        self._taken: set[int] = set()

    def alike(self, keys: Sequence[str]) -> "MadeBytes":
        """Of other items: what is made goes to the cache alone."""
        return MadeBytes(self.kind, keys)

    def read(self, cache: Cache) -> tuple[Sequence[int], Sequence[Any]]:
        """The rows that are taken, those that the cache knows among them; and shards that cannot be read."""
        rows: dict[str, list[int]] = {}
        for row, key in enumerate(self.keys):
            if row not in self._taken:
                rows.setdefault(key, []).append(row)
        broken: list[Any] = []
        for key, parts in cache.stream_parts(self.kind, list(rows), broken):
            for row in rows[key]:
                self._give(row, parts)
        return sorted(self._taken), broken

    def put(self, rows: Sequence[int], part: Sequence[Parts], where: Where) -> None:
        """Take what was made for a batch; raises `ScoreError` for another number of items."""
        if len(part) != len(rows):
            raise ScoreError(
                "the maker gave the wrong number of items",
                where=where(0),
                given=len(part),
                allowed=str(len(rows)),
            )
        for row, parts in zip(rows, part, strict=True):
            self._give(row, parts)

    def write(self, cache: Cache, rows: Sequence[int], parts: Sequence[Sequence[Parts]]) -> None:
        """Keep what was made for some batches as one shard, where other processes look for it."""
        if self._keeps:
            cache.write_parts(
                self.kind, [self.keys[row] for row in rows], [item for part in parts for item in part]
            )

    def _give(self, row: int, parts: Parts) -> None:
        if self._take is not None:
            self._take(row, parts["bytes"].tobytes())
        self._taken.add(row)


def made_parts(
    maker: Maker, batches: Sequence[Sequence[Any]], workers: int
) -> Iterator[list[dict[str, np.ndarray]]]:
    """What a maker makes, as named arrays."""
    for batch in maker.make(batches):
        yield [{"bytes": np.frombuffer(data, dtype=np.uint8)} for data in batch]


def batch_keys(content: Sequence[Any], size: int) -> list[str]:
    """A key for each item from its content (plain values) and that of the items of its batch of `size`.

    >>> one, two = batch_keys(["a", "b", "c"], 2), batch_keys(["a", "b", "d"], 2)
    >>> one[:2] == two[:2], one[2] == two[2]
    (True, False)
    """
    keys = []
    for start in range(0, len(content), size):
        batch = list(content[start : start + size])
        together = digest_value(batch)
        keys += [digest_value([together, place]) for place in range(len(batch))]
    return keys
