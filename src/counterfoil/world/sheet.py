"""A contact sheet: pairs of pictures with the captions that tell them apart, for people to look at."""

from collections.abc import Sequence
from functools import lru_cache
from textwrap import wrap

import PIL.Image
from PIL import Image, ImageDraw, ImageFont

from counterfoil.errors import InputError
from counterfoil.world.captions import text
from counterfoil.world.edits import Contrast
from counterfoil.world.painting import STYLES
from counterfoil.world.render import draw

_PAGE, _INK, _FAINT = (252, 251, 248), (44, 40, 36), (128, 120, 112)
_LETTERS, _LINE, _GAP = 13, 17, 14
_FONTS = ImageFont.FreeTypeFont | ImageFont.ImageFont


def contact_sheet(
    contrasts: Sequence[Contrast], *, size: int = 192, styles: Sequence[str] = STYLES, seed: int = 0
) -> PIL.Image.Image:
    """One row per contrast: its two scenes in each style, and under every picture the caption true of it.

    `size` is the side of a picture in pixels, `seed` that of grain and light. Raises `InputError` where there
    are no contrasts or no styles.

    >>> from counterfoil.world.sample import contrasts
    >>> contact_sheet(contrasts(2), size=96).width
    454
    """
    if not contrasts or not styles:
        raise InputError(
            "a contact sheet needs contrasts and styles", given=f"{len(contrasts)}, {len(styles)}"
        )
    columns = [(style, i) for style in styles for i in (0, 1)]
    said = [[_lines(text(caption), size) for caption in contrast.captions] for contrast in contrasts]
    # A title, pictures, captions.
    heights = [_LINE + size + 6 + _LINE * max(map(len, pair)) + _GAP for pair in said]
    width = _GAP + len(columns) * (size + _GAP)
    page = Image.new("RGB", (width, 2 * _GAP + _LINE + sum(heights)), _PAGE)
    pen = ImageDraw.Draw(page)
    for column, (style, i) in enumerate(columns):
        if i == 0:
            pen.text((_GAP + column * (size + _GAP), _GAP // 2), style, fill=_INK, font=_font())
    top = _GAP + _LINE
    for contrast, lines, height in zip(contrasts, said, heights, strict=True):
        pen.text((_GAP, top), contrast.subset.replace("_", " "), fill=_FAINT, font=_font())
        for column, (style, i) in enumerate(columns):
            left = _GAP + column * (size + _GAP)
            page.paste(draw(contrast.scenes[i], size, style=style, seed=seed), (left, top + _LINE))
            for row, line in enumerate(lines[i]):
                at = left, top + _LINE + size + 4 + row * _LINE
                pen.text(at, line, fill=_INK, font=_font())
        top += height
    return page


@lru_cache(maxsize=1)
def _font() -> _FONTS:
    return ImageFont.load_default(_LETTERS)


def _lines(sentence: str, width: int) -> list[str]:
    """The sentence in lines that fit under a picture of `width` pixels."""
    font = _font()
    letters = max(len(sentence), 1)
    while letters > 1:
        lines = wrap(sentence, letters)
        if all(font.getlength(line) <= width for line in lines):
            return lines
        letters -= 1
    return wrap(sentence, 1)
