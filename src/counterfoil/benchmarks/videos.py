"""Videos: image items that move, the files, folders of frames or frame features in which they lie, and which
of their frames are looked at.

A file is looked through by PyAV first, without decoding, so that one that was cut off is refused before
anything is computed from it.
"""

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import PIL.Image
from jaxtyping import Float, Float32, Float64, Int64
from numpy import ndarray

from counterfoil.benchmarks.image_files import image_path
from counterfoil.benchmarks.records import MAX_PIXELS, FileSource, Image, Source, cropped, decode
from counterfoil.errors import DataError, InputError, MissingExtraError
from counterfoil.inputs.arrays import read_npy
from counterfoil.inputs.files import is_distant, natural
from counterfoil.inputs.limits import check_amount

#: Moments this close, in seconds, are one: decimals and the clocks of files differ in the last digits.
_SAME = 1e-6


@dataclass(frozen=True)
class Sampling:
    """Which frames of a video are looked at: all, `count` evenly spaced ones, or `rate` per second.

    Raises `InputError` for both at once, a count below 1 and a rate that is not above 0.
    """

    count: int | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        if self.count is not None and self.rate is not None:
            what = "frames are taken by count or by rate"
            raise InputError(what, given=f"count {self.count} and rate {self.rate}", allowed="one of the two")
        if self.count is not None:
            check_amount("frames", self.count, what="number of frames")
        if self.rate is not None:
            if not self.rate > 0:
                raise InputError("frames per second", given=self.rate, allowed="above 0")
            check_amount("rate", self.rate, what="frames per second")


#: Every frame.
ALL = Sampling()


@dataclass(frozen=True, eq=False)
class Timeline:
    """When the frames of a video are shown, in seconds: `times` (frames,) from 0; the last until `end`."""

    times: Float64[ndarray, "frames"]
    end: float

    @classmethod
    def of_rate(cls, frames: int, rate: float) -> "Timeline":
        """Frames that are all shown for as long."""
        return cls(np.arange(frames) / rate, frames / rate)


def chosen(
    timeline: Timeline,
    sampling: Sampling,
    start: float | None = None,
    end: float | None = None,
    *,
    where: object = None,
) -> Int64[ndarray, "chosen"]:
    """Positions of the frames to look at, in order; at least one.

    The part from `start` to `end` has the frames that begin in it, `start` included and `end` not; where it
    is so short that none does, the one on show when it starts.

    * By count n, of the F frames of the part: `linspace(0, F - 1, n)` truncated, as in EMScore.
    * By rate r: what is on show at `start`, 1 / r seconds later, and so on before the end.

    >>> chosen(Timeline.of_rate(10, 5.0), Sampling(count=4)).tolist()
    [0, 3, 6, 9]
    >>> chosen(Timeline.of_rate(10, 5.0), Sampling(rate=2), 0.5, 1.6).tolist()
    [2, 5, 7]
    """
    begin, stop = check_part(start, end, timeline.end, where=where)
    times = timeline.times
    if sampling.rate is not None:
        moments = max(1, int(np.ceil((stop - begin) * sampling.rate - _SAME)))
        seconds = begin + np.arange(moments) / sampling.rate
        return np.maximum(np.searchsorted(times, seconds + _SAME, side="right") - 1, 0)
    first, last = (int(np.searchsorted(times, i - _SAME)) for i in (begin, stop))
    if last <= first:
        first = max(0, int(np.searchsorted(times, begin + _SAME, side="right")) - 1)
        last = first + 1
    if sampling.count is None:
        return np.arange(first, last)
    return first + evenly(last - first, sampling.count)


def evenly(frames: int, count: int) -> Int64[ndarray, "count"]:
    """`count` positions evenly spread over `frames`, the first and the last among them; truncated."""
    return np.linspace(0, frames - 1, count).astype(np.int64)


def cut(
    frames: int, duration: float, start: float | None, end: float | None, *, where: object = None
) -> tuple[int, int]:
    """The first frame of a part and the one behind its last, of `frames` spread over `duration` seconds.

    `int(start * frames // duration)` and the same of `end`, as EMScore cuts features for ActivityNet-FOIL.
    There a part may be empty and its score NaN; here it is then the frame in which it starts.

    >>> cut(50, 100.0, 9.9, 30.0), cut(50, 100.0, 9.0, 9.5)
    ((4, 15), (4, 5))
    """
    begin, stop = check_part(start, end, duration, where=where)
    first = min(int(begin * frames // duration), frames - 1)
    last = frames if end is None else min(int(stop * frames // duration), frames)
    return first, max(last, first + 1)


def check_part(
    start: float | None, end: float | None, duration: float, *, where: object = None
) -> tuple[float, float]:
    """From when to when, in seconds; raises `DataError` naming `where` where that is no part of the video."""
    begin = 0.0 if start is None else start
    stop = duration if end is None else min(end, duration)
    given = f"{begin:g} s to {'its end' if end is None else f'{end:g} s'}, of {duration:.6g} s"
    if not (begin >= 0 and (end is None or end > begin)):
        raise DataError("a part of a video ends before it starts", where=where, given=given)
    if begin >= duration:
        what = "a part starts after the video's end"
        raise DataError(what, where=where, given=given, hint="is the file cut off?")
    return begin, stop


#: A cover of a sound file is a video stream to FFmpeg; this bit of its disposition tells.
_COVER = 0x400
#: Of this share of its length a file may fall short where its container only says about how long it is:
#: frames that were dropped in recording are not in it.
_DROPPED = 0.05
#: A part that starts later than this, in seconds, is jumped to.
_JUMP = 2.0


@dataclass(frozen=True, eq=False)
class Track:
    """When the frames of a file are shown, and its stamp of each; None where they could only be counted."""

    timeline: Timeline
    stamps: Int64[ndarray, "frames"] | None


def pictures(
    path: Path, sampling: Sampling, start: float | None = None, end: float | None = None
) -> Iterator[PIL.Image.Image]:
    """The chosen frames of a video file in RGB, in order, turned upright where the file says how."""
    scanned = track(path)
    wanted = chosen(scanned.timeline, sampling, start, end, where=path)
    if scanned.stamps is None:
        yield from _decoded(path, wanted, scanned, jump=False)
    else:
        first = float(scanned.timeline.times[wanted[0]])
        yield from _decoded(path, scanned.stamps[wanted], scanned, jump=first > _JUMP)


def track(path: Path) -> Track:
    """Looks through a video file; raises as `pictures`."""
    stamps: list[int | None] = []
    hidden = False
    with opened(path) as (container, stream):
        import av

        try:
            for packet in container.demux(stream):
                if packet.size and not packet.is_corrupt:
                    stamps.append(packet.pts)
                    hidden |= bool(getattr(packet, "is_discard", False))
        except (av.error.FFmpegError, OSError) as error:
            raise DataError(f"the video cannot be read: {_reason(error)}", where=path) from None
        exact = "mp4" in container.format.name
        # The tag that Matroska files carry.
        *clock, seconds = stream.metadata.get("DURATION", "").split(":")
        try:
            length = int(clock[0]) * 3600 + int(clock[1]) * 60 + float(seconds) if len(clock) == 2 else None
        except ValueError:
            length = None
        counted = stream.frames
        base, step = stream.time_base, _step(stream)
    lacking = counted - len(stamps)
    if lacking > 0 and (exact or lacking > _DROPPED * counted):
        raise cut_off(path, len(stamps), counted)
    if not stamps:
        raise DataError("the video has no frames", where=path, hint="is the file cut off?")
    rising = np.unique(np.asarray([stamp for stamp in stamps if stamp is not None], dtype=np.int64))
    stamped = counted == len(stamps) == len(rising) and not hidden
    timed = Track(_timeline(rising, base, step), rising) if stamped else _by_decoding(path)
    if length is not None and length - timed.timeline.end > max(_DROPPED * length, 2 * step):
        # Frames by the mean rate: the container says how long it is, not how many there are.
        raise cut_off(path, len(timed.timeline.times), round(length / step))
    return timed


@contextmanager
def opened(path: Path) -> Iterator[tuple[Any, Any]]:
    """The container and its first stream of moving pictures, closed at the end; raises as `pictures`."""
    try:
        import av
    except ModuleNotFoundError:
        raise MissingExtraError("av", "video") from None

    if not path.is_file():
        what = "a folder, not a video file" if path.is_dir() else "no such video file"
        raise DataError(what, where=path, hint="check the folder of videos")
    try:
        container = av.open(str(path))
    except (av.error.FFmpegError, OSError, ValueError) as error:
        what = f"not a video that can be read: {_reason(error)}"
        raise DataError(what, where=path, hint="is the file cut off?") from None
    try:
        streams = [s for s in container.streams.video if not int(getattr(s, "disposition", 0)) & _COVER]
        if not streams:
            kinds = sorted({stream.type for stream in container.streams})
            given, hint = f"streams: {', '.join(kinds) or 'none'}", "is it sound, or cut off?"
            raise DataError("no moving pictures in the file", where=path, given=given, hint=hint)
        width, height = streams[0].codec_context.width, streams[0].codec_context.height
        if width * height > MAX_PIXELS:
            what, given = "frames too large", f"{width} x {height} pixels"
            raise DataError(what, where=path, given=given, allowed=f"at most {MAX_PIXELS:,} pixels")
        yield container, streams[0]
    finally:
        container.close()


def cut_off(path: Path, got: int, expected: int) -> DataError:
    """The error of a file that ends too early."""
    given, allowed = f"{got:,} frames that can be read", f"{expected:,}, as its header says"
    what = "the video is cut off or damaged"
    return DataError(what, where=path, given=given, allowed=allowed, hint="fetch the file again")


def _decoded(
    path: Path, wanted: Int64[ndarray, "chosen"], track: Track, *, jump: bool
) -> Iterator[PIL.Image.Image]:
    """The frames of these stamps (or numbers), which rise, in order."""
    position, number, last = 0, -1, None
    with opened(path) as (container, stream):
        if jump:
            container.seek(int(wanted[0]), stream=stream)
        for number, frame in enumerate(_frames(path, container, stream, track)):
            name = number if track.stamps is None else frame.pts
            if jump and number == 0 and (name is None or name > wanted[0]):
                break  # Jumped too far: the file's index is not to be trusted.
            if name is None:
                continue
            # A frame that the decoder left out shows what was there before.
            while position < len(wanted) and wanted[position] < name:
                yield _picture(last or frame)
                position += 1
            last = frame
            if position < len(wanted) and wanted[position] == name:
                picture = _picture(frame)
                while position < len(wanted) and wanted[position] == name:
                    yield picture
                    position += 1
            if position == len(wanted):
                return
        else:
            raise cut_off(path, _upto(last, track, number + 1), len(track.timeline.times))
    yield from _decoded(path, wanted, track, jump=False)


def _frames(path: Path, container: Any, stream: Any, track: Track | None) -> Iterator[Any]:
    import av

    got, last = 0, None
    try:
        for last in container.decode(stream):
            got += 1
            yield last
    except (av.error.FFmpegError, OSError, ValueError) as error:
        if track is not None:
            raise cut_off(path, _upto(last, track, got), len(track.timeline.times)) from None
        what, given = f"the video is cut off or damaged: {_reason(error)}", f"{got:,} frames that can be read"
        raise DataError(what, where=path, given=given, hint="fetch the file again") from None


def _upto(last: Any, track: Track, got: int) -> int:
    """How many frames of the file there are up to the last one that was decoded, the `got`-th."""
    if last is None or track.stamps is None:
        return got
    # By its stamp: decoding may have begun in the middle.
    return int(np.searchsorted(track.stamps, last.pts or 0, side="right"))


def _by_decoding(path: Path) -> Track:
    """Counts frames by decoding all; for containers that do not count them, and for what they hide."""
    with opened(path) as (container, stream):
        base, step = stream.time_base, _step(stream)
        stamps = [frame.pts for frame in _frames(path, container, stream, None)]
    if not stamps:
        raise DataError("the video has no frames", where=path, hint="is the file cut off?")
    if any(stamp is None for stamp in stamps) or np.any(np.diff(np.asarray(stamps)) < 0):
        return Track(Timeline.of_rate(len(stamps), 1 / step), None)
    return Track(_timeline(np.asarray(stamps, dtype=np.int64), base, step), None)


def _timeline(stamps: Int64[ndarray, "frames"], base: Any, step: float) -> Timeline:
    # Whole numbers are divided once, so that frame 3 of 10 per second is shown at 0.3, to the last bit.
    times = (stamps - stamps[0]) * base.numerator / base.denominator
    return Timeline(times, float(times[-1]) + step)


def _step(stream: Any) -> float:
    rate = stream.average_rate or stream.guessed_rate
    return float(1 / rate) if rate else 1 / 25


def _picture(frame: Any) -> PIL.Image.Image:
    picture: PIL.Image.Image = frame.to_image()
    # Quarter turns against the clock, as Pillow does them.
    turn = int(getattr(frame, "rotation", 0)) % 360
    return picture.transpose(PIL.Image.Transpose[f"ROTATE_{turn}"]) if turn in (90, 180, 270) else picture


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error)


#: Pictures that a folder of frames may hold.
_PICTURES = (".jpg", ".jpeg", ".png", ".bmp", ".webp")


@runtime_checkable
class FrameStack(Protocol):
    """Frames by number that need no decoder, such as a folder of pictures. Must be picklable."""

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

    @cached_property
    def files(self) -> tuple[FileSource, ...]:
        """The pictures in order; raises `DataError` where the folder is not there or holds none."""
        there = video_folder(self.path)
        names = sorted((name for name in there if name.lower().endswith(_PICTURES)), key=natural)
        if not names and not self.path.is_dir():
            raise DataError("no such folder of frames", where=self.path, hint="check the folder of videos")
        if not names:
            hint = f"a folder of frames holds {', '.join(_PICTURES)}"
            raise DataError("the video has no frames", where=self.path, hint=hint)
        return tuple(FileSource(image_path(name, self.path)) for name in names)

    def __len__(self) -> int:
        return len(self.files)

    def frame(self, number: int) -> PIL.Image.Image:
        """One frame in RGB; raises `DataError` naming the file where it is broken."""
        source = self.files[number]
        return decode(source.read(), where=str(source))

    def read(self) -> bytes:
        """The bytes of all pictures, one after another."""
        return b"".join(source.read() for source in self.files)

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
            what, where = "frame features are not finite", f"{self.path}, frame {broken[0]}"
            given = f"{len(broken):,} of {len(rows):,} frames with NaN, infinity or numbers beyond float32"
            raise DataError(what, where=where, given=given)
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

        Which ones: `benchmarks.videos.chosen`; a frame that is chosen twice is one object both times.
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
            frames = ((source.frame(number), len(list(again))) for number, again in times)
            pictures_shown = (picture for picture, often in frames for _ in range(often))
        else:
            raise DataError("not a source of frames", where=source, allowed="a video file or its frames")
        last = part = None
        for picture in pictures_shown:
            if self.crop is None:
                part = picture
            elif part is None or picture is not last:
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
        files = [name] if name.lower().endswith((*VIDEOS, *FEATURES)) else []
        files += [name + written for ending in VIDEOS for written in (ending, ending.upper())]
        files += [name] if there.get(name) else []
        files += [name + ending for ending in FEATURES]
        first = next((file for file in files if file in there), None)
        if first is not None:
            path, end = image_path(first, folder), first.lower()
            kind = FrameFeatures if end.endswith(FEATURES) else FrameFolder
            source_of[name] = FileSource(path) if end.endswith(VIDEOS) else kind(path)
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
