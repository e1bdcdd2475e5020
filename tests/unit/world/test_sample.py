import pickle
from collections import Counter

import numpy as np
import PIL.Image
import pytest

from counterfoil.benchmarks.records import decode
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.world.benchmarks import gallery
from counterfoil.world.captions import OPENINGS, matches, text
from counterfoil.world.edits import SUBSETS
from counterfoil.world.painting import draw_many, encode
from counterfoil.world.ratings import preferences, rated
from counterfoil.world.sample import STREAMS, benchmark, choices, contrasts, quads, statements, stream
from refusals import refuses


def content(made):
    return [
        [caption.text for caption in made.captions],
        [image.read() for image in made.images],
        made.questions.captions.tolist(),
        made.questions.images.tolist(),
        made.questions.ids,
        dict(made.questions.groupings),
    ]


def test_a_larger_benchmark_begins_with_the_smaller():
    assert contrasts(50, seed=6)[:23] == contrasts(23, seed=6)
    small, large = quads(23, seed=6, size=32), quads(50, seed=6, size=32)
    assert [c.text for c in large.captions][: len(small.captions)] == [c.text for c in small.captions]
    assert [i.read() for i in large.images][: len(small.images)] == [i.read() for i in small.images]


def test_kinds_of_edit_are_equally_common():
    made = quads(70, size=32)
    assert Counter(made.questions.groupings["subset"]) == dict.fromkeys(SUBSETS, 10)
    # Of the seven kinds three replace, two swap and two add.
    assert Counter(made.questions.groupings["type"]) == {"replace": 30, "swap": 20, "add": 20}
    assert set(made.questions.groups()) == {*SUBSETS, "replace", "swap", "add"}


def test_questions_have_items_of_their_own_begin_alike_and_share_images_within_a_scene_only():
    made = quads(200, seed=1, size=32)
    assert set(Counter(Counter(made.clusters.tolist()).values())) == {1, 2, 3}
    # Questions of one cluster are edits of one scene, which is the first image of some, of others the second.
    for cluster in range(max(made.clusters) + 1):
        assert set.intersection(*map(set, made.questions.images[made.clusters == cluster].tolist()))
    assert (made.questions.captions[:, 0] != made.questions.captions[:, 1]).all()
    assert (made.questions.images[:, 0] != made.questions.images[:, 1]).all()
    assert made.captions_at_hand
    assert made.images_at_hand
    assert len({c.text for c in made.captions}) == len(made.captions)
    assert len({i.read() for i in made.images}) == len(made.images)
    assert made.card.redistributable
    openings = {
        tuple(made.captions[i].text.split()[0] in ("There",) for i in pair)
        for pair in made.questions.captions
    }
    assert openings == {(True, True), (False, False)}


@pytest.mark.parametrize("of", ["quads", "choices", "contrasts"])
def test_what_was_changed_comes_first_in_every_second_contrast_of_a_kind(of):
    made = [c for c in contrasts(210, seed=4, of=of) if c.type == "add"]
    for subset in ("add_obj", "add_att"):
        more = [len(c.scenes[0].things) > len(c.scenes[1].things) for c in made if c.subset == subset]
        assert more == [i % 2 == 1 for i in range(30)]


def test_longer_captions_are_right_as_often_as_shorter_ones():
    """`blind:length` is at chance: 49 to 51 % of what it decides, where ties count half."""
    made = choices(700, seed=3, size=32, lazy=True)
    long = np.array(
        [[len(made.captions[i].text.split()) for i in pair] for pair in made.questions.candidates]
    )
    # Added words come with every second question in either order; the other kinds change few lengths.
    added = np.array([kind == "add" for kind in made.questions.groupings["type"]])
    assert (long[added, 0] > long[added, 1]).sum() == (long[added, 0] < long[added, 1]).sum() == 100
    assert abs(np.sign(long[:, 0] - long[:, 1]).mean()) < 0.02


@pytest.mark.parametrize(
    "styles", [("natural", "natural"), ("natural", "synthetic"), ("synthetic", "natural")]
)
def test_the_pictures_belong_to_their_captions(styles):
    """Drawn pictures stand in the order of their scenes: the first of each question shows its first scene."""
    chosen = contrasts(14, seed=5)
    made = benchmark(chosen, seed=5, size=48, styles=styles)
    large = benchmark(chosen, seed=5, size=100, styles=styles)
    for row, contrast in zip(made.questions.images, chosen, strict=True):
        for i, scene, style in zip(row, contrast.scenes, styles, strict=True):
            assert (np.asarray(made.images[i].decode()) == draw_many([scene], 48, style=style)[0]).all()
            # Larger pictures are JPEG.
            picture = PIL.Image.fromarray(draw_many([scene], 100, style=style)[0])
            assert large.images[i].read() == encode(picture)


def test_how_many_are_drawn_at_a_time_changes_no_byte(monkeypatch):
    whole = content(quads(21, seed=8, size=32))
    monkeypatch.setattr("counterfoil.world.sample._BATCH", 4)
    assert content(quads(21, seed=8, size=32)) == whole


def test_choices_hold_a_caption_and_its_edit():
    made = choices(70, seed=3, size=32)
    chosen = contrasts(70, seed=3, of="choices")
    scenes = list(dict.fromkeys(contrast.scenes[0] for contrast in chosen))
    assert (made.questions.asks, made.questions.candidates.shape) == ("image", (70, 2))
    assert Counter(made.questions.groupings["subset"]) == dict.fromkeys(SUBSETS, 10)
    for question, contrast in enumerate(chosen):
        assert scenes[made.questions.query[question]] == contrast.scenes[0]
        right, wrong = (made.captions[i].text for i in made.questions.candidates[question])
        assert {text(contrast.captions[0], opening=o) for o in OPENINGS} >= {right}
        assert {text(contrast.captions[1], opening=o) for o in OPENINGS} >= {wrong}
        assert matches(contrast.captions[0], contrast.scenes[0])
        assert not matches(contrast.captions[1], contrast.scenes[0])


def test_streams_share_no_scene_at_any_two_seeds():
    seen: dict[object, tuple[str, int]] = {}
    for of in ("quads", "choices", "contrasts"):
        for seed in range(3):
            for contrast in contrasts(49, seed=seed, of=of):
                for scene in contrast.scenes:
                    assert seen.setdefault(scene, (of, seed)) == (of, seed)
    # The first numbers of every stream and purpose differ, so no stream is another in disguise.
    first = {
        float(stream(of, seed, *more).random())
        for of in STREAMS
        for seed in range(5)
        for more in ((), (1,), (2,))
    }
    assert len(first) == len(STREAMS) * 5 * 3


@pytest.mark.parametrize("make", [quads, choices, statements, gallery, rated, preferences])
def test_what_cannot_be_drawn_is_refused(make):
    refuses("must be positive; given: 0", make, 0, error=InputError)
    with pytest.raises(InputError, match="too small to see anything; given: 31 x 31 pixels; allowed: 32"):
        make(7, size=31)
    refuses("seed: out of range; given: -1", make, 7, error=InputError, seed=-1, size=32)
    style = {"styles": ("natural", "syntetic")} if make is quads else {"style": "syntetic"}
    with pytest.raises(UnknownNameError, match=r"unknown style; given: syntetic.*did you mean 'synthetic'"):
        make(7, size=32, **style)


@pytest.mark.parametrize("size", [48, 128])
@pytest.mark.parametrize(
    "make",
    [
        lambda **more: quads(14, styles=("natural", "synthetic"), **more),
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
