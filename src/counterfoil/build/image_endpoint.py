"""An OpenAI-compatible image endpoint (`images/generations` or `/edits`); no image is paid for twice."""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2

from counterfoil.benchmarks.records import decode
from counterfoil.build.imaging import ImageRequest, ImageSettings, facts_of, png
from counterfoil.build.step import Generated, StepContext
from counterfoil.engine.executor import batch_keys
from counterfoil.errors import CounterfoilError, DataError
from counterfoil.inputs.files import digest, digest_value, read_json
from counterfoil.models.base import Identity
from counterfoil.models.chat.endpoint import encoded
from counterfoil.models.chat.http_client import Body, Client, EndpointSettings, json_body
from counterfoil.store import write_bytes, write_json

REFUSED = "refused by the endpoint"
#: Answers of an address at which there is nothing any more.
_GONE = frozenset({401, 403, 404, 410})


@dataclass(frozen=True)
class ImageAnswer:
    """One answer: the image's `data`, the `address` to fetch it from, its file, or its refusal."""

    data: bytes | None = None
    address: str | None = None
    refused: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    cell: str | None = None


class ImageEndpoint(Client[ImageRequest, ImageAnswer]):
    """An image endpoint with its images in the build's folder of images, and its notes in `context.keep`."""

    kind, path, what = "images", "images/generations", "image"

    def __init__(
        self, settings: EndpointSettings, step: ImageSettings, context: StepContext, *, key: str = ""
    ) -> None:
        super().__init__(settings, key=key)
        self._step, self._work = step, context
        if step.edits:
            self.path = "images/edits"
        self._wanted: dict[str, ImageRequest] = {}

    def images(self, wanted: Sequence[ImageRequest]) -> list[Generated]:
        image_of_row: dict[int, Generated] = {}

        def take(row: int, data: bytes) -> None:
            name, _, image = data.partition(b"\n")
            if not name:
                image_of_row[row] = wanted[row].generated(self.by, None, reason=REFUSED)
                return
            place = self._work.images / name.decode()
            if not place.is_file():
                write_bytes(place, image)
            image_of_row[row] = wanted[row].generated(self.by, place.name)

        size, stage = self.settings.concurrency, "asking for images"
        keys = batch_keys([self.payload(request)[1] for request in wanted], size)
        self._work.session.make(self, wanted, keys, take, stage=stage, size=size, here=True)
        used, refused = self.spent, sum(image.cell is None for image in image_of_row.values())
        self._work.note(
            f"{used.requests:,} requests ({used.retried:,} of them again), {used.cached:,} answers from "
            f"before; {refused:,} refused"
        )
        return [image_of_row[row] for row in range(len(wanted))]

    @property
    def identity(self) -> Identity:
        return Identity(self.by, revision="1", options={"edits": self._step.edits})

    def make(self, batches: Sequence[Sequence[ImageRequest]]) -> Iterator[list[bytes]]:
        """The name of each image, a line feed, and its file; nothing but that where the endpoint declines."""
        answers = self.ask([request for batch in batches for request in batch])
        for batch in batches:
            # The batch first: where it ends, no answer of the next one is taken.
            cells = [answer.cell for _, answer in zip(batch, answers, strict=False)]
            files = [b"" if cell is None else (self._work.images / cell).read_bytes() for cell in cells]
            yield [(cell or "").encode() + b"\n" + data for cell, data in zip(cells, files, strict=True)]

    @property
    def by(self) -> str:
        return f"images:{self.settings.url}#{self.settings.model}"

    def payload(self, request: ImageRequest) -> tuple[Callable[[], Body], str]:
        """The body of a request; its digest tells apart images of one text by their seeds."""
        prompt = request.text + self._step.suffix
        body: dict[str, Any] = {"model": self.settings.model, "prompt": prompt, "n": 1}
        if self._step.size is not None:
            body["size"] = f"{self._step.size}x{self._step.size}"
        if self._step.seeded:
            # Servers hold seeds in 32 bits.
            body["seed"] = request.seed % 2**31
        named = {"url": self.settings.url, "body": body, "seed": request.seed, "saved": self._step.saved}
        if not self._step.edits:
            key = digest_value(named)
            self._wanted[key] = request
            return lambda: json_body(body), key
        assert request.source is not None
        source = self._work.image(request.source)
        key = digest_value({**named, "source": digest(encoded(source)[0])})
        self._wanted[key] = request

        def form() -> Body:
            data, kind = encoded(source)
            file = (f"image.{kind}", data, f"image/{kind}")
            return {"data": {name: str(value) for name, value in body.items()}, "files": {"image": file}}

        return form, key

    def read(self, body: Any) -> ImageAnswer:
        """The first image of an answer; raises `ValueError` and the like where there is none."""
        entry = body["data"][0]
        facts = {"revised_prompt": entry.get("revised_prompt"), "created": body.get("created")}
        facts |= {"model": str(body.get("model") or self.settings.model), "usage": body.get("usage")}
        inside, address = entry.get("b64_json"), entry.get("url")
        if inside or address.startswith("data:"):
            inside = inside or address.partition("base64,")[2]
            return ImageAnswer(data=_image(base64.b64decode(inside, validate=True)), facts=facts)
        if urlsplit(address).scheme not in ("http", "https"):
            raise ValueError(address)
        return ImageAnswer(address=address, facts=facts)

    def refusal(self, message: str) -> ImageAnswer:
        return ImageAnswer(refused=message)

    def cached(self, key: str) -> ImageAnswer | None:
        """The image in the folder, one whose address was noted, or what was declined before."""
        cell, answer, noted = f"{key}.png", None, None
        with suppress(CounterfoilError):
            noted = read_json(self._work.keep / f"{key}.json")
        noted = noted if isinstance(noted, dict) else {}
        if facts_of(self._work.images / cell) is not None:
            answer = ImageAnswer(cell=cell)
        elif "refused" in noted:
            answer = ImageAnswer(refused=str(noted["refused"]))
        elif {"address", "facts"} <= set(noted):
            data = self._fetched(str(noted["address"]), again=True)
            answer = None if data is None else self._written(key, data, noted["facts"])
        if answer is not None:
            with self._lock:
                self.spent.cached += 1
        return answer

    def keep(self, key: str, answer: ImageAnswer) -> ImageAnswer:
        """The answer with its image in a file; what was declined is noted."""
        note = self._work.keep / f"{key}.json"
        if answer.refused is not None:
            write_json(note, {"refused": answer.refused})
            return answer
        data = answer.data
        if data is None:
            assert answer.address is not None
            write_json(note, {"address": answer.address, "facts": dict(answer.facts)})
            data = self._fetched(answer.address, again=False)
            assert data is not None
        return self._written(key, data, answer.facts)

    def _written(self, key: str, data: bytes, facts: Mapping[str, Any]) -> ImageAnswer:
        wanted, cell = self._wanted[key], f"{key}.png"
        fields = {"endpoint": self.by, "text": wanted.text, "suffix": self._step.suffix, "seed": wanted.seed}
        if wanted.source is not None:
            fields["source"] = wanted.source
        picture = decode(data, where=self.by)
        write_bytes(self._work.images / cell, png(picture, {**fields, **facts}, self._step.saved))
        return ImageAnswer(cell=cell)

    def _fetched(self, address: str, *, again: bool) -> bytes | None:
        """The image at an address, asked without the key; None where it is gone and may be asked again."""
        last = ""
        for tries in range(self.settings.retries + 1):
            try:
                with httpx2.Client(timeout=self.settings.timeout, follow_redirects=True) as client:
                    response, data = self._sent(client, "GET", address)
                if response.status_code == 200:
                    return _image(data)
                last = f"status {response.status_code}"
                if response.status_code in _GONE:
                    break
            except ValueError:
                last = "not an image"
            except (httpx2.TransportError, httpx2.DecodingError) as error:
                last = f"{type(error).__name__}: {error}"
            if tries < self.settings.retries:
                self._sleep(self._backoff(tries))
        if again:
            return None
        raise self._failed("the image that the endpoint made cannot be fetched", given=last)


def _image(data: bytes) -> bytes:
    try:
        decode(data, where="an answer")
    except DataError as error:
        raise ValueError(str(error)) from None
    return data
