"""Pictures per second: `draw_many` against the plain drawing of one scene after the other, in one run.

    python benchmarks/world.py [--n N] [--size PIXELS]

* `plain`: for each scene, a canvas eight times as large; shadows, polygons and inks drawn on it, scaled down,
  light and grain added. What one would write first, with the same outlines and colours.
* `draw_many, first`: with nothing painted yet, so its stamps are counted too.
* `draw_many`: again, with other scenes.

Seconds are processor time of one core. The plain drawing takes a sample of the scenes and is scaled up. Both
must show the same scene: exits with 1 where the mean difference between their pixels is above six levels.
"""

import argparse
import sys
from collections.abc import Callable
from time import process_time

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from counterfoil.world.painting import HOLES, LOOKS, OUTLINES, RADII, draw_many
from counterfoil.world.scenes import Scene, Thing, sample_scene

OVER = 8
SAMPLE = 200


def outline(thing: Thing, side: int, part: float = 1.0) -> Image.Image:
    """Where one thing is, on the large canvas."""
    mask = Image.new("L", (side, side))
    pen = ImageDraw.Draw(mask)
    angle = np.deg2rad(thing.turn / 3 if thing.shape == "box" else thing.turn)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    polygons = [(points, 255) for points in OUTLINES[thing.shape]]
    polygons += [(HOLES[thing.shape], 0)] if thing.shape in HOLES else []
    for points, level in polygons:
        at = points @ turn * part * RADII[thing.size] * side + np.array([thing.x, thing.y]) * side
        pen.polygon([(float(x), float(y)) for x, y in at], fill=level)
    return mask


def plain(scene: Scene, size: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """The scene in the natural style."""
    look, side = LOOKS["natural"], size * OVER
    canvas = Image.new("RGB", (side, side), look.sheets[scene.paper])
    y, x = (np.mgrid[0:side, 0:side] + 0.5) / side
    for thing in scene.things:
        mask = outline(thing, side)
        shadow = mask.filter(ImageFilter.GaussianBlur(look.soft * side))
        shadow = ImageChops.offset(shadow, *(round(step * side) for step in look.fall))
        canvas.paste(look.shade, (0, 0), shadow.point([round(level * look.dark) for level in range(256)]))
        canvas.paste(look.palette[thing.colour], (0, 0), mask)
        if thing.texture == "striped":
            inked = np.mod((x - thing.x + y - thing.y) / np.sqrt(2) / 0.062 + 0.25, 1) < 0.5
        elif thing.texture == "dotted":
            row = np.floor((y - thing.y) / 0.057 + 0.5)
            along = np.mod((x - thing.x) / 0.066 + 0.5 * np.mod(row, 2) + 0.5, 1) - 0.5
            inked = along**2 + ((y - thing.y) / 0.066 - 0.866 * row) ** 2 < 0.31**2
        else:
            continue
        pattern = Image.fromarray((inked * 255).astype(np.uint8))
        canvas.paste(look.ink, (0, 0), ImageChops.multiply(pattern, outline(thing, side, 0.87)))
    pixels = np.asarray(canvas.reduce(OVER), dtype=np.float64)
    y, x = (np.mgrid[0:size, 0:size] + 0.5) / size
    pixels = pixels + (3.0 - look.falloff * ((x - 0.35) ** 2 + (y - 0.3) ** 2))[:, :, None]
    pixels = pixels + rng.normal(size=(size, size, 1)) * look.grain
    return np.clip(np.round(pixels), 0, 255).astype(np.uint8)


def timed(work: Callable[[], NDArray[np.uint8]]) -> tuple[NDArray[np.uint8], float]:
    """What came out and the seconds it took."""
    start = process_time()
    made = work()
    return made, process_time() - start


def main() -> int:
    """Prints pictures per second."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, default=20_000, help="scenes")
    parser.add_argument("--size", type=int, default=64, help="side in pixels")
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    scenes = [sample_scene(rng) for _ in range(2 * given.n)]
    first, second = scenes[: given.n], scenes[given.n :]
    ours, once = timed(lambda: draw_many(first, given.size))
    _, again = timed(lambda: draw_many(second, given.size))
    sample = first[:SAMPLE]
    theirs, slow = timed(lambda: np.stack([plain(scene, given.size, rng) for scene in sample]))
    rates = {
        "plain": len(sample) / slow,
        "draw_many, first": len(first) / once,
        "draw_many": len(second) / again,
    }
    print(f"{given.n:,} scenes of {given.size} x {given.size} pixels, one core")
    for name, rate in rates.items():
        print(f"{name:<18}{rate:>10,.0f} pictures/s{rate / rates['plain']:>10.1f} x")
    apart = np.abs(ours[: len(sample)].astype(np.float64) - theirs).mean()
    print(f"mean difference from the plain drawing: {apart:.2f} levels of 255")
    return 0 if apart < 6 else 1


if __name__ == "__main__":
    sys.exit(main())
