"""The route of a picture from its file to an image tower, where it is not the reference: faster, and other.

The reference decodes all pixels and resizes them by Pillow, as the official evaluations do. Three settings
depart from it, each of which changes scores a little and is part of a scorer's identity:

* `decode=reduced`: JPEG files are decoded at 1/2, 1/4 or 1/8 of their size, as long as no side falls below
  the model's; what else is not JPEG, or has a crop, is decoded whole.
* `decode=torchvision`: JPEG files are decoded by torchvision, on a GPU by nvJPEG; needs `resize=device`.
* `resize=device`: whole pictures are sent as bytes, and resized, cropped and normalised on the device.

A fourth, `compile`, makes one program of the image tower (`counterfoil.scorers.compiled`). How far a route
moves embeddings and decisions is measured by `benchmarks/routes.py`.
"""

import io
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import PIL.Image
from jaxtyping import UInt8
from numpy import ndarray

from counterfoil.data.records import MAX_PIXELS, Image, Pictured, decode
from counterfoil.errors import InputError
from counterfoil.inputs.pictures import open_picture
from counterfoil.scorers.base import ScorerSettings
from counterfoil.scorers.images import Preparation, Resized
from counterfoil.scorers.registry import IMAGE_ROUTES

#: The markers of JPEG that torchvision decodes to the same kind of picture: baseline and progressive.
_FRAMES = (0xC0, 0xC1, 0xC2)


@dataclass(frozen=True)
class ImageRoute:
    """Where pictures are decoded and resized, and whether their tower is compiled."""

    decode: str = "exact"
    resize: str = "host"
    compile: str = "no"

    @classmethod
    def of(cls, settings: ScorerSettings) -> "ImageRoute":
        """The route that settings name; raises `InputError` for values that are none, or do not go together.

        >>> ImageRoute.of(ScorerSettings("open-clip:x", {"decode": "reduced"})).facts()
        {'decode': 'reduced'}
        """
        settings.only(*IMAGE_ROUTES)
        found = cls(**{name: settings.one_of(name, values) for name, values in IMAGE_ROUTES.items()})
        if found.decode == "torchvision" and found.resize != "device":
            raise InputError(
                "torchvision decodes to the device, where pictures are then resized",
                where=settings.where,
                given=f"decode=torchvision with resize={found.resize}",
                hint="--set resize=device",
            )
        return found

    def facts(self) -> dict[str, str]:
        """What of the route is not the reference, for an identity; nothing of the reference itself."""
        return {name: value for name, value in asdict(self).items() if value != IMAGE_ROUTES[name][0]}

    @property
    def moves_pixels(self) -> bool:
        """Whether the tower sees other pixels than those of the reference."""
        return self.decode != "exact" or self.resize != "host"

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
                given=", ".join(f"{name}={value}" for name, value in self.facts().items()),
                hint="leave out --set decode and --set resize",
            )
        least = resized.size if self.decode == "reduced" else 0
        if self.resize == "host":
            return ReducedPicture(resized)
        return EncodedPicture() if self.decode == "torchvision" else WholePicture(least)


REFERENCE = ImageRoute()


@dataclass(frozen=True)
class ReducedPicture:
    """A preparation that decodes JPEG files at a reduced size, then resizes as the reference does."""

    resized: Resized

    def __call__(self, picture: PIL.Image.Image) -> UInt8[ndarray, "size size 3"]:
        """The pixels of a picture that is decoded already: those of the reference."""
        return self.resized(picture)

    def of_image(self, image: Image) -> UInt8[ndarray, "size size 3"]:
        """The pixels of an image; raises `DataError` where it cannot be read."""
        return self.resized(decode_reduced(image, self.resized.size))


@dataclass(frozen=True)
class WholePicture:
    """A preparation that leaves resizing to the device; `least` above 0 decodes at a reduced size."""

    least: int = 0

    def __call__(self, picture: PIL.Image.Image) -> UInt8[ndarray, "height width 3"]:
        """All pixels of a picture."""
        return np.asarray(picture)

    def of_image(self, image: Image) -> UInt8[ndarray, "height width 3"]:
        """The pixels of an image; raises `DataError` where it cannot be read."""
        return np.asarray(decode_reduced(image, self.least) if self.least else image.decode())


@dataclass(frozen=True)
class EncodedPicture:
    """A preparation that hands on the bytes of JPEG files as they are, and all pixels of other images."""

    def __call__(self, picture: PIL.Image.Image) -> UInt8[ndarray, "height width 3"]:
        """All pixels of a picture."""
        return np.asarray(picture)

    def of_image(self, image: Image) -> UInt8[ndarray, "..."]:
        """(bytes,) of a JPEG of three colours, (height, width, 3) of anything else, which is decoded here."""
        if not _plain(image):
            return np.asarray(image.decode())
        data = image.read()
        if is_jpeg(data) and _fits(data):
            return np.frombuffer(data, dtype=np.uint8)
        return np.asarray(decode(data, where=str(image.source)))


def decode_reduced(image: Image, least: int) -> PIL.Image.Image:
    """The picture of an image; a JPEG file is decoded at the smallest size with no side below `least`.

    Sizes are 1, 1/2, 1/4 and 1/8. A crop is of the whole picture, which is then decoded, and so is one that
    is in memory. Raises `DataError` naming the file where it is broken.
    """
    if not _plain(image):
        return image.decode()
    return decode(image.read(), where=str(image.source), least=least)


def is_jpeg(data: bytes) -> bool:
    """Whether bytes are a JPEG of three colours, baseline or progressive, that says nothing of its colours.

    Adobe's marker tells of RGB and CMYK in JPEG, of which decoders make different things.

    >>> is_jpeg(b"\\x89PNG\\r\\n")
    False
    """
    if data[:2] != b"\xff\xd8":
        return False
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xEE:
            return False
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return marker in _FRAMES and data[at + 9] == 3
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return False


def _fits(data: bytes) -> bool:
    """Whether a picture has no more pixels than `decode` takes, which says what is wrong with any other."""
    try:
        with open_picture(io.BytesIO(data)) as picture:
            return picture.width * picture.height <= MAX_PIXELS
    # Pillow raises anything from OSError to KeyError, and an error of its own for a bomb.
    except Exception:
        return False


def _plain(image: Any) -> bool:
    """Whether an image is the whole of what its encoded bytes show."""
    return type(image) is Image and image.crop is None and not isinstance(image.source, Pictured)
