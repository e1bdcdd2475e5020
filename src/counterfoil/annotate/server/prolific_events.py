"""The route at which Prolific reports changes, where the server has a public address.

An event says only that something changed, so the submissions are read and set beside the campaign's people.
It counts as dealt with once that is done: where it cannot be, Prolific is told so and sends the event again.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse

from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database
from counterfoil.annotate.notes import set_value, value_of
from counterfoil.annotate.platforms.prolific_api import ADDRESS, ProlificClient, ProlificSettings
from counterfoil.annotate.platforms.prolific_campaign import refresh
from counterfoil.annotate.platforms.prolific_webhooks import ProlificEvents, verified
from counterfoil.errors import DataError, InputError

PATH = "/events/prolific"
#: Characters of an event's id that tell it apart.
_ID = 200


@contextmanager
def opened_routes(campaign: Campaign, database: Database, events: ProlificEvents) -> Iterator[APIRouter]:
    """The route, with a client of the API that is closed in the end."""
    # Prolific sends an event again that could not be dealt with, so tries of ours are few.
    settings = ProlificSettings(events.address or ADDRESS, retries=1, timeout=10.0)
    with ProlificClient(events.token, settings) as client:
        yield routes(campaign, database, client, secret=events.secret, clock=time.time)


async def _body(request: Request) -> bytes:
    return await request.body()


def routes(
    campaign: Campaign, database: Database, client: ProlificClient, *, secret: str, clock: Callable[[], float]
) -> APIRouter:
    """The route, for events that are signed with `secret`.

    401 for an event that is not Prolific's or too old, 503 where Prolific cannot be asked now; an event that
    comes again is answered as the first time.
    """
    router = APIRouter()

    @router.post(PATH, include_in_schema=False)
    def receive(request: Request, body: Annotated[bytes, Depends(_body)]) -> JSONResponse:
        """One event."""
        try:
            event = verified(body, dict(request.headers), secret=secret, now=clock())
        except InputError as error:
            return JSONResponse({"error": str(error)}, 401)
        key = f"prolific event {event.id[:_ID]}"
        with database.reading() as connection:
            if value_of(connection, key):
                return JSONResponse({"repeated": True})
        try:
            refresh(database, campaign, client, clock())
        except DataError:
            raise
        except InputError as error:
            return JSONResponse({"error": str(error)}, 503)
        with database.writing() as connection:
            set_value(connection, key, str(clock()))
        return JSONResponse({"repeated": False})

    return router
