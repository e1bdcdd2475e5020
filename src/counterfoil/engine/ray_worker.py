"""A worker of the `ray` executor: a process of the cluster that has a scorer and computes shards with it."""

import os
import platform
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from counterfoil.engine.executor import AT_ONCE, RankExecutor
from counterfoil.engine.plan import ShardWork
from counterfoil.errors import CounterfoilError, InputError
from counterfoil.models.base import Identity, identity_of, version_of
from counterfoil.storage import open_place

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
    """Computes shards with the scorer that it got last."""

    def __init__(self) -> None:
        self._name = ""
        self._scorer: Any = None

    def meet(self, handshake: Handshake) -> CounterfoilError | None:
        """What is in the way of this worker's work, if anything."""
        node = f"{socket.gethostname()} (process {os.getpid()})"
        with suppress(OSError):  # a folder of the driver alone: paths in it are not found later
            os.chdir(handshake.folder)
        sys.path.extend(path for path in handshake.modules if path not in sys.path)
        try:
            _agree(handshake, node)
        except CounterfoilError as error:
            return error
        return None

    def compute(
        self, work: bytes, items: Sequence[Any], name: str, load: Sequence[Any], rank: int, of: int
    ) -> Exception | None:
        """Compute the free shards, as rank `rank` of `of`, until all are in the cache; or what went wrong."""
        import ray
        from ray import cloudpickle

        try:
            stage: ShardWork = cloudpickle.loads(work)
            if name != self._name:
                self._scorer, self._name = None, ""  # two models need twice the memory
                self._scorer = _loaded(cloudpickle.loads(ray.get(load[0])), stage.cache.identity)
                self._name = name
            stage = replace(stage, scorer=self._scorer, items=_ShardedItems(stage, items))
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
        self._place = {row: (shard, at) for shard, own in enumerate(rows) for at, row in enumerate(own)}
        self._shard = lru_cache(AT_ONCE)(lambda shard: cloudpickle.loads(ray.get(items[shard])))

    def __len__(self) -> int:
        return len(self._place)

    def __getitem__(self, row: Any) -> Any:
        shard, at = self._place[row]
        return self._shard(shard)[at]


def _loaded(load: Callable[[], Any], wanted: Identity) -> Any:
    """The scorer; raises `InputError` where it is not the driver's, which the cache would take it for."""
    scorer = load()
    identity = identity_of(scorer)
    if identity.key != wanted.key:
        expected, loaded = wanted.to_json(), identity.to_json()
        differ = [
            f"{fact} {loaded[fact]!r} for {expected[fact]!r}"
            for fact in expected
            if expected[fact] != loaded[fact]
        ]
        problem = f"the worker on {socket.gethostname()} loads another scorer than the driver"
        hint = "give all machines the same files, and driver and workers the same kind of device"
        raise InputError(problem, where=wanted.name, given=", ".join(differ), hint=hint)
    return scorer


def _agree(handshake: Handshake, node: str) -> None:
    """Raises `InputError` where versions differ from the driver's, or its cache is not seen."""
    differ = {name: (have, handshake.versions.get(name, "")) for name, have in versions().items()}
    differ = {name: (have, wanted) for name, (have, wanted) in differ.items() if have != wanted}
    if differ:
        problem = "other versions than the driver's"
        given = ", ".join(f"{name} {have or '(none)'}" for name, (have, _) in differ.items())
        allowed = [f"{name} {wanted or '(none)'}" for name, (_, wanted) in differ.items()]
        raise InputError(problem, where=f"worker on {node}", given=given, allowed=allowed)
    until = time.monotonic() + _SEEN_WITHIN
    while True:
        with suppress(CounterfoilError):
            probe = open_place(handshake.cache).read(handshake.probe)
            if probe is not None and probe.data == handshake.token.encode():
                return
        if time.monotonic() > until:
            problem = "does not see the cache"
            hint = "give a folder that all machines share with --cache"
            raise InputError(problem, where=f"worker on {node}", given=handshake.cache, hint=hint)
        time.sleep(0.2)
