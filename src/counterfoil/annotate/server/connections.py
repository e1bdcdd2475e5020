"""Connections to the server: how long one may take to ask, and how many may be open without asking.

Each costs a descriptor, of which a process has few. One that sends no whole request in time is closed. Where
an address, or all together, keep too many open that ask nothing, those that have waited longest are closed,
so that a new one is always heard.
"""

import asyncio
from contextlib import suppress
from operator import attrgetter
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from counterfoil.annotate.server.security import network_of

#: Seconds for the head of a request, and for its body.
HEAD, BODY = 10.0, 20.0
#: Connections that are still to send a whole request: of one address, and in all.
MOST_OF_ADDRESS, MOST_UNHEARD = 64, 512
#: Descriptors that are asked for, where the system allows them; and the part of them that connections get.
_DESCRIPTORS, _PART = 65_536, 0.75


class BoundedConnection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """A connection of uvicorn that is closed where it does not ask in time."""

    #: What ends the wait for a request, while there is one; since when it asks nothing; of which address.
    _late: asyncio.TimerHandle | None = None
    _since: float | None = None
    _address = ""

    def connection_made(self, transport: Any) -> None:
        """A connection was opened; others make room for it."""
        super().connection_made(transport)
        self._address = network_of(self.client[0]) if self.client else ""
        self._wait(HEAD)
        # The oldest first: this one, the newest, is never closed.
        quiet = sorted(
            (connection for connection in self.connections if connection._since is not None),
            key=attrgetter("_since"),
        )
        unheard = [connection for connection in quiet if connection._late is not None]
        own = [connection for connection in unheard if connection._address == self._address]
        excess = len(self.connections) - int(_PART * allowed_descriptors())
        for group, most in ((own, len(own) - MOST_OF_ADDRESS), (unheard, len(unheard) - MOST_UNHEARD)):
            for connection in group[: max(0, most)]:
                connection._give_up()
        for connection in quiet[: max(0, min(excess, len(quiet) - 1))]:
            connection._give_up()

    def data_received(self, data: bytes) -> None:
        """Bytes came: a whole request, its head, or less."""
        super().data_received(data)
        cycle = self.cycle
        if self.transport.is_closing():
            return
        if cycle is None or cycle.response_complete:
            if self._late is None:
                self._wait(HEAD)
        elif not cycle.more_body:
            self._heard()
        elif self._since is not None:
            self._heard()
            self._late = self.loop.call_later(BODY, self._give_up)

    def on_response_complete(self) -> None:
        """A reply was sent: the connection asks nothing, until more bytes come."""
        super().on_response_complete()
        if self._late is None:
            self._since = self.loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._heard()
        super().connection_lost(exc)

    def _wait(self, seconds: float) -> None:
        self._since = self.loop.time()
        self._late = self.loop.call_later(seconds, self._give_up)

    def _heard(self) -> None:
        self._since = None
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        self._heard()
        self.transport.abort()


def allowed_descriptors() -> int:
    """How many descriptors this process may have; it asks for as many as the system allows, within reason."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
        if 0 <= soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return max(soft, wanted)
    return _DESCRIPTORS
