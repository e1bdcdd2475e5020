"""Moving scenes: what moves moves that way, what does not stays, nothing meets, nothing flickers."""

import pickle

import numpy as np
import pytest

from counterfoil.benchmarks.records import decode
from counterfoil.benchmarks.videos import FrameStack, Sampling, Video
from counterfoil.engine.cache_keys import image_keys
from counterfoil.engine.plan import silent
from counterfoil.errors import UnknownNameError
from counterfoil.world.benchmarks import FRAMES, MOTIONS, gallery, moving
from counterfoil.world.painting import Animation, draw
from counterfoil.world.ratings import rated
from counterfoil.world.sample import choices, quads
from counterfoil.world.scenes import CONTAINERS
from refusals import refuses

AXES = {"right": ("x", 1), "left": ("x", -1), "down": ("y", 1), "up": ("y", -1)}
CLIPS = 60


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(8)
    return {motion: [moving(motion, rng) for _ in range(CLIPS)] for motion in MOTIONS}


def split(frames):
    """What is in every frame, and what else there is, frame by frame."""
    still = [thing for thing in frames[0].things if all(thing in scene.things for scene in frames)]
    return still, [[thing for thing in scene.things if thing not in still] for scene in frames]


@pytest.mark.parametrize("motion", AXES)
def test_one_thing_crosses_the_sheet_that_way(made, motion):
    axis, sign = AXES[motion]
    other = "y" if axis == "x" else "x"
    for frames in made[motion]:
        still, rest = split(frames)
        assert len(still) == len(frames[0].things) - 1
        (path,) = zip(*rest, strict=True)
        at = np.array([getattr(thing, axis) for thing in path])
        assert len({getattr(thing, other) for thing in path}) == 1
        assert (np.diff(at) * sign >= 0).all()
        assert sign * (at[-1] - at[0]) > 0.5
        assert len({(thing.shape, thing.colour, thing.size, thing.texture) for thing in path}) == 1


@pytest.mark.parametrize("motion", ["enters", "leaves"])
def test_one_thing_comes_or_goes_for_good(made, motion):
    for frames in made[motion]:
        still, rest = split(frames)
        there = [len(things) for things in (rest if motion == "enters" else rest[::-1])]
        assert (there, there[0], there[-1]) == (sorted(there), 0, 1)
        assert len(still) >= 1
        # It is there for a good part of the clip, and away for one.
        assert FRAMES / 4 <= sum(there) <= FRAMES * 3 / 4


def test_a_scene_changes_once_in_the_middle(made):
    for frames in made["changes"]:
        assert (len(set(frames)), frames.index(frames[-1])) == (2, FRAMES // 2)


def test_nothing_meets_and_nothing_is_off_the_sheet(made):
    for motion in MOTIONS:
        for frames in made[motion]:
            assert len(frames) == FRAMES
            for scene in frames:
                assert all(0 <= at <= 1 for thing in scene.things for at in (thing.x, thing.y))
                if motion == "changes":
                    continue
                assert not any(thing.shape in CONTAINERS for thing in scene.things)
                for i, one in enumerate(scene.things):
                    for two in scene.things[i + 1 :]:
                        assert max(abs(one.x - two.x), abs(one.y - two.y)) >= 0.16


def test_an_unknown_motion_is_named():
    refuses("did you mean 'enters'", moving, "entres", np.random.default_rng(0), error=UnknownNameError)


def test_a_reel_is_a_video_in_memory(made):
    reel = Animation(made["right"][0], 48, "natural")
    assert isinstance(reel, FrameStack)
    shown = [np.asarray(picture) for picture in Video("a", reel).frames()]
    assert len(shown) == FRAMES
    assert all((np.asarray(reel.frame(i)) == picture).all() for i, picture in enumerate(shown))
    some = Video("a", reel, start=0.5, end=1.0, sampling=Sampling(count=2))
    first, last = int(0.5 * reel.rate), int(1.0 * reel.rate) - 1
    assert [(np.asarray(p) == shown[i]).all() for p, i in zip(some.frames(), (first, last), strict=True)] == [
        True,
        True,
    ]


@pytest.mark.parametrize("style", ["natural", "synthetic"])
def test_only_what_moves_changes(made, style):
    for frames in made["right"][:10]:
        reel = Animation(frames, 96, style)
        pictures = np.stack([np.asarray(reel.frame(i), dtype=int) for i in range(len(frames))])
        assert (pictures[0] == np.asarray(draw(frames[0], 96, style=style))).all()
        changed = (pictures != pictures[0]).any(axis=(0, 3))
        row = next(t for t in frames[0].things if t not in frames[-1].things).y * 96
        # Nothing further from the row than the largest thing and its shadow.
        far = np.abs(np.arange(96) - row) > 96 * 0.25
        assert changed.any()
        assert not changed[far].any()


def test_a_key_costs_no_drawing_and_tells_clips_apart(made, monkeypatch):
    def drawn(*_, **__):
        raise AssertionError("a frame was drawn")

    monkeypatch.setattr("counterfoil.world.painting.draw", drawn)
    clips = [frames for motion in MOTIONS for frames in made[motion]]
    videos = [Video(str(i), Animation(frames, 48, "natural")) for i, frames in enumerate(clips)]
    one = clips[0]
    videos += [
        Video("a", Animation(one, 64, "natural")),
        Video("b", Animation(one, 48, "synthetic")),
        Video("c", Animation(one, 48, "natural"), sampling=Sampling(count=3)),
        Video("d", Animation(one[::-1], 48, "natural")),
    ]
    keys = image_keys(videos, cache=None, progress=silent)
    assert len(set(keys)) == len(videos)
    again = [Video(f"{i}", pickle.loads(pickle.dumps(video.source))) for i, video in enumerate(videos[:5])]
    assert image_keys(again, cache=None, progress=silent) == keys[:5]


STYLES = ("natural", "synthetic")


@pytest.mark.parametrize("size", [48, 128])
@pytest.mark.parametrize(
    "make",
    [
        lambda **more: quads(14, styles=STYLES, **more),
        lambda **more: choices(14, style="synthetic", **more),
        lambda **more: gallery(8, **more),
        lambda **more: rated(8, **more),
    ],
    ids=["quads", "choices", "gallery", "rated"],
)
def test_lazy_pictures_are_those_that_are_drawn_at_once(make, size):
    now, later = make(size=size), make(size=size, lazy=True)
    assert now.digest == later.digest
    for one, other in zip(now.images, later.images, strict=True):
        assert one.id == other.id
        assert np.array_equal(np.asarray(other.decode()), np.asarray(decode(other.read(), where="")))
        assert np.array_equal(
            np.asarray(one.decode()), np.asarray(pickle.loads(pickle.dumps(other)).decode())
        )
