"""Baselines: scorers that never look at the image, and one that sees nothing but colours.

One on which a blind scorer beats chance can be answered without looking.
"""

import hashlib
import re
import struct
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
from jaxtyping import Float, Int
from numpy import ndarray

from counterfoil.benchmarks.records import Caption, FileSource, Image, PixelSource
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.inputs.files import digest, digest_value
from counterfoil.models import base

_WIDTH = 32


class _Alike(base.ComparedByCosine):
    """Rows of captions that are compared by cosine, without a model."""

    does = ("scores_pairs", "embeds_texts")

    def lengths(self, captions: Sequence[Caption]) -> Sequence[int]:
        return [0] * len(captions)


@dataclass(frozen=True)
class Constant(_Alike):
    """Every pair scores the same: all ties. Strict comparison gives it 0, half points exactly chance."""

    needs = ()

    identity: base.Identity

    def score(self, images: Sequence[Image], captions: Sequence[Caption]) -> Float[ndarray, "pairs"]:
        return np.zeros(len(captions), dtype=np.float64)

    def embed_captions(self, batches: base.CaptionBatches) -> base.BatchVectors:
        for batch in batches:
            yield np.ones((len(batch), 1), dtype=np.float32)


@dataclass(frozen=True)
class Random(_Alike):
    """Every pair draws its score from [0, 1) by a digest of seed, caption and image id."""

    needs = ()

    identity: base.Identity
    seed: int

    def score(self, images: Sequence[Image], captions: Sequence[Caption]) -> Float[ndarray, "pairs"]:
        """Uniform in [0, 1), in steps of 2**-53; ties do not happen in practice."""
        pairs = zip(images, captions, strict=True)
        numbers = [self._number(caption, image.id, repr(image.crop)) for image, caption in pairs]
        return np.asarray([float((number >> 11) * 2.0**-53) for number in numbers], dtype=np.float64)

    def embed_captions(self, batches: base.CaptionBatches) -> base.BatchVectors:
        """A random unit vector for every text: of three captions any two are as likely the nearest."""
        for batch in batches:
            drawn = [np.random.default_rng(self._number(caption)).normal(size=_WIDTH) for caption in batch]
            rows = np.array(drawn).reshape(len(batch), _WIDTH)
            yield (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def _number(self, caption: Caption, *more: str) -> int:
        """64 bits for a caption and what else is given."""
        # Captions that are not at hand are told apart by their ids; lengths keep the parts apart.
        caption_key = ("text", caption.text) if caption.text is not None else ("id", caption.id)
        state = hashlib.blake2b(digest_size=8)
        for part in (str(self.seed), *caption_key, *more):
            data = part.encode("utf-8", "surrogatepass")
            state.update(struct.pack("<q", len(data)) + data)
        return int.from_bytes(state.digest(), "little")


@dataclass(frozen=True, eq=False)
class ConstantImage:
    """A model that sees one and the same picture in place of every image: what captions alone tell it."""

    does = ("scores_pairs",)
    needs = ("captions",)

    identity: base.Identity
    model: Any
    picture: Image

    def score_pairs(self, batches: base.PairBatches, *, workers: int = 0) -> base.BatchNumbers:
        if isinstance(self.model, base.Embedder):
            (picture,) = self.model.embed_images([[self.picture]])
            captions = self.model.embed_captions([[caption for _, caption in batch] for batch in batches])
            for part in captions:
                yield self.model.compare(part, np.repeat(picture, len(part), axis=0))
            return
        shown = [[(self.picture, caption) for _, caption in batch] for batch in batches]
        yield from base.stream_pairs(self.model, shown)

    def over_limit(self, captions: Sequence[Caption]) -> int:
        return base.truncated(self.model, captions)


#: The mean colour of the photographs that CLIP was trained on, out of 255.
_MEAN_COLOUR = (123, 117, 104)
_MEAN_SIDE = 224


def constant_image(model: Any, options: base.Options) -> ConstantImage:
    """`blind:constant-image`: `model` with a picture of the mean colour, or that of `--set image=PATH`."""
    name = "blind:constant-image"
    _check_settings(options, ("image",), where=name)
    blind = "images" not in getattr(model, "needs", ("images",))
    if blind or not {"embeds", "scores_pairs"} & set(base.abilities(model)):
        problem = "needs a model that looks at images behind it"
        raise InputError(problem, where=name, given=model.identity.name)
    pixels = np.full((_MEAN_SIDE, _MEAN_SIDE, 3), _MEAN_COLOUR, dtype=np.uint8)
    if path := options.settings.get("image"):
        picture = Image(path, FileSource(Path(path))).decode()
        pixels = np.asarray(picture.resize((_MEAN_SIDE, _MEAN_SIDE)))
    known = base.identity_of(model)
    options_of = {**known.options, "image": digest(pixels.tobytes())}
    identity = replace(known, name=f"{name} {known.name}", options=options_of)
    return ConstantImage(identity, model, Image("the mean image", PixelSource(pixels)))


_BLIND = ("constant", "random", "length")


def load_blind(argument: str, options: base.Options = base.DEFAULT) -> Any:
    """`constant`, `random` (draws from `options.seed`), `length` or one that learns (`models.learned`)."""
    name = f"blind:{argument}"
    if argument == "constant-image":
        hint = "--backbone open-clip:ARCH/PRETRAINED"
        raise InputError("needs a model that looks at the mean image", where=name, hint=hint)
    if argument not in _BLIND:
        from counterfoil.models.learned import FITS, load

        if argument in FITS:
            _check_settings(options, ("captions",) if argument == "unigram" else (), where=name)
            return load(argument, options)
        raise UnknownNameError("blind scorer", argument, (*_BLIND, *FITS, "constant-image"), where=name)
    base.reject_unused_options(name, options)
    if argument == "random":
        return Random(base.Identity(name, revision="1", options={"seed": options.seed}), options.seed)
    return (Constant if argument == "constant" else base.OfText)(base.Identity(name, revision="1"))


def _check_settings(options: base.Options, taken: Sequence[str], *, where: str) -> None:
    """Raise `UnknownNameError` for a setting that is one of other blind scorers."""
    if unknown := [key for key in options.settings if key not in taken]:
        raise UnknownNameError("setting", unknown[0], taken, where=where)


#: The eleven basic colour words of English (Berlin and Kay, 1969), with the colours of CSS that they name.
ANCHORS: Mapping[str, tuple[str, ...]] = {
    "black": ("#000000", "#1c1c1c"),
    "white": ("#ffffff", "#f5f5f5", "#fffaf0", "#f0f8ff"),
    "grey": ("#696969", "#808080", "#a9a9a9", "#c0c0c0"),
    "red": ("#ff0000", "#dc143c", "#b22222", "#8b0000"),
    "orange": ("#ffa500", "#ff8c00", "#ff7f50"),
    "yellow": ("#ffff00", "#ffd700", "#f0e68c"),
    "green": ("#008000", "#32cd32", "#2e8b57", "#006400", "#90ee90", "#6b8e23"),
    "blue": ("#0000ff", "#1e90ff", "#4169e1", "#000080", "#87ceeb", "#4682b4"),
    "purple": ("#800080", "#4b0082", "#9370db", "#663399"),
    "pink": ("#ffc0cb", "#ff69b4", "#ffb6c1", "#db7093"),
    "brown": ("#8b4513", "#a0522d", "#5c4033", "#d2b48c"),
}
_NAMES = tuple(ANCHORS)
_NEUTRAL = ("black", "white", "grey")
_OTHER_SPELLINGS = {"gray": "grey", "violet": "purple"}
_WORD = re.compile(rf"\b({'|'.join([*_NAMES, *_OTHER_SPELLINGS])})\b", re.IGNORECASE)

#: A colour on less than the first part of the pixels is not there, on more than the second it is.
_ABSENT, _PRESENT = 0.001, 0.004
#: Larger pictures are sampled down to this side.
_SIDE = 256


def load_pixels(argument: str, options: base.Options = base.DEFAULT) -> "Colours":
    """`colours`; `UnknownNameError` for any other."""
    name = f"pixels:{argument}"
    base.reject_unused_options(name, options)
    if argument != "colours":
        raise UnknownNameError("reader of pixels", argument, ["colours"], where=name)
    recipe = {"anchors": dict(ANCHORS), "absent": _ABSENT, "present": _PRESENT, "side": _SIDE}
    return Colours(base.Identity(name, revision="1", preprocessing=digest_value(recipe)))


@dataclass(frozen=True)
class Colours:
    """Which colours a caption names, against which the image shows, and how much of its colour they are."""

    does = ("scores_pairs",)

    identity: base.Identity

    def score(self, images: Sequence[Image], captions: Sequence[Caption]) -> Float[ndarray, "pairs"]:
        return next(self.score_pairs([list(zip(images, captions, strict=True))]))

    def score_pairs(self, batches: base.PairBatches, *, workers: int = 0) -> base.BatchNumbers:
        """As `score`, batch by batch; pixels are decoded and counted in `workers` processes."""
        from counterfoil.models.images import prepared

        named = [
            [(image, colour_words(base.text_of(caption))) for image, caption in batch] for batch in batches
        ]
        # An image in several pairs of one batch is opened once, and only where a caption names a colour.
        shown = [list({id(image): image for image, words in batch if words}.values()) for batch in named]
        with closing(prepared(shown, _shares, workers=workers)) as stream:
            for batch, images, parts in zip(named, shown, stream, strict=True):
                rows = [dict(zip(_NAMES, row.tolist(), strict=True)) for row in parts]
                seen = dict(zip(map(id, images), rows, strict=True))
                scores = [agreement(words, seen[id(image)]) if words else 0.0 for image, words in batch]
                yield np.asarray(scores, dtype=np.float64)


def _shares(picture: PIL.Image.Image) -> Float[ndarray, "colours"]:
    return np.asarray([*shares(picture).values()])


def agreement(words: Sequence[str], parts: Mapping[str, float]) -> float:
    """The sum over `words` of 2 p - 1, with p in [0, 1] how surely the colour is there, plus the coverage.

    `parts` are the shares of the colours in the picture. Coverage, in whole hundredths, is how much of what
    is not black, white or grey (unless named) bears a named colour: of two pictures that both show red, "a
    red star" fits the one with less besides.

    >>> agreement(["red"], {"red": 0.1, "blue": 0.3, "white": 0.6})
    1.25
    >>> agreement(["red", "green"], {"red": 0.1, "white": 0.9})
    1.0
    """
    sure = sum(
        2 * min(max((parts.get(word, 0.0) - _ABSENT) / (_PRESENT - _ABSENT), 0.0), 1.0) - 1 for word in words
    )
    ground = sum(part for name, part in parts.items() if name in words or name not in _NEUTRAL)
    covered = sum(parts.get(word, 0.0) for word in words)
    # Hundredths, since the compression of a photograph moves a few pixels from one name to another.
    return sure + (round(covered / ground, 2) if ground else 0.0)


def colour_words(text: str) -> list[str]:
    """The distinct basic colours that a text names, in its order.

    >>> colour_words("A Gray cat, a red ball and a redder, grey hat.")
    ['grey', 'red']
    """
    words = (word.lower() for word in _WORD.findall(text))
    return list(dict.fromkeys(_OTHER_SPELLINGS.get(word, word) for word in words))


def shares(picture: PIL.Image.Image) -> dict[str, float]:
    """The part of an RGB picture's pixels that bears each basic colour; the parts sum to 1.

    >>> half = PIL.Image.new("RGB", (64, 64), "navy")
    >>> half.paste("gold", (0, 0, 64, 16))
    >>> {name: part for name, part in shares(half).items() if part}
    {'yellow': 0.25, 'blue': 0.75}
    """
    if max(picture.size) > _SIDE:
        # Nearest pixels: averages would mix colours that are not there.
        width, height = (max(1, round(side * _SIDE / max(picture.size))) for side in picture.size)
        picture = picture.resize((width, height), PIL.Image.Resampling.NEAREST)
    coarse = np.asarray(picture).reshape(-1, 3).astype(np.int64) >> 3
    names = _names_of_cells()[coarse @ np.array([1024, 32, 1])]
    part = np.bincount(names, minlength=len(_NAMES)) / len(names)
    return dict(zip(_NAMES, part.tolist(), strict=True))


@cache
def _names_of_cells() -> Int[ndarray, "32768"]:
    """The name of each of 32 x 32 x 32 cells of RGB: that of the nearest anchor in CIE Lab."""
    steps = np.arange(32) * 8 + 4
    cells = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    colours = [(number, code) for number, name in enumerate(_NAMES) for code in ANCHORS[name]]
    anchors = np.array([[int(code[i : i + 2], 16) for i in (1, 3, 5)] for _, code in colours])
    apart = _lab(cells)[:, None] - _lab(anchors)[None]
    return np.array([number for number, _ in colours])[(apart**2).sum(axis=2).argmin(axis=1)]


def _lab(rgb: Int[ndarray, "n 3"]) -> Float[ndarray, "n 3"]:
    """CIE Lab (D65) of sRGB in 0 to 255."""
    encoded = rgb / 255
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    relative = linear @ to_xyz.T / np.array([0.9505, 1.0, 1.089])
    x, y, z = np.where(relative > (6 / 29) ** 3, np.cbrt(relative), relative / (3 * (6 / 29) ** 2) + 4 / 29).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)
