"""The best k where PyTorch computes, on the processor here: any blocks, many ties, hard orders."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy import ndarray

from counterfoil.errors import InputError, ScoreError
from counterfoil.scorers.device_tops import device_tops

pytest.importorskip("torch")
pytestmark = pytest.mark.models


@given(
    shape=st.tuples(st.integers(1, 7), st.integers(1, 90)),
    largest=st.integers(0, 3),
    block=st.tuples(st.integers(1, 4), st.integers(1, 50)),
    dtype=st.sampled_from([np.float32, np.float64]),
    data=st.data(),
)
def test_any_blocks_give_the_stable_order(
    shape: tuple[int, int], largest: int, block: tuple[int, int], dtype: type, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, shape[1]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    # Whole numbers: products are exact, and many are equal.
    queries, gallery = (rng.integers(-largest, largest + 1, (n, 5)).astype(dtype) for n in shape)
    items, scores = device_tops(queries, gallery, k, device="cpu", block=block)
    whole = queries @ gallery.T
    expected = np.argsort(-whole, axis=1, kind="stable")[:, :k]
    assert items.tolist() == expected.tolist()
    assert scores.tolist() == np.take_along_axis(whole, expected, 1).tolist()
    assert scores.dtype == dtype


@pytest.mark.parametrize("sign", [-1.0, 0.0, 1.0])
def test_orders_that_let_everything_survive(sign: float) -> None:
    gallery = sign * np.arange(3000.0)[:, None]
    queries = np.array([[1.0], [0.0], [-1.0]])
    items, _ = device_tops(queries, gallery, 4, device="cpu", block=(3, 700))
    assert items.tolist() == np.argsort(-(queries @ gallery.T), axis=1, kind="stable")[:, :4].tolist()


def test_not_a_number() -> None:
    gallery = np.ones((100, 2))
    gallery[61, 1] = np.nan
    with pytest.raises(ScoreError, match=r"^query 0, item 61: a score is not a number; given: NaN$"):
        device_tops(np.ones((3, 2)), gallery, 2, device="cpu", block=(2, 16))


@pytest.mark.parametrize(
    ("queries", "gallery", "k", "pattern"),
    [
        (np.ones((2, 3)), np.ones((4, 3)), 5, r"no such number of best items; given: 5; allowed: 1 to 4"),
        (np.ones((2, 3)), np.ones((4, 2)), 1, r"differ in width; given: 3 and 2"),
        (np.ones((2, 3)), np.ones((4, 3), np.float32), 1, r"given: float64 and float32; allowed: both fl"),
    ],
)
def test_what_cannot_be_searched(queries: ndarray, gallery: ndarray, k: int, pattern: str) -> None:
    with pytest.raises(InputError, match=pattern):
        device_tops(queries, gallery, k, device="cpu")
