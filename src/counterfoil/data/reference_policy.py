"""Policies for references that equal the candidate, which would give a reference-based metric the answer.

What to do about it is each data set's own affair, so it has a name: `keep` them, `drop-reference` (the
candidate is taken out of its references), or `drop-item` (such candidates are not asked about). Texts are
equal where they are once white space is collapsed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from counterfoil.data.forms import Ids
from counterfoil.data.references import References
from counterfoil.data.texts import collapsed
from counterfoil.errors import DataError

Policy = Literal["keep", "drop-reference", "drop-item"]

POLICIES: tuple[str, ...] = get_args(Policy)


@dataclass(frozen=True, eq=False)
class Contained:
    """What was found and done: the references after it, of all rows, and which rows are still asked about.

    `found` counts the rows whose candidate was among their references, `dropped` the references taken out
    (one of a list that several rows share counts once).
    """

    references: References
    kept: NDArray[np.bool_]
    found: int
    dropped: int

    def said(self) -> str:
        """What was done in words, for a benchmark's source; empty where nothing was."""
        parts = []
        if self.dropped:
            parts.append(f"{self.dropped:,} references equal to a candidate taken out")
        if not self.kept.all():
            parts.append(f"{int((~self.kept).sum()):,} rows whose candidate is a reference left out")
        return ", ".join(parts)


def contained(
    captions: Sequence[str],
    candidates: Ids,
    references: References,
    policy: str,
    *,
    shared: Ids | None = None,
    every: bool = False,
) -> Contained:
    """References that are equal to their row's candidate, dealt with as `policy` says.

    `captions` are all texts, `candidates` (rows,) positions into them. `drop-reference` takes out the first
    equal reference, or with `every` all that are equal. Rows with one number in `shared` (rows,) read one
    list, that of the first of them: what is taken out for one row is gone for all, as `list.remove` does on
    the list of an image. Raises `DataError` for an unknown policy.

    >>> texts = ["a dog", "a  dog", "a cat"]
    >>> found = contained(texts, np.array([0, 2]), References.of([[1, 2], [1, 2]]), "drop-reference",
    ...                   shared=np.array([7, 7]))
    >>> found.references.row(1).tolist(), found.found, found.dropped
    ([], 2, 2)
    >>> contained(texts, np.array([0, 2]), References.of([[1], [0]]), "drop-item").kept
    array([False,  True])
    """
    if policy not in POLICIES:
        raise DataError(
            "unknown policy for references that are the candidate", given=policy, allowed=POLICIES
        )
    same: dict[str, int] = {}
    text = np.array([same.setdefault(collapsed(each), len(same)) for each in captions], dtype=np.int64)
    number = np.arange(len(candidates)) if shared is None else shared
    lists: dict[int, list[int]] = {}
    found = np.zeros(len(candidates), dtype=bool)
    dropped = 0
    for row, own in enumerate(number.tolist()):
        if own not in lists:
            lists[own] = references.row(row).tolist()
        # Asked of the row's own list: another row may have emptied the shared one already.
        mine = text[references.row(row)] == text[candidates[row]]
        found[row] = bool(mine.any())
        if policy == "drop-reference" and found[row]:
            left = lists[own]
            equal = [at for at, each in enumerate(left) if text[each] == text[candidates[row]]]
            gone = set(equal if every else equal[:1])
            lists[own] = [each for at, each in enumerate(left) if at not in gone]
            dropped += len(gone)
    after = references
    if policy == "drop-reference":
        after = References.of([lists[own] for own in number.tolist()])
    kept = ~found if policy == "drop-item" else np.ones(len(candidates), dtype=bool)
    return Contained(after, kept, int(found.sum()), dropped)
