import numpy as np
import pytest

from counterfoil.benchmarks import BytesSource, Image
from counterfoil.benchmarks.videos import FrameFeatures, Video
from counterfoil.engine.cache import Cache
from counterfoil.engine.caption_scoring import score_benchmark
from counterfoil.engine.plan import items
from counterfoil.engine.session import Session
from counterfoil.errors import ScoreError
from counterfoil.inputs.files import digest
from counterfoil.models.captions.base import CaptionTokens
from engine.metric_fakes import Best, Words, frames, rated
from refusals import refuses


def embedded(images, folder, local, note=print, batch_size=2):
    keys = [digest(image.id.encode()) for image in images]
    plan = items(images, (), (np.empty(0, int), np.arange(len(images))), keys)
    return Session(batch_size=batch_size, note=note).frames(local, plan, Cache(folder, Words().identity))


def pictures(n, kind=Image):
    return tuple(kind(f"v{i}", BytesSource(bytes([i + 1] * (i + 1)))) for i in range(n))


def test_items_of_any_number_of_parts_come_back_from_the_cache_as_they_were(tmp_path):
    images = pictures(7)
    first = embedded(images, tmp_path, Words())
    again = Words()
    second = embedded(tuple(reversed(images)), tmp_path, again, batch_size=5)
    assert again.images_seen == []
    assert [len(each) for each in first] == [1 + (i + 1) % 5 for i in range(7)]
    for one, other, image in zip(first, reversed(second), images, strict=True):
        assert one.tobytes() == other.tobytes() == frames(image.read()).tobytes()
        assert one.shape == other.shape


def test_tokens_come_back_whole(tmp_path):
    benchmark, needs, session = rated(20), ("images", "captions", "references"), Session(tmp_path)
    first = score_benchmark(benchmark, Best(Words(), needs), session=session)
    local = Words()
    second = score_benchmark(benchmark, Best(local, needs), session=session)
    assert local.captions_seen == local.images_seen == []
    assert first.values.tobytes() == second.values.tobytes()
    expected = Words().tokens("a word0 and more0")
    key = digest(b"a word0 and more0")
    ((_, parts),) = Cache(tmp_path, local.identity).stream_parts("tokens", [key], [])
    for name in ("ids", "used", "vectors", "whole"):
        assert np.array_equal(CaptionTokens(**parts).__dict__[name], expected.__dict__[name])


def test_a_run_stopped_in_the_middle_goes_on_after_the_last_video(tmp_path):
    videos = pictures(6, Video)
    local = Words(stop_after=4)
    refuses("", embedded, videos, tmp_path, local, error=KeyboardInterrupt)
    assert local.images_seen == ["v0", "v1", "v2", "v3"]
    local = Words()
    found = embedded(videos, tmp_path, local)
    assert local.images_seen == ["v4", "v5"]
    assert [each.tobytes() for each in found] == [frames(v.read()).tobytes() for v in videos]


def test_frames_that_are_given_are_not_kept_again(tmp_path):
    class Given(Words):
        def embed_frames(self, batches, *, workers=0):
            for batch in batches:
                yield [np.eye(4, dtype=np.float32)[: len(image.id)] for image in batch]

    mixed = (Video("v", FrameFeatures(tmp_path / "v.npy")), Image("ab", BytesSource(b"x")))
    found = embedded(mixed, tmp_path / "cache", Given())
    assert [each.shape for each in found] == [(1, 4), (2, 4)]
    keys = [digest(b"v"), digest(b"ab")]
    cache = Cache(tmp_path / "cache", Words().identity)
    assert [key for key, _ in cache.stream_parts("frames", keys, [])] == keys[1:]


@pytest.mark.parametrize("harm", ["cut", "altered"])
def test_a_damaged_shard_is_passed_over_and_noted(tmp_path, harm):
    images = pictures(4)
    expected = embedded(images, tmp_path, Words())
    (path,) = tmp_path.rglob("frames/*.npz")
    data = path.read_bytes()
    middle = len(data) // 2
    path.write_bytes(
        data[:middle] if harm == "cut" else data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :]
    )
    notes = []
    local = Words()
    found = embedded(images, tmp_path, local, note=notes.append)
    assert len(notes) == 1
    assert "damaged cache file passed over" in notes[0]
    assert len(local.images_seen) == 4
    assert [each.tobytes() for each in found] == [each.tobytes() for each in expected]


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (np.empty((0, 4), np.float32), "^embedding frames, image 'v2': an item without any part"),
        (np.full((1, 4), np.nan, np.float32), "^embedding frames, image 'v2': .*numbers that are not finite"),
        (np.ones((1, 3), np.float32), "embeddings of different widths.*given: 3 after 4"),
    ],
)
def test_parts_that_are_no_parts_name_their_item(last, message):
    class Broken(Words):
        def embed_frames(self, batches, *, workers=0):
            whole = np.ones((1, 4), np.float32)
            yield from ([last if image.id == "v2" else whole for image in batch] for batch in batches)

    refuses(message, embedded, pictures(3), None, Broken(), error=ScoreError)
