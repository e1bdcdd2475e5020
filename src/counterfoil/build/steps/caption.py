"""`caption`: captions for images, by a captioning model, a chat endpoint, or the drawn world."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import pyarrow as pa

from counterfoil.build.generation import captioner, chat_answers
from counterfoil.build.step import (
    SCENE_OF,
    BuiltStep,
    Generated,
    Output,
    StepContext,
    split_rows,
    with_generated,
)
from counterfoil.errors import InputError
from counterfoil.inputs.fields import setting
from counterfoil.world.captions import OPENINGS, describe, text
from counterfoil.world.scenes import Scene, one_of
from counterfoil.world.truth import matches, understood

WORLD, CAPTIONER, ENDPOINT = "world", "captioner:", "chat:"
#: The column that is made.
_TARGET = "generated_caption"
_PROMPT = "Describe this image in one sentence."
NO_IMAGE, REFUSED, EMPTY = "no image to describe", "refused by the endpoint", "no caption written"
NOTHING_ELSE = "nothing else to say of the scene"
_STAGE = "writing captions"
#: Captions of a scene that are tried, until one is not the given one.
_TRIES = 50


@dataclass(frozen=True)
class WriteCaptions(BuiltStep):
    """Captions for images in `generated_caption`, with who wrote it, for which row and with which seed.

    A model writes one caption for an image, however many rows have it. The world writes for every row a true
    caption of its scene that says something else than the row's own. Source: Sarto et al., PAC-S, 2023,
    section 4.
    """

    name: ClassVar[str] = "caption"
    produced: ClassVar[Sequence[str]] = Generated.names(_TARGET)
    drops_blank: ClassVar[bool] = True

    by: str = setting(
        WORLD,
        "Model that writes: world, captioner:NAME (folder or hub name, such as BLIP), or chat:URL#MODEL (an "
        "OpenAI-compatible endpoint that sees images).",
        model=(WORLD,),
    )
    image: Literal["image", "negative_image", "generated_image"] = setting(
        "image", "Column of images to describe."
    )
    prompt: str | None = setting(
        None, "Prompt, or the beginning of the caption; default: the model's usual prompt."
    )
    max_tokens: int = setting(40, "Most tokens of a caption.", low=1)
    beams: int = setting(1, "Local models: beams of beam search.", low=1)
    temperature: float = setting(0.0, "Sampling temperature; 0 takes the likeliest word.", low=0, high=2)
    batch: int = setting(8, "Local models: images per batch.", low=1)
    concurrency: int = setting(8, "Endpoints: concurrent requests.")
    rpm: float = setting(0.0, "Endpoints: requests per minute; 0 means no limit.")
    retries: int = setting(6, "Endpoints: retries after the first attempt.")

    def __post_init__(self) -> None:
        super().__post_init__()
        named = self.by.startswith((CAPTIONER, ENDPOINT)) and self.by not in (CAPTIONER, ENDPOINT)
        if self.by != WORLD and not named:
            allowed = (WORLD, f"{CAPTIONER}NAME", f"{ENDPOINT}URL#MODEL")
            raise InputError("no writer of captions", where="by", given=self.by, allowed=allowed)
        if self.beams > 1 and self.temperature:
            what = "a search for the likeliest caption draws nothing"
            given = f"{self.beams} beams at temperature {self.temperature:g}"
            raise InputError(what, given=given, allowed="beams = 1, or temperature = 0")

    @property
    def requires(self) -> Sequence[str]:
        return (SCENE_OF[self.image] if self.by == WORLD else self.image,)

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        if self.by == WORLD:
            written = list(self._described(rows, context))
        else:
            # A caption for each different image, given to all its rows.
            pairs = list(zip(rows["id"].to_pylist(), rows[self.image].to_pylist(), strict=True))
            first = {cell: row for row, cell in reversed(pairs) if cell is not None}
            first = {cell: first[cell] for _, cell in pairs if cell is not None}
            writing = self._from_endpoint if self.by.startswith(ENDPOINT) else self._local
            caption_of = dict(zip(first, writing(first, context), strict=True))
            nothing = {row: Generated(row, self.by, reason=NO_IMAGE) for row, _ in pairs}
            written = [caption_of.get(cell, nothing[row]) for row, cell in pairs]
        rows = with_generated(rows, _TARGET, written)
        written_for, why = [one.cell is not None for one in written], [one.reason for one in written]
        captioned, dropped = split_rows(rows, written_for, why)
        texts = captioned[_TARGET].to_pylist()
        facts: dict[str, Any] = {"by": self.by, "image": self.image, "captions": len(captioned)}
        facts["different_captions"] = len(set(texts))
        if self.by == WORLD:
            scenes = [Scene.from_json(cell) for cell in captioned[SCENE_OF[self.image]].to_pylist()]
            facts["right"] = sum(map(matches, texts, scenes))
        return Output(captioned, dropped, facts)

    def _described(self, rows: pa.Table, context: StepContext) -> Iterator[Generated]:
        """True captions of the rows' scenes that say something else than the rows' own, if there are any."""
        ids, scenes = rows["id"].to_pylist(), rows[SCENE_OF[self.image]].to_pylist()
        captions = rows["caption"].to_pylist() if "caption" in rows.column_names else [None] * len(rows)
        for done, (row, cell, written) in enumerate(zip(ids, scenes, captions, strict=True), start=1):
            if cell is None:
                yield Generated(row, WORLD, reason=NO_IMAGE)
            else:
                scene = Scene.from_json(cell, where=f"step {context.step}, row '{row}'")
                rng, own_meaning = context.rng(row), None if written is None else understood(written)
                meanings = (describe(scene, rng) for _ in range(_TRIES))
                meaning = next((meaning for meaning in meanings if meaning != own_meaning), None)
                caption = None if meaning is None else text(meaning, opening=one_of(OPENINGS, rng))
                yield Generated(row, WORLD, caption, context.number(row), "" if caption else NOTHING_ELSE)
            context.progress(_STAGE, done, len(rows))

    def _from_endpoint(self, first: Mapping[str, str], context: StepContext) -> Iterator[Generated]:
        from counterfoil.models.chat.endpoint import ChatRequest

        numbers = {name: getattr(self, name) for name in ("temperature", "concurrency", "rpm", "retries")}
        settings = {**{name: f"{value:g}" for name, value in numbers.items()}, "read": "text"}
        seeds = [context.number(row) % 2**31 if self.temperature else None for row in first.values()]
        requests = [
            ChatRequest((context.image(cell), self.prompt or _PROMPT), self.max_tokens, seed=seed)
            for cell, seed in zip(first, seeds, strict=True)
        ]
        answers = chat_answers(self.by, settings, requests, context, stage=_STAGE)
        for (answer, refused), row, seed in zip(answers, first.values(), seeds, strict=True):
            one = _read(row, self.by, answer, seed)
            yield replace(one, cell=None, reason=REFUSED) if refused else one

    def _local(self, first: Mapping[str, str], context: StepContext) -> Iterator[Generated]:
        name, how = self.by.removeprefix(CAPTIONER), (self.max_tokens, self.beams, self.temperature)
        generator = captioner(name, context.device, self.prompt, *how)
        by = f"{self.by} {str(generator.identity.weights)[:12]}"
        images, drawn = [context.image(cell) for cell in first], bool(self.temperature)
        texts = generator.texts(images, context, stage=_STAGE, size=self.batch, seeded=drawn)
        for row, (answer, seed) in zip(first.values(), texts, strict=True):
            yield _read(row, by, answer, seed)


def _read(row: str, by: str, answer: str, seed: int | None) -> Generated:
    caption = one_line(answer)
    return Generated(row, by, caption or None, seed, "" if caption else EMPTY)


def one_line(answer: str) -> str:
    """The first line of an answer that says anything, without quotation marks and runs of spaces."""
    lines = [" ".join(line.split()) for line in answer.splitlines()]
    line_text = next((line for line in lines if line), "")
    for mark in ('"', "'", "`"):
        if len(line_text) > 1 and line_text[0] == line_text[-1] == mark and mark not in line_text[1:-1]:
            line_text = line_text[1:-1].strip()
    return line_text
