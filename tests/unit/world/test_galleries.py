import pytest

from counterfoil.errors import InputError
from counterfoil.world.benchmarks import described, gallery
from counterfoil.world.captions import OPENINGS, matches, text
from counterfoil.world.sample import stream


@pytest.fixture(scope="module")
def made():
    return gallery(40, seed=2, size=32, captions_each=3)


@pytest.fixture(scope="module")
def known():
    """What the gallery is made of: the same draws again."""
    scenes, meanings, _ = described(40, 3, stream("gallery", 2), "natural")
    return scenes, meanings


def test_every_true_pair_is_right_in_both_directions(made, known):
    scenes, meanings = known
    true = {(c, i) for c, m in enumerate(meanings) for i, s in enumerate(scenes) if matches(m, s)}
    questions = made.gallery
    i2t, t2i = questions.i2t.positives, questions.t2i.positives
    assert {(int(c), int(i)) for i, c in zip(i2t.queries, i2t.items, strict=True)} == true
    assert {(int(c), int(i)) for c, i in zip(t2i.queries, t2i.items, strict=True)} == true
    assert len(i2t.items) == len(t2i.items) == len(true)
    assert (i2t.gains == 1).all()
    # Captions are partial: some are true of more images than they were written for.
    assert len(true) > len(meanings)


def test_captions_are_written_for_their_images(made, known):
    scenes, meanings = known
    owners = made.gallery.owners
    assert owners.tolist() == [i for i in range(40) for _ in range(3)]
    for meaning, owner, caption in zip(meanings, owners, made.captions, strict=True):
        assert matches(meaning, scenes[owner])
        assert caption.text in {text(meaning, opening=opening) for opening in OPENINGS}
    assert len({caption.text for caption in made.captions}) == len(made.captions) == 120
    assert len({image.read() for image in made.images}) == len(made.images) == 40


def test_what_cannot_be_drawn():
    with pytest.raises(InputError, match="the number of captions for each image must be positive"):
        gallery(3, captions_each=0)


def test_captions_end_when_nothing_is_left_to_mention(monkeypatch):
    monkeypatch.setattr("counterfoil.world.benchmarks._TRIES", 1)
    with pytest.raises(InputError, match="not so many different captions of a scene; given: 200 captions"):
        gallery(1, captions_each=200)
