"""The `ray` executor: actors of a Ray cluster compute the shards that a cache lacks.

Ray carries items and names; values go to the cache. So any worker, node or driver may be killed: what was not
finished is done again, and Ray's own restarts and retries are not used.
"""

import time
from collections import Counter, deque
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from counterfoil.engine.cache import Cache
from counterfoil.engine.executor import AT_ONCE, Advance, ShardWork, at_once
from counterfoil.engine.ray_cluster import Worker, WorkerPool
from counterfoil.errors import InputError, StorageError
from counterfoil.models.base import source_of
from counterfoil.storage import location

#: Chunks that a worker has at a time: the one that it computes, and the next one.
_IN_FLIGHT = 2
#: Bytes of the items of a chunk, above which it is cut in two.
_CHUNK = 8 * 2**20
#: Seconds between two looks at what all processes that share the cache have done.
_POLL = 0.5
#: Workers that may end while they compute one shard, and before any of them has finished one.
_LOSSES, _FAILURES = 2, 6
#: Seconds for a worker to see that nothing is left to do.
_END = 3.0
#: Seconds for the first worker to come: a cluster may start machines, or be busy with other work.
_START = 180.0


@dataclass(eq=False)
class RayExecutor:
    """Workers of a Ray cluster: one per GPU, else one per `cpus` processors (1) of all its machines.

    The cluster is that at `address` ("HOST:PORT", or "ray://HOST:PORT" from outside), or this machine where
    it is "". Workers stay until `close`, the end of a `with` block, or the end of the process.
    """

    distant: ClassVar[bool] = True

    address: str = ""
    cpus: float | None = None
    _pool: WorkerPool | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.cpus is not None and (self.cpus <= 0 or (self.cpus > 1 and self.cpus % 1)):
            raise InputError(
                "number of processors of a worker", given=f"{self.cpus:g}", allowed="a part of 1, 1, 2, 3, …"
            )

    def run(self, work: ShardWork, advance: Advance) -> bool:
        """Have all shards computed by workers; their values are in the cache then."""
        if self._pool is None:
            self._pool = WorkerPool(self.address, self.cpus)
        self._pool.name_cache(_everywhere(work))
        _Stage(self._pool, work, advance).run()
        work.leases().sweep(work.names)
        return False

    def close(self) -> None:
        """Let the workers go, and end the cluster where it was started here; a further `run` starts anew."""
        if self._pool is not None:
            self._pool.leave()
            self._pool = None

    def __enter__(self) -> "RayExecutor":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Stage:
    """One stage of a session, until all of its shards are in the cache."""

    def __init__(self, pool: WorkerPool, work: ShardWork, advance: Advance) -> None:
        self._work = work
        self._pool, self._advance = pool, advance
        self._name = f"{work.cache.identity.key} {type(work.scorer).__qualname__}"
        self._scorer: Any = None
        self._open = set(range(len(work)))
        self._left = deque(range(len(work)))
        self._looked = self._offered = 0.0
        self._progress = time.monotonic()
        #: How often a shard was offered that others may have, and how many workers ended at it.
        self._tried: Counter[int] = Counter()
        self._losses: Counter[int] = Counter()
        self._failures = 0

    def run(self) -> None:
        """Send chunks and take answers until nothing is left; workers that still compute then are ended."""
        import ray

        try:
            while self._look():
                while len(self._pool.workers) < min(self._pool.most, len(self._open)):
                    self._pool.start()
                late = time.monotonic() - self._progress > _START
                if late and all(worker.sees is None for worker in self._pool.workers):
                    problem = f"no worker of the Ray cluster has started within {_START:.0f} s"
                    hint = "is it busy with other work, or has it lost its machines? 'ray status' tells"
                    raise StorageError(problem, hint=hint)
                for worker in self._pool.workers:
                    self._send(worker)
                awaited = [
                    ref for worker in self._pool.workers for ref in (*worker.chunks, worker.meeting) if ref
                ]
                if not awaited:  # other processes compute what is left
                    time.sleep(_POLL)
                for ref in ray.wait(awaited, timeout=_POLL)[0] if awaited else ():
                    self._take(ref)
            # Chunks that were offered twice come back as soon as their workers look into the cache.
            for worker in self._pool.workers:
                if worker.chunks:
                    back, _ = ray.wait(list(worker.chunks), num_returns=len(worker.chunks), timeout=_END)
                    worker.chunks = {ref: worker.chunks[ref] for ref in worker.chunks if ref not in back}
        finally:
            for worker in list(self._pool.workers):
                if worker.chunks:
                    self._pool.end(worker)

    def _look(self) -> set[int]:
        """The shards that are not in the cache; those that are new there are counted."""
        now = time.monotonic()
        if now - self._looked >= _POLL:
            finished = self._work.finished()
            self._finish({shard for shard in self._open if self._work.names[shard] in finished})
            self._looked = time.monotonic()
        return self._open

    def _finish(self, shards: set[int]) -> None:
        for shard in sorted(shards & self._open):
            self._advance(self._work.size(shard))
        if shards & self._open:
            self._progress, self._failures = time.monotonic(), 0
            self._open -= shards

    def _send(self, worker: Worker) -> None:
        """Give a worker chunks, as many as it may have."""
        if not self._pool.sees_cache(worker):
            return
        while len(worker.chunks) < _IN_FLIGHT and (shards := self._next(worker)):
            chunk = self._packed(shards)
            scorer = None if worker.has == self._name else self._sent_scorer()
            ref = worker.actor.compute.remote(chunk[1], self._name, scorer)
            worker.has = self._name
            worker.chunks[ref] = chunk[0]

    def _next(self, worker: Worker) -> tuple[int, ...]:
        """The next shards for a worker; where none are left, those that others may not have begun."""
        many = at_once(len(self._left), len(self._pool.workers))
        shards: list[int] = []
        while self._left and len(shards) < many:
            if (shard := self._left.popleft()) in self._open:
                shards.append(shard)
        if not shards and not worker.chunks and time.monotonic() - self._offered >= _POLL:
            self._offered = time.monotonic()
            shards = sorted(self._open, key=lambda shard: (self._tried[shard], -shard))[:AT_ONCE]
            self._tried.update(shards)
        return tuple(shards)

    def _packed(self, shards: tuple[int, ...]) -> tuple[tuple[int, ...], bytes]:
        """The items of shards as bytes; where those are many, of the first ones, and the others wait."""
        from ray import cloudpickle

        # The cache as a name alone: what is open here stays here.
        cache = Cache(_everywhere(self._work), self._work.cache.identity)
        data = cloudpickle.dumps(replace(self._work.part(shards), cache=cache))
        if len(data) <= _CHUNK or len(shards) == 1:
            return shards, data
        self._left.extendleft(reversed(shards[len(shards) // 2 :]))
        return self._packed(shards[: len(shards) // 2])

    def _sent_scorer(self) -> Any:
        """What loads the scorer in a worker, put where all of them fetch it from, once per stage."""
        import ray
        from ray import cloudpickle

        if self._scorer is None:
            scorer = self._work.scorer
            # One that was not loaded by its name travels with its weights.
            load = source_of(scorer) or (lambda: scorer)
            try:
                self._scorer = ray.put(cloudpickle.dumps(load))
            except Exception as error:
                raise InputError(
                    "this scorer cannot be sent to other processes",
                    where=self._work.cache.identity.name,
                    given=str(error) or type(error).__name__,
                    hint="name it, or give it attributes that pickle takes",
                ) from error
        return self._scorer

    def _take(self, ref: Any) -> None:
        """Take an answer: of a worker that it meets, of a chunk, or that a worker is lost."""
        import ray

        worker = next(one for one in self._pool.workers if ref == one.meeting or ref in one.chunks)
        try:
            answer = ray.get(ref)
        except ray.exceptions.RayError as error:
            self._lose(worker, error)
            return
        if ref == worker.meeting:
            self._pool.take_answer(worker, answer)
            return
        shards = worker.chunks.pop(ref)
        if isinstance(answer, Exception):
            raise answer
        # What other processes are at stays open, and is looked for in the cache.
        self._finish({shards[place] for place in answer})

    def _lose(self, worker: Worker, error: Exception) -> None:
        """Let a worker go that has ended, and do again what it had not finished."""
        self._looked = 0.0
        self._look()
        self._failures += 1
        begun = [[shard for shard in shards if shard in self._open] for shards in worker.chunks.values()]
        self._pool.end(worker)
        if begun and begun[0]:
            self._losses[begun[0][0]] += 1
        worst = max(self._losses.values(), default=0)
        if worst >= _LOSSES or self._failures >= _FAILURES:
            problem = f"{self._failures} workers ended one after the other and finished nothing"
            if worst >= _LOSSES:
                problem = f"{worst} workers ended while they computed the same shard"
            hint = "it goes on where it was when run again; a smaller --batch-size needs less memory"
            # What Ray says of a lost worker, without its headings.
            headings = ("class_name", "actor_id", "namespace")
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            given = " ".join(line for line in lines if not line.startswith(headings))
            raise StorageError(problem, where=self._work.stage, given=given, hint=hint) from None
        again = dict.fromkeys(shard for shards in begun for shard in shards)
        chunks = [shards for other in self._pool.workers for shards in other.chunks.values()]
        self._left.extendleft(reversed([shard for shard in again if not any(shard in c for c in chunks)]))


def _everywhere(work: ShardWork) -> Path:
    """The cache's folder or URL as a worker may call it, which may be in another folder than this process."""
    folder = work.cache.folder
    assert folder is not None
    return folder.absolute() if isinstance(location(folder), Path) else folder
