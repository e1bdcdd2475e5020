"""ECCV Caption: some queries, verified positives in each direction, a few outside the gallery."""

from itertools import pairwise

import numpy as np
import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers import coco, cxc


def test_some_queries_and_no_transpose(half, free):
    made = half()
    images, captions = made.images, made.captions
    made.write("eccv_image_to_caption.json", {str(images[2]): [captions[0][1], 1, captions[2][0]]})
    made.write(
        "eccv_caption_to_image.json",
        {str(captions[3][0]): [images[3], images[0]], str(captions[0][0]): [images[0]]},
    )
    found = coco.read_eccv(free("eccv"), made.folder, None)
    questions = found.gallery
    # Queries in the order of the gallery, whatever that of the files.
    assert found.questions.ids == (f"i2t/{images[2]}", f"t2i/{captions[0][0]}", f"t2i/{captions[3][0]}")
    assert questions.i2t.queries.tolist() == [2]
    assert questions.i2t.positives.items.tolist() == [-1, 1, 10]
    assert questions.i2t.positives.absent.tolist() == [1]
    assert questions.t2i.queries.tolist() == [0, 15]
    assert questions.t2i.positives.items.tolist() == [0, 0, 3]
    assert len(found.images) == 4
    assert len(found.captions) == 20


def test_the_real_files(shared_data):
    """ECCV Table 3, every count of it that COCO, CxC and ECCV Caption have; FORMATS 4.1's two strangers."""
    data = shared_data / "eccv"
    found = coco.read_eccv(card("eccv"), data, None)
    questions = found.gallery
    galleries = [
        coco.read_5k(card("coco-5k"), data, None).gallery,
        cxc.read(card("cxc"), data, None).gallery,
        questions,
    ]

    def count(search, queries):
        rows = np.searchsorted(search.queries, queries)
        assert np.array_equal(search.queries[rows], queries)
        return len(search.positives.take(rows).items)

    assert [count(g.t2i, questions.t2i.queries) for g in galleries] == [1_332, 1_895, 11_279]
    assert [count(g.i2t, questions.i2t.queries) for g in galleries] == [6_305, 8_906, 22_550]
    lacking = questions.i2t.queries[questions.i2t.positives.absent > 0]
    assert {found.images[i].id for i in lacking.tolist()} == {"575916", "421999"}
    # What the card says of the data: nine image queries lack an own caption, one a positive of CxC.
    right = _sets(questions.i2t)
    for gallery, lacking_queries in zip(galleries, (9, 1), strict=False):
        theirs = _sets(gallery.i2t)
        assert sum(not theirs[image] <= found_ for image, found_ in right.items()) == lacking_queries
    assert (questions.i2t.positives.counts.min(), questions.i2t.positives.counts.max()) == (6, 48)
    assert (questions.t2i.positives.counts.min(), questions.t2i.positives.counts.max()) == (1, 19)


def _sets(search):
    starts, items = search.positives.starts.tolist(), search.positives.items.tolist()
    return {q: set(items[a:b]) for q, (a, b) in zip(search.queries.tolist(), pairwise(starts), strict=True)}


def test_the_package_holds_the_same(shared_data):
    pytest.importorskip("eccv_caption", reason="pip install '.[eccv]'")
    found = coco.read_eccv(card("eccv"), None, None)
    assert found.digest == coco.read_eccv(card("eccv"), shared_data / "eccv", None).digest
