"""Videos in a release: files that `datasets` and `mlcroissant` give back as they were; what is refused."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from contracts import forms
from counterfoil.benchmarks.folder import load
from counterfoil.benchmarks.publishing.facts import Publication
from counterfoil.benchmarks.publishing.licences import find
from counterfoil.benchmarks.publishing.writing import publish_folder
from counterfoil.benchmarks.records import FileSource
from counterfoil.benchmarks.videos import FrameFeatures, FrameFolder, Video
from counterfoil.errors import DataError

av = pytest.importorskip("av")
datasets = pytest.importorskip("datasets")
MIT = Publication(licence=find("MIT"))


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """Rated captions of four videos; the second is a part of its file, and the last is not at hand."""
    folder, rng = tmp_path_factory.mktemp("videos"), np.random.default_rng(0)
    for name in "abc":
        with av.open(str(folder / f"{name}.mp4"), "w") as file:
            stream = file.add_stream("mpeg4", rate=5)
            stream.width = stream.height = 32
            stream.pix_fmt = "yuv420p"
            for _ in range(10):
                pixels = rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)
                file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
            file.mux(stream.encode())
    videos = [Video(f"clips/{name}", FileSource(folder / f"{name}.mp4")) for name in "abc"]
    videos[1] = replace(videos[1], start=0.5, end=1.5)
    rated = forms.rated(np.array([[1.0], [2.0], [3.0], [4.0]]), per_image=1)
    assert len(rated.images) == 4
    return replace(rated, images=(*videos, Video("clips/gone")))


def test_files_come_back_byte_for_byte(clips, tmp_path):
    publish_folder(clips, tmp_path / "out", MIT)
    read = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))["test"]
    assert isinstance(read.features["image"], datasets.Video)
    rows = {row["id"]: row for row in read.cast_column("image", datasets.Video(decode=False))}
    for name, at in zip(clips.questions.ids, clips.questions.images.tolist(), strict=True):
        video, cell = clips.images[at], rows[name]["image"]
        if video.source is None:
            assert cell is None
            continue
        assert cell["bytes"] == video.source.read()
        assert cell["path"] == f"{Path(video.id).name}.mp4"
        assert (rows[name]["image_start"], rows[name]["image_end"]) == (video.start, video.end)
    again = load(tmp_path / "out")
    assert again.digest == clips.digest
    assert [len(list(video.frames())) for video in again.images[:3]] == [
        len(list(video.frames())) for video in clips.images[:3]
    ]


_GENERATE = """
import base64, json, sys, warnings
warnings.simplefilter("ignore")
import mlcroissant
read = mlcroissant.Dataset(sys.argv[1])
issues = read.metadata.ctx.issues
found = [record["default/image"] for record in read.records("default")]
plain = [each["bytes"] if isinstance(each, dict) else each for each in found]
print(json.dumps([[*issues.errors, *issues.warnings],
                  [each and base64.b64encode(each).decode() for each in plain]]))
"""


def test_mlcroissant_gives_the_bytes(clips, tmp_path):
    import base64

    pytest.importorskip("mlcroissant")
    whole = replace(clips, images=(*clips.images[:3], replace(clips.images[0], id="d")))
    publish_folder(whole, tmp_path / "out", MIT)
    done = subprocess.run(
        [sys.executable, "-c", _GENERATE, str(tmp_path / "out" / "croissant.json")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert not done.returncode, done.stderr[-2000:]
    issues, found = json.loads(done.stdout)
    assert issues == []
    wanted = [whole.images[at].source.read() for at in whole.questions.images.tolist()]
    assert [base64.b64decode(each) for each in found] == wanted


def test_what_is_no_video_file_is_refused(clips, tmp_path):
    first, *others = clips.images
    (tmp_path / "frames").mkdir()
    PIL.Image.new("RGB", (8, 8)).save(tmp_path / "frames" / "0.png")
    for odd, words in (
        (replace(first, source=FrameFolder(tmp_path / "frames", 1.0)), "a video that is no file"),
        (replace(first, source=FrameFeatures(tmp_path / "a.npy")), "a video that is no file"),
        (replace(first, crop=(0, 0, 8, 8)), "a part of its frames"),
        (forms.rated(np.array([[1.0]])).images[0], "pictures and videos cannot be published in one column"),
    ):
        with pytest.raises(DataError, match=words):
            publish_folder(replace(clips, images=(odd, *others)), tmp_path / "out", MIT)
        assert not (tmp_path / "out").exists()
