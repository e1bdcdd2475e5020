"""Tables of a benchmark for other programs: which items, texts and numbers each row of a release holds.

Columns are named as those of training rows and of one's own tables are, so that what was published is read
again by them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.benchmarks.records import Caption, Image
from counterfoil.benchmarks.references import References

#: The grouping that names splits.
SPLIT = "split"
#: What a column holds: images, captions, lists of captions or names of items by position (images are
#: counted first, then captions), or values of its own.
ReleaseKind = Literal["image", "caption", "captions", "item", "value"]


@dataclass(frozen=True, eq=False)
class ReleaseColumn:
    """A column of a release: positions of items, one per row (-1 for none), or an Arrow array of values.

    Of `captions` a row lists the positions of several. `about` says what the column means.
    """

    kind: ReleaseKind
    values: Any
    about: str

    def __len__(self) -> int:
        return len(self.values)

    def cells(
        self, rows: Sequence[int] | NDArray[np.int64], images: Sequence[Image], captions: Sequence[Caption]
    ) -> list[Any]:
        """What the column holds in `rows`: an `Image`, texts, the id of an item, a value; None for none."""
        if self.kind == "value":
            return self.values.take(pa.array(rows, pa.int64())).to_pylist()
        of_rows = [self.values[row] for row in rows]
        if self.kind == "captions":
            return [[captions[i].text for i in several if i >= 0] for several in of_rows]
        if self.kind == "caption":
            return [captions[i].text if i >= 0 else None for i in of_rows]
        if self.kind == "item":
            items = (*images, *captions)
            return [items[i].id if i >= 0 else None for i in of_rows]
        return [images[i] if i >= 0 else None for i in of_rows]


@dataclass(frozen=True, eq=False)
class ReleaseTable:
    """A table of a release, which is a configuration of the data set.

    `questions` says that a row is a question, in their order: such rows are divided into splits.
    """

    name: str
    about: str
    columns: Mapping[str, ReleaseColumn]
    questions: bool = False

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


@dataclass(frozen=True, eq=False)
class FormRelease:
    """All tables of a release, the main one first, and what the questions ask, in a sentence or two.

    `tasks` are task categories of the hub. `facts` are what the tables do not hold, such as a rule by which
    answers are right.
    """

    tables: tuple[ReleaseTable, ...]
    asks: str
    tasks: tuple[str, ...]
    facts: Mapping[str, object] = field(default_factory=dict)


def text_column(values: Sequence[str | None], about: str) -> ReleaseColumn:
    return ReleaseColumn("value", pa.array(values, pa.string()), about)


def number_column(values: NDArray[np.float64], about: str) -> ReleaseColumn:
    """NaN is null."""
    return ReleaseColumn("value", pa.array(values, pa.float64(), from_pandas=True), about)


def question_table(
    ids: Sequence[str],
    columns: Mapping[str, ReleaseColumn],
    groupings: Mapping[str, Sequence[str]],
    *,
    about: str,
    name: str = "default",
) -> ReleaseTable:
    """A table with a row per question: its id, the columns of the form, then its groups.

    A grouping is a column of its own name, `group_NAME` where the name is taken or no plain word; a question
    in no group has null there.
    """
    all_columns = {"id": text_column(list(ids), "The id of the question."), **columns}
    for grouping, labels in groupings.items():
        plain = grouping.isidentifier() and grouping.lower() not in {column.lower() for column in all_columns}
        all_columns[grouping if plain else f"group_{grouping}"] = text_column(
            [label or None for label in labels], f"The group of the question by '{grouping}'."
        )
    return ReleaseTable(name, about, all_columns, questions=True)


CONTRAST_TASKS = ("image-text-to-text", "zero-shot-image-classification")


def reference_columns(references: References | None, rows: NDArray[np.int64]) -> dict[str, ReleaseColumn]:
    if references is None:
        return {}
    numbers = [references.row(int(row)).tolist() for row in rows]
    return {"references": ReleaseColumn("captions", numbers, "Captions that people wrote of the image.")}
