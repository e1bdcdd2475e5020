"""Duplicates: every near pair is found, questions that repeat are counted, images are compared."""

from itertools import combinations

import numpy as np
import PIL.Image
import pytest
from hypothesis import given, strategies as st

from counterfoil.benchmarks import Benchmark, Caption, Card, Choice, Image, PixelSource
from counterfoil.evaluation import duplicates
from counterfoil.evaluation.duplicates import NEAR, near_pairs, shingles

TEXT = st.lists(st.sampled_from(["red", "cat", "on", "a", "mat"]), min_size=1, max_size=6).map(" ".join)


def jaccard(a, b):
    return len(shingles(a) & shingles(b)) / len(shingles(a) | shingles(b))


@given(st.lists(TEXT, unique=True, max_size=14), st.sampled_from([0.3, 0.6, NEAR]), st.integers(0, 5))
def test_all_near_pairs_are_found_and_no_others(texts, threshold, first):
    every = [
        (i, j)
        for i, j in combinations(range(len(texts)), 2)
        if jaccard(texts[i], texts[j]) >= threshold - 1e-9 and (not first or i < first <= j)
    ]
    assert near_pairs(texts, threshold=threshold, first=first) == every


def benchmark(*rows):
    images = list(dict.fromkeys(image for image, _, _ in rows))
    texts = [text for _, *captions in rows for text in captions]
    queries = np.array([images.index(image) for image, _, _ in rows])
    ids, candidates = tuple(f"q{i}" for i in range(len(rows))), np.arange(2 * len(rows)).reshape(-1, 2)
    return Benchmark(
        Card(name="made", title="made", form="choice"),
        tuple(map(Image, images)),
        tuple(Caption(str(i), text) for i, text in enumerate(texts)),
        Choice(ids, query=queries, candidates=candidates),
    )


def test_questions_that_repeat_contradict_or_have_no_answer_are_counted():
    made = benchmark(
        ("x", "A red cat.", "a blue cat"),
        ("x", "a red cat", "A blue cat!"),
        ("x", "a blue cat", "a green cat"),
        ("y", "two dogs", "Two  dogs."),
        ("z", "the photograph of an old wooden house", "a tent"),
        ("w", "the photograph of an old wooden houses", "a camp"),
    )
    result = {item.kind: item for item in duplicates.caption_duplicates(made)}
    kinds = ("questions twice", "contradictions", "no difference", "near-duplicates")
    assert {kind: item.count for kind, item in result.items()} == dict.fromkeys(kinds, 1)
    assert result["questions twice"].examples == (("q0", "q1"),)
    assert result["contradictions"].examples == (("q0", "q2", "a blue cat"),)
    assert result["no difference"].examples == (("q3", "two dogs"),)


def test_images_are_compared_by_pixels_and_by_hash():
    rng = np.random.default_rng(0)
    one = np.kron(rng.integers(0, 256, (8, 9)), np.ones((8, 8))).astype(np.uint8)
    pictures = {
        "one": one,
        "same": one,
        "lighter": (one * 0.9).astype(np.uint8),
        "other": np.kron(rng.integers(0, 256, (8, 9)), np.ones((8, 8))).astype(np.uint8),
        "flat": np.full_like(one, 90),
        "flat too": np.full_like(one, 200),
    }
    pixels = {name: np.repeat(grey[:, :, None], 3, axis=2) for name, grey in pictures.items()}
    shown = {name: Image(name, PixelSource(grey)) for name, grey in pixels.items()}
    facts = {name: duplicates.image_facts(image) for name, image in shown.items()}
    same, near = duplicates.image_duplicates(facts)
    assert (same.count, same.examples) == (1, (("one", "same"),))
    assert near.examples == (("one", "lighter"),)
    assert duplicates.difference_hash(PIL.Image.new("RGB", (5, 5))) == 0


def test_what_two_sets_share_is_counted_by_question():
    made = benchmark(
        ("COCO_val2014_000000000042.jpg", "a red cat", "a blue cat"),
        ("y.jpg", "the photograph of an old wooden house", "a tent"),
        ("z.jpg", "two dogs", "three dogs"),
    )
    result = duplicates.leakage(
        made, "train", ["A red cat!", "the photograph of an old wooden houses"], ["42", "folder/z.png"]
    )
    assert (result.total, result.questions, result.near, result.images) == (3, 1, 1, 2)
    assert result.share == pytest.approx(2 / 3)
    part = duplicates.leakage(made, "train", ["a red cat"], [], rows=np.array([1, 2]))
    assert (part.total, part.questions, part.images) == (2, 0, 0)
