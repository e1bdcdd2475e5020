"""Who computes the shards that a cache lacks: this process alone, or this one beside others.

An executor decides who does which shard and nothing else. The shards are cut the same everywhere, and each is
found in the cache when it is done, so that executors can be mixed and any process may be killed: what it had
not finished is done by another one, and the values are the same bytes.
"""

import os
import re
import time
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from counterfoil.engine.shard_work import Advance, ShardWork, at_once
from counterfoil.errors import InputError

_RANKS = re.compile(r"rank:(\d{1,6})/(\d{1,6})")
_RAY = re.compile(r"ray(?:(://|:)([\w.-]+:\d{1,5}))?(?:\?cpus=(\d{1,4}(?:\.\d{1,3})?))?", re.ASCII)
#: Seconds between two looks at shards that other processes compute.
_POLL = 0.2


@runtime_checkable
class Executor(Protocol):
    """Computes what a stage lacks; `distant` says whether processes that others start do it."""

    distant: ClassVar[bool]

    def run(self, work: ShardWork, advance: Advance) -> bool:
        """Have all shards of `work` computed and kept; whether their values are all in `work.values` now.

        Where they are not they lie in the cache. `advance` is called as items are done.
        """


class LocalExecutor:
    """This process computes everything, one shard after the other."""

    distant: ClassVar[bool] = False

    def run(self, work: ShardWork, advance: Advance) -> bool:
        """Compute all shards here."""
        for _ in work.run(range(len(work)), advance):
            pass
        return True


LOCAL = LocalExecutor()


@dataclass(frozen=True)
class RankExecutor:
    """This process is number `rank` of `of` that share a cache, and nothing else.

    It begins with its own part of the shards, goes on with those that are left, and takes a lease on a shard
    before it computes it, so that no two live processes do the same one. It waits for the shards of others,
    and does those of a process that died. Ranks may start in any order, at any time, or not at all.

    Raises `InputError` for a rank outside 0 to `of` - 1.
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
        """Compute the shards that no other process computes, until all are there."""
        first = self.rank * len(work) // self.of
        waiting = [*range(first, len(work)), *range(first)]
        computed = 0
        with work.leases() as leases:
            while waiting:
                many = at_once(len(waiting), self.of)
                done, finished = work.run_free(waiting, leases, advance, at_once=many)
                computed += len(done)
                waiting = [shard for shard in waiting if shard not in done and shard not in finished]
                if waiting and not done and not finished:
                    time.sleep(_POLL)
            leases.sweep(work.names)
        return computed == len(work)


def executor_named(name: str) -> Executor:
    """The executor of a name.

    "local"; "rank:R/N" for number R of N processes that share a cache; "ray" for all of this machine, or the
    cluster that RAY_ADDRESS names; "ray:HOST:PORT" for a cluster that this machine is part of, and
    "ray://HOST:PORT" for one that it is not. "?cpus=4" behind the last three gives each worker 4 processors.
    Raises `InputError` for other names, and what the executor raises.

    >>> executor_named("rank:3/64")
    RankExecutor(rank=3, of=64)
    >>> executor_named("ray://head:10001?cpus=4")
    RayExecutor(address='ray://head:10001', cpus=4.0)
    """
    if name == "local":
        return LOCAL
    if ranks := _RANKS.fullmatch(name):
        return RankExecutor(int(ranks[1]), int(ranks[2]))
    if ray := _RAY.fullmatch(name):
        from counterfoil.engine.ray_executor import RayExecutor

        address = f"ray://{ray[2]}" if ray[1] == "://" else ray[2] or os.environ.get("RAY_ADDRESS", "")
        return RayExecutor(address, None if ray[3] is None else float(ray[3]))
    allowed = ("local", "rank:R/N", "ray", "ray:HOST:PORT", "ray://HOST:PORT", "ray?cpus=4")
    raise InputError("unknown executor", given=name, allowed=allowed)
