"""The Ray cluster that a driver joins or starts, and its workers as the driver sees them."""

import logging
import os
import secrets
import shutil
import socket
import tempfile
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from counterfoil.engine.ray_worker import ShardWorker
from counterfoil.engine.shard_leases import alive
from counterfoil.errors import InputError, MissingExtraError

_ANSWERS_WITHIN = 5.0
#: How often a cluster is asked to take in a process from outside. It starts a server for each, by forking a
#: process with threads, and now and then that does not come up.
_TRIES = 4
#: Bytes of memory for what is under way to workers, in a cluster of our own.
_STORE = 256 * 2**20
#: Ray keeps sockets below its folder, and the path of a socket is short: 107 bytes with some 60 of Ray's own.
_LONGEST = 45
_QUIET: dict[str, Any] = {
    "log_to_driver": False,
    "configure_logging": False,
    "logging_level": logging.CRITICAL,
}


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
        problem = "the Ray cluster has no machine with a GPU or with so many processors"
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
