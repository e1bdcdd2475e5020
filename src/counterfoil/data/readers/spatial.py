"""Choices between spatial relations: What'sUp A and B, and its sets of COCO and Visual Genome images."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.readers.questions import check_counts, choices
from counterfoil.data.readers.released_files import listed_rows, pictures, released_file
from counterfoil.data.tables import DataTable, integers, read_table, shown, texts
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
        if not isinstance(cell, list) or len(cell) != 4 or not all(isinstance(each, str) for each in cell):
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
    found = choices(
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
    return check_counts(found)


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
    found = choices(card, ids, captions, shown_images, relations, source=table.source, path=data)
    return check_counts(found)
