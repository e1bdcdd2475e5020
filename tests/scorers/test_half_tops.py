"""The best k found in half precision: any tiles, types and spares give the stable sort of exact scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy import ndarray

from counterfoil.errors import InputError, ScoreError
from counterfoil.scorers.half_tops import half_tops

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.models

HALVES = ("fp16", "bf16")


def slow(queries: ndarray, gallery: ndarray, k: int) -> tuple[ndarray, ndarray]:
    """All scores, sorted; of equal ones the item of the lower position first."""
    scores = (queries.astype(np.float64) @ gallery.astype(np.float64).T).astype(np.float32)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, 1)


@given(
    shape=st.tuples(st.integers(1, 7), st.integers(1, 300)),
    # Whole numbers: products are exact, and many are equal. Above 256 bf16 cannot tell neighbours apart.
    largest=st.sampled_from([0, 1, 3, 300, 3000]),
    tile=st.tuples(st.integers(1, 4), st.integers(1, 200)),
    half=st.sampled_from(HALVES),
    spare=st.sampled_from([None, 0, 1, 5, 40]),
    data=st.data(),
)
def test_any_tiles_give_the_stable_order(
    shape: tuple[int, int],
    largest: int,
    tile: tuple[int, int],
    half: str,
    spare: int | None,
    data: st.DataObject,
) -> None:
    k = data.draw(st.integers(1, min(20, shape[1])))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    queries, gallery = (rng.integers(-largest, largest + 1, (n, 5)).astype(np.float32) for n in shape)
    found = half_tops(queries, gallery, k, device="cpu", half=half, spare=spare, tile=tile)
    items, scores = slow(queries, gallery, k)
    assert found.items.tolist() == items.tolist()
    assert found.scores.tolist() == scores.tolist()
    assert found.scores.dtype == np.float32


@given(
    half=st.sampled_from(HALVES),
    spread=st.sampled_from([1.0, 1e-2, 1e-4, 1e-6]),
    scale=st.sampled_from([1e-6, 1.0, 1e3, 1e6]),
    spare=st.sampled_from([None, 0, 3]),
    seed=st.integers(0, 2**32 - 1),
)
def test_near_ties_that_half_precision_cannot_tell_apart(
    half: str, spread: float, scale: float, spare: int | None, seed: int
) -> None:
    """Vectors around one point: products differ by less than a step of half precision, or overflow it."""
    rng = np.random.default_rng(seed)
    centre = rng.standard_normal(24)
    vectors = centre + spread * rng.standard_normal((160, 24))
    vectors = (scale * vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    # Copies, further on in the gallery, stand behind what they are copies of.
    gallery = np.concatenate([vectors, vectors[::3]])
    found = half_tops(vectors[:6], gallery, 9, device="cpu", half=half, spare=spare, tile=(4, 64))
    items, scores = slow(vectors[:6], gallery, 9)
    assert found.scores.tolist() == scores.tolist()
    assert found.items.tolist() == items.tolist()


@pytest.mark.parametrize("half", HALVES)
def test_what_is_apart_is_not_looked_at_again(half: str) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((4000, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = half_tops(vectors[:200], vectors, 5, device="cpu", half=half, spare=60)
    assert found.items.tolist() == slow(vectors[:200], vectors, 5)[0].tolist()
    assert found.again == 0
    # Without spare candidates the k-th is never surely above the next one.
    assert half_tops(vectors[:200], vectors, 5, device="cpu", half=half, spare=0).again == 200


def test_half_precision_alone_would_be_wrong() -> None:
    """The twin that the second scoring is for: products in half precision have another order."""
    rng = np.random.default_rng(1)
    vectors = (1 + 1e-3 * rng.standard_normal((500, 32))).astype(np.float32)
    left = torch.from_numpy(vectors)
    rounded = (left[:20].bfloat16() @ left.bfloat16().T).float().numpy()
    expected = slow(vectors[:20], vectors, 5)[0]
    assert np.argsort(-rounded, axis=1, kind="stable")[:, :5].tolist() != expected.tolist()
    assert half_tops(vectors[:20], vectors, 5, device="cpu", half="bf16").items.tolist() == expected.tolist()


def test_settings_of_sums_are_put_back() -> None:
    before = torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction
    half_tops(np.ones((2, 3), np.float32), np.ones((4, 3), np.float32), 1, device="cpu")
    assert torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction == before


def test_not_a_number() -> None:
    gallery = np.ones((100, 2), np.float32)
    gallery[61, 1] = np.nan
    with pytest.raises(ScoreError, match=r"^query 0, item 61: a score is not a number; given: NaN$"):
        half_tops(np.ones((3, 2), np.float32), gallery, 2, device="cpu", tile=(2, 16))


@pytest.mark.parametrize(
    ("queries", "gallery", "half", "pattern"),
    [
        (np.ones((2, 3)), np.ones((4, 3)), "fp16", r"given: float64 and float64; allowed: both float32$"),
        (
            np.ones((2, 3), np.float32),
            np.ones((4, 3), np.float32),
            "fp8",
            r"no such half precision; given: f",
        ),
    ],
)
def test_what_cannot_be_searched(queries: ndarray, gallery: ndarray, half: str, pattern: str) -> None:
    with pytest.raises(InputError, match=pattern):
        half_tops(queries, gallery, 1, device="cpu", half=half)
