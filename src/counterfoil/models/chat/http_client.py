"""Clients of endpoints that answer with JSON: paced, retried, and never paid for the same request twice."""

import json
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from random import Random
from typing import Any, Generic, TypeVar

import httpx2

from counterfoil.errors import ModelError
from counterfoil.inputs.fields import secret
from counterfoil.models.settings import ChatModelSettings

Request = TypeVar("Request")
Answer = TypeVar("Answer")
Other = TypeVar("Other")

#: States of answers that pass: they are worth another try.
PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_FILTERED = ("content_filter", "content_policy", "moderation_blocked")
#: Words by which servers say that a request does not fit, llama.cpp with a status that passes elsewhere.
_TOO_LONG = re.compile(r"context[ _](?:size|length|window)|maximum context", re.IGNORECASE)
#: No wait between tries is longer, in seconds; an endpoint that asks for more ends the run.
_LONGEST = 60.0
_PATIENCE = 600.0
#: Seconds that requests under way have to be finished where a run ends before its time.
_GRACE = 5.0
#: Requests prepared ahead of those that are under way, for each that may be.
_AHEAD = 2
#: Bytes of an answer at most, once it is unpacked, and how many timeouts all of it may take.
_MOST, _PARTS = 64 << 20, 4


@dataclass(frozen=True)
class EndpointSettings(ChatModelSettings):
    """Where requests go beside how they are made; neither pace nor tries change answers."""

    url: str = ""
    model: str = ""


#: The body of a request as the library takes it: `content` and `headers`, or `data` and `files` of a form.
Body = Mapping[str, Any]


def json_body(value: Any) -> Body:
    return {"content": json.dumps(value).encode(), "headers": {"Content-Type": "application/json"}}


@dataclass
class Spent:
    """What a process has sent and used so far; kept answers cost nothing again."""

    requests: int = 0
    retried: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    models: set[str] = field(default_factory=set)


class Client(ABC, Generic[Request, Answer]):
    """An endpoint with its kept answers; `key` is nowhere written or shown, and no redirect is followed."""

    kind: str
    path: str
    what: str
    #: Whether answers are kept from one process to the next.
    keeps: bool = True

    def __init__(self, settings: EndpointSettings, *, key: str = "") -> None:
        self.settings, self.spent = settings, Spent()
        self._key = secret(key, where=f"the key of {self.kind}:{settings.url}")
        #: `_stop` is done where a run ends before its time.
        self._lock, self._stop = threading.Lock(), Future[None]()
        self._next, self._reached = 0.0, False
        # Jitter changes nothing but when a request is sent.
        self._random = Random()

    def turned_into(self, kind: Callable[[EndpointSettings, str], Other]) -> Other:
        return kind(self.settings, self._key)

    @abstractmethod
    def payload(self, request: Request) -> tuple[Callable[[], Body], str]:
        """What makes the body of a request, and the digest of everything in it and of where it goes."""

    @abstractmethod
    def read(self, body: Any) -> Answer:
        """The answer in a body; raises `KeyError`, `ValueError` and the like for what is none."""

    @abstractmethod
    def refusal(self, message: str) -> Answer:
        """The answer where a filter declines to look at a request."""

    @abstractmethod
    def cached(self, key: str) -> Answer | None:
        """The answer that was kept, if any."""

    @abstractmethod
    def keep(self, key: str, answer: Answer) -> Answer:
        """The answer once it is kept."""

    def ask(self, requests: Sequence[Request]) -> Iterator[Answer]:
        """The answer to each request, in order; equal requests are sent once, a few prepared ahead."""
        under_way: dict[str, Future[Answer]] = {}
        stop = self._stop = Future()
        limit = self.settings.concurrency
        # One that is given up holds its connection for a while; workers are as many as may be under way.
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=limit)
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        # Certificates take a fifth of a second to load, and a plain address has none.
        verify = self.settings.url.startswith("https:")
        timeout = self.settings.timeout
        with (
            httpx2.Client(headers=headers, timeout=timeout, limits=limits, verify=verify) as client,
            ThreadPoolExecutor(limit) as pool,
        ):

            def submit(request: Request) -> Future[Answer]:
                payload, key = self.payload(request)
                if key not in under_way:
                    under_way[key] = pool.submit(self._answer, client, payload, key)
                return under_way[key]

            coming = iter(requests)
            try:
                queue = [submit(following) for following in islice(coming, _AHEAD * limit)]
                while queue:
                    yield queue.pop(0).result()
                    queue += [submit(following) for following in islice(coming, 1)]
            finally:
                # Requests that wait for another try are given up; those under way may be finished and kept.
                stop.set_result(None)
                pool.shutdown(cancel_futures=True)

    def _answer(self, client: httpx2.Client, payload: Callable[[], Body], key: str) -> Answer:
        stored = self.cached(key)
        if stored is not None:
            return stored
        body, last = payload(), ""
        for tries in range(self.settings.retries + 1):
            with self._lock:
                now = time.monotonic()
                start = max(now, self._next)
                self._next = start + (60.0 / self.settings.rpm if self.settings.rpm else 0.0)
            self._sleep(start - now)
            try:
                with self._lock:
                    self.spent.requests += 1
                    self.spent.retried += tries > 0
                url = f"{self.settings.url}/{self.path}"
                reply, last, after = self._read(*self._sent(client, "POST", url, **body))
            except (httpx2.TransportError, httpx2.DecodingError) as error:
                if isinstance(error, httpx2.ConnectError) and not self._reached:
                    hint = "is it running, and is the address right?"
                    failed = self._failed("the endpoint cannot be reached", given=str(error), hint=hint)
                    raise failed from None
                last, after = f"{type(error).__name__}: {error}".removesuffix(": "), 0.0
            else:
                if reply is not None:
                    return self.keep(key, reply)
            if after > _PATIENCE:
                raise self._failed("the endpoint asks for a long wait", given=f"{after:,.0f} s ({last})")
            if tries < self.settings.retries:
                self._sleep(max(after, self._backoff(tries)))
        raise self._failed(f"no answer after {self.settings.retries + 1} tries", given=last)

    def _sent(
        self, client: httpx2.Client, method: str, url: str, **given: Any
    ) -> tuple[httpx2.Response, bytes]:
        most = _PARTS * self.settings.timeout
        until = time.monotonic() + most
        slow = httpx2.ReadTimeout(f"no whole answer within {most:g} s")

        future: Future[tuple[httpx2.Response, bytes]] = Future()

        def send() -> None:
            data = bytearray()
            try:
                with client.stream(method, url, **given) as response:
                    for block in response.iter_bytes():
                        data += block
                        if len(data) > _MOST:
                            allowed = f"at most {_MOST >> 20} MiB"
                            raise self._failed("the answer is too large", allowed=allowed)
                        if time.monotonic() > until:
                            raise slow
                future.set_result((response, bytes(data)))
            except BaseException as error:
                future.set_exception(error)

        # The library's timeouts are of single reads, of which a slow sender may need any number.
        threading.Thread(target=send, daemon=True).start()
        both: list[Future[Any]] = [future, self._stop]
        wait(both, most, FIRST_COMPLETED)
        if not wait([future], _GRACE if self._stop.done() else 0.0).done:
            raise slow
        return future.result()

    def _read(self, response: httpx2.Response, data: bytes) -> tuple[Answer | None, str, float]:
        """The answer in a response, or none, why, and how many seconds the endpoint asks to wait."""
        self._reached = True
        status, text = response.status_code, data.decode("utf-8", "replace")
        if status == 200:
            try:
                return self.read(json.loads(text)), "", 0.0
            except (ValueError, KeyError, TypeError, IndexError, AttributeError):
                return None, f"status 200 and no {self.what}: {text[:80]}", 0.0
        message = self._shown(error_words(text)[:200])
        if status in (400, 413, 500) and _TOO_LONG.search(text):
            problem = "the request is longer than the model's context"
            hint = "start the server with a larger context (llama.cpp: --ctx-size), or send smaller images"
            raise self._failed(problem, given=f"status {status}: {message}", hint=hint)
        if status == 400 and any(word in text for word in _FILTERED):
            # A filter that refuses to look is an answer, counted as a refusal.
            return self.refusal(message), "", 0.0
        if status in PASSING and "insufficient_quota" not in text:
            after = retry_after(response.headers)
            if status == 429:
                # One that is too fast slows down all.
                with self._lock:
                    self._next = max(self._next, time.monotonic() + after)
            return None, f"status {status}: {message}", after
        problem, advice = _REFUSED.get(status, ("the endpoint refuses the request", None))
        raise self._failed(problem, given=f"status {status}: {message}", hint=advice)

    def _sleep(self, seconds: float) -> None:
        if wait([self._stop], max(0.0, seconds)).done:
            raise self._failed("given up, since another request failed")

    def _backoff(self, tries: int) -> float:
        return min(_LONGEST, self.settings.wait * 2**tries) * self._random.uniform(0.5, 1.0)

    def _shown(self, text: str) -> str:
        """A server's words without the key, which some repeat."""
        return text.replace(self._key, "(key)") if self._key else text

    def _failed(
        self, what: str, *, given: str | None = None, allowed: str | None = None, hint: str | None = None
    ) -> ModelError:
        where, given = f"{self.kind}:{self.settings.url}#{self.settings.model}", given and self._shown(given)
        hint = hint or (_GOES_ON if self.keeps else None)
        return ModelError(what, allowed=allowed, where=where, given=given, hint=hint)


_GOES_ON = "what was answered is kept: the same command goes on from there"
_KEY = "put it into the environment variable COUNTERFOIL_API_KEY, or name another with --api-key-env"
_REFUSED: Mapping[int, tuple[str, str | None]] = {
    401: ("the endpoint refuses the key", _KEY),
    403: ("the endpoint refuses the key", None),
    404: ("no such model or address", "the address ends as in .../v1; the path of requests is added"),
}


def error_words(text: str) -> str:
    """What an error says, in the layouts of servers: a text, or texts by field; else all of it."""
    message: Any = ""
    with suppress(ValueError, AttributeError):
        content = json.loads(text)
        message = content.get("error", content)
        if isinstance(message, dict):
            message = next(filter(None, map(message.get, ("message", "detail", "title"))), "")
    if isinstance(message, dict):
        lists = {name: words if isinstance(words, list) else [words] for name, words in message.items()}
        message = "; ".join(f"{name}: {', '.join(map(str, words))}" for name, words in lists.items())
    return str(message or text)


def retry_after(headers: httpx2.Headers) -> float:
    """The seconds that an endpoint asks to wait: a number of them, or a date; 0 where it asks for none."""
    text = headers.get("retry-after", "")
    with suppress(ValueError):
        return max(0.0, float(text))
    with suppress(ValueError):
        return max(0.0, (parsedate_to_datetime(text).astimezone(UTC) - datetime.now(UTC)).total_seconds())
    return 0.0
