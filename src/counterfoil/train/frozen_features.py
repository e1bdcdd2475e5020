"""Features of a training set's items from a frozen encoder, each distinct item encoded once."""

from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from counterfoil.data.training_rows import TrainingSet
from counterfoil.engine.plan import Note, Progress
from counterfoil.errors import InputError, ModelError
from counterfoil.scorers.base import text_of
from counterfoil.scorers.detector import DetectorNetwork, features
from counterfoil.scorers.networks import Backbone
from counterfoil.train.images import ImageRequest, ImageStore, say_unreadable
from counterfoil.train.recipes import Detection

#: Items that go through an encoder at a time.
_AT_ONCE = 64


class FrozenFeatures(NamedTuple):
    """What the encoder says of the items of one modality, on the CPU, and which two each row has."""

    items: Float[Tensor, "items width"]
    #: For each row its natural and its synthetic item.
    rows: Int[ndarray, "n 2"]

    def batch(self, some: Int[ndarray, "b"]) -> tuple[Tensor, Tensor]:
        """Features (2b, width), first the natural ones, and labels (2b,)."""
        # Transposed, so that all natural ones come first.
        items = self.items[torch.from_numpy(self.rows[some].T.reshape(-1).copy())]
        return items, torch.cat([torch.zeros(len(some)), torch.ones(len(some))])


def encoded(
    backbone: Backbone, data: TrainingSet, recipe: Detection, workers: int, progress: Progress, note: Note
) -> dict[str, FrozenFeatures]:
    """What the frozen encoder says of every distinct image and caption of `data`, once.

    Raises `DataError` for an image that cannot be read, unless the recipe skips its rows and `note` says so;
    `InputError` where no row is left, and `ModelError` for numbers that are not finite.
    """
    used = np.unique(np.concatenate([data.need("image"), data.need("negative_image")]))
    # Each picture is asked for once, so none is kept in memory.
    pictures = ImageStore(
        data.images,
        used,
        backbone.preparation,
        workers=workers,
        skip=recipe.unreadable == "skip",
        kept=0,
        progress=progress,
    )
    rows = np.arange(len(data))
    if pictures.unreadable:
        lost = np.isin(data.need("image"), pictures.unreadable)
        lost |= np.isin(data.need("negative_image"), pictures.unreadable)
        say_unreadable(data.images, pictures.unreadable, int(lost.sum()), note)
        rows = rows[~lost]
        if not len(rows):
            raise InputError("no row is left whose images can be read", where=data.source or data.name)
        data = data.select(rows)
        used = np.unique(np.concatenate([data.need("image"), data.need("negative_image")]))
    return {
        "image": _pair(data, ("image", "negative_image"), used, _images(backbone, pictures, used, progress)),
        "caption": _captions(backbone, data, progress),
    }


def _images(
    backbone: Backbone, pictures: ImageStore, used: Int[ndarray, "items"], progress: Progress
) -> Float[Tensor, "items width"]:
    inner, device = _inner(backbone), backbone.device()
    asked = [ImageRequest(used[at : at + _AT_ONCE]) for at in range(0, len(used), _AT_ONCE)]
    parts: list[Tensor] = []
    with closing(pictures.batches(asked)) as stream, torch.inference_mode():
        for batch in stream:
            pixels = backbone.pixels(batch).to(device)
            parts.append(features(inner.encode_images(pixels)).float().cpu())
            progress("embedding images", min(len(parts) * _AT_ONCE, len(used)), len(used))
    return _finite(torch.cat(parts), backbone.name, "images")


def _captions(backbone: Backbone, data: TrainingSet, progress: Progress) -> FrozenFeatures:
    """Captions alike are encoded once, sorted by length so that little is padding."""
    roles = ("caption", "negative_caption")
    used = np.unique(np.concatenate([data.need(role) for role in roles]))
    texts = [text_of(data.captions[position]) for position in used]
    distinct = sorted(dict.fromkeys(texts), key=lambda text: (len(text), text))
    inner, device = _inner(backbone), backbone.device()
    parts: list[Tensor] = []
    with torch.inference_mode():
        for at in range(0, len(distinct), _AT_ONCE):
            tokens = backbone.tokens(distinct[at : at + _AT_ONCE]).to(device)
            parts.append(features(inner.encode_texts(tokens)).float().cpu())
            progress("embedding captions", min(at + _AT_ONCE, len(distinct)), len(distinct))
    found = _finite(torch.cat(parts), backbone.name, "captions")
    number = {text: i for i, text in enumerate(distinct)}
    return _pair(data, roles, used, found[[number[text] for text in texts]])


def _pair(
    data: TrainingSet, roles: tuple[str, str], used: ndarray, found: Float[Tensor, "items width"]
) -> FrozenFeatures:
    rows = np.stack([np.searchsorted(used, data.need(role)) for role in roles], axis=1)
    # Plain memory: what inference gave takes part in no gradients.
    plain = found.clone()
    return FrozenFeatures(plain, rows)


def _inner(backbone: Backbone) -> Any:
    network = backbone.network
    assert isinstance(network, DetectorNetwork)
    return network.inner.eval()


def _finite(found: Float[Tensor, "items width"], name: str, what: str) -> Float[Tensor, "items width"]:
    bad = int((~torch.isfinite(found).all(dim=1)).sum())
    if bad:
        raise ModelError(
            f"the encoder gives {what} numbers that are not finite",
            where=name,
            given=f"{bad} of {len(found)}",
        )
    return found
