"""Benchmarks whose layout `catalog.toml` describes: one reader makes questions of the rows of released files.

What no layout can say is a function from table to table (`table_functions`, `judged_tables`). Of several
layouts of a benchmark the first whose files are there is read.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cache
from itertools import zip_longest
from pathlib import Path
from string import Formatter
from typing import Annotated, Any

import numpy as np
from jaxtyping import Int
from numpy import ndarray
from pydantic import BaseModel, ConfigDict, Discriminator, Tag

from counterfoil.benchmarks.benchmark import BENCHMARKS, SPEC_READER, Benchmark, Card, catalog
from counterfoil.benchmarks.readers.own import cell_source, references_in
from counterfoil.benchmarks.readers.questions import Rows, ratings_of, truths, unique_ids
from counterfoil.benchmarks.readers.released_captions import photographs
from counterfoil.benchmarks.readers.released_files import (
    listed_rows,
    no_data,
    pictures_of,
    released_file,
    released_set,
)
from counterfoil.benchmarks.records import BgrFrame, Caption, Image
from counterfoil.benchmarks.references import collapsed
from counterfoil.benchmarks.tables import (
    ROW,
    DataTable,
    first_double,
    integers,
    labels,
    names,
    open_rows,
    read_table,
    row_numbers,
    shown,
    stack,
    texts,
)
from counterfoil.benchmarks.videos import Sampling, Video, find
from counterfoil.errors import DataError
from counterfoil.inputs.files import check_model, natural, read_json, read_toml
from counterfoil.registry import resolve


class Label(BaseModel):
    """A text of each row: what a pattern takes of other cells, under another name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: A column, or a template of columns.
    of: str
    #: The first group that matched is taken, without groups the whole match; a cell without a match has "".
    pattern: str = ""
    #: New names, and what is called so.
    names: dict[str, str | tuple[str, ...]] = {}
    #: What texts without a new name are called, where not by themselves.
    otherwise: str | None = None
    #: The texts that may be there.
    allowed: tuple[str, ...] = ()


#: A text of each row, as it is or made into labels.
Labelled = Annotated[
    Annotated[str, Tag("text")] | Annotated[Label, Tag("label")],
    Discriminator(lambda value: "text" if isinstance(value, str) else "label"),
]


class Layout(BaseModel):
    """One layout of a benchmark.

    A text without braces names a column, one with braces is a template of columns. "a?" need not be there,
    "a.b" is the cell `b` of the object (or list) in `a`, "a*" are the texts of the list in `a`, "a*4" those
    of a list of four, "a*2+" of two or more. `#` is the number of the row in its file, from 0.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: Names of files, of which the first that is there is read; with `subsets`, one file of each subset.
    files: tuple[str, ...] = ()
    subsets: tuple[str, ...] = ()
    #: Whether subsets may be missing.
    partial: bool = False
    #: The pattern of the paths of files that are read together, from a slash in the folder on; of a file that
    #: is named, the name. Its groups are columns. NAME is the last part of the card's name.
    pattern: str = ""
    #: The files of that pattern in words.
    allowed: str = ""
    #: Rows may be any table, Parquet files as the hub has them, or saved by `datasets`.
    hub: bool = False
    #: Columns of images in cells, where `images` are made of them by a step.
    lazy: tuple[str, ...] = ()
    #: The cells of rows that are lists.
    cells: tuple[str, ...] = ()
    #: What a file with an object in place of a list is keyed by.
    keyed: str = ""
    #: The columns that are read, of files that have others of their own; empty are all.
    columns: tuple[str, ...] = ()
    #: Columns, and how else they may be called.
    aliases: dict[str, tuple[str, ...]] = {}
    #: The title of what is no part of the release, which the card does not count; {} is the name of the file.
    title: str = ""
    #: Rows that are read of each file, from the first; 0 are all.
    limit: int = 0
    #: The function that opens the files, in place of what is above.
    open: dict[str, Any] | None = None
    #: The rows that are read: the label of a column, or the least of its whole numbers.
    where: dict[str, str | int] = {}
    #: Functions from table to table, {call, options}.
    steps: tuple[dict[str, Any], ...] = ()
    id: str = "{#}"
    #: Whether ids may come again, the second time as ID/2.
    repeats: bool = False
    #: None are those of a gallery that a column `captions` holds.
    captions: tuple[Labelled, ...] = ("caption",)
    #: What captions are called, where not by the question: the only one, or each that people judged.
    caption_ids: tuple[str, ...] = ()
    images: tuple[Labelled, ...] = ("image",)
    #: The files of images that are called otherwise, and what images in cells are called.
    image_files: tuple[Labelled, ...] = ()
    image_ids: tuple[str, ...] = ()
    #: Whether images are called by their question even where they are files.
    by_question: bool = False
    #: What the paths of images begin with.
    prefix: str = ""
    #: Other endings that files of images may have.
    suffixes: tuple[str, ...] = ()
    #: Folders that images may be in, here or in the folder "images", which may be left out.
    folders: tuple[str, ...] = ()
    #: Whether the release says which photograph each image of a question shows; empty: files do, cells do
    #: not.
    known_photos: tuple[bool, ...] = ()
    #: The column that says which photograph an image shows.
    photo: str = ""
    #: Left edge, top, width and height of the part that an image shows.
    crop: tuple[str, ...] = ()
    #: Number of right candidates, which come first; or the column with the place of the only one.
    correct: int = 1
    right: str = ""
    #: Of statements: whether they are true, the votes, and the rows that choose the threshold.
    truth: str = ""
    votes: tuple[str, ...] = ()
    calibration: str = ""
    #: Of judged captions: the columns of ratings, whether some may be missing, the columns of references or
    #: how many first ones of a release are used, and other fields of the questions.
    ratings: tuple[str, ...] = ()
    missing: bool = False
    references: int | tuple[str, ...] | None = None
    judged: dict[str, Any] = {}
    #: Of videos: the folder of features that a model made of their frames, and the number of frames.
    features: str = ""
    frames: int | None = None
    #: The file of captions that the authors' metrics count words in.
    corpus: str = ""
    #: A name "*" stands for all columns that begin as it says, each a grouping without what they begin with.
    groups: dict[str, Labelled] = {}
    #: Groupings without the groups that the card's macro average leaves out, and the groupings they are of.
    averaged: dict[str, str] = {}

    def fits(self, data: Path) -> bool:
        """Whether `data` holds files of this layout."""
        subsets = self.subsets or ("",)
        names = [name.replace("{subset}", subset) for name in self.files for subset in subsets]
        if data.is_file():
            return any(fnmatch(data.name, Path(name).name) for name in names)
        return any((data / name).is_file() for name in names if "*" not in name)


@cache
def layouts(name: str) -> tuple[Layout, ...]:
    """The layouts of the benchmark called `name`; one that is `like` another says what differs."""
    return _layouts_of(catalog("counterfoil.benchmarks")[name], "catalog.toml")


def _layouts_of(row: Mapping[str, Any], where: object) -> tuple[Layout, ...]:
    changes = row.get("layout", {})
    if not isinstance(changes, list | dict):
        raise DataError(
            "not a table", where=where, given=changes, allowed="[NAME.layout], or several of them"
        )
    if isinstance(changes, dict):
        others = layouts(row["like"]) if "like" in row else (Layout(),)
        changes = [other.model_dump(exclude_unset=True) | changes for other in others]
    return tuple(check_model(change, Layout, where=where, hint=None) for change in changes)


def own_spec(path: Path) -> tuple[Card, tuple[Layout, ...]]:
    """The card and the layouts of one's own benchmark: a TOML file with one table, as `catalog.toml` has."""
    rows = read_toml(path)
    ((name, row),) = rows.items() if len(rows) == 1 else [("", None)]
    if not isinstance(row, dict):
        what = "not the table of one benchmark"
        raise DataError(what, where=path, given=", ".join(rows), allowed="[NAME] with its form")
    like = row.get("like", "")
    facts = {field: value for field, value in row.items() if field not in ("like", "layout")}
    if name in BENCHMARKS or not re.fullmatch(r"[\w.-]+", name):
        problem = "a known benchmark has this name" if name in BENCHMARKS else "not a name of a benchmark"
        raise DataError(problem, where=path, given=name, allowed="letters, digits, '-', '_' and '.'")
    if "reader" in facts or (like and BENCHMARKS.find(like).reader != SPEC_READER):
        raise DataError("no layout describes how this is read", where=path, given=facts.get("reader", like))
    usual = {"name": name, "title": name, "reader": SPEC_READER}
    card = check_model(usual | facts, Card, where=path, hint=None)
    return card, _layouts_of(row, f"{path}, layout")


def read_own(path: Path, card: Card, data: Path, images: Path | None) -> Benchmark:
    """The benchmark of one's own that the TOML file `path` describes, of the files in `data`; as `read`."""
    try:
        benchmark = read_layouts(own_spec(path)[1], card, data, images)
    except (IndexError, KeyError, TypeError, ValueError, re.error) as error:
        problem = f"{type(error).__name__}: {error}"
        what = "the layout fits neither its form nor its files"
        raise DataError(what, where=path, given=problem) from error
    # Pages look for the pictures of a benchmark where its questions were read from.
    return replace(benchmark, path=path if data == path.parent else data)


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """The benchmark of a card in `data`, a file or folder of its release."""
    return read_layouts(layouts(card.name), card, data, images)


def read_layouts(
    candidates: Sequence[Layout], card: Card, data: Path | None, images: Path | None
) -> Benchmark:
    """As `read`, by the first of some layouts whose files are there, else by the last."""
    if data is None:
        raise no_data(card)
    layout = next((layout for layout in candidates if layout.fits(data)), candidates[-1])
    # Where images are looked for, and whether subsets are missing.
    home, part = data, False
    if layout.open is not None:
        function, options = _call(layout.open)
        table, part = function(card, data, **options)
    elif layout.subsets:
        table, part = _open_subsets(layout, card, data)
    elif layout.pattern:
        table = _open_pattern(layout, card, data)
    elif layout.hub and not layout.cells:
        columns = [*layout.lazy, *(text.rstrip("?") for text in layout.images if isinstance(text, str))]
        columns += [alias for name in columns for alias in layout.aliases.get(name, ())]
        table = open_rows(data, columns, split=card.split, names=layout.files)
    else:
        home = released_file(card, data, layout.files)
        table = _read(home, layout)
    return benchmark_of(layout, card, table, home, images, path=data, part=part)


def benchmark_of(
    layout: Layout,
    card: Card,
    table: DataTable,
    home: Path | None,
    images: Path | None,
    *,
    path: Path | None = None,
    part: bool = False,
) -> Benchmark:
    """The questions of the rows of a table; `home` is the folder or file it was read from."""
    table = _prepared(layout, card, table, home)
    ids = _ids(table, layout)
    if layout.title:
        title = layout.title.format(Path(table.source).name)
        card = card.model_copy(update={"title": title, "size": None, "counts": {}})
    captions: Any = _side(table, layout.captions)
    pictures = _images(layout, table, ids, home, images)
    if layout.right:
        # The right candidate of each row, whose place is in a column, goes before the others in their order.
        candidates, ordered = captions if len(captions) > 1 else pictures, []
        rows_of = zip(integers(table, layout.right).tolist(), zip(*candidates, strict=True), strict=True)
        for row, (place, of_row) in enumerate(rows_of):
            number = sum(candidate is not None for candidate in of_row)
            if not 0 <= place < number:
                where = table.where(row, layout.right)
                raise DataError("no such option", where=where, given=place, allowed=f"0 to {number - 1}")
            ordered.append((of_row[place], *of_row[:place], *of_row[place + 1 :]))
        candidates[:] = zip(*ordered, strict=True)
    groupings, card = _groupings(layout, card, table)
    names = [_column(table, text) for text in layout.caption_ids]
    columns = [integers(table, name) for name in layout.votes if name in table]
    votes = np.stack(columns, axis=1).astype(np.float64) if columns else None
    facts: dict[str, Any] = {"caption_ids": names, "votes": votes, "correct": layout.correct, "part": part}
    facts |= {"layout": layout, "table": table, "home": home or Path()}
    rows = _TableRows(card, ids, captions, pictures, groupings, table.source, path, **facts)
    benchmark: Benchmark = getattr(rows, card.form)()
    return benchmark


@dataclass(frozen=True, eq=False, kw_only=True)
class _TableRows(Rows):
    """Rows with what their layout says of them; the method of a form makes its questions."""

    layout: Layout
    table: DataTable
    home: Path

    def gallery(self) -> Benchmark:
        return self.described(() if self.captions else self.table["captions"])

    def statement(self) -> Benchmark:
        layout, table = self.layout, self.table
        dev = np.asarray(table[layout.calibration], dtype=bool) if layout.calibration else None
        return self.true_or_false(truths(table, layout.truth), dev)

    def rated(self) -> Benchmark:
        layout, table = self.layout, self.table
        plain = {text: collapsed(text) for side in self.captions for text in dict.fromkeys(side)}
        names = self.caption_ids or [[f"{name}_c{j}" for name in self.ids] for j in range(len(self.captions))]
        sides = zip(names, self.captions, strict=True)
        written = [list(map(Caption, of_side or (), map(plain.get, side))) for of_side, side in sides]
        named = layout.references if isinstance(layout.references, tuple) else ()
        facts: dict[str, Any] = {
            "ratings": ratings_of(table, layout.ratings, missing=layout.missing) if layout.ratings else None,
            "references": references_in(table, named) if named else table.columns.get("references"),
            "most": None if named else layout.references,
            "notes": table.notes,
            **layout.judged,
        }
        if "label" in table:
            facts["label"] = np.asarray(table["label"], dtype=np.int64)
        whole = replace(self, captions=written).judged(**facts)
        return replace(whole, corpus=self.home / layout.corpus if layout.corpus else None)

    preference = rated


def _prepared(layout: Layout, card: Card, table: DataTable, home: Path | None) -> DataTable:
    """The rows that are read, behind all steps."""
    for name, others in layout.aliases.items():
        there = (alias for alias in (name, *others) if alias in table or alias.partition(".")[0] in table)
        other = next(there, name)
        if other != name:
            table = table.with_columns({name: _with(table, other)[other]})
    for name, value in layout.where.items():
        table = _with(table, name)
        column = np.array(labels(table, name) if isinstance(value, str) else integers(table, name))
        chosen = column == value if isinstance(value, str) else column >= value
        table = table.take(np.flatnonzero(chosen).tolist())
    for step in layout.steps:
        function, options = _call(step)
        table = function(table, card, home, **options)
    return table


def _groupings(layout: Layout, card: Card, table: DataTable) -> tuple[dict[str, tuple[str, ...]], Card]:
    """The groups of each grouping, and the card without counts of groups that the rows do not tell."""
    groupings: dict[str, tuple[str, ...]] = {}
    lacking: set[str] = set()
    for name, text in layout.groups.items():
        column = _column(table, text) if name != "*" else None
        if name == "*":
            start = str(text)
            names = [column for column in table.columns if column.startswith(start)]
            groupings |= {name.removeprefix(start): labels(table, name) for name in names}
        elif column is not None:
            groupings[name] = column
        elif isinstance(text, Label):
            lacking |= {*text.allowed, *text.names}
    for name, whole in layout.averaged.items():
        count = Counter(groupings[whole])
        groupings[name] = tuple(
            "" if group in card.macro_without or count[group] < card.macro_least else group
            for group in groupings[whole]
        )
    if lacking:
        counts = {group: number for group, number in card.counts.items() if group not in lacking}
        card = card.model_copy(update={"counts": counts})
    return groupings, card


def _call(step: Mapping[str, Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function that a step names, of another module as "module:name", and its options."""
    module, _, name = step["call"].rpartition(":")
    function = resolve(f"counterfoil.benchmarks.readers.{module or 'table_functions'}:{name}")
    return function, {option: value for option, value in step.items() if option != "call"}


def _read(path: Path, layout: Layout) -> DataTable:
    table = listed_rows(path, layout.cells) if layout.cells else read_table(path)
    if layout.keyed and table.kind != "keyed":
        raise DataError(f"not an object keyed by {layout.keyed}", where=table.source)
    if layout.columns:
        table = replace(table, columns={name: table[name] for name in layout.columns})
    table = table.with_columns({ROW: range(len(table))})
    if 0 < layout.limit < len(table):
        table = table.take(range(layout.limit))
    return table


def _open_subsets(layout: Layout, card: Card, data: Path) -> tuple[DataTable, bool]:
    """The rows of all subsets in a folder, or of the one file `data` is, and whether subsets are missing."""
    names = {name: layout.files[0].replace("{subset}", name) for name in layout.subsets}
    last = Path(layout.files[0]).name
    if data.is_file():
        if data.name not in names.values():
            raise DataError("not the file of a subset", where=data, allowed=list(names.values()))
        paths = {name: data for name, file in names.items() if file == data.name}
    elif "{subset}" not in last and (data / last).is_file() and data.resolve().name in names:
        paths = {data.resolve().name: data / last}
    else:
        paths = {name: data / file for name, file in names.items() if (data / file).is_file()}
        if layout.partial and not paths:
            raise DataError(f"no {last} in this folder", where=data, allowed=list(names.values()))
        if not layout.partial:
            released_set(card, data, list(names.values()), hint="name one file to read that subset alone")
    tables = [_read(path, layout) for path in paths.values()]
    table = stack(tables, source=str(data), column="subset", values=list(paths))
    return table, not layout.partial and len(paths) < len(layout.subsets)


def _open_pattern(layout: Layout, card: Card, data: Path) -> DataTable:
    """The rows of all files whose paths in the folder `data` fit a pattern, in the order of what it takes."""
    last = card.name.rpartition("-")[2]
    pattern = re.compile(layout.pattern.replace("NAME", last))
    paths = {data.name: data}
    if not data.is_file():
        files = data.rglob("*" + pattern.pattern.rpartition(".")[2])
        paths = {f"/{path.relative_to(data).as_posix()}": path for path in files}
    matches = [(match, paths[name]) for name in paths if (match := pattern.fullmatch(name))]
    if not matches:
        allowed = layout.allowed.replace("NAME", last)
        raise DataError(f"no file of '{card.title}' here", where=data, allowed=allowed)

    matches.sort(key=lambda of: [[natural(part) for part in text.split("/")] for text in of[0].groups("")])
    double = first_double([match.groups() for match, _ in matches])
    if double is not None:
        raise DataError("two files of one name", where=data, given=", ".join(double))
    tables = []
    for match, path in matches:
        # Some releases have files without rows.
        if layout.cells and path.stat().st_size < 16 and read_json(path) == []:
            continue
        table = _read(path, layout)
        groups = {name: (text,) * len(table) for name, text in match.groupdict("").items()}
        tables.append(table.with_columns(groups))
    return stack(tables, source=str(data)) if tables else DataTable({}, str(data))


def _with(table: DataTable, name: str) -> DataTable:
    """The table with what `name` means as a column of that name, but for one that need not be there."""
    if name in table:
        return table
    if name == ROW:
        return table.with_columns({ROW: row_numbers(table)})
    head, *path = name.rstrip("?").split(".")
    if head not in table and name.endswith("?"):
        return table
    cells: Sequence[Any] = table[head]
    for key in path:
        below = []
        for row, cell in enumerate(cells):
            try:
                below.append(cell[int(key)] if isinstance(cell, list | tuple) else cell[key])
            except (KeyError, IndexError, TypeError, ValueError):
                what, given = f"no '{'.'.join(path)}' in the cell", shown(table[head][row])
                raise DataError(what, where=table.where(row, head), given=given) from None
        cells = below
    return table.with_columns({name: cells})


@cache
def _pieces(template: str) -> tuple[tuple[str, str, str], ...]:
    return tuple((literal, name or "", form or "") for literal, name, form, _ in Formatter().parse(template))


def _column(table: DataTable, text: str | Label, *, empty: bool = True) -> tuple[str, ...] | None:
    """The texts of each row, none of which is empty unless `empty`."""
    if isinstance(text, str) and "{" in text:
        pieces: list[Iterable[str]] = []
        for literal, name, form in _pieces(text):
            pieces.append([literal] * len(table))
            if name:
                plain = _with(table, name)
                if name not in plain:
                    return None
                if form:
                    pieces.append([format(number, form) for number in integers(plain, name).tolist()])
                else:
                    pieces.append(labels(plain, name))
        return tuple(map("".join, zip(*pieces, strict=True)))
    if isinstance(text, str):
        plain = _with(table, text)
        if text not in plain:
            return None
        return labels(plain, text) if empty else texts(plain, text)
    values = _column(table, text.of, empty=empty)
    if values is None:
        return None
    if text.pattern:
        pattern = re.compile(text.pattern)
        matches = {value: pattern.search(value) for value in dict.fromkeys(values)}
        taken = {
            value: next((group for group in match.groups() if group), match[0]) if match else ""
            for value, match in matches.items()
        }
        values = tuple(taken[value] for value in values)
    odd = next((row for row, value in enumerate(values) if text.allowed and value not in text.allowed), None)
    if odd is not None:
        where = table.where(odd, None if "{" in text.of else text.of.rstrip("?"))
        raise DataError("unknown label", where=where, given=values[odd] or "(empty)", allowed=text.allowed)
    if text.names:
        listed = {new: (old,) if isinstance(old, str) else old for new, old in text.names.items()}
        new_of = {old: new for new, names in listed.items() for old in names}
        usual = text.otherwise
        values = tuple(new_of.get(value, value if usual is None else usual) for value in values)
    return values


def _ids(table: DataTable, layout: Layout) -> tuple[str, ...]:
    """The ids of the questions; raises `DataError` naming the row whose id is empty, or another's too."""
    ids = _column(table, layout.id)
    assert ids is not None
    if layout.repeats:
        return unique_ids(ids)
    last = [name for _, name, _ in _pieces(layout.id) if name] or [layout.id]
    return names(table.with_columns({last[-1]: ids}), last[-1])


def _side(table: DataTable, columns: Sequence[str | Label]) -> list[Sequence[str | None]]:
    """The texts of all candidates, a column for each; None where a row has fewer or lacks the text."""
    spread: list[Sequence[str | None]] = []
    for text in columns:
        if isinstance(text, str) and "*" in text:
            name, _, number = text.partition("*")
            least = int(number.rstrip("+") or 1)
            for row, cell in enumerate(table[name]):
                fits = isinstance(cell, list) and all(isinstance(one, str) and one.strip() for one in cell)
                if not fits or len(cell) < least or (number.isdecimal() and len(cell) > least):
                    many = f"{least} texts or more" if number.endswith("+") else f"{number} texts".lstrip()
                    what, where = f"not a list of {many}", table.where(row, name)
                    raise DataError(what, where=where, given=shown(cell), allowed="['a text', ...]")
            spread += zip_longest(*table[name])
        else:
            spread.append(_column(table, text, empty=False) or (None,) * len(table))
    return spread


def _images(
    layout: Layout, table: DataTable, ids: Sequence[str], home: Path | None, images: Path | None
) -> list[Any]:
    """The images of the questions, a column for each: files by their paths, or bytes in cells."""
    if layout.frames is not None:
        names_of_videos = texts(table, str(layout.images[0]))
        features = (home or Path()) / layout.features
        folder = images or (features if features.is_dir() else None)
        source_of = find(folder, dict.fromkeys(names_of_videos)) if folder is not None else {}
        sampling = Sampling(count=layout.frames)
        videos = {name: Video(name, source_of.get(name), sampling=sampling) for name in names_of_videos}
        return [[videos[name] for name in names_of_videos]]
    boxes = _boxes(table, layout.crop)
    first = layout.images[0] if isinstance(layout.images[0], str) else "{"
    plain = table if {*first} & {*"{*"} else _with(table, first)
    if first in plain and not isinstance(plain[first][0], str):
        called = [_column(table, text) for text in layout.image_ids]
        columns: list[Any] = []
        for k, text in enumerate(map(str, layout.images)):
            cells = _with(table, text)
            ids_of = called[k] if called else [f"{name}_i{k}" for name in ids]
            source = "" if layout.known_photos and layout.known_photos[k] else None
            pairs = enumerate(zip(ids_of or (), boxes, strict=True))
            columns.append(
                [Image(name, cell_source(cells, text, row, None), box, source) for row, (name, box) in pairs]
            )
        return columns
    prefix = _column(table, layout.prefix) if layout.prefix else None
    sides = _side(table, layout.image_files or layout.images)
    if prefix is not None:
        starts = [zip(prefix, side, strict=True) for side in sides]
        sides = [[None if name is None else start + name for start, name in side] for side in starts]
    # A table of results prints images that it does not carry.
    names = dict.fromkeys(name for side in sides for name in side if name and not name.startswith("<PIL."))
    sources = _sources(layout, list(names), home, images)
    named = _side(table, layout.images) if layout.image_files and not layout.by_question else sides
    photos = (_column(table, layout.photo) if layout.photo else None) or ("",) * len(table)

    def image(k: int, row: int, file: str | None) -> Image | None:
        if file is None and not layout.by_question:
            return None
        name, box, photo = str(named[k][row]), boxes[row], photos[row]
        if layout.by_question:
            is_photo = not layout.known_photos or layout.known_photos[k]
            return Image(f"{ids[row]}_i{k}", sources.get(str(file)), box, "" if is_photo else None)
        if layout.crop and (box is not None or layout.image_files):
            photo = str(file)
        if box is not None and not layout.image_files:
            name = f"{name}#{','.join(map(str, box))}"
        return Image(name, sources.get(str(file)), box, photo)

    return [[image(k, row, file) for row, file in enumerate(side)] for k, side in enumerate(sides)]


def _sources(
    layout: Layout, names: Sequence[str], home: Path | None, images: Path | None
) -> Mapping[str, Any]:
    if not names:
        return {}
    if layout.folders:
        # Files of COCO have shorter names since 2017.
        file_names = [tuple(dict.fromkeys((name, name.removeprefix("COCO_val2014_")))) for name in names]
        return dict(zip(names, photographs(file_names, layout.folders, home, images), strict=True))
    sources: dict[str, Any] = {**pictures_of(names, home, images, suffixes=layout.suffixes)}
    # Arrays are frames of videos.
    arrays = {name: file for name, file in sources.items() if file and file.path.suffix == ".npy"}
    return sources | {name: BgrFrame(file.path) for name, file in arrays.items()}


def _boxes(table: DataTable, columns: Sequence[str]) -> list[tuple[int, int, int, int] | None]:
    """(left, top, right, bottom) per row; None for rows without a box."""
    boxes: list[tuple[int, int, int, int] | None] = [None] * len(table)
    tables = [_with(table, name) for name in columns]
    if not columns or any(name not in one for name, one in zip(columns, tables, strict=True)):
        return boxes
    rows = [row for row, cell in enumerate(tables[0][columns[0]]) if cell is not None]
    pairs = zip(columns, tables, strict=True)
    x, y, w, h = (integers(one.take(rows), name).tolist() if rows else [] for name, one in pairs)
    for row, left, top, width, height in zip(rows, x, y, w, h, strict=True):
        if width < 1 or height < 1:
            raise DataError("empty box", where=table.where(row), given=f"{width} x {height} pixels")
        boxes[row] = (left, top, left + width, top + height)
    return boxes


_LABEL = re.compile(r"(?P<id>.+)_c[01]_i[01]")
_COLUMNS = {"caption", "negative_caption", "type", "subtype"}


def from_table(card: Card, table: DataTable) -> Benchmark | None:
    """The benchmark of `card` that the rows of `table` themselves ask, in their order; None if they do not.

    Released tables of BiVLC, SugarCrepe and Winoground do, of Winoground without the captions.
    """
    columns = set(table.columns)
    cells: dict[str, Sequence[Any]] = {}
    if card.name == "bivlc" and columns >= _COLUMNS:
        cells = dict.fromkeys(("image", "negative_image"), ["(not at hand)"] * len(table))
    elif card.name == "winoground" and "label" in columns:
        matches = [_LABEL.fullmatch(cell) if isinstance(cell, str) else None for cell in table["label"]]
        if not all(matches):
            return None
        ids = dict.fromkeys(match["id"] for match in matches if match)
        table = DataTable({"id": tuple(ids)}, table.source)
    elif card.name != "sugarcrepe" or not columns >= {"filename", *_COLUMNS}:
        return None
    return benchmark_of(layouts(card.name)[0], card, table.with_columns(cells), None, None)


def caption_words(data: Path) -> Int[ndarray, "n 2"]:
    """Length in words (split at blanks) of both captions of every item of Winoground, in their order."""
    (layout,) = layouts("winoground")
    table = open_rows(data, ("image_0", "image_1"), split="test", names=layout.files)
    sides = ("caption_0", "caption_1")
    if sides[0] in table:
        counts = [[len(text.split()) for text in texts(table, side)] for side in sides]
    else:
        counts = [integers(table, f"{side}_words").tolist() for side in sides]
    return np.array(counts, dtype=np.int64).T
