"""The time of work that is not done: a sample of each stage is computed and timed, the rest is made up.

A stage's batches differ (captions are sorted by length), so the sample is spread evenly over them. What a
stage gives the next one is the sample over and over, so that everything behind it is done at its real size
and can be timed as it is; the numbers that come of it mean nothing and are thrown away.
"""

import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from math import sqrt
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy import ndarray

from counterfoil.engine.cache import Cache, Parts
from counterfoil.engine.shard_work import Advance, ShardWork
from counterfoil.errors import InputError, ScoreError
from counterfoil.scorers.flops import counted_flops


@dataclass(frozen=True)
class StageEstimate:
    """What one stage would take: `items` to do in `batches`, extrapolated from `sampled` batches.

    `first` is the time of the first batch, in which models are loaded and decoding is started; `each` the
    mean of the others and `spread` their standard deviation, in seconds. `flops` are those of an item, 0
    where no torch model computes it. `kept` are the bytes that the cache will get, in `shards` files of which
    each takes `shard` seconds.
    """

    stage: str
    items: int
    batches: int
    sampled: int
    first: float
    each: float
    spread: float
    flops: float
    kept: int
    shards: int = 0
    shard: float = 0.0

    @property
    def seconds(self) -> float:
        """The whole stage."""
        return self.first + self.each * (self.batches - 1) + self.shard * self.shards

    @property
    def error(self) -> float:
        """The standard error of `seconds`: that of the mean of a sample without replacement."""
        if self.sampled < 2 or self.sampled >= self.batches:
            return 0.0
        left = 1 - self.sampled / self.batches
        return (self.batches - 1) * self.spread * sqrt(left / self.sampled)

    @property
    def rate(self) -> float:
        """Items per second once the stage runs."""
        return self.items / self.batches / self.each if self.each else 0.0


@dataclass
class EstimatingExecutor:
    """Computes `sample` batches of each stage behind the first, evenly spread, and keeps nothing.

    `stages` are what was found, and `spent` the seconds that this took itself. Raises `InputError` for fewer
    than 2 batches.
    """

    distant: ClassVar[bool] = False

    sample: int = 12
    stages: list[StageEstimate] = field(default_factory=list)
    spent: float = 0.0

    def __post_init__(self) -> None:
        if self.sample < 2:
            raise InputError("sample of batches", given=self.sample, allowed="2 or more")

    def run(self, work: ShardWork, advance: Advance) -> bool:
        """Time a sample of `work`, and fill all of its values with what that gives."""
        began = time.perf_counter()
        batches = [batch for shard in work.cut for batch in shard]
        spread = np.linspace(0, len(batches) - 1, min(self.sample, len(batches)))
        chosen = np.unique(spread.round().astype(int)).tolist()
        # The first batch alone: its time is that of loading and starting too.
        load = getattr(work.scorer, "model", None)
        if callable(load):
            load()
        _timed(work, [batches[0]])
        first = time.perf_counter() - began
        # Once more before the sample, so that decoding is under way in all its processes.
        lead = 1 + min(work.workers, len(batches) - 1)
        parts, times, flops = _timed(work, [*batches[:lead], *(batches[at] for at in chosen)])
        parts, times = parts[lead:], times[lead:]
        rng, done = np.random.default_rng(0), dict(zip(chosen, parts, strict=True))
        # What is made for a build is written as it is taken: that is time of the stage too.
        for number, at in enumerate(chosen):
            start = time.perf_counter()
            work.values.put(batches[at], done[at], lambda row: work.stage)
            times[number] += time.perf_counter() - start
        for at, batch in enumerate(batches):
            if at not in done:
                part = done[chosen[np.searchsorted(chosen, at, side="right") - 1]]
                work.values.put(batch, _like(part, len(batch), rng), lambda row: work.stage)
            advance(len(batch))
        items, seen = sum(map(len, batches)), sum(len(batches[at]) for at in chosen)
        self.stages.append(
            StageEstimate(
                work.stage,
                items,
                len(batches),
                len(chosen),
                first=first,
                each=float(times.mean()),
                spread=float(times.std(ddof=1)) if len(times) > 1 else 0.0,
                flops=flops / len(batches[0]),
                kept=round(sum(map(_bytes, parts)) / seen * items),
                shards=len(work.cut),
                shard=_shard_seconds(work, parts[0], rng),
            )
        )
        self.spent += time.perf_counter() - began
        return True


def _timed(work: ShardWork, batches: Sequence[Sequence[int]]) -> tuple[list[Any], ndarray, float]:
    """The values of some batches, the seconds that each took, and the operations that the first one took."""
    parts: list[Any] = []
    ends = [time.perf_counter()]
    given = [[work.items[row] for row in batch] for batch in batches]
    with closing(_generator(work.compute(work.scorer, given, work.workers))) as stream:
        # Counting slows a batch.
        with counted_flops() as flops:
            parts += islice(stream, 1)
        ends.append(time.perf_counter())
        for part in stream:
            parts.append(part)
            ends.append(time.perf_counter())
    if len(parts) != len(batches):
        raise ScoreError("the scorer stopped before all batches were done", where=work.stage)
    return parts, np.diff(ends), flops()


def _shard_seconds(work: ShardWork, part: Any, rng: np.random.Generator) -> float:
    """What writing one shard takes, in a folder of this machine that is removed."""
    parts = [_like(part, len(batch), rng) for batch in work.cut[0]]
    with tempfile.TemporaryDirectory(prefix="counterfoil-") as folder:
        kept, seconds = Cache(Path(folder), work.kept.identity), 0.0
        # The second time: the first one makes folders.
        for _ in range(2):
            start = time.perf_counter()
            work.values.write(kept, work.rows(0), parts)
            seconds = time.perf_counter() - start
    return seconds


def _generator(stream: Iterator[Any]) -> Generator[Any]:
    yield from stream


def _like(part: Any, rows: int, rng: np.random.Generator) -> Any:
    """As many values as `rows`: those of `part` over and over, a little smaller so that few are equal."""
    if not isinstance(part, ndarray):
        return [part[at % len(part)] for at in range(rows)]
    again = part[np.arange(rows) % len(part)]
    return (again * (1 - 1e-3 * rng.random(again.shape))).astype(part.dtype)


def _bytes(part: Any) -> int:
    if isinstance(part, ndarray):
        return part.nbytes
    values: list[Parts] = list(part)
    return sum(array.nbytes for each in values for array in each.values())
