"""Edit distance against a table filled cell by cell, and the nearest of several texts."""

import random

import pytest

from counterfoil.data.references import edit_distance, nearest
from counterfoil.errors import DataError


def _slow(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for i, one in enumerate(left, start=1):
        new = [i]
        for j, other in enumerate(right, start=1):
            new.append(min(row[j] + 1, new[-1] + 1, row[j - 1] + (one != other)))
        row = new
    return row[-1]


def test_edit_distance() -> None:
    rng = random.Random(1)
    for _ in range(500):
        left, right = ("".join(rng.choice("abcé ") for _ in range(rng.randrange(90))) for _ in range(2))
        assert edit_distance(left, right) == _slow(left, right)
        assert edit_distance(left, left) == 0


def test_the_nearest_reference() -> None:
    assert nearest("a dog runs .", ["a cat", "a dog runs", "the dog runs ."]) == 1
    assert nearest("ab", ["xb", "ax"]) == 0  # as near as the other: the first
    assert nearest("ab", ["aab", "ab", "ab"]) == 1
    with pytest.raises(DataError, match="no reference to compare with"):
        nearest("ab", [])
