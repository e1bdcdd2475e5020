"""Videos: an image item that moves. Its frames are read when asked, one after another, never all at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import PIL.Image

from counterfoil.data.records import Image
from counterfoil.errors import DataError


@dataclass(frozen=True)
class Sampling:
    """Which frames of a video are looked at: all, `count` evenly spaced ones, or `rate` per second."""

    count: int | None = None
    rate: float | None = None


@dataclass(frozen=True)
class Video(Image):
    """A video, or the part of it from `start` to `end` (seconds; None is its begin and its end).

    `source` is a file, a folder of frames (`FrameFolder`), or frames that a model has embedded already
    (`FrameFeatures`).
    """

    start: float | None = None
    end: float | None = None
    sampling: Sampling = Sampling()

    def frames(self) -> Iterator[PIL.Image.Image]:
        """Its frames in RGB, in order."""
        raise NotImplementedError

    def decode(self) -> PIL.Image.Image:
        """A video is no picture: raises `DataError`."""
        raise DataError(
            "a video where a picture is asked for",
            where=self.id,
            hint="em-score, or pac-s, looks at the frames of videos",
        )


@dataclass(frozen=True)
class FrameFeatures:
    """Frames that a model has embedded already: a file of (frames, width) numbers, .npy or .pt."""

    path: Path
