"""Captions as texts: white space that means nothing, and which of several is nearest to one."""

from collections.abc import Sequence

import numpy as np

from counterfoil.errors import DataError


def collapsed(text: str) -> str:
    """A text without white space at its ends, and single blanks within.

    >>> collapsed(" a\\tdog\\n runs ")
    'a dog runs'
    """
    return " ".join(text.split())


def nearest(candidate: str, references: Sequence[str]) -> int:
    """The place of the reference that the fewest edits of characters turn into the candidate, or the first.

    For candidates that people wrote and a data set lists slightly changed (Composite). Raises `DataError`
    where there is no reference.
    """
    if not references:
        raise DataError("no reference to compare with", given=candidate)
    if candidate in references:
        return list(references).index(candidate)
    return int(np.argmin([edit_distance(candidate, each) for each in references]))


def edit_distance(left: str, right: str) -> int:
    """How many characters must be put in, taken out or changed to make one text the other.

    Bit by bit over whole columns (Myers 1999, as simplified by Hyyrö 2003): a step per character of `right`.

    >>> edit_distance("kitten", "sitting"), edit_distance("", "abc")
    (3, 3)
    """
    if not left:
        return len(right)
    where: dict[str, int] = {}
    for at, letter in enumerate(left):
        where[letter] = where.get(letter, 0) | 1 << at
    mask, last = (1 << len(left)) - 1, 1 << (len(left) - 1)
    # Bits of `up` and `down`: the distance grows, or falls, by one from the row above to this one.
    up, down, distance = mask, 0, len(left)
    for letter in right:
        equal = where.get(letter, 0)
        diagonal = (((equal & up) + up) ^ up) | equal | down
        rises = down | ~(diagonal | up) & mask
        falls = diagonal & up
        distance += bool(rises & last) - bool(falls & last)
        rises, falls = (rises << 1 | 1) & mask, (falls << 1) & mask
        up, down = falls | ~(diagonal | rises) & mask, rises & diagonal
    return distance
