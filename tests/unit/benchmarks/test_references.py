"""References: row by row, drawn, equal to their candidate, and the nearest by edit distance."""

import random

import numpy as np

from counterfoil.benchmarks.references import References, contained, edit_distance, nearest
from refusals import refuses


def test_references_are_taken_row_by_row():
    rows = [[3, 1], [], [2, 2, 5], [0]]
    result = References.of(rows)
    order = np.array([2, 0, 1, 2])
    taken = result.take(order)
    assert [taken.row(i).tolist() for i in range(len(taken))] == [rows[i] for i in order]
    assert result.rows.tolist() == [0, 0, 2, 2, 2, 3]


def test_drawn_references_are_some_of_their_row_in_their_order_each_as_often():
    rows = [list(range(start, start + size)) for start, size in ((0, 48), (100, 3), (200, 5), (300, 9))]
    result = References.of(rows)
    drawn = result.sample(5, np.random.default_rng(1))
    for row, own in enumerate(rows):
        kept = drawn.row(row).tolist()
        assert (len(kept), kept) == (min(5, len(own)), sorted(kept))
        assert set(kept) <= set(own)
    assert result.sample(5, np.random.default_rng(1)).captions.tolist() == drawn.captions.tolist()
    assert result.sample(5, np.random.default_rng(2)).captions.tolist() != drawn.captions.tolist()
    result, rng = References.of([list(range(6))]), np.random.default_rng(0)
    often = np.bincount(np.concatenate([result.sample(2, rng).captions for _ in range(3000)]), minlength=6)
    # Binomial with 3,000 trials of 1/3: 1,000 give or take five of its standard deviations, 26.
    assert np.all(np.abs(often - 1000) < 130)


TEXTS = ["a dog runs", "a dog  runs ", "a cat", "two cats", "a dog runs"]


def _rows(references):
    return [references.row(row).tolist() for row in range(len(references))]


def test_policies():
    # Row 0 asks about text 0, which 1 and 4 are too; row 1 about "a cat", which is among its references
    # once; row 2 about "two cats", which is not.
    candidates = np.array([0, 2, 3])
    references = References.of([[1, 2, 4], [2, 3], [0, 2]])
    shared = np.arange(3)
    kept = contained(TEXTS, candidates, references, "keep", shared=shared)
    assert (kept.equal, kept.dropped, kept.included.all(), kept.description()) == (2, 0, True, "")
    assert _rows(kept.references) == [[1, 2, 4], [2, 3], [0, 2]]
    first = contained(TEXTS, candidates, references, "drop-reference", shared=shared)
    assert _rows(first.references) == [[2, 4], [3], [0, 2]]
    assert (first.equal, first.dropped, first.included.all()) == (2, 2, True)
    assert first.description() == "2 references equal to a candidate taken out"
    item = contained(TEXTS, candidates, references, "drop-item", shared=shared)
    assert item.included.tolist() == [False, False, True]
    assert _rows(item.references) == [[1, 2, 4], [2, 3], [0, 2]]
    assert item.description() == "2 rows whose candidate is a reference left out"


def test_a_shared_list_loses_what_any_of_its_rows_takes():
    # As the released code does it: one list per image, `list.remove` for each candidate in turn.
    rng = random.Random(5)
    for _ in range(50):
        texts = [f"t{rng.randrange(6)}" for _ in range(30)]
        lists = [[rng.randrange(30) for _ in range(5)] for _ in range(4)]
        image = np.array([rng.randrange(4) for _ in range(12)])
        candidates = np.array([rng.randrange(30) for _ in range(12)])
        expected = {i: [texts[item] for item in own] for i, own in enumerate(lists)}
        dropped = 0
        for own, candidate in zip(image.tolist(), candidates.tolist(), strict=True):
            if texts[candidate] in expected[own]:
                expected[own].remove(texts[candidate])
                dropped += 1
        references = References.of([lists[i] for i in image])
        result = contained(texts, candidates, references, "drop-reference", shared=image)
        assert result.dropped == dropped
        for row, own in enumerate(image.tolist()):
            assert [texts[item] for item in result.references.row(row)] == expected[own]


def _slow(left, right):
    row = list(range(len(right) + 1))
    for i, one in enumerate(left, start=1):
        new = [i]
        for j, other in enumerate(right, start=1):
            new.append(min(row[j] + 1, new[-1] + 1, row[j - 1] + (one != other)))
        row = new
    return row[-1]


def test_edit_distance_and_the_nearest_reference():
    rng = random.Random(1)
    for _ in range(100):
        left, right = ("".join(rng.choice("abcé ") for _ in range(rng.randrange(90))) for _ in range(2))
        assert edit_distance(left, right) == _slow(left, right)
        assert edit_distance(left, left) == 0
    assert nearest("a dog runs .", ["a cat", "a dog runs", "the dog runs ."]) == 1
    assert nearest("ab", ["xb", "ax"]) == 0  # as near as the other: the first
    assert nearest("ab", ["aab", "ab", "ab"]) == 1
    refuses("no reference to compare with", nearest, "ab", [])
