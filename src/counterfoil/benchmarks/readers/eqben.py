"""EqBen: lists of quads, the annotation of each source, and the blind list of pairs with its key."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.readers.questions import quads
from counterfoil.benchmarks.readers.released_files import list_of, pictures, released_file
from counterfoil.benchmarks.records import FileSource, PixelSource
from counterfoil.benchmarks.tables import DataTable, TablePart, shown, texts
from counterfoil.errors import DataError
from counterfoil.inputs.arrays import read_npy
from counterfoil.inputs.files import read_json

MINI, TENTH, WHOLE = "all_select.json", "eqben_subset_10percent_final.json", "private_info_global.json"
#: The list of pairs in random order; what each of them is, in another order; and where each of those went.
BLIND, KEY, ORDER = "ann_json_finegrained_random.json", "private_info.json", "private_random_idx.json"

_KINDS = {
    "eqbenag": "Action Genome",
    "eqbenyoucook2": "YouCook2",
    "eqbengebc": "GEBC",
    "eqbenkubric_loc": "Kubric",
    "eqbenkubric_attr": "Kubric",
    "eqbenkubric_cnt": "Kubric",
    "eqbensd": "Stable Diffusion",
}
_PAIRS = ("c0i0", "c0i1", "c1i0", "c1i1")


@dataclass(frozen=True)
class BgrFrame:
    """A frame of YouCook2: an npy file of (height, width, 3) bytes in the order blue, green, red."""

    path: Path

    def read(self) -> bytes:
        """The frame as PNG, which loses nothing."""
        return self._pixels().read()

    def picture(self) -> PIL.Image.Image:
        """The frame in RGB; raises `DataError` for an array of another shape or type."""
        return self._pixels().picture()

    def _pixels(self) -> PixelSource:
        pixels = read_npy(self.path, hint="check the image folder")
        if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8 or not pixels.size:
            raise DataError(
                "not a frame",
                where=self.path,
                given=f"{pixels.dtype} {pixels.shape}",
                allowed="bytes (height, width, 3)",
            )
        return PixelSource(np.ascontiguousarray(pixels[:, :, ::-1]), str(self.path))

    def __str__(self) -> str:
        return str(self.path)


def _read_list(card: Card, data: Path | None, images: Path | None, *, name: str) -> Benchmark:
    """A list of quads of that name, and its images. As `read`."""
    return _quads(card, _listed(released_file(card, data, (name,))), data, images)


#: 280 quads, and 10 % of all.
read_mini = partial(_read_list, name=MINI)
read_tenth = partial(_read_list, name=TENTH)


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """EqBen from `private_info_global.json`, from its blind form, or the annotation of one source.

    The blind form is a folder with `ann_json_finegrained_random.json`, and in it or in its `src_file`
    `private_info.json` and `private_random_idx.json`. The annotation of a source is a file of objects
    {image0, image1, caption0, caption1} in a list, or in objects by video and subject; of several captions
    the first is used. Question ids are row numbers from 0. Images are called by their paths, whose first
    part is the source: groupings `subset` (the source) and `kind` (Kubric's three together). Frames in npy
    files are read as blue, green, red; in place of .png a file may be .jpg, as in the light release.
    Raises `DataError` for rows that do not fit, naming them.
    """
    path = released_file(card, data, (WHOLE, BLIND))
    if path.name == BLIND:
        return _quads(card, _unblinded(path), data, images)
    return _quads(card, _listed(path), data, images, part=path.name != WHOLE)


def _listed(path: Path) -> DataTable:
    rows = list(_objects(read_json(path), str(path)))
    return _table(rows, path) if rows else DataTable({}, str(path))


def _objects(value: Any, where: str) -> Iterator[dict[str, Any]]:
    """Every object with an image0, in lists and objects of any depth."""
    if isinstance(value, dict) and "image0" in value:
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _objects(inner, f"{where}, '{name}'")
    elif isinstance(value, list):
        for row, inner in enumerate(value, start=1):
            yield from _objects(inner, f"{where}, row {row}")
    else:
        raise DataError(
            "not a row of EqBen",
            where=where,
            given=shown(value),
            allowed="{image0, image1, caption0, caption1}",
        )


def _table(rows: list[dict[str, Any]], path: Path) -> DataTable:
    def cell(row: dict[str, Any], name: str) -> Any:
        value = row.get(name)
        # Action Genome has several captions; the official code takes the first.
        return value[0] if isinstance(value, list) and value else value

    columns = {
        name: tuple(cell(row, name) for row in rows) for name in ("image0", "image1", "caption0", "caption1")
    }
    return DataTable(columns, str(path), "json", (TablePart(str(path), len(rows)),))


def _unblinded(path: Path) -> DataTable:
    """The quads behind the blind list: position k of the key describes pair argsort(order)[k]."""
    folder = path.parent
    places = (folder, folder / "src_file")
    files = {name: next((at / name for at in places if (at / name).is_file()), None) for name in (KEY, ORDER)}
    for name, file in files.items():
        if file is None:
            raise DataError(
                f"the blind form of EqBen lacks {name}", where=folder, hint=f"or give {WHOLE} instead"
            )
    pairs = list_of(read_json(path), where=path)
    key, order = (list_of(read_json(file), where=file) for file in (files[KEY] or path, files[ORDER] or path))
    if len({len(pairs), len(key), len(order)}) > 1 or sorted(map(str, order)) != sorted(
        map(str, range(len(pairs)))
    ):
        raise DataError(
            "the key does not fit the list of pairs",
            where=folder,
            given=f"{len(pairs):,} pairs, {len(key):,} of the key, {len(order):,} of the order",
            allowed="as many of each, and each position once",
        )
    quads_by_sample: dict[int, dict[str, Any]] = {}
    for at, entry in zip(np.argsort(np.asarray(order, dtype=np.int64)).tolist(), key, strict=True):
        pair = pairs[at]
        if (
            not (isinstance(pair, dict) and isinstance(entry, dict))
            or entry.get("name") not in _PAIRS
            or not isinstance(entry.get("sample_cnt"), int)
        ):
            raise DataError(
                "an entry that says of no pair what it is",
                where=files[KEY],
                given=shown(entry),
                allowed="{dataset, name: c0i0 to c1i1, sample_cnt}",
            )
        quad = quads_by_sample.setdefault(entry["sample_cnt"], {})
        for part, name in (("caption", f"caption{entry['name'][1]}"), ("image", f"image{entry['name'][3]}")):
            if quad.setdefault(name, pair.get(part)) != pair.get(part):
                raise DataError(
                    f"two pairs of one quad differ in {name}",
                    where=f"{path}, sample {entry['sample_cnt']}",
                    given=shown(pair.get(part)),
                    allowed=shown(quad[name]),
                )
    return _table([quads_by_sample[number] for number in sorted(quads_by_sample)], path)


def _quads(
    card: Card, table: DataTable, data: Path | None, images: Path | None, *, part: bool = False
) -> Benchmark:
    ids = [str(row) for row in range(len(table))]
    sides = pictures(table, ("image0", "image1"), ids, data, images, suffixes=(".jpg",))
    for side in sides:
        for row, image in enumerate(side):
            if isinstance(image.source, FileSource) and image.source.path.suffix == ".npy":
                side[row] = replace(image, source=BgrFrame(image.source.path))
    sources = [name.split("/", 1)[0] for name in texts(table, "image0")]
    return quads(
        card,
        ids,
        (texts(table, "caption0"), texts(table, "caption1")),
        (sides[0], sides[1]),
        {
            "subset": tuple(name if name in _KINDS else "" for name in sources),
            "kind": tuple(_KINDS.get(name, "") for name in sources),
        },
        source=table.source,
        path=data,
        part=part,
    )
