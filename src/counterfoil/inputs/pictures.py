"""The one way to open a picture: formats that images of this field come in, and no other.

Pillow looks at the bytes and not at the name, and hands PostScript called x.png to Ghostscript, a program.
"""

from functools import cache
from io import BytesIO
from pathlib import Path

import PIL.Image

#: Names of formats as Pillow has them, the likeliest first; a version that lacks one does without.
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "JPEG2000", "AVIF")


def open_picture(source: Path | BytesIO) -> PIL.Image.Image:
    """A picture whose header is read, to be closed; raises what `PIL.Image.open` does.

    >>> import io
    >>> open_picture(io.BytesIO(b"%!PS-Adobe-3.0 EPSF-3.0\\n%%BoundingBox: 0 0 1 1\\n"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    PIL.UnidentifiedImageError: cannot identify image file <_io.BytesIO object at ...>
    """
    return PIL.Image.open(source, formats=_known())


@cache
def _known() -> tuple[str, ...]:
    PIL.Image.init()
    return tuple(name for name in FORMATS if name in PIL.Image.OPEN)
