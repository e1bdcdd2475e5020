"""Trainable networks, their inputs (`Backbone`), detectors on top of them, and both as models."""

import json
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import PIL.Image
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from counterfoil.benchmarks.records import Caption
from counterfoil.errors import InputError, ModelError
from counterfoil.inputs.files import digest_value
from counterfoil.models import base
from counterfoil.models.dual import DualEncoder, Towers
from counterfoil.models.images import ImageReader, ImageRoute, Preparation, Resized, Untouched, prepared
from counterfoil.models.matching_probability import RowSimilarity
from counterfoil.models.runtime import LoadContext, causes, to_device


class Encoded(NamedTuple):
    """One tower's output for a batch, not normalised.

    `points` is (batch, width), or (batch, heads, width) for several per item (PVSE); `log_variance` (batch,
    width) where an item is a Gaussian (PCME); `attention` (batch, heads, places) says how much each head
    looks at each place; `residuals` (batch, heads, width) what it found.
    """

    points: Tensor
    log_variance: Tensor | None = None
    attention: Tensor | None = None
    residuals: Tensor | None = None


class Local(NamedTuple):
    """One tower's output for a batch, as a whole and place by place, not normalised."""

    #: (batch, width): the same points as those of `Encoded`.
    whole: Tensor
    #: (batch, places, local width): a picture's patches or cells, a text's words.
    tokens: Tensor
    #: (batch, places), true where there is nothing (padding); None where all places count.
    nothing: Tensor | None = None


def one_place(points: Tensor) -> Local:
    """The output of a tower that knows nothing of places: the whole is the one place."""
    return Local(points, points[:, None])


class Answer(NamedTuple):
    """A network's output for a batch: all that a loss needs, so that every parameter is used in `forward`."""

    images: Encoded
    texts: Encoded
    logit_scale: Tensor
    #: Scale and shift of PCME's matching probability, (2,).
    match: Tensor | None = None


class Network(nn.Module):
    """Two towers and `logit_scale`, the logarithm of the inverse temperature, as in CLIP."""

    logit_scale: nn.Parameter

    @abstractmethod
    def encode_images(self, pixels: Tensor) -> Encoded:
        """(batch, 3, height, width) normalised pixels to the image tower's output."""

    @abstractmethod
    def encode_texts(self, tokens: Tensor) -> Encoded:
        """(batch, length) token ids to the text tower's output."""

    def local_images(self, pixels: Tensor) -> Local:
        """The same with the features of each place; by default the whole is the one place."""
        return one_place(self.encode_images(pixels).points)

    def local_texts(self, tokens: Tensor) -> Local:
        return one_place(self.encode_texts(tokens).points)

    def forward(self, pixels: Tensor, tokens: Tensor) -> Answer:
        """Both, of batches that may differ in size (hard negatives are further rows)."""
        # A scalar, however a library keeps it.
        return Answer(self.encode_images(pixels), self.encode_texts(tokens), self.logit_scale.reshape(()))

    def projections(self) -> Sequence[nn.Parameter]:
        """The last linear map of each tower: all that PAC-S trains. Empty where there is none."""
        return ()

    def heads(self) -> Sequence[nn.Parameter]:
        """The parameters on top of a backbone: all that PCME's first stage trains."""
        return ()

    def rows(self, encoded: Encoded) -> Tensor:
        """(batch, width): one row per item, as a model embeds it; not normalised here."""
        return encoded.points

    def comparison(self, *, seed: int = 0) -> RowSimilarity | None:
        """How `rows` are compared, with noise of samples from `seed`; None is the inner product."""
        return None

    def plain_towers(
        self, backbone: "Backbone", device: torch.device, dtype: torch.dtype, precision: str = "fp32"
    ) -> Towers:
        """The towers by `encode_images` and `encode_texts`, with the weights of the moment of each call."""
        encode = backbone.compiled(lambda pixels: self.rows(self.encode_images(pixels)), precision)

        def images(pictures: Sequence[ndarray]) -> Tensor:
            return encode(backbone.pixels(pictures).to(device=device, dtype=dtype))

        def texts(texts: Sequence[str]) -> Tensor:
            return self.rows(self.encode_texts(backbone.tokens(texts).to(device)))

        @lru_cache(maxsize=1 << 16)
        def count(text: str) -> int:
            return int(backbone.tokens([text]).shape[1])

        return Towers(images, texts, lambda texts: [count(text) for text in texts])

    def towers(
        self, backbone: "Backbone", device: torch.device, dtype: torch.dtype, precision: str
    ) -> Towers:
        return self.plain_towers(backbone, device, dtype)


class PlacesNetwork(Network):
    """Two towers, `visual` and `text`, each of which gives the whole of an item and its places."""

    visual: nn.Module
    text: nn.Module

    def encode_images(self, pixels: Tensor) -> Encoded:
        return Encoded(self.visual(pixels).whole)

    def encode_texts(self, tokens: Tensor) -> Encoded:
        return Encoded(self.text(tokens).whole)

    def local_images(self, pixels: Tensor) -> Local:
        return self.visual(pixels)

    def local_texts(self, tokens: Tensor) -> Local:
        return self.text(tokens)


class LibraryNetwork(Network):
    """The two towers of a library's `model`.

    `logit_bias` and `unused` parameters become buffers: distributed training wants parameters that are used.
    """

    def __init__(self, model: nn.Module, *, unused: Sequence[str] = ()) -> None:
        super().__init__()
        self.model = model
        for name in ("logit_bias", *unused):
            value = getattr(model, name, None)
            if isinstance(value, nn.Parameter):
                delattr(model, name)
                model.register_buffer(name, value.detach())

    @property
    def logit_scale(self) -> nn.Parameter:
        return self.model.logit_scale

    @property
    def logit_bias(self) -> Tensor | None:
        return getattr(self.model, "logit_bias", None)


@dataclass(frozen=True, eq=False)
class Backbone:
    """A network with its inputs and the plain values (`card`) that `checkpoint.build` makes it from."""

    name: str
    network: Network
    #: In worker processes, an RGB picture to (height, width, 3) bytes.
    preparation: Preparation
    #: A batch of those bytes to (batch, 3, height, width) floats on the CPU, normalised.
    pixels: Callable[[Sequence[ndarray]], Tensor]
    #: Texts to (batch, length) token ids on the CPU, cut or padded as the tower needs it.
    tokens: Callable[[Sequence[str]], Tensor]
    card: Mapping[str, Any] = field(default_factory=dict)
    #: The files of tokenizer and image processor that a checkpoint keeps, by name.
    files: Callable[[], Mapping[str, bytes]] = dict
    route: ImageRoute = field(default_factory=ImageRoute)

    def device(self) -> torch.device:
        return self.network.logit_scale.device

    @property
    def needs(self) -> tuple[str, ...]:
        """What is opened of a pair: not the image, where something else is read by its id."""
        return ("captions",) if isinstance(self.preparation, ImageReader) else ("images", "captions")

    def sample(self) -> Tensor:
        """A batch of one, of a grey picture: it shows the shapes of what the network gives."""
        prepare = self.preparation
        if isinstance(prepare, ImageReader):
            return self.pixels([prepare.sample()])
        return self.pixels([prepare(PIL.Image.new("RGB", (64, 64), (128, 128, 128)))])

    def compiled(self, encode: Callable[[Tensor], Tensor], precision: str) -> Callable[[Tensor], Tensor]:
        """The image tower as a program, where the route asks for one."""
        if self.route.compile == "no":
            return encode
        return CompiledTower(encode, tolerance=TOLERANCE[precision], where=self.name)


def processor_files(parts: Sequence[Any], name: str, config: Mapping[str, Any]) -> Mapping[str, bytes]:
    """The files that tokenizers and image processors save, by name, and `config` as the JSON file `name`."""
    with tempfile.TemporaryDirectory() as folder:
        for part in parts:
            part.save_pretrained(folder)
        saved = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        files = {str(path.relative_to(folder)): path.read_bytes() for path in saved}
    return {**files, name: json.dumps(config, indent=2).encode()}


class DetectorNetwork(Network):
    """A sigmoid unit per modality on a frozen network: its points are (batch, 1) logits of being synthetic.

    As in the released code a unit sees the embedding before it is normalised (BiVLC section 5.3, E.3).
    """

    def __init__(self, inner: Network, width: int) -> None:
        super().__init__()
        self.inner = inner.requires_grad_(False).eval()
        self.image_unit, self.text_unit = nn.Linear(width, 1), nn.Linear(width, 1)

    @property
    def logit_scale(self) -> nn.Parameter:
        return self.inner.logit_scale

    def train(self, mode: bool = True) -> "DetectorNetwork":
        """The units in that mode; the network below answers, it does not learn."""
        super().train(mode)
        self.inner.eval()
        return self

    def encode_images(self, pixels: Tensor) -> Encoded:
        return Encoded(self.image_unit(unit_input(self.inner.encode_images(pixels))))

    def encode_texts(self, tokens: Tensor) -> Encoded:
        return Encoded(self.text_unit(unit_input(self.inner.encode_texts(tokens))))

    def heads(self) -> Sequence[nn.Parameter]:
        return (*self.image_unit.parameters(), *self.text_unit.parameters())


def unit_input(encoded: Encoded) -> Tensor:
    """(batch, width): what a unit sees of an item; several points are put side by side."""
    return encoded.points.flatten(1)


def detector(backbone: Backbone) -> Backbone:
    """`backbone`, frozen, with two units whose first weights torch's random state decides."""
    if isinstance(backbone.network, DetectorNetwork):
        raise InputError("a detector stands on an encoder", where=backbone.name, given="a detector")
    if "images" not in backbone.needs:
        raise InputError("a detector looks at pictures", where=backbone.name, given="a network of regions")
    network, device = backbone.network.eval(), backbone.device()
    with torch.inference_mode():
        # Captions are as wide, or nothing could be compared.
        width = unit_input(network.encode_images(backbone.sample().to(device))).shape[1]
    units = DetectorNetwork(network, width).to(device)
    card = {"kind": "detector", "on": backbone.card}
    return replace(backbone, name=f"detector({backbone.name})", network=units, card=card)


@dataclass(frozen=True, eq=False)
class Detector:
    """A `Classifier`: how probably each image, and each caption, was made by a machine."""

    does = ("classifies",)

    identity: base.Identity
    preparation: Preparation
    towers: Towers
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def image_probabilities(self, batches: base.ImageBatches, *, workers: int = 0) -> base.BatchNumbers:
        with closing(prepared(batches, self.preparation, workers=workers)) as stream:
            for arrays in stream:
                yield _probabilities(self.towers.images, arrays)

    def caption_probabilities(self, batches: base.CaptionBatches) -> base.BatchNumbers:
        for batch in batches:
            yield _probabilities(self.towers.texts, [base.text_of(caption) for caption in batch])

    def lengths(self, captions: Sequence[Caption]) -> Sequence[int]:
        return self.towers.count([base.text_of(caption) for caption in captions])


def _probabilities(encode: Callable[[Any], Tensor], batch: Any) -> Float[np.ndarray, "batch"]:
    with torch.inference_mode():
        probabilities: ndarray = encode(batch).float().sigmoid()[:, 0].cpu().numpy()
    return probabilities


def network_model(
    backbone: Backbone,
    options: base.Options,
    *,
    where: str,
    weights: str = "",
    files: Mapping[str, str] | None = None,
    recipe: str = "",
) -> DualEncoder | Detector:
    detects = isinstance(backbone.network, DetectorNetwork)
    context = LoadContext.of(where, options, "settings", *(() if detects else ("prompt",)))
    network, computed = to_device(backbone.network, context.device, context.dtype)
    comparison = network.comparison(seed=options.seed)
    facts: dict[str, Any] = {"files": digest_value(dict(files))} if files else {}
    facts |= {"seed": options.seed} if hasattr(comparison, "seed") else {}
    facts |= {} if computed is context.dtype else {"activations": "fp32"}
    facts |= {"preprocessing": repr(backbone.preparation), "card": digest_value(backbone.card)}
    identity = context.identity(weights=weights, **facts)
    provenance = context.provenance(torch, network=backbone.name, **({"recipe": recipe} if recipe else {}))
    towers = network.towers(backbone, context.device, computed, options.precision)
    parts = identity, backbone.preparation, towers, provenance
    return Detector(*parts) if detects else DualEncoder(*parts, comparison, backbone.needs)


#: Largest difference allowed between unit vectors of a tower and of what replaces it, by precision.
TOLERANCE = {"fp32": 1e-4, "bf16": 0.05, "fp16": 0.01}


@dataclass(frozen=True, eq=False)
class PicturePixels:
    """Prepared pictures to the pixels that a tower takes, as by torchvision's ToTensor and Normalize."""

    preparation: Resized | Untouched
    mean: Any
    std: Any
    #: The library's own processing, where workers leave pictures untouched.
    library: Callable[[list[PIL.Image.Image]], Any]
    device: Any = "cpu"
    dtype: Any = torch.float32
    #: Pictures come in any size, and are resized on the device, by PyTorch's antialiased resizing.
    resizes: bool = False

    def __call__(self, pictures: Sequence[ndarray]) -> Any:
        if isinstance(self.preparation, Untouched):
            return self.library(list(map(PIL.Image.fromarray, pictures))).to(self.device, self.dtype)
        if self.resizes:
            pixels = torch.stack([self._resized(picture, self.preparation) for picture in pictures])
        else:
            pixels = torch.from_numpy(np.stack(pictures)).to(self.device).permute(0, 3, 1, 2)
            pixels = pixels.contiguous().float()
        levels = torch.tensor([list(self.mean), list(self.std)], dtype=torch.float32, device=pixels.device)
        mean, std = levels[:, :, None, None]
        return pixels.div_(255).sub_(mean).div_(std).to(self.dtype)

    def _resized(self, picture: ndarray, to: Resized) -> Tensor:
        (height, width), size = picture.shape[:2], to.size
        across, down = to.target(width, height)
        # A copy, since what a worker sent may not be written to, which torch warns of.
        pixels = torch.from_numpy(picture.copy()).to(self.device).permute(2, 0, 1)[None].float()
        if (across, down) != (width, height):
            how: dict[str, Any] = {"mode": to.interpolation, "antialias": True, "align_corners": False}
            pixels = torch.nn.functional.interpolate(pixels, (down, across), **how)
        left, top = to.corner_at(across, down)
        return pixels[0, :, top : top + size, left : left + size].round().clamp(0, 255)


class CompiledTower:
    """A tower as a program made at the first call, which must agree with the tower on the first batch."""

    def __init__(self, tower: Callable[[Tensor], Tensor], *, tolerance: float, where: str) -> None:
        self.tower, self.tolerance, self.where = tower, tolerance, where
        self.program: Callable[[Tensor], Tensor] = torch.compile(tower, dynamic=False)
        #: The largest batch so far; smaller ones are filled up to it.
        self.size = 0
        self.checked = False

    def __call__(self, pixels: Tensor) -> Tensor:
        rows = len(pixels)
        # Another size would be compiled anew.
        if rows < self.size:
            pixels = torch.cat([pixels, pixels.new_zeros(self.size - rows, *pixels.shape[1:])])
        self.size = max(self.size, rows)
        hint = "leave out --set compile"
        try:
            features = self.program(pixels)[:rows]
        except Exception as error:
            problem = f"the image tower cannot be compiled: {' '.join(causes(error).split())[:240]}"
            raise ModelError(problem, where=self.where, hint=hint) from None
        if not self.checked and rows:
            compiled, plain = (
                torch.nn.functional.normalize(output.float(), dim=-1)
                for output in (features, self.tower(pixels)[:rows])
            )
            difference = float((compiled - plain).abs().max())
            # Written so that NaN is refused too.
            if not difference <= self.tolerance:
                problem, allowed = "the compiled image tower does not agree", f"at most {self.tolerance:g}"
                given = f"unit vectors {difference:.2g} apart"
                raise ModelError(problem, where=self.where, given=given, allowed=allowed, hint=hint)
            self.checked = True
        return features
