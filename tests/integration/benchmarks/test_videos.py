"""Videos written here, frame by known frame, in several containers; cut off, turned, silent, unreadable."""

import sys
import weakref
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import PIL.Image
import pytest

from counterfoil.benchmarks.records import FileSource
from counterfoil.benchmarks.videos import FrameFeatures, FrameFolder, Sampling, Video
from counterfoil.engine.cache_keys import image_keys
from counterfoil.engine.plan import silent
from counterfoil.errors import DataError, MissingExtraError
from numbered_videos import BITS, KINDS, number_of, numbered, write
from refusals import refuses


def video(path, *, start=None, end=None, **sampling):
    return Video(path.stem, FileSource(path), start=start, end=end, sampling=Sampling(**sampling))


def numbers(made):
    return [number_of(picture) for picture in made.frames()]


@pytest.fixture(scope="module", params=KINDS)
def clip(request, tmp_path_factory):
    return write(tmp_path_factory.mktemp("clips") / f"clip.{request.param}")


def test_all_frames_in_order(clip):
    assert numbers(video(clip)) == list(range(40))
    assert next(video(clip).frames()).mode == "RGB"


def test_frames_by_count_rate_and_part(clip):
    # 40 frames, ten per second: frame i is on show from i / 10.
    assert numbers(video(clip, count=5)) == [0, 9, 19, 29, 39]
    assert numbers(video(clip, count=1)) == [0]
    assert numbers(video(clip, rate=2)) == [0, 5, 10, 15, 20, 25, 30, 35]
    assert numbers(video(clip, rate=2.5, start=1.05)) == [10, 14, 18, 22, 26, 30, 34, 38]
    assert numbers(video(clip, start=3.0, end=3.5)) == [30, 31, 32, 33, 34]
    assert numbers(video(clip, start=3.6, end=99.0)) == [36, 37, 38, 39]
    assert numbers(video(clip, start=3.01, end=3.02)) == [30]
    assert numbers(video(clip, start=1.0, end=2.0, count=3)) == [10, 14, 19]
    assert numbers(video(clip, count=60)) == [39 * k // 59 for k in range(60)]
    # A frame that is chosen twice is decoded, and cropped, once.
    for many in (video(clip, count=60), replace(video(clip, count=60), crop=(0, 0, 8, 8))):
        shown = list(many.frames())
        assert len({id(picture) for picture in shown}) == 40


def test_a_part_that_starts_late_is_jumped_to(tmp_path):
    assert numbers(video(write(tmp_path / "long.mp4", 250), start=21.3, end=22.0)) == list(range(213, 220))


def test_a_real_clip(shared_data):
    path = shared_data / "video" / "Bfyp0C02sko_000248_000258.mp4"
    whole = [np.asarray(picture).mean() for picture in video(path).frames()]
    assert len(whole) == 250
    places = (0, 27, 55, 83, 110, 138, 166, 193, 221, 249)
    for at, picture in zip(places, video(path, count=10).frames(), strict=True):
        assert picture.size == (640, 360)
        assert np.asarray(picture).mean() == whole[at]
    # Jumped to, decoded from a key frame, and the same to the last bit.
    late = [np.asarray(picture).mean() for picture in video(path, start=8.0, end=8.4).frames()]
    assert late == whole[200:210]


def remuxed(path, out, *, start=0.0, **options):
    """The same packets in another file, those before `start` kept but not to be shown."""
    with av.open(str(path)) as given, av.open(str(out), "w", options=options) as made:
        old = given.streams.video[0]
        new = made.add_stream_from_template(old)
        off = int(start / old.time_base)
        for packet in given.demux(old):
            if packet.dts is not None:
                packet.pts, packet.dts, packet.stream = packet.pts - off, packet.dts - off, new
                made.mux(packet)
    return out


def test_what_a_file_hides_is_not_counted(shared_data, tmp_path):
    # Cut without decoding: the file holds all 250 frames, and says that 133 of them are not shown.
    real = shared_data / "video" / "Bfyp0C02sko_000248_000258.mp4"
    path = remuxed(real, tmp_path / "trimmed.mp4", start=5.3)
    shown = [np.asarray(picture).mean() for picture in video(path).frames()]
    assert shown == [np.asarray(picture).mean() for picture in video(real).frames()][133:]
    some = [np.asarray(picture).mean() for picture in video(path, count=4).frames()]
    assert some == [shown[i] for i in (0, 38, 77, 116)]


@pytest.mark.parametrize("share", [0.3, 0.95, 0.999])
def test_a_real_clip_cut_off(shared_data, tmp_path, share):
    real = shared_data / "video" / "Bfyp0C02sko_000248_000258.mp4"
    path = remuxed(real, tmp_path / "front.mp4", movflags="faststart")
    data = path.read_bytes()
    assert len(list(video(path).frames())) == 250
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(DataError, match=r"front\.mp4: the video is cut off .* given: \d+ frames .* 250, as"):
        next(video(path, count=1).frames())
    # With its table at the end, a file that is cut off cannot be told from any other bytes.
    path.write_bytes(real.read_bytes()[: int(real.stat().st_size * share)])
    refuses(r"front\.mp4: not a video that can be read: .*cut off\?", next, video(path, count=1).frames())


@pytest.mark.parametrize("kind", ["mp4", "mov", "avi", "mkv", "webm"])
def test_a_file_cut_off_in_the_middle_is_named_with_what_is_left(kind, tmp_path):
    options = {"movflags": "faststart"} if kind in ("mp4", "mov") else {}
    path = write(tmp_path / f"whole.{kind}", 120, **options)
    cut = tmp_path / f"cut.{kind}"
    data = path.read_bytes()
    # The last tenth of an AVI is its index, without which all frames can be read.
    for share in (0.4, 0.6) if kind == "avi" else (0.4, 0.6, 0.9):
        cut.write_bytes(data[: int(len(data) * share)])
        for made in (video(cut), video(cut, count=3), video(cut, rate=1), video(cut, start=0.1, end=0.2)):
            assert "120" in refuses(rf"cut\.{kind}: the video is cut off", next, made.frames())


def test_a_file_without_its_table_is_no_video(tmp_path):
    # Without faststart the table of an mp4 is at its end.
    path = write(tmp_path / "whole.mp4")
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    refuses(r"cut\.mp4: .*cut off\?", next, video(cut).frames())


def test_damage_in_the_middle_is_an_error_and_not_fewer_frames(tmp_path):
    data = bytearray(write(tmp_path / "whole.mov", 120).read_bytes())
    middle = len(data) // 2
    data[middle - 600 : middle + 600] = bytes(1200)
    (tmp_path / "bad.mov").write_bytes(bytes(data))
    with pytest.raises(DataError, match=r"bad\.mov: the video is cut off or damaged; given: \d+ frames"):
        numbers(video(tmp_path / "bad.mov"))


def test_what_is_no_video_is_said_in_a_line(tmp_path):
    text = tmp_path / "text.mp4"
    text.write_text("this is no video at all\n" * 50)
    empty = tmp_path / "empty.mp4"
    empty.touch()
    sound = tmp_path / "sound.mp4"
    with av.open(str(sound), "w") as container:
        stream = container.add_stream("aac", rate=16000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 16000
        for packet in [*stream.encode(frame), *stream.encode()]:
            container.mux(packet)
    for path, said in [
        (text, "not a video that can be read"),
        (empty, "not a video that can be read"),
        (sound, "no moving pictures in the file; given: streams: audio"),
        (tmp_path / "none.mp4", "no such video file"),
        (tmp_path, "a folder, not a video file"),
    ]:
        assert refuses("", next, video(path).frames()).startswith(f"{path}: {said}")


def test_a_phone_held_upright_shows_upright(tmp_path):
    data = write(tmp_path / "flat.mp4", 3).read_bytes()
    one = (1 << 16).to_bytes(4, "big")
    zero, minus = bytes(4), (-1 << 16).to_bytes(4, "big", signed=True)
    plain = one + zero * 3 + one
    place = data.index(plain, data.index(b"tkhd"))
    # ISO 14496-12: (x, y) goes to (a x + c y, b x + d y), y down; a, b, u, c, d lie in this order. What
    # points right then points down: a quarter turn with the clock.
    turned = zero + one + zero + minus + zero
    (tmp_path / "turned.mp4").write_bytes(data[:place] + turned + data[place + len(turned) :])
    flat, upright = (np.asarray(next(video(tmp_path / name).frames())) for name in ("flat.mp4", "turned.mp4"))
    assert (np.rot90(flat, -1) == upright).all()
    # Number 0 has no light bar; the third frame has one, second from the left: now second from the top.
    *_, last = video(tmp_path / "turned.mp4").frames()
    rows = np.asarray(last.convert("L"), dtype=np.float64).mean(axis=1).reshape(BITS, -1).mean(axis=1)
    assert np.flatnonzero(rows > 120).tolist() == [1]


def test_a_crop_applies_to_every_frame(tmp_path):
    made = Video("clip", FileSource(write(tmp_path / "clip.mp4", 4)), crop=(0, 0, 8, 32))
    assert [picture.size for picture in made.frames()] == [(8, 32)] * 4


def test_few_frames_are_held_at_a_time(tmp_path):
    path = write(tmp_path / "long.mp4", 300)
    alive = weakref.WeakValueDictionary()
    most = seen = 0
    for picture in video(path).frames():
        alive[seen] = picture
        seen += 1
        most = max(most, len(alive))
    assert seen == 300
    assert most <= 3


def test_the_file_is_closed_with_the_iterator(tmp_path):
    path = write(tmp_path / "clip.mp4")

    def handles():
        links = Path("/proc/self/fd")
        if not links.is_dir():
            pytest.skip("no list of open files here")
        result = 0
        for link in links.iterdir():
            try:
                result += link.readlink() == path
            except OSError:
                continue
        return result

    frames = video(path).frames()
    next(frames)
    assert handles() == 1
    frames.close()
    assert handles() == 0
    frames = video(path).frames()
    next(frames)
    del frames
    assert handles() == 0


def test_without_pyav_the_extra_is_named(tmp_path, monkeypatch):
    path = write(tmp_path / "clip.mp4", 2)
    monkeypatch.setitem(sys.modules, "av", None)
    refuses(r"pip install 'counterfoil\[video\]'", next, video(path).frames(), error=MissingExtraError)


# Folders of frames and features.


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "frames"
    made.mkdir()
    for number in range(12):
        PIL.Image.fromarray(numbered(number)).save(made / f"frame{number}.png")
    (made / "notes.txt").write_text("no picture")
    return made


def test_a_folder_of_frames_is_in_the_order_of_its_numbers(folder):
    assert numbers(Video("a", FrameFolder(folder))) == list(range(12))
    assert numbers(Video("a", FrameFolder(folder), sampling=Sampling(count=4))) == [0, 3, 7, 11]
    timed = FrameFolder(folder, rate=4)
    assert numbers(Video("a", timed, start=1.0, end=2.0)) == [4, 5, 6, 7]
    assert numbers(Video("a", timed, sampling=Sampling(rate=1))) == [0, 4, 8]


def test_frames_without_a_rate_have_no_seconds(folder):
    for part in ({"start": 1.0}, {"sampling": Sampling(rate=1)}):
        made = Video("a", FrameFolder(folder), **part)
        refuses(r"the times of these frames are unknown; .*give their rate", next, made.frames())


def test_folders_that_hold_no_frames(tmp_path, folder):
    (tmp_path / "empty").mkdir()
    refuses("empty: the video has no frames", next, Video("a", FrameFolder(tmp_path / "empty")).frames())
    refuses("no such folder of frames", next, Video("a", FrameFolder(tmp_path / "none")).frames())
    (folder / "frame3.png").write_bytes(b"no picture")
    refuses(r"frame3\.png: not an image file", list, Video("a", FrameFolder(folder)).frames())


def test_features_are_read_cut_and_sampled(tmp_path):
    rows = np.arange(60, dtype=np.float64).reshape(20, 3)
    np.save(tmp_path / "v.npy", rows)
    source = FrameFeatures(tmp_path / "v.npy", duration=10.0)
    result = source.read()
    assert result.dtype == np.float32
    assert (result == rows).all()
    assert (Video("v", source).part_of(result) == rows).all()
    assert (Video("v", source, start=2.0, end=4.9).part_of(result) == rows[4:9]).all()
    assert (Video("v", source, sampling=Sampling(count=4)).part_of(result) == rows[[0, 6, 12, 19]]).all()
    late = Video("v", source, start=5.0, sampling=Sampling(count=2))
    assert (late.part_of(result) == rows[[10, 19]]).all()
    for made, said in [
        (Video("v", FrameFeatures(source.path), start=1.0), "duration is not known"),
        (Video("v", source, sampling=Sampling(rate=1)), "not taken by rate"),
        (Video("v", source, start=11.0), "video 'v': a part starts after"),
    ]:
        refuses(said, made.part_of, result)
    refuses("embedded frames where pictures", next, Video("v", source).frames())


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((0, 3)), "has no frames"),
        (np.zeros(3), r"given: float64 of \(3,\)"),
        (np.array([[1.0], [np.nan], [2.0]]), "frame 1: frame features are not finite; given: 1 of 3"),
        (np.array([["a"]]), "not frame features"),
        (np.array([[None]]), "not plain data; given: object"),
    ],
)
def test_features_that_are_none(tmp_path, array, said):
    np.save(tmp_path / "v.npy", array, allow_pickle=True)
    refuses(said, FrameFeatures(tmp_path / "v.npy").read)


def test_feature_files_that_cannot_be_read(tmp_path):
    np.save(tmp_path / "v.npy", np.zeros((50, 8)))
    data = (tmp_path / "v.npy").read_bytes()
    (tmp_path / "v.npy").write_bytes(data[: len(data) // 2])
    refuses("cut off", FrameFeatures(tmp_path / "v.npy").read)
    refuses("no such file", FrameFeatures(tmp_path / "w.npy").read)
    refuses(r"only a model's own library .*\.npy", FrameFeatures(tmp_path / "w.pt").read)


# What they are called.


def keys(*made):
    return image_keys(made, cache=None, progress=silent)


def test_a_video_is_named_by_its_bytes_its_part_and_its_frames(tmp_path):
    for name in ("a.mp4", "same.mp4"):
        (tmp_path / name).write_bytes(b"the bytes of a video")
    (tmp_path / "other.mp4").write_bytes(b"others")
    base = video(tmp_path / "a.mp4")
    assert keys(base) == keys(video(tmp_path / "same.mp4"))
    different = [
        base,
        video(tmp_path / "other.mp4"),
        video(tmp_path / "a.mp4", start=1.0),
        video(tmp_path / "a.mp4", end=1.0),
        video(tmp_path / "a.mp4", count=3),
        video(tmp_path / "a.mp4", rate=3),
        Video("a", FileSource(tmp_path / "a.mp4"), crop=(0, 0, 1, 1)),
        Video("a", FrameFeatures(tmp_path / "a.mp4")),
        Video("a", FrameFeatures(tmp_path / "a.mp4", duration=3.0)),
    ]
    assert len(set(keys(*different))) == len(different)


def test_a_folder_is_named_by_all_its_frames(folder):
    before = keys(Video("a", FrameFolder(folder)))
    assert before == keys(Video("b", FrameFolder(folder)))
    assert before != keys(Video("a", FrameFolder(folder, rate=2)))
    PIL.Image.fromarray(numbered(99)).save(folder / "frame7.png")
    assert before != keys(Video("a", FrameFolder(folder)))


def test_a_large_file_is_named_without_holding_it(tmp_path):
    import tracemalloc

    path = tmp_path / "large.mp4"
    with path.open("wb") as file:
        file.truncate(64 << 20)
    tracemalloc.start()
    keys(video(path))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20 << 20


def test_missing_videos_are_named(tmp_path):
    refuses("no such", keys, video(tmp_path / "none.mp4"))
    refuses("video 'a' is not at hand", next, Video("a").frames())
