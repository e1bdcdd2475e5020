"""An OpenAI-compatible chat endpoint: requests with images, sent at a pace, retried, and kept once answered.

Every answer is written to its own file as soon as it arrives, named by the digest of everything that was sent
(address, model, messages with the digest of each image, parameters), so that no request is paid for twice.
Requests that hang when a process is killed were never answered, and are sent again.
"""

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from random import Random
from typing import Any

import httpx2
import numpy as np

from counterfoil.data.records import Image, PixelSource
from counterfoil.data.videos import Video
from counterfoil.errors import CounterfoilError, InputError, ModelError
from counterfoil.inputs.files import read_json
from counterfoil.scorers.chat.protocols import Parts
from counterfoil.store import digest, digest_value, write_json

#: The folder of answers within the folder of finished work.
FOLDER = "chat"

#: How many of the likeliest first tokens are asked for: the most that servers give.
_TOP = 20
#: Answers that are worth another try.
_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
#: No wait between tries is longer, in seconds; an endpoint that asks for more ends the run.
_LONGEST = 60.0
_PATIENCE = 600.0
#: Seconds that requests under way have to be finished where a run ends before its time.
_GRACE = 5.0
#: Requests prepared ahead of those that are under way, for each that may be.
_AHEAD = 2
#: The first bytes of formats that endpoints read; other images are sent as PNG.
_FORMATS = ((b"\xff\xd8\xff", "jpeg"), (b"\x89PNG\r\n\x1a\n", "png"), (b"GIF8", "gif"))


@dataclass(frozen=True)
class ChatSettings:
    """How an endpoint is asked; what changes answers is part of a request, the rest is not."""

    url: str
    model: str
    temperature: float = 0.0
    #: What an image may cost: "low", "high" or "auto"; empty leaves it to the endpoint.
    detail: str = ""
    #: The parameter that limits the length of answers; newer models take "max_completion_tokens" alone.
    tokens_field: str = "max_tokens"
    concurrency: int = 8
    #: Requests a minute at most; 0 is no limit.
    rpm: float = 0.0
    #: Tries after the first one, and the wait before the first of them, in seconds; it doubles every time.
    retries: int = 6
    wait: float = 1.0
    #: Seconds until a request is given up.
    timeout: float = 120.0


@dataclass(frozen=True)
class ChatRequest:
    """One prompt, how many tokens the answer may have, and whether log-probabilities are asked for."""

    parts: Parts
    max_tokens: int
    logprobs: bool = False


@dataclass(frozen=True)
class Reply:
    """One answer. `refused` says that the model or its filter declined; `text` may be empty."""

    text: str
    refused: bool
    #: The likeliest first tokens with their log-probabilities; None where the endpoint gave none.
    top: tuple[tuple[str, float], ...] | None
    prompt_tokens: int
    completion_tokens: int
    #: What the endpoint calls the model that answered.
    model: str


@dataclass
class Spent:
    """What a process has sent and used so far; kept answers cost nothing again."""

    requests: int = 0
    retried: int = 0
    kept: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    models: set[str] = field(default_factory=set)


class Endpoint:
    """A chat endpoint with its cache of answers; `key` is sent as a bearer token and nowhere written."""

    def __init__(self, settings: ChatSettings, *, key: str = "", folder: Path | None = None) -> None:
        self.settings, self.spent = settings, Spent()
        self._key, self._folder = key, folder
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._next, self._reached = 0.0, False
        #: Of the images of the requests at hand.
        self._digests: dict[Image, str] = {}
        # Jitter changes nothing but when a request is sent.
        self._random = Random()

    def kept_in(self, folder: Path) -> "Endpoint":
        """The same endpoint with its answers kept in `folder`."""
        return Endpoint(self.settings, key=self._key, folder=folder / FOLDER)

    def ask(self, requests: Sequence[ChatRequest]) -> Iterator[Reply]:
        """The answer to each request, in order; equal requests are sent once.

        Requests are prepared a few ahead, so that images of a large benchmark are never all in memory. Raises
        `ModelError` where the endpoint cannot be reached, refuses the key, model or request, or gives no
        answer after all tries. Whatever was answered is kept.
        """
        under_way: dict[str, Future[Reply]] = {}
        self._stop, self._digests = threading.Event(), {}
        limit = self.settings.concurrency
        limits = httpx2.Limits(max_connections=limit, max_keepalive_connections=limit)
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        # Certificates take a fifth of a second to load, and a plain address has none.
        verify = self.settings.url.startswith("https:")
        timeout = self.settings.timeout
        with (
            httpx2.Client(headers=headers, timeout=timeout, limits=limits, verify=verify) as client,
            _Workers(limit) as pool,
        ):

            def submit(request: ChatRequest) -> Future[Reply]:
                payload, key = self.payload(request)
                if key not in under_way:
                    under_way[key] = pool.submit(self._answer, client, payload, key)
                return under_way[key]

            coming = iter(requests)
            try:
                queue = [submit(each) for each in islice(coming, _AHEAD * limit)]
                while queue:
                    yield queue.pop(0).result()
                    queue += [submit(each) for each in islice(coming, 1)]
            finally:
                # Requests that wait for another try are given up; those under way may be finished and kept.
                self._stop.set()

    def payload(self, request: ChatRequest) -> tuple[Callable[[], bytes], str]:
        """What makes the body of a request, and the digest of everything in it and of where it goes."""
        settings = self.settings
        facts: dict[str, Any] = {
            "model": settings.model,
            settings.tokens_field: request.max_tokens,
            "temperature": settings.temperature,
        }
        if request.logprobs:
            facts |= {"logprobs": True, "top_logprobs": _TOP}

        def body(written: Callable[[Image], str]) -> dict[str, Any]:
            def part(each: str | Image) -> dict[str, Any]:
                if isinstance(each, str):
                    return {"type": "text", "text": each}
                detail = {"detail": settings.detail} if settings.detail else {}
                return {"type": "image_url", "image_url": {"url": written(each), **detail}}

            content = [part(each) for each in request.parts]
            return {**facts, "messages": [{"role": "user", "content": content}]}

        def named(image: Image) -> str:
            if image not in self._digests:
                self._digests[image] = _digest_of(image)
            return self._digests[image]

        key = digest_value({"url": settings.url, "body": body(named)})
        return lambda: json.dumps(body(_data_url)).encode(), key

    def _answer(self, client: httpx2.Client, payload: Callable[[], bytes], key: str) -> Reply:
        known = self._known(key)
        if known is not None:
            with self._lock:
                self.spent.kept += 1
                self.spent.models.add(known.model)
            return known
        content, last = payload(), ""
        for tries in range(self.settings.retries + 1):
            self._pace()
            try:
                with self._lock:
                    self.spent.requests += 1
                    self.spent.retried += tries > 0
                response = client.post(
                    f"{self.settings.url}/chat/completions",
                    content=content,
                    headers={"Content-Type": "application/json"},
                )
                reply = self._read(response)
                if isinstance(reply, Reply):
                    self._keep(key, reply)
                    return reply
                last, after = reply
            except httpx2.ConnectError as error:
                if not self._reached:
                    hint = "is it running, and is the address right?"
                    raise self._failed(
                        "the endpoint cannot be reached", given=str(error), hint=hint
                    ) from None
                last, after = _words(error), 0.0
            except (httpx2.TransportError, httpx2.DecodingError) as error:
                last, after = _words(error), 0.0
            if after > _PATIENCE:
                raise self._failed("the endpoint asks for a long wait", given=f"{after:,.0f} s ({last})")
            if tries < self.settings.retries:
                self._sleep(max(after, self._backoff(tries)))
        raise self._failed(f"no answer after {self.settings.retries + 1} tries", given=last)

    def _read(self, response: httpx2.Response) -> Reply | tuple[str, float]:
        """The answer in a response, or why there is none and how many seconds the endpoint asks to wait."""
        self._reached = True
        status, text = response.status_code, response.text
        if status == 200:
            try:
                return _reply(json.loads(text), self.settings.model)
            except (ValueError, KeyError, TypeError, IndexError, AttributeError):
                return (f"status 200 and no chat completion: {text[:80]}", 0.0)
        message = self._shown(_message(text))
        if status == 400 and any(word in text for word in ("content_filter", "content_policy")):
            # A filter that refuses to look is an answer, counted as a refusal.
            return Reply("", True, None, 0, 0, self.settings.model)
        if status in _AGAIN and "insufficient_quota" not in text:
            after = _retry_after(response.headers)
            if status == 429:
                # One that is too fast slows down all.
                with self._lock:
                    self._next = max(self._next, time.monotonic() + after)
            return (f"status {status}: {message}", after)
        what, hint = _REFUSED.get(status, ("the endpoint refuses the request", None))
        raise self._failed(what, given=f"status {status}: {message}", hint=hint)

    def _known(self, key: str) -> Reply | None:
        if self._folder is None:
            return None
        path = self._folder / f"{key}.json"
        if not path.is_file():
            return None
        try:
            kept = read_json(path)["reply"]
            top = kept["top"]
            return Reply(**{**kept, "top": None if top is None else tuple((t, float(p)) for t, p in top)})
        except (CounterfoilError, KeyError, TypeError, ValueError):
            return None  # A damaged file is asked for again, and replaced.

    def _keep(self, key: str, reply: Reply) -> None:
        if self._folder is not None:
            asked = {"url": self.settings.url, "model": self.settings.model}
            write_json(self._folder / f"{key}.json", {"asked": asked, "reply": vars(reply)})
        with self._lock:
            self.spent.prompt_tokens += reply.prompt_tokens
            self.spent.completion_tokens += reply.completion_tokens
            self.spent.models.add(reply.model)

    def _pace(self) -> None:
        """Wait until the next request may be sent."""
        with self._lock:
            now = time.monotonic()
            start = max(now, self._next)
            self._next = start + (60.0 / self.settings.rpm if self.settings.rpm else 0.0)
        self._sleep(start - now)

    def _sleep(self, seconds: float) -> None:
        if self._stop.wait(max(0.0, seconds)):
            raise self._failed("given up, since another request failed")

    def _backoff(self, tries: int) -> float:
        """Seconds before the next try: doubled each time, with jitter, so that requests spread out."""
        return min(_LONGEST, self.settings.wait * 2**tries) * self._random.uniform(0.5, 1.0)

    def _shown(self, text: str) -> str:
        """A server's words without the key, which some repeat."""
        return text.replace(self._key, "(key)") if self._key else text

    def _failed(self, what: str, *, given: str | None = None, hint: str | None = None) -> ModelError:
        return ModelError(
            what,
            where=f"chat:{self.settings.url}#{self.settings.model}",
            given=None if given is None else self._shown(given),
            hint=hint or (_GOES_ON if self._folder is not None else None),
        )


class _Workers:
    """Threads that make requests; when the block is left, those under way have some seconds to be finished.

    An executor of the standard library would wait for each of them, up to the timeout of a request.
    """

    def __init__(self, count: int) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(count)]

    def __enter__(self) -> "_Workers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Empty):
            while True:
                self._work.get_nowait()
        for _thread in self._threads:
            self._work.put(None)
        until = time.monotonic() + _GRACE
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def submit(self, call: Callable[..., Reply], *given: Any) -> "Future[Reply]":
        found: Future[Reply] = Future()

        def work() -> None:
            try:
                found.set_result(call(*given))
            except BaseException as error:
                found.set_exception(error)

        self._work.put(work)
        return found

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()


_GOES_ON = "what was answered is kept: the same command goes on from there"
_REFUSED: Mapping[int, tuple[str, str | None]] = {
    401: (
        "the endpoint refuses the key",
        "put it into the environment variable COUNTERFOIL_API_KEY, or name another with --api-key-env",
    ),
    403: ("the endpoint refuses the key", None),
    404: ("no such model or address", "the address ends where /chat/completions begins, as in .../v1"),
}


def _reply(body: Any, model: str) -> Reply:
    """The answer in a chat completion; raises `KeyError` and the like for what is none."""
    choice = body["choices"][0]
    message, usage = choice["message"], body.get("usage") or {}
    content = message.get("content")
    if isinstance(content, list):  # Some servers answer in parts.
        content = "".join(part.get("text") or "" for part in content)
    if not isinstance(content, str | None):
        raise TypeError(type(content).__name__)
    listed = (choice.get("logprobs") or {}).get("content") or []
    first = listed[0]["top_logprobs"] if listed else []
    top = tuple((str(each["token"]), float(each["logprob"])) for each in first)
    return Reply(
        text=content or "",
        refused=bool(message.get("refusal")) or choice.get("finish_reason") == "content_filter",
        top=top or None,
        prompt_tokens=int(usage.get("prompt_tokens") or 0),
        completion_tokens=int(usage.get("completion_tokens") or 0),
        model=str(body.get("model") or model),
    )


def _message(text: str) -> str:
    """What an error says, in the layouts of servers; else the beginning of the text."""
    try:
        found = json.loads(text)
        error = found.get("error", found)
        message = error.get("message", error.get("detail", "")) if isinstance(error, dict) else error
    except (ValueError, AttributeError):
        message = ""
    return str(message or text)[:200]


def _retry_after(headers: httpx2.Headers) -> float:
    """The seconds that an endpoint asks to wait: a number of them, or a date; 0 where it asks for none."""
    text = headers.get("retry-after", "")
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        then = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    return max(0.0, (then.astimezone(UTC) - datetime.now(UTC)).total_seconds())


def _words(error: Exception) -> str:
    kind = type(error).__name__
    return f"{kind}: {error}" if str(error) else kind


def _encoded(image: Image) -> tuple[bytes, str]:
    """The bytes that are sent and their format: the file's own where it is whole and of a known format."""
    if isinstance(image, Video):
        raise InputError("a chat endpoint is sent images, not videos", where=image.id)
    if image.crop is None:
        data = image.read()
        for start, kind in _FORMATS:
            if data.startswith(start):
                return data, kind
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return data, "webp"
    return PixelSource(np.asarray(image.decode())).read(), "png"


def _digest_of(image: Image) -> str:
    data, kind = _encoded(image)
    return f"{kind}:{digest(data)}"


def _data_url(image: Image) -> str:
    data, kind = _encoded(image)
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"
