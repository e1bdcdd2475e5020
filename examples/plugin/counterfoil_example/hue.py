"""A model of pairs: how near a picture's mean colour is to the colour that its caption names."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from counterfoil.benchmarks import Caption, Image
from counterfoil.errors import UnknownNameError
from counterfoil.models import Identity, ModelEntry, Options

ENTRY = ModelEntry(
    prefix="example-hue",
    argument="COLOURS",
    summary="distance of the mean colour to the named one",
    example="example-hue:primary",
    target="counterfoil_example.hue:load",
)
NAMED = {"red": (220, 40, 40), "green": (40, 200, 60), "blue": (50, 70, 220)}


@dataclass(frozen=True)
class Hue:
    """Minus the distance in RGB, so at most 0; -1,000 for a caption that names no known colour."""

    identity: Identity

    def score(self, images: Sequence[Image], captions: Sequence[Caption]) -> np.ndarray:
        """One number per pair of images[i] and captions[i]; higher is a better match."""
        return np.array([self._score(*pair) for pair in zip(images, captions, strict=True)])

    def _score(self, image: Image, caption: Caption) -> float:
        mean = np.asarray(image.decode(), dtype=np.float64).mean(axis=(0, 1))
        words = (caption.text or "").split()
        known = [NAMED[word] for word in words if word in NAMED]
        return max((-float(np.linalg.norm(mean - colour)) for colour in known), default=-1000.0)


def load(argument: str, options: Options) -> Hue:
    """`example-hue:primary`."""
    if argument != "primary":
        raise UnknownNameError("set of colours", argument, ["primary"], where="example-hue")
    return Hue(Identity("example-hue:primary", revision="1"))
