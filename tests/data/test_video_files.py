"""Videos in a folder, found by their ids."""

import pytest

from counterfoil.data.records import FileSource
from counterfoil.data.videos import FrameFeatures, FrameFolder, find
from counterfoil.errors import DataError


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
    with pytest.raises(DataError, match="none of the 1 videos is in this folder"):
        find(tmp_path, ["gone"])
    with pytest.raises(DataError, match="no such folder of videos"):
        find(tmp_path / "none", ["a"])
