"""The work of one stage of a session in shards, and who computes them: this process, or others beside it.

Shards are cut the same everywhere and found in the cache when done. So any process with the scorer can
compute any of them, executors can be mixed, and any process may be killed. An executor only decides who does
which.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy import ndarray

from counterfoil.benchmarks.records import Caption, Image
from counterfoil.engine.cache import Cache, Kind, NamedRows, Parts, StreamedParts, Vectors, shard_name
from counterfoil.errors import InputError, ScoreError
from counterfoil.inputs.files import digest_value
from counterfoil.models.base import (
    CaptionBatches,
    Classifier,
    Embedder,
    Identity,
    ImageBatches,
    PairBatches,
    PairScorer,
    Scorer,
    TextEmbedder,
    stream_pairs,
)

if TYPE_CHECKING:
    from counterfoil.engine.shard_leases import Leases
    from counterfoil.models.captions.base import LocalEmbedder

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
    for start in range(0, len(content), size):
        batch = list(content[start : start + size])
        together = digest_value(batch)
        keys += [digest_value([together, place]) for place in range(len(batch))]
    return keys


#: Called with a number of items whose values are there now.
Advance = Callable[[int], None]

#: (scorer, batches, processes that decode images) -> the values of each batch, as a stream.
Compute = Callable[[Any, Sequence[Sequence[Any]], int], Iterator[Any]]


@dataclass(frozen=True, eq=False)
class ShardWork:
    """Items whose values `compute` gets from a scorer; `cut` holds their rows, by shard and batch.

    All of it but the scorer travels to other processes by pickle, so `compute` is a function of a module.
    """

    stage: str
    scorer: Any
    compute: Compute
    values: Vectors | NamedRows | GeneratedBytes
    cache: Cache
    items: Sequence[Any]
    cut: Sequence[Sequence[Sequence[int]]]
    workers: int = 0

    def __len__(self) -> int:
        return len(self.cut)

    def rows(self, shard: int) -> list[int]:
        return [row for batch in self.cut[shard] for row in batch]

    def size(self, shard: int) -> int:
        return sum(map(len, self.cut[shard]))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each shard is called in the cache: equal keys in equal order, equal names."""
        return tuple(shard_name([self.values.keys[row] for row in self.rows(n)]) for n in range(len(self)))

    def finished(self) -> set[str]:
        """The names of all shards that are in the cache now, whatever process computed them."""
        return self.cache.shards(self.values.kind)

    def leases(self) -> "Leases":
        from counterfoil.engine.shard_leases import Leases
        from counterfoil.storage import open_place

        assert self.cache.folder is not None
        place = open_place(self.cache.folder)
        return Leases(place, f"{self.cache.identity.key} {self.values.kind}")

    def run(self, shards: Sequence[int], advance: Advance) -> Iterator[int]:
        """Compute shards in one stream of batches; each is yielded when its values are taken and kept."""
        batches = [[self.items[row] for row in batch] for shard in shards for batch in self.cut[shard]]
        stream = self.compute(self.scorer, batches, self.workers)
        try:
            for shard in shards:
                parts = []
                for batch in self.cut[shard]:
                    where = partial(self._place, batch)
                    values = next(stream, None)
                    if values is None:
                        raise ScoreError("the scorer stopped before all batches were done", where=where(0))
                    self.values.put(batch, values, where)
                    parts.append(values)
                    advance(len(batch))
                self.values.write(self.cache, self.rows(shard), parts)
                yield shard
        finally:
            # A generator that is closed stops the scorer's workers at once where something fails.
            getattr(stream, "close", lambda: None)()

    def _place(self, batch: Sequence[int], at: int) -> str:
        match item := self.items[batch[at]]:
            case (Image() as image, Caption() as caption):
                words = f"image '{image.id}' with caption {caption.text!r}"
            case Caption():
                words = f"caption {item.text!r}"
            case Image():
                # A video is named alone.
                words = f"image '{item.id}'" if type(item) is Image else f"'{item.id}'"
            case _:
                row = getattr(item, "row", None)
                words = "an item" if row is None else f"row '{row}'"
        return f"{self.stage}, {words}"


def image_vectors(scorer: Embedder, batches: ImageBatches, workers: int) -> Iterator[ndarray]:
    return scorer.embed_images(batches, workers=workers)


def caption_vectors(scorer: TextEmbedder, batches: CaptionBatches, workers: int) -> Iterator[ndarray]:
    return scorer.embed_captions(batches)


def image_probabilities(scorer: Classifier, batches: ImageBatches, workers: int) -> Iterator[ndarray]:
    return map(_column, scorer.image_probabilities(batches, workers=workers))


def caption_probabilities(scorer: Classifier, batches: CaptionBatches, workers: int) -> Iterator[ndarray]:
    return map(_column, scorer.caption_probabilities(batches))


def pair_scores(scorer: PairScorer | Scorer, batches: PairBatches, workers: int) -> Iterator[ndarray]:
    for part in stream_pairs(scorer, batches, workers=workers):
        values = np.asarray(part, dtype=np.float64)
        yield _column(values) if values.ndim == 1 else values


def frame_parts(scorer: "LocalEmbedder", batches: ImageBatches, workers: int) -> Iterator[list[Parts]]:
    for batch in scorer.embed_frames(batches, workers=workers):
        yield [{"vectors": vectors} for vectors in batch]


def token_parts(scorer: "LocalEmbedder", batches: CaptionBatches, workers: int) -> Iterator[list[Parts]]:
    for batch in scorer.embed_tokens(batches):
        yield [{"ids": t.ids, "used": t.used, "vectors": t.vectors, "whole": t.whole} for t in batch]


def _column(values: Any) -> ndarray:
    return np.asarray(values)[:, None]


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
                finished = work.finished()
                done = {shard for shard in waiting if work.names[shard] in finished}
                for shard in sorted(done):
                    advance(work.size(shard))
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
