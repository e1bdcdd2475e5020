"""The oracle `world:oracle`: it parses captions back to their meaning and checks them against the scene.

What it gets less than everything in is a fault of a benchmark or of a measure, never of a model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.benchmarks.records import Caption, Image
from counterfoil.errors import DataError, UnknownNameError
from counterfoil.models.base import DEFAULT, Ability, Identity, Options, reject_unused_options, text_of
from counterfoil.models.baselines import Random
from counterfoil.world.painting import LazyDrawing
from counterfoil.world.ratings import GradedDrawing, level
from counterfoil.world.truth import matches, read

#: The random part of a score, so that pairs that are all right (or all wrong) do not tie.
_JITTER = 1e-6


@dataclass(frozen=True)
class Oracle:
    """A pair scores 1 where the caption is true of the scene, else 0, and a random millionth.

    Captions that are right by degrees score their degree, and nothing is added: pictures of `world-rated` and
    `world-preferences` the level, 1 to 4.
    """

    does: ClassVar[tuple[Ability, ...]] = ("scores_pairs",)

    identity: Identity
    chance: Random

    def score(self, images: Sequence[Image], captions: Sequence[Caption]) -> Float[ndarray, "pairs"]:
        """One number per pair; `DataError` for what is not of the world."""
        scores = []
        lucks = self.chance.score(images, captions).tolist()
        for image, caption, luck in zip(images, captions, lucks, strict=True):
            source, text = image.source, text_of(caption)
            if isinstance(source, GradedDrawing):
                scores.append(level(read(text), source.scene))
            elif isinstance(source, LazyDrawing):
                scores.append(matches(text, source.scene) + _JITTER * luck)
            else:
                what = "the oracle knows the scenes behind pictures, and this one is only a picture"
                hint = "ask it about world-quads, world-rated and others of the world by name, without --data"
                raise DataError(what, where=str(source), hint=hint)
        return np.asarray(scores, dtype=np.float64)


def load(argument: str, options: Options = DEFAULT) -> Oracle:
    """The model `world:oracle`; raises `UnknownNameError` for other names."""
    where = f"world:{argument}"
    if argument != "oracle":
        raise UnknownNameError("model of the world", argument, ["oracle"])
    reject_unused_options(where, options)
    identity = Identity(name=where, revision="1", options={"seed": options.seed})
    return Oracle(identity, Random(identity, options.seed))
