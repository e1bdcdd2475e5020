"""ROUGE-L against the tool kit's and against the table of the longest common subsequence filled in."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coco_tool_kit import against_the_others, same, scored
from counterfoil.metrics.captions.ngrams import rouge_l
from counterfoil.metrics.captions.ptb import tokenize_all
from flickr8k_files import captions

CAPTION = st.lists(st.sampled_from(["a", "b", "c", "dog", "runs"]), max_size=12).map(" ".join)
ITEMS = st.lists(st.tuples(CAPTION, st.lists(CAPTION, min_size=1, max_size=4)), min_size=1, max_size=6)
Items = list[tuple[str, list[str]]]


def common(one: list[str], other: list[str]) -> int:
    """The length of the longest common subsequence, from its definition."""
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def twin(candidate: str, references: list[str], beta: float) -> float:
    own = candidate.split(" ")
    lengths = [(common(own, other.split(" ")), len(other.split(" "))) for other in references]
    precision = max(shared / len(own) for shared, _ in lengths)
    recall = max(shared / length for shared, length in lengths)
    if not precision:
        return 0.0
    return (1 + beta**2) * precision * recall / (recall + beta**2 * precision)


def columns(items: Items) -> tuple[list[str], list[list[str]]]:
    return [candidate for candidate, _ in items], [references for _, references in items]


@given(ITEMS, st.sampled_from([1.2, 0.5, 3.0]))
def test_equals_a_slow_twin(items: Items, beta: float) -> None:
    expected = [twin(candidate, references, beta) for candidate, references in items]
    assert rouge_l(*columns(items), beta=beta).tolist() == pytest.approx(expected, abs=1e-12)


@given(ITEMS)
def test_equals_the_tool_kit(items: Items) -> None:
    module = pytest.importorskip("pycocoevalcap.rouge.rouge")
    same(rouge_l(*columns(items)), scored(module.Rouge(), *columns(items))[1])


def test_equals_the_tool_kit_on_real_captions(shared_data: Path) -> None:
    module = pytest.importorskip("pycocoevalcap.rouge.rouge")
    chosen = [tokenize_all(own) for own in list(captions(shared_data).values())[::10]]
    pairs = against_the_others(chosen)
    assert len(pairs[0]) > 4000
    same(rouge_l(*pairs), scored(module.Rouge(), *pairs)[1])


def test_a_text_of_more_tokens_than_a_machine_word_has_bits() -> None:
    long = [f"t{i}" for i in range(200)]
    thinned, backwards = " ".join(long[::2]), " ".join(reversed(long))
    # Every second token is there in order: P = 1, R = 1/2; backwards only one token can be kept.
    score = rouge_l([thinned, backwards], [[" ".join(long)], [" ".join(long)]])
    assert score.tolist() == pytest.approx([(1 + 1.44) * 0.5 / (0.5 + 1.44), 1 / 200])


@given(ITEMS, st.randoms())
def test_range_order_of_references_and_repeated_references(items: Items, rng: Any) -> None:
    score = rouge_l(*columns(items))
    assert ((score >= 0) & (score <= 1 + 1e-12)).all()
    shuffled = [(candidate, rng.sample(listed, len(listed)) + listed[:1]) for candidate, listed in items]
    assert (rouge_l(*columns(shuffled)) == score).all()


@given(st.lists(CAPTION, min_size=1, max_size=5))
def test_a_caption_that_equals_a_reference_gets_one(texts: list[str]) -> None:
    assert rouge_l(texts, [["c c", text] for text in texts]) == pytest.approx(1)


def test_a_caption_without_tokens_gets_nothing_unless_a_reference_has_none_either() -> None:
    assert rouge_l(["", "a dog", ""], [["a dog"], [""], ["", "a"]]).tolist() == [0, 0, 1]
