"""Choice of a video's frames from the times at which they are shown; no picture is opened here."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64
from numpy import ndarray

from counterfoil.errors import DataError, InputError
from counterfoil.inputs.amounts import check_amount

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
            raise InputError(
                "frames are taken by count or by rate",
                given=f"count {self.count} and rate {self.rate}",
                allowed="one of the two",
            )
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
    """When the frames of a video are shown, in seconds: `times` (frames,) in order, the first at 0.

    The last one is shown until `end`.
    """

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
    is so short that none does, the one on show when it starts. An `end` after that of the video is its end.

    * By count n, of the F frames of the part: `linspace(0, F - 1, n)` truncated, as EMScore takes 10 of
      VATEX; where F < n some come twice.
    * By rate r: what is on show at `start`, 1 / r seconds later, and so on before the end (the last frame
      that is not after the moment).

    Raises `DataError` naming `where` for parts that end before they start or start after the video's end.

    >>> chosen(Timeline.of_rate(10, 5.0), Sampling(count=4)).tolist()
    [0, 3, 6, 9]
    >>> chosen(Timeline.of_rate(10, 5.0), Sampling(rate=2), 0.5, 1.6).tolist()
    [2, 5, 7]
    """
    begin, stop = check_part(start, end, timeline.end, where=where)
    times = timeline.times
    if sampling.rate is not None:
        moments = max(1, int(np.ceil((stop - begin) * sampling.rate - _SAME)))
        asked = begin + np.arange(moments) / sampling.rate
        return np.maximum(np.searchsorted(times, asked + _SAME, side="right") - 1, 0)
    first, last = (int(np.searchsorted(times, at - _SAME)) for at in (begin, stop))
    if last <= first:
        first = max(0, int(np.searchsorted(times, begin + _SAME, side="right")) - 1)
        last = first + 1
    if sampling.count is None:
        return np.arange(first, last)
    return first + evenly(last - first, sampling.count)


def evenly(frames: int, count: int) -> Int64[ndarray, "count"]:
    """`count` positions evenly spread over `frames`, the first and the last among them; truncated.

    >>> evenly(25, 10).tolist()
    [0, 2, 5, 8, 10, 13, 16, 18, 21, 24]
    """
    return np.linspace(0, frames - 1, count).astype(np.int64)


def cut(
    frames: int, duration: float, start: float | None, end: float | None, *, where: object = None
) -> tuple[int, int]:
    """The first frame of a part and the one behind its last, of `frames` spread over `duration` seconds.

    `int(start * frames // duration)` and the same of `end`, as EMScore cuts features for ActivityNet-FOIL.
    There a part may be empty and its score NaN; here it is then the frame in which it starts. Raises
    `DataError` as `chosen`.

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
        raise DataError(
            "a part starts after the video's end", where=where, given=given, hint="is the file cut off?"
        )
    return begin, stop
