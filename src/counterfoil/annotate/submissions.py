"""Submissions of a campaign as arrays: one per item and person, whatever number of questions an item has.

A table of judgements has a row per question, and each repeats how long the whole item took. What is said of
time, pay and golden items therefore reads this.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Submissions:
    """One row per item that a person answered, in the order of the table.

    `item` and `person` are places in `items` and `people`. `seconds` is how long it took, `submitted` when it
    was answered (seconds since the epoch); NaN where that is not known. `right` is 1 or 0 of golden items
    and -1 of others; `counts` is whether the answer goes into labels and agreement.
    """

    items: tuple[str, ...]
    people: tuple[str, ...]
    item: NDArray[np.int64]
    person: NDArray[np.int64]
    seconds: NDArray[np.float64]
    submitted: NDArray[np.float64]
    right: NDArray[np.int8]
    counts: NDArray[np.bool_]

    @classmethod
    def of(cls, table: pa.Table) -> "Submissions":
        """From a table of judgements; an item with a wrong golden answer to any question was answered wrong.

        >>> rows = {"item": ["a", "a", "b"], "person": ["p"] * 3, "question": ["q", "why", "q"],
        ...         "answer": ["no", "size", "yes"], "seconds": [4.0, 4.0, 6.0],
        ...         "golden": [None, None, False]}
        >>> found = Submissions.of(pa.table(rows))
        >>> found.seconds.tolist(), found.right.tolist(), found.counts.tolist()
        ([4.0, 6.0], [-1, 0], [True, False])
        """
        items, item = encoded(table.column("item"))
        people, person = encoded(table.column("person"))
        _, first, group = np.unique(
            item * max(1, len(people)) + person, return_index=True, return_inverse=True
        )
        group = group.reshape(-1)
        golden = pc.fill_null(pc.cast(table.column("golden"), pa.int8()), 2).to_numpy()
        right = np.full(len(first), 2, dtype=np.int8)
        np.minimum.at(right, group, golden)
        right[right == 2] = -1
        counts = right < 0
        if "role" in table.column_names:
            counts = pc.equal(pc.fill_null(table.column("role"), "work"), "work").to_numpy()[first]
        if "counted" in table.column_names:
            counts = counts & pc.fill_null(table.column("counted"), True).to_numpy()[first]
        order = np.argsort(first, kind="stable")
        rows = first[order]
        seconds, submitted = (numbers_of(table, name)[rows] for name in ("seconds", "submitted"))
        return cls(items, people, item[rows], person[rows], seconds, submitted, right[order], counts[order])

    def __len__(self) -> int:
        return len(self.item)

    @cached_property
    def per_item(self) -> NDArray[np.int64]:
        """How many answers that count each item has."""
        counts: NDArray[np.int64] = np.bincount(self.item[self.counts], minlength=len(self.items))
        return counts

    @cached_property
    def per_person(self) -> NDArray[np.int64]:
        """How many items each person answered, golden ones and those of the test among them."""
        counts: NDArray[np.int64] = np.bincount(self.person, minlength=len(self.people))
        return counts

    @cached_property
    def golden_of(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many golden items each person answered right, and how many in all."""
        n = len(self.people)
        return (
            np.bincount(self.person[self.right == 1], minlength=n),
            np.bincount(self.person[self.right >= 0], minlength=n),
        )

    @cached_property
    def median_seconds(self) -> NDArray[np.float64]:
        """The median time per item of each person; NaN of those of whom no time is known."""
        known = ~np.isnan(self.seconds)
        person, seconds = self.person[known], self.seconds[known]
        ends = np.cumsum(np.bincount(person, minlength=len(self.people)))[:-1]
        parts = np.split(seconds[np.argsort(person, kind="stable")], ends)
        return np.array([np.median(part) if len(part) else np.nan for part in parts], dtype=np.float64)

    def hourly(self, pay_per_item: float) -> NDArray[np.float64]:
        """What each person earned per hour of work, paid by item; NaN of those of whom no time is known.

        >>> rows = {"item": ["a", "b"], "person": ["p", "p"], "question": ["q"] * 2, "answer": ["no"] * 2,
        ...         "seconds": [5.0, 15.0], "golden": pa.nulls(2, pa.bool_())}
        >>> Submissions.of(pa.table(rows)).hourly(0.02).round(4)
        array([7.2])
        """
        known = ~np.isnan(self.seconds)
        n = len(self.people)
        spent = np.bincount(self.person[known], weights=self.seconds[known], minlength=n)
        done = np.bincount(self.person[known], minlength=n)
        rates: NDArray[np.float64] = np.divide(
            3600 * pay_per_item * done, spent, out=np.full(n, np.nan), where=spent > 0
        )
        return rates


def encoded(column: pa.ChunkedArray) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The texts of a column in order of appearance, and the place of each row's text among them.

    >>> encoded(pa.chunked_array([["b", "a", "b"]]))
    (('b', 'a'), array([0, 1, 0]))
    """
    coded = column.combine_chunks().dictionary_encode()
    return tuple(coded.dictionary.to_pylist()), coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def numbers_of(table: pa.Table, name: str) -> NDArray[np.float64]:
    """A column of numbers with NaN for null; NaN throughout where there is none or it holds other things."""
    column = table.column(name) if name in table.column_names else pa.nulls(len(table))
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        return np.full(len(table), np.nan)
    numbers: NDArray[np.float64] = pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False)
    return numbers
