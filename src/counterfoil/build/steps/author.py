"""`author`: a sheet for people who write questions, and the rows of the sheet that they filled in."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from counterfoil.benchmarks.records import same_words
from counterfoil.build.rows import read_rows
from counterfoil.build.step import BuiltStep, Output, StepContext, setting, split_rows
from counterfoil.store import write_csv

#: The file of the sheet in the build's folder, and its columns, of which people fill in the last ones.
SHEET = "sheet.csv"
_COLUMNS = ("id", "caption", "negative_caption", "image", "negative_image", "subset", "remark")
OTHER_WORDS, UNFILLED = "not the same words", "no image filled in"


@dataclass(frozen=True)
class Author(BuiltStep):
    """Rows go to `sheet.csv`, where people write captions and find images; a filled sheet takes their place.

    With `same_words`, as in Winoground, rows stay whose two captions have the same words in another order.
    Captions that the sheet has are proposals: people may change them and add rows. A row of the filled sheet
    without images is dropped.
    """

    name: ClassVar[str] = "author"

    filled: str | None = setting(
        None, "The filled sheet: id, caption, negative_caption, image, ...", file=True
    )
    same_words: bool = setting(True, "Both captions must have the same words, in another order.")

    @property
    def requires(self) -> Sequence[str]:
        return ("caption", "negative_caption")

    @property
    def produces(self) -> Sequence[str]:
        return ("image", "negative_image")

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        """Write the sheet of the rows that stay, or read the filled one.

        A build of rows that are not drawn waits for the filled sheet. Raises `DataError` for no such table.
        """
        if self.filled is not None:
            rows = read_rows(Path(self.filled), context)
        first, second = rows["caption"].to_pylist(), rows["negative_caption"].to_pylist()
        same = np.ones(len(rows), dtype=bool)
        if self.same_words:
            same = np.array([same_words(a, b) for a, b in zip(first, second, strict=True)], dtype=bool)
        reasons = np.where(same, UNFILLED, OTHER_WORDS)
        keep = same
        if self.filled is not None:
            for column in ("image", "negative_image"):
                cells = rows[column].to_pylist() if column in rows.column_names else [None] * len(rows)
                keep = keep & np.array([bool(cell) for cell in cells], dtype=bool)
            return Output(*split_rows(rows, keep, reasons.tolist()), facts={"sheet": self.filled})
        complete, dropped = split_rows(rows, keep, reasons.tolist())
        empty = pa.array([""] * len(complete), pa.string())
        sheet = {name: complete[name] if name in complete.column_names else empty for name in _COLUMNS}
        write_csv(context.folder / SHEET, pa.table(sheet))
        waits = f"fill in {SHEET} in the folder of the build, and give it with --set author.filled=TABLE"
        drawn = "scene" in rows.column_names
        return Output(complete, dropped, {"sheet": SHEET}, files=(SHEET,), waits="" if drawn else waits)
