"""Scenes as pictures: cut paper on paper.

Every shape is drawn once per size, colour, texture and angle, at eight times its size, and scaled down; a
picture is then a copy of the sheet with a shadow and a stamp pasted per thing.
"""

import io
from functools import lru_cache

import numpy as np
import PIL.Image
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from counterfoil.world.outlines import HOLES, OUTLINES
from counterfoil.world.scenes import Scene, Thing

#: Seven colours that keep their names and stay apart for red-green blind eyes (they differ in lightness).
PALETTE = {
    "red": (196, 45, 58),
    "orange": (240, 134, 40),
    "yellow": (246, 205, 66),
    "green": (26, 140, 92),
    "blue": (48, 116, 206),
    "purple": (104, 50, 138),
    "pink": (246, 160, 190),
}

SHEETS = {"cream": (247, 242, 231), "mist": (236, 240, 243), "sage": (238, 241, 230)}

#: Radii as parts of the picture's side.
RADII = {"small": 0.072, "large": 0.132}

_OVER = 8  # supersampling
_MARGIN = 1.45  # a stamp reaches this many radii from its centre


def draw(scene: Scene, size: int = 192) -> PIL.Image.Image:
    """The scene as an RGB picture of `size` x `size` pixels.

    >>> from counterfoil.world.scenes import sample_scene
    >>> draw(sample_scene(np.random.default_rng(0)), 96).size
    (96, 96)
    """
    picture = _sheet(scene.paper, size).copy()
    down, right = round(size * 0.012), round(size * 0.006)
    for thing in scene.things:
        shadow = _shadow(thing.shape, thing.size, thing.turn, size)
        left, top = _corner(thing, shadow.width, size)
        picture.paste((58, 48, 40), (left + right, top + down), shadow)
    # Containers first: what they hold lies in them.
    for thing in sorted(scene.things, key=lambda thing: thing.shape not in HOLES):
        stamp, mask = _stamp(thing.shape, thing.size, thing.texture, thing.colour, thing.turn, size)
        picture.paste(stamp, _corner(thing, mask.width, size), mask)
    return picture


def encode(picture: PIL.Image.Image) -> bytes:
    """The picture as JPEG bytes, with colour at full resolution."""
    buffer = io.BytesIO()
    picture.save(buffer, format="JPEG", quality=92, subsampling=0)
    return buffer.getvalue()


def _corner(thing: Thing, width: int, size: int) -> tuple[int, int]:
    return round(thing.x * size - width / 2), round(thing.y * size - width / 2)


@lru_cache(maxsize=32)
def _sheet(paper: str, size: int) -> PIL.Image.Image:
    """Paper: a soft light from the upper left and a faint grain, the same on every sheet."""
    grain = np.random.default_rng(7).normal(size=(size, size))
    y, x = np.mgrid[0:size, 0:size] / max(size - 1, 1)
    light = 3.0 - 9.0 * ((x - 0.35) ** 2 + (y - 0.3) ** 2) + 0.9 * grain
    pixels = np.asarray(SHEETS[paper], dtype=np.float64) + light[:, :, None]
    return Image.fromarray(np.clip(np.round(pixels), 0, 255).astype(np.uint8))


@lru_cache(maxsize=8192)
def _stamp(
    shape: str, size_name: str, texture: str, colour: str, turn: int, size: int
) -> tuple[PIL.Image.Image, PIL.Image.Image]:
    """The cut paper and its mask: a little lighter above, with stripes or dots of white ink."""
    mask = _mask(shape, size_name, turn, size)
    width = mask.width
    rise = (0.5 - np.arange(width) / width)[:, None, None] * np.asarray([26.0, 24.0, 22.0])
    pixels = np.broadcast_to(np.asarray(PALETTE[colour], dtype=np.float64) + rise, (width, width, 3))
    paper = Image.fromarray(np.clip(np.round(pixels), 0, 255).astype(np.uint8))
    if texture != "plain":
        # The ink stops short of the edge, so that the outline stays whole.
        inner = _mask(shape, size_name, turn, size, part=0.86)
        paper.paste((253, 250, 243), (0, 0), ImageChops.multiply(_ink(texture, width), inner))
    return paper, mask


@lru_cache(maxsize=2048)
def _mask(shape: str, size_name: str, turn: int, size: int, part: float = 1.0) -> PIL.Image.Image:
    """Where the paper is, antialiased, its corners a little round."""
    radius = RADII[size_name] * size
    width = 2 * round(radius * _MARGIN)
    # A box stands straighter than cut paper lies: its corners stay within its cell.
    turn = round(turn / 3) if shape == "box" else turn
    large = Image.new("L", (width * _OVER, width * _OVER))
    pen = ImageDraw.Draw(large)
    for outline in OUTLINES[shape]:
        points = _turned(outline, turn) * part * radius * _OVER + width * _OVER / 2
        pen.polygon([(float(x), float(y)) for x, y in points], fill=255)
    if shape in HOLES:
        points = _turned(HOLES[shape], turn) * radius * _OVER + width * _OVER / 2
        pen.polygon([(float(x), float(y)) for x, y in points], fill=0)
    # A blur and a threshold round the corners by about the blur's radius.
    soft = large.filter(
        ImageFilter.GaussianBlur(radius * _OVER * 0.07 if shape not in HOLES else radius * _OVER * 0.04)
    )
    return soft.point([0] * 128 + [255] * 128).reduce(_OVER)


@lru_cache(maxsize=2048)
def _shadow(shape: str, size_name: str, turn: int, size: int) -> PIL.Image.Image:
    """What the paper keeps from the light: its mask, blurred and faint."""
    mask = _mask(shape, size_name, turn, size)
    border = max(2, round(size * 0.02))
    wide = Image.new("L", (mask.width + 2 * border, mask.width + 2 * border))
    wide.paste(mask, (border, border))
    return wide.filter(ImageFilter.GaussianBlur(size * 0.009)).point(
        [round(level * 0.34) for level in range(256)]
    )


@lru_cache(maxsize=256)
def _ink(texture: str, width: int) -> PIL.Image.Image:
    """Stripes or dots as a mask over a square of `width` pixels; their pitch follows the width."""
    side = width * _OVER
    pitch = side / 7.0
    y, x = np.mgrid[0:side, 0:side] - (side - 1) / 2
    if texture == "striped":
        inked = np.mod((x + y) / np.sqrt(2) / pitch + 0.21, 1) < 0.42
    else:
        # Rows of dots, every other row shifted by half a step.
        row = np.floor(y / pitch + 0.5)
        along = np.mod(x / pitch + 0.5 * np.mod(row, 2) + 0.5, 1) - 0.5
        inked = along**2 + (y / pitch - row) ** 2 < 0.29**2
    return Image.fromarray((inked * 255).astype(np.uint8)).reduce(_OVER)


def _turned(points: NDArray[np.float64], degrees: int) -> NDArray[np.float64]:
    angle = np.deg2rad(degrees)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return points @ turn
