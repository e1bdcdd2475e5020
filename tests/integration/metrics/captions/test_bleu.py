"""BLEU against the tool kit's and against the paper's formula written out."""

from collections import Counter
from math import exp, prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coco_tool_kit import against_the_others, same, scored
from counterfoil.errors import InputError
from counterfoil.metrics.captions.ngrams import bleu
from counterfoil.metrics.captions.ptb import tokenize_all
from flickr8k_files import captions

CAPTION = st.lists(st.sampled_from(["a", "b", "c", "dog", "runs"]), max_size=9).map(" ".join)
ITEMS = st.lists(st.tuples(CAPTION, st.lists(CAPTION, min_size=1, max_size=4)), min_size=1, max_size=6)
Items = list[tuple[str, list[str]]]


def grams(text: str, n: int) -> Counter[tuple[str, ...]]:
    words = text.split()
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def twin(items: Items, n: int) -> float:
    """BLEU-n of a corpus by the paper, with the tool kit's guards against zero."""
    own = sum(len(candidate.split()) for candidate, _ in items)
    held = 0
    for candidate, references in items:
        lengths = [len(reference.split()) for reference in references]
        held += min(lengths, key=lambda length: (abs(length - len(candidate.split())), length))
    precisions = []
    for k in range(1, n + 1):
        right = guessed = 0
        for candidate, references in items:
            for gram, times in grams(candidate, k).items():
                right += min(times, max(grams(reference, k)[gram] for reference in references))
                guessed += times
        precisions.append((right + 1e-15) / (guessed + 1e-9))
    ratio = (own + 1e-15) / (held + 1e-9)
    return prod(precisions) ** (1 / n) * (exp(1 - 1 / ratio) if ratio < 1 else 1)


def columns(items: Items) -> tuple[list[str], list[list[str]]]:
    return [candidate for candidate, _ in items], [references for _, references in items]


@given(ITEMS)
def test_equals_a_slow_twin(items: Items) -> None:
    result = bleu(*columns(items))
    for n in range(4):
        assert result.corpus[n] == pytest.approx(twin(items, n + 1), abs=1e-12)
        for row, item in enumerate(items):
            assert result.items[row, n] == pytest.approx(twin([item], n + 1), abs=1e-12)


@given(ITEMS, st.sampled_from(["closest", "shortest", "average"]))
def test_equals_the_tool_kit_with_each_length_of_references(items: Items, length: Any) -> None:
    module = pytest.importorskip("pycocoevalcap.bleu.bleu_scorer")
    scorer = module.BleuScorer(n=4)
    for candidate, references in items:
        scorer += (candidate, references)
    corpus, per_item = scorer.compute_score(option=length)
    result = bleu(*columns(items), length=length)
    same(result.items, np.array(per_item).T)
    same(result.corpus, corpus)


def test_equals_the_tool_kit_on_real_captions(shared_data: Path) -> None:
    module = pytest.importorskip("pycocoevalcap.bleu.bleu")
    chosen = [tokenize_all(own) for own in list(captions(shared_data).values())[::10]]
    pairs = against_the_others(chosen)
    corpus, per_item = scored(module.Bleu(4), *pairs, verbose=0)
    result = bleu(*pairs)
    assert len(result.items) == len(pairs[0]) > 4000
    same(result.items, per_item.T)
    same(result.corpus, corpus)


@given(st.lists(CAPTION.filter(lambda text: len(text.split()) >= 4), min_size=1, max_size=5))
def test_a_caption_that_equals_a_reference_gets_one(texts: list[str]) -> None:
    result = bleu(texts, [["c c", text] for text in texts])
    assert result.items == pytest.approx(1, abs=1e-8)
    assert result.corpus == pytest.approx(1, abs=1e-8)


@given(ITEMS, st.randoms())
def test_range_order_of_references_and_repeated_references(items: Items, rng: Any) -> None:
    result = bleu(*columns(items))
    assert ((result.items >= 0) & (result.items <= 1)).all()
    shuffled = [(candidate, rng.sample(listed, len(listed)) + listed[:1]) for candidate, listed in items]
    assert (bleu(*columns(shuffled)).items == result.items).all()


def test_a_caption_without_tokens_gets_nothing() -> None:
    result = bleu(["", ""], [["a dog"], [""]])
    assert not result.items.any()
    assert not result.corpus.any()


def test_the_shorter_of_two_equally_near_references_counts() -> None:
    # Lengths 3 and 5 are as near to 4: with 3 there is no penalty, with 5 there is exp(1 - 5/4).
    four, three, five = "a b c d", "a b c", "a b c d e"
    assert bleu([four], [[five, three]]).items[0, 0] == pytest.approx(1, abs=1e-8)
    assert bleu([four], [[five]]).items[0, 0] == pytest.approx(exp(-1 / 4), abs=1e-8)


def test_refuses_an_unknown_length() -> None:
    wrong: Any = "longest"
    with pytest.raises((InputError, TypeError), match=r"unknown length|violates"):
        bleu(["a"], [["a"]], length=wrong)
