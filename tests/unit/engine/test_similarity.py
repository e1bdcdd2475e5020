"""Blocks of scores: equal captions, precision, order, memory-mapped files, NaN."""

import numpy as np
import pytest

from counterfoil.engine.similarity import Matrix, Products, unit
from counterfoil.errors import ScoreError


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


def test_vectors_get_length_one_in_their_own_precision():
    vectors = np.array([[3.0, 4.0], [0.0, -2.0]], np.float32)
    found = unit(vectors)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.0, -1.0]], rtol=1e-7)


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
