"""BLEU, ROUGE-L and CIDEr against the tool kit's, and against the papers' formulas written out."""

from collections import Counter
from math import exp, log, prod, sqrt

import numpy as np
import pytest
from hypothesis import given, strategies as st

from coco_tool_kit import same, scored
from counterfoil.errors import InputError
from counterfoil.metrics.captions import ngrams
from counterfoil.metrics.captions.cider import DocumentFrequencies, cider as cider_of, document_frequencies
from counterfoil.metrics.captions.ngrams import BETA, load
from refusals import refuses

CAPTION = st.lists(st.sampled_from(["a", "b", "c", "dog", "runs"]), max_size=9).map(" ".join)
ITEMS = st.lists(st.tuples(CAPTION, st.lists(CAPTION, min_size=1, max_size=4)), min_size=1, max_size=6)
SEVERAL = ITEMS.filter(lambda items: len(items) > 1)


def columns(items):
    return [candidate for candidate, _ in items], [references for _, references in items]


def bleu(candidates, references, **options):
    return ngrams.bleu(load(candidates, references), **options)


def rouge_l(candidates, references):
    return ngrams.rouge_l(load(candidates, references))


def cider(candidates, references, **options):
    return cider_of(load(candidates, references), **options)


def plain_cider(candidates, references):
    return cider(candidates, references, variant="plain")


#: Every score of items by itself, the most that it can be, and how far sums in another order may be off.
SCORES = {
    "bleu": (lambda *pairs: bleu(*pairs).items, 1.0, 0.0), "rouge": (rouge_l, 1.0, 0.0),
    "cider": (cider, 10.0, 1e-12), "plain": (plain_cider, 1.0, 1e-12),
}  # fmt: skip


@pytest.mark.parametrize("name", SCORES)
@given(SEVERAL, st.randoms())
def test_range_order_of_references_and_repeated_references(name, items, rng):
    score, most, near = SCORES[name]
    values = score(*columns(items))
    assert ((values >= 0) & (values <= most + 1e-9)).all()
    shuffled = [(candidate, rng.sample(listed, len(listed))) for candidate, listed in items]
    for other in (shuffled, [(candidate, listed * 2) for candidate, listed in items]):
        np.testing.assert_allclose(score(*columns(other)), values, rtol=0, atol=near)


def grams(text, n):
    words = text.split()
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


# -------------------------------------------------------------------------------------------------- BLEU


def slow_bleu(items, n):
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


@given(ITEMS)
def test_bleu_equals_a_slow_twin(items):
    result = bleu(*columns(items))
    for n in range(4):
        assert result.corpus[n] == pytest.approx(slow_bleu(items, n + 1), abs=1e-12)
        for row, item in enumerate(items):
            assert result.items[row, n] == pytest.approx(slow_bleu([item], n + 1), abs=1e-12)


@given(ITEMS, st.sampled_from(["closest", "shortest", "average"]))
def test_bleu_equals_the_tool_kit_with_each_length_of_references(items, length):
    model = pytest.importorskip("pycocoevalcap.bleu.bleu_scorer").BleuScorer(n=4)
    for candidate, references in items:
        model += (candidate, references)
    corpus, per_item = model.compute_score(option=length)
    result = bleu(*columns(items), length=length)
    same(result.items, np.array(per_item).T)
    same(result.corpus, corpus)


@given(st.lists(CAPTION.filter(lambda text: len(text.split()) >= 4), min_size=1, max_size=5))
def test_bleu_of_a_caption_that_equals_a_reference_is_one(texts):
    result = bleu(texts, [["c c", text] for text in texts])
    assert result.items == pytest.approx(1, abs=1e-8)
    assert result.corpus == pytest.approx(1, abs=1e-8)


def test_bleu_of_no_tokens_and_of_two_equally_near_references():
    nothing = bleu(["", ""], [["a dog"], [""]])
    assert not nothing.items.any()
    assert not nothing.corpus.any()
    # Lengths 3 and 5 are as near to 4: with 3 there is no penalty, with 5 there is exp(1 - 5/4).
    four, three, five = "a b c d", "a b c", "a b c d e"
    assert bleu([four], [[five, three]]).items[0, 0] == pytest.approx(1, abs=1e-8)
    assert bleu([four], [[five]]).items[0, 0] == pytest.approx(exp(-1 / 4), abs=1e-8)
    refuses(r"unknown length|violates", bleu, ["a"], [["a"]], error=(InputError, TypeError), length="longest")


# ----------------------------------------------------------------------------------------------- ROUGE-L


def common(one, other):
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def slow_rouge(candidate, references):
    own = candidate.split(" ")
    lengths = [(common(own, other.split(" ")), len(other.split(" "))) for other in references]
    precision = max(shared / len(own) for shared, _ in lengths)
    recall = max(shared / length for shared, length in lengths)
    if not precision:
        return 0.0
    return (1 + BETA**2) * precision * recall / (recall + BETA**2 * precision)


@given(ITEMS)
def test_rouge_equals_a_slow_twin_and_the_tool_kit(items):
    result = rouge_l(*columns(items))
    expected = [slow_rouge(candidate, references) for candidate, references in items]
    assert result.tolist() == pytest.approx(expected, abs=1e-12)
    same(result, scored(pytest.importorskip("pycocoevalcap.rouge.rouge").Rouge(), *columns(items))[1])


def test_rouge_of_more_tokens_than_a_machine_word_has_bits_and_of_none():
    long = [f"t{i}" for i in range(200)]
    thinned, backwards = " ".join(long[::2]), " ".join(reversed(long))
    # Every second token is there in order: P = 1, R = 1/2; backwards only one token can be kept.
    score = rouge_l([thinned, backwards], [[" ".join(long)], [" ".join(long)]])
    assert score.tolist() == pytest.approx([(1 + 1.44) * 0.5 / (0.5 + 1.44), 1 / 200])
    assert rouge_l(["", "a dog", ""], [["a dog"], [""], ["", "a"]]).tolist() == [0, 0, 1]


@given(st.lists(CAPTION, min_size=1, max_size=5))
def test_rouge_of_a_caption_that_equals_a_reference_is_one(texts):
    assert rouge_l(texts, [["c c", text] for text in texts]) == pytest.approx(1)


# ------------------------------------------------------------------------------------------------- CIDEr


def documents_with(corpus):
    """In how many documents each gram is."""
    held = ({gram for text in listed for n in range(1, 5) for gram in grams(text, n)} for listed in corpus)
    return Counter(gram for document in held for gram in document)


def slow_cider(candidate, references, documents, of_all, variant):
    total = 0.0
    for reference in references:
        for n in range(1, 5):
            own, other = grams(candidate, n), grams(reference, n)
            idf = {g: log(of_all / max(1, documents[g])) for g in own | other}
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


@given(SEVERAL, SEVERAL, st.sampled_from(["d", "plain"]))
def test_cider_equals_a_slow_twin_of_its_own_and_of_a_named_corpus(items, others, variant):
    candidates, references = columns(items)
    for corpus, frequencies in (
        (references, None),
        (references, document_frequencies(references)),
        (columns(others)[1], document_frequencies(columns(others)[1])),
    ):
        documents = documents_with(corpus)
        expected = [slow_cider(*item, documents, len(corpus), variant) for item in items]
        scores = cider(candidates, references, frequencies=frequencies, variant=variant)
        assert scores.tolist() == pytest.approx(expected, abs=1e-9)
        if frequencies is not None:
            # A value of a named corpus does not depend on what else is scored.
            alone = [cider([c], [own], frequencies=frequencies, variant=variant)[0] for c, own in items]
            assert alone == pytest.approx(scores.tolist(), abs=1e-12)


@given(SEVERAL)
def test_cider_equals_the_tool_kit(items):
    if not any(text.split() for _, listed in items for text in listed):
        return  # the tool kit cannot take references without any token
    module = pytest.importorskip("pycocoevalcap.cider.cider")
    same(cider(*columns(items)), scored(module.Cider(), *columns(items))[1])


WORDED = st.lists(CAPTION.filter(bool), min_size=1, max_size=3)
OWN = st.tuples(st.lists(CAPTION, min_size=1, max_size=4), WORDED)


@given(st.lists(OWN, min_size=2, max_size=5))
def test_images_of_several_candidates_are_one_document_each(images):
    """The tool kit takes one candidate per image, so it is asked once for each turn."""
    module = pytest.importorskip("pycocoevalcap.cider.cider")
    owner = np.repeat(np.arange(len(images)), [len(own) for own, _ in images])
    documents = np.unique(owner, return_index=True)[1]
    result = cider(*columns([(text, listed) for own, listed in images for text in own]), documents=documents)
    references = [listed for _, listed in images]
    for k in range(max(len(own) for own, _ in images)):
        of_image = scored(module.Cider(), [own[min(k, len(own) - 1)] for own, _ in images], references)[1]
        for image, (own, _) in enumerate(images):
            if k < len(own):
                assert result[documents[image] + k] == pytest.approx(of_image[image], abs=1e-9)


def test_document_frequencies_count_documents_not_captions():
    corpus = document_frequencies([["a dog", "a dog a"], ["a cat"], ["the cat"]])
    assert corpus.documents == 3
    counts = {"a": 2, "dog": 1, "cat": 2, "the": 1, "a dog": 1, "dog a": 1, "a cat": 1, "the cat": 1}
    assert corpus.counts == {tuple(gram.split()): n for gram, n in {**counts, "a dog a": 1}.items()}


def test_a_single_item_is_an_error_that_says_why_unless_a_corpus_is_named():
    with pytest.raises(InputError, match=r"single image is always 0: .* log\(1/1\) = 0; .* name a corpus"):
        cider(["a dog"], [["a dog"]])
    refuses("fewer than 2 documents", document_frequencies, [["a dog"]], error=InputError)
    corpus = DocumentFrequencies({("a",): 10, ("dog",): 2}, 10)
    # "a" is everywhere and weighs nothing; "dog" and the pair are alike in full: (1 + 1 + 0 + 0) / 4 * 10.
    assert cider(["a dog"], [["a dog"]], frequencies=corpus).tolist() == pytest.approx([5.0])


def test_the_best_value_and_none_and_that_repeating_a_word_pays_in_the_plain_formula_only():
    texts = ["a dog runs fast here", "two cats sleep on sofas", "", "one"]
    references = [["a dog runs fast here"], ["two cats sleep on sofas"], ["red bus"], ["two cats"]]
    assert cider(texts, references).tolist() == pytest.approx([10, 10, 0, 0])
    assert plain_cider(texts, references).tolist() == pytest.approx([1, 1, 0, 0])
    references = [["a dog runs", "the dog sits"], ["a cat"], ["one bird"]]
    honest, gaming = ["dog x", "x", "x"], ["dog dog dog x", "x", "x"]
    assert plain_cider(gaming, references)[0] > plain_cider(honest, references)[0]
    assert cider(gaming, references)[0] < cider(honest, references)[0]
