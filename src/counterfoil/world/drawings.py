"""Pictures and moving scenes of the world, drawn when they are read.

In a moving scene a shape comes, goes or crosses the sheet, or the scene changes. What lies outside of the
sheet is not in its frame's scene, so truth is known frame by frame.
"""

import io
from dataclasses import dataclass, replace

import numpy as np
import PIL.Image

from counterfoil.errors import UnknownNameError
from counterfoil.world.edits import SUBSETS, edit, with_things
from counterfoil.world.painting import draw, encode
from counterfoil.world.scenes import Scene, one_of, place, sample_scene

#: Pictures of at most so many pixels to a side are kept as they are: JPEG would blur them.
AS_PIXELS = 96


@dataclass(frozen=True)
class LazyDrawing:
    """A scene that is drawn when its bytes are asked for; a source of images like any other."""

    scene: Scene
    size: int
    style: str
    where: str = "a scene of the world"

    def read(self) -> bytes:
        """The picture as PNG where it is small, else as JPEG."""
        picture = self.picture()
        if picture is None:
            return encode(draw(self.scene, self.size, style=self.style))
        buffer = io.BytesIO()
        picture.save(buffer, format="PNG")
        return buffer.getvalue()

    def picture(self) -> PIL.Image.Image | None:
        """The picture as it is drawn, where it is small; a JPEG's pixels are other ones."""
        return draw(self.scene, self.size, style=self.style) if self.size <= AS_PIXELS else None

    def __str__(self) -> str:
        return self.where


#: A thing comes or goes over an edge, crosses the sheet, or the scene changes in the middle.
MOTIONS = ("enters", "leaves", "left", "right", "up", "down", "changes")
#: Frames of a clip, and per second; a quarter of them at the begin and at the end is still.
FRAMES, RATE = 16, 8.0
#: Where a thing is that has not come yet, or has gone: off the sheet by this much.
_OFF = 0.25
#: The column or row that a crossing starts from, and the one that it ends in.
_CROSSINGS = {"right": (0, 2), "left": (2, 0), "down": (0, 2), "up": (2, 0)}


@dataclass(frozen=True)
class Animation:
    """A moving scene as frames that are drawn when they are asked for: a `FrameStack`."""

    scenes: tuple[Scene, ...]
    size: int
    style: str
    rate: float = RATE
    where: str = "a clip of the world"

    def __len__(self) -> int:
        return len(self.scenes)

    def frame(self, number: int) -> PIL.Image.Image:
        """One frame; light and grain are those of the first, so that nothing flickers."""
        return draw(self.scenes[number], self.size, style=self.style, light=self.scenes[0])

    def read(self) -> bytes:
        """What the frames show and how, as bytes; nothing is drawn."""
        return repr((self.size, self.style, self.scenes)).encode()

    def __str__(self) -> str:
        return self.where


def moving(motion: str, rng: np.random.Generator, *, frames: int = FRAMES) -> tuple[Scene, ...]:
    """The scene of each frame of a clip of the kind `motion`, one of `MOTIONS`; two or three things.

    >>> clip = moving("enters", np.random.default_rng(0))
    >>> len(clip[-1].things) - len(clip[0].things)
    1
    """
    if motion not in MOTIONS:
        raise UnknownNameError("motion", motion, MOTIONS)
    while True:
        # Nothing is hollow: what crosses a ring would be inside it for a moment.
        scene = sample_scene(rng, fewest=2, most=3, containers=0.0)
        if motion != "changes":
            scenes = _moves(scene, motion, rng, frames)
        else:
            # One scene up to the middle, then the same after one edit.
            contrast, half = edit(scene, one_of(SUBSETS, rng), rng), frames // 2
            scenes = None
            if contrast is not None:
                scenes = (contrast.scenes[0],) * half + (contrast.scenes[1],) * (frames - half)
        if scenes is not None:
            return scenes


def _moves(scene: Scene, motion: str, rng: np.random.Generator, frames: int) -> tuple[Scene, ...] | None:
    """The first thing moves along its row or column, which must be free."""
    mover, others = scene.things[0], scene.things[1:]
    ways: list[_Path]
    if motion in _CROSSINGS:
        # From one side of the sheet to the other.
        start, stop = (place(rng, (at, at)) for at in _CROSSINGS[motion])
        across = motion in ("left", "right")
        ways = [
            ((start[0], mover.y), (stop[0], mover.y)) if across else ((mover.x, start[1]), (mover.x, stop[1]))
        ]
    else:
        # From off the sheet to where the thing lies.
        edges = [(-_OFF, mover.y), (1 + _OFF, mover.y), (mover.x, -_OFF), (mover.x, 1 + _OFF)]
        ways = [(edge, (mover.x, mover.y)) for edge in edges]
    # Ways on which nothing lies nearer than half a cell.
    free = [
        ((x0, y0), (x1, y1))
        for (x0, y0), (x1, y1) in ways
        if not any(
            min(x0, x1) - 0.16 < other.x < max(x0, x1) + 0.16
            and min(y0, y1) - 0.16 < other.y < max(y0, y1) + 0.16
            for other in others
        )
    ]
    if not free:
        return None
    path = free[0] if motion in _CROSSINGS else one_of(free, rng)
    if motion == "leaves":
        path = path[::-1]
    (x0, y0), (x1, y1) = path
    scenes = []
    # Still, moving evenly, still.
    still = frames // 4
    steps = max(1, frames - 2 * still)
    for number in range(frames):
        at = min(1.0, max(0.0, (number - still + 1) / steps))
        x, y = round(x0 + at * (x1 - x0), 3), round(y0 + at * (y1 - y0), 3)
        moved = replace(mover, x=x, y=y)
        seen = 0 <= x <= 1 and 0 <= y <= 1
        scenes.append(with_things(scene, (mover, moved)) if seen else replace(scene, things=others))
    return tuple(scenes)


_Path = tuple[tuple[float, float], tuple[float, float]]
