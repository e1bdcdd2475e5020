"""Models of pairs over a first stage, against a twin that writes the new order into all scores."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from hypothesis import given, settings, strategies as st
from numpy import ndarray

from counterfoil.benchmarks.records import BytesSource, Caption, Image
from counterfoil.engine.rank import rank_galleries
from counterfoil.engine.session import run
from counterfoil.errors import DataError, InputError, ScoreError
from counterfoil.models.base import Identity
from counterfoil.models.precomputed import PrecomputedTable
from counterfoil.models.precomputed_galleries import PrecomputedEmbeddings, PrecomputedSimilarity
from engine import fakes
from refusals import refuses
from small_galleries import benchmark, same, several, twin

#: Above every score of a first stage here.
FAR = 1000.0


@dataclass
class Looked:
    """Scores pairs from a table by ids, and writes down which it was asked for."""

    needs: ClassVar[tuple[str, ...]] = ()

    scores: ndarray
    identity: Identity = field(default_factory=lambda: Identity("fake:cross", revision="1"))
    asked: list[tuple[int, int]] = field(default_factory=list)

    def score(self, images, captions):
        pairs = [(int(i.id), int(c.id)) for i, c in zip(images, captions, strict=True)]
        self.asked += pairs
        return np.array([self.scores[pair] for pair in pairs], dtype=np.float64)


def similarity(scores):
    return PrecomputedSimilarity(Identity("given:x.npy"), scores)


def lines(first, cross, depth, of_query, of_item):
    """The scores of queries (rows) with the first `depth` items they see lifted above all others."""
    result = first.astype(np.float64)
    for query in range(len(first)):
        seen = [i for i in range(first.shape[1]) if of_query is None or of_query[query] == of_item[i]]
        best = sorted(seen, key=lambda i: (-float(first[query, i]), i))[:depth]
        result[query, best] = FAR + cross[query, best]
    return result


@settings(max_examples=12, deadline=None)
@given(
    st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 11), st.integers(1, 12), st.integers(0, 7),
)  # fmt: skip
def test_the_first_items_come_first_in_the_new_order_with_its_ties(seed, n, m, depth, top):
    rng = np.random.default_rng(seed)
    # Few levels: the last item that is scored again ties with some that are not.
    first, cross = rng.integers(0, 4, (n, m)).astype(np.float32), rng.integers(0, 3, (n, m)).astype(float)
    galleries = several(rng, n, m)
    model = Looked(cross)
    result = rank_galleries(galleries, model, first_stage=similarity(first), depth=depth, top=top)
    for item, rankings in zip(galleries, result, strict=True):
        asked = item.gallery
        i2t = lines(first, cross, depth, asked.image_parts, asked.caption_parts)
        t2i = lines(first.T, cross.T, depth, asked.caption_parts, asked.image_parts)
        expected = [twin(item, i2t, top)[0], twin(item, t2i.T, top)[1]]
        for placed in expected:
            placed.top_scores[:] = np.where(placed.top_scores >= FAR, placed.top_scores - FAR, np.nan)
        same(rankings, expected)
    assert len(set(model.asked)) == len(model.asked)


def test_each_pair_is_scored_once_and_only_what_a_query_puts_first():
    rng = np.random.default_rng(0)
    first = rng.normal(size=(6, 9)).astype(np.float32)
    model = Looked(np.zeros((6, 9)))
    item = benchmark(rng, 6, 9)
    rank_galleries([item, item], model, first_stage=similarity(first), depth=2)
    wanted = {(i, int(c)) for i in range(6) for c in np.argsort(-first[i])[:2]}
    wanted |= {(int(i), c) for c in range(9) for i in np.argsort(-first[:, c])[:2]}
    assert sorted(model.asked) == sorted(wanted)


def test_small_galleries_are_scored_whole_and_those_of_other_items_are_ranked_apart():
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 4, (6, 8)).astype(float)
    item, model = benchmark(rng, 5, 7), Looked(scores)
    same(run(item, model), twin(item, scores[:5, :7], 50))
    assert sorted(model.asked) == [(i, c) for i in range(5) for c in range(7)]
    small, large, other = benchmark(rng, 5, 7), benchmark(rng, 6, 8), benchmark(rng, 5, 7, parts=2)
    result = rank_galleries([small, large, other], Looked(scores))
    for item, rankings in zip((small, large, other), result, strict=True):
        asked = item.gallery
        same(rankings, twin(item, scores[: asked.n_images, : asked.n_captions], 50))


def test_embeddings_and_similarities_are_found_by_ids():
    rng = np.random.default_rng(4)
    item = benchmark(rng, 5, 7)
    images, captions = rng.normal(size=(5, 3)), rng.normal(size=(7, 3)).astype(np.float32)
    rows, columns = rng.permutation(5), rng.permutation(7)
    ids = tuple(map(str, rows)), tuple(map(str, columns))
    cosines = (images @ captions.T.astype(float)) / np.outer(
        np.linalg.norm(images, axis=1), np.linalg.norm(captions.astype(float), axis=1)
    )
    name = Identity("embeddings:x.npz")
    expected = twin(item, cosines, 50)
    for given_items in (
        PrecomputedEmbeddings(name, images, captions),
        PrecomputedEmbeddings(name, images[rows], captions[columns], *ids),
        PrecomputedSimilarity(Identity("given:x.npy"), cosines[np.ix_(rows, columns)], *ids),
    ):
        (result,) = rank_galleries([item], given_items)
        for placed, twins in zip((result.i2t, result.t2i), expected, strict=True):
            np.testing.assert_array_equal(placed.above, twins.above)
            np.testing.assert_array_equal(placed.top, twins.top)


def test_models_embed_items_of_equal_content_once():
    pictures = [fakes.png(i % 4) for i in range(5)]
    item = benchmark(np.random.default_rng(5), 5, 7)
    item = replace(
        item,
        images=tuple(Image(i.id, BytesSource(p)) for i, p in zip(item.images, pictures, strict=True)),
        captions=tuple(Caption(c.id, f"text {int(c.id) % 6}") for c in item.captions),
    )
    model = fakes.FakeEmbedder()
    result = run(item, model)
    assert (len(model.images_seen), len(model.captions_seen)) == (4, 6)
    # Captions 0 and 6 are one text, images 0 and 4 one picture: level wherever either is right.
    where = result.i2t.above >= 0
    twice = np.isin(item.gallery.i2t.positives.items, [0, 6])
    assert (result.i2t.level[where & twice] == 2).all()
    assert (result.i2t.level[where & ~twice] == 1).all()


def test_impossible_combinations_are_refused_in_one_line():
    item, scorer = benchmark(np.random.default_rng(6), 5, 7), Looked(np.zeros((5, 7)))
    large = benchmark(np.random.default_rng(0), 1001, 1000)
    given_scores = similarity(np.zeros((5, 7)))
    table = object.__new__(PrecomputedTable)
    object.__setattr__(table, "identity", Identity("given:x.csv"))
    four = PrecomputedSimilarity(Identity("x"), np.zeros((4, 7)), tuple("0123"), tuple("0123456"))
    for error, words, gallery, model, how in (
        (InputError, "1,001,000.*--first-stage", large, scorer, {}),
        (InputError, "is for models of pairs", item, given_scores, {"first_stage": given_scores}),
        (InputError, "first stage must score the whole gallery", item, scorer, {"first_stage": table}),
        (InputError, "given: 0; allowed: 1 or", item, scorer, {"first_stage": given_scores, "depth": 0}),
        (InputError, "a table of answers .* form 'gallery'.*a similarity", item, table, {}),
        (ScoreError, "given: 7 x 5; .*5 images x 7.*transpose", item, similarity(np.zeros((7, 5))), {}),
        (ScoreError, "given: 5 x 6.*--ids", item, similarity(np.zeros((5, 6))), {}),
        (ScoreError, "'0', caption '0'.*not a finite", item, similarity(np.full((5, 7), np.nan)), {}),
        (DataError, "images of small have no score.*1 of 5 missing: '4'", item, four, {}),
    ):
        refuses(words, rank_galleries, [gallery], model, error=error, **how)
