"""What models put first, against sorting, in whatever numbering the items come."""

import numpy as np
import pytest

from counterfoil.engine.gallery import rank
from counterfoil.engine.similarity import Matrix
from counterfoil.engine.topk import (
    common,
    of_embeddings,
    of_rankings,
    of_similarity,
    renumbered,
    top_lists,
)
from counterfoil.errors import InputError
from counterfoil.models.base import Identity
from counterfoil.models.precomputed_galleries import PrecomputedEmbeddings
from refusals import refuses
from small_galleries import benchmark

IMAGES, CAPTIONS = 6, 11


@pytest.fixture
def scores():
    return np.random.default_rng(0).normal(size=(IMAGES, CAPTIONS))


def ids(kind, n):
    return tuple(f"{kind}{i}" for i in range(n))


def lists(name, scores):
    return of_similarity(name, scores, ids("i", IMAGES), ids("c", CAPTIONS))


def test_first_items_are_those_of_the_sorted_rows_and_columns(scores):
    found = lists("a", scores)
    assert found.depth == {"i2t": CAPTIONS, "t2i": IMAGES}
    np.testing.assert_array_equal(
        top_lists(found, "i2t", ("i4", "i1"), 5), np.argsort(-scores[[4, 1]], axis=1)[:, :5]
    )
    np.testing.assert_array_equal(
        top_lists(found, "t2i", ("c9", "c0"), 3), np.argsort(-scores[:, [9, 0]].T, axis=1)[:, :3]
    )
    with pytest.raises(InputError, match="gallery of t2i is smaller than k; given: k 7; allowed: 1 to 6"):
        top_lists(found, "t2i", ("c0",), 7)


def test_embeddings_are_compared_by_cosine():
    rng = np.random.default_rng(1)
    images, captions = rng.normal(size=(IMAGES, 3)), rng.normal(size=(CAPTIONS, 3)) * 5
    given = PrecomputedEmbeddings(Identity("e"), images, captions, None, None)
    found = of_embeddings("e", given, ids("i", IMAGES), ids("c", CAPTIONS))
    cosines = np.array([[i @ c / np.linalg.norm(i) / np.linalg.norm(c) for c in captions] for i in images])
    np.testing.assert_array_equal(
        top_lists(found, "i2t", ids("i", IMAGES), 4), np.argsort(-cosines, axis=1)[:, :4]
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
        np.testing.assert_array_equal(top_lists(same, way, asked, 4), top_lists(first, way, asked, 4))
    other = of_similarity("c", scores, ("x", *ids("i", IMAGES)[1:]), ids("c", CAPTIONS))
    refuses("c and a rank different images; given: 1 only in the first", renumbered, other, first)


def test_rankings_keep_the_first_items_of_their_queries(scores):
    world = benchmark(np.random.default_rng(3), IMAGES, CAPTIONS, some=True)
    (answers,) = rank([world], Matrix(scores), top=3)
    found = of_rankings("r", world, answers)
    whole = of_similarity("s", scores, found.image_ids, found.caption_ids)
    assert found.depth == {"i2t": 3, "t2i": 3}
    for way, rows in (("i2t", world.gallery.i2t.queries), ("t2i", world.gallery.t2i.queries)):
        asked = tuple(str(i) for i in rows)
        assert found.query_ids[way] == asked == common([found, whole], way)
        assert set(asked) < set(whole.query_ids[way])
        np.testing.assert_array_equal(top_lists(found, way, asked, 3), top_lists(whole, way, asked, 3))
        with pytest.raises(InputError, match=f"r: the lists of {way} are too short; given: 3 items"):
            top_lists(found, way, asked, 4)
