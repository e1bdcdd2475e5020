"""References that contain the candidate: what each policy does about them."""

import random

import numpy as np
import pytest

from counterfoil.data.references import References, contained
from counterfoil.errors import DataError

TEXTS = ["a dog runs", "a dog  runs ", "a cat", "two cats", "a dog runs"]


def _rows(references: References) -> list[list[int]]:
    return [references.row(row).tolist() for row in range(len(references))]


def test_policies() -> None:
    # Row 0 asks about text 0, which 1 and 4 are too; row 1 about "a cat", which is among its references
    # once; row 2 about "two cats", which is not.
    candidates = np.array([0, 2, 3])
    references = References.of([[1, 2, 4], [2, 3], [0, 2]])
    kept = contained(TEXTS, candidates, references, "keep")
    assert (kept.equal, kept.dropped, kept.included.all(), kept.said()) == (2, 0, True, "")
    assert _rows(kept.references) == [[1, 2, 4], [2, 3], [0, 2]]
    first = contained(TEXTS, candidates, references, "drop-reference")
    assert _rows(first.references) == [[2, 4], [3], [0, 2]]
    assert (first.equal, first.dropped, first.included.all()) == (2, 2, True)
    assert first.said() == "2 references equal to a candidate taken out"
    every = contained(TEXTS, candidates, references, "drop-reference", every=True)
    assert _rows(every.references) == [[2], [3], [0, 2]]
    assert every.dropped == 3
    item = contained(TEXTS, candidates, references, "drop-item")
    assert item.included.tolist() == [False, False, True]
    assert _rows(item.references) == [[1, 2, 4], [2, 3], [0, 2]]
    assert item.said() == "2 rows whose candidate is a reference left out"
    with pytest.raises(DataError, match="given: drop; allowed: keep, drop-reference, drop-item"):
        contained(TEXTS, candidates, references, "drop")


def test_a_shared_list_loses_what_any_of_its_rows_takes() -> None:
    # As the released code does it: one list per image, `list.remove` for each candidate in turn.
    rng = random.Random(5)
    for _ in range(50):
        texts = [f"t{rng.randrange(6)}" for _ in range(30)]
        lists = [[rng.randrange(30) for _ in range(5)] for _ in range(4)]
        image = np.array([rng.randrange(4) for _ in range(12)])
        candidates = np.array([rng.randrange(30) for _ in range(12)])
        expected = {at: [texts[each] for each in own] for at, own in enumerate(lists)}
        dropped = 0
        for own, candidate in zip(image.tolist(), candidates.tolist(), strict=True):
            if texts[candidate] in expected[own]:
                expected[own].remove(texts[candidate])
                dropped += 1
        found = contained(
            texts, candidates, References.of([lists[at] for at in image]), "drop-reference", shared=image
        )
        assert found.dropped == dropped
        for row, own in enumerate(image.tolist()):
            assert [texts[each] for each in found.references.row(row)] == expected[own]
