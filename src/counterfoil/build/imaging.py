"""Images made for captions by pipelines of diffusers, and the requests and facts that all makers share.

Every image has a generator of its own, on the CPU, from the row's seed, so that it does not depend on what is
drawn before it. Pixels still differ between devices, library versions and batch sizes: the files count.
"""

import inspect
import io
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import PIL.Image
from PIL.PngImagePlugin import PngInfo

from counterfoil.build.generation import elsewhere
from counterfoil.build.step import BuiltStep, Generated, StepContext
from counterfoil.engine.executor import batch_keys
from counterfoil.errors import MissingExtraError, ModelError, UnknownNameError
from counterfoil.inputs.fields import setting
from counterfoil.inputs.files import digest, digest_value
from counterfoil.inputs.pictures import open_picture
from counterfoil.models.base import Identity, Options, digest_tensors, remember_source
from counterfoil.models.runtime import NO_NETWORK, causes, device_of, precision_of
from counterfoil.store import write_bytes
from counterfoil.world.painting import STYLES

#: What draws, by name or by what its name begins with.
WORLD, PIPELINE, ENDPOINT = "world", "diffusers:", "images:"
#: Reasons for which a row goes: each says why there is no image.
NO_CAPTION = "no caption to draw"
NOT_READ = "the world cannot read the caption"
NOT_DRAWN = "the world has no such scene"
UNSAFE = "flagged as unsafe"

#: The text of a PNG file in which the facts of an image lie.
_FACTS = "counterfoil"
#: Raised where the same settings make other images.
_REVISION = 1
#: Settings that decide what is drawn, besides the pipeline's.
_DECIDING = ("steps", "guidance", "strength", "suffix", "size", "saved")


@dataclass(frozen=True)
class ImageRequest:
    """The `number`-th image for a row: `text` to show, `seed`, and the cell of an edited `source`."""

    row: str
    number: int
    text: str
    seed: int
    source: str | None = None

    def generated(self, by: str, cell: str | None, **more: Any) -> Generated:
        return Generated(self.row, by, cell, self.seed, **more)


@dataclass(frozen=True)
class ImageSettings(BuiltStep):
    """How images are made, which are the settings of `imagine`; what is None is left to what makes them."""

    by: str = setting(
        WORLD,
        "Model that makes images: world, diffusers:NAME (folder or hub name of a pipeline), or "
        "images:URL#MODEL (an OpenAI-compatible endpoint).",
        model=(WORLD,),
    )
    column: Literal["caption", "negative_caption"] = setting(
        "negative_caption", "Column of captions to make images for.", column=True
    )
    k: int = setting(1, "Images per caption.", low=1)
    source: Literal["image", "negative_image", "generated_image"] | None = setting(
        None, "Column of images to edit; default: make images from captions alone.", column=True
    )
    size: int | None = setting(None, "Side of an image in pixels; default: 96 in the world.", low=1)
    suffix: str = setting("", "Text added to every caption, such as ', highly detailed'; not in the world.")
    steps: int | None = setting(None, "Pipelines: denoising steps.", low=1)
    guidance: float | None = setting(None, "Pipelines: guidance scale.")
    strength: float | None = setting(
        None, "Pipelines that edit: strength of the change, up to 1.", above=0, high=1
    )
    scheduler: str | None = setting(None, "Pipelines: class name of the scheduler.")
    unet: str | None = setting(None, "Pipelines: folder or hub name of another UNet.", model=())
    variant: str | None = setting(None, "Pipelines: variant of the weights, such as fp16.")
    dtype: Literal["fp32", "fp16", "bf16"] | None = setting(
        None, "Pipelines: precision; default: fp16 on a GPU, else fp32."
    )
    batch: int = setting(4, "Pipelines: images per batch.", low=1)
    saved: int | None = setting(
        None, "Pipelines: side of the saved images in pixels; default: as made.", low=1
    )
    unsafe: Literal["keep", "drop"] = setting(
        "keep", "Policy for images that the pipeline's safety filter flags."
    )
    concurrency: int = setting(8, "Endpoints: concurrent requests.")
    rpm: float = setting(0.0, "Endpoints: requests per minute; 0 means no limit.")
    retries: int = setting(6, "Endpoints: retries after the first attempt.")
    seeded: bool = setting(False, "Endpoints: send the seed, which some refuse.")
    style: str = setting("synthetic", f"Of the world: {' or '.join(STYLES)}.")
    failure: float = setting(0.0, "World: share of wrong images.", low=0, high=1)

    @property
    def edits(self) -> bool:
        return self.source is not None


class ImagePipeline:
    """A pipeline of diffusers, loaded when its first image is drawn; images there are not drawn again."""

    def __init__(self, settings: ImageSettings, context: StepContext) -> None:
        self.settings, self.context = settings, context

    def images(self, wanted: Sequence[ImageRequest]) -> list[Generated]:
        # Edits are drawn one by one: their sources differ in size, and batches of them have had artefacts.
        size = 1 if self.settings.edits else self.settings.batch
        tokenizer = getattr(self._pipe, "tokenizer", None)
        most = getattr(tokenizer, "model_max_length", None)
        # T5's length is set by the pipeline, and transformers writes "unlimited" as a huge number.
        if tokenizer and not getattr(self._pipe, "tokenizer_3", None) and most and most <= 1000:
            # The ends of captions, suffix included, are cut by the text encoder.
            texts = {request.text for request in wanted}
            with _quiet(_library()):
                long = sum(len(tokenizer(text + self.settings.suffix)["input_ids"]) > most for text in texts)
            if long:
                self.context.note(
                    f"{long:,} of {len(texts):,} captions are longer with the suffix than the {most} tokens "
                    "that the pipeline reads; what is beyond is not drawn"
                )
        cells = [self._cell(request) for request in wanted]
        unsafe: dict[int, Any] = {}

        def take(row: int, data: bytes) -> None:
            place = self.context.images / cells[row]
            if not place.is_file():
                write_bytes(place, data)
            with open_picture(io.BytesIO(data)) as picture:
                unsafe[row] = json.loads(picture.text[_FACTS]).get("unsafe")  # type: ignore[attr-defined]

        remember_source(self, partial(ImagePipeline, self.settings, elsewhere(self.context)))
        self.context.session.make(self, wanted, batch_keys(cells, size), take, stage="drawing", size=size)
        return [
            request.generated(self.by, cell, facts={"unsafe": unsafe[row]})
            for row, (request, cell) in enumerate(zip(wanted, cells, strict=True))
        ]

    def make(self, batches: Sequence[Sequence[ImageRequest]]) -> Iterator[list[bytes]]:
        """The files of each batch: those that are there, else all of the batch drawn."""
        for batch in batches:
            paths = [self.context.images / self._cell(request) for request in batch]
            if None in [facts_of(place) for place in paths]:
                yield self._draw(batch)
            else:
                yield [place.read_bytes() for place in paths]

    @property
    def by(self) -> str:
        unet = f" unet {self.settings.unet}" if self.settings.unet else ""
        return f"{self.facts['pipeline']} {self._name}{unet} {self.facts['weights'][:12]}"

    @property
    def identity(self) -> Identity:
        return Identity(self.settings.by, weights=self.facts["weights"], options=self.facts)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """All that decides what is drawn besides text, seed and source; the same on every machine."""
        pipe, settings = self._pipe, self.settings
        parts = sorted(pipe.components.items())
        models = {name: model for name, model in parts if hasattr(model, "state_dict")}
        # The revision of the hub that a model came from shows in where it lies.
        model_names = [str(getattr(model, "name_or_path", "")) for model in models.values()]
        revisions = filter(None, (re.search(r"snapshots[/\\]([0-9a-f]{40})", place) for place in model_names))
        config = {key: value for key, value in dict(pipe.scheduler.config).items() if key[:1] != "_"}
        return {
            "pipeline": type(pipe).__name__,
            "name": self._name,
            "unet": settings.unet,
            "weights": digest_value({name: digest_tensors(of.state_dict()) for name, of in models.items()}),
            "revision": next((revision[1] for revision in revisions), None),
            "scheduler": type(pipe.scheduler).__name__,
            "scheduler_config": json.loads(json.dumps(config, default=str)),
            **{name: getattr(settings, name) for name in _DECIDING},
            "precision": self._precision,
            "watermark": "invisible-watermark" if getattr(pipe, "watermark", None) is not None else None,
            "filter": "safety_checker" if getattr(pipe, "safety_checker", None) is not None else None,
            "made": _REVISION,
        }

    @property
    def _name(self) -> str:
        return self.settings.by.removeprefix(PIPELINE)

    @cached_property
    def _precision(self) -> str:
        return self.settings.dtype or ("fp32" if self._device.type == "cpu" else "fp16")

    @cached_property
    def _device(self) -> Any:
        return device_of(Options(device=self.context.device), where=self.settings.by)

    @cached_property
    def _pipe(self) -> Any:
        library, settings = _library(), self.settings
        options = Options(device=self.context.device, precision=self._precision)
        dtype = precision_of(options, self._device, where=settings.by)
        name, revision = _place_of(self._name)
        more: dict[str, Any] = {"torch_dtype": dtype, "low_cpu_mem_usage": False}
        with _quiet(library):
            if settings.unet is not None:
                more["unet"] = _unet(library, settings, dtype)
            kind = library.AutoPipelineForImage2Image if settings.edits else library.DiffusionPipeline
            more |= {"revision": revision, "variant": settings.variant}
            more["local_files_only"] = Path(name).is_dir()
            try:
                try:
                    pipe = kind.from_pretrained(name, **more)
                except ValueError as error:
                    # One that edits by a class of its own, as diffusers lists no editor of its family.
                    if "pipeline linked" not in str(error):
                        raise
                    pipe = library.DiffusionPipeline.from_pretrained(name, **more)
            except Exception as error:
                raise _explained(error, settings.by, "pipeline", name) from None
            called = type(pipe).__name__
            if settings.unet is not None and getattr(pipe, "unet", None) is not more["unet"]:
                raise ModelError("the pipeline draws with no UNet", where=settings.by, given=called)
            if settings.scheduler is not None:
                schedulers = {*pipe.scheduler.compatibles, type(pipe.scheduler)}
                allowed = sorted({kind.__name__ for kind in schedulers})
                if settings.scheduler not in allowed:
                    raise UnknownNameError("scheduler", settings.scheduler, allowed, where=settings.by)
                pipe.scheduler = getattr(library, settings.scheduler).from_config(pipe.scheduler.config)
            pipe = pipe.to(self._device)
            pipe.set_progress_bar_config(disable=True)
        return pipe

    def _cell(self, wanted: ImageRequest) -> str:
        source = None if wanted.source is None else digest(self.context.image(wanted.source).read())
        request = {"text": wanted.text, "seed": wanted.seed, "number": wanted.number, "source": source}
        return digest_value({**self.facts, **request}) + ".png"

    def _draw(self, batch: Sequence[ImageRequest]) -> list[bytes]:
        import torch

        pipe, settings, library = self._pipe, self.settings, _library()
        given: dict[str, Any] = {
            "prompt": [request.text + settings.suffix for request in batch],
            "generator": [torch.Generator("cpu").manual_seed(request.seed) for request in batch],
        }
        given |= {} if settings.steps is None else {"num_inference_steps": settings.steps}
        given |= {} if settings.guidance is None else {"guidance_scale": settings.guidance}
        given |= {} if settings.strength is None else {"strength": settings.strength}
        if settings.edits:
            sources = [self.context.image(request.source or "").decode() for request in batch]
            given["image"] = [_resized(picture, settings.size) for picture in sources]
        elif settings.size is not None:
            given |= {"height": settings.size, "width": settings.size}
        # Pipelines pass over what they do not know.
        unknown = [name for name in given if name not in inspect.signature(pipe.__call__).parameters]
        if unknown:
            called = type(pipe).__name__
            raise ModelError(f"the pipeline takes no {unknown[0]}", where=settings.by, given=called)
        try:
            with _quiet(library), torch.inference_mode():
                drawn = pipe(**given)
        except Exception as error:
            out = "out of memory" in str(error).lower()
            hint = "draw fewer at a time with batch, or smaller ones" if out else None
            where, why = f"{settings.by}, row '{batch[0].row}'", f"{type(error).__name__}: {error}"
            raise ModelError("the pipeline failed", where=where, given=why, hint=hint) from None
        unsafe = getattr(drawn, "nsfw_content_detected", None) or [None] * len(batch)
        on_gpu = self._device.type == "cuda"
        files = []
        for request, picture, flag in zip(batch, drawn.images, unsafe, strict=True):
            facts = {
                **self.facts,
                "text": request.text,
                "seed": request.seed,
                "source": request.source,
                "unsafe": None if flag is None else bool(flag),
                "device": torch.cuda.get_device_name(self._device) if on_gpu else str(self._device.type),
                "batch": len(batch),
                "libraries": {"diffusers": library.__version__, "torch": str(torch.__version__)},
            }
            files.append(png(picture, facts, settings.saved))
        return files


def _library() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import diffusers
            import transformers  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), "build") from None
    return diffusers


@contextmanager
def _quiet(library: Any) -> Iterator[None]:
    import transformers

    from counterfoil.models.hf_loading import quiet

    bars = library.utils.logging.is_progress_bar_enabled()
    library.utils.logging.disable_progress_bar()
    try:
        with quiet(transformers):
            yield
    finally:
        if bars:
            library.utils.logging.enable_progress_bar()


def _place_of(argument: str) -> tuple[str, str | None]:
    """A folder, or a name of the hub with its revision (NAME@REVISION)."""
    name, _, revision = (argument, "", "") if Path(argument).is_dir() else argument.partition("@")
    return name, revision or None


def _unet(library: Any, settings: ImageSettings, dtype: Any) -> Any:
    """The UNet that takes the place of the pipeline's: of a folder or name, or its subfolder `unet`."""
    assert settings.unet is not None
    name, revision = _place_of(settings.unet)
    local, load = Path(name).is_dir(), library.UNet2DConditionModel.from_pretrained
    single_file = local and not (Path(name) / "unet").is_dir()
    more = {"revision": revision, "torch_dtype": dtype, "local_files_only": local, "low_cpu_mem_usage": False}
    try:
        try:
            return load(name, subfolder=None if single_file else "unet", **more)
        except Exception:
            if local:
                raise
            return load(name, **more)
    except Exception as error:
        raise _explained(error, f"{settings.by}, unet {settings.unet}", "UNet", name) from None


def _explained(error: Exception, where: str, what: str, name: str) -> ModelError:
    if NO_NETWORK.search(causes(error)) and not Path(name).is_dir():
        hint = "load it once with a network, or give a local folder"
        return ModelError(f"the {what} is not here and cannot be downloaded", where=where, hint=hint)
    return ModelError(f"the {what} cannot be loaded: {' '.join(str(error).split())[:240]}", where=where)


def _resized(picture: PIL.Image.Image, side: int | None) -> PIL.Image.Image:
    return picture if side is None else picture.resize((side, side), PIL.Image.Resampling.BICUBIC)


def png(picture: PIL.Image.Image, facts: Mapping[str, Any], side: int | None = None) -> bytes:
    """The picture, `side` pixels to a side if that is given, as a PNG file that carries the facts as text."""
    info, buffer = PngInfo(), io.BytesIO()
    info.add_itxt(_FACTS, json.dumps(facts, sort_keys=True, ensure_ascii=False))
    _resized(picture, side).convert("RGB").save(buffer, format="PNG", pnginfo=info)
    return buffer.getvalue()


def facts_of(path: Path) -> dict[str, Any] | None:
    """What an image that was made before carries; None where it is not there, or is none."""
    try:
        with open_picture(path) as picture:
            picture.load()
            held = json.loads(picture.text[_FACTS])  # type: ignore[attr-defined]
    except (OSError, KeyError, ValueError, AttributeError):
        path.unlink(missing_ok=True)
        return None
    return held if isinstance(held, dict) else None
