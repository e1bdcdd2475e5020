"""Parquet files of a release: rows with their images inside, in splits and shards, as `datasets` reads them.

An image is a struct of its encoded bytes and a name. A crop is cut out and written as PNG.
"""

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.folder import ending_of
from counterfoil.benchmarks.forms.release import ReleaseColumn, ReleaseTable
from counterfoil.benchmarks.records import FileSource, Image, decode
from counterfoil.store import writing

#: The bytes of images that a file holds at most, about, and the rows of a row group.
MOST_BYTES = 256 << 20
ROWS_WITH_IMAGES, ROWS = 100, 10_000

#: The type of a cell with an image.
IMAGE = pa.struct({"bytes": pa.binary(), "path": pa.string()})
#: What Arrow's types are called by `datasets` and in Croissant.
TYPE_NAMES = {
    pa.string(): ("string", "sc:Text"),
    pa.int64(): ("int64", "sc:Integer"),
    pa.float64(): ("float64", "sc:Float"),
    pa.bool_(): ("bool", "sc:Boolean"),
}


@dataclass(frozen=True)
class WrittenFile:
    """A Parquet file of a release, by its path in the folder."""

    path: str
    table: str
    split: str
    rows: int


def arrow_type(column: ReleaseColumn) -> pa.DataType:
    """The type of a column's cells."""
    kinds = {"image": IMAGE, "captions": pa.list_(pa.string()), "value": getattr(column.values, "type", None)}
    return kinds.get(column.kind, pa.string())


def feature_of(kind: pa.DataType) -> dict[str, Any]:
    """What a column of this type is in the features of `datasets`."""
    if kind == IMAGE:
        return {"_type": "Image"}
    if pa.types.is_list(kind):
        return {"feature": feature_of(kind.value_type), "_type": "List"}
    return {"dtype": TYPE_NAMES[kind][0], "_type": "Value"}


def schema_of(types: Mapping[str, pa.DataType]) -> pa.Schema:
    """The schema of these columns, with their features for the package `datasets`."""
    features = {name: feature_of(kind) for name, kind in types.items()}
    return pa.schema(types, metadata={"huggingface": json.dumps({"info": {"features": features}})})


def write_tables(
    benchmark: Benchmark,
    tables: Sequence[ReleaseTable],
    splits: Mapping[str, NDArray[np.int64]],
    folder: Path,
    progress: Callable[[str, int, int], None],
) -> list[WrittenFile]:
    """Write data/SPLIT-00000-of-0000N.parquet, of several tables below data/TABLE."""
    # The benchmark was saved: its images are files.
    sources = (image.source for image in benchmark.images)
    files_of = [s.path.stat().st_size if isinstance(s, FileSource) else 0 for s in sources]
    sizes = np.array(files_of, dtype=np.int64)
    total, done = sum(len(table) for table in tables), 0
    files: list[WrittenFile] = []
    for table in tables:
        place = PurePosixPath("data") if len(tables) == 1 else PurePosixPath("data", table.name)
        last = list(splits)[-1]
        for split in splits if table.questions else [last]:
            rows = splits[split] if table.questions else np.arange(len(table))
            shards = list(_shards(table, rows, sizes))
            for number, part in enumerate(shards):
                path = str(place / f"{split}-{number:05d}-of-{len(shards):05d}.parquet")
                _write(benchmark, table, part, folder / path)
                files.append(WrittenFile(path, table.name, split, len(part)))
                done += len(part)
                progress("writing tables", done, total)
    return files


def _write(benchmark: Benchmark, table: ReleaseTable, rows: NDArray[np.int64], path: Path) -> None:
    schema = schema_of({name: arrow_type(column) for name, column in table.columns.items()})
    step = ROWS_WITH_IMAGES if any(c.kind == "image" for c in table.columns.values()) else ROWS
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            columns = []
            for name, column in table.columns.items():
                cells = column.cells(part, benchmark.images, benchmark.captions)
                if column.kind == "image":
                    cells = [None if image is None else image_cell(image) for image in cells]
                columns.append(pa.array(cells, schema.field(name).type))
            writer.write_table(pa.table(columns, schema=schema), row_group_size=step)


def image_cell(image: Image) -> dict[str, Any] | None:
    """The bytes and the name of an image; None where it is not at hand."""
    if image.source is None:
        return None
    if image.crop is None:
        data = image.checked()
    else:
        buffer = io.BytesIO()
        picture = decode(image.read(), where=f"image '{image.id}'", crop=image.crop)
        picture.save(buffer, format="PNG")
        data = buffer.getvalue()
    ending = ending_of(data)
    # Folders of a machine say nothing to others.
    name = PurePosixPath(image.id.replace("\\", "/")).name or "image"
    endings = (".jpg", ".jpeg") if ending == ".jpg" else (ending,)
    return {"bytes": data, "path": name if name.lower().endswith(endings) else name + ending}


def _shards(
    table: ReleaseTable, rows: NDArray[np.int64], sizes: NDArray[np.int64]
) -> Iterator[NDArray[np.int64]]:
    """The rows cut where the images of a file would be more than `MOST_BYTES`; one part at least."""
    weight = np.zeros(len(table), dtype=np.int64)
    for column in table.columns.values():
        if column.kind == "image":
            weight += np.where(column.values < 0, 0, sizes[column.values])
    start, held = 0, 0
    for i, row in enumerate(rows.tolist()):
        if i > start and held + weight[row] > MOST_BYTES:
            yield rows[start:i]
            start, held = i, 0
        held += int(weight[row])
    yield rows[start:]
