"""Changes drawn for all captions together, so that each is made as often as its opposite."""

from collections import defaultdict, deque
from collections.abc import Sequence

import numpy as np

from counterfoil.build.negation.lexicon import Lexicon
from counterfoil.build.negation.parse import Parse
from counterfoil.build.negation.rules import REASONS, Negative, negatives

#: What becomes what.
Direction = tuple[str, str]
NO_OPPOSITE = "no caption for the opposite change"


def balanced(
    parses: Sequence[Parse], category: str, lexicon: Lexicon, rng: np.random.Generator
) -> list[Negative | str]:
    """A replacement for each caption such that opposites are as frequent, or the reason why there is none."""
    options = [negatives(parse, category, lexicon) for parse in parses]
    directions = [[_direction(each.change) for each in of] for of in options]
    return [
        of[at] if at is not None else NO_OPPOSITE if of else REASONS[category]
        for of, at in zip(options, pairing(directions, rng), strict=True)
    ]


def _direction(change: str) -> Direction:
    old, _, new = change.partition(" > ")
    return old, new


def pairing(options: Sequence[Sequence[Direction]], rng: np.random.Generator) -> list[int | None]:
    """For each caption the place of one of its changes, or None, such that opposites are equally frequent.

    A caption whose "dog" becomes "cat" is paired with one whose "cat" becomes "dog"; captions with few
    possible partners are paired first, each with the one that has fewest. So no word is added more often than
    it is taken away. None where no partner is left. Equal options and state of `rng` give equal choices.

    >>> dogs, cats = [("dog", "cat"), ("dog", "fox")], [("cat", "dog")]
    >>> sorted(pairing([dogs, dogs, cats], np.random.default_rng(0)), key=str)
    [0, 0, None]
    """
    count: dict[Direction, int] = defaultdict(int)
    for changes in options:
        for each in changes:
            count[each] += 1
    partners = [sum(count[new, old] for old, new in changes) for changes in options]
    order = sorted(rng.permutation(len(options)).tolist(), key=lambda row: partners[row])
    waiting: dict[Direction, deque[int]] = defaultdict(deque)
    for row in order:
        for each in options[row]:
            waiting[each].append(row)
    found: list[int | None] = [None] * len(options)
    for row in order:
        if found[row] is not None:
            continue
        best: tuple[int, int, int] | None = None
        for place, (old, new) in enumerate(options[row]):
            queue = waiting[new, old]
            while queue and found[queue[0]] is not None:
                queue.popleft()
            other = next((each for each in queue if each != row and found[each] is None), None)
            if other is not None and (best is None or partners[other] < best[0]):
                best = partners[other], place, other
        if best is not None:
            _, place, other = best
            old, new = options[row][place]
            found[row], found[other] = place, options[other].index((new, old))
    return found
