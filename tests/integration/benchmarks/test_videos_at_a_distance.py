"""Videos behind a URL: the frames, names and errors of videos on a disk, read by their ranges."""

from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from bucket_servers import copied
from counterfoil.benchmarks.caption_files import Written
from counterfoil.benchmarks.records import FileSource
from counterfoil.benchmarks.video_frames import Sampling
from counterfoil.benchmarks.videos import FrameFolder, Video, find
from counterfoil.engine.cache_keys import image_keys
from counterfoil.engine.deduplicate import silent
from counterfoil.jobs.captions import MediaFolder
from counterfoil.storage import open_place
from numbered_videos import number_of, numbered, write
from refusals import refuses


@pytest.fixture
def near(tmp_path):
    """A video in two containers, one that counts no frames, and one as a folder of pictures."""
    folder = tmp_path / "near"
    (folder / "c").mkdir(parents=True)
    write(folder / "a.mp4")
    write(folder / "b.mkv", 25)
    for number in range(12):
        PIL.Image.fromarray(numbered(number)).save(folder / "c" / f"{number}.png")
    (folder / "notes.txt").write_text("no video")
    return folder


def _videos(folder):
    candidates = Written(Path("c.json"), {"a": ("x",), "b": ("x",), "c": ("x",)})
    found = MediaFolder(videos=folder, sampling=Sampling(count=7)).items(candidates, lambda note: None)
    return [each for each in found if isinstance(each, Video)]


def test_frames_and_names_are_those_of_a_disk(root, near):
    far = _videos(copied(near, Path(f"{root}/shown")))
    here = _videos(near)
    for one, other in zip(far, here, strict=True):
        pixels = [[np.asarray(frame) for frame in each.frames()] for each in (one, other)]
        assert len(pixels[0]) == len(pixels[1]) == 7
        assert all(np.array_equal(*pair) for pair in zip(*pixels, strict=True))
    assert [number_of(frame) for frame in far[0].frames()] == [0, 6, 13, 19, 26, 32, 39]
    assert image_keys(far, cache=None, progress=silent) == image_keys(here, cache=None, progress=silent)
    part = Video("a", far[0].source, start=2.0, end=3.0, sampling=Sampling(rate=5))
    assert [number_of(frame) for frame in part.frames()] == [20, 22, 24, 26, 28]


def test_a_large_video_is_named_and_decoded_a_block_at_a_time(root, near, monkeypatch):
    far = _videos(copied(near, Path(f"{root}/shown")))
    monkeypatch.setattr("counterfoil.storage.files._BLOCK", 512)
    monkeypatch.setattr("counterfoil.storage.files._BUFFER", 64)
    monkeypatch.setattr("counterfoil.engine.cache_keys._WHOLE", 256)
    assert [number_of(frame) for frame in far[1].frames()] == [0, 4, 8, 12, 16, 20, 24]
    assert image_keys(far, cache=None, progress=silent) == image_keys(
        _videos(near), cache=None, progress=silent
    )


def test_what_is_wrong_is_one_line(root, near):
    url = f"{root}/shown"
    place, far = open_place(url), Path(copied(near, url))
    whole = (near / "a.mp4").read_bytes()
    place.write("cut.mp4", whole[: len(whole) // 2])
    place.write("text.mp4", b"no video at all" * 100)
    found = find(Path(url), ["cut", "text", "a"])
    for name, words in (
        ("cut", "cut.mp4: .*(cut off|not a video)"),
        ("text", "text.mp4: not a video that can"),
    ):
        refuses(f"shown/{words}", list, Video(name, found[name]).frames())
    place.remove("a.mp4")
    refuses(r"shown/a.mp4: no such (video )?file", list, Video("a", found["a"]).frames())
    refuses("no such folder", MediaFolder, videos=Path(f"{root}/none"))
    assert str(found["a"]) == f"{url}/a.mp4"
    assert isinstance(found["a"], FileSource)
    assert find(far, ["c"]) == {"c": FrameFolder(far / "c")}
    place.write("d.npy", b"features")
    refuses(r"shown/d.npy: frame features are read from a disk; mount", find, far, ["d"])
