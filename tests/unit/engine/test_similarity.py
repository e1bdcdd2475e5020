"""Blocks of scores: equal captions, precision, order, memory-mapped files, NaN."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy import ndarray

import small_galleries
from counterfoil.benchmarks import Benchmark, BytesSource, Caption, Card, Image
from counterfoil.engine.gallery import rank
from counterfoil.engine.session import Session, run
from counterfoil.engine.similarity import Blocks, CustomSimilarity, Matrix, Products, unit
from counterfoil.errors import ScoreError
from counterfoil.models.base import Embedder, Identity
from counterfoil.models.matching_probability import MostSimilarHeads, RowSimilarity, Sampled
from engine import fakes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_keep_their_precision(dtype):
    rng = np.random.default_rng(0)
    images, captions = (rng.normal(size=(n, 19)).astype(dtype) for n in (7, 11))
    blocks = Products(images, captions)
    assert (blocks.n_images, blocks.n_captions, blocks.itemsize) == (7, 11, np.dtype(dtype).itemsize)
    rows = blocks.rows(slice(2, 5))
    assert rows.dtype == dtype
    exact = images.astype(np.float64) @ captions.astype(np.float64).T
    np.testing.assert_allclose(rows, exact[2:5], rtol=1e-5, atol=1e-5)
    some = blocks.part(np.array([6, 0]), np.array([3, 3, 1]))
    np.testing.assert_allclose(some, exact[[6, 0]][:, [3, 3, 1]], rtol=1e-5, atol=1e-5)
    assert some.dtype == dtype


@pytest.mark.parametrize("width", [3, 511])
def test_equal_captions_have_equal_scores_to_the_last_bit(width):
    # 1,037 columns leave an edge in whatever tiles a product is computed; captions recur.
    rng = np.random.default_rng(1)
    source = rng.integers(0, 400, 1037)
    captions = unit(rng.normal(size=(400, width)).astype(np.float32))[source]
    blocks = Products(unit(rng.normal(size=(33, width)).astype(np.float32)), captions)
    for scores, columns in (
        (blocks.rows(slice(0, 33)), source),
        (blocks.part(slice(None), np.arange(1000, 1037)), source[1000:]),
    ):
        for caption in np.unique(columns):
            own = scores[:, columns == caption]
            np.testing.assert_array_equal(own, np.broadcast_to(own[:, :1], own.shape))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
def test_a_similarity_on_disk_is_read_in_any_order(tmp_path, dtype):
    values = np.random.default_rng(2).integers(0, 100, (6, 9)).astype(dtype)
    np.save(tmp_path / "x.npy", values)
    there = np.load(tmp_path / "x.npy", mmap_mode="r")
    rows, columns = np.array([5, 0, 1, 2]), np.array([8, 3, 4])
    plain, ordered = Matrix(there), Matrix(there, rows, columns)
    np.testing.assert_array_equal(plain.rows(slice(1, 4)), values[1:4])
    assert (ordered.n_images, ordered.n_captions, ordered.itemsize) == (4, 3, np.dtype(dtype).itemsize)
    np.testing.assert_array_equal(ordered.rows(slice(0, 4)), values[np.ix_(rows, columns)])
    np.testing.assert_array_equal(
        ordered.part(np.array([3, 1]), np.array([2, 0])), values[np.ix_([2, 0], [4, 8])]
    )
    np.testing.assert_array_equal(ordered.part(slice(1, 3), np.array([1])), values[0:2, 3:4])
    assert plain.rows(slice(0, 2)).dtype == dtype


def test_what_is_no_number_is_named_by_image_and_caption():
    values = np.zeros((3, 4), np.float32)
    values[1, 2] = np.nan
    blocks = Matrix(
        values, np.array([2, 1, 0]), np.array([3, 2, 1, 0]), where="x.npy", names=(list("abc"), list("pqrs"))
    )
    # Row 2 of the file belongs to the second image, column 3 to the second caption.
    with pytest.raises(ScoreError, match=r"x.npy, row 2, column 3 \(image 'b', caption 'q'\): a score"):
        blocks.rows(slice(0, 3))
    blocks.rows(slice(2, 3))  # the first row of the file is in order


@pytest.mark.parametrize(
    ("dtype", "value", "problem"),
    [
        *((dtype, np.inf, "is not a finite number; given: inf") for dtype in (np.float16, np.float32)),
        (np.float64, -np.inf, "is not a finite number; given: -inf"),
        # Its square would overflow.
        (np.float64, 1e300, r"is out of range; given: 1e\+300; allowed"),
    ],
)
def test_scores_that_are_too_large_are_refused(dtype, value, problem):
    with pytest.raises(ScoreError, match=f"row 1, column 2: a score {problem}"):
        Matrix(np.array([[0, value]], dtype)).rows(slice(0, 1))
    whole = np.array([[1e4, -1e4]], dtype)
    np.testing.assert_array_equal(Matrix(whole).rows(slice(0, 1)), whole)


COMPARISONS = [MostSimilarHeads(2), Sampled(4.0, 3.0, samples=3)]


def some(rng, n):
    """Rows that are two heads as well as a Gaussian."""
    return np.concatenate([unit(rng.normal(size=(n, 8))) for _ in range(2)], axis=1).astype(np.float32)


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
        images, captions = some(rng, n), some(rng, m)[rng.integers(0, max(1, m * 2 // 3), m)]
        benchmark = small_galleries.benchmark(rng, int(n), int(m), parts=parts)
        blocks = CustomSimilarity(comparison, images, captions)
        twin = small_galleries.twin(benchmark, np.array(blocks.rows(slice(0, int(n)))), 5)
        for block, threads in ((None, 1), (4, 3)):
            check_places(rank([benchmark], blocks, top=5, block=block, threads=threads)[0], twin)


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


@pytest.mark.parametrize("comparison", [*COMPARISONS, None], ids=lambda c: type(c).__name__)
def test_a_run_on_a_gallery_uses_the_embedders_own_comparison(comparison, tmp_path):
    rng = np.random.default_rng(2)
    questions = small_galleries.benchmark(rng, 12, 30).questions
    images = tuple(Image(f"i{i}", BytesSource(fakes.png(i) + bytes([i]))) for i in range(12))
    captions = tuple(Caption(f"c{c}", str(c)) for c in range(30))
    benchmark = Benchmark(Card(name="few", title="Few", form="gallery"), images, captions, questions)
    model = Several(some(rng, 12), some(rng, 30), comparison)
    assert isinstance(model, Embedder)
    result = run(benchmark, model, session=Session(tmp_path))
    sides = model.images, model.captions
    blocks = Products(*sides) if comparison is None else CustomSimilarity(comparison, *sides)
    check_places(result, small_galleries.twin(benchmark, np.array(blocks.rows(slice(0, 12))), 12))
    # And it matters: the inner product of such rows puts them in another order.
    if comparison is not None:
        plain = run(benchmark, Several(model.images, model.captions, None))
        assert not np.array_equal(plain.i2t.above, result.i2t.above)


def test_vectors_get_length_one_in_their_own_precision():
    vectors = np.array([[3.0, 4.0], [0.0, -2.0]], np.float32)
    result = unit(vectors)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, [[0.6, 0.8], [0.0, -1.0]], rtol=1e-7)
