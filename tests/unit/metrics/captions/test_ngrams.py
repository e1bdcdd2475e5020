"""n-grams counted at once against counting them one by one, and what a load refuses."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from counterfoil.errors import InputError
from counterfoil.metrics.captions.ngrams import BLOCK, ORDERS, count, load
from refusals import refuses

TEXTS = st.lists(st.lists(st.sampled_from("abcd"), max_size=9).map(" ".join), max_size=6)


def twin(text):
    words = text.split()
    return Counter(tuple(words[i : i + n]) for n in range(1, ORDERS + 1) for i in range(len(words) - n + 1))


@given(TEXTS)
def test_counts_equal_a_slow_twin(texts):
    grams = count(texts)
    names = grams.names()
    assert len(set(names)) == len(names) == grams.counts.shape[1]
    table = grams.counts.toarray()
    for row, text in enumerate(texts):
        assert {names[g]: n for g, n in enumerate(table[row]) if n} == twin(text)
        assert grams.lengths[row] == len(text.split())
    assert not table[len(texts)].any()
    assert [len(name) - 1 for name in names] == grams.orders.tolist()


def test_any_white_space_parts_tokens():
    assert count(["a\u00a0b  c"]).names()[:3] == [("a",), ("b",), ("c",)]


@given(TEXTS)
def test_sums_by_order_are_those_of_the_table(texts):
    grams = count(texts)
    weights = np.arange(grams.counts.shape[1], dtype=float)
    table = grams.counts.toarray()
    expected = [[(row * weights)[grams.orders == n].sum() for n in range(ORDERS)] for row in table]
    assert grams.by_order(grams.counts, weights).tolist() == expected
    plain = [[row[grams.orders == n].sum() for n in range(ORDERS)] for row in table]
    assert grams.by_order(grams.counts).tolist() == plain


def test_blocks_are_all_items_once():
    n = 2 * BLOCK + 3
    pairs = load(["a"] * n, [["a", "b"]] * n)
    assert [i for block in pairs.blocks() for i in range(block.start, block.stop)] == list(range(n))
    assert pairs.texts == ("a", "b")
    assert len(pairs.references) == len(pairs.against) == 2 * n


@pytest.mark.parametrize(
    ("candidates", "references", "message"),
    [
        ([], [], "do not fit together; given: 0 candidates"),
        (["a"], [], "given: 1 candidates, 0 lists of references"),
        (["a", "b"], [["a"], []], "row 1: a candidate has no reference; given: 'b'"),
        (["a"], ["a dog"], "row 0: references are a list"),
    ],
)
def test_refuses(candidates, references, message):
    refuses(message, load, candidates, references, error=InputError)
