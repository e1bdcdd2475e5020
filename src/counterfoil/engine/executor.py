"""Who computes the shards of a stage: this process, or others beside it; and what is generated in shards.

Several processes agree by leases on shards, through nothing but the cache's own place. Leases that were not
renewed for `patience` seconds are taken over; at worst a shard is computed twice.
"""

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from counterfoil.engine.cache import LEASES, Cache, Parts, StreamedParts
from counterfoil.engine.plan import Advance, ShardWork, batches
from counterfoil.errors import InputError, StorageError
from counterfoil.inputs.files import digest_value
from counterfoil.models.base import Identity
from counterfoil.storage import ObjectStore, Tagged

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


@dataclass(eq=False)
class GeneratedBytes(StreamedParts):
    """The bytes of each item, given to `take`, not held; a batch is a shard, in `second_cache` if given."""

    miscounted = "the generator gave the wrong number of items"

    take: Take | None = None
    second_cache: Cache | None = None

    def read(self, cache: Cache) -> tuple[Sequence[int], Sequence[Path]]:
        rows, broken = super().read(cache)
        if self.second_cache is not None:
            rows, more = super().read(self.second_cache)
            broken = [*broken, *more]
        return rows, broken

    def write(self, cache: Cache, rows: Sequence[int], parts: Sequence[Sequence[Parts]]) -> None:
        super().write(self.second_cache or cache, rows, parts)

    def _take(self, row: int, parts: Parts, where: str) -> Parts:
        if self.take is not None:
            self.take(row, parts["bytes"].tobytes())
        return {}


def generated_parts(
    generator: BatchGenerator, batches: Sequence[Sequence[Any]], workers: int
) -> Iterator[list[dict[str, np.ndarray]]]:
    for batch in generator.make(batches):
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
        with Leases.of(work) as leases:
            while waiting:
                # Few at a time, so that all processes have some to the end.
                most = max(1, min(AT_ONCE, len(waiting) // (2 * self.of)))
                taken = list(islice((shard for shard in waiting if leases.take(work.names[shard])), most))
                # Only now, since another process may have finished a shard until its lease was taken.
                done = work.finished(waiting, advance)
                free = [shard for shard in taken if shard not in done]
                if free:
                    work.run(free, advance)
                # At the end: between files that are flushed to the disk each further change takes longer.
                for shard in taken:
                    leases.release(work.names[shard])
                computed += len(free)
                waiting = [shard for shard in waiting if shard not in done and shard not in free]
                if waiting and not done and not free:
                    time.sleep(_POLL)
            leases.sweep(work.names)
        return computed == len(work)


_RENEWALS = 4


@dataclass
class Leases:
    """The leases of this process on shards of one kind, renewed by a thread until the block ends."""

    place: ObjectStore
    #: What the shards belong to; names of shards are unique within it.
    what: str
    patience: float = 60.0
    _held: dict[str, Tagged] = field(default_factory=dict, init=False, repr=False)
    _ended: threading.Event = field(default_factory=threading.Event, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    @classmethod
    def of(cls, work: ShardWork) -> "Leases":
        return cls(work.cache.place, f"{work.cache.identity.key} {work.values.kind}")

    def __post_init__(self) -> None:
        self._owner = {"host": socket.gethostname(), "process": os.getpid(), "token": uuid.uuid4().hex}
        self._thread = threading.Thread(target=self._renew, daemon=True)

    def __enter__(self) -> "Leases":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()
        for name in list(self._held):
            self.release(name)

    def take(self, name: str) -> bool:
        """Take the lease on a shard; False where another live process holds it."""
        lease, data = self._lease(name), self._data(0)
        if not self.place.replace(lease, data, ""):
            held = self.place.read(lease)
            # One that was given back between the two looks is taken at the next one.
            if held is None or not self._abandoned(lease, held):
                return False
            if not self.place.replace(lease, data, held.tag):
                return False
        current = self.place.read(lease)
        if current is None or current.data != data:
            return False
        with self._lock:
            self._held[name] = current
        return True

    def release(self, name: str) -> None:
        """Give a lease back; one that another process took for left behind stays."""
        with self._lock:
            held = self._held.pop(name, None)
        if held is not None:
            with suppress(StorageError):
                self.place.remove(self._lease(name), held.tag)

    def sweep(self, finished: Iterable[str]) -> None:
        """Remove what killed processes left behind: leases on finished shards, and abandoned ones."""
        done = {self._lease(name) for name in finished}
        # At a distance every look is a request, and only old ones are looked at.
        old = min(self.patience, self.place.patience)
        with suppress(StorageError):
            for entry in self.place.entries(f"{LEASES}/"):
                if entry.name in done or entry.age > old:
                    # By its tag, since another process may take an old one at this moment.
                    held = self.place.read(entry.name)
                    if held is not None and (entry.name in done or self._abandoned(entry.name, held)):
                        self.place.remove(entry.name, held.tag)

    def _lease(self, name: str) -> str:
        return f"{LEASES}/{digest_value([self.what, name])}.json"

    def _data(self, renewals: int) -> bytes:
        return json.dumps({**self._owner, "renewals": renewals}).encode()

    def _abandoned(self, lease: str, held: Tagged) -> bool:
        try:
            owner: dict[str, Any] = json.loads(held.data)
            same_host = owner["host"] == self._owner["host"]
            if same_host and not alive(int(owner["process"])):
                return True
        except (ValueError, KeyError, TypeError):
            pass  # no lease of ours: its age decides
        age = self.place.age(lease)
        return age is not None and age > self.patience

    def _renew(self) -> None:
        renewals = 0
        while not self._ended.wait(self.patience / _RENEWALS):
            renewals += 1
            for name in list(self._held):
                # One at a time and under the lock, so that none is given back while it is renewed.
                with self._lock, suppress(StorageError):
                    held = self._held.get(name)
                    if held is None:
                        continue
                    lease, data = self._lease(name), self._data(renewals)
                    self.place.replace(lease, data, held.tag)
                    current = self.place.read(lease)
                    if current is None or current.data != data:
                        del self._held[name]
                    else:
                        self._held[name] = current


def alive(process: int) -> bool:
    """Whether a process of this machine runs; a zombie does not."""
    try:
        os.kill(process, 0)
        # "PID (NAME) STATE ...", where there is such a file.
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return state.rpartition(")")[2].split()[0] not in ("Z", "X")
