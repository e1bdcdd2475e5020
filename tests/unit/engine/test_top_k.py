"""The best k against sorting everything: blocks, many ties, hard orders; and the threads that find them."""

import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, strategies as st
from threadpoolctl import threadpool_info

from counterfoil.engine.gallery import rank
from counterfoil.engine.similarity import Matrix
from counterfoil.engine.topk import (
    common,
    map_ordered,
    of_embeddings,
    of_rankings,
    of_similarity,
    renumbered,
    top_k,
    top_k_in_blocks,
    topk_lists,
)
from counterfoil.errors import InputError, ScoreError
from counterfoil.models.base import Identity
from counterfoil.models.precomputed_galleries import PrecomputedEmbeddings
from refusals import refuses
from small_galleries import benchmark


def sorted_whole(scores, k):
    """Best first, of equal scores the lower position: a stable sort of whole rows."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


@given(
    shape=st.tuples(st.integers(1, 7), st.integers(1, 90)),
    levels=st.integers(1, 40),
    block=st.tuples(st.integers(1, 4), st.integers(1, 50)),
    dtype=st.sampled_from([np.float32, np.float64, np.int64, np.float16]),
    threads=st.integers(1, 3),
    data=st.data(),
)
def test_any_blocks_give_the_stable_order(shape, levels, block, dtype, threads, data):
    k = data.draw(st.integers(1, shape[1]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    scores = rng.integers(-levels, levels, shape).astype(dtype)
    items, values = top_k_in_blocks(lambda q, i: scores[q, i], *shape, k, block=block, threads=threads)
    assert items.tolist() == sorted_whole(scores.astype(float), k).tolist()
    assert values.tolist() == np.take_along_axis(scores, items, 1).tolist()
    assert values.dtype == (np.float32 if dtype in (np.float16, np.float32) else np.float64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products(dtype):
    rng = np.random.default_rng(0)
    # Whole numbers: products are exact, whatever the order of the sum, and many are equal.
    queries, gallery = (rng.integers(-2, 3, (n, 6)).astype(dtype) for n in (70, 900))
    items, values = top_k(queries, gallery, 25, block=(32, 128))
    whole = queries @ gallery.T
    assert items.tolist() == sorted_whole(whole, 25).tolist()
    assert (values.tolist(), values.dtype) == (np.take_along_axis(whole, items, 1).tolist(), dtype)
    assert top_k(queries[:0], gallery, 2)[0].shape == (0, 2)
    seen = []
    top_k(queries[:10], gallery, 2, block=(4, 8), progress=lambda *at: seen.append(at))
    assert seen == [("best items", 4, 10), ("best items", 8, 10), ("best items", 10, 10)]


RISING = np.tile(np.arange(3000.0), (5, 1))


@pytest.mark.parametrize(
    "scores",
    [
        np.zeros((5, 3000)),
        RISING,
        -RISING,
        # One row rises, the others fall.
        np.where(np.arange(5)[:, None] == 3, RISING, -RISING),
        np.where(RISING == 1000, 1.0, -np.inf),
        np.where(RISING % 7 == 0, -np.inf, np.where(RISING % 501 == 1, np.inf, RISING // 100)),
    ],
)
def test_orders_that_let_everything_survive(scores):
    items, values = top_k_in_blocks(lambda q, i: scores[q, i], 5, 3000, 4, block=(5, 700))
    assert items.tolist() == sorted_whole(scores, 4).tolist()
    assert values.tolist() == np.take_along_axis(scores, items, 1).tolist()


def test_memory_is_that_of_a_few_blocks():
    def peak(n_items):
        def scores(rows, columns):
            at = np.arange(rows.start, rows.stop)[:, None] * 7919 ^ np.arange(columns.start, columns.stop)
            return (at * 2654435761 % 1000003).astype(np.float32)

        tracemalloc.start()
        top_k_in_blocks(scores, 64, n_items, 5, block=(64, 1024), threads=1)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(40_000) < 1.1 * peak(8_000)


@pytest.mark.parametrize("at", [(0, 0), (5, 3), (2, 99)])
@pytest.mark.parametrize("fill", [0.0, None])
def test_not_a_number(at, fill):
    scores = np.random.default_rng(2).random((6, 100)) if fill is None else np.full((6, 100), fill)
    scores[at] = np.nan
    with pytest.raises(ScoreError, match=rf"^query {at[0]}, item {at[1]}: a score is not a number"):
        top_k_in_blocks(lambda q, i: scores[q, i], 6, 100, 2, block=(4, 16), threads=2)


@pytest.mark.parametrize(
    ("queries", "gallery", "k", "pattern"),
    [
        (np.ones((2, 3)), np.ones((4, 3)), 5, r"no such number of best items; given: 5; allowed: 1 to 4"),
        (np.ones((2, 3)), np.ones((4, 3)), 0, r"given: 0; allowed: 1 to 4"),
        (np.ones((2, 3)), np.ones((4, 2)), 1, r"differ in width; given: 3 and 2"),
        (np.ones((2, 3)), np.ones((4, 3), np.float32), 1, r"given: float64 and float32; allowed: both fl"),
        (np.ones((2, 3), np.float16), np.ones((4, 3), np.float16), 1, r"given: float16 and float16"),
    ],
)
def test_what_cannot_be_searched(queries, gallery, k, pattern):
    refuses(pattern, top_k, queries, gallery, k, error=InputError)
    with pytest.raises(InputError, match="a block has no scores"):
        top_k(np.ones((1, 1)), np.ones((1, 1)), 1, block=(0, 1))


@pytest.mark.parametrize("threads", [1, 2, 5, None])
def test_results_are_in_order(threads):
    late = {0: 0.02, 3: 0.01}

    def work(part):
        threading.Event().wait(late.get(part, 0))
        return part * part

    assert list(map_ordered(work, range(7), threads)) == [(n, n * n) for n in range(7)]
    assert list(map_ordered(work, [], threads)) == []


def test_products_keep_to_their_thread_meanwhile_and_not_afterwards():
    def threads_of_blas():
        return {item["num_threads"] for item in threadpool_info() if item["user_api"] == "blas"}

    np.ones((2, 2)) @ np.ones((2, 2))
    before = threads_of_blas()
    assert {n for _, result in map_ordered(lambda part: threads_of_blas(), range(4), 2) for n in result} == {
        1
    }
    assert threads_of_blas() == before


def test_an_error_is_raised_and_what_waits_is_not_done():
    done = []

    def work(part):
        if part == 1:
            raise ValueError("here")
        done.append(part)
        return part

    refuses("here", list, map_ordered(work, range(100), 2), error=ValueError)
    assert len(done) < 10


IMAGES, CAPTIONS = 6, 11


@pytest.fixture
def scores():
    return np.random.default_rng(0).normal(size=(IMAGES, CAPTIONS))


def ids(kind, n):
    return tuple(f"{kind}{i}" for i in range(n))


def lists(name, scores):
    return of_similarity(name, scores, ids("i", IMAGES), ids("c", CAPTIONS))


def test_first_items_are_those_of_the_sorted_rows_and_columns(scores):
    result = lists("a", scores)
    assert result.depth == {"i2t": CAPTIONS, "t2i": IMAGES}
    np.testing.assert_array_equal(
        topk_lists(result, "i2t", ("i4", "i1"), 5), np.argsort(-scores[[4, 1]], axis=1)[:, :5]
    )
    np.testing.assert_array_equal(
        topk_lists(result, "t2i", ("c9", "c0"), 3), np.argsort(-scores[:, [9, 0]].T, axis=1)[:, :3]
    )
    with pytest.raises(InputError, match="gallery of t2i is smaller than k; given: k 7; allowed: 1 to 6"):
        topk_lists(result, "t2i", ("c0",), 7)


def test_embeddings_are_compared_by_cosine():
    rng = np.random.default_rng(1)
    images, captions = rng.normal(size=(IMAGES, 3)), rng.normal(size=(CAPTIONS, 3)) * 5
    given = PrecomputedEmbeddings(Identity("e"), images, captions, None, None)
    result = of_embeddings("e", given, ids("i", IMAGES), ids("c", CAPTIONS))
    cosines = np.array([[i @ c / np.linalg.norm(i) / np.linalg.norm(c) for c in captions] for i in images])
    np.testing.assert_array_equal(
        topk_lists(result, "i2t", ids("i", IMAGES), 4), np.argsort(-cosines, axis=1)[:, :4]
    )


def test_items_in_another_order_get_the_numbers_of_the_first(scores):
    rng = np.random.default_rng(2)
    rows, columns = rng.permutation(IMAGES), rng.permutation(CAPTIONS)
    turned = of_similarity(
        "b", scores[np.ix_(rows, columns)], tuple(f"i{i}" for i in rows), tuple(f"c{c}" for c in columns)
    )
    first = lists("a", scores)
    same = renumbered(turned, first)
    assert (same.image_ids, same.caption_ids) == (first.image_ids, first.caption_ids)
    for way, asked in (("i2t", ids("i", IMAGES)), ("t2i", ids("c", CAPTIONS))):
        np.testing.assert_array_equal(topk_lists(same, way, asked, 4), topk_lists(first, way, asked, 4))
    other = of_similarity("c", scores, ("x", *ids("i", IMAGES)[1:]), ids("c", CAPTIONS))
    refuses("c and a rank different images; given: 1 only in the first", renumbered, other, first)


def test_rankings_keep_the_first_items_of_their_queries(scores):
    world = benchmark(np.random.default_rng(3), IMAGES, CAPTIONS, some=True)
    (answers,) = rank([world], Matrix(scores), top=3)
    result = of_rankings("r", world, answers)
    whole = of_similarity("s", scores, result.image_ids, result.caption_ids)
    assert result.depth == {"i2t": 3, "t2i": 3}
    for way, rows in (("i2t", world.gallery.i2t.queries), ("t2i", world.gallery.t2i.queries)):
        asked = tuple(str(i) for i in rows)
        assert result.query_ids[way] == asked == common([result, whole], way)
        assert set(asked) < set(whole.query_ids[way])
        np.testing.assert_array_equal(topk_lists(result, way, asked, 3), topk_lists(whole, way, asked, 3))
        with pytest.raises(InputError, match=f"r: the lists of {way} are too short; given: 3 items"):
            topk_lists(result, way, asked, 4)
