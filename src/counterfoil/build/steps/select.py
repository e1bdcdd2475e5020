"""A step that keeps the best rows of every category by their scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from counterfoil.build.rating import numbers_of
from counterfoil.build.step import BuiltStep, Output, StepContext, codes_of, order_by, setting, split_rows
from counterfoil.errors import InputError

#: Reasons for which rows are dropped.
NO_SCORE, BELOW = "no score", "below the best of its category"


@dataclass(frozen=True)
class Select(BuiltStep):
    """TROHN-Img's selection: of each category the share of rows whose scores sum to most.

    Source: Miranda et al., BiVLC, 2024, section 5.2, step 1 (the top 35 % by Vera's and CoLA's scores).
    """

    name: ClassVar[str] = "select"
    opens: ClassVar[bool] = False

    by: tuple[str, ...] = setting(("negative_plausibility",), "Columns of numbers, which are added up.")
    minus: tuple[str, ...] = setting(
        (), "Columns of numbers that are taken off: the difference of two scores."
    )
    share: float = setting(
        0.35, "The share of rows of each category that is kept.", within="above 0, at most 1"
    )
    category: str | None = setting("subset", "The column of categories; none: all rows are one.")
    lowest: bool = setting(False, "Keep the rows of the lowest sums instead.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.by and not self.minus:
            raise InputError("no column to select by", allowed="by, minus")

    @property
    def requires(self) -> Sequence[str]:
        return (*self.by, *self.minus, *([self.category] if self.category else []))

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        """The share of the rows of each category, rounded up; of equal sums those of lesser ids.

        Rows without a number in some column are dropped before shares are taken. Facts hold for each category
        the rows, those kept and the least sum kept. Raises `DataError` for columns that hold no numbers.
        """
        total = np.zeros(len(rows))
        for columns, sign in ((self.by, 1), (self.minus, -1)):
            for column in columns:
                total = total + sign * numbers_of(rows, column, where=self.name)
        labels = rows[self.category] if self.category else pa.array([""] * len(rows), pa.string())
        group, categories = codes_of(pc.cast(labels, pa.string()))
        names = [name or "" for name in categories]
        there = ~np.isnan(total)
        sums = np.where(there, -total if not self.lowest else total, np.inf)
        order = order_by(group=group, sum=sums, id=rows["id"])
        counts = np.bincount(group[there], minlength=len(names))
        wanted = np.array([ceil(self.share * count - 1e-9) for count in counts.tolist()], dtype=np.int64)
        sizes = np.bincount(group, minlength=len(names))
        rank = np.empty(len(rows), dtype=np.int64)
        rank[order] = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        selected = rank < wanted[group]
        least = {
            name: float((np.max if self.lowest else np.min)(total[selected & (group == at)]))
            for at, name in enumerate(names)
            if wanted[at]
        }
        facts = {
            "categories": {
                name: {"rows": int(sizes[at]), "kept": int(wanted[at]), "last": least.get(name)}
                for at, name in enumerate(names)
            }
        }
        return Output(*split_rows(rows, selected, np.where(there, BELOW, NO_SCORE).tolist()), facts)
