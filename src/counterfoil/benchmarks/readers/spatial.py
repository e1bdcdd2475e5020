"""Choices between places, sizes and numbers: What'sUp, its sets of COCO and Visual Genome images, SPEC."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path, PurePosixPath

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.readers.questions import choices, image_choices
from counterfoil.benchmarks.readers.released_files import (
    listed_rows,
    located,
    pictures,
    released_file,
    right_first,
)
from counterfoil.benchmarks.readers.rows import not_on_hub
from counterfoil.benchmarks.records import Image
from counterfoil.benchmarks.tables import DataTable, integers, read_table, shown, texts
from counterfoil.errors import DataError

#: The two pairs of opposites of each set of four images.
_PAIRS = {
    "whatsup-a": (("left", "right"), ("on", "under")),
    "whatsup-b": (("left", "right"), ("in-front", "behind")),
}
_FILES = {"whatsup-a": "controlled_images_dataset.json", "whatsup-b": "controlled_clevr_dataset.json"}


def read_controlled(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """What'sUp's photographs of two objects in four relations: A, or B for a card of that name.

    `data` is `controlled_images_dataset.json` (B: `controlled_clevr_dataset.json`) or its folder: rows of
    {image_path, caption_options}, of four options the first right. Objects and relation are in the name of
    the image, `OBJECT_RELATION_of_OBJECT.jpeg`; question ids are those names without their endings.

    Groupings: `relation`; `pair` (both of two opposite relations of the same objects) and `set` (all four),
    which the measures `pairs` and `sets` are over; an image whose opposite is not there is in no pair.
    Raises `DataError` for rows that do not fit.
    """
    table = read_table(released_file(card, data, (_FILES[card.name],)))
    names = texts(table, "image_path")
    ids = tuple(PurePosixPath(name).stem for name in names)
    opposites = _PAIRS[card.name]
    keys = [_parts(table, row, name, opposites) for row, name in enumerate(ids)]
    options = []
    for row, cell in enumerate(table["caption_options"]):
        if (
            not isinstance(cell, list)
            or len(cell) != 4
            or not all(isinstance(option, str) for option in cell)
        ):
            raise DataError("not four captions", where=table.where(row, "caption_options"), given=shown(cell))
        options.append(cell)
    (shown_images,) = pictures(table, ("image_path",), ids, data, images)
    members = Counter(keys)

    def complete(first: str, relations: Sequence[str], second: str) -> bool:
        return all(members[first, relation, second] == 1 for relation in relations)

    pairs, sets = [], []
    for first, relation, second in keys:
        both = next(pair for pair in opposites if relation in pair)
        objects = f"{first} {second}"
        pairs.append(f"{objects}: {'/'.join(both)}" if complete(first, both, second) else "")
        sets.append(f"{objects}: all" if complete(first, [*opposites[0], *opposites[1]], second) else "")
    return choices(
        card,
        ids,
        list(zip(*options, strict=True)),
        shown_images,
        {
            "relation": tuple(relation for _, relation, _ in keys),
            "pair": tuple(pairs),
            "set": tuple(sets),
        },
        source=table.source,
        path=data,
    )


def _parts(table: DataTable, row: int, name: str, opposites: Sequence[Sequence[str]]) -> tuple[str, str, str]:
    """First object, relation and second object, as the official code takes them from the file's name."""
    parts = name.split("_")
    known = [relation for pair in opposites for relation in pair]
    if len(parts) < 3 or parts[1] not in known:
        raise DataError(
            "a name without objects and relation",
            where=table.where(row, "image_path"),
            given=name,
            allowed=f"OBJECT_RELATION_OBJECT, with one of {', '.join(known)}",
        )
    return parts[0], parts[1], parts[-1]


def _one_object(caption: str) -> str:
    return caption.split()[-1]


def _two_objects(caption: str) -> str:
    return next((word for word in _RELATIONS if word in caption), "")


#: How the official code names the relation of a caption: by the first of these that it holds.
_RELATIONS = ("left of", "right of", "front of", "behind", "above", "below", "top")

#: File, name of an image by its number, and the relation of a caption, by the card's name.
_QUESTIONS: dict[str, tuple[str, str, Callable[[str], str]]] = {
    "whatsup-coco-one": ("coco_qa_one_obj.json", "{:012d}.jpg", _one_object),
    "whatsup-coco-two": ("coco_qa_two_obj.json", "{:012d}.jpg", _two_objects),
    "whatsup-vg-one": ("vg_qa_one_obj.json", "{}.jpg", _one_object),
    "whatsup-vg-two": ("vg_qa_two_obj.json", "{}.jpg", _two_objects),
}


def read_questions(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """What'sUp's questions on COCO val2017 or Visual Genome, about one object's place or two objects'.

    `data` is `coco_qa_one_obj.json` and so on, or its folder: rows of [number of the image, right caption,
    wrong caption]. Images are `000000000139.jpg` (COCO) or `139.jpg`. Question ids are row numbers from 0.
    Grouping: `relation`, the last word of the caption, or the relation between two objects.
    Raises `DataError` for rows that do not fit.
    """
    file, pattern, relation_of = _QUESTIONS[card.name]
    table = listed_rows(released_file(card, data, (file,)), ("image", "right", "wrong"))
    names = tuple(pattern.format(number) for number in integers(table, "image").tolist())
    captions = [texts(table, "right"), texts(table, "wrong")]
    ids = [str(row) for row in range(len(table))]
    rows = DataTable({**table.columns, "image": names}, table.source, table.kind, table.parts)
    (shown_images,) = pictures(rows, ("image",), ids, data, images)
    relations = {"relation": tuple(relation_of(text) for text in captions[0])}
    return choices(card, ids, captions, shown_images, relations, source=table.source, path=data)


#: SPEC's folders, one for each thing that is told apart.
SPEC = (
    *("absolute_size", "relative_size", "absolute_spatial"),
    *("relative_spatial", "existence", "count"),
)


def read_spec_captions(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """SPEC from images to texts: `image2text.json` of its six folders, or of those of them that are there.

    `data` is the folder of the six, or one of them, such as `count`. Rows are {query: path of the image,
    keys: texts, label}; the labelled text comes first here, the others in their order, as many as the row
    has. Question "count/17" is row 17, from 0. Images are called "count/PATH". Grouping: `subset`. Raises
    `DataError` for rows that do not fit.
    """
    rows = _spec_rows(card, data, "image2text.json")
    queries = [image for (image,) in _spec_images(rows, [[row.query] for row in rows], data, images)]
    return choices(
        card,
        [row.id for row in rows],
        list(zip_longest(*(row.keys for row in rows))),
        queries,
        {"subset": tuple(row.subset for row in rows)},
        source=str(data),
        path=data,
    )


def read_spec_images(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """SPEC from texts to images: `text2image.json`; else as `read_spec_captions`."""
    rows = _spec_rows(card, data, "text2image.json")
    options = _spec_images(rows, [row.keys for row in rows], data, images)
    return image_choices(
        card,
        [row.id for row in rows],
        [row.query for row in rows],
        list(zip_longest(*options)),
        {"subset": tuple(row.subset for row in rows)},
        source=str(data),
        path=data,
    )


@dataclass(frozen=True)
class SpecRow:
    """A question of SPEC: a query and its options, the right one first."""

    id: str
    subset: str
    query: str
    keys: list[str]


def _spec_rows(card: Card, data: Path | None, name: str) -> list[SpecRow]:
    if data is None:
        raise not_on_hub(card)
    files = [file for file in (data / name, *(data / subset / name for subset in SPEC)) if file.is_file()]
    if not files:
        raise DataError(
            f"no {name} in this folder", where=data, allowed=[f"{subset_name}/{name}" for subset_name in SPEC]
        )
    rows: list[SpecRow] = []
    for file in files:
        subset = file.parent.resolve().name
        table = read_table(file)
        queries, answers = texts(table, "query"), integers(table, "label").tolist()
        for row, (query, keys, right) in enumerate(zip(queries, table["keys"], answers, strict=True)):
            if not isinstance(keys, list) or not all(isinstance(key, str) and key.strip() for key in keys):
                raise DataError("not a list of texts", where=table.where(row, "keys"), given=shown(keys))
            if len(keys) < 2:
                raise DataError("fewer than two options", where=table.where(row, "keys"), given=shown(keys))
            if not 0 <= right < len(keys):
                raise DataError(
                    "no such option",
                    where=table.where(row, "label"),
                    given=right,
                    allowed=f"0 to {len(keys) - 1}",
                )
            rows.append(SpecRow(f"{subset}/{row}", subset, query, right_first(keys, right)))
    return rows


def _spec_images(
    rows: Sequence[SpecRow], paths: Sequence[Sequence[str]], data: Path | None, images: Path | None
) -> list[list[Image]]:
    """The images of some paths of each row, which are relative to its folder."""
    names = [[f"{row.subset}/{path}" for path in own] for row, own in zip(rows, paths, strict=True)]
    sources = located((name for own in names for name in own), data, images)
    return [[Image(name, sources[name]) for name in own] for own in names]
