"""The towers of an open_clip model as functions of bytes and words: scaling, tokens, which tower to use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import PIL.Image
from numpy import ndarray

from counterfoil.scorers import clip_fast
from counterfoil.scorers.images import Resized, Untouched
from counterfoil.scorers.runtime import import_torch
from counterfoil.scorers.token_encoder import TokenIds

#: Texts that the two towers are compared on, of different lengths.
SAMPLE = ("a photo of a cat", "two dogs chase one red ball across the wet grass behind a house")


@dataclass(frozen=True, eq=False)
class Pixels:
    """From what workers made of pictures to what a model takes."""

    preparation: Resized | Untouched
    #: Mean and standard deviation of the three colours, (3, 1, 1) each.
    mean: Any
    std: Any
    device: Any
    dtype: Any
    #: open_clip's own transform, where workers leave pictures untouched.
    transform: Any = None

    @classmethod
    def of(cls, settings: Mapping[str, Any], device: Any, dtype: Any) -> "Pixels":
        """As a model's preprocessing settings (open_clip's `preprocess_cfg`) want it."""
        from open_clip.transform import PreprocessCfg, image_transform_v2

        torch = import_torch()
        triples = {
            name: settings[name] if isinstance(settings[name], Sequence) else [settings[name]] * 3
            for name in ("mean", "std")
        }
        mean, std = (
            torch.tensor(list(triple), dtype=torch.float32, device=device).view(3, 1, 1)
            for triple in triples.values()
        )
        size, mode, interpolation = settings["size"], settings["resize_mode"], settings["interpolation"]
        height, width = (size, size) if isinstance(size, int) else size
        if height == width and mode in ("shortest", "squash") and interpolation in ("bicubic", "bilinear"):
            return cls(Resized(int(height), mode, interpolation), mean, std, device, dtype)
        transform = image_transform_v2(PreprocessCfg(**settings), is_train=False)
        return cls(Untouched(), mean, std, device, dtype, transform)

    def __call__(self, pictures: Sequence[ndarray]) -> Any:
        """(batch, 3, height, width) of the model's type, on its device."""
        torch = import_torch()
        if self.transform is None:
            pixels = torch.from_numpy(np.stack(pictures)).to(self.device).permute(0, 3, 1, 2).contiguous()
            # The same operations in the same order as torchvision's ToTensor and Normalize.
            pixels = pixels.float().div_(255).sub_(self.mean).div_(self.std)
        else:
            whole = [self.transform(PIL.Image.fromarray(picture)) for picture in pictures]
            pixels = torch.stack(whole).to(self.device)
        return pixels.to(self.dtype)


class RememberedTokens:
    """A tokenizer that remembers: captions are counted first and embedded later."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._one = lru_cache(maxsize=1 << 16)(self._read)

    def _read(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer([text])[0].tolist())

    def __call__(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """The ids of each text, padded to the length the model reads."""
        return [self._one(text) for text in texts]

    def left_out(self, texts: Sequence[str]) -> list[int]:
        """How many tokens of each text the model does not read; 0 where the tokenizer cannot tell."""
        return [max(0, self._length(text) - len(row)) for text, row in zip(texts, self(texts), strict=True)]

    def _length(self, text: str) -> int:
        """Tokens of the whole text, marks included."""
        if hasattr(self._tokenizer, "encode") and hasattr(self._tokenizer, "eot_token_id"):
            return len(self._tokenizer.encode(text)) + 2
        # Tokenizers of transformers within open_clip's, which cleans the text first.
        inner, clean = getattr(self._tokenizer, "tokenizer", None), getattr(self._tokenizer, "clean_fn", None)
        if inner is None or clean is None:
            return 0
        return len(inner(clean(text), truncation=False, verbose=False)["input_ids"])


@dataclass(frozen=True, eq=False)
class CausalTokens:
    """A `TokenTower` around a causal text tower: no token depends on what follows it."""

    tokens: RememberedTokens
    tower: clip_fast.FastTextTower
    #: Whether the tower is trusted to compute without the library's blocks.
    quick: bool

    def read(self, texts: Sequence[str]) -> list[TokenIds]:
        """The ids of each text, up to the end mark and all of them."""
        return [TokenIds.of(self.tower.cut(row), len(row)) for row in self.tokens(texts)]

    def states(self, texts: Sequence[str]) -> Any:
        """(texts, longest, width) features of all tokens."""
        rows = self.tokens(texts)
        if self.quick:
            return self.tower.states([self.tower.cut(row) for row in rows])
        return self.tower.library_states(rows)


@dataclass(frozen=True, eq=False)
class Towers:
    """The functions a `DualEncoder` needs, around one model."""

    model: Any
    pixels: Pixels
    tokens: RememberedTokens
    device: Any
    images_fast: clip_fast.FastImageTower | None = None
    texts_fast: clip_fast.FastTextTower | None = None

    def images(self, pictures: Sequence[ndarray]) -> Any:
        """(batch, width) features."""
        return (self.images_fast or self.model.encode_image)(self.pixels(pictures))

    def texts(self, texts: Sequence[str]) -> Any:
        """(batch, width) features."""
        ids = self.tokens(texts)
        if self.texts_fast is not None:
            return self.texts_fast([self.texts_fast.cut(row) for row in ids])
        return self.model.encode_text(import_torch().tensor(ids, device=self.device))

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens the tower computes of each text; the library's own computes all at full length."""
        ids = self.tokens(texts)
        return [len(self.texts_fast.cut(row) if self.texts_fast else row) for row in ids]

    @property
    def causal(self) -> CausalTokens | None:
        """The text tower token by token; None where tokens depend on what follows, or no end is pooled."""
        if self.texts_fast is not None:
            return CausalTokens(self.tokens, self.texts_fast, quick=True)
        tower = clip_fast.causal_text(self.model)
        return None if tower is None else CausalTokens(self.tokens, tower, quick=False)


def trusted(towers: Towers, tolerance: float) -> Towers:
    """The towers with the fast ones that are known and answer a sample as the library's own do.

    `tolerance` is the largest difference allowed between unit vectors.
    """
    torch = import_torch()
    images, texts = clip_fast.image_tower(towers.model), clip_fast.text_tower(towers.model)

    def agree(one: Any, other: Any) -> bool:
        first, second = (torch.nn.functional.normalize(x.float(), dim=-1) for x in (one, other))
        return bool((first - second).abs().max() <= tolerance)

    with torch.inference_mode():
        if images is not None:
            height, width = images.visual.image_size
            ramp = torch.linspace(-1, 1, 3 * height * width).sin().view(1, 3, height, width)
            ramp = ramp.to(device=towers.device, dtype=towers.pixels.dtype)
            if agree(images(ramp), towers.model.encode_image(ramp)):
                towers = replace(towers, images_fast=images)
        if texts is not None:
            plain, quick = towers.texts(SAMPLE), replace(towers, texts_fast=texts)
            if agree(quick.texts(SAMPLE), plain):
                towers = quick
    return towers
