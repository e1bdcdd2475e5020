"""Leases on shards: which of several processes computes which, through nothing but the cache's own place.

Leases that were not renewed for `patience` seconds are taken over; at worst a shard is computed twice.
"""

import json
import os
import socket
import threading
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from counterfoil.engine.cache import LEASES
from counterfoil.errors import StorageError
from counterfoil.inputs.files import digest_value
from counterfoil.storage import Place, Tagged

_RENEWALS = 4


@dataclass
class Leases:
    """The leases of this process on shards of one kind, renewed by a thread until the block ends."""

    place: Place
    #: What the shards belong to; names of shards are unique within it.
    what: str
    patience: float = 60.0
    _held: dict[str, Tagged] = field(default_factory=dict, init=False, repr=False)
    _ended: threading.Event = field(default_factory=threading.Event, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        self._owner = {"host": socket.gethostname(), "process": os.getpid(), "token": uuid.uuid4().hex}
        self._thread = threading.Thread(target=self._renew, daemon=True)

    def __enter__(self) -> "Leases":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
