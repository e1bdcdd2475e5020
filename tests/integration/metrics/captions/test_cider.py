"""CIDEr against the tool kit's and against the paper's formulas written out."""

from collections import Counter
from math import exp, log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coco_tool_kit import against_the_others, same, scored
from counterfoil.errors import InputError
from counterfoil.metrics.captions.cider import DocumentFrequencies, cider, document_frequencies
from counterfoil.metrics.captions.ptb import tokenize_all
from flickr8k_files import captions

CAPTION = st.lists(st.sampled_from(["a", "b", "c", "dog", "runs"]), max_size=9).map(" ".join)
ITEMS = st.lists(st.tuples(CAPTION, st.lists(CAPTION, min_size=1, max_size=4)), min_size=2, max_size=6)
Items = list[tuple[str, list[str]]]
Gram = tuple[str, ...]


def grams(text: str, n: int) -> Counter[Gram]:
    words = text.split()
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def documents_with(gram: Gram, corpus: list[list[str]]) -> int:
    return sum(any(gram in grams(reference, len(gram)) for reference in listed) for listed in corpus)


def twin(candidate: str, references: list[str], corpus: list[list[str]], variant: str) -> float:
    """The paper's formula, n-gram by n-gram."""
    total = 0.0
    for reference in references:
        for n in range(1, 5):
            own, other = grams(candidate, n), grams(reference, n)
            idf = {g: log(len(corpus) / max(1, documents_with(g, corpus))) for g in own | other}
            norm = sqrt(sum((own[g] * idf[g]) ** 2 for g in own))
            norm *= sqrt(sum((other[g] * idf[g]) ** 2 for g in other))
            if not norm:
                continue
            if variant == "plain":
                total += sum(own[g] * other[g] * idf[g] ** 2 for g in own) / norm
            else:
                alike = sum(min(own[g], other[g]) * other[g] * idf[g] ** 2 for g in own) / norm
                gap = max(len(candidate.split()) - 1, 0) - max(len(reference.split()) - 1, 0)
                total += 10 * alike * exp(-(gap**2) / (2 * 6**2))
    return total / 4 / len(references)


def columns(items: Items) -> tuple[list[str], list[list[str]]]:
    return [candidate for candidate, _ in items], [references for _, references in items]


@given(ITEMS, st.sampled_from(["d", "plain"]))
def test_equals_a_slow_twin(items: Items, variant: Any) -> None:
    candidates, references = columns(items)
    expected = [twin(candidate, listed, references, variant) for candidate, listed in items]
    assert cider(candidates, references, variant=variant).tolist() == pytest.approx(expected, abs=1e-9)


@given(ITEMS)
def test_equals_the_tool_kit(items: Items) -> None:
    if not any(text.split() for _, listed in items for text in listed):
        return  # the tool kit cannot take references without any token
    module = pytest.importorskip("pycocoevalcap.cider.cider")
    same(cider(*columns(items)), scored(module.Cider(), *columns(items))[1])


def test_equals_the_tool_kit_on_real_captions(shared_data: Path) -> None:
    module = pytest.importorskip("pycocoevalcap.cider.cider")
    chosen = [tokenize_all(own) for own in list(captions(shared_data).values())[::16]]
    pairs = against_the_others(chosen)
    assert len(pairs[0]) > 2500  # more than one block
    same(cider(*pairs), scored(module.Cider(), *pairs)[1])


@given(ITEMS, ITEMS, st.sampled_from(["d", "plain"]))
def test_of_a_named_corpus(items: Items, others: Items, variant: Any) -> None:
    corpus = columns(others)[1]
    frequencies = document_frequencies(corpus)
    expected = [twin(candidate, listed, corpus, variant) for candidate, listed in items]
    scores = cider(*columns(items), frequencies=frequencies, variant=variant)
    assert scores.tolist() == pytest.approx(expected, abs=1e-9)
    # A value of a named corpus does not depend on what else is scored.
    alone = [cider([c], [listed], frequencies=frequencies, variant=variant)[0] for c, listed in items]
    assert alone == pytest.approx(scores.tolist(), abs=1e-12)


@given(ITEMS)
def test_the_references_at_hand_are_the_corpus_where_none_is_named(items: Items) -> None:
    candidates, references = columns(items)
    named = cider(candidates, references, frequencies=document_frequencies(references))
    assert named == pytest.approx(cider(candidates, references), abs=1e-12)


@given(
    st.lists(
        st.tuples(
            st.lists(CAPTION, min_size=1, max_size=4), st.lists(CAPTION.filter(bool), min_size=1, max_size=3)
        ),
        min_size=2,
        max_size=5,
    )
)
def test_images_of_several_candidates_are_one_document_each(
    images: list[tuple[list[str], list[str]]],
) -> None:
    """The tool kit takes one candidate per image, so it is asked once for each turn."""
    module = pytest.importorskip("pycocoevalcap.cider.cider")
    owner = np.repeat(np.arange(len(images)), [len(own) for own, _ in images])
    rows = [(text, listed) for own, listed in images for text in own]
    documents = np.unique(owner, return_index=True)[1]
    found = cider([text for text, _ in rows], [listed for _, listed in rows], documents=documents)
    references = [listed for _, listed in images]
    for k in range(max(len(own) for own, _ in images)):
        asked = [own[min(k, len(own) - 1)] for own, _ in images]
        of_image = scored(module.Cider(), asked, references)[1]
        for image, (own, _) in enumerate(images):
            if k < len(own):
                assert found[documents[image] + k] == pytest.approx(of_image[image], abs=1e-9)


def test_document_frequencies_count_documents_not_captions() -> None:
    corpus = document_frequencies([["a dog", "a dog a"], ["a cat"], ["the cat"]])
    assert corpus.documents == 3
    assert corpus.counts == {
        ("a",): 2,
        ("dog",): 1,
        ("cat",): 2,
        ("the",): 1,
        ("a", "dog"): 1,
        ("dog", "a"): 1,
        ("a", "cat"): 1,
        ("the", "cat"): 1,
        ("a", "dog", "a"): 1,
    }


def test_a_single_item_is_an_error_that_says_why_unless_a_corpus_is_named() -> None:
    with pytest.raises(InputError, match=r"single image is always 0: .* log\(1/1\) = 0; .* name a corpus"):
        cider(["a dog"], [["a dog"]])
    with pytest.raises(InputError, match="fewer than 2 documents"):
        document_frequencies([["a dog"]])
    with pytest.raises(InputError, match="fewer than 2 documents"):
        DocumentFrequencies({("a",): 1}, 1)
    corpus = DocumentFrequencies({("a",): 10, ("dog",): 2}, 10)
    # "a" is everywhere and weighs nothing; "dog" and the pair are alike in full: (1 + 1 + 0 + 0) / 4 * 10.
    assert cider(["a dog"], [["a dog"]], frequencies=corpus).tolist() == pytest.approx([5.0])


def test_the_best_value_and_none() -> None:
    texts = ["a dog runs fast here", "two cats sleep on sofas", "", "one"]
    references = [["a dog runs fast here"], ["two cats sleep on sofas"], ["red bus"], ["two cats"]]
    assert cider(texts, references).tolist() == pytest.approx([10, 10, 0, 0])
    assert cider(texts, references, variant="plain").tolist() == pytest.approx([1, 1, 0, 0])


def test_repeating_a_word_pays_in_the_plain_formula_only() -> None:
    references = [["a dog runs", "the dog sits"], ["a cat"], ["one bird"]]
    honest, gaming = ["dog x", "x", "x"], ["dog dog dog x", "x", "x"]
    plain = [cider(texts, references, variant="plain")[0] for texts in (honest, gaming)]
    clipped = [cider(texts, references)[0] for texts in (honest, gaming)]
    assert plain[1] > plain[0]
    assert clipped[1] < clipped[0]


@given(ITEMS, st.randoms(), st.sampled_from(["d", "plain"]))
def test_range_and_order_of_references(items: Items, rng: Any, variant: Any) -> None:
    scores = cider(*columns(items), variant=variant)
    assert (scores >= 0).all()
    assert (scores <= (10 if variant == "d" else 1) + 1e-9).all()
    shuffled = [(candidate, rng.sample(listed, len(listed))) for candidate, listed in items]
    np.testing.assert_allclose(cider(*columns(shuffled), variant=variant), scores, atol=1e-12)
    doubled = [(candidate, listed * 2) for candidate, listed in items]
    np.testing.assert_allclose(cider(*columns(doubled), variant=variant), scores, atol=1e-12)
