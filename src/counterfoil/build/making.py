"""Texts, images and answers that a step has made: once by all processes that share a build's cache.

A maker makes items in batches (`counterfoil.engine.made`). What one of several processes has made is found by
the others in the cache; a process alone keeps unfinished work beside the build, and nothing in the cache.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from counterfoil.build.kept import kept_texts
from counterfoil.build.step import Work
from counterfoil.data.records import Image
from counterfoil.engine.made import Maker, batch_keys
from counterfoil.engine.session import Session
from counterfoil.scorers.base import Identity, Options, remember_source, source_of
from counterfoil.store import digest

#: What makes the texts of one batch of what is given, with a seed.
Write = Callable[[Sequence[Any], int], Sequence[str]]


@dataclass(frozen=True)
class TextRequest:
    """A text that is wanted of a local model for an image, or after the turns of a conversation.

    A batch has one seed, or None.
    """

    row: str
    given: Image | tuple[str, ...]
    seed: int | None = None

    @property
    def content(self) -> list[Any]:
        """What tells it from others, as plain values."""
        given = list(self.given) if isinstance(self.given, tuple) else digest(self.given.read())
        return [given, self.seed]


@dataclass(frozen=True, eq=False)
class TextMaker:
    """A local model that writes; finished batches are kept in the folder of `work`, if there is one."""

    identity: Identity
    write: Write = field(repr=False)
    work: Work | None = field(default=None, repr=False)

    def make(self, batches: Sequence[Sequence[TextRequest]]) -> Iterator[list[bytes]]:
        """The texts, batch by batch."""
        for batch in batches:
            write = partial(self.write, [each.given for each in batch], batch[0].seed or 0)
            if self.work is None:
                texts = list(write())
            else:
                asked = [self.identity.to_json(), [each.content for each in batch]]
                texts = kept_texts(self.work, asked, len(batch), write)
            yield [text.encode() for text in texts]

    def texts(self, requests: Sequence[TextRequest], work: Work, *, stage: str, size: int) -> list[str]:
        """The text for each request, `size` of them written together."""
        content = [each.content for each in requests]
        beside = replace(self, work=work)
        if (source := source_of(self)) is not None:
            remember_source(beside, source)
        found = made_bytes(beside, requests, content, work, stage=stage, size=size)
        return [each.decode() for each in found]


def captioner(
    name: str, device: str, prompt: str | None, most: int, beams: int, temperature: float
) -> TextMaker:
    """The writer of captions of a folder or a name of the hub; raises what loading it raises."""
    from counterfoil.scorers.generative.writing import load_writer

    writer = load_writer(name, Options(device=device), prompt=prompt)

    def write(images: Sequence[Image], seed: int) -> list[str]:
        return writer.write(images, most=most, beams=beams, temperature=temperature, seed=seed)

    more = {"most": most, "beams": beams, "temperature": temperature}
    maker = TextMaker(replace(writer.identity, options={**writer.identity.options, **more}), write)
    remember_source(maker, partial(captioner, name, device, prompt, most, beams, temperature))
    return maker


def continuer(name: str, device: str, most: int, temperature: float, head: str = "") -> TextMaker:
    """The language model of a folder or a name of the hub, whose answers all begin with `head`.

    Raises what loading it raises.
    """
    from counterfoil.scorers.text_models import load_generator

    generator = load_generator(name, Options(device=device))

    def write(prompts: Sequence[Sequence[str]], seed: int) -> list[str]:
        return generator.write(prompts, most=most, temperature=temperature, seed=seed, head=head)

    known = generator.identity
    more = {"most": most, "temperature": temperature, "head": head}
    maker = TextMaker(replace(known, name=f"writing {known.name}", options={**known.options, **more}), write)
    remember_source(maker, partial(continuer, name, device, most, temperature, head))
    return maker


@dataclass(frozen=True, eq=False)
class ChatMaker:
    """Answers of a chat endpoint."""

    endpoint: Any

    @property
    def identity(self) -> Identity:
        """Of an address and a model; the request says the rest."""
        settings = self.endpoint.settings
        return Identity(f"answers of {settings.url}#{settings.model}", revision="1")

    def make(self, batches: Sequence[Sequence[Any]]) -> Iterator[list[bytes]]:
        """The answers as JSON, asked for as one stream."""
        replies = self.endpoint.ask([each for batch in batches for each in batch])
        for batch in batches:
            yield [
                json.dumps({"text": reply.answer, "refused": reply.refused}).encode()
                # The batch first: where it ends, no answer of the next one is taken.
                for _, reply in zip(batch, replies, strict=False)
            ]


def chat_answers(
    name: str, settings: Mapping[str, str], requests: Sequence[Any], work: Work, *, stage: str
) -> list[tuple[str, bool]]:
    """Text and refusal of each answer of an endpoint; they are kept in the cache, else beside the build."""
    endpoint = work.scorer(name, settings).endpoint
    if work.session.folder is None:
        endpoint = endpoint.kept_in(work.keep)
        content: Sequence[Any] = range(len(requests))
    else:
        content = [endpoint.payload(each)[1] for each in requests]
    found = made_bytes(
        ChatMaker(endpoint),
        requests,
        content,
        work,
        stage=stage,
        size=endpoint.settings.concurrency,
        here=True,
    )
    answers = map(json.loads, found)
    return [(each["text"], each["refused"]) for each in answers]


def made_bytes(
    maker: Maker,
    items: Sequence[Any],
    content: Sequence[Any],
    work: Work,
    *,
    stage: str,
    size: int,
    here: bool = False,
) -> list[bytes]:
    """What is made for each item, small enough to be held; `content` tells the items apart."""
    found: dict[int, bytes] = {}
    keys = batch_keys(content, size)
    work.session.make(maker, items, keys, found.__setitem__, stage=stage, size=size, here=here)
    return [found[row] for row in range(len(items))]


def elsewhere(work: Work) -> Work:
    """What of a step's work another process can use: its folders, as absolute paths."""
    photos = None if work.photos is None else work.photos.absolute()
    return Work(work.folder.absolute(), work.seed, Session(), photos, work.step, device=work.device)
