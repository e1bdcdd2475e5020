"""Matching of tokens and EMScore against plain loops, and what holds whatever the vectors are."""

import math
from collections import Counter

import numpy as np
import pytest

from counterfoil.metrics.captions.token_match import (
    Frequencies,
    TokenizedCaption,
    greedy,
    token_match,
    video_whole,
    with_references,
    with_videos,
)
from refusals import refuses


def phrase(rng, tokens, width=5):
    vectors = rng.normal(size=(tokens, width))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return TokenizedCaption(vectors, rng.uniform(0, 2, tokens), vectors[-1])


def slow(candidate, other):
    similar = [[float(np.dot(t, r)) for r in other.vectors] for t in candidate.vectors]
    precision = sum(w * max(row) for w, row in zip(candidate.weights, similar, strict=True))
    recall = sum(w * max(row[j] for row in similar) for j, w in enumerate(other.weights))
    precision, recall = precision / sum(candidate.weights), recall / sum(other.weights)
    return precision, recall, 2 * precision * recall / (precision + recall)


def test_equals_loops_and_takes_the_largest_of_each_part():
    rng = np.random.default_rng(0)
    candidates = [phrase(rng, n) for n in (3, 9, 4, 5)]
    references = [[phrase(rng, int(m)) for m in rng.integers(3, 12, k)] for k in (1, 5, 2, 3)]
    result = token_match(candidates, references)
    for row, (candidate, own) in enumerate(zip(candidates, references, strict=True)):
        item = np.array([slow(candidate, other) for other in own])
        assert [result.precision[row], result.recall[row], result.f1[row]] == pytest.approx(item.max(axis=0))
        alone = greedy(candidate, own)
        np.testing.assert_allclose(np.stack([alone.precision, alone.recall, alone.f1]), item.T, atol=1e-12)


def test_captions_without_words_have_nothing_in_common():
    rng = np.random.default_rng(2)
    marks, words = phrase(rng, 2), phrase(rng, 6)
    for candidate, other in ((marks, words), (words, marks), (marks, marks)):
        result = token_match([candidate], [[other]])
        assert [result.precision[0], result.recall[0], result.f1[0]] == [0, 0, 0]
    assert token_match([words], [[marks, words]]).f1 == pytest.approx(1)


def test_frequencies_count_each_document_once():
    rng = np.random.default_rng(4)
    documents = [rng.integers(0, 30, int(n)) for n in rng.integers(1, 20, 50)]
    result = Frequencies.of(documents)
    for token in range(40):
        held = sum(token in set(document.tolist()) for document in documents)
        assert result.weights(np.array([token]))[0] == pytest.approx(math.log(51 / (held + 1)))
    assert result.unseen == pytest.approx(math.log(51))
    # What every document holds weighs nothing, and nothing weighs more than what none does.
    assert result.values.min() >= 0
    assert result.values.max() <= result.unseen


def test_the_mark_of_the_end_gets_the_mean_before_it_changes():
    documents = [np.array([1, 4, 9, 0, 0]), np.array([1, 4, 7, 9, 0])]
    result = Frequencies.of(documents).with_end()
    # 0, 1, 4 and 9 stand in both captions: ln(3/3); 7 in one: ln(3/2).
    assert result.values.tolist() == pytest.approx([0, 0, 0, math.log(1.5), math.log(1.5) / 5])
    # Were there no padding, the mean would be over four ids.
    bare = Frequencies.of([document[document > 0] for document in documents]).with_end()
    assert bare.values[-1] == pytest.approx(math.log(1.5) / 4)


SOS, EOS, LENGTH = 50, 51, 9


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


class Load:
    """Random captions of a made-up vocabulary, their references and videos."""

    def __init__(self, seed, n=12, width=4):
        self.rng = np.random.default_rng(seed)
        self.width = width
        self.captions = [self.caption() for _ in range(n)]
        self.references = [[self.caption() for _ in range(self.rng.integers(1, 5))] for _ in range(n)]
        self.videos = [unit(self.rng.normal(size=(k, width))) for k in self.rng.integers(1, 8, n)]

    def caption(self):
        """Padded ids and unit vectors of the tokens in use."""
        ids = [SOS, *self.rng.integers(1, 20, self.rng.integers(0, LENGTH - 1)).tolist(), EOS]
        return ids + [0] * (LENGTH - len(ids)), unit(self.rng.normal(size=(len(ids), self.width)))

    def phrases(self, corpus):
        idf = Frequencies.of([np.array(ids) for ids in corpus]).with_end()

        def made(caption):
            ids, vectors = caption
            return TokenizedCaption(vectors, idf.weights(np.array(ids[: len(vectors)])), vectors[-1])

        return [made(c) for c in self.captions], [[made(r) for r in own] for own in self.references]

    @property
    def flat(self):
        return [ids for own in self.references for ids, _ in own]


def slow_idf(corpus):
    counts: Counter[int] = Counter()
    for ids in corpus:
        counts.update(set(ids))
    idf = {token: math.log((len(corpus) + 1) / (count + 1)) for token, count in counts.items()}
    idf[max(idf)] = sum(idf.values()) / len(idf)
    return idf


def slow_pair(caption, other, other_weights, idf, unseen, longest):
    """P, R and F of one caption with one other side, both filled up with zeros to `longest`."""
    ids, vectors = caption
    table = [[0.0] * longest[1] for _ in range(longest[0])]
    for t, vector in enumerate(vectors):
        for f, frame in enumerate(other):
            table[t][f] = float(sum(a * b for a, b in zip(vector, frame, strict=True)))
    weights = [idf.get(ids[t], unseen) for t in range(len(vectors))]
    total = sum(weights)
    precision = sum(w / total * max(table[t]) for t, w in enumerate(weights))
    shares = [w / sum(other_weights) for w in other_weights]
    recall = sum(shares[f] * max(row[f] for row in table) for f in range(len(other)))
    return precision, recall, 2 * precision * recall / (precision + recall)


def slow_videos(load, corpus, batch):
    idf, unseen = slow_idf(corpus), math.log(len(corpus) + 1)
    rows = []
    for i, (caption, frames) in enumerate(zip(load.captions, load.videos, strict=True)):
        mates = range(len(load.captions)) if batch is None else range(i - i % batch, len(load.captions))
        mates = [i] if batch is None else list(mates)[:batch]
        longest = (max(len(load.captions[j][1]) for j in mates), max(len(load.videos[j]) for j in mates))
        parts = slow_pair(caption, frames, [1.0] * len(frames), idf, unseen, longest)
        mean = [sum(frame[k] for frame in frames) / len(frames) for k in range(load.width)]
        size = math.sqrt(sum(x * x for x in mean))
        rows.append([*parts, sum(a * b / size for a, b in zip(caption[1][-1], mean, strict=True))])
    return rows


def slow_references(load, corpus, batch, best):
    idf, unseen = slow_idf(corpus), math.log(len(corpus) + 1)
    pairs = [(c, r) for c, own in zip(load.captions, load.references, strict=True) for r in own]
    result = []
    for i, (caption, other) in enumerate(pairs):
        mates = [pairs[i]] if batch is None else pairs[i - i % batch :][:batch]
        longest = max(len(c[1]) for c, _ in mates), max(len(r[1]) for _, r in mates)
        weights = [idf.get(token, unseen) for token in other[0][: len(other[1])]]
        parts = slow_pair(caption, other[1], weights, idf, unseen, longest)
        result.append([*parts, float(np.dot(caption[1][-1], other[1][-1]))])
    rows = []
    for own in load.references:
        group, result = result[: len(own)], result[len(own) :]
        if best == "component":
            rows.append([max(item[part] for item in group) for part in range(4)])
        else:
            rows.append(max(group, key=lambda each: (each[2] + each[3]) / 2))
    return rows


def table(score):
    return np.stack([score.precision, score.recall, score.f1, score.coarse], axis=1)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("padding", "batch"), [("none", None), ("released", 5), ("released", 64)])
def test_videos_equal_the_slow_twin(seed, padding, batch):
    load = Load(seed)
    for corpus in (load.flat, [ids for ids, _ in load.captions]):
        phrases, _ = load.phrases(corpus)
        result = with_videos(phrases, load.videos, padding=padding, batch=batch or 64)  # type: ignore[arg-type]
        expected = np.array(slow_videos(load, corpus, batch))
        np.testing.assert_allclose(table(result), expected, atol=1e-10)
        np.testing.assert_allclose(result.full, (expected[:, 2] + expected[:, 3]) / 2, atol=1e-10)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("best", ["component", "whole"])
@pytest.mark.parametrize(("padding", "batch"), [("none", None), ("released", 5)])
def test_references_equal_the_slow_twin(seed, best, padding, batch):
    load = Load(seed)
    phrases, references = load.phrases(load.flat)
    result = with_references(
        phrases,
        references,
        best=best,
        padding=padding,
        batch=batch or 64,  # type: ignore[arg-type]
    )
    expected = np.array(slow_references(load, load.flat, batch, best))
    np.testing.assert_allclose(table(result), expected, atol=1e-10)


def test_padding_depends_on_the_batch_and_its_absence_does_not():
    load = Load(3, n=20)
    phrases, _ = load.phrases(load.flat)
    alone = [with_videos([p], [v]).full[0] for p, v in zip(phrases, load.videos, strict=True)]
    np.testing.assert_array_equal(with_videos(phrases, load.videos).full, alone)
    padded = with_videos(phrases, load.videos, padding="released").full
    apart = with_videos(phrases, load.videos, padding="released", batch=1).full
    np.testing.assert_array_equal(apart, alone)
    assert (padded != apart).any()


def test_a_caption_of_marks_alone_and_weights_of_nothing():
    rng = np.random.default_rng(1)
    video, vectors = unit(rng.normal(size=(3, 4))), unit(rng.normal(size=(2, 4)))
    documents = [np.array([SOS, 3, EOS, 0]), np.array([SOS, 4, EOS, 0])]
    weights = Frequencies.of(documents).with_end().weights(np.array([SOS, EOS]))
    # The begin has no weight, the end the mean: the caption is its mark of the end.
    assert weights[0] == 0 < weights[1]
    result = with_videos([TokenizedCaption(vectors, weights, vectors[-1])], [video])
    assert result.precision[0] == pytest.approx((video @ vectors[1]).max())
    # A corpus of one caption weighs nothing: its tokens count alike, where the released code has a NaN.
    nothing = Frequencies.of(documents[:1]).with_end().weights(np.array([SOS, 3, EOS]))
    assert nothing.tolist() == [0, 0, 0]
    three = unit(rng.normal(size=(3, 4)))
    result = with_videos([TokenizedCaption(three, nothing, three[-1])], [video])
    assert result.precision[0] == pytest.approx((three @ video.T).max(axis=1).mean())
    # Frames that point apart have no direction in common.
    assert video_whole(np.array([[1.0, 0.0], [-1.0, 0.0]])).tolist() == [0, 0]


def test_what_cannot_be_scored_is_named():
    load = Load(0)
    phrases, references = load.phrases(load.flat)
    refuses("row 1: a video has no frames", with_videos, phrases[:2], [load.videos[0], np.zeros((0, 4))])
    refuses(r"row 0: .* were embedded by different models; given: 5", with_videos, phrases[:1], [np.eye(5)])
    refuses("row 2: a candidate has no references", with_references, phrases[:3], [*references[:2], []])
    assert with_videos([], []).full.shape == (0,)
    words = phrase(np.random.default_rng(3), 4)
    refuses("row 1: a candidate has no references", token_match, [words, words], [[words], []])
    assert token_match([], []).f1.shape == (0,)
    refuses("a corpus without captions", Frequencies.of, [])
