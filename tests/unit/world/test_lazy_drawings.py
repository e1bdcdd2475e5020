"""Pictures drawn when they are read: those that are drawn at once, at any size, from the same scenes."""

import pickle

import numpy as np
import pytest

from counterfoil.benchmarks.records import decode
from counterfoil.errors import UnknownNameError
from counterfoil.world.benchmarks import as_collected, clips, gallery
from counterfoil.world.drawings import sized
from counterfoil.world.sample import choices, painted, quads

STYLES = ("natural", "synthetic")


@pytest.mark.parametrize("size", [48, 128])
@pytest.mark.parametrize(
    "make",
    [
        lambda **more: quads(14, styles=STYLES, **more),
        lambda **more: choices(14, style="synthetic", **more),
        lambda **more: gallery(8, **more),
    ],
    ids=["quads", "choices", "gallery"],
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


def test_a_lazy_benchmark_is_drawn_at_any_size():
    small = quads(7, size=32, styles=STYLES, lazy=True)
    large = sized(small, 192)
    assert {image.decode().size for image in large.images} == {(192, 192)}
    assert large.digest == small.digest
    drawn = quads(7, size=192, styles=STYLES)
    assert all(a.read() == b.read() for a, b in zip(large.images, drawn.images, strict=True))
    # Pictures that are there already stay as they are.
    assert sized(drawn, 48).images == drawn.images


@pytest.mark.parametrize("size", [48, 128])
def test_what_is_painted_is_what_would_have_been_drawn(size):
    later = quads(14, size=size, styles=STYLES, lazy=True)
    now = painted(later)
    assert [image.id for image in now.images] == [image.id for image in later.images]
    assert [image.read() for image in now.images] == [image.read() for image in later.images]
    assert now.digest == later.digest
    with pytest.raises(ValueError, match="zip"):
        painted(now)


def test_clips_are_drawn_at_any_size():
    larger = sized(clips(6, size=32), 64)
    asked = clips(6, size=64)
    for one, other in zip(larger.images, asked.images, strict=True):
        assert one.source == other.source
        assert one.source.frame(3).size == (64, 64)


def test_a_gallery_as_it_would_have_been_collected():
    whole = gallery(20, size=32, captions_each=3)
    own = gallery(20, size=32, captions_each=3, known="own")
    assert own.name == f"{whole.name}-own"
    assert own.questions.ids == whole.questions.ids
    assert own.digest == as_collected(whole).digest != whole.digest
    assert own.gallery.t2i.positives.items.tolist() == whole.gallery.owners.tolist()
    assert own.gallery.i2t.positives.counts.tolist() == [3] * 20
    # Everything a caption was written for is true of it.
    for row, owner in enumerate(whole.gallery.owners.tolist()):
        p = whole.gallery.t2i.positives
        assert owner in p.items[p.starts[row] : p.starts[row + 1]]
    with pytest.raises(UnknownNameError, match="did you mean 'own'"):
        gallery(4, size=32, known="owm")
