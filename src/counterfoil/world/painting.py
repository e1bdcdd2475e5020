"""Pictures of scenes: styles, outlines of shapes, stamps, sheets of paper and grain.

Every thing is painted once, with its shadow; a picture is a copy of a sheet on which these stamps are laid at
whole pixels, under a grain.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any
from zlib import crc32

import numpy as np
import PIL.Image
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from counterfoil.benchmarks.records import BytesSource, PixelSource
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.world.scenes import Scene

Colour = tuple[int, int, int]

#: Seven colours that keep their names and stay apart for red-green blind eyes (they differ in lightness): of
#: paper, and a little brighter and colder, as of painted plastic.
_COLOURS: Mapping[str, tuple[Colour, Colour]] = {
    "red": ((196, 45, 58), (205, 40, 66)),
    "orange": ((240, 134, 40), (243, 138, 46)),
    "yellow": ((242, 198, 44), (243, 206, 40)),
    "green": ((26, 140, 92), (20, 150, 104)),
    "blue": ((48, 116, 206), (56, 122, 220)),
    "purple": ((104, 50, 138), (110, 50, 156)),
    "pink": ((242, 146, 182), (243, 148, 196)),
}
PALETTE, GLOSSY = ({name: looks[i] for name, looks in _COLOURS.items()} for i in (0, 1))

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

STYLES = tuple(LOOKS)


Points = NDArray[np.float64]


def _arc(degrees: NDArray[Any]) -> Points:
    """Points of the circle of radius 1."""
    angles = np.deg2rad(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _ring(corners: int, radius: float, *, start: float = -90.0) -> Points:
    """The corners of a regular polygon, the first at `start` degrees (-90 is up)."""
    return radius * _arc(start + 360.0 / corners * np.arange(corners))


_STAR = np.stack([_ring(5, 1.15), _ring(5, 0.56, start=-54.0)], axis=1).reshape(10, 2)
_T = np.linspace(0, 2 * np.pi, 96, endpoint=False)
_CLEFT = -(13 * np.cos(_T) - 5 * np.cos(2 * _T) - 2 * np.cos(3 * _T) - np.cos(4 * _T))
#: A crescent open to the right: an outer arc there and an inner one back.
_MOON = [_arc(np.linspace(-52, -308, 64)), 0.795 * _arc(np.linspace(-263, -97, 64)) + np.array([0.713, 0.0])]

#: The polygons whose union is the shape.
OUTLINES: Mapping[str, tuple[Points, ...]] = {
    "circle": (_ring(72, 0.93),),
    "square": (_ring(4, 1.16, start=45.0),),
    "triangle": (_ring(3, 1.18) + np.array([0.0, 0.2]),),
    "star": (_STAR + np.array([0.0, 0.06]),),
    "heart": (np.stack([16 * np.sin(_T) ** 3, _CLEFT - 2.5], axis=1) / 16.5,),
    "diamond": (_ring(4, 1.12) * [0.76, 1.03],),
    "moon": ((np.concatenate(_MOON) + np.array([0.22, 0.0])) * 1.1,),
    "flower": (*(_ring(40, 0.43) + middle for middle in _ring(5, 0.62)), _ring(40, 0.5)),
    "ring": (_ring(96, 1.06),),
    "box": (_ring(4, 1.0 * 2**0.5, start=45.0),),
}

#: What is cut out of the containers again: a small thing fits in with clear air on all sides.
HOLES: Mapping[str, Points] = {"ring": _ring(96, 0.86), "box": _ring(4, 0.8 * 2**0.5, start=45.0)}


#: Radii as parts of the picture's side.
RADII = {"small": 0.076, "large": 0.132}

#: No pixel is lighter or darker than this before the grain, and no grain stronger: together they stay a byte.
DARKEST, LIGHTEST, STRONGEST = 12, 243, 12

#: The distance between stripes and between dots, as parts of the side: the same paper for small and large.
_STRIPES, _DOTS = 0.062, 0.066
#: Where one dot lies, in radii: the next ones then fall on a small thing too, three in all.
_DOT_AT: Mapping[str, tuple[float, float]] = {
    shape: {"heart": (0.0, 0.45), "moon": (-0.38, 0.0), "triangle": (0.0, -0.28)}.get(shape, (0.0, -0.5))
    for shape in OUTLINES
}
#: How far a shape reaches at most, in radii.
_REACH = 1.24
#: The grain is cut from a tile that is larger by this many pixels than the picture.
_SLACK = 64

Bytes = NDArray[np.uint8]
Levels = NDArray[np.uint16]


@lru_cache(maxsize=4096)
def stamp(
    shape: str, size_name: str, texture: str, colour: str, turn: int, side: int, style: str
) -> tuple[Levels, Levels]:
    """(keep, add), (width, width, 3) and even `width`: under becomes `add + (keep * under + 255) // 256`.

    `keep` is at most 255, which keeps everything.
    """
    look = LOOKS[style]
    mask, shadow = _mask(shape, size_name, turn, side), _shadow(shape, size_name, turn, side, style)
    width = len(mask)
    y, x = (np.mgrid[0:width, 0:width] + 0.5 - width / 2) / (RADII[size_name] * side)
    paper = np.asarray(look.palette[colour]) - look.rise / 2 * np.clip(y, -1, 1)[:, :, None]
    if texture != "plain":
        ink = _ink(shape, size_name, texture, turn, side)[:, :, None]
        paper = paper * (1 - ink) + np.asarray(look.ink) * ink
    if look.gloss:
        paper = paper + look.gloss * np.exp(-((x + 0.3) ** 2 / 0.16 + (y + 0.42) ** 2 / 0.07))[:, :, None]
    paper = np.clip(paper, DARKEST, LIGHTEST)
    mask, shadow = mask[:, :, None], look.dark * shadow[:, :, None]
    keep = np.round(255 * (1 - mask) * (1 - shadow))
    add = np.floor(mask * paper + (1 - mask) * shadow * np.asarray(look.shade))
    return np.broadcast_to(keep, add.shape).astype(np.uint16), add.astype(np.uint16)


@lru_cache(maxsize=64)
def sheet(paper: str, side: int, style: str, light: int) -> Bytes:
    """The sheet by itself, (side, side, 3), lightest where the style's light number `light` is."""
    look = LOOKS[style]
    right, down = look.lights[light]
    y, x = (np.mgrid[0:side, 0:side] + 0.5) / side
    fall = 3.0 - look.falloff * ((x - right) ** 2 + (y - down) ** 2)
    pixels = np.asarray(look.sheets[paper], dtype=np.float64) + fall[:, :, None]
    return np.clip(np.round(pixels), DARKEST, LIGHTEST).astype(np.uint8)


@lru_cache(maxsize=8)
def _grain(side: int, strength: float) -> Bytes:
    """What is added to every pixel modulo 256, (side, side, 3) and grey."""
    levels = np.round(np.random.default_rng(7).normal(size=(side, side, 1)) * strength)
    # Repeated per channel in memory: adding it to a picture is then five times as fast.
    grey = np.repeat(np.clip(levels, -STRONGEST, STRONGEST), 3, axis=2)
    return grey.astype(np.int8).view(np.uint8)


def _over(side: int) -> int:
    """How many times as large things are drawn: small pictures need it more."""
    return max(4, ceil(384 / side))


@lru_cache(maxsize=512)
def _large(shape: str, size_name: str, turn: int, side: int, part: float = 1.0) -> Image.Image:
    """Where the paper is, several times as large as it will be, its corners a little round."""
    over, radius = _over(side), RADII[size_name] * side * _over(side)
    # The side of a stamp: the shape and its shadow in every style, even so that its middle is a corner.
    reach = max(max(abs(right) for right in look.fall) + 2 * look.soft for look in LOOKS.values())
    width = 2 * ceil(side * (RADII[size_name] * _REACH + reach)) * over
    large = Image.new("L", (width, width))
    pen = ImageDraw.Draw(large)
    # A box stands straighter than cut paper lies: its corners stay within its cell.
    angle = np.deg2rad(turn / 3 if shape == "box" else turn)
    turned = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    drawn = [(outline, 255) for outline in OUTLINES[shape]]
    drawn += [(HOLES[shape], 0)] if shape in HOLES else []
    for outline, level in drawn:
        points = outline @ turned * part * radius + width / 2
        pen.polygon([(float(x), float(y)) for x, y in points], fill=level)
    # A blur and a threshold round the corners by about the blur's radius; walls are too thin for much of it.
    soft = large.filter(ImageFilter.GaussianBlur(radius * (0.03 if shape in HOLES else 0.06)))
    return soft.point([0] * 128 + [255] * 128)


@lru_cache(maxsize=512)
def _mask(shape: str, size_name: str, turn: int, side: int) -> Points:
    """How much of each pixel the paper covers."""
    return _reduced(_large(shape, size_name, turn, side), side)


@lru_cache(maxsize=512)
def _shadow(shape: str, size_name: str, turn: int, side: int, style: str) -> Points:
    """What the paper keeps from the light."""
    look, unit = LOOKS[style], side * _over(side)
    large = _large(shape, size_name, turn, side).filter(ImageFilter.GaussianBlur(look.soft * unit))
    return _reduced(ImageChops.offset(large, *(round(step * unit) for step in look.fall)), side)


@lru_cache(maxsize=1024)
def _ink(shape: str, size_name: str, texture: str, turn: int, side: int) -> Points:
    """How much of each pixel is inked. The ink stops short of the edge, so that the outline stays whole."""
    large = _large(shape, size_name, turn, side, part=0.88 if size_name == "large" else 0.86)
    unit = side * _over(side)
    y, x = (np.mgrid[0 : large.width, 0 : large.width] + 0.5 - large.width / 2) / unit
    if texture == "striped":
        inked = np.mod((x + y) / np.sqrt(2) / _STRIPES + 0.25, 1) < 0.5
    else:
        # Rows of dots, every other row shifted by half a step.
        x, y = (axis - center * RADII[size_name] for axis, center in zip((x, y), _DOT_AT[shape], strict=True))
        row = np.floor(y / (0.866 * _DOTS) + 0.5)
        along = np.mod(x / _DOTS + 0.5 * np.mod(row, 2) + 0.5, 1) - 0.5
        inked = along**2 + (y / _DOTS - 0.866 * row) ** 2 < 0.31**2
    pattern = Image.fromarray((inked * 255).astype(np.uint8))
    return _reduced(ImageChops.multiply(pattern, large), side)


def _reduced(large: Image.Image, side: int) -> Points:
    return np.asarray(large.reduce(_over(side)), dtype=np.float64) / 255


#: Smaller pictures cannot show a thing.
SMALLEST = 16


def draw(scene: Scene, size: int = 192, *, style: str = "natural", seed: int = 0) -> PIL.Image.Image:
    """The scene as an RGB picture of `size` x `size` pixels."""
    return PIL.Image.fromarray(draw_many([scene], size, style=style, seed=seed)[0])


def draw_many(
    scenes: Sequence[Scene], size: int = 192, *, style: str | Sequence[str] = "natural", seed: int = 0
) -> NDArray[np.uint8]:
    """The scenes as RGB pictures, (scenes, size, size, 3).

    `style` is one of `STYLES`, for all or one per scene; `seed` decides grain and light. A picture depends on
    its scene, style, size and seed alone.

    >>> from counterfoil.world.scenes import sample_scene
    >>> rng = np.random.default_rng(0)
    >>> draw_many([sample_scene(rng) for _ in range(5)], 48, style="synthetic").shape
    (5, 48, 48, 3)
    """
    check_styles([style] if isinstance(style, str) else style)
    styles = [style] * len(scenes) if isinstance(style, str) else list(style)
    if len(styles) != len(scenes):
        raise InputError("there must be one style per scene", given=len(styles), allowed=str(len(scenes)))
    if size < SMALLEST:
        raise InputError("pictures are too small to show a thing", given=size, allowed=f"{SMALLEST} or more")
    pictures = np.empty((len(scenes), size, size, 3), dtype=np.uint8)
    for picture, scene, name in zip(pictures, scenes, styles, strict=True):
        _paint(picture, scene, name, seed)
    return pictures


def check_styles(styles: Sequence[str]) -> None:
    for style in styles:
        if style not in STYLES:
            raise UnknownNameError("style", style, STYLES)


def encode(picture: PIL.Image.Image) -> bytes:
    """The picture as JPEG bytes, with colour at full resolution."""
    buffer = io.BytesIO()
    picture.save(buffer, format="JPEG", quality=92, subsampling=0)
    return buffer.getvalue()


def _paint(picture: NDArray[np.uint8], scene: Scene, style: str, seed: int) -> None:
    """Draws the scene over what is in `picture`."""
    # 32 bits that only the scene and the seed decide, the same on every machine.
    keys = [f"{seed} {scene.paper}"]
    keys += [f"{t.shape} {t.size} {t.texture} {t.colour} {t.x} {t.y} {t.turn}" for t in scene.things]
    chance = crc32(",".join(keys).encode())
    size = len(picture)
    picture[:] = sheet(scene.paper, size, style, chance % len(LOOKS[style].lights))
    # Containers first: what they hold lies in them.
    for thing in sorted(scene.things, key=lambda thing: thing.shape not in HOLES):
        keep, add = stamp(thing.shape, thing.size, thing.texture, thing.colour, thing.turn, size, style)
        # The left upper pixel of the stamp, maybe off the sheet.
        left, top = (round(i * size) - len(add) // 2 for i in (thing.x, thing.y))
        right, foot = left + len(add), top + len(add)
        if left < 0 or top < 0 or right > size or foot > size:
            # Shadows fall over the edge; so do things that lie there.
            inside = slice(max(0, -top), max(0, size - top)), slice(max(0, -left), max(0, size - left))
            keep, add = keep[inside], add[inside]
            left, top, right, foot = max(0, left), max(0, top), max(0, right), max(0, foot)
        part = picture[top:foot, left:right]
        under = keep * part
        under += 255
        under >>= 8
        under += add
        part[:] = under
    if LOOKS[style].grain:
        tile = _grain(size + _SLACK, LOOKS[style].grain)
        left, top = (chance >> 8) % _SLACK, (chance >> 16) % _SLACK
        # Modulo 256, but both stay within what a byte can hold.
        picture += tile[top : top + size, left : left + size]


#: The side, in pixels, up to which pictures are kept as they are: JPEG would blur them.
AS_PIXELS = 96


@dataclass(frozen=True)
class LazyDrawing:
    """A scene that is drawn when its bytes are asked for; a source of images like any other."""

    scene: Scene
    size: int
    style: str
    where: str = "a scene of the world"

    def source(self, pixels: NDArray[np.uint8]) -> PixelSource | BytesSource:
        """The drawn pixels, as they are where they are few, else as JPEG."""
        if self.size <= AS_PIXELS:
            return PixelSource(pixels, self.where)
        return BytesSource(encode(PIL.Image.fromarray(pixels)), self.where)

    def read(self) -> bytes:
        """The picture as PNG where it is small, else as JPEG."""
        return self.source(draw_many([self.scene], self.size, style=self.style)[0]).read()

    def picture(self) -> PIL.Image.Image | None:
        """The picture as it is drawn, where it is small; a JPEG's pixels are other ones."""
        return draw(self.scene, self.size, style=self.style) if self.size <= AS_PIXELS else None

    def __str__(self) -> str:
        return self.where
