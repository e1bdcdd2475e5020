"""Scenes as pictures, one or tens of thousands.

Every thing is painted once per shape, size, texture, colour and angle, together with its shadow; a picture is
then a copy of a sheet on which these stamps are laid at whole pixels, under a grain.
"""

import io
from collections.abc import Sequence
from zlib import crc32

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from counterfoil.errors import InputError, UnknownNameError
from counterfoil.world.painting import HOLES, LOOKS, PALETTE, RADII, SHEETS, STYLES, grain, sheet, stamp_of
from counterfoil.world.scenes import Scene

__all__ = ["PALETTE", "RADII", "SHEETS", "STYLES", "draw", "draw_many", "encode"]

#: Smaller pictures cannot show a thing.
SMALLEST = 16


def draw(
    scene: Scene, size: int = 192, *, style: str = "natural", seed: int = 0, light: Scene | None = None
) -> PIL.Image.Image:
    """The scene as an RGB picture of `size` x `size` pixels: the one that `draw_many` draws of it.

    `light` is another scene whose light and grain it has: frames of a clip must not flicker.

    >>> from counterfoil.world.scenes import sample_scene
    >>> draw(sample_scene(np.random.default_rng(0)), 96).size
    (96, 96)
    """
    return PIL.Image.fromarray(draw_many([scene], size, style=style, seed=seed, light=light)[0])


def draw_many(
    scenes: Sequence[Scene],
    size: int = 192,
    *,
    style: str | Sequence[str] = "natural",
    seed: int = 0,
    light: Scene | None = None,
) -> NDArray[np.uint8]:
    """The scenes as RGB pictures, (scenes, size, size, 3).

    `style` is one of `STYLES`, for all or one per scene. `seed` decides grain and light. A picture depends on
    its scene, style, size and seed alone, not on what is drawn beside it; with `light` on that scene too.

    Raises `UnknownNameError` for a style that is none, `InputError` where there is not one style per scene or
    pictures would be smaller than `SMALLEST`.

    >>> from counterfoil.world.scenes import sample_scene
    >>> rng = np.random.default_rng(0)
    >>> draw_many([sample_scene(rng) for _ in range(5)], 48, style="synthetic").shape
    (5, 48, 48, 3)
    """
    styles = [style] * len(scenes) if isinstance(style, str) else list(style)
    for name in {*styles, *([style] if isinstance(style, str) else [])}:
        if name not in STYLES:
            raise UnknownNameError("style", name, STYLES)
    if len(styles) != len(scenes):
        raise InputError("there must be one style per scene", given=len(styles), allowed=str(len(scenes)))
    if size < SMALLEST:
        raise InputError("pictures are too small to show a thing", given=size, allowed=f"{SMALLEST} or more")
    pictures = np.empty((len(scenes), size, size, 3), dtype=np.uint8)
    for picture, scene, name in zip(pictures, scenes, styles, strict=True):
        _paint(picture, scene, name, _chance(light or scene, seed))
    return pictures


def encode(picture: PIL.Image.Image) -> bytes:
    """The picture as JPEG bytes, with colour at full resolution."""
    buffer = io.BytesIO()
    picture.save(buffer, format="JPEG", quality=92, subsampling=0)
    return buffer.getvalue()


def _paint(picture: NDArray[np.uint8], scene: Scene, style: str, chance: int) -> None:
    """Draws the scene over what is in `picture`."""
    size = len(picture)
    picture[:] = sheet(scene.paper, size, style, chance % len(LOOKS[style].lights))
    things = scene.things
    if any(thing.shape in HOLES for thing in things):
        # Containers first: what they hold lies in them.
        things = tuple(sorted(things, key=lambda thing: thing.shape not in HOLES))
    for thing in things:
        keep, add = stamp_of(thing, size, style)
        left, top = round(thing.x * size) - len(add) // 2, round(thing.y * size) - len(add) // 2
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
    speckles = grain(size, style, chance >> 8, chance >> 16)
    if speckles is not None:
        # Modulo 256, but `painting` keeps both within what a byte can hold.
        picture += speckles


def _chance(scene: Scene, seed: int) -> int:
    """32 bits that only scene and seed decide, the same on every machine."""
    said = [f"{seed} {scene.paper}"]
    said += [f"{t.shape} {t.size} {t.texture} {t.colour} {t.x} {t.y} {t.turn}" for t in scene.things]
    return crc32(",".join(said).encode())
