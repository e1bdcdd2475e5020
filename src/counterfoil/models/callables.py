"""Models made of a user's own function of images and captions, or of a torch module with two towers."""

import pickle
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import PIL.Image
from jaxtyping import Float
from numpy import ndarray

from counterfoil.benchmarks.records import Caption, Image
from counterfoil.errors import InputError, ScoreError
from counterfoil.inputs.options import checked
from counterfoil.models import base
from counterfoil.models.images import prepared
from counterfoil.models.runtime import import_torch

#: A function of some pictures and as many captions: one number per pair, higher for a better match.
ScoreFunction = Callable[[list[PIL.Image.Image], list[str]], Any]


@dataclass(frozen=True, eq=False)
class FunctionModel:
    """A `Model` that calls a function with lists of RGB pictures and captions, for one number per pair."""

    identity: base.Identity
    function: ScoreFunction

    def score(self, images: Sequence[Image], captions: Sequence[Caption]) -> Float[ndarray, "pairs"]:
        given = self.function([image.decode() for image in images], [base.text_of(c) for c in captions])
        try:
            plain = given.detach().cpu().double() if hasattr(given, "detach") else given
            values = np.asarray(plain, dtype=np.float64)
        except (TypeError, ValueError, OverflowError, RuntimeError, NotImplementedError) as error:
            problem, allowed = "the function gave no numbers", "a list, an array or a tensor of numbers"
            given = f"{type(given).__name__} ({error})"
            raise ScoreError(problem, where=self.identity.name, given=given, allowed=allowed) from None
        if values.shape != (len(images),):
            problem = "the function gave scores of another shape"
            allowed = f"({len(images)},): one score per image and caption"
            raise ScoreError(problem, where=self.identity.name, given=values.shape, allowed=allowed)
        return values


@dataclass(frozen=True, eq=False)
class ModuleEncoder(base.ComparedByCosine):
    """An `Embedder` around a torch module; it stays on its device, and is in `eval` mode while it encodes."""

    identity: base.Identity
    model: Any
    preprocess: Callable[[PIL.Image.Image], Any]
    tokenizer: Callable[[list[str]], Any]

    def embed_images(self, batches: base.ImageBatches, *, workers: int = 0) -> base.BatchVectors:
        """Unit vectors per batch; `workers` are used where `preprocess` can be sent to them."""
        torch = import_torch()
        preparation = partial(_as_array, self.preprocess)
        try:
            # What is defined in a script or a notebook is not found in another process.
            workers = 0 if b"__main__" in pickle.dumps(preparation) else workers
        except (pickle.PicklingError, AttributeError, TypeError):
            workers = 0
        with closing(prepared(batches, preparation, workers=workers)) as stream:
            for arrays in stream:
                if len(shapes := {array.shape for array in arrays}) > 1:
                    problem = "'preprocess' gave pictures of several shapes"
                    raise ScoreError(problem, where=self.identity.name, given=sorted(shapes)[:2])
                pixels = torch.stack([torch.from_numpy(array) for array in arrays])
                yield self._rows(self.model.encode_image, pixels)

    def embed_captions(self, batches: base.CaptionBatches) -> base.BatchVectors:
        for batch in batches:
            texts = [base.text_of(caption) for caption in batch]
            yield self._rows(self.model.encode_text, self.tokenizer(texts))

    def lengths(self, captions: Sequence[Caption]) -> Sequence[int]:
        """Characters of each caption: captions of like length go through the model together."""
        return [len(base.text_of(caption)) for caption in captions]

    def _rows(self, encode: Callable[[Any], Any], batch: Any) -> Float[np.ndarray, "batch width"]:
        torch = import_torch()
        first = next(iter(self.model.parameters()))
        batch = self._tensor(batch, "'tokenizer'")
        kind = {"dtype": first.dtype} if batch.is_floating_point() else {}
        training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                rows = self._tensor(encode(batch.to(first.device, **kind)), encode.__name__).float()
                rows = torch.nn.functional.normalize(rows, dim=-1)
        finally:
            self.model.train(training)
        return rows.cpu().numpy()

    def _tensor(self, given: Any, of: str) -> Any:
        if not isinstance(given, import_torch().Tensor):
            raise ScoreError(f"{of} gave no tensor", where=self.identity.name, given=type(given).__name__)
        return given


def _as_array(preprocess: Callable[[PIL.Image.Image], Any], picture: PIL.Image.Image) -> ndarray:
    """A user's preprocessing as a `Preparation`: its tensor as an array."""
    array = np.asarray(preprocess(picture))
    if array.dtype.kind not in "biufc":
        raise ScoreError("'preprocess' gave no numbers", given=array.dtype)
    return array


@checked
def as_model(
    model: Any,
    *,
    name: str | None = None,
    version: str = "",
    preprocess: Callable[[PIL.Image.Image], Any] | None = None,
    tokenizer: Callable[[list[str]], Any] | None = None,
) -> FunctionModel | ModuleEncoder:
    """A model of one's own: a function of images and captions, or a torch module with two towers.

    A function gets a list of PIL pictures (RGB) and a list of as many captions, and returns one number per
    pair. A module with `encode_image` and `encode_text` also needs the `preprocess` of its pictures and the
    `tokenizer` of its texts, as `open_clip.create_model_and_transforms` and `open_clip.get_tokenizer` give
    them; its embeddings are compared by cosine. `name` is what results call it.

    Finished work of a module is kept under the digest of its weights. What a function does cannot be told
    from outside, so its work is kept only with a `version`, to be raised whenever its code changes.

    Raises `InputError` for what is neither.

    >>> longest = as_model(lambda images, captions: [len(text) for text in captions], name="longest caption")
    >>> longest.identity.name
    'longest caption'
    """
    called = name or getattr(model, "__name__", "") or type(model).__name__
    if hasattr(model, "encode_image") and hasattr(model, "encode_text"):
        if preprocess is None or tokenizer is None:
            lacking = "preprocess" if preprocess is None else "tokenizer"
            problem = f"a module with encode_image and encode_text needs its {lacking}"
            allowed = "as_model(model, preprocess=..., tokenizer=...)"
            hint = "open_clip.create_model_and_transforms and open_clip.get_tokenizer give them"
            raise InputError(problem, where=called, allowed=allowed, hint=hint)
        device = next(iter(model.parameters())).device
        # The `repr` without a place in memory; transforms of torchvision say what they do.
        both = {"preprocess": preprocess, "tokenizer": tokenizer}
        described = str({name: base.ADDRESS.sub("", repr(function)) for name, function in both.items()})
        identity = base.Identity(called, version, preprocessing=described, options={"device": device.type})
        return ModuleEncoder(identity, model, preprocess, tokenizer)
    if not callable(model) or hasattr(model, "identity"):
        problem = "this is no function of images and captions, and no module with two encoders"
        hint = "a model that is loaded needs no as_model(...) around it"
        raise InputError(problem, given=type(model).__name__, hint=hint)
    if preprocess is not None or tokenizer is not None:
        given = "tokenizer" if preprocess is None else "preprocess"
        raise InputError("a function gets pictures and texts as they are", where=called, given=given)
    return FunctionModel(base.Identity(called, version), model)
