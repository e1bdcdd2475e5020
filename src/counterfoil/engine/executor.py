"""Who computes the shards of a stage: this process, or others beside it; and what is generated in shards."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from counterfoil.engine.cache import Cache, Kind, Parts, StreamedParts
from counterfoil.engine.plan import Advance, ShardWork, batches
from counterfoil.errors import InputError
from counterfoil.inputs.files import digest_value
from counterfoil.models.base import Identity

#: Called with the row of an item and what was generated for it.
Take = Callable[[int, bytes], None]


@runtime_checkable
class BatchGenerator(Protocol):
    """Makes bytes for items; equal identities and equal batches give equal bytes."""

    @property
    def identity(self) -> Identity:
        """All that the bytes depend on, besides the items."""

    def make(self, batches: Sequence[Sequence[Any]]) -> Iterator[Sequence[bytes]]:
        """The bytes for the items of each batch, as a stream."""


class GeneratedBytes(StreamedParts):
    """The bytes of each item, given to `take` and not held; a batch is a shard."""

    miscounted = "the maker gave the wrong number of items"

    def __init__(
        self, kind: Kind, keys: Sequence[str], take: Take | None = None, *, beside: Cache | None = None
    ) -> None:
        super().__init__(kind, keys)
        self._give, self._beside = take, beside

    def read(self, cache: Cache) -> tuple[Sequence[int], Sequence[Path]]:
        rows, broken = super().read(cache)
        if self._beside is not None:
            rows, more = super().read(self._beside)
            broken = [*broken, *more]
        return rows, broken

    def write(self, cache: Cache, rows: Sequence[int], parts: Sequence[Sequence[Parts]]) -> None:
        super().write(self._beside or cache, rows, parts)

    def _take(self, row: int, parts: Parts, where: str) -> Parts:
        if self._give is not None:
            self._give(row, parts["bytes"].tobytes())
        return {}


def generated_parts(
    maker: BatchGenerator, batches: Sequence[Sequence[Any]], workers: int
) -> Iterator[list[dict[str, np.ndarray]]]:
    for batch in maker.make(batches):
        yield [{"bytes": np.frombuffer(data, dtype=np.uint8)} for data in batch]


def batch_keys(content: Sequence[Any], size: int) -> list[str]:
    """A key for each item from its content (plain values) and that of the items of its batch of `size`."""
    keys = []
    for batch in batches(content, size):
        together = digest_value(batch)
        keys += [digest_value([together, place]) for place in range(len(batch))]
    return keys


#: Shards that a process takes at once at most: enough to keep its decoding ahead.
AT_ONCE = 8


#: Seconds between two looks at shards that other processes compute.
_POLL = 0.2


@runtime_checkable
class Executor(Protocol):
    """Computes what a stage lacks; `distant` says whether processes that others start do it."""

    distant: ClassVar[bool]

    def run(self, work: ShardWork, advance: Advance) -> bool:
        """Have all shards computed and kept; returns whether their values are all in `work.values` now."""


@dataclass(frozen=True)
class RankExecutor:
    """This process is number `rank` of `of` that share a cache, and nothing else.

    It begins with its own part of the shards, goes on with what is left, and takes a lease on each, so that
    it also does those of a process that died. Ranks may start in any order, at any time, or not at all.
    """

    distant: ClassVar[bool] = False

    rank: int
    of: int

    def __post_init__(self) -> None:
        where = f"executor rank:{self.rank}/{self.of}"
        if self.of < 1:
            raise InputError("number of ranks", where=where, given=self.of, allowed="1 or more")
        if not 0 <= self.rank < self.of:
            raise InputError("no such rank", where=where, given=self.rank, allowed=f"0 to {self.of - 1}")

    def run(self, work: ShardWork, advance: Advance) -> bool:
        first = self.rank * len(work) // self.of
        waiting = [*range(first, len(work)), *range(first)]
        computed = 0
        with work.leases() as leases:
            while waiting:
                # Few at a time, so that all processes have some to the end.
                most = max(1, min(AT_ONCE, len(waiting) // (2 * self.of)))
                taken = list(islice((shard for shard in waiting if leases.take(work.names[shard])), most))
                # Only now, since another process may have finished a shard until its lease was taken.
                done = work.finished(waiting, advance)
                free = [shard for shard in taken if shard not in done]
                for _ in work.run(free, advance) if free else ():
                    pass
                # At the end: between files that are flushed to the disk each further change takes longer.
                for shard in taken:
                    leases.release(work.names[shard])
                computed += len(free)
                waiting = [shard for shard in waiting if shard not in done and shard not in free]
                if waiting and not done and not free:
                    time.sleep(_POLL)
            leases.sweep(work.names)
        return computed == len(work)
