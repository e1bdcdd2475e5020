"""Rows of a build from benchmarks, tables and annotation files; ids are numbered where there are none."""

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.caption_files import read_candidates
from counterfoil.benchmarks.readers.own import ALIASES, named
from counterfoil.benchmarks.records import FileSource, decode
from counterfoil.benchmarks.tables import DataTable, read_table, shown
from counterfoil.benchmarks.training_rows import CAPTION_ROLES, IMAGE_ROLES
from counterfoil.build.step import StepContext, with_column
from counterfoil.errors import DataError
from counterfoil.inputs.columns import read_parquet
from counterfoil.inputs.files import digest
from counterfoil.store import write_bytes

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
        return _finished(_captions(path, error), where)


def of_benchmark(benchmark: Benchmark, context: StepContext) -> pa.Table:
    """A row per right and wrong caption of a question; of galleries, per caption with its own image."""
    source, roles = benchmark.questions.training_rows(where=benchmark.name)
    texts = [caption.text for caption in benchmark.captions]
    named: dict[int, str] = {}
    for role in IMAGE_ROLES:
        for at in dict.fromkeys(roles[role].tolist()) if role in roles else ():
            image = benchmark.images[at]
            if at in named:
                continue
            # An image is named by its place in the user's folder, else by a copy in the build's.
            named[at] = image.id if image.source is None else ""
            if isinstance(image.source, FileSource) and context.photos is not None and image.crop is None:
                path, folder = image.source.path.resolve(), context.photos.resolve()
                named[at] = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else ""
            named[at] = named[at] or keep_image(context, image.read())
    columns: dict[str, list[Any]] = {
        role: [named[at] if role in IMAGE_ROLES else texts[at] for at in positions.tolist()]
        for role, positions in roles.items()
    }
    if source is None:
        ids = [benchmark.captions[at].id for at in roles["caption"].tolist()]
        labels = {}
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


def _captions(path: Path, error: DataError) -> pa.Table:
    try:
        written = read_candidates(path, several=True)
    except DataError:
        raise error from None
    files: Mapping[str, str] = written.files
    rows = [
        (f"{name}/{at}" if len(texts) > 1 else name, files.get(name, name), text)
        for name, texts in written.captions.items()
        for at, text in enumerate(texts)
    ]
    ids, images, captions = zip(*rows, strict=True)
    return pa.table({"id": ids, "image": images, "caption": captions})


def _finished(table: pa.Table, where: str) -> pa.Table:
    """The table with `id` first; raises `DataError` where it lacks rows or captions, or ids are odd."""
    if "caption" not in table.column_names:
        raise DataError(
            "no column of captions",
            where=where,
            given=", ".join(table.column_names),
            allowed=", ".join(ALIASES["caption"]),
        )
    if not len(table):
        raise DataError("no rows", where=where)
    if "id" not in table.column_names:
        ids = pc.cast(pa.array(np.arange(len(table))), pa.string())
        table = table.append_column("id", ids)
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
    empty = pc.or_kleene(
        pc.is_null(table["caption"]), pc.equal(pc.utf8_trim_whitespace(table["caption"]), "")
    )
    if pc.any(empty).as_py():
        row = int(np.argmax(empty.to_numpy(zero_copy_only=False)))
        raise DataError("empty caption", where=f"{where}, row {row + 1}", hint="remove the row")
    if table["id"].null_count or len(pc.unique(table["id"])) != len(table):
        raise DataError("ids are not unique", where=where, hint="give every row an id of its own")
    return table.combine_chunks()
