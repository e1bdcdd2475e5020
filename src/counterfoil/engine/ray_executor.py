"""The `ray` executor: workers of a Ray cluster compute the shards that a cache lacks, each as a rank does.

Ray carries items and names; values go to the cache. So any worker, node or driver may be killed: what was not
finished is done again, and Ray's own restarts and retries are not used.
"""

import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from counterfoil.engine.cache import LEASES, Cache
from counterfoil.engine.plan import Advance, ShardWork
from counterfoil.engine.ray_cluster import WorkerPool
from counterfoil.engine.ray_worker import Handshake, versions
from counterfoil.errors import InputError, StorageError
from counterfoil.inputs.files import location
from counterfoil.models.base import source_of
from counterfoil.storage import open_place

#: Seconds between two looks at what all processes that share the cache have done.
_POLL = 0.5
#: Workers that may end before any of them has finished a shard.
_FAILURES = 4
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
    def __init__(self, pool: WorkerPool, work: ShardWork, advance: Advance) -> None:
        self._pool, self._work, self._advance = pool, work, advance
        # The folder or URL as a worker may call it, which may be in another folder than this process.
        folder = work.cache.folder
        assert folder is not None
        self._folder: Path = folder.absolute() if isinstance(location(folder), Path) else folder
        self._open = set(range(len(work)))
        self._name = f"{work.cache.identity.key} {type(work.scorer).__qualname__}"
        self._sent: tuple[Any, ...] = ()
        #: What is awaited: of which worker, and whether that computes.
        self._asked: dict[Any, tuple[Any, bool]] = {}
        self._turn = self._failures = 0

    def run(self) -> None:
        """Have the workers compute until nothing is left; those that still do then are ended."""
        import ray

        token = uuid.uuid4().hex
        self._handshake = Handshake(versions(), self._folder, f"{LEASES}/.probe-{token}.part", token)
        place, until = open_place(self._folder), time.monotonic() + _START
        try:
            while self._look():
                while len(self._pool.workers) < min(self._pool.most, len(self._open)):
                    self._pool.start()
                for worker in self._pool.workers:
                    if not any(worker is busy for busy, _ in self._asked.values()):
                        place.write(self._handshake.probe, token.encode())
                        self._asked[worker.meet.remote(self._handshake)] = worker, False
                if not self._turn and time.monotonic() > until:
                    problem = f"no worker of the Ray cluster has started within {_START:.0f} s"
                    hint = "is it busy with other work, or has it lost its machines? 'ray status' tells"
                    raise StorageError(problem, hint=hint)
                for ref in ray.wait(list(self._asked), timeout=_POLL)[0]:
                    self._take(ref)
            computing = [ref for ref, (_, computes) in self._asked.items() if computes]
            if computing:
                for ref in ray.wait(computing, num_returns=len(computing), timeout=_END)[0]:
                    del self._asked[ref]
        finally:
            for worker, computes in self._asked.values():
                if computes:
                    self._pool.end(worker)
            with suppress(StorageError):
                place.remove(self._handshake.probe)

    def _look(self) -> set[int]:
        """The shards that are not in the cache; those that are new there are counted."""
        finished = self._work.finished()
        new = {shard for shard in self._open if self._work.names[shard] in finished}
        for shard in sorted(new):
            self._advance(self._work.size(shard))
        self._failures = 0 if new else self._failures
        self._open -= new
        return self._open

    def _take(self, ref: Any) -> None:
        """Take the answer of a worker; one that agreed gets the work, one that is lost is let go."""
        import ray

        worker, computes = self._asked.pop(ref)
        try:
            answer = ray.get(ref)
        except ray.exceptions.RayError as error:
            self._lose(worker, error)
            return
        if isinstance(answer, Exception):
            # A worker that came after an hour, when others have swept the file away, is asked again.
            if computes or open_place(self._folder).read(self._handshake.probe) is not None:
                raise answer
        elif not computes:
            work, items, scorer = self._packed()
            call = worker.compute.remote(work, items, self._name, [scorer], self._turn, self._pool.most)
            self._asked[call] = worker, True
            self._turn += 1

    def _packed(self) -> tuple[Any, ...]:
        """The work, the items of each shard, and what loads the scorer, where all workers fetch them from."""
        import ray
        from ray import cloudpickle

        if not self._sent:
            work, scorer = self._work, self._work.scorer
            # The cache as a name alone: what is open here stays here.
            cache = Cache(self._folder, work.cache.identity)
            bare = replace(
                work, scorer=None, values=work.values.alike(work.values.keys), cache=cache, items=()
            )
            items = [
                ray.put(cloudpickle.dumps([work.items[row] for row in work.rows(shard)]))
                for shard in range(len(work))
            ]
            try:
                # One that was not loaded by its name travels with its weights.
                load = ray.put(cloudpickle.dumps(source_of(scorer) or (lambda: scorer)))
            except Exception as error:
                raise InputError(
                    "this scorer cannot be sent to other processes",
                    where=work.cache.identity.name,
                    given=str(error) or type(error).__name__,
                    hint="name it, or give it attributes that pickle takes",
                ) from error
            self._sent = ray.put(cloudpickle.dumps(bare)), items, load
        return self._sent

    def _lose(self, worker: Any, error: Exception) -> None:
        """Let a worker go that has ended: others do again what it had not finished."""
        self._look()
        self._failures += 1
        self._pool.end(worker)
        if self._failures >= _FAILURES:
            # What Ray says of a lost worker, without its headings.
            headings = ("class_name", "actor_id", "namespace")
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise StorageError(
                f"{self._failures} workers ended one after the other and finished nothing",
                where=self._work.stage,
                given=" ".join(line for line in lines if not line.startswith(headings)),
                hint="it goes on where it was when run again; a smaller --batch-size needs less memory",
            ) from None
