"""Users' own tables: pairs of captions, galleries, ratings, and votes between two captions of an image.

Pairs: columns image, caption, negative_caption[, negative_image, type, subtype, split, id]. Ratings: columns
image, caption, rating (or rating_1, rating_2, ...: one per rater), and references where there are some.
Galleries: columns image, caption[, image_id, caption_id, relevance, written_for], a row per judged pair.
Votes: columns image, caption_a, caption_b, and votes_a and votes_b, or preferred (a or b). Statements, true
or false of an image: columns image, statement, label. Columns may be in capitals, and called as others call
them (`ALIASES`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Ids
from counterfoil.benchmarks.image_files import image_path
from counterfoil.benchmarks.readers.questions import (
    Rows,
    clean_caption,
    gallery_of_pairs,
    listed,
    ratings_of,
    truths,
)
from counterfoil.benchmarks.readers.released_files import no_data
from counterfoil.benchmarks.records import Caption, FileSource, Image, Photos, Source, distinct, held_source
from counterfoil.benchmarks.tables import (
    DataTable,
    check_cells,
    check_numbers,
    floats,
    integers,
    labels,
    names,
    open_rows,
    shown,
    texts,
)
from counterfoil.errors import DataError
from counterfoil.inputs.files import display_path, is_distant

#: What a column may be called, by its name here.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "image": ("image", "filename", "file_name", "image_file", "image_path", "image_name", "filepath", "img"),
    "negative_image": ("negative_image", "negative_filename", "image_negative", "neg_image", "foil_image"),
    "caption": ("caption", "true_caption", "positive_caption", "text", "sentence"),
    "negative_caption": ("negative_caption", "false_caption", "foil", "caption_negative", "neg_caption"),
}
_NAMES = {
    **ALIASES,
    "statement": ("statement", "caption", "text", "sentence", "claim"),
    "label": ("label", "truth", "true", "correct", "is_true", "answer"),
}


def named(table: DataTable, wanted: Sequence[str]) -> DataTable:
    """The table with the columns in `wanted` under these names, whatever their case and their alias."""
    lower: dict[str, str] = {}
    for name in table.columns:
        plain = name.strip().lower().replace(" ", "_")
        if plain in lower:
            what = "two columns differ in capitals alone"
            raise DataError(what, where=table.source, given=f"{lower[plain]}, {name}")
        lower[plain] = name
    renamed = {name: plain for plain, name in lower.items()}
    for name in wanted:
        alias_there = next((alias for alias in _NAMES.get(name, (name,)) if alias in lower), None)
        if alias_there is not None and name not in lower:
            renamed[lower[alias_there]] = name
    return replace(table, columns={renamed[name]: cells for name, cells in table.columns.items()})


#: The benchmarks that are tables of one's own, which may be in memory too.
OWN_TABLES = ("pairs", "gallery", "statements", "ratings", "preferences")


def required(table: DataTable, *columns: str) -> None:
    """Raise `DataError` for the first of the columns that `table` lacks, with all names it may have."""
    for name in columns:
        if name not in table:
            what, given, allowed = f"no column '{name}'", ", ".join(table.columns), _NAMES.get(name, (name,))
            hint = "a TOML file can say what other columns mean (docs/tutorial-own.md)"
            if name == "negative_caption":
                hint = f"a table of right pairs alone is benchmark 'gallery'; {hint}"
            raise DataError(what, where=table.source, given=given, allowed=allowed, hint=hint)


#: Columns by which a table is told to be of a kind, each under any of the names; first the likeliest kind.
_TOLD_BY: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "pairs": (ALIASES["negative_caption"],),
    "preferences": (("caption_a",), ("caption_b",)),
    "ratings": (("rating", "rating_1", "rating1"), ALIASES["caption"]),
    "statements": (("label", "truth", "is_true"), _NAMES["statement"]),
    "gallery": (ALIASES["image"], ALIASES["caption"]),
}


def kind_of(named: Iterable[str]) -> str | None:
    """The name under which a table of one's own with these columns is a benchmark; None for other tables."""
    plain = {name.strip().lower().replace(" ", "_") for name in named}
    kinds = (kind for kind, columns in _TOLD_BY.items() if all(plain & {*names} for names in columns))
    return next(kinds, None)


_IMAGES = ("image", "negative_image")


def own_table(
    card: Card,
    data: Path | DataTable | None,
    images: Path | None,
    wanted: Sequence[str],
    *,
    subsets: bool = False,
) -> tuple[DataTable, Path | None, Path | None]:
    """The table in `data` with `wanted` columns under these names, the folder of its images, its path."""
    if data is None:
        raise no_data(card)
    if isinstance(data, DataTable):
        return named(data, wanted), images, None
    cells = [alias for name in wanted if name in _IMAGES for alias in ALIASES[name]]
    table = named(open_rows(data, cells, subsets=subsets), wanted)
    return table, images or (data if data.is_dir() else data.parent), data


def read_pairs(card: Card, data: Path | DataTable | None, images: Path | None) -> Benchmark:
    """Quads where there is a column `negative_image`, else choices of two captions."""
    wanted = (*_IMAGES, "caption", "negative_caption")
    table, folder, path = own_table(card, data, images, wanted, subsets=True)
    required(table, "caption", "negative_caption")
    ids = _ids(table)
    sides = []
    for side, column in enumerate(name for name in _IMAGES if name in table):
        cells = zip(table[column], ids, strict=True)
        called = [cell if isinstance(cell, str) else f"{name}_i{side}" for cell, name in cells]
        sides.append(row_images(table, column, folder, called, None))
    if _IMAGES[0] not in table:
        if sides:
            required(table, _IMAGES[0])
        sides = [[Image(f"{name}_i0", sought=f"{table.source} has no column 'image'") for name in ids]]
    form, measures = ("quad", ("group", "i2t", "t2i")) if len(sides) == 2 else ("choice", ("accuracy",))
    facts = {"title": title_of(path), "form": form, "size": len(table), "measures": measures}
    card = card.model_copy(update=facts)
    captions = texts(table, "caption"), texts(table, "negative_caption")
    groupings = {name: labels(table, name) for name in ("type", "subset", "split") if name in table}
    if "subset" not in table and "type" in table and "subtype" in table:
        pairs = zip(groupings["type"], labels(table, "subtype"), strict=True)
        groupings["subset"] = tuple("_".join(part for part in pair if part) for pair in pairs)
    rows = Rows(card, ids, captions, sides, groupings, table.source, path)
    return rows.quad() if len(sides) == 2 else rows.choice()


def _ids(table: DataTable) -> tuple[str, ...]:
    if "id" not in table:
        return tuple(str(row) for row in range(len(table)))
    called = labels(table, "id")
    within = "subset" if table.kind == "folder" else "split"
    if table.kind != "folder" and (within not in table or len(set(called)) == len(called)):
        return names(table, "id")
    inside = [f"{part}/{name}" if name else "" for part, name in zip(table[within], called, strict=True)]
    return names(table.with_columns({"id": inside}), "id")


_RATING = re.compile(r"(rating|score_?human|rater)(_?\d+)?")
_REFERENCE = re.compile(r"references?(_?\d+)?")


def read_ratings(card: Card, data: Path | DataTable | None, images: Path | None) -> Benchmark:
    """Captions with ratings, a row each; several columns are several raters, each rating a point."""
    table, folder, path = own_table(card, data, images, ("image", "caption"))
    raters = [name for name in table.columns if _RATING.fullmatch(name)]
    if not raters:
        given = ", ".join(table.columns)
        what = "no column of ratings"
        raise DataError(what, where=table.source, given=given, allowed="rating, rating_1, ...")
    required(table, "image", "caption")
    ratings = ratings_of(table, raters, missing=True)
    return _judged(card, table, folder, path, {"caption": "c"}, ratings=ratings)


def read_preferences(card: Card, data: Path | DataTable | None, images: Path | None) -> Benchmark:
    """Pairs of captions of one image and how many people preferred each; a row needs a vote."""
    table, folder, path = own_table(card, data, images, ("image", "caption"))
    required(table, "image", "caption_a", "caption_b")
    if "votes_a" in table and "votes_b" in table:
        votes = np.stack([floats(table, name) for name in ("votes_a", "votes_b")], axis=1)
        odd = (votes < 0).any(axis=1) | (votes.sum(axis=1) == 0)
        check_numbers(table, None, votes, odd, "not votes", "0 or more, one at least")
    elif "preferred" in table:
        chosen = [side.lower() for side in labels(table, "preferred")]
        sides = table.with_columns({"preferred": chosen})
        check_cells(sides, "preferred", ("a", "b").__contains__, "not a choice", "a or b")
        votes = np.array([[side == "a", side == "b"] for side in chosen], dtype=np.float64)
    else:
        given, allowed = ", ".join(table.columns), "votes_a and votes_b, or preferred"
        raise DataError("no votes", where=table.source, given=given, allowed=allowed)
    names = {name: name for name in ("caption_a", "caption_b")}
    return _judged(card, table, folder, path, names, votes=votes)


def _judged(
    card: Card,
    table: DataTable,
    folder: Path | None,
    path: Path | None,
    names: Mapping[str, str],
    *,
    ratings: NDArray[np.float64] | None = None,
    votes: NDArray[np.float64] | None = None,
) -> Benchmark:
    """What people judged the captions of some columns, which are called by `names` and their rows."""
    name_of: dict[str, str] = {}
    candidates = []
    for column, start in names.items():
        written = [clean_caption(cell, table.where(row, column)) for row, cell in enumerate(table[column])]
        candidates.append(
            [Caption(name_of.setdefault(text, f"{start}{row}"), text) for row, text in enumerate(written)]
        )
    called: Sequence[str] = [
        cell if isinstance(cell, str) else f"image of row {row + 1}"
        for row, cell in enumerate(table["image"])
    ]
    called = texts(table, "image_id") if "image_id" in table else called
    columns = [name for name in table.columns if _REFERENCE.fullmatch(name)]
    references = references_in(table, columns) if columns else None
    card = card.model_copy(update={"title": title_of(path)})
    shown_images = row_images(table, "image", folder, called)
    groupings = {name: labels(table, name) for name in ("type", "source") if name in table}
    rows = Rows(card, _ids(table), candidates, [shown_images], groupings, table.source, path, votes=votes)
    return rows.judged(ratings=ratings, references=references)


def references_in(table: DataTable, columns: Sequence[str]) -> list[list[Caption]]:
    """The references of each row, in columns of a text or a list of texts each, without empty ones."""
    references = []
    for row in range(len(table)):
        of_row: list[str] = []
        for name in columns:
            cell, where = table[name][row], table.where(row, name)
            listed = [
                text for text in (cell if isinstance(cell, list | tuple) else [cell]) if text is not None
            ]
            of_row += [clean_caption(text, where, "reference") for text in listed if str(text).strip()]
        references.append([Caption(f"r{row}_{i}", text) for i, text in enumerate(of_row)])
    return references


def title_of(path: Path | None) -> str:
    """What tables call the benchmark: its file; "" where it was in memory, for its name."""
    return "" if path is None else path.stem


def row_images(
    table: DataTable, column: str, folder: Path | None, names: Sequence[str], photo: str | None = ""
) -> list[Image]:
    """The image of each row, which has one of `names`; those of one name are that of the first row."""
    images: dict[str, Image] = {}
    # A folder at a distance is listed once, by a request.
    photos = Photos(folder) if folder is not None and is_distant(folder) else folder
    for row, (name, cell) in enumerate(zip(names, table[column], strict=True)):
        if name not in images:
            source = cell_source(table, column, row, photos)
            sought = f"looked for {display_path((folder or Path()) / cell)}" if isinstance(cell, str) else ""
            images[name] = Image(name, source, photo="" if sought else photo, sought=sought)
    return [images[name] for name in names]


def read_gallery(card: Card, data: Path | DataTable | None, images: Path | None) -> Benchmark:
    """One row per right pair; the gallery is every image and every caption that a row names.

    `relevance` in (0, 1] is the gain of a pair, 1 where there is no such column; a pair of relevance 0 is
    wrong, and adds its items to the gallery.
    """
    table, folder, path = own_table(card, data, images, ("image", "caption"))
    written = texts(table, "caption")
    names, image = _distinct(table, "image", "a path, or bytes with a column 'image_id'")
    pictures, _ = listed(row_images(table, "image", folder, [names[i] for i in image.tolist()]))
    keys, caption = _distinct(table, "caption", "a text")
    first = np.unique(caption, return_index=True)[1].tolist()
    captions = [
        Caption(key if "caption_id" in table else f"c{i}", written[row])
        for i, (key, row) in enumerate(zip(keys, first, strict=True))
    ]
    gains = floats(table, "relevance") if "relevance" in table else np.ones(len(table))
    outside = (gains < 0) | (gains > 1)
    check_numbers(table, "relevance", gains, outside, "relevance out of range", "0 (wrong) to 1 (right)")
    rows: dict[tuple[int, int], int] = {}
    for row, pair in enumerate(zip(image.tolist(), caption.tolist(), strict=True)):
        before = rows.setdefault(pair, row)
        if before != row:
            given = f"the pair of {table.where(before)}"
            raise DataError("a pair occurs twice", where=table.where(row), given=given)
    right = gains > 0
    if not right.any():
        raise DataError("no row says what is right", where=table.source, given="relevance 0 throughout")
    pairs = image[right], caption[right]
    owners = _gallery_owners(table, pictures, len(captions), caption, pairs)
    card = card.model_copy(update={"title": title_of(path)})
    items = card, pictures, captions, owners
    return gallery_of_pairs(*items, pairs, gains[right], source=table.source, path=path)


def _distinct(table: DataTable, column: str, allowed: str) -> tuple[list[str], Ids]:
    """The names of distinct items in order of first appearance, and the position of each row's."""
    cells = table[column]
    with_ids = f"{column}_id" in table
    names = labels(table, f"{column}_id") if with_ids else cells
    first: dict[str, int] = {}
    for row, (name, cell) in enumerate(zip(names, cells, strict=True)):
        if not isinstance(name, str) or not name:
            raise DataError(
                "empty id" if with_ids else f"an {column} without a name",
                where=table.where(row, f"{column}_id" if with_ids else column),
                given=None if with_ids else shown(cell),
                allowed=None if with_ids else allowed,
            )
        before = cells[first.setdefault(name, row)]
        if isinstance(cell, str) and isinstance(before, str) and cell != before:
            what = f"two {column}s of one id"
            raise DataError(what, where=table.where(row, column), given=shown(cell), allowed=before)
    return distinct(names)


def _gallery_owners(
    table: DataTable, pictures: Sequence[Image], n_captions: int, caption: Ids, pairs: tuple[Ids, Ids]
) -> Ids:
    owners = np.full(n_captions, -1, dtype=np.int64)
    if "written_for" not in table:
        image, right = pairs
        single = np.bincount(right, minlength=n_captions)[right] == 1
        owners[right[single]] = image[single]
        return owners
    number = {picture.id: i for i, picture in enumerate(pictures)}
    for row, name in enumerate(labels(table, "written_for")):
        if not name:
            continue
        owner, where = number.get(name), table.where(row, "written_for")
        if owner is None:
            raise DataError("written for an image that is not in the table", where=where, given=name)
        if owners[caption[row]] not in (-1, owner):
            allowed = pictures[owners[caption[row]]].id
            raise DataError("a caption is written for one image", where=where, given=name, allowed=allowed)
        owners[caption[row]] = owner
    return owners


_VOTES = ("votes_false", "votes_true")
#: The splits that choose the threshold.
_DEV = ("dev", "val", "valid", "validation")
#: Columns of own tables that group questions.
_GROUPS = ("type", "relation", "category", "source", "dataset_source")


def read_statements(card: Card, data: Path | DataTable | None, images: Path | None) -> Benchmark:
    """A table of statements: columns image, statement (or caption, text), label (1, 0, true or false)."""
    table, folder, path = own_table(card, data, images, ("image", "statement", "label"))
    required(table, "statement", "label")
    ids = _ids(table)
    cells = zip(table["image"], ids, strict=True)
    called = [cell if isinstance(cell, str) else f"{name}_image" for cell, name in cells]
    votes: NDArray[np.float64] | None = None
    if all(name in table for name in _VOTES):
        counts = np.stack([integers(table, name) for name in _VOTES], axis=1)
        odd = counts.min(axis=1) < 0
        check_numbers(table, None, counts, odd, "a negative number of votes", "0 or more")
        votes = counts.astype(np.float64)
    dev = np.isin(labels(table, "split"), _DEV) if "split" in table else None
    card = card if card.size is not None else card.model_copy(update={"title": title_of(path)})
    groupings = {name: labels(table, name) for name in _GROUPS if name in table}
    columns = [texts(table, "statement")], [row_images(table, "image", folder, called)]
    rows = Rows(card, ids, *columns, groupings, table.source, path, votes=votes)
    return rows.true_or_false(truths(table, "label"), dev)


def cell_source(table: DataTable, column: str, row: int, folder: Path | Photos | None) -> Source | None:
    """The image of one cell: bytes, `{"bytes", "path"}`, a picture, or a path in `folder`, or by the table.

    None where the image is not at hand: the cell names a file that is not there, or is how a released result
    table prints an image it does not carry ("<PIL...>").
    """
    where = table.where(row, column)
    cell = held_source(table[column][row], where)
    if not isinstance(cell, str):
        return cell
    if cell.startswith("<PIL."):
        return None
    if isinstance(folder, Photos):
        return folder.source(cell, where=where)
    if folder is None:
        place = Path(table.source)
        folder = place if place.is_dir() else place.parent
    return FileSource(image_path(cell, folder, where=where)) if (folder / cell).is_file() else None
