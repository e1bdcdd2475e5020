"""Which frames are looked at, against a slow twin that goes one by one; and videos found by their ids."""

import numpy as np
import pytest

from counterfoil.benchmarks.records import FileSource
from counterfoil.benchmarks.videos import (
    ALL,
    FrameFeatures,
    FrameFolder,
    Sampling,
    Timeline,
    chosen,
    cut,
    find,
)
from counterfoil.errors import InputError
from refusals import refuses


def on_show(times, moment):
    """The last frame that is not after the moment."""
    return max(i for i, time in enumerate(times) if time <= moment + 1e-6)


def slowly(times, length, sampling, start, end):
    """What `chosen` says, frame by frame and moment by moment."""
    begin, stop = start or 0.0, min(length, length if end is None else end)
    if sampling.rate is not None:
        found, k = [], 0
        while not found or begin + k / sampling.rate < stop - 1e-6:
            found.append(on_show(times, begin + k / sampling.rate))
            k += 1
        return found
    part = [i for i, time in enumerate(times) if begin - 1e-6 <= time < stop - 1e-6]
    part = part or [on_show(times, begin)]
    if sampling.count is None:
        return part
    # linspace(0, F - 1, n): steps of (F - 1) / (n - 1); a single one is the first.
    between = max(1, sampling.count - 1)
    return [part[k * (len(part) - 1) // between] for k in range(sampling.count)]


@pytest.mark.parametrize("seed", range(12))
def test_the_frames_are_those_of_the_slow_twin(seed):
    rng = np.random.default_rng(seed)
    times = np.concatenate([[0.0], np.cumsum(rng.integers(1, 9, size=rng.integers(0, 60)))]) / 30
    line = Timeline(times, float(times[-1]) + 1 / 30)
    samplings = [ALL, *(Sampling(count=n) for n in (1, 2, 3, 10)), *(Sampling(rate=r) for r in (0.7, 3, 25))]
    for sampling in samplings:
        start = None if rng.random() < 0.3 else float(rng.random() * line.end * 0.9)
        end = None if rng.random() < 0.3 else (start or 0.0) + float(rng.random() * line.end + 1e-3)
        assert chosen(line, sampling, start, end).tolist() == slowly(times, line.end, sampling, start, end)


def test_a_boundary_belongs_to_the_part_that_begins_there():
    line = Timeline.of_rate(100, 10.0)
    parts = [chosen(line, ALL, k * 0.7, (k + 1) * 0.7) for k in range(14)]
    assert np.concatenate(parts).tolist() == list(range(98))


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [(3.0, 3.0, "ends before it starts"), (3.0, 2.0, "ends before"), (-1.0, 2.0, "ends before it starts"),
     (10.0, None, "starts after the video's end"), (12.0, 20.0, "starts after")],
)  # fmt: skip
def test_what_is_no_part_is_named(start, end, said):
    for ask in (
        lambda: chosen(Timeline.of_rate(100, 10.0), ALL, start, end, where="a.mp4"),
        lambda: cut(50, 10.0, start, end, where="a.mp4"),
    ):
        refuses(f"^a.mp4: .*{said}", ask)


@pytest.mark.parametrize("seed", range(8))
def test_features_are_cut_as_the_official_code_cuts_them(seed):
    rng = np.random.default_rng(seed)
    frames, duration = int(rng.integers(1, 300)), float(rng.random() * 200 + 1)
    start, end = np.sort(rng.random(2)) * duration
    first, last = int(start * frames // duration), int(end * frames // duration)
    rows = list(range(frames))[first:last] or [first]
    assert list(range(*cut(frames, duration, start, end))) == rows


@pytest.mark.parametrize(
    ("asked", "said"),
    [({"count": 0}, "given: 0; allowed: 1 to 10,000"), ({"rate": 0.0}, "above 0"),
     ({"rate": float("nan")}, "above 0"), ({"count": 3, "rate": 1.0}, "count 3 and rate 1.0")],
)  # fmt: skip
def test_a_sampling_that_takes_nothing_is_refused(asked, said):
    refuses(said, Sampling, **asked, error=InputError)


def test_videos_are_found_by_their_ids(tmp_path):
    folder = tmp_path / "frames"
    folder.mkdir()
    for name in ("a.webm", "a.npy", "b.AVI", "c.pt", "d.mp4", "d.mkv"):
        (tmp_path / name).touch()
    found = find(tmp_path, ["a", "b", "c", "d", "d.mkv", "frames", "gone", "a"])
    assert found == {
        "a": FileSource(tmp_path / "a.webm"),
        "b": FileSource(tmp_path / "b.AVI"),
        "c": FrameFeatures(tmp_path / "c.pt"),
        "d": FileSource(tmp_path / "d.mp4"),
        "d.mkv": FileSource(tmp_path / "d.mkv"),
        "frames": FrameFolder(folder),
    }
    refuses("none of the 1 videos is in this folder", find, tmp_path, ["gone"])
    refuses("no such folder of videos", find, tmp_path / "none", ["a"])
