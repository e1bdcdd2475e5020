"""Images of a campaign, named by their content, and read only when they are written."""

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from counterfoil.data.records import FileSource, Image
from counterfoil.errors import DataError
from counterfoil.inputs.pictures import open_picture
from counterfoil.store import digest

#: Formats that every browser shows, by Pillow's name, and the endings of their files. Others become PNG.
ENDINGS: Mapping[str, str] = {"JPEG": ".jpg", "PNG": ".png", "WEBP": ".webp", "GIF": ".gif"}


@dataclass(eq=False)
class Pictures(Mapping[str, bytes]):
    """The images that were added, by name: a digest of the bytes and an ending.

    Equal bytes are one image. Bytes are read to name them and again to give them out, and none are kept, so
    that a campaign of any size needs the memory of one image.

    >>> import numpy as np
    >>> from counterfoil.data.records import PixelSource
    >>> found = Pictures()
    >>> square = Image("red", PixelSource(np.zeros((8, 8, 3), np.uint8)))
    >>> name = found.add(square)
    >>> name.endswith(".png"), found.add(square) == name, len(found), found[name][:4]
    (True, True, 1, b'\\x89PNG')
    """

    _images: dict[str, Image] = field(default_factory=dict)
    _named: dict[tuple[Path, object], str] = field(default_factory=dict)

    def add(self, image: Image) -> str:
        """The name of an image in the campaign.

        Raises `DataError` for an image that is not at hand, cannot be read or is no image.
        """
        key = (image.source.path, image.crop) if isinstance(image.source, FileSource) else None
        if key is not None and key in self._named:
            return self._named[key]
        data, ending = _shown(image)
        name = digest(data) + ending
        self._images.setdefault(name, image)
        if key is not None:
            self._named[key] = name
        return name

    def __getitem__(self, name: str) -> bytes:
        """The bytes of an image; raises `DataError` where the file changed since it was added."""
        data, ending = _shown(self._images[name])
        if digest(data) + ending != name:
            raise DataError("the image changed while it was copied", where=self._images[name].source)
        return data

    def __contains__(self, name: object) -> bool:
        return name in self._images

    def __iter__(self) -> Iterator[str]:
        return iter(self._images)

    def __len__(self) -> int:
        return len(self._images)


def _shown(image: Image) -> tuple[bytes, str]:
    """The bytes as they are where browsers show them, else as PNG; and the ending of a file of them."""
    data = image.read()
    if image.crop is None:
        try:
            with open_picture(io.BytesIO(data)) as picture:
                ending = ENDINGS.get(picture.format or "")
        # Pillow raises anything from OSError to KeyError; `decode` says what is wrong in one line.
        except Exception:
            ending = None
        if ending is not None:
            return data, ending
    buffer = io.BytesIO()
    image.decode().save(buffer, format="PNG")
    return buffer.getvalue(), ENDINGS["PNG"]
