"""The two ways in which a scene is drawn: as a photograph of cut paper, and as a generator would have it.

A person sees the same scene in both, and colours keep their names; a classifier that looks at pixels tells
them apart by grain, gloss and the colour of the light.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Colour = tuple[int, int, int]

#: Seven colours that keep their names and stay apart for red-green blind eyes (they differ in lightness).
PALETTE: Mapping[str, Colour] = {
    "red": (196, 45, 58),
    "orange": (240, 134, 40),
    "yellow": (242, 198, 44),
    "green": (26, 140, 92),
    "blue": (48, 116, 206),
    "purple": (104, 50, 138),
    "pink": (242, 146, 182),
}

#: The same, a little brighter and colder, as of painted plastic.
GLOSSY: Mapping[str, Colour] = {
    "red": (205, 40, 66),
    "orange": (243, 138, 46),
    "yellow": (243, 206, 40),
    "green": (20, 150, 104),
    "blue": (56, 122, 220),
    "purple": (110, 50, 156),
    "pink": (243, 148, 196),
}

#: The sheets under natural light, and what a generator makes of them.
SHEETS: Mapping[str, Colour] = {"cream": (242, 236, 224), "mist": (232, 236, 239), "sage": (233, 237, 225)}
BACKDROPS: Mapping[str, Colour] = {"cream": (238, 233, 232), "mist": (228, 233, 243), "sage": (228, 236, 232)}


@dataclass(frozen=True)
class Style:
    """How things look. Lengths are parts of the picture's side, levels are of 255."""

    palette: Mapping[str, Colour]
    sheets: Mapping[str, Colour]
    #: White ink of stripes and dots.
    ink: Colour
    #: The colour of shadows, how dark they are at most, how soft, and how far they fall right and down.
    shade: Colour
    dark: float
    soft: float
    fall: tuple[float, float]
    #: How much lighter a thing is at its top than at its foot.
    rise: float
    #: How bright the spot is in which a thing mirrors a lamp; 0 for paper.
    gloss: float
    #: Where the light may come from (x, y), one per picture, and how fast the sheet darkens from there.
    lights: tuple[tuple[float, float], ...]
    falloff: float
    #: Standard deviation of the grain; none at 0.
    grain: float


LOOKS: Mapping[str, Style] = {
    "natural": Style(
        palette=PALETTE,
        sheets=SHEETS,
        ink=(243, 241, 234),
        shade=(58, 48, 40),
        dark=0.36,
        soft=0.009,
        fall=(0.006, 0.013),
        rise=24.0,
        gloss=0.0,
        lights=((0.35, 0.3), (0.25, 0.2), (0.45, 0.15), (0.3, 0.5)),
        falloff=13.0,
        grain=2.2,
    ),
    "synthetic": Style(
        palette=GLOSSY,
        sheets=BACKDROPS,
        ink=(243, 243, 243),
        shade=(52, 44, 96),
        dark=0.30,
        soft=0.017,
        fall=(-0.008, 0.017),
        rise=8.0,
        gloss=62.0,
        lights=((0.5, 0.42), (0.6, 0.3), (0.55, 0.55), (0.7, 0.35)),
        falloff=34.0,
        grain=0.0,
    ),
}

#: The names of the styles.
STYLES = tuple(LOOKS)
