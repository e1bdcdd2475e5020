"""SugarCrepe and SugarCrepe++: JSON files, one per subset, and a folder of COCO val2017 images.

SugarCrepe has seven files, each an object keyed by item number; SugarCrepe++ five lists of two positive
captions and a negative one per image.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.readers.paired_rows import kinds
from counterfoil.benchmarks.readers.questions import choices, paraphrases
from counterfoil.benchmarks.readers.released_files import released_set
from counterfoil.benchmarks.readers.rows import Photos, hub_rows, not_on_hub
from counterfoil.benchmarks.records import Image, words
from counterfoil.benchmarks.tables import DataTable, names, read_table, stack, texts
from counterfoil.errors import DataError

#: In the order of the result tables that BiVLC's authors released.
SUBSETS = ("add_obj", "add_att", "replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att")

#: The item that the repository dropped after the paper: keys of the file skip it.
DROPPED = ("swap_obj", 108)


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """SugarCrepe from the folder of its seven JSON files, or one of them alone; or a released result table.

    Question "add_obj/17" is item "17" of add_obj.json; captions keep their blanks. Images are called by their
    file names, once each; those not in the folder `images` (all, where it is None) are left out.
    Groupings: `subset`, `type` ("add", "replace", "swap") and `words` ("same words" where both captions have
    them as often, in another order).
    Raises `DataError` naming a file that is missing or miscounted, or the item that does not fit.
    """
    if data is None:
        raise not_on_hub(card)
    if data.is_file() and data.suffix.lower() != ".json":
        return replace(captions_only(card, read_table(data), images), path=data)
    files = subset_files(card, data, SUBSETS)
    tables = [read_table(file) for file in files]
    for table in tables:
        if table.kind != "keyed":
            raise DataError("not an object keyed by item number", where=table.source)
    ids = [f"{file.stem}/{key}" for file, table in zip(files, tables, strict=True) for key in table["id"]]
    rows = stack(tables, source=str(data), column="subset", values=[file.stem for file in files])
    return of_rows(card, ids, rows, ("caption", "negative_caption"), images, part=data.is_file(), path=data)


def subset_files(card: Card, data: Path, subsets: Sequence[str]) -> list[Path]:
    """The files of all subsets in the folder `data`, or the one file `data` is.

    Raises `DataError` naming the files that are missing, or the one that is none of the subsets.
    """
    if data.is_file():
        if data.stem not in subsets:
            raise DataError(
                "not the file of a subset", where=data, allowed=[f"{name}.json" for name in subsets]
            )
        return [data]
    names = [f"{name}.json" for name in subsets]
    return released_set(card, data, names, hint="name one file to read that subset alone")


def of_rows(
    card: Card,
    ids: Sequence[str],
    rows: DataTable,
    candidates: Sequence[str],
    images: Path | None,
    *,
    build: Callable[..., Benchmark] = choices,
    part: bool = False,
    path: Path | None = None,
) -> Benchmark:
    """Rows with columns subset, filename and one per caption, as a benchmark that `build` makes of them."""
    subsets = tuple(str(name) for name in rows["subset"])
    names = texts(rows, "filename")
    sources = Photos(images).sources(names)
    columns = [texts(rows, column) for column in candidates]
    groupings = {"subset": subsets, "type": tuple(name.split("_")[0] for name in subsets)}
    if len(columns) == 2:
        same = (sorted(words(a)) == sorted(words(b)) for a, b in zip(*columns, strict=True))
        groupings["words"] = tuple("same words" if is_same else "" for is_same in same)
    pictures = [Image(name, sources[name]) for name in names]
    return build(card, ids, columns, pictures, groupings, source=rows.source, path=path, part=part)


def captions_only(card: Card, table: DataTable, images: Path | None = None) -> Benchmark:
    """SugarCrepe as a released table of outcomes carries it: file names, captions, types and subtypes.

    The tables list every file's items in order, so an item's number is its place in its subset; where
    swap_obj has one item fewer, the number that the repository dropped is skipped.
    """
    subsets = kinds(table)["subset"]
    skipped = subsets.count(DROPPED[0]) == card.counts.get(DROPPED[0])
    ids: list[str] = []
    seen = dict.fromkeys(SUBSETS, 0)
    for subset in subsets:
        number = seen.setdefault(subset, 0)
        seen[subset] += 1
        if skipped and subset == DROPPED[0] and number >= DROPPED[1]:
            number += 1
        ids.append(f"{subset}/{number}")
    rows = DataTable({**table.columns, "subset": subsets}, table.source, table.kind, table.parts)
    return of_rows(card, ids, rows, ("caption", "negative_caption"), images)


PP_SUBSETS = ("replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att")

_CANDIDATES = ("caption", "caption2", "negative_caption")


def _pp(card: Card, data: Path | None, images: Path | None, *, build: Callable[..., Benchmark]) -> Benchmark:
    """SugarCrepe++ from the hub, from the folder of its five JSON files, or one of them alone.

    Three candidates, the first two of them right. Question "swap_obj/17" is the item of id 17 in
    swap_obj.json. Images (COCO val2017) are called by their file names; those not in the folder `images`
    (all, where it is None) are left out. Groupings: `subset` and `type` ("replace", "swap"). Raises
    `DataError` naming a file that is missing or miscounted, or the item that does not fit.
    """
    if data is None:
        subsets: list[str] = list(PP_SUBSETS)
        tables = [hub_rows(card, (), config=card.configs[name]) for name in subsets]
    else:
        files = subset_files(card, data, PP_SUBSETS)
        subsets = [file.stem for file in files]
        tables = [read_table(file) for file in files]
    ids = [f"{name}/{key}" for name, table in zip(subsets, tables, strict=True) for key in names(table, "id")]
    source = str(data) if data is not None else card.hub
    rows = stack(tables, source=source, column="subset", values=subsets)
    return of_rows(
        card, ids, rows, _CANDIDATES, images, build=build, part=data is not None and data.is_file(), path=data
    )


read_pp = partial(_pp, build=partial(choices, correct=2))
#: The text-only task, for which no image is needed.
read_pp_texts = partial(_pp, build=paraphrases)
