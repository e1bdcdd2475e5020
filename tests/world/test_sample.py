from collections import Counter

import numpy as np
import pytest

from counterfoil.data.benchmark import Benchmark
from counterfoil.errors import InputError
from counterfoil.metrics.quad import CHANCE, MEASURES
from counterfoil.metrics.ties import Ties
from counterfoil.world.captions import matches
from counterfoil.world.edits import SUBSETS
from counterfoil.world.sample import benchmark, contrasts, quads


@pytest.fixture(scope="module")
def truth() -> np.ndarray:
    """1 where the caption is true of the scene and 0 where not: (210, 2, 2)."""
    made = contrasts(210, seed=3)
    return np.array([[[float(matches(c, s)) for s in m.scenes] for c in m.captions] for m in made])


@pytest.mark.parametrize("name", MEASURES)
def test_who_knows_the_truth_gets_everything_right(name, truth):
    assert MEASURES[name](truth).mean() == 1.0


@pytest.mark.parametrize("name", MEASURES)
def test_a_constant_gets_chance_by_half_and_nothing_by_strict(name):
    scores = np.zeros((210, 2, 2))
    assert MEASURES[name](scores, ties=Ties.HALF).mean() == pytest.approx(CHANCE[name], abs=1e-15)
    assert MEASURES[name](scores).mean() == 0.0


def content(made: Benchmark) -> list[object]:
    return [
        [caption.text for caption in made.captions],
        [image.read() for image in made.images],
        made.questions.captions.tolist(),
        made.questions.images.tolist(),
        made.questions.ids,
        dict(made.questions.groupings),
    ]


def test_same_seed_same_bytes():
    assert content(quads(21, seed=8, size=64)) == content(quads(21, seed=8, size=64))
    assert quads(21, seed=8, size=64).digest == quads(21, seed=8, size=64).digest


def test_other_seeds_ask_other_questions():
    assert len({quads(21, seed=seed, size=16).digest for seed in range(8)}) == 8


def test_a_larger_benchmark_begins_with_the_smaller():
    assert contrasts(50, seed=6)[:23] == contrasts(23, seed=6)
    small, large = quads(23, seed=6, size=16), quads(50, seed=6, size=16)
    assert [c.text for c in large.captions][: len(small.captions)] == [c.text for c in small.captions]
    assert [i.read() for i in large.images][: len(small.images)] == [i.read() for i in small.images]


def test_kinds_of_edit_are_equally_common():
    made = quads(70, size=16)
    assert Counter(made.questions.groupings["subset"]) == dict.fromkeys(SUBSETS, 10)
    # Of the seven kinds three replace, two swap and two add.
    assert Counter(made.questions.groupings["type"]) == {"replace": 30, "swap": 20, "add": 20}
    assert set(made.questions.groups()) == {*SUBSETS, "replace", "swap", "add"}


def test_questions_share_images_within_a_scene_only():
    made = quads(200, seed=1, size=16)
    sizes = Counter(Counter(made.clusters.tolist()).values())
    assert set(sizes) == {1, 2, 3}
    # Questions of one cluster are edits of one scene: they share their first image.
    for cluster in range(max(made.clusters) + 1):
        assert len(set(made.questions.images[made.clusters == cluster, 0])) == 1


def test_every_question_has_four_items_of_its_own_kind():
    made = quads(100, seed=2, size=96)
    assert (made.questions.captions[:, 0] != made.questions.captions[:, 1]).all()
    assert (made.questions.images[:, 0] != made.questions.images[:, 1]).all()
    assert made.captions_at_hand
    assert made.images_at_hand
    assert len({c.text for c in made.captions}) == len(made.captions)
    assert len({i.read() for i in made.images}) == len(made.images)
    assert made.card.redistributable


def test_both_captions_of_a_question_begin_alike():
    made = quads(60, seed=4, size=16)
    openings = {
        tuple(made.captions[i].text.split()[0] in ("There",) for i in pair)
        for pair in made.questions.captions
    }
    assert openings == {(True, True), (False, False)}


def test_the_pictures_belong_to_their_captions():
    """Drawn pictures stand in the order of their scenes: the first of each question shows its first scene."""
    from counterfoil.world.render import draw, encode

    chosen = contrasts(14, seed=5)
    made = benchmark(chosen, seed=5, size=48)
    for row, contrast in zip(made.questions.images, chosen, strict=True):
        assert [made.images[i].read() for i in row] == [encode(draw(s, 48)) for s in contrast.scenes]


def test_no_questions_is_an_error():
    with pytest.raises(InputError, match="must be positive; given: 0"):
        quads(0)
