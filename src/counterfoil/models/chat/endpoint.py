"""An OpenAI-compatible chat endpoint; answers are kept in files named by the digest of what was sent."""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.benchmarks.records import Image, PixelSource
from counterfoil.benchmarks.videos import Video
from counterfoil.errors import CounterfoilError, InputError
from counterfoil.inputs.files import decoded, digest, digest_value, parse_json
from counterfoil.models.chat.http_client import Body, Client, EndpointSettings, json_body
from counterfoil.models.chat.protocols import Parts, after_thinking
from counterfoil.storage import open_store
from counterfoil.store import json_bytes

FOLDER = "chat"

#: How many of the likeliest first tokens are asked for: the most that servers give.
_TOP = 20
#: The first bytes of formats that endpoints read; other images are sent as PNG.
_FORMATS = ((b"\xff\xd8\xff", "jpeg"), (b"\x89PNG\r\n\x1a\n", "png"), (b"GIF8", "gif"))


@dataclass(frozen=True)
class ChatRequest:
    """One prompt, how many tokens the answer may have, and whether log-probabilities are asked for."""

    parts: Parts
    max_tokens: int
    logprobs: bool = False
    seed: int | None = None
    #: The JSON schema that the answer shall keep, and what was said before: the user's turns and the answers.
    schema: Mapping[str, Any] | None = None
    before: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reply:
    """One answer: `text` is all that came, `refused` says that the model or its filter declined."""

    text: str
    refused: bool
    #: The likeliest first tokens with their log-probabilities; None where the endpoint gave none.
    top: tuple[tuple[str, float], ...] | None
    prompt_tokens: int
    completion_tokens: int
    model: str
    truncated: bool = False

    @property
    def answer(self) -> str:
        """The text without a reasoning model's thinking; "" where it did not come to its end."""
        return after_thinking(self.text)


class Endpoint(Client[ChatRequest, Reply]):
    kind, path, what = "chat", "chat/completions", "chat completion"

    def __init__(self, settings: EndpointSettings, *, key: str = "", folder: Path | None = None) -> None:
        super().__init__(settings, key=key)
        self._place, self.keeps = None if folder is None else open_store(folder), folder is not None
        #: Of the images of the requests at hand.
        self._digests: dict[Image, str] = {}

    def kept_in(self, folder: Path) -> "Endpoint":
        return Endpoint(self.settings, key=self._key, folder=folder / FOLDER)

    def ask(self, requests: Sequence[ChatRequest]) -> Iterator[Reply]:
        self._digests = {}
        yield from super().ask(requests)

    def payload(self, request: ChatRequest) -> tuple[Callable[[], Body], str]:
        settings = self.settings
        facts: dict[str, Any] = {"model": settings.model, settings.tokens_field: request.max_tokens}
        facts |= {"temperature": settings.temperature, **settings.own_fields}
        if request.logprobs:
            facts |= {"logprobs": True, "top_logprobs": _TOP}
        if request.seed is not None:
            facts["seed"] = request.seed
        if request.schema is not None:
            form = {"name": "answer", "strict": True, "schema": dict(request.schema)}
            facts["response_format"] = {"type": "json_schema", "json_schema": form}

        def part(content: str | Image, written: Callable[[Image], str]) -> dict[str, Any]:
            if isinstance(content, str):
                return {"type": "text", "text": content}
            detail = {"detail": settings.detail} if settings.detail else {}
            return {"type": "image_url", "image_url": {"url": written(content), **detail}}

        def body(written: Callable[[Image], str]) -> dict[str, Any]:
            turns_of: list[tuple[str, Any]] = [("system", settings.system)] if settings.system else []
            turns_of += [("assistant" if i % 2 else "user", text) for i, text in enumerate(request.before)]
            turns_of.append(("user", [part(item, written) for item in request.parts]))
            return {**facts, "messages": [{"role": role, "content": content} for role, content in turns_of]}

        def named(image: Image) -> str:
            if image not in self._digests:
                data, kind = encoded(image)
                self._digests[image] = f"{kind}:{digest(data)}"
            return self._digests[image]

        def data_url(image: Image) -> str:
            data, kind = encoded(image)
            return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"

        key = digest_value({"url": settings.url, "body": body(named)})
        return lambda: json_body(body(data_url)), key

    def read(self, body: Any) -> Reply:
        choice = body["choices"][0]
        message, usage = choice["message"], body.get("usage") or {}
        content = message.get("content")
        if isinstance(content, list):  # Some servers answer in parts.
            content = "".join(part.get("text") or "" for part in content)
        if not isinstance(content, str | None):
            raise TypeError(type(content).__name__)
        listed = (choice.get("logprobs") or {}).get("content") or []
        first = listed[0]["top_logprobs"] if listed else []
        top = tuple((str(entry["token"]), float(entry["logprob"])) for entry in first)
        ending = choice.get("finish_reason")
        refused = bool(message.get("refusal")) or ending == "content_filter"
        read, written = (int(usage.get(f"{kind}_tokens") or 0) for kind in ("prompt", "completion"))
        model = str(body.get("model") or self.settings.model)
        return Reply(content or "", refused, top or None, read, written, model, ending == "length")

    def refusal(self, message: str) -> Reply:
        return Reply("", True, None, 0, 0, self.settings.model)

    def cached(self, key: str) -> Reply | None:
        file = None if self._place is None else self._place.read(f"{key}.json")
        if file is None:
            return None
        try:
            fields = parse_json(decoded(file.data, where=key), where=key, finite=True)["reply"]
            top = fields["top"]
            reply = Reply(**{**fields, "top": None if top is None else tuple((t, float(p)) for t, p in top)})
        except (CounterfoilError, KeyError, TypeError, ValueError):
            return None  # A damaged file is asked for again, and replaced.
        with self._lock:
            self.spent.cached += 1
            self.spent.models.add(reply.model)
        return reply

    def keep(self, key: str, answer: Reply) -> Reply:
        if self._place is not None:
            endpoint = {"url": self.settings.url, "model": self.settings.model}
            self._place.write(f"{key}.json", json_bytes({"asked": endpoint, "reply": vars(answer)}))
        with self._lock:
            self.spent.prompt_tokens += answer.prompt_tokens
            self.spent.completion_tokens += answer.completion_tokens
            self.spent.models.add(answer.model)
        return answer


def encoded(image: Image) -> tuple[bytes, str]:
    """The bytes that are sent and their format: the file's own where it is whole and of a known format."""
    if isinstance(image, Video):
        raise InputError("an endpoint is sent images, not videos", where=image.id)
    if image.crop is None:
        data = image.read()
        for start, kind in _FORMATS:
            if data.startswith(start):
                return data, kind
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return data, "webp"
    return PixelSource(np.asarray(image.decode())).read(), "png"
