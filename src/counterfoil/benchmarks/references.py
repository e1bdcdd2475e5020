"""References: the captions that people wrote of an image or video, which metrics read beside a candidate."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterfoil.benchmarks.records import distinct
from counterfoil.errors import DataError


def collapsed(text: str) -> str:
    """A text without white space at its ends, and single blanks within."""
    return " ".join(text.split())


def nearest(candidate: str, references: Sequence[str]) -> int:
    """The place of the (first) reference that the fewest edits of characters turn into the candidate."""
    if not references:
        raise DataError("no reference to compare with", given=candidate)
    if candidate in references:
        return list(references).index(candidate)
    return int(np.argmin([edit_distance(candidate, reference) for reference in references]))


def edit_distance(left: str, right: str) -> int:
    """How many characters must be put in, taken out or changed to make one text the other.

    Bit by bit over whole columns (Myers 1999, as simplified by Hyyrö 2003): a step per character of `right`.
    """
    if not left:
        return len(right)
    where: dict[str, int] = {}
    for i, letter in enumerate(left):
        where[letter] = where.get(letter, 0) | 1 << i
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


Ids = NDArray[np.int64]


def bounds(counts: Sequence[int] | NDArray[np.int64]) -> Ids:
    """Where the entries of each row begin, by how many it has, and the end of the last."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


@dataclass(frozen=True, eq=False)
class References:
    """For each of some rows the captions that people wrote, if any: `captions[starts[i]:starts[i + 1]]`."""

    starts: Ids
    captions: Ids

    def __post_init__(self) -> None:
        if not len(self.starts) or self.starts[0] != 0 or self.starts[-1] != len(self.captions):
            raise DataError("references do not fit their rows", given=f"{len(self.captions)} references")

    @classmethod
    def of(cls, rows: "list[list[int]] | list[Ids]") -> "References":
        """The references of these rows."""
        starts = bounds(list(map(len, rows)))
        parts = [np.asarray(row, dtype=np.int64) for row in rows]
        return cls(starts, np.concatenate([*parts, np.empty(0, np.int64)]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def counts(self) -> Ids:
        """(rows,) how many each row has."""
        return np.diff(self.starts)

    @property
    def rows(self) -> Ids:
        """(references,) the row that each reference belongs to."""
        return np.repeat(np.arange(len(self)), self.counts)

    def row(self, index: int) -> Ids:
        """The references of one row."""
        return self.captions[self.starts[index] : self.starts[index + 1]]

    def take(self, rows: Ids) -> "References":
        """The references of some rows, in that order."""
        counts = self.counts[rows]
        starts = bounds(counts)
        within = np.arange(int(starts[-1])) - np.repeat(starts[:-1], counts)
        return References(starts, self.captions[np.repeat(self.starts[rows], counts) + within])

    def sample(self, most: int, rng: np.random.Generator) -> "References":
        """At most `most` references of each row, drawn without putting back and left in their order."""
        order = rng.random(len(self.captions))
        drawn = np.zeros(len(self.captions), dtype=bool)
        for start, stop in zip(self.starts[:-1], self.starts[1:], strict=True):
            drawn[start + np.argsort(order[start:stop], kind="stable")[:most]] = True
        counts = np.minimum(self.counts, most)
        return References(bounds(counts), self.captions[drawn])

    def renumber(self, caption_of: Ids) -> "References":
        """The same references where caption c is now at `caption_of[c]`."""
        return References(self.starts, caption_of[self.captions])


def check_references(references: References | None, rows: int) -> None:
    """Raise `DataError` unless there are none or an entry for each of `rows` rows."""
    if references is not None and len(references) != rows:
        raise DataError("not one entry of references per row", given=len(references), allowed=str(rows))


@dataclass(frozen=True, eq=False)
class Contained:
    """The references of all rows, the rows still asked about, and how many references were taken out."""

    references: References
    included: NDArray[np.bool_]
    equal: int
    dropped: int

    def description(self) -> str:
        """The result in words, for a benchmark's source line; empty where nothing was done."""
        parts = []
        if self.dropped:
            parts.append(f"{self.dropped:,} references equal to a candidate taken out")
        if not self.included.all():
            parts.append(f"{int((~self.included).sum()):,} rows whose candidate is a reference left out")
        return ", ".join(parts)


def contained(
    captions: Sequence[str], candidates: Ids, references: References, policy: str, *, shared: Ids | None
) -> Contained:
    """References that are equal to their row's candidate, once white space is collapsed, dealt with by
    `policy`.

    Such a reference would give a metric the answer: `keep` them, `drop-reference` (take out the first equal
    one), or `drop-item` (do not ask about the row). Rows with one number in `shared` (rows,) read one list:
    what is taken out for one row is gone for all, as `list.remove` does on the list of an image.
    """
    text = distinct(map(collapsed, captions))[1]
    lists: dict[int, list[int]] = {}
    equal = np.zeros(len(candidates), dtype=bool)
    dropped = 0
    number = (np.arange(len(candidates)) if shared is None else shared).tolist()
    for row, item in enumerate(number):
        left = lists.setdefault(item, references.row(row).tolist())
        # Looked up in the row's own list: another row may have emptied the shared one already.
        equal[row] = bool((text[references.row(row)] == text[candidates[row]]).any())
        gone = next((i for i, caption in enumerate(left) if text[caption] == text[candidates[row]]), None)
        if policy == "drop-reference" and equal[row] and gone is not None:
            del left[gone]
            dropped += 1
    after = References.of([lists[item] for item in number]) if policy == "drop-reference" else references
    included = ~equal if policy == "drop-item" else np.ones(len(candidates), dtype=bool)
    return Contained(after, included, int(equal.sum()), dropped)
