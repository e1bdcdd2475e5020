"""`imagine`: images for captions, by the drawn world, a diffusion pipeline or an image endpoint."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import PIL.Image
import pyarrow as pa

from counterfoil.build.imaging import (
    ENDPOINT,
    NO_CAPTION,
    NOT_DRAWN,
    NOT_READ,
    PIPELINE,
    UNSAFE,
    WORLD,
    ImagePipeline,
    ImageRequest,
    ImageSettings,
)
from counterfoil.build.step import (
    SCENE_OF,
    Generated,
    Output,
    StepContext,
    split_rows,
    with_column,
    with_generated,
)
from counterfoil.build.steps.read import keep_image
from counterfoil.engine.executor import batch_keys
from counterfoil.errors import DataError, InputError
from counterfoil.models.base import Identity
from counterfoil.world.generator import imagine_caption
from counterfoil.world.painting import check_styles, draw_many, encode
from counterfoil.world.sample import check_size
from counterfoil.world.scenes import Scene
from counterfoil.world.truth import matches, understood

if TYPE_CHECKING:
    from counterfoil.build.image_endpoint import ImageEndpoint

#: The column of images that is made for a column of captions.
_IMAGE_OF = {"caption": "generated_image", "negative_caption": "negative_image"}
#: Pictures that are drawn at a time, and pixels to a side of the world's.
_BATCH, _SIDE = 100, 96


@dataclass(frozen=True)
class Imagine(ImageSettings):
    """Make images for captions: `negative_image` for `negative_caption`, `generated_image` for `caption`.

    With `k` above 1 every row becomes candidates ROW#0, ROW#1, ..., whose column `of` names the row. A column
    of scenes says what an image of the drawn world shows, `X_unsafe` what a pipeline's filter found.
    """

    name: ClassVar[str] = "imagine"
    version: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_styles([self.style])
        if self.by == WORLD:
            check_size(self.size or _SIDE)
            if self.source is not None:
                raise InputError("the world edits no images", given=f"source = {self.source}")
        elif not self.by.startswith((PIPELINE, ENDPOINT)) or self.by in (PIPELINE, ENDPOINT):
            allowed = (WORLD, f"{PIPELINE}NAME", f"{ENDPOINT}URL#MODEL")
            raise InputError("no maker of images", where="by", given=self.by, allowed=allowed)
        elif self.failure:
            raise InputError("failure is of the drawn world", given=f"by '{self.by}'", allowed=WORLD)

    @property
    def produces(self) -> Sequence[str]:
        target = _IMAGE_OF[self.column]
        fact_column = SCENE_OF[target] if self.by == WORLD else f"{target}_unsafe"
        return (*Generated.names(target), fact_column)

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        where = f"step {context.step}"
        if self.k > 1 and "of" in rows.column_names:
            hint = "put 'choose' before, or make one image for each: k = 1"
            raise DataError("the rows are candidates already", where=where, hint=hint)
        ids, texts = rows["id"].to_pylist(), rows[self.column].to_pylist()
        sources: list[Any] = [None] * len(rows)
        if self.source is not None:
            sources = rows[self.source].to_pylist()
            lacking = [row for row, cell in zip(ids, sources, strict=True) if not cell]
            if lacking:
                given = f"{len(lacking):,} of {len(rows):,} rows without one"
                hint = "without 'source' images are drawn from captions alone"
                where += f", row '{lacking[0]}'"
                raise DataError(f"no {self.source} to edit", where=where, given=given, hint=hint)
        requests = [
            ImageRequest(row, number, text or "", context.number("image", row, number), source)
            for row, text, source in zip(ids, texts, sources, strict=True)
            for number in range(self.k)
        ]
        wanted = [request for request in requests if request.text.strip()]
        pipeline = ImagePipeline(self, context) if self.by.startswith(PIPELINE) else None
        if self.by == WORLD:
            generated = iter(self._drawn(wanted, rows, context))
        else:
            generated = iter((pipeline or self._endpoint(context)).images(wanted) if wanted else ())
        images = []
        for request in requests:
            none = not request.text.strip()
            image = request.generated(self.by, None, reason=NO_CAPTION) if none else next(generated)
            unsafe = self.unsafe == "drop" and image.facts.get("unsafe")
            images.append(replace(image, cell=None, reason=UNSAFE) if unsafe else image)
        table = self._candidates(rows, requests, images)
        drawn, why = [image.cell is not None for image in images], [image.reason for image in images]
        imagined, dropped = split_rows(table, drawn, why)
        return Output(imagined, dropped, self._facts(imagined, pipeline))

    def _endpoint(self, context: StepContext) -> "ImageEndpoint":
        """The endpoint, with the key and the limits that a chat endpoint at this address would have."""
        # Its client of HTTP is of an extra.
        from counterfoil.build.image_endpoint import ImageEndpoint

        limits = {name: str(getattr(self, name)) for name in ("concurrency", "rpm", "retries")}
        chat = context.model(f"chat:{self.by.removeprefix(ENDPOINT)}", limits).endpoint
        return chat.turned_into(lambda settings, key: ImageEndpoint(settings, self, context, key=key))

    def _candidates(
        self, rows: pa.Table, requests: Sequence[ImageRequest], images: Sequence[Generated]
    ) -> pa.Table:
        """The rows, k times where there are several candidates, with the columns that are made."""
        target = _IMAGE_OF[self.column]
        if self.k > 1:
            rows = rows.take(pa.array(np.repeat(np.arange(len(rows)), self.k)))
            names = [f"{request.row}#{request.number}" for request in requests]
            rows = with_column(rows, "id", pa.array(names, pa.string()))
            rows = with_column(rows, "of", pa.array([request.row for request in requests], pa.string()))
        rows = with_generated(rows, target, images)
        name, kind = ("unsafe", pa.bool_()) if self.by != WORLD else (SCENE_OF[target], pa.string())
        facts = pa.array([image.facts.get(name) for image in images], kind)
        return with_column(rows, self.produces[-1], facts)

    def _drawn(
        self, requests: Sequence[ImageRequest], rows: pa.Table, context: StepContext
    ) -> list[Generated]:
        """The pictures of the world's generator, with their scenes; or why nothing is drawn."""
        drawings = list(self._scenes(requests, rows, context))
        if requests and set(drawings) == {NOT_READ}:
            what, where = "the world can read none of the captions", f"step {context.step}"
            hint = "it draws captions of its own kind; for others name a pipeline or an endpoint in 'by'"
            raise DataError(what, where=where, given=requests[0].text, hint=hint)
        cells: dict[int, str] = {}

        def take(row: int, data: bytes) -> None:
            cells[row] = keep_image(context, data)

        content = [drawing.to_json() for drawing in drawings if isinstance(drawing, Scene)]
        painter = _Painter(self.size or _SIDE, self.style)
        keys = batch_keys(content, _BATCH)
        context.session.make(painter, content, keys, take, stage="drawing", size=_BATCH)
        by = " ".join([WORLD, self.style, *([f"failure {self.failure:g}"] if self.failure else [])])
        scene = SCENE_OF[_IMAGE_OF[self.column]]
        pictures = ((cells[row], {scene: cell}) for row, cell in enumerate(content))
        images = []
        for request, drawing in zip(requests, drawings, strict=True):
            reason = drawing if isinstance(drawing, str) else ""
            cell, facts = (None, {}) if reason else next(pictures)
            images.append(request.generated(by, cell, reason=reason, facts=facts))
        return images

    def _scenes(
        self, requests: Sequence[ImageRequest], rows: pa.Table, context: StepContext
    ) -> Iterator[Scene | str]:
        negative = self.column == "negative_caption"
        names = ("caption", "scene", "subset")
        given = {
            name: dict(zip(rows["id"].to_pylist(), rows[name].to_pylist(), strict=True))
            for name in names
            if negative and name in rows.column_names
        }
        for request in requests:
            caption, scene, subset = (given.get(name, {}).get(request.row) for name in names)
            where = f"step {context.step}, row '{request.row}'"
            # A row's scene is read, and found to be none, whether or not its caption can be drawn.
            original = None if scene is None else Scene.from_json(scene, where=where)
            meaning = understood(request.text)
            if meaning is None:
                yield NOT_READ
                continue
            rng = context.rng("image", request.row, request.number)
            unlike = None if caption is None else understood(caption)
            how: Any = {"original": original, "failure": self.failure, "subset": subset or ""}
            imagined = imagine_caption(meaning, rng, unlike=unlike, **how)
            yield NOT_DRAWN if imagined is None else imagined[0]

    def _facts(self, imagined: pa.Table, pipeline: ImagePipeline | None) -> Mapping[str, Any]:
        """How many images were made and, of those of the world, how many are right."""
        facts: dict[str, Any] = {"by": self.by, "column": self.column, "k": self.k, "images": len(imagined)}
        if self.by == WORLD:
            shown = [Scene.from_json(cell) for cell in imagined[self.produces[-1]].to_pylist()]
            right = list(map(matches, imagined[self.column].to_pylist(), shown))
            if self.column == "negative_caption" and "caption" in imagined.column_names:
                captions = map(understood, imagined["caption"].to_pylist())
                both = [one is not None and matches(one, of) for one, of in zip(captions, shown, strict=True)]
                right = [fits and not other for fits, other in zip(right, both, strict=True)]
            facts["right"] = sum(right)
        else:
            facts["unsafe"] = sum(flag is True for flag in imagined[self.produces[-1]].to_pylist())
            if pipeline is not None:
                facts["pipeline"] = pipeline.facts
        return facts


@dataclass(frozen=True)
class _Painter:
    """The painter of the drawn world as a maker: a picture of `side` pixels for a scene as JSON."""

    side: int
    style: str

    @property
    def identity(self) -> Identity:
        return Identity("world pictures", revision=str(Imagine.version), options=asdict(self))

    def make(self, batches: Sequence[Sequence[str]]) -> Iterator[list[bytes]]:
        for batch in batches:
            scenes = [Scene.from_json(cell) for cell in batch]
            drawn = draw_many(scenes, self.side, style=self.style)
            yield [encode(PIL.Image.fromarray(pixels)) for pixels in drawn]
