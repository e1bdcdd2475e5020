"""Dual encoders of every model library: batches in, unit vectors out, of whole items or of their parts.

Tokens are the states of the text tower after its last norm, projected as the whole caption is (EMScore's
`encode_text(local=True)`). Patches are the values of a vision transformer's last attention, through its
output projection, last norm and the projection of the whole ("MaskCLIP": Zhou, Loy and Dai, ECCV 2022,
section 3.2); a pooling head (SigLIP) is run on each patch alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from math import isqrt
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.benchmarks.records import Caption, Image
from counterfoil.benchmarks.videos import FrameFeatures, Video
from counterfoil.errors import DataError
from counterfoil.metrics.heatmaps import WHOLE, Box
from counterfoil.models import base
from counterfoil.models.captions.base import BatchFrames, BatchTokens, CaptionTokens
from counterfoil.models.checkpoint_files import read_tensor
from counterfoil.models.images import UNTOUCHED, Preparation, Resized, check_proportions, prepared
from counterfoil.models.matching_probability import RowSimilarity
from counterfoil.models.runtime import import_torch

#: Frames that go through the image tower together; no more of them are decoded at any time.
FRAMES = 32


@dataclass(frozen=True, eq=False)
class TokenTower:
    #: Texts to the ids of each, from the mark of the begin to that of the end, cut as the tokenizer does.
    ids: Callable[[Sequence[str]], Sequence[Sequence[int]]]
    #: Texts to (texts, longest, width), projected and not normalised; behind a last token means nothing.
    states: Callable[[Sequence[str]], Any]
    length: int

    def filled(self, ids: Sequence[int]) -> ndarray:
        """The ids of a text filled up with 0 as OpenAI's tokenizer does: document frequencies count these."""
        return np.array([*ids, *[0] * (self.length - len(ids))], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class LocalEncoder:
    """A `LocalEmbedder` around the towers of a dual encoder."""

    identity: base.Identity
    whole: "DualEncoder"
    tower: TokenTower

    def embed_tokens(self, batches: base.CaptionBatches) -> BatchTokens:
        for batch in batches:
            texts = base.prompted(self.identity, batch)
            states = self.whole.unit_rows(self.tower.states, texts) if texts else ()
            yield [
                CaptionTokens.of(self.tower.filled(ids), rows, used=len(ids), whole=-1)
                for ids, rows in zip(self.tower.ids(texts), states, strict=True)
            ]

    def token_ids(self, texts: Sequence[str]) -> list[ndarray]:
        inside = [base.filled(self.identity.prompt, text) for text in texts]
        return [self.tower.filled(ids) for ids in self.tower.ids(inside)]

    def embed_frames(self, batches: base.ImageBatches, *, workers: int = 0) -> BatchFrames:
        """Unit vectors of frames; videos are decoded `FRAMES` at a time, pictures in `workers`."""
        still = [batch for batch in batches if batch and _all_pictures(batch)]
        with closing(prepared(still, self.whole.preparation, workers=workers)) as stream:
            for batch in batches:
                if not batch:
                    yield []
                elif _all_pictures(batch):
                    yield [row[None].copy() for row in self._unit_images(next(stream))]
                else:
                    yield [self._frames(item) for item in batch]

    def over_limit(self, captions: Sequence[Caption]) -> int:
        return self.whole.over_limit(captions)

    def _unit_images(self, arrays: Sequence[ndarray]) -> Float[ndarray, "frames width"]:
        return self.whole.unit_rows(self.whole.towers.images, arrays)

    def _frames(self, item: Image) -> Float[ndarray, "frames width"]:
        if is_given(item):
            return given_frames(item)
        rows, waiting, times, last = [], [], list[int](), None
        # A picture is a video of one frame; closing a video closes its file.
        frames: Any = closing(item.frames()) if isinstance(item, Video) else nullcontext([item.decode()])
        with frames as pictures:
            for picture in pictures:
                # Where more frames are asked for than there are, one picture comes several times in a row.
                if picture is last:
                    times[-1] += 1
                    continue
                last = picture
                times.append(1)
                check_proportions(picture, f"video '{item.id}'")
                waiting.append(self.whole.preparation(picture))
                if len(waiting) == FRAMES:
                    rows.append(self._unit_images(waiting))
                    waiting = []
        if waiting:
            rows.append(self._unit_images(waiting))
        if not rows:
            raise DataError("a video without frames", where=f"video '{item.id}'")
        return np.repeat(np.concatenate(rows), times, axis=0)


def is_given(item: Image) -> bool:
    """Whether a model has embedded the frames of this item already, so that none is needed."""
    return isinstance(item, Video) and isinstance(item.source, FrameFeatures)


def given_frames(item: Image) -> Float[ndarray, "frames width"]:
    """The unit vectors of frames that are embedded already, of the part that is asked for."""
    assert isinstance(item, Video)
    source = item.source
    assert isinstance(source, FrameFeatures)
    features = source.checked(read_tensor(source.path)) if source.path.suffix == ".pt" else source.read()
    wide = item.part_of(features).astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    if not lengths.all():
        raise DataError("a frame without length", where=f"{source}, frame {int(np.argmin(lengths))}")
    return (wide / lengths).astype(np.float32)


def _all_pictures(batch: Sequence[Image]) -> bool:
    return not any(isinstance(item, Video) for item in batch)


@dataclass(frozen=True, eq=False)
class Patches:
    """The unit vectors of a picture's patches, and the part of the picture that they cover."""

    vectors: Float[ndarray, "rows columns width"]
    box: Box = WHOLE


@dataclass(frozen=True, eq=False)
class PatchEncoder:
    encode: Callable[[Sequence[ndarray]], Any]
    seen: Any = None
    grid: tuple[int, int] | None = None
    preparation: Preparation = UNTOUCHED

    def embed_patches(self, batches: base.ImageBatches, *, workers: int = 0) -> Iterator[list[Patches]]:
        torch = import_torch()
        with closing(prepared(batches, self.preparation, workers=workers)) as stream:
            for batch, arrays in zip(batches, stream, strict=True):
                with torch.inference_mode():
                    features = torch.nn.functional.normalize(self.encode(arrays).float(), dim=-1)
                grid = self.grid or (isqrt(features.shape[1]),) * 2
                vectors: ndarray = features.cpu().numpy().reshape(len(batch), *grid, -1)
                boxes = [box_of(self.seen, image.decode().size) for image in batch]
                yield list(map(Patches, vectors, boxes))


def box_of(seen: Any, size: tuple[int, int]) -> Box:
    """The part of a picture of (width, height) that a model sees: the middle, where it crops.

    >>> box_of(Resized(50), (200, 100)), box_of(Resized(50, "squash"), (200, 100))
    ((0.25, 0.0, 0.75, 1.0), (0.0, 0.0, 1.0, 1.0))
    """
    if not isinstance(seen, Resized) or seen.mode == "squash":
        return WHOLE
    width, height = (max(1.0, side / min(size)) for side in size)
    left, top = (1 - 1 / width) / 2, (1 - 1 / height) / 2
    return left, top, 1 - left, 1 - top


def input_of(module: Any, run: Callable[[], Any]) -> Any:
    """The first argument that a module is called with while `run` runs."""
    inputs: list[Any] = []
    with module.register_forward_pre_hook(
        lambda _, args, named: inputs.append(args[0] if args else named["hidden_states"]), with_kwargs=True
    ):
        run()
    return inputs[0]


@dataclass(frozen=True, eq=False)
class Towers:
    """The two towers of a model on its device, as functions of prepared pictures and of texts."""

    images: Callable[[Sequence[ndarray]], Any]
    texts: Callable[[Sequence[str]], Any]
    #: Texts to the number of tokens that are computed of each, start and end marks included.
    count: Callable[[Sequence[str]], Sequence[int]]
    #: Texts to how many tokens of each exceed the model's length and are cut off; None where unknown.
    left_out: Callable[[Sequence[str]], Sequence[int]] | None = None
    #: The text tower token by token, where it has one point per token in the space of the images.
    tokens: TokenTower | None = None
    #: The patches of pictures in the same space, where the tower has some.
    patches: PatchEncoder | None = None
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class DualEncoder:
    """An `Embedder` around the two towers of a model; with a `comparison` the towers give finished rows."""

    does = ("embeds",)

    identity: base.Identity
    preparation: Preparation
    towers: Towers
    #: Facts for a run's manifest that change scores by rounding at most: versions, device, towers used.
    provenance: Mapping[str, Any] = field(default_factory=dict)
    comparison: RowSimilarity | None = None
    #: What is opened of a pair: images are not where something else is read by their ids.
    needs: tuple[str, ...] = ("images", "captions")

    def embed_images(self, batches: base.ImageBatches, *, workers: int = 0) -> base.BatchVectors:
        with closing(prepared(batches, self.preparation, workers=workers)) as stream:
            for arrays in stream:
                yield self.unit_rows(self.towers.images, arrays)

    def embed_captions(self, batches: base.CaptionBatches) -> base.BatchVectors:
        for batch in batches:
            yield self.unit_rows(self.towers.texts, base.prompted(self.identity, batch))

    def lengths(self, captions: Sequence[Caption]) -> Sequence[int]:
        return self.towers.count(base.prompted(self.identity, captions)) if len(captions) else []

    def over_limit(self, captions: Sequence[Caption]) -> int:
        left_out = self.towers.left_out
        return 0 if left_out is None else base.cut_off(self.identity, captions, left_out)

    def with_prompt(self, prompt: str) -> "DualEncoder":
        return replace(self, identity=replace(self.identity, prompt=prompt))

    @property
    def local(self) -> LocalEncoder | None:
        """The same model token by token; None where its tokens do not lie in the space of its images."""
        if self.towers.tokens is None or self.comparison is not None:
            return None
        options = {**self.identity.options, "parts": "tokens, frames"}
        return LocalEncoder(replace(self.identity, options=options), self, self.towers.tokens)

    @property
    def patches(self) -> PatchEncoder | None:
        """The same model patch by patch; None where its patches do not lie in the space of its captions."""
        if self.towers.patches is None or self.comparison is not None:
            return None
        return replace(self.towers.patches, preparation=self.preparation)

    def compare(self, captions: base.PairVectors, images: base.PairVectors) -> Float[ndarray, "pairs"]:
        return (base.cosines if self.comparison is None else self.comparison.pairs)(captions, images)

    def unit_rows(self, encode: Callable[[Any], Any], batch: Any) -> Float[np.ndarray, "batch *width"]:
        """What a tower gives of a batch, at length one unless there is a `comparison`."""
        torch = import_torch()
        with torch.inference_mode():
            rows = encode(batch).float()
            if self.comparison is None:
                rows = torch.nn.functional.normalize(rows, dim=-1)
        return rows.cpu().numpy()
