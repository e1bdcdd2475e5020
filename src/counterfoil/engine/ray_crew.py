"""The workers of the `ray` executor as its driver sees them: hired, asked what they see, and let go."""

import uuid
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from counterfoil.engine.leases import LEASES
from counterfoil.engine.ray_cluster import connect, count_workers
from counterfoil.engine.ray_worker import Greeting, ShardWorker, versions
from counterfoil.errors import StorageError
from counterfoil.places import Place, open_place


@dataclass(eq=False)
class RayHand:
    """One worker, as the driver sees it."""

    actor: Any
    #: The cache that it was found to see; what it was asked of another one, and the answer that is awaited.
    sees: Path | None = None
    asked: Greeting | None = None
    meeting: Any = None
    #: The scorer that it has.
    has: str = ""
    #: What it was sent and has not answered, oldest first: shards by reference.
    chunks: dict[Any, tuple[int, ...]] = field(default_factory=dict)


class RayCrew:
    """The workers of a cluster, from one stage of a session to the next."""

    def __init__(self, address: str, cpus: float | None) -> None:
        disconnect = connect(address)
        self.hands: list[RayHand] = []
        self._probes: list[tuple[Place, str]] = []
        # Also where the executor is not closed, and at the end of the process.
        self.leave = weakref.finalize(self, _leave, disconnect, self.hands, self._probes)
        self.most, self._resources = count_workers(cpus)
        self._greeting: Greeting | None = None

    def greet(self, folder: Path) -> None:
        """Name a file in a cache that workers must see before they get work.

        It stays from stage to stage: a worker that was started in one may come in the next.
        """
        if self._greeting is None or self._greeting.cache != folder:
            token = uuid.uuid4().hex
            probe = f"{LEASES}/.probe-{token}.part"
            _remove(self._probes)
            self._probes.append((open_place(folder), probe))
            self._greeting = Greeting(versions(), folder, probe, token)

    def hire(self) -> None:
        """Start a further worker."""
        import ray

        actor = ray.remote(ShardWorker).options(
            max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD", **self._resources
        )
        self.hands.append(RayHand(actor.remote()))

    def dismiss(self, hand: RayHand) -> None:
        """End a worker."""
        import ray

        self.hands.remove(hand)
        with suppress(Exception):
            ray.kill(hand.actor)

    def meet(self, hand: RayHand) -> bool:
        """Whether a worker sees the cache; one that was not asked yet is asked now."""
        assert self._greeting is not None
        if hand.sees == self._greeting.cache:
            return True
        if hand.meeting is None:
            for place, probe in self._probes:
                place.write(probe, self._greeting.token.encode())
            hand.asked, hand.meeting = self._greeting, hand.actor.meet.remote(self._greeting)
        return False

    def met(self, hand: RayHand, problem: Any) -> None:
        """Take the answer of a worker; raises what is in the way of its work.

        One that looked in a cache of a stage before, or after an hour, when others have swept the file away,
        is asked again.
        """
        assert hand.asked is not None
        hand.meeting = None
        if problem is None:
            hand.sees = hand.asked.cache
        elif hand.asked is self._greeting and all(place.read(probe) for place, probe in self._probes):
            raise problem.error()


def _remove(probes: list[tuple[Place, str]]) -> None:
    while probes:
        place, probe = probes.pop()
        with suppress(StorageError):
            place.remove(probe)


def _leave(disconnect: Callable[[], None], hands: Sequence[RayHand], probes: list[tuple[Place, str]]) -> None:
    """End the workers and leave the cluster."""
    import ray

    _remove(probes)
    for hand in hands:
        with suppress(Exception):
            ray.kill(hand.actor)
    with suppress(Exception):
        disconnect()
