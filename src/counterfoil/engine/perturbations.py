"""Perturbed items: captions without one of their words, and pictures with a cell of a grid covered.

What a scorer gives to them says what it leans on. Nothing here knows a model: a word is cut out of the text
or replaced by a mask token, a cell is painted over with the picture's mean colour or its own blur.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import PIL.Image
from PIL import ImageFilter

from counterfoil.benchmarks.records import Caption, Image
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.metrics.heatmaps import Box
from counterfoil.store import digest

#: What a covered cell shows: the mean colour of the whole picture, or the cell itself, blurred.
FILLS = ("mean", "blur")
#: The blur's radius in parts of the picture's shorter side.
_BLUR = 0.1
#: Cells to a side of the grid.
MOST_CELLS = 64

_WORD = re.compile(r"\w+(?:['’.-]\w+)*")


@dataclass(frozen=True)
class Span:
    """A part of a caption: its first letter and the one behind its last."""

    start: int
    end: int


def words_of(text: str) -> tuple[Span, ...]:
    """The words of a caption, without the marks between them.

    >>> text = "A dog's well-known ball, red."
    >>> [text[word.start : word.end] for word in words_of(text)]
    ['A', "dog's", 'well-known', 'ball', 'red']
    """
    return tuple(Span(*match.span()) for match in _WORD.finditer(text))


def without(text: str, span: Span, mask: str | None = None) -> str:
    """The caption with a part cut out, and the blank beside it; or with a mask token in its place.

    >>> without("A red cat.", Span(2, 5)), without("A red cat.", Span(2, 5), "[MASK]")
    ('A cat.', 'A [MASK] cat.')
    >>> without("red, blue", Span(0, 3)), without("cat", Span(0, 3))
    (', blue', '')
    """
    before, after = text[: span.start], text[span.end :]
    if mask is not None:
        return before + mask + after
    if not before or (before[-1].isspace() and after[:1].isspace()):
        after = after.lstrip()
    return (before + after).rstrip()


@dataclass(frozen=True)
class Occlusion:
    """A grid of `cells` x `cells` over a picture, each cell covered in turn with `fill`.

    Raises `InputError` for a grid of less than 1 or more than 64 cells to a side, `UnknownNameError` for
    another fill.
    """

    cells: int = 7
    fill: str = "mean"

    def __post_init__(self) -> None:
        if not 1 <= self.cells <= MOST_CELLS:
            raise InputError("cells to a side of the grid", given=self.cells, allowed=f"1 to {MOST_CELLS}")
        if self.fill not in FILLS:
            raise UnknownNameError("fill of covered cells", self.fill, FILLS)

    def of(self, image: Image, key: str) -> tuple[list[Image], list[str]]:
        """The picture with each cell covered, row by row, and names for what they show.

        `key` is the name of the whole picture's content.
        """
        steps = np.arange(self.cells + 1) / self.cells
        boxes = [
            (float(steps[column]), float(steps[row]), float(steps[column + 1]), float(steps[row + 1]))
            for row in range(self.cells)
            for column in range(self.cells)
        ]
        images = [
            Image(f"{image.id} without {number} of {self.cells} x {self.cells} by {self.fill}", source)
            for number, source in enumerate(Covered(image, box, self.fill) for box in boxes)
        ]
        return images, [digest(f"{key} covered {box} {self.fill}".encode()) for box in boxes]


@dataclass(frozen=True)
class Covered:
    """The source of a picture with one part covered; it is painted when it is asked for."""

    image: Image
    #: (left, top, right, bottom) in parts of the sides.
    box: Box
    fill: str

    def read(self) -> bytes:
        """The picture as PNG."""
        buffer = io.BytesIO()
        self.picture().save(buffer, format="PNG")
        return buffer.getvalue()

    def picture(self) -> PIL.Image.Image:
        """The picture in RGB; raises `DataError` where the whole one cannot be read."""
        whole, cover = _painted(self.image, self.fill)
        sides = (whole.width, whole.height) * 2
        left, top, right, bottom = (round(part * side) for part, side in zip(self.box, sides, strict=True))
        covered = whole.copy()
        covered.paste(cover.crop((left, top, right, bottom)), (left, top))
        return covered

    def __str__(self) -> str:
        return f"{self.image.source} with a part covered"


@lru_cache(maxsize=2)
def _painted(image: Image, fill: str) -> tuple[PIL.Image.Image, PIL.Image.Image]:
    """The picture, and what covers it; the cells of one picture come one after another."""
    whole = image.decode()
    if fill == "blur":
        return whole, whole.filter(ImageFilter.GaussianBlur(_BLUR * min(whole.size)))
    red, green, blue = (round(float(level)) for level in np.asarray(whole).mean(axis=(0, 1)))
    return whole, PIL.Image.new("RGB", whole.size, (red, green, blue))


def shortened(caption: Caption, spans: Sequence[Span], mask: str | None) -> list[Caption]:
    """The caption without each of its parts in turn; its text must be at hand."""
    assert caption.text is not None
    return [
        Caption(f"{caption.id} without {span.start}-{span.end}", without(caption.text, span, mask))
        for span in spans
    ]
