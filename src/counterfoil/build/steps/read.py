"""Rows that a recipe begins with (`read`), or that people write into a sheet (`author`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import PIL.Image
import pyarrow as pa

from counterfoil.benchmarks.records import same_words
from counterfoil.benchmarks.tables import EXTENSIONS
from counterfoil.benchmarks.training_rows import IMAGE_ROLES
from counterfoil.build.rows import keep_image, of_benchmark, read_rows
from counterfoil.build.step import BuiltStep, Output, StepContext, split_rows
from counterfoil.errors import DataError
from counterfoil.inputs.fields import setting
from counterfoil.store import write_csv
from counterfoil.world.captions import OPENINGS, describe, text
from counterfoil.world.edits import Contrast
from counterfoil.world.painting import draw_many, encode
from counterfoil.world.sample import check_number, check_size, contrasts, stream
from counterfoil.world.scenes import one_of, sample_scene

#: The source of rows that are drawn.
WORLD = "world"
#: Pictures that are drawn at a time.
_BATCH = 500


@dataclass(frozen=True)
class ReadRows(BuiltStep):
    """Rows with `id`, `caption` and what else the source has; of the drawn world with their `scene`."""

    name: ClassVar[str] = "read"
    produced: ClassVar[Sequence[str]] = ("caption",)

    source: str = setting(
        WORLD,
        "A table (CSV, TSV, JSON, JSON Lines, Parquet), captions in COCO's layouts, a benchmark "
        "by its name or folder, or 'world'.",
        file=True,
    )
    layout: str | None = setting(None, "Benchmark whose file layout the source has, such as sugarcrepe.")
    images: str | None = setting(None, "Folder of the images.", file=True)
    limit: int | None = setting(None, "Take N evenly spaced rows of the source.", low=1)
    available: bool = setting(False, "Take only rows whose images are in the image folder.")
    n: int = setting(210, "Drawn world: number of rows.")
    size: int = setting(96, "Drawn world: side of an image in pixels.")
    negatives: bool = setting(True, "Drawn world: give rows a negative caption.")
    training: bool = setting(False, "Drawn world: draw scenes for training, which no built benchmark shares.")
    captions: Literal["exact", "loose"] = setting(
        "exact", "Drawn world, without negatives: exact captions of one scene, or loose ones."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self.n, "rows")
        check_size(self.size)

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        if self.source == WORLD and not Path(self.source).exists():
            return self._cut(self._drawn(context), f"drawn with seed {context.seed}", context)
        path = Path(self.source)
        images = None if self.images is None else Path(self.images)
        if images is not None and not images.is_dir():
            raise DataError("no such folder of images", where=images, hint="check --images")
        if self.layout is None and path.suffix.lower() in EXTENSIONS:
            return self._cut(read_rows(path, context), self.source, context)
        named = self.layout or self.source
        read = context.benchmark(named, None if self.layout is None else path, images)
        return self._cut(of_benchmark(read, context), self.source, context)

    def _cut(self, table: pa.Table, source: str, context: StepContext) -> Output:
        total = len(table)
        dropped = None
        if self.available:
            images = [name for name in IMAGE_ROLES if name in table.column_names]
            at_hand = [
                all(cell and context.image(cell, missing=True).source is not None for cell in cells)
                for cells in zip(*(table[name].to_pylist() for name in images), strict=True)
            ]
            table, dropped = split_rows(table, at_hand, "image not at hand")
        if self.limit is not None and self.limit < len(table):
            table = table.take(np.linspace(0, len(table) - 1, self.limit).round().astype(np.int64))
        return Output(table, dropped, {"source": source, "rows": total})

    def _drawn(self, context: StepContext) -> pa.Table:
        of = "built-training" if self.training else "built"
        rng = stream(of, context.seed, 1)
        if not self.negatives and self.captions == "loose":
            scenes = [sample_scene(rng) for _ in range(self.n)]
            captions = [text(describe(scene, rng), opening=one_of(OPENINGS, rng)) for scene in scenes]
            pairs: Sequence[Contrast] = ()
            negatives: list[str] = []
        else:
            pairs = contrasts(self.n, seed=context.seed, of=of, progress=context.progress)
            scenes = [contrast.scenes[0] for contrast in pairs]
            openings = [one_of(OPENINGS, rng) for _ in pairs]
            captions, negatives = (
                [text(one.captions[at], opening=by) for one, by in zip(pairs, openings, strict=True)]
                for at in (0, 1)
            )
        cells = []
        for start in range(0, len(scenes), _BATCH):
            pictures = draw_many(scenes[start : start + _BATCH], self.size)
            cells += [keep_image(context, encode(PIL.Image.fromarray(pixels))) for pixels in pictures]
            context.progress("drawing", len(cells), len(scenes))
        columns = {
            "id": [f"row-{at:06d}" for at in range(len(scenes))],
            "image": cells,
            "caption": captions,
            "scene": [scene.to_json() for scene in scenes],
        }
        if self.negatives:
            columns["negative_caption"] = negatives
            columns["subset"] = [contrast.subset for contrast in pairs]
            columns["type"] = [contrast.type for contrast in pairs]
        return pa.table(columns)


#: The file of the sheet in the build's folder, and its columns, of which people fill in the last ones.
SHEET = "sheet.csv"
_COLUMNS = ("id", "caption", "negative_caption", "image", "negative_image", "subset", "remark")
OTHER_WORDS, UNFILLED = "not the same words", "no image filled in"


@dataclass(frozen=True)
class Author(BuiltStep):
    """Write rows to `sheet.csv`, where people write captions and find images; a filled sheet replaces the
    rows.

    With `same_words`, as in Winoground, only rows whose two captions have the same words in another order are
    kept.
    """

    name: ClassVar[str] = "author"
    required: ClassVar[Sequence[str]] = ("caption", "negative_caption")
    produced: ClassVar[Sequence[str]] = ("image", "negative_image")

    filled: str | None = setting(
        None, "The filled sheet: id, caption, negative_caption, image, ...", file=True
    )
    same_words: bool = setting(True, "Both captions must have the same words, in another order.")

    @property
    def beside(self) -> Sequence[str]:  # type: ignore[override]
        return () if self.filled else (SHEET,)

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        """Write the sheet of the rows that stay and, unless they are drawn, wait; or read the filled one."""
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
        written = self.beside if len(complete) else ()
        for name in written:
            write_csv(context.folder / name, pa.table(sheet))
        waits = f"fill in {SHEET} in the folder of the build, and give it with --set author.filled=TABLE"
        drawn = "scene" in rows.column_names
        return Output(complete, dropped, {"sheet": SHEET}, files=written, waits="" if drawn else waits)
