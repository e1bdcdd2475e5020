"""The `ray` executor: workers of a Ray cluster compute the shards that a cache lacks, each as a rank does.

Values go to the cache, so any worker, node or driver may be killed; Ray's own retries are not used.
"""

import logging
import os
import platform
import secrets
import shutil
import socket
import sys
import tempfile
import time
import traceback
import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from counterfoil.engine.cache import LEASES, Cache
from counterfoil.engine.executor import AT_ONCE, Leases, RankExecutor, alive
from counterfoil.engine.plan import Advance, ShardWork
from counterfoil.errors import CounterfoilError, InputError, MissingExtraError, StorageError
from counterfoil.inputs.files import location
from counterfoil.models.base import identity_of, source_of, version_of
from counterfoil.storage import open_store

#: Libraries whose versions must agree, since numbers depend on them.
_LIBRARIES = ("counterfoil", "torch", "numpy")
#: Seconds within which a file that was written on one machine is seen on another one.
_SEEN_WITHIN = 5.0


def versions() -> dict[str, str]:
    """The versions that driver and workers must share; "" of a library that is not installed."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"python": python, **{name: version_of(name) for name in _LIBRARIES}}


@dataclass(frozen=True)
class Handshake:
    """What a worker must agree with before it gets work: versions, and `token` under a name in the cache."""

    versions: Mapping[str, str]
    cache: Path
    probe: str
    token: str
    #: The driver's folder and places of modules, so that relative paths and scripts mean the same.
    folder: str = field(default_factory=os.getcwd)
    modules: tuple[str, ...] = field(default_factory=lambda: tuple(sys.path))


def sendable(error: Exception) -> Exception:
    """An exception as another process gets it; one whose parts cannot travel is a `RuntimeError`."""
    from ray import cloudpickle

    try:
        sent: Exception = cloudpickle.loads(cloudpickle.dumps(error))
    except Exception:
        sent = RuntimeError(f"{type(error).__name__}: {error}")
    if not isinstance(sent, CounterfoilError):
        sent.add_note("in a worker:\n" + "".join(traceback.format_exception(error)))
    return sent


class ShardWorker:
    """Computes shards with the model that it got last."""

    def __init__(self) -> None:
        self._name = ""
        self._model: Any = None

    def meet(self, handshake: Handshake) -> CounterfoilError | None:
        """What is in the way of this worker's work, if anything."""
        node = f"{socket.gethostname()} (process {os.getpid()})"
        with suppress(OSError):  # a folder of the driver alone: paths in it are not found later
            os.chdir(handshake.folder)
        sys.path.extend(path for path in handshake.modules if path not in sys.path)
        differ = {name: (have, handshake.versions.get(name, "")) for name, have in versions().items()}
        differ = {name: (have, wanted) for name, (have, wanted) in differ.items() if have != wanted}
        if differ:
            problem = "other versions than the driver's"
            given = ", ".join(f"{name} {have or '(none)'}" for name, (have, _) in differ.items())
            allowed = [f"{name} {wanted or '(none)'}" for name, (_, wanted) in differ.items()]
            return InputError(problem, where=f"worker on {node}", given=given, allowed=allowed)
        until = time.monotonic() + _SEEN_WITHIN
        while True:
            with suppress(CounterfoilError):
                probe = open_store(handshake.cache).read(handshake.probe)
                if probe is not None and probe.data == handshake.token.encode():
                    return None
            if time.monotonic() > until:
                problem = "does not see the cache"
                hint = "give a folder that all machines share with --cache"
                return InputError(problem, where=f"worker on {node}", given=handshake.cache, hint=hint)
            time.sleep(0.2)

    def compute(
        self, work: bytes, items: Sequence[Any], name: str, load: Sequence[Any], rank: int, of: int
    ) -> Exception | None:
        """Compute the free shards, as rank `rank` of `of`, until all are in the cache; or what went wrong."""
        import ray
        from ray import cloudpickle

        try:
            stage: ShardWork = cloudpickle.loads(work)
            if name != self._name:
                self._model, self._name = None, ""  # two models need twice the memory
                model = cloudpickle.loads(ray.get(load[0]))()
                wanted, identity = stage.cache.identity, identity_of(model)
                if identity.key != wanted.key:
                    # The cache would take its scores for the driver's.
                    problem = f"the worker on {socket.gethostname()} loads another model than the driver"
                    pairs = zip(identity.to_json().items(), wanted.to_json().values(), strict=True)
                    given = ", ".join(f"{fact} {a!r} for {b!r}" for (fact, a), b in pairs if a != b)
                    hint = "give all machines the same files, and driver and workers the same kind of device"
                    raise InputError(problem, where=wanted.name, given=given, hint=hint)
                self._model, self._name = model, name
            stage = replace(stage, model=self._model, items=_ShardedItems(stage, items))
            RankExecutor(rank % of, of).run(stage, lambda rows: None)
            return None
        except Exception as error:
            return sendable(error)


class _ShardedItems(Sequence[Any]):
    """The items of a stage, fetched by shard when one of them is needed."""

    def __init__(self, work: ShardWork, items: Sequence[Any]) -> None:
        import ray
        from ray import cloudpickle

        rows = [work.rows(shard) for shard in range(len(work))]
        self._place = {
            row: (shard, i) for shard, shard_rows in enumerate(rows) for i, row in enumerate(shard_rows)
        }
        self._shard = lru_cache(AT_ONCE)(lambda shard: cloudpickle.loads(ray.get(items[shard])))

    def __len__(self) -> int:
        return len(self._place)

    def __getitem__(self, row: Any) -> Any:
        shard, position = self._place[row]
        return self._shard(shard)[position]


_ANSWERS_WITHIN = 5.0
#: How often a cluster is asked to take in a process from outside. It starts a server for each, by forking a
#: process with threads, and now and then that does not come up.
_TRIES = 4
#: Bytes of memory for what is under way to workers, in a cluster of our own.
_STORE = 256 * 2**20
#: Ray keeps sockets below its folder, and the path of a socket is short: 107 bytes with some 60 of Ray's own.
_LONGEST = 45
_QUIET: Any = {"log_to_driver": False, "configure_logging": False, "logging_level": logging.CRITICAL}


def connect(address: str) -> Callable[[], None]:
    """Join the cluster at `address`, or start one on this machine where it is empty; returns how to leave."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
    except ModuleNotFoundError:
        raise MissingExtraError("ray", "ray") from None
    if ray.is_initialized():
        return lambda: None
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    if not address:
        return _start(ray)
    _check_answers(address)
    for left in reversed(range(_TRIES)):
        try:
            ray.init(address, **_QUIET)
        except Exception as error:
            if left and isinstance(error, ConnectionAbortedError):
                continue
            given = " ".join(str(error).split()) or type(error).__name__
            raise InputError("cannot join the Ray cluster", where=address, given=given) from None
        break
    return ray.shutdown


def count_workers(cpus: float | None) -> tuple[int, dict[str, float]]:
    """How many workers the cluster has room for, and what each takes: a GPU, else `cpus` processors (1)."""
    import ray

    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    gpus = sum(int(node.get("GPU", 0)) for node in nodes)
    if gpus:
        return gpus, {"num_gpus": 1, "num_cpus": cpus or 0}
    cpus_each = cpus or 1
    count = sum(int(node.get("CPU", 0) / cpus_each + 1e-9) for node in nodes)
    if not count:
        most = max((node.get("CPU", 0) for node in nodes), default=0)
        problem = "the Ray cluster has no machine with a GPU or with that many processors"
        given = f"{cpus_each:g}"
        hint = None if most else "give its nodes processors: ray start --num-cpus N"
        raise InputError(problem, given=given, allowed=f"at most {most:g}" if most else None, hint=hint)
    return count, {"num_cpus": cpus_each}


def _start(ray: Any) -> Callable[[], None]:
    """Start a cluster of this machine alone, in a folder of its own; it ends with this process."""
    root = Path(tempfile.gettempdir())
    root = root if len(str(root)) + len("/counterfoil-ray-1234567-12345678") <= _LONGEST else Path("/tmp")
    for left in root.glob("counterfoil-ray-*-*"):  # of drivers that were killed
        process = left.name.split("-")[2]
        if process.isdigit() and not alive(int(process)):
            _remove(left)
    folder = Path(tempfile.mkdtemp(prefix=f"counterfoil-ray-{os.getpid()}-", dir=root))
    # Without a token here Ray writes one to the user's home.
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        ray.init(
            "local", include_dashboard=False, object_store_memory=_STORE, _temp_dir=str(folder), **_QUIET
        )
    except Exception as error:
        _remove(folder)
        given = str(error) or type(error).__name__
        raise InputError("Ray cannot be started", where=folder, given=given) from None

    def leave() -> None:
        ray.shutdown()
        _remove(folder)

    return leave


def _check_answers(address: str) -> None:
    """Raise `InputError` where no program answers at an address: Ray itself tries for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:
        return  # "auto", and what other packages resolve
    try:
        if not 0 < int(port) < 65536:
            raise InputError("no port of an address", given=port, allowed="1 to 65,535", where=address)
        socket.create_connection((host, int(port)), timeout=_ANSWERS_WITHIN).close()
    except (OSError, ValueError) as error:
        given = getattr(error, "strerror", None) or str(error)
        hint = "start one with 'ray start --head', or leave the address out to use this machine"
        raise InputError("there is no Ray cluster", where=address, given=given, hint=hint) from None


def _remove(folder: Path) -> None:
    for _ in range(10):  # Ray's processes write until they have ended
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)


class WorkerPool:
    """The workers of a cluster, from one stage of a session to the next."""

    def __init__(self, address: str, cpus: float | None) -> None:
        disconnect = connect(address)
        self.workers: list[Any] = []
        # Also where the executor is not closed, and at the end of the process.
        self.leave = weakref.finalize(self, _leave, disconnect, self.workers)
        self.most, self._resources = count_workers(cpus)

    def start(self) -> None:
        import ray

        actor = ray.remote(ShardWorker).options(
            max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD", **self._resources
        )
        self.workers.append(actor.remote())

    def end(self, worker: Any) -> None:
        import ray

        self.workers[:] = [other for other in self.workers if other is not worker]
        with suppress(Exception):
            ray.kill(worker)


def _leave(disconnect: Callable[[], None], workers: Sequence[Any]) -> None:
    import ray

    for worker in workers:
        with suppress(Exception):
            ray.kill(worker)
    with suppress(Exception):
        disconnect()


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

    The cluster is that at `address` ("HOST:PORT", or "ray://HOST:PORT" from outside), or this machine ("").
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
        Leases.of(work).sweep(work.names)
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
        self._name = f"{work.cache.identity.key} {type(work.model).__qualname__}"
        self._sent: tuple[Any, ...] = ()
        self._requested: dict[Any, tuple[Any, bool]] = {}
        self._turn = self._failures = 0

    def run(self) -> None:
        """Have the workers compute until nothing is left; those that still do then are ended."""
        import ray

        token = uuid.uuid4().hex
        self._handshake = Handshake(versions(), self._folder, f"{LEASES}/.probe-{token}.part", token)
        place, until = open_store(self._folder), time.monotonic() + _START
        try:
            while self._look():
                while len(self._pool.workers) < min(self._pool.most, len(self._open)):
                    self._pool.start()
                for worker in self._pool.workers:
                    if not any(worker is busy for busy, _ in self._requested.values()):
                        place.write(self._handshake.probe, token.encode())
                        self._requested[worker.meet.remote(self._handshake)] = worker, False
                if not self._turn and time.monotonic() > until:
                    problem = f"no worker of the Ray cluster has started within {_START:.0f} s"
                    hint = "is it busy with other work, or has it lost its machines? 'ray status' tells"
                    raise StorageError(problem, hint=hint)
                for ref in ray.wait(list(self._requested), timeout=_POLL)[0]:
                    self._take(ref)
            computing = [ref for ref, (_, computes) in self._requested.items() if computes]
            if computing:
                for ref in ray.wait(computing, num_returns=len(computing), timeout=_END)[0]:
                    del self._requested[ref]
        finally:
            for worker, computes in self._requested.values():
                if computes:
                    self._pool.end(worker)
            with suppress(StorageError):
                place.remove(self._handshake.probe)

    def _look(self) -> set[int]:
        """The shards that are not in the cache; those that are new there are counted."""
        new = self._work.finished(self._open, self._advance)
        self._failures = 0 if new else self._failures
        self._open -= new
        return self._open

    def _take(self, ref: Any) -> None:
        """Take the answer of a worker; one that agreed gets the work, one that is lost is let go."""
        import ray

        worker, computes = self._requested.pop(ref)
        try:
            answer = ray.get(ref)
        except ray.exceptions.RayError as error:
            # Others do again what the worker had not finished.
            self._look()
            self._failures += 1
            self._pool.end(worker)
            if self._failures >= _FAILURES:
                # What Ray says of a lost worker, without its headings.
                headings = ("class_name", "actor_id", "namespace")
                lines = [line.strip() for line in str(error).splitlines() if line.strip()]
                problem = f"{self._failures} workers ended one after the other and finished nothing"
                given = " ".join(line for line in lines if not line.startswith(headings))
                hint = "it goes on where it was when run again; a smaller --batch-size needs less memory"
                raise StorageError(problem, where=self._work.stage, given=given, hint=hint) from None
            return
        if isinstance(answer, Exception):
            # A worker that came after an hour, when others have swept the file away, is asked again.
            if computes or open_store(self._folder).read(self._handshake.probe) is not None:
                raise answer
        elif not computes:
            work, items, model = self._packed()
            call = worker.compute.remote(work, items, self._name, [model], self._turn, self._pool.most)
            self._requested[call] = worker, True
            self._turn += 1

    def _packed(self) -> tuple[Any, ...]:
        """The work, the items of each shard, and what loads the model, where all workers fetch them from."""
        import ray
        from ray import cloudpickle

        if not self._sent:
            work, model = self._work, self._work.model
            # The cache as a name alone: what is open here stays here.
            cache = Cache(self._folder, work.cache.identity)
            values = type(work.values)(work.values.kind, work.values.keys)
            bare = replace(work, model=None, values=values, cache=cache, items=())
            items = [
                ray.put(cloudpickle.dumps([work.items[row] for row in work.rows(shard)]))
                for shard in range(len(work))
            ]
            try:
                # One that was not loaded by its name travels with its weights.
                load = ray.put(cloudpickle.dumps(source_of(model) or (lambda: model)))
            except Exception as error:
                problem = "this model cannot be sent to other processes"
                given = str(error) or type(error).__name__
                hint = "name it, or give it attributes that pickle takes"
                raise InputError(problem, where=work.cache.identity.name, given=given, hint=hint) from error
            self._sent = ray.put(cloudpickle.dumps(bare)), items, load
        return self._sent
