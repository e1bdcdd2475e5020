"""Texts and answers that a step has made, once by all processes that share a build's cache."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from counterfoil.build.step import StepContext
from counterfoil.engine.executor import BatchGenerator, batch_keys
from counterfoil.engine.session import Session
from counterfoil.inputs.files import digest
from counterfoil.models.base import Identity, Options, remember_source


@dataclass(frozen=True, eq=False)
class LocalTextGenerator:
    """A local model that writes the texts of one batch of what is given, with a seed."""

    identity: Identity
    write: Callable[..., Sequence[str]] = field(repr=False)

    def make(self, batches: Sequence[Sequence[tuple[Any, int | None]]]) -> Iterator[list[bytes]]:
        for batch in batches:
            texts = self.write([given for given, _ in batch], seed=batch[0][1] or 0)
            yield [text.encode() for text in texts]

    def texts(
        self, given: Sequence[Any], context: StepContext, *, stage: str, size: int, seeded: bool = True
    ) -> list[tuple[str, int | None]]:
        """The text for each image or conversation, and its seed; `size` of them are written together."""
        seeds = [context.number("batch", i - i % size) if seeded else None for i in range(len(given))]
        requests = list(zip(given, seeds, strict=True))
        content = [[list(of) if isinstance(of, tuple) else digest(of.read()), seed] for of, seed in requests]
        # A process alone keeps finished batches beside the build.
        keep = context.keep
        encoded = generated_bytes(self, requests, content, context, stage=stage, size=size, keep=keep)
        return [(text.decode(), seed) for text, seed in zip(encoded, seeds, strict=True)]


def captioner(
    name: str, device: str, prompt: str | None, most: int, beams: int, temperature: float
) -> LocalTextGenerator:
    from counterfoil.models.generative.writing import load_writer

    writer = load_writer(name, Options(device=device), prompt=prompt)
    source = partial(captioner, name, device, prompt, most, beams, temperature)
    return _generator(writer, source, most=most, beams=beams, temperature=temperature)


def continuer(name: str, device: str, most: int, temperature: float, head: str = "") -> LocalTextGenerator:
    """The language model of a folder or a name of the hub; its answers all begin with `head`."""
    from counterfoil.models.text_models import load_generator

    generator = load_generator(name, Options(device=device))
    source = partial(continuer, name, device, most, temperature, head)
    return _generator(generator, source, "writing ", most=most, temperature=temperature, head=head)


def _generator(
    model: Any, source: Callable[[], LocalTextGenerator], called: str = "", **settings: Any
) -> LocalTextGenerator:
    """The model as it writes under these settings; another process has it from its source."""

    identity = model.identity
    options = {**identity.options, **settings}
    identity = replace(identity, name=called + identity.name, options=options)
    generator = LocalTextGenerator(identity, partial(model.write, **settings))
    remember_source(generator, source)
    return generator


@dataclass(frozen=True, eq=False)
class ChatGenerator:
    """Answers of a chat endpoint."""

    endpoint: Any

    @property
    def identity(self) -> Identity:
        settings = self.endpoint.settings
        return Identity(f"answers of {settings.url}#{settings.model}", revision="1")

    def make(self, batches: Sequence[Sequence[Any]]) -> Iterator[list[bytes]]:
        """The answers as JSON, asked for as one stream."""
        replies = self.endpoint.ask([request for batch in batches for request in batch])
        for batch in batches:
            yield [
                json.dumps({"text": reply.answer, "refused": reply.refused}).encode()
                # The batch first: where it ends, no answer of the next one is taken.
                for _, reply in zip(batch, replies, strict=False)
            ]


def chat_answers(
    name: str, settings: Mapping[str, str], requests: Sequence[Any], context: StepContext, *, stage: str
) -> list[tuple[str, bool]]:
    """Text and refusal of each answer of an endpoint; they are kept in the cache, else beside the build."""
    endpoint = context.model(name, settings).endpoint
    if context.session.folder is None:
        endpoint = endpoint.kept_in(context.keep)
        content: Sequence[Any] = range(len(requests))
    else:
        content = [endpoint.payload(request)[1] for request in requests]
    generator, size = ChatGenerator(endpoint), endpoint.settings.concurrency
    replies = generated_bytes(generator, requests, content, context, stage=stage, size=size, here=True)
    return [(answer["text"], answer["refused"]) for answer in map(json.loads, replies)]


def generated_bytes(
    generator: BatchGenerator,
    items: Sequence[Any],
    content: Sequence[Any],
    context: StepContext,
    *,
    stage: str,
    size: int,
    here: bool = False,
    keep: Path | None = None,
) -> list[bytes]:
    """What is made for each item, small enough to be held; `content` tells the items apart."""
    contents: dict[int, bytes] = {}
    keys, take = batch_keys(content, size), contents.__setitem__
    context.session.make(generator, items, keys, take, stage=stage, size=size, here=here, keep=keep)
    return [contents[row] for row in range(len(items))]


def elsewhere(context: StepContext) -> StepContext:
    """What of a step's work another process can use: its folders, as absolute paths."""
    photos = None if context.photos is None else context.photos.absolute()
    return StepContext(
        context.folder.absolute(), context.seed, Session(), photos, context.step, device=context.device
    )
