"""Greedy matching of tokens against plain loops, and what holds of it whatever the vectors are."""

import math

import numpy as np
import pytest

from counterfoil.metrics.captions.token_match import Frequencies, TokenizedCaption, greedy, token_match
from refusals import refuses


def phrase(rng, tokens, width=5):
    vectors = rng.normal(size=(tokens, width))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return TokenizedCaption(vectors, rng.uniform(0, 2, tokens), vectors[-1])


def slow(candidate, other):
    """BERTScore's sums, token by token."""
    similar = [[float(np.dot(t, r)) for r in other.vectors] for t in candidate.vectors]
    precision = sum(w * max(row) for w, row in zip(candidate.weights, similar, strict=True))
    recall = sum(w * max(row[j] for row in similar) for j, w in enumerate(other.weights))
    precision, recall = precision / sum(candidate.weights), recall / sum(other.weights)
    return precision, recall, 2 * precision * recall / (precision + recall)


def test_equals_loops_and_takes_the_largest_of_each_part():
    rng = np.random.default_rng(0)
    candidates = [phrase(rng, n) for n in (3, 9, 4, 5)]
    references = [[phrase(rng, int(m)) for m in rng.integers(3, 12, k)] for k in (1, 5, 2, 3)]
    found = token_match(candidates, references)
    for row, (candidate, own) in enumerate(zip(candidates, references, strict=True)):
        each = np.array([slow(candidate, other) for other in own])
        assert [found.precision[row], found.recall[row], found.f1[row]] == pytest.approx(each.max(axis=0))
        alone = greedy(candidate, own)
        np.testing.assert_allclose(np.stack([alone.precision, alone.recall, alone.f1]), each.T, atol=1e-12)


def test_captions_without_words_have_nothing_in_common():
    rng = np.random.default_rng(2)
    marks, words = phrase(rng, 2), phrase(rng, 6)
    for candidate, other in ((marks, words), (words, marks), (marks, marks)):
        found = token_match([candidate], [[other]])
        assert [found.precision[0], found.recall[0], found.f1[0]] == [0, 0, 0]
    assert token_match([words], [[marks, words]]).f1 == pytest.approx(1)


def test_rows_without_references_are_named():
    words = phrase(np.random.default_rng(3), 4)
    refuses("row 1: a candidate has no references", token_match, [words, words], [[words], []])
    assert token_match([], []).f1.shape == (0,)


def test_frequencies_count_each_document_once():
    rng = np.random.default_rng(4)
    documents = [rng.integers(0, 30, int(n)) for n in rng.integers(1, 20, 50)]
    found = Frequencies.of(documents)
    for token in range(40):
        held = sum(token in set(document.tolist()) for document in documents)
        assert found.weights(np.array([token]))[0] == pytest.approx(math.log(51 / (held + 1)))
    assert found.unseen == pytest.approx(math.log(51))
    # What every document holds weighs nothing, and nothing weighs more than what none does.
    assert found.values.min() >= 0
    assert found.values.max() <= found.unseen


def test_the_mark_of_the_end_gets_the_mean_before_it_changes():
    documents = [np.array([1, 4, 9, 0, 0]), np.array([1, 4, 7, 9, 0])]
    found = Frequencies.of(documents).with_end()
    # 0, 1, 4 and 9 stand in both captions: ln(3/3); 7 in one: ln(3/2).
    assert found.values.tolist() == pytest.approx([0, 0, 0, math.log(1.5), math.log(1.5) / 5])
    # Were there no padding, the mean would be over four ids.
    bare = Frequencies.of([document[document > 0] for document in documents]).with_end()
    assert bare.values[-1] == pytest.approx(math.log(1.5) / 4)


def test_an_empty_corpus_is_refused():
    refuses("a corpus without captions", Frequencies.of, [])
