"""Galleries ranked in blocks against a twin that holds all scores and compares each pair with each item."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from counterfoil.engine.gallery import rank
from counterfoil.engine.similarity import Blocks, Matrix, Products, unit
from counterfoil.errors import InputError, ScoreError
from refusals import refuses
from small_galleries import benchmark, same, several, twin


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 9),
    m=st.integers(1, 14),
    block=st.integers(1, 10),
    threads=st.integers(1, 3),
    top=st.integers(0, 6),
    dtype=st.sampled_from([np.float16, np.float32, np.float64, np.int8, np.uint16]),
)
def test_all_kinds_of_galleries_from_one_pass(seed, n, m, block, threads, top, dtype):
    rng = np.random.default_rng(seed)
    # Five levels for up to 14 items: most right answers tie with something.
    scores = rng.integers(0, 5, (n, m)).astype(dtype)
    galleries = several(rng, n, m)
    result = rank(galleries, Matrix(scores), top=top, block=block, threads=threads)
    for item, rankings in zip(galleries, result, strict=True):
        same(rankings, twin(item, scores, top))


@pytest.mark.parametrize("block", [1, 7, 33, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_ranked_as_their_own_blocks_say(block, dtype):
    # Right answers are scored beforehand in small products whose last bits may differ from those in a block.
    # Whatever a block holds is the truth; here each caption occurs twice, so bits decide ties.
    rng = np.random.default_rng(3)
    images = unit(rng.normal(size=(60, 37)).astype(dtype))
    blocks = Products(images, unit(rng.normal(size=(90, 37)).astype(dtype))[np.arange(180) % 90])
    item = benchmark(rng, 60, 180)
    scores = np.concatenate([blocks.rows(slice(lo, lo + block)).copy() for lo in range(0, 60, block)])
    (result,) = rank([item], blocks, top=5, block=block)
    expected = twin(item, scores, 5)
    # Captions counted again come from a product of their own: the same places where scores differ by more
    # than a last bit, which random ones do.
    same(result, expected)
    np.testing.assert_array_equal(scores[:, :90], scores[:, 90:])
    # Both twins of a caption are level for every image.
    assert (result.i2t.level == 2)[result.i2t.above >= 0].all()


class Unsteady:
    """Scores whose single products differ from those in blocks by a last bit, as BLAS's may."""

    def __init__(self, scores):
        self.scores, self.n_images, self.n_captions = scores, *scores.shape
        self.itemsize = scores.itemsize
        self.asked: list[int] = []

    def rows(self, images):
        return self.scores[images]

    def part(self, images, captions):
        result = self.scores[images][:, captions]
        if isinstance(images, slice) and images == slice(None):
            self.asked.append(result.shape[1])
            return result
        return np.nextafter(result, np.float32(np.inf))


def test_captions_whose_scores_were_rounded_in_two_ways_are_counted_again():
    rng = np.random.default_rng(5)
    scores = rng.integers(0, 4, (20, 30)).astype(np.float32)
    blocks: Blocks = Unsteady(scores)
    galleries = [benchmark(rng, 20, 30), benchmark(rng, 20, 30, parts=2)]
    result = rank(galleries, blocks, top=3, block=6)
    assert sum(blocks.asked) > 0  # type: ignore[attr-defined]
    for item, rankings in zip(galleries, result, strict=True):
        same(rankings, twin(item, scores, 3))


def test_a_long_pass_reports_how_far_it_is_and_scores_of_other_items_are_refused():
    item, said = benchmark(np.random.default_rng(0), 5, 8), []
    rank([item], Matrix(np.zeros((5, 8))), block=2, progress=lambda *step: said.append(step))
    assert said == [("ranking", 2, 5), ("ranking", 4, 5), ("ranking", 5, 5)]
    scores = np.zeros((5, 8))
    refuses(r"5 images x 7 captions.*5 x 8", rank, [item], Matrix(scores[:, :7]), error=InputError)
    scores[3, 6] = np.nan
    refuses(r"row 4, column 7", rank, [item], Matrix(scores), error=ScoreError, block=2)


@pytest.mark.parametrize("captions", [60, 500])
def test_queries_of_many_right_answers(captions):
    # A fifth of 60 and of 500: so many that low scores are left out first, and so many that they are sorted.
    rng = np.random.default_rng(7)
    scores = rng.integers(0, captions // 5, (12, captions)).astype(np.float32)
    item = benchmark(rng, 12, captions)
    (result,) = rank([item], Matrix(scores), top=3, block=5)
    same(result, twin(item, scores, 3))
