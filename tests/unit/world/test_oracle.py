"""Who reads the truth gets everything right on every form and measure; a constant gets chance."""

import numpy as np
import pytest

from counterfoil.benchmarks.answers import Scores
from counterfoil.benchmarks.forms import Gallery
from counterfoil.engine.gallery import rank
from counterfoil.engine.similarity import Matrix
from counterfoil.errors import InputError
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.metrics.ties import Ties
from counterfoil.world.benchmarks import described, gallery
from counterfoil.world.captions import OPENINGS, matches, text
from counterfoil.world.sample import choices, contrasts, quads, stream
from counterfoil.world.truth import read

SEED, N = 11, 42


def drawn(form):
    """A benchmark, and the scene that each of its images shows."""
    if form == "gallery":
        made = gallery(24, seed=SEED, size=32, captions_each=3)
        return made, described(24, 3, stream("gallery", SEED), "natural")[0]
    shown = [c.scenes if form == "quads" else c.scenes[:1] for c in contrasts(N, seed=SEED, of=form)]
    make = quads if form == "quads" else choices
    return make(N, seed=SEED, size=32), list(dict.fromkeys(scene for row in shown for scene in row))


def answers(made, values):
    """What a model answers of which every score is known: (images, captions)."""
    if isinstance(made.questions, Gallery):
        return rank([made], Matrix(values), top=10)[0]
    captions, images = made.questions.pairs()
    return Scores(values[images, captions].astype(np.float64))


@pytest.fixture(scope="module", params=["quads", "choices", "gallery"])
def world(request):
    """The benchmark, and what somebody who reads its captions and knows its scenes says: 1 for true."""
    made, scenes = drawn(request.param)
    meanings = [read(caption.text) for caption in made.captions]
    return made, np.array([[float(matches(m, s)) for m in meanings] for s in scenes], dtype=np.float32)


@pytest.mark.parametrize("ties", list(Ties))
def test_who_reads_the_truth_gets_everything_right(world, ties):
    made, truth = world
    # The truth alone is enough, however ties among the right count.
    alone = evaluate(made, answers(made, truth), model="oracle", ties=Ties.HALF, draws=100)
    assert all(result.value == pytest.approx(1.0, abs=1e-12) for result in alone.measures.values())
    if isinstance(made.questions, Gallery):
        # Right answers level with each other would be ties; these are all above what is wrong, and differ.
        truth = truth + 0.001 * np.arange(truth.size, dtype=np.float32).reshape(truth.shape) / truth.size
    result = evaluate(made, answers(made, truth), model="oracle", ties=ties, draws=100)
    assert len(result.measures) >= 2
    assert {name: result.value for name, result in result.measures.items()} == pytest.approx(
        dict.fromkeys(result.measures, 1.0), abs=1e-12
    )
    for group in result.groups.values():
        assert all(result.value == pytest.approx(1.0) for result in group.values())


@pytest.fixture(scope="module")
def large():
    return gallery(40, seed=2, size=32, captions_each=3)


@pytest.fixture(scope="module")
def known():
    """What the gallery is large of: the same draws again."""
    scenes, meanings, _ = described(40, 3, stream("gallery", 2), "natural")
    return scenes, meanings


def test_every_true_pair_is_right_in_both_directions(large, known):
    scenes, meanings = known
    true = {(c, i) for c, m in enumerate(meanings) for i, s in enumerate(scenes) if matches(m, s)}
    questions = large.gallery
    i2t, t2i = questions.i2t.positives, questions.t2i.positives
    assert {(int(c), int(i)) for i, c in zip(i2t.queries, i2t.items, strict=True)} == true
    assert {(int(c), int(i)) for c, i in zip(t2i.queries, t2i.items, strict=True)} == true
    assert len(i2t.items) == len(t2i.items) == len(true)
    assert (i2t.gains == 1).all()
    # Captions are partial: some are true of more images than they were written for.
    assert len(true) > len(meanings)


def test_captions_are_written_for_their_images(large, known):
    scenes, meanings = known
    owners = large.gallery.owners
    assert owners.tolist() == [i for i in range(40) for _ in range(3)]
    for meaning, owner, caption in zip(meanings, owners, large.captions, strict=True):
        assert matches(meaning, scenes[owner])
        assert caption.text in {text(meaning, opening=opening) for opening in OPENINGS}
    assert len({caption.text for caption in large.captions}) == len(large.captions) == 120
    assert len({image.read() for image in large.images}) == len(large.images) == 40


def test_captions_end_when_nothing_is_left_to_mention(monkeypatch):
    with pytest.raises(InputError, match="the number of captions for each image must be positive"):
        gallery(3, captions_each=0)
    monkeypatch.setattr("counterfoil.world.benchmarks._TRIES", 1)
    with pytest.raises(InputError, match="not have that many different captions; given: 200 captions"):
        gallery(1, captions_each=200)
