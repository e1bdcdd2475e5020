"""Rules that make a negative caption: SugarCrepe's seven categories and the swaps of NegCLIP.

One of the places that a rule finds in a parsed caption, those that the lists know first, and one of the words
that contradict it are drawn. Sources: Hsieh et al., SugarCrepe, 2023, table 2; Yuksekgonul et al., When and
why vision-language models behave like bags-of-words, 2023, section 4.
"""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from counterfoil.build.negation.edits import (
    VERBS,
    Rule,
    exchanged_attributes,
    rewritten,
    swap_att,
    swap_noun,
    swap_obj,
    swap_words,
)
from counterfoil.build.negation.lexicon import Lexicon
from counterfoil.build.negation.parse import Parse
from counterfoil.build.negation.replacements import add_att, add_obj, replace_att, replace_obj, replace_rel
from counterfoil.errors import UnknownNameError

#: Places that are tried before a caption is given up.
_TRIES = 24


@dataclass(frozen=True, slots=True)
class Negative:
    """A negative caption, and what was changed into what ("dog > cat")."""

    text: str
    change: str


def negative(parse: Parse, category: str, rng: np.random.Generator, lexicon: Lexicon) -> Negative | str:
    """A negative of the caption in a category, or the reason why there is none.

    The same parse, category, state of `rng` and lexicon give the same negative. Raises `UnknownNameError` for
    a category that is not among `CATEGORIES`.
    """
    if category not in _RULES:
        raise UnknownNameError("category of negatives", category, CATEGORIES)
    rule, reason = _RULES[category]
    positions = list(rule(parse, lexicon))
    if not positions:
        return reason
    order = rng.permutation(len(positions))
    ranked = sorted(order, key=lambda i: positions[i].tier)[:_TRIES]
    for i in ranked:
        options = positions[i].options
        edits, change = positions[i].change(options[int(rng.integers(len(options)))])
        text = rewritten(parse, edits)
        if _differs(str(parse), text):
            return Negative(text, change)
    return reason


def negatives(parse: Parse, category: str, lexicon: Lexicon) -> list[Negative]:
    """All that the rule of a category makes of a caption, the best places first, each change once."""
    by_change: dict[str, Negative] = {}
    for place in sorted(_RULES[category][0](parse, lexicon), key=lambda candidate: candidate.tier):
        for option in place.options:
            edits, change = place.change(option)
            text = rewritten(parse, edits)
            if _differs(str(parse), text):
                by_change.setdefault(change, Negative(text, change))
    return list(by_change.values())


def _differs(before: str, after: str) -> bool:
    """Whether two captions differ in more than case, articles and spaces."""

    def bare(text: str) -> list[str]:
        return [word for word in text.lower().split() if word not in ("a", "an", "the")]

    return bare(before) != bare(after)


_RULES: Mapping[str, tuple[Rule, str]] = {
    "replace_obj": (replace_obj, "no object to replace"),
    "replace_att": (replace_att, "no attribute to replace"),
    "replace_rel": (replace_rel, "no relation to replace"),
    "swap_obj": (swap_obj, "no two objects to swap"),
    "swap_att": (swap_att, "no attributes to swap"),
    "add_obj": (add_obj, "no object to add"),
    "add_att": (add_att, "no object to give an attribute to"),
    "swap_noun": (swap_noun, "no two nouns to swap"),
    "swap_adjective": (exchanged_attributes, "no two adjectives to swap"),
    "swap_verb": (swap_words(VERBS), "no two verbs to swap"),
    "swap_adverb": (swap_words(frozenset({"RB"})), "no two adverbs to swap"),
    "swap_phrase": (swap_obj, "no two noun phrases to swap"),
}

REASONS: Mapping[str, str] = {category: reason for category, (_, reason) in _RULES.items()}

SUGAR_CREPE = ("replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att", "add_obj", "add_att")
NEG_CLIP = ("swap_noun", "swap_adjective", "swap_verb", "swap_adverb", "swap_phrase")
CATEGORIES = (*SUGAR_CREPE, *NEG_CLIP)


#: What becomes what.
Direction = tuple[str, str]
NO_OPPOSITE = "no caption for the opposite change"


def balanced(
    parses: Sequence[Parse], category: str, lexicon: Lexicon, rng: np.random.Generator
) -> list[Negative | str]:
    """A replacement for each caption such that opposites are as frequent, or the reason why there is none."""
    options = [negatives(parse, category, lexicon) for parse in parses]
    directions = [[negative.change.partition(" > ")[::2] for negative in of] for of in options]
    return [
        of[direction] if direction is not None else NO_OPPOSITE if of else REASONS[category]
        for of, direction in zip(options, pairing(directions, rng), strict=True)
    ]


def pairing(options: Sequence[Sequence[Direction]], rng: np.random.Generator) -> list[int | None]:
    """For each caption the place of one of its changes, or None, such that opposites are equally frequent.

    A caption whose "dog" becomes "cat" is paired with one whose "cat" becomes "dog"; captions with few
    possible partners are paired first, each with the one that has fewest. So no word is added more often than
    it is taken away. None where no partner is left. Equal options and state of `rng` give equal choices.
    """
    count: dict[Direction, int] = defaultdict(int)
    for changes in options:
        for direction in changes:
            count[direction] += 1
    partners = [sum(count[new, old] for old, new in changes) for changes in options]
    order = sorted(rng.permutation(len(options)).tolist(), key=lambda row: partners[row])
    waiting: dict[Direction, deque[int]] = defaultdict(deque)
    for row in order:
        for direction in options[row]:
            waiting[direction].append(row)
    positions: list[int | None] = [None] * len(options)
    for row in order:
        if positions[row] is not None:
            continue
        best: tuple[int, int, int] | None = None
        for place, (old, new) in enumerate(options[row]):
            queue = waiting[new, old]
            while queue and positions[queue[0]] is not None:
                queue.popleft()
            other = next((i for i in queue if i != row and positions[i] is None), None)
            if other is not None and (best is None or partners[other] < best[0]):
                best = partners[other], place, other
        if best is not None:
            _, place, other = best
            old, new = options[row][place]
            positions[row], positions[other] = place, options[other].index((new, old))
    return positions
