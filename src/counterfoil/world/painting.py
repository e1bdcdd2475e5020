"""Parts of pictures: stamps of things, sheets of paper, grain; each made once and kept.

A stamp is a thing with its shadow, ready to be laid on any sheet: what it keeps of what lies under it, and
what it adds. Everything is drawn several times as large as it will be and scaled down.
"""

from collections.abc import Mapping
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from counterfoil.world.outlines import HOLES, OUTLINES
from counterfoil.world.scenes import Thing
from counterfoil.world.styles import LOOKS

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
Floats = NDArray[np.float64]


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


def stamp_of(thing: Thing, side: int, style: str) -> tuple[Levels, Levels]:
    """The stamp of `thing`."""
    return stamp(thing.shape, thing.size, thing.texture, thing.colour, thing.turn, side, style)


@lru_cache(maxsize=64)
def sheet(paper: str, side: int, style: str, light: int) -> Bytes:
    """The sheet by itself, (side, side, 3), lightest where the style's light number `light` is."""
    look = LOOKS[style]
    right, down = look.lights[light]
    y, x = (np.mgrid[0:side, 0:side] + 0.5) / side
    fall = 3.0 - look.falloff * ((x - right) ** 2 + (y - down) ** 2)
    pixels = np.asarray(look.sheets[paper], dtype=np.float64) + fall[:, :, None]
    return np.clip(np.round(pixels), DARKEST, LIGHTEST).astype(np.uint8)


def grain(side: int, style: str, right: int, down: int) -> Bytes | None:
    """What is added to every pixel modulo 256, (side, side, 3) and grey; None where the style has no grain.

    Cut from one tile at (`right`, `down`), each modulo its `_SLACK`.
    """
    tile = _tile(side + _SLACK, LOOKS[style].grain)
    if tile is None:
        return None
    top, left = down % _SLACK, right % _SLACK
    return tile[top : top + side, left : left + side]


@lru_cache(maxsize=8)
def _tile(side: int, strength: float) -> Bytes | None:
    if not strength:
        return None
    levels = np.round(np.random.default_rng(7).normal(size=(side, side, 1)) * strength)
    # Repeated per channel in memory: adding it to a picture is then five times as fast.
    grey = np.repeat(np.clip(levels, -STRONGEST, STRONGEST), 3, axis=2)
    return grey.astype(np.int8).view(np.uint8)


def _over(side: int) -> int:
    """How many times as large things are drawn: small pictures need it more."""
    return max(4, ceil(384 / side))


def _width(size_name: str, side: int) -> int:
    """The side of a stamp: the shape and its shadow in every style, even so that its middle is a corner."""
    reach = max(max(abs(right) for right in look.fall) + 2 * look.soft for look in LOOKS.values())
    return 2 * ceil(side * (RADII[size_name] * _REACH + reach))


@lru_cache(maxsize=512)
def _large(shape: str, size_name: str, turn: int, side: int, part: float = 1.0) -> Image.Image:
    """Where the paper is, several times as large as it will be, its corners a little round."""
    over, radius = _over(side), RADII[size_name] * side * _over(side)
    width = _width(size_name, side) * over
    large = Image.new("L", (width, width))
    pen = ImageDraw.Draw(large)
    # A box stands straighter than cut paper lies: its corners stay within its cell.
    angle = turn / 3 if shape == "box" else turn
    drawn = [(outline, 255) for outline in OUTLINES[shape]]
    drawn += [(HOLES[shape], 0)] if shape in HOLES else []
    for outline, level in drawn:
        points = _turned(outline, angle) * part * radius + width / 2
        pen.polygon([(float(x), float(y)) for x, y in points], fill=level)
    # A blur and a threshold round the corners by about the blur's radius; walls are too thin for much of it.
    soft = large.filter(ImageFilter.GaussianBlur(radius * (0.03 if shape in HOLES else 0.06)))
    return soft.point([0] * 128 + [255] * 128)


@lru_cache(maxsize=512)
def _mask(shape: str, size_name: str, turn: int, side: int) -> Floats:
    """How much of each pixel the paper covers."""
    return _reduced(_large(shape, size_name, turn, side), side)


@lru_cache(maxsize=512)
def _shadow(shape: str, size_name: str, turn: int, side: int, style: str) -> Floats:
    """What the paper keeps from the light."""
    look, unit = LOOKS[style], side * _over(side)
    large = _large(shape, size_name, turn, side).filter(ImageFilter.GaussianBlur(look.soft * unit))
    return _reduced(ImageChops.offset(large, *(round(step * unit) for step in look.fall)), side)


@lru_cache(maxsize=1024)
def _ink(shape: str, size_name: str, texture: str, turn: int, side: int) -> Floats:
    """How much of each pixel is inked. The ink stops short of the edge, so that the outline stays whole."""
    large = _large(shape, size_name, turn, side, part=0.88 if size_name == "large" else 0.86)
    unit = side * _over(side)
    y, x = (np.mgrid[0 : large.width, 0 : large.width] + 0.5 - large.width / 2) / unit
    if texture == "striped":
        inked = np.mod((x + y) / np.sqrt(2) / _STRIPES + 0.25, 1) < 0.5
    else:
        # Rows of dots, every other row shifted by half a step.
        x, y = (axis - at * RADII[size_name] for axis, at in zip((x, y), _DOT_AT[shape], strict=True))
        row = np.floor(y / (0.866 * _DOTS) + 0.5)
        along = np.mod(x / _DOTS + 0.5 * np.mod(row, 2) + 0.5, 1) - 0.5
        inked = along**2 + (y / _DOTS - 0.866 * row) ** 2 < 0.31**2
    pattern = Image.fromarray((inked * 255).astype(np.uint8))
    return _reduced(ImageChops.multiply(pattern, large), side)


def _reduced(large: Image.Image, side: int) -> Floats:
    return np.asarray(large.reduce(_over(side)), dtype=np.float64) / 255


def _turned(points: Floats, degrees: float) -> Floats:
    angle = np.deg2rad(degrees)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return points @ turn
