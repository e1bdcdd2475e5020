"""Videos: image items that move, and the files, folders of frames or frame features in which they lie.

Frames are read when asked for, one after another, never all at once.
"""

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import PIL.Image
from jaxtyping import Float, Float32
from numpy import ndarray

from counterfoil.benchmarks.image_files import image_path
from counterfoil.benchmarks.records import FileSource, Image, Source, cropped, decode
from counterfoil.benchmarks.video_frames import ALL, Sampling, Timeline, chosen, cut, evenly, pictures
from counterfoil.errors import DataError
from counterfoil.inputs.arrays import read_npy
from counterfoil.inputs.files import is_distant

#: Pictures that a folder of frames may hold.
_PICTURES = (".jpg", ".jpeg", ".png", ".bmp", ".webp")


@runtime_checkable
class FrameStack(Protocol):
    """Frames by number that need no decoder: a folder of pictures, a scene that moves. Must be picklable."""

    @property
    def rate(self) -> float | None:
        """Frames per second, None where unknown."""
        ...

    def __len__(self) -> int: ...

    def frame(self, number: int) -> PIL.Image.Image:
        """One frame in RGB, counted from 0."""
        ...

    def read(self) -> bytes:
        """Bytes that are the same only for the same frames; no picture need be drawn for them."""
        ...

    def __str__(self) -> str:
        """Where that is, for error messages."""
        ...


@dataclass(frozen=True)
class FrameFolder:
    """A folder with a picture per frame, in the order of the numbers in their names; `rate` per second."""

    path: Path
    rate: float | None = None

    def files(self) -> tuple[FileSource, ...]:
        """The pictures in order; raises `DataError` where the folder is not there or holds none."""
        return tuple(FileSource(image_path(name, self.path)) for name in _listed(self.path))

    def __len__(self) -> int:
        return len(_listed(self.path))

    def frame(self, number: int) -> PIL.Image.Image:
        """One frame in RGB; raises `DataError` naming the file where it is broken."""
        source = FileSource(image_path(_listed(self.path)[number], self.path))
        return decode(source.read(), where=str(source))

    def read(self) -> bytes:
        """The bytes of all pictures, one after another."""
        return b"".join(source.read() for source in self.files())

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True)
class FrameFeatures:
    """Frames that a model has embedded already: a file of (frames, width) numbers, .npy or .pt.

    `duration` is the length of the video in seconds, without which no part of it can be cut out.
    """

    path: Path
    duration: float | None = None

    def read(self) -> Float32[ndarray, "frames width"]:
        """All of a .npy file; `Video.part_of` cuts it."""
        if self.path.suffix != ".npy":
            what, allowed = "only a model's own library reads this file", "frame features as .npy"
            raise DataError(what, where=self.path, allowed=allowed, hint="save them with numpy.save")
        return self.checked(read_npy(self.path))

    def checked(self, features: Any) -> Float32[ndarray, "frames width"]:
        """The features as a float32 array of their own; raises as `read`."""
        if not isinstance(features, ndarray) or features.ndim != 2 or features.dtype.kind not in "fiu":
            is_array = isinstance(features, ndarray)
            given = f"{features.dtype} of {features.shape}" if is_array else type(features).__name__
            what = "not frame features"
            raise DataError(what, where=self.path, given=given, allowed="numbers, (frames, width)")
        if not features.size:
            raise DataError("the video has no frames", where=self.path, given=f"an array of {features.shape}")
        # What is too large for float32 becomes infinite, and is found below.
        with np.errstate(over="ignore"):
            rows = np.array(features, dtype=np.float32)
        broken = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(broken):
            raise DataError(
                "frame features are not finite",
                where=f"{self.path}, frame {broken[0]}",
                given=f"{len(broken):,} of {len(rows):,} frames with NaN, infinity or numbers beyond float32",
            )
        return rows

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True)
class Video(Image):
    """A video, or the part of it from `start` to `end` (seconds; None is its begin and its end).

    `source` is a file, a folder of frames (`FrameFolder`) or any other `FrameStack`, or frames that a model
    has embedded already (`FrameFeatures`). `crop` applies to every frame.
    """

    # Embedded frames are no bytes; readers of videos distinguish the kinds of source.
    source: Source | FrameFeatures | None = None  # type: ignore[assignment]
    start: float | None = None
    end: float | None = None
    sampling: Sampling = ALL

    def frames(self) -> Iterator[PIL.Image.Image]:
        """Its frames in RGB, in order, one at a time; the file is open while the iterator is in use.

        Which ones: `benchmarks.video_frames.chosen`; a frame that is chosen twice is one object both times.
        """
        source = self.source
        if source is None:
            what = f"video '{self.id}' is not at hand"
            raise DataError(what, hint="give the folder that holds the videos with --images")
        if isinstance(source, FrameFeatures):
            hint = "give the videos themselves, or measure with em-score, which reads frame features"
            raise DataError("embedded frames where pictures are asked for", where=source, hint=hint)
        if isinstance(source, FileSource):
            pictures_shown = pictures(source.path, self.sampling, self.start, self.end)
        elif isinstance(source, FrameStack):
            times = itertools.groupby(self._numbers(source))
            pictures_shown = (
                picture for number, again in times for picture in [source.frame(number)] * len(list(again))
            )
        else:
            raise DataError("not a source of frames", where=source, allowed="a video file or its frames")
        if self.crop is None:
            yield from pictures_shown
            return
        last = part = None
        for picture in pictures_shown:
            if part is None or picture is not last:
                last, part = picture, cropped(picture, self.crop, where=str(source))
            yield part

    def part_of(self, features: Float[ndarray, "frames width"]) -> Float[ndarray, "chosen width"]:
        """The rows of the whole video's features that belong to this part, sampled as its frames would be."""
        where = f"video '{self.id}'"
        duration = self.source.duration if isinstance(self.source, FrameFeatures) else None
        if self.sampling.rate is not None:
            what = "embedded frames are not taken by rate"
            raise DataError(what, where=where, allowed="all of them, or a count")
        first, last = 0, len(features)
        if self.start is not None or self.end is not None:
            if duration is None:
                what = "a part of a video whose duration is not known"
                raise DataError(what, where=where, hint="give its duration")
            first, last = cut(len(features), duration, self.start, self.end, where=where)
        if self.sampling.count is not None:
            return features[first + evenly(last - first, self.sampling.count)]
        return features[first:last]

    def decode(self) -> PIL.Image.Image:
        """A video is no picture: raises `DataError`."""
        what = "a video where a picture is asked for"
        raise DataError(what, where=self.id, hint="em-score, or pac-s, looks at the frames of videos")

    def _numbers(self, stack: FrameStack) -> Iterable[int]:
        if not len(stack):
            raise DataError("the video has no frames", where=stack)
        timed = self.start is not None or self.end is not None or self.sampling.rate is not None
        if timed and stack.rate is None:
            what = "the times of these frames are unknown"
            raise DataError(what, where=stack, allowed="all of them, or a count", hint="give their rate")
        shown = Timeline.of_rate(len(stack), stack.rate or 1.0)
        return chosen(shown, self.sampling, self.start, self.end, where=stack).tolist()


def _listed(folder: Path) -> tuple[str, ...]:
    """The pictures of a folder in natural order: frame 10 after frame 9."""
    try:
        return _listed_at(folder, os.stat(folder).st_mtime_ns)
    except (FileNotFoundError, NotADirectoryError):
        raise DataError("no such folder of frames", where=folder, hint="check the folder of videos") from None


@lru_cache(maxsize=64)
def _listed_at(folder: Path, _: int) -> tuple[str, ...]:
    # Called once per frame; the folder's modification time is part of the key.
    names = [name for name in video_folder(folder) if name.lower().endswith(_PICTURES)]
    if not names:
        what = "the video has no frames"
        raise DataError(what, where=folder, hint=f"a folder of frames holds {', '.join(_PICTURES)}")

    def natural(name: str) -> list[tuple[int, int, str]]:
        parts = re.split(r"(\d+)", name)
        return [(1, int(part), part) if part.isdigit() else (0, 0, part) for part in parts if part]

    return tuple(sorted(names, key=natural))


#: Video files by the end of their names, in the order in which they are looked for.
VIDEOS = (".mp4", ".avi", ".mkv", ".webm", ".mov", ".gif")
#: Files of frames that a model has embedded.
FEATURES = (".npy", ".pt")


def find(folder: Path, ids: Iterable[str]) -> dict[str, Source | FrameFeatures]:
    """Where the videos of these ids are in `folder`: files, folders of frames, or frame features."""
    there = video_folder(folder)
    if not there and not folder.is_dir():
        raise DataError("no such folder of videos", where=folder, hint="check the path given with --images")
    names = tuple(dict.fromkeys(ids))
    source_of: dict[str, Source | FrameFeatures] = {}
    for name in names:
        source = _found(folder, name, there)
        if source is not None:
            source_of[name] = source
    if names and not source_of:
        hint = f"it should hold {names[0]} with one of {', '.join((*VIDEOS, *FEATURES))}, or its frames"
        raise DataError(f"none of the {len(names):,} videos is in this folder", where=folder, hint=hint)
    return source_of


def video_folder(folder: Path) -> Mapping[str, bool]:
    """What lies in a folder: whether each name is a folder itself; nothing where there is no such folder."""
    if is_distant(folder):
        hint = "mount the folder, or copy it; images and shards may stay behind a URL"
        raise DataError("videos are read from a disk", where=folder, hint=hint)
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry.is_dir() for entry in entries}
    except (FileNotFoundError, NotADirectoryError):
        return {}


def _found(folder: Path, name: str, there: Mapping[str, bool]) -> Source | FrameFeatures | None:
    names = [name] if name.lower().endswith((*VIDEOS, *FEATURES)) else []
    names += [name + written for ending in VIDEOS for written in (ending, ending.upper())]
    names += [name] if there.get(name) else []
    first = next((file for file in (*names, *(name + ending for ending in FEATURES)) if file in there), None)
    if first is None:
        return None
    path = image_path(first, folder)
    if first.lower().endswith(VIDEOS):
        return FileSource(path)
    return FrameFeatures(path) if first.lower().endswith(FEATURES) else FrameFolder(path)
