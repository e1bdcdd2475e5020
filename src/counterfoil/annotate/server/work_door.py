"""A short way for the two requests that every answer takes: the answer itself, and the next item.

It stands before the framework, within the guard, and answers what it can answer with success. Whatever else
there is (a request that is not as our page sends it, an answer that is refused, a full disk) goes on to the
framework's routes of the same paths (`server.work_api`), which find the same and say it in their own way.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from urllib.parse import parse_qsl

from pydantic import BaseModel
from starlette.exceptions import HTTPException

from counterfoil.annotate import entry, work
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database
from counterfoil.annotate.platforms.base import Visit
from counterfoil.annotate.server.security import Application, Message, Receive, Send
from counterfoil.annotate.server.turns import Turns
from counterfoil.annotate.server.work_api import receipt_view
from counterfoil.annotate.server.work_views import AnswerGiven, Views
from counterfoil.annotate.situation import question_of
from counterfoil.annotate.statements import DatabaseQuery
from counterfoil.annotate.tables import sa

_PATH = re.compile(r"/api/work/([\w-]{1,200})(/answers)?", re.ASCII)
#: The routes that are answered here, as the log names them.
_STANDING = SimpleNamespace(path="/api/work/{token}")
_ANSWERS = SimpleNamespace(path="/api/work/{token}/answers")
#: Longest text of a parameter or a header, as the routes of the framework have it.
_LONGEST = 2_000


@dataclass(frozen=True)
class _Asked:
    """A request that can be answered here: the token in its path, its language and its visit."""

    token: str
    language: str
    visit: Visit | None


@dataclass(eq=False)
class WorkDoor:
    """The application with the short way before it."""

    app: Application
    campaign: Campaign
    database: Database
    views: Views
    clock: Callable[[], float]

    @cached_property
    def turns(self) -> Turns:
        """Writes to the database."""
        return Turns(self.database)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer the request, or pass it on."""
        found = _PATH.fullmatch(scope["path"]) if scope["type"] == "http" else None
        wanted = "GET" if found is None or found[2] is None else "POST"
        asked = None
        if found is not None and scope["method"] == wanted and not scope.get("root_path"):
            asked = self._asked(found[1], scope)
        if asked is None:
            await self.app(scope, receive, send)
        elif wanted == "GET":
            await self._stand(asked, scope, receive, send)
        else:
            await self._submit(asked, scope, receive, send)

    def _asked(self, token: str, scope: Message) -> _Asked | None:
        """What is asked for, None where it is asked otherwise than our page does."""
        accepted = [value for name, value in scope["headers"] if name == b"accept-language"]
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        texts = [*(value.decode("latin-1") for value in accepted), *(value for _, value in query)]
        if len(accepted) > 1 or len(query) > 1 or any(len(text) > _LONGEST for text in texts):
            return None
        if query and (query[0][0] != "visit" or not query[0][1].isascii()):
            return None
        language = self.views.language(accepted[0].decode("latin-1") if accepted else "")
        return _Asked(token, language, self.views.visit(query[0][1] if query else "", token))

    async def _stand(self, asked: _Asked, scope: Message, receive: Receive, send: Send) -> None:
        def stand(connection: sa.Connection) -> work.Standing:
            return work.stand(connection, self.campaign, entry.who_has(asked.token), self.clock())

        try:
            standing = await self.turns.write(stand)
            view = self.views.work(standing, asked.visit, asked.language)
        except Exception:
            await self.app(scope, receive, send)
            return
        scope["route"] = _STANDING
        await _reply(send, view)

    async def _submit(self, asked: _Asked, scope: Message, receive: Receive, send: Send) -> None:
        try:
            body = await _read(receive)
        except HTTPException as error:
            await self.app(scope, _raising(error), send)
            return
        if body is None:
            return
        try:
            given = AnswerGiven.model_validate(json.loads(body))
            submission = given.submission()
            who = entry.who_has(asked.token)

            def take(connection: sa.Connection) -> work.Receipt:
                return work.take(connection, self.campaign, who, submission, self.clock())

            def ask(connection: sa.Connection) -> DatabaseQuery:
                return question_of(connection, who, submission.lease, submission.key)

            receipt = await self.turns.write(take, ask)
            view = receipt_view(self.views, receipt, asked.visit, asked.language)
        except Exception:
            # Also of a receipt that was lost on the way here: the same key gets the same receipt again.
            await self.app(scope, _again(body, receive), send)
            return
        scope["route"] = _ANSWERS
        await _reply(send, view)


async def _reply(send: Send, view: BaseModel) -> None:
    body = view.model_dump_json().encode()
    headers = [(b"content-length", str(len(body)).encode()), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _read(receive: Receive) -> bytes | None:
    """The whole body; None where the page has gone."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    """A body that was read, to be read once more."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


def _raising(error: HTTPException) -> Receive:
    async def refused() -> Message:
        raise error

    return refused
