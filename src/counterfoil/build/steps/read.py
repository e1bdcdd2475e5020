"""Rows that a recipe begins with (`read`): of a benchmark, a table, a file of captions, or the drawn world.

Ids are numbered where there are none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import PIL.Image
import pyarrow as pa

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.caption_files import read_candidates
from counterfoil.benchmarks.readers.own import ALIASES, named
from counterfoil.benchmarks.records import FileSource, decode
from counterfoil.benchmarks.tables import EXTENSIONS, DataTable, read_table, shown
from counterfoil.benchmarks.training_rows import CAPTION_ROLES, IMAGE_ROLES
from counterfoil.build.step import BuiltStep, Output, StepContext, check_ids, split_rows, with_column
from counterfoil.errors import DataError
from counterfoil.inputs.columns import read_parquet
from counterfoil.inputs.fields import setting
from counterfoil.inputs.files import digest
from counterfoil.store import write_bytes
from counterfoil.world.captions import OPENINGS, describe, text
from counterfoil.world.edits import MinimalPair
from counterfoil.world.painting import draw_many, encode
from counterfoil.world.sample import check_number, check_size, contrasts, stream
from counterfoil.world.scenes import one_of, sample_scene

#: Columns that are texts whatever their cells look like.
TEXTS = ("id", "of", "subset", "type", "subtype", *CAPTION_ROLES, *IMAGE_ROLES)
_TEXT_TYPES = pa.string(), pa.large_string(), pa.string_view(), pa.null()
_ENDINGS = {b"\xff\xd8\xff": ".jpg", b"\x89PNG": ".png", b"GIF8": ".gif", b"RIFF": ".webp"}


def keep_image(context: StepContext, data: bytes) -> str:
    """Write the bytes of an image into the build's folder of images; returns the cell that names them."""
    decode(data, where="an image of the rows")
    ending = next((ending for magic, ending in _ENDINGS.items() if data.startswith(magic)), "")
    name = digest(data) + ending
    place = context.images / name
    if not place.is_file() or place.stat().st_size != len(data):
        write_bytes(place, data)
    return name


def read_rows(path: Path, context: StepContext) -> pa.Table:
    """The rows of a table (CSV, TSV, JSON, JSON Lines, Parquet) or of captions in COCO's layouts."""
    where = str(path)
    if path.suffix.lower() == ".parquet":
        held = read_parquet(path)
        plain = named(DataTable({name: (name,) for name in held.column_names}, where), tuple(ALIASES))
        held = held.rename_columns({cells[0]: name for name, cells in plain.columns.items()})
        # Images that lie in the cells are written into the build's folder; cells name them.
        for name in set(IMAGE_ROLES) & set(held.column_names):
            kind = held.schema.field(name).type
            if pa.types.is_struct(kind) or pa.types.is_binary(kind):
                names: list[str | None] = []
                for row in held[name]:
                    cell = row.as_py() if isinstance(row.as_py(), dict) else {"bytes": row.as_py()}
                    data = cell.get("bytes")
                    names.append(keep_image(context, data) if data else cell.get("path"))
                held = with_column(held, name, pa.array(names, pa.string()))
        return _finished(held, where)
    try:
        return _finished(_arrow(read_table(path)), where)
    except DataError as error:
        if path.suffix.lower() != ".json":
            raise
        try:
            written = read_candidates(path, several=True)
        except DataError:
            raise error from None
    rows = [
        (f"{name}/{i}" if len(texts) > 1 else name, written.files.get(name, name), text)
        for name, texts in written.captions.items()
        for i, text in enumerate(texts)
    ]
    ids, images, captions = zip(*rows, strict=True)
    return _finished(pa.table({"id": ids, "image": images, "caption": captions}), where)


def of_benchmark(benchmark: Benchmark, context: StepContext) -> pa.Table:
    """A row per right and wrong caption of a question; of galleries, per caption with its own image."""
    source, roles = benchmark.questions.training_rows(where=benchmark.name)

    @cache
    def cell(position: int) -> str:
        """The image's place in the user's folder, else that of a copy in the build's."""
        image = benchmark.images[position]
        if image.source is None:
            return image.id
        if isinstance(image.source, FileSource) and context.photos is not None and image.crop is None:
            path, folder = image.source.path.resolve(), context.photos.resolve()
            if path.is_relative_to(folder):
                return path.relative_to(folder).as_posix()
        return keep_image(context, image.read())

    columns: dict[str, list[Any]] = {
        role: [cell(i) if role in IMAGE_ROLES else benchmark.captions[i].text for i in positions.tolist()]
        for role, positions in roles.items()
    }
    labels: dict[str, list[str]] = {}
    if source is None:
        ids = [benchmark.captions[i].id for i in roles["caption"].tolist()]
    else:
        ids = [benchmark.questions.ids[row] for row in source.tolist()]
        groupings = benchmark.questions.groupings
        labels = {name: [its[row] for row in source.tolist()] for name, its in groupings.items()}
    if len(set(ids)) < len(ids):
        seen: dict[str, count[int]] = {}
        ids = [f"{name}/{next(seen.setdefault(name, count()))}" for name in ids]
    return _finished(pa.table({"id": ids, **columns, **labels}), benchmark.name)


def _arrow(table: DataTable) -> pa.Table:
    """The table with texts as texts, and columns in which all texts are numbers as numbers."""
    columns, kinds, table = {}, {}, named(table, tuple(ALIASES))
    for name, cells in table.columns.items():
        given = [None if cell is None or cell == "" else cell for cell in cells]
        if name in TEXTS:
            # Whole numbers are names, but no captions.
            plain = str | None if name in CAPTION_ROLES else str | int | None
            odd = next((row for row, cell in enumerate(given) if not isinstance(cell, plain)), None)
            if odd is not None:
                raise DataError("not a text", where=table.where(odd, name), given=shown(cells[odd]))
            given, kinds[name] = [None if cell is None else str(cell) for cell in given], pa.string()
        elif all(cell is None or isinstance(cell, str) for cell in given):
            # Seeds have more digits than a float holds.
            number, kind = (int, pa.int64()) if name.endswith("_seed") else (float, pa.float64())
            try:
                given, kinds[name] = [None if cell is None else number(cell) for cell in given], kind
            except ValueError:
                kinds[name] = pa.string()
        columns[name] = given
    return plain_table(DataTable(columns, table.source), kinds)


def plain_table(table: DataTable, kinds: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """The table as Arrow has it; raises `DataError` for a column whose cells have no kind in common."""
    columns = {}
    for name, cells in table.columns.items():
        try:
            columns[name] = pa.array(cells, (kinds or {}).get(name))
        except (pa.ArrowException, OverflowError) as error:
            where = f"{table.source}, column '{name}'"
            raise DataError("cells of several kinds", where=where, given=str(error)) from error
    return pa.table(columns)


def _finished(table: pa.Table, where: str) -> pa.Table:
    """The table with `id` first; raises `DataError` where it lacks rows or captions, or ids are odd."""
    if "caption" not in table.column_names:
        given, allowed = ", ".join(table.column_names), ", ".join(ALIASES["caption"])
        raise DataError("no column of captions", where=where, given=given, allowed=allowed)
    if not len(table):
        raise DataError("no rows", where=where)
    if "id" not in table.column_names:
        table = table.append_column("id", pa.array(map(str, range(len(table)))))
    table = table.select(["id", *(name for name in table.column_names if name != "id")])
    for name in set(TEXTS) & set(table.column_names):
        kind = table.schema.field(name).type
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        try:
            if name in CAPTION_ROLES and plain not in _TEXT_TYPES:
                raise pa.ArrowTypeError(str(kind))
            table = with_column(table, name, table[name].cast(pa.string()))
        except pa.ArrowException as error:
            raise DataError("no texts", where=f"{where}, column '{name}'", given=error) from None
    captions = enumerate(table["caption"].to_pylist())
    row = next((row for row, cell in captions if not (cell or "").strip()), None)
    if row is not None:
        raise DataError("empty caption", where=f"{where}, row {row + 1}", hint="remove the row")
    check_ids(table, where=where)
    return table.combine_chunks()


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
        pairs: Sequence[MinimalPair] = ()
        if not self.negatives and self.captions == "loose":
            scenes = [sample_scene(rng) for _ in range(self.n)]
            captions = [text(describe(scene, rng), opening=one_of(OPENINGS, rng)) for scene in scenes]
        else:
            pairs = contrasts(self.n, seed=context.seed, of=of, progress=context.progress)
            scenes = [pair.scenes[0] for pair in pairs]
            openings = [one_of(OPENINGS, rng) for _ in pairs]
            captions, negatives = (
                [text(one.captions[i], opening=by) for one, by in zip(pairs, openings, strict=True)]
                for i in (0, 1)
            )
        cells = []
        for start in range(0, len(scenes), _BATCH):
            pictures = draw_many(scenes[start : start + _BATCH], self.size)
            cells += [keep_image(context, encode(PIL.Image.fromarray(pixels))) for pixels in pictures]
            context.progress("drawing", len(cells), len(scenes))
        columns = {
            "id": [f"row-{i:06d}" for i in range(len(scenes))],
            "image": cells,
            "caption": captions,
            "scene": [scene.to_json() for scene in scenes],
        }
        if self.negatives:
            columns["negative_caption"] = negatives
            columns["subset"] = [pair.subset for pair in pairs]
            columns["type"] = [pair.type for pair in pairs]
        return pa.table(columns)
