"""Galleries whose items are not compared by the inner product: blocks, equal captions, ranks, whole runs."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy import ndarray

import small_galleries
from counterfoil.benchmarks import Benchmark, BytesSource, Caption, Card, Image
from counterfoil.engine.gallery import rank
from counterfoil.engine.session import Session, run
from counterfoil.engine.similarity import Blocks, CustomSimilarity, Products, unit
from counterfoil.models.base import Embedder, Identity
from counterfoil.models.matching_probability import MostSimilarHeads, RowSimilarity, Sampled

COMPARISONS = [MostSimilarHeads(2), Sampled(4.0, 3.0, samples=3)]


def some(rng, n, dtype=np.float32):
    """Rows that are two heads as well as a Gaussian."""
    return np.concatenate([unit(rng.normal(size=(n, 8))), unit(rng.normal(size=(n, 8)))], axis=1).astype(
        dtype
    )


@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda c: type(c).__name__)
def test_blocks_are_the_comparison_and_equal_captions_are_equal_to_the_last_bit(comparison):
    rng = np.random.default_rng(0)
    source = rng.integers(0, 60, 137)
    images, captions = some(rng, 23), some(rng, 60)[source]
    blocks = CustomSimilarity(comparison, images, captions)
    assert isinstance(blocks, Blocks)
    assert (blocks.n_images, blocks.n_captions, blocks.itemsize) == (23, 137, 4)
    exact = comparison.block(images.astype(np.float64), captions.astype(np.float64))
    rows = blocks.rows(slice(5, 20))
    np.testing.assert_allclose(rows, exact[5:20], rtol=1e-4, atol=1e-5)
    columns = rng.integers(0, 137, 50)
    part = blocks.part(np.array([22, 0, 3]), columns)
    np.testing.assert_allclose(part, exact[[22, 0, 3]][:, columns], rtol=1e-4, atol=1e-5)
    for scores, of in ((rows, source), (part, source[columns])):
        for caption in np.unique(of):
            own = scores[:, of == caption]
            np.testing.assert_array_equal(own, np.broadcast_to(own[:, :1], own.shape))
    np.testing.assert_array_equal(blocks.part(slice(None), slice(0, 9)).shape, (23, 9))


def check_places(rankings, expected, names=("above", "level")):
    for side, places in zip((rankings.i2t, rankings.t2i), expected, strict=True):
        for name in names:
            np.testing.assert_array_equal(getattr(side, name), getattr(places, name))


@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda c: type(c).__name__)
@pytest.mark.parametrize("parts", [0, 3])
def test_ranks_agree_with_a_twin_that_holds_all_scores(comparison, parts):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        n, m = rng.integers(6, 40, 2)
        source = rng.integers(0, max(1, m * 2 // 3), m)
        images, captions = some(rng, n), some(rng, m)[source]
        benchmark = small_galleries.benchmark(rng, int(n), int(m), parts=parts)
        blocks = CustomSimilarity(comparison, images, captions)
        scores = np.array(blocks.rows(slice(0, int(n))))
        twin = small_galleries.twin(benchmark, scores, 5)
        for block, threads in ((None, 1), (4, 3)):
            found = rank([benchmark], blocks, top=5, block=block, threads=threads)[0]
            check_places(found, twin)


@dataclass
class Several:
    """An embedder of rows that are made by number: an item says which in its picture or text."""

    images: ndarray
    captions: ndarray
    comparison: RowSimilarity | None
    identity: Identity = field(default_factory=lambda: Identity("fake:several", revision="1"))

    def embed_images(self, batches, *, workers=0):
        for batch in batches:
            yield self.images[[int(image.read()[-1]) for image in batch]]

    def embed_captions(self, batches):
        for batch in batches:
            yield self.captions[[int(caption.text) for caption in batch]]

    def lengths(self, captions):
        return [1] * len(captions)

    def compare(self, captions, images):
        if self.comparison is not None:
            return self.comparison.pairs(captions, images)
        return np.einsum("ij,ij->i", captions.astype(np.float64), images.astype(np.float64))


def gallery(fakes, rng, n, m):
    made = small_galleries.benchmark(rng, n, m)
    images = tuple(Image(f"i{i}", BytesSource(fakes.png(i) + bytes([i]))) for i in range(n))
    captions = tuple(Caption(f"c{c}", str(c)) for c in range(m))
    return Benchmark(Card(name="few", title="Few", form="gallery"), images, captions, made.questions)


@pytest.mark.parametrize("comparison", [*COMPARISONS, None], ids=lambda c: type(c).__name__)
def test_a_run_on_a_gallery_uses_the_embedders_own_comparison(fakes, comparison, tmp_path):
    rng = np.random.default_rng(2)
    benchmark = gallery(fakes, rng, 12, 30)
    scorer = Several(some(rng, 12), some(rng, 30), comparison)
    assert isinstance(scorer, Embedder)
    found = run(benchmark, scorer, session=Session(tmp_path))
    sides = scorer.images, scorer.captions
    blocks = Products(*sides) if comparison is None else CustomSimilarity(comparison, *sides)
    scores = np.array(blocks.rows(slice(0, 12)))
    check_places(found, small_galleries.twin(benchmark, scores, 12))
    # And it matters: the inner product of such rows puts them in another order.
    if comparison is not None:
        plain = run(benchmark, Several(scorer.images, scorer.captions, None))
        assert not np.array_equal(plain.i2t.above, found.i2t.above)
