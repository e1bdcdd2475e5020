"""The route of a picture from its file to an image tower, where it is not the reference: faster, and other.

The reference decodes all pixels and resizes them by Pillow, as the official evaluations do. Two settings
depart from it, each of which changes scores a little and is part of a scorer's identity:

* `resize=device`: whole pictures are sent as bytes, and resized, cropped and normalised on the device.
* `compile`: the image tower becomes one program (`counterfoil.scorers.compiled`).

How far a route moves embeddings and decisions is measured by `benchmarks/routes.py`.
"""

from dataclasses import asdict, dataclass

import numpy as np
import PIL.Image
from jaxtyping import UInt8
from numpy import ndarray

from counterfoil.errors import InputError
from counterfoil.scorers.base import ScorerSettings
from counterfoil.scorers.images import Preparation, Resized

#: The settings that name a route, and their values, first the reference's.
CHOICES = {"resize": ("host", "device"), "compile": ("no", "yes", "graphs")}


@dataclass(frozen=True)
class ImageRoute:
    """Where pictures are resized, and whether their tower is compiled."""

    resize: str = "host"
    compile: str = "no"

    @classmethod
    def of(cls, settings: ScorerSettings) -> "ImageRoute":
        """The route that settings name; raises `InputError` for values that are none.

        >>> ImageRoute.of(ScorerSettings("open-clip:x", {"resize": "device"})).facts()
        {'resize': 'device'}
        """
        if "decode" in settings.given:
            raise InputError(
                "the setting was removed",
                where=settings.where,
                given=f"decode={settings.given['decode']}",
                hint="leave it out, which decodes whole pictures; resize=device takes them to the device",
            )
        settings.only(*CHOICES)
        return cls(**{name: settings.one_of(name, values) for name, values in CHOICES.items()})

    def facts(self) -> dict[str, str]:
        """What of the route is not the reference, for an identity; nothing of the reference itself."""
        return {name: value for name, value in asdict(self).items() if value != CHOICES[name][0]}

    @property
    def moves_pixels(self) -> bool:
        """Whether the tower sees other pixels than those of the reference."""
        return self.resize == "device"

    def preparation(self, resized: Preparation, *, where: str) -> Preparation:
        """What workers do to a picture on this route; the reference's own where no pixel moves.

        Raises `InputError` for models whose pictures are prepared in a way of their own.
        """
        if not self.moves_pixels:
            return resized
        if not isinstance(resized, Resized):
            raise InputError(
                "the model's pictures are prepared by its library alone",
                where=where,
                given=f"resize={self.resize}",
                hint="leave out --set resize",
            )
        return WholePicture()


REFERENCE = ImageRoute()


@dataclass(frozen=True)
class WholePicture:
    """A preparation that leaves resizing to the device."""

    def __call__(self, picture: PIL.Image.Image) -> UInt8[ndarray, "height width 3"]:
        """All pixels of a picture."""
        return np.asarray(picture)
