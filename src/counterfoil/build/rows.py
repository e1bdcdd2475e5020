"""Rows of a build from benchmarks, tables and annotation files.

A table may call its columns as other benchmarks do (`filename` for `image`); all its columns are kept, and
columns of numbers become numbers. Rows without an `id` are numbered from 0.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from counterfoil.build.step import Work
from counterfoil.data.benchmark import Benchmark
from counterfoil.data.caption_files import read_candidates
from counterfoil.data.forms import Choice, Gallery, Quad
from counterfoil.data.readers.own import ALIASES, named
from counterfoil.data.records import FileSource, Image
from counterfoil.data.tables import DataTable, read_table
from counterfoil.data.training_rows import CAPTION_ROLES, IMAGE_ROLES
from counterfoil.errors import DataError
from counterfoil.inputs.files import regular
from counterfoil.store import digest, write_bytes

#: Columns that are texts whatever their cells look like.
TEXTS = ("id", "of", "subset", "type", "subtype", *CAPTION_ROLES, *IMAGE_ROLES)
_ENDINGS = {b"\xff\xd8\xff": ".jpg", b"\x89PNG": ".png", b"GIF8": ".gif", b"RIFF": ".webp"}


def keep_image(work: Work, data: bytes) -> str:
    """Write the encoded bytes of an image into the build's folder of images; the cell that names them."""
    ending = next((ending for magic, ending in _ENDINGS.items() if data.startswith(magic)), "")
    name = digest(data) + ending
    place = work.images / name
    if not place.is_file() or place.stat().st_size != len(data):
        write_bytes(place, data)
    return name


def read_rows(path: Path, work: Work) -> pa.Table:
    """The rows of a table (CSV, TSV, JSON, JSON Lines, Parquet) or of a file of captions in COCO's layouts.

    Raises `DataError` naming the file for what cannot be read, holds no captions or no rows.
    """
    if path.suffix.lower() == ".parquet":
        regular(path)
        try:
            held = pq.read_table(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise DataError("is no Parquet file", where=path, given=str(error)) from error
        return _finished(_images_kept(_renamed(held, str(path)), work), str(path))
    if path.suffix.lower() == ".json":
        try:
            return _finished(_arrow(read_table(path)), str(path))
        except DataError as table_error:
            return _finished(_captions(path, table_error), str(path))
    return _finished(_arrow(read_table(path)), str(path))


def of_benchmark(benchmark: Benchmark, work: Work) -> pa.Table:
    """A row per wrong caption of a question: its image, the right caption, the wrong one, and groupings.

    Of quads also the negative image; of galleries a row per caption with the image it was written for.
    Raises `DataError` for questions of other forms.
    """
    questions = benchmark.questions
    texts = [caption.text for caption in benchmark.captions]
    cells: dict[int, str] = {}

    def cell(at: int) -> str:
        if at not in cells:
            cells[at] = _cell(benchmark.images[at], work)
        return cells[at]

    columns: dict[str, list[Any]] = {}
    if isinstance(questions, Quad):
        rows = np.arange(len(questions))
        columns = {
            "image": [cell(at) for at in questions.images[:, 0].tolist()],
            "caption": [texts[at] for at in questions.captions[:, 0].tolist()],
            "negative_caption": [texts[at] for at in questions.captions[:, 1].tolist()],
            "negative_image": [cell(at) for at in questions.images[:, 1].tolist()],
        }
        ids = list(questions.ids)
    elif isinstance(questions, Choice) and questions.asks == "image":
        found = [
            (row, question[0], wrong, number)
            for row, question in enumerate(_listed(questions))
            for number, wrong in enumerate(question[questions.correct :])
        ]
        rows = np.array([row for row, *_ in found], dtype=np.int64)
        several = len(found) > len(questions)
        ids = [f"{questions.ids[row]}/{n}" if several else questions.ids[row] for row, _, _, n in found]
        columns = {
            "image": [cell(int(questions.query[row])) for row in rows],
            "caption": [texts[right] for _, right, _, _ in found],
            "negative_caption": [texts[wrong] for _, _, wrong, _ in found],
        }
    elif isinstance(questions, Gallery):
        images, captions = questions.about()
        rows = np.arange(len(texts))
        of = dict(zip(captions.tolist(), images.tolist(), strict=False))
        rows = np.array([at for at in rows if of.get(int(at), -1) >= 0], dtype=np.int64)
        ids = [benchmark.captions[at].id for at in rows]
        columns = {"image": [cell(of[int(at)]) for at in rows], "caption": [texts[at] for at in rows]}
        return _finished(pa.table({"id": ids, **columns}), benchmark.name)
    else:
        raise DataError(
            "its questions hold no right and wrong captions of images",
            where=benchmark.name,
            given=f"form '{benchmark.card.form}'",
            allowed="quad, choice and gallery",
        )
    for name, labels in questions.groupings.items():
        columns[name] = [labels[row] for row in rows]
    return _finished(pa.table({"id": ids, **columns}), benchmark.name)


def _listed(questions: Choice) -> list[list[int]]:
    return [list(map(int, each)) for each in questions.candidates]


def _cell(image: Image, work: Work) -> str:
    """How a row names an image: by its place in the user's folder, else by a copy in the build's."""
    if image.source is None:
        return image.id
    if isinstance(image.source, FileSource) and work.photos is not None and image.crop is None:
        path, folder = image.source.path.resolve(), work.photos.resolve()
        if path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
    return keep_image(work, image.read())


def _renamed(table: pa.Table, source: str) -> pa.Table:
    plain = named(DataTable({name: (name,) for name in table.column_names}, source), tuple(ALIASES))
    return table.rename_columns({cells[0]: name for name, cells in plain.columns.items()})


def _arrow(table: DataTable) -> pa.Table:
    plain = named(table, tuple(ALIASES))
    return pa.table({name: _column(name, cells, table) for name, cells in plain.columns.items()})


def _column(name: str, cells: Sequence[Any], table: DataTable) -> pa.Array:
    given = [None if cell is None or cell == "" else cell for cell in cells]
    if name in TEXTS:
        return pa.array([None if cell is None else str(cell) for cell in given], pa.string())
    if all(cell is None or isinstance(cell, str) for cell in given):
        try:
            numbers = [None if cell is None else float(cell) for cell in given]
        except ValueError:
            return pa.array(given, pa.string())
        return pa.array(numbers, pa.float64())
    try:
        return pa.array(given)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(
            "cells of several kinds", where=f"{table.source}, column '{name}'", given=str(error)
        ) from error


def _images_kept(table: pa.Table, work: Work) -> pa.Table:
    """Images that lie in the cells are written into the build's folder; cells name them."""
    for name in set(IMAGE_ROLES) & set(table.column_names):
        kind = table.schema.field(name).type
        if pa.types.is_struct(kind) or pa.types.is_binary(kind):
            cells = []
            for row in table[name]:
                held = row.as_py()
                data = held.get("bytes") if isinstance(held, dict) else held
                path = held.get("path") if isinstance(held, dict) else None
                cells.append(keep_image(work, data) if data else path)
            table = table.set_column(table.column_names.index(name), name, pa.array(cells, pa.string()))
    return table


def _captions(path: Path, error: DataError) -> pa.Table:
    """The captions of a file in COCO's layouts."""
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
        at = table.column_names.index(name)
        table = table.set_column(at, name, table[name].cast(pa.string()))
    empty = pc.or_kleene(
        pc.is_null(table["caption"]), pc.equal(pc.utf8_trim_whitespace(table["caption"]), "")
    )
    if pc.any(empty).as_py():
        row = int(np.argmax(empty.to_numpy(zero_copy_only=False)))
        raise DataError("empty caption", where=f"{where}, row {row + 1}", hint="remove the row")
    if table["id"].null_count or len(pc.unique(table["id"])) != len(table):
        raise DataError("ids are not unique", where=where, hint="give every row an id of its own")
    return table.combine_chunks()
