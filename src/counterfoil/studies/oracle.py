"""A scorer that knows: `world:oracle` reads captions back to what they mean and asks the scene itself.

What it gets less than everything in is a fault of a benchmark or of a measure, never of a model.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.data.records import Caption, Image
from counterfoil.errors import DataError, UnknownNameError
from counterfoil.scorers.base import DEFAULT, Identity, Options, only, text_of
from counterfoil.scorers.blind import Random
from counterfoil.world.drawings import Drawn
from counterfoil.world.reading import matches
from counterfoil.world.scenes import Scene

#: How much of a score is chance, so that pairs that are all right (or all wrong) do not tie.
_APART = 1e-6


@dataclass(frozen=True)
class Oracle:
    """A pair scores 1 where the caption is true of the scene that the picture shows, else 0.

    To which a millionth is added by chance, the same for the same pair.
    """

    identity: Identity
    chance: Random

    def score(self, images: Sequence[Image], captions: Sequence[Caption]) -> Float[ndarray, "pairs"]:
        """One number per pair, in [0, 1.000001).

        Raises `DataError` for pictures that are not drawn from scenes, and captions that are not the world's.
        """
        truth = [
            matches(text_of(caption), _scene(image)) for image, caption in zip(images, captions, strict=True)
        ]
        return np.asarray(truth, dtype=np.float64) + _APART * self.chance.score(images, captions)


def load(argument: str, options: Options = DEFAULT) -> Oracle:
    """The scorer `world:oracle`; raises `UnknownNameError` for other names."""
    where = f"world:{argument}"
    if argument != "oracle":
        raise UnknownNameError("scorer of the world", argument, ["oracle"])
    only(where, options)
    identity = Identity(name=where, options={"seed": options.seed})
    return Oracle(identity, Random(identity, options.seed))


def _scene(image: Image) -> Scene:
    if isinstance(image.source, Drawn):
        return image.source.scene
    raise DataError(
        "the oracle knows the scenes behind pictures, and this one is only a picture",
        where=str(image.source),
        hint="ask it about world-quads, world-choices or world-gallery by name, without --data",
    )
