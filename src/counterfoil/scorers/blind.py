"""Scorers that see no pixels: what a benchmark gives away for nothing.

A benchmark on which one of these beats chance can be answered without looking. They never open an image.
"""

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.data.records import Caption, Image
from counterfoil.errors import UnknownNameError
from counterfoil.scorers.base import DEFAULT, Ability, Identity, Options, reject_unused_options, text_of


@dataclass(frozen=True)
class Constant:
    """Every pair scores 0: all ties. Strict comparison gives it 0, half points give it exactly chance."""

    does: ClassVar[tuple[Ability, ...]] = ("scores_pairs",)

    needs: ClassVar[tuple[str, ...]] = ()

    identity: Identity

    def score(self, images: Sequence[Image], captions: Sequence[Caption]) -> Float[ndarray, "pairs"]:
        """Zeros."""
        return np.zeros(len(captions), dtype=np.float64)


@dataclass(frozen=True)
class Random:
    """Every pair draws its score from [0, 1) by a digest of seed, caption and image id.

    The same pair gets the same score whatever the order, the batch or the other pairs; another seed gives
    other scores.
    """

    does: ClassVar[tuple[Ability, ...]] = ("scores_pairs",)

    needs: ClassVar[tuple[str, ...]] = ()

    identity: Identity
    seed: int

    def score(self, images: Sequence[Image], captions: Sequence[Caption]) -> Float[ndarray, "pairs"]:
        """Uniform in [0, 1), in steps of 2**-53; ties do not happen in practice."""
        return np.asarray(
            [self._draw(image, caption) for image, caption in zip(images, captions, strict=True)],
            dtype=np.float64,
        )

    def _draw(self, image: Image, caption: Caption) -> float:
        # Captions that are not at hand are told apart by their ids; lengths keep the three parts apart.
        caption_key = ("text", caption.text) if caption.text is not None else ("id", caption.id)
        parts = [str(self.seed), *caption_key, image.id, repr(image.crop)]
        state = hashlib.blake2b(digest_size=8)
        for part in parts:
            data = part.encode("utf-8", "surrogatepass")
            state.update(struct.pack("<q", len(data)) + data)
        (number,) = struct.unpack("<Q", state.digest())
        return float((number >> 11) * 2.0**-53)


@dataclass(frozen=True)
class Length:
    """A pair scores the number of words of its caption: longer wins, as in PAC-S's length baseline.

    Captions of equal length tie, and one caption ties with itself on any two images, so every image question
    is a tie.
    """

    does: ClassVar[tuple[Ability, ...]] = ("scores_pairs",)

    needs: ClassVar[tuple[str, ...]] = ("captions",)

    identity: Identity

    def score(self, images: Sequence[Image], captions: Sequence[Caption]) -> Float[ndarray, "pairs"]:
        """Words between blanks; raises `DataError` where a caption's text is not at hand.

        >>> captions = [Caption("0", "a red cat"), Caption("1", "cat")]
        >>> Length(Identity("blind:length")).score([Image("a"), Image("a")], captions)
        array([3., 1.])
        """
        return np.asarray([len(text_of(caption).split()) for caption in captions], dtype=np.float64)


def load(argument: str, options: Options = DEFAULT) -> Constant | Random | Length:
    """`constant`, `random` (draws from `options.seed`) or `length`; `UnknownNameError` for any other.

    >>> load("constant").score([Image("a")], [Caption("0", "a cat")])
    array([0.])
    """
    name = f"blind:{argument}"
    reject_unused_options(name, options)
    if argument == "random":
        return Random(Identity(name, revision="1", options={"seed": options.seed}), options.seed)
    if argument == "constant":
        return Constant(Identity(name, revision="1"))
    if argument == "length":
        return Length(Identity(name, revision="1"))
    raise UnknownNameError("blind scorer", argument, ["constant", "random", "length"], where=name)
