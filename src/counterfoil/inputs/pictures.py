"""The one way to open a picture: formats that images of this field come in, and no other.

Pillow looks at the bytes and not at the name, and hands PostScript called x.png to Ghostscript, a program.
"""

from io import BytesIO
from pathlib import Path

import numpy as np
import PIL.Image

#: Names of formats as Pillow has them, the likeliest first; a version that lacks one does without.
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "JPEG2000", "AVIF")


def open_picture(source: Path | BytesIO) -> PIL.Image.Image:
    """A picture whose header is read, to be closed; raises what `PIL.Image.open` does."""
    PIL.Image.init()
    return PIL.Image.open(source, formats=[name for name in FORMATS if name in PIL.Image.OPEN])


def in_rgb(picture: PIL.Image.Image) -> PIL.Image.Image:
    """The picture in RGB; grey levels of 16 bits by their high byte, where Pillow would leave white.

    >>> grey = PIL.Image.fromarray(np.array([[0, 0x8000, 0xFFFF]], np.uint16))
    >>> np.asarray(in_rgb(grey))[0, :, 0].tolist()
    [0, 128, 255]
    """
    # A grey map of 16 bits has more of them in Pillow than in its file.
    if not picture.mode.startswith("I;16") and (picture.mode, picture.format) != ("I", "PPM"):
        return picture.convert("RGB")
    levels = (np.asarray(picture, dtype=np.uint32) >> 8).astype(np.uint8)
    rgb = PIL.Image.fromarray(levels).convert("RGB")
    rgb.info = picture.info
    return rgb
