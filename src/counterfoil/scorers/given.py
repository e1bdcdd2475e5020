"""Answers that are already there: tables of scores or outcomes, and files of embeddings.

A table says in its header what it holds (`counterfoil.scorers.layouts` reads that). Which row answers which
question of a benchmark is decided elsewhere, by ids, captions or row order; nothing here knows a benchmark.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.data.tables import Table, read_table
from counterfoil.errors import DataError, ScoreError
from counterfoil.scorers.base import DEFAULT, Identity, Options
from counterfoil.scorers.layouts import Kind, Layout, Parsed, parse, recognise
from counterfoil.store import digest_file, digest_value

#: Files that a folder of tables is made of.
SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".parquet")


@dataclass(frozen=True, eq=False)
class GivenTable:
    """Scores or outcomes of one scorer, one entry per question.

    `kind` says which of the two is there and in what shape:

    * `quad_scores`: `values` is (n, 2 captions, 2 images), as in `counterfoil.data.Scores`
    * `choice_scores`: `values` is (n, k), the right candidates first
    * `quad_outcomes`: `right` maps `ipos2t`, `ineg2t`, `tpos2i`, `tneg2i` to (n,) booleans
    * `choice_outcome`: `right` maps `accuracy` to (n,) booleans

    Tables of one row per pair ("17_c0_i1") are folded into one entry per question, in order of appearance.
    """

    identity: Identity
    #: The table as read, with whatever captions and groups it carries. Its rows are the entries, except where
    #: pairs were folded (`folded`). A folder's files follow each other in order of their names.
    table: Table
    #: The columns the numbers come from, in order: ("score",) or ("c0_i0", "c0_i1", "c1_i0", "c1_i1").
    column: tuple[str, ...]
    kind: Kind
    #: What was recognised, in words for people: "scores of pairs of quads in column score; ids in 'label'".
    described: str
    #: One id per entry, unique within a file; None where the table has none: rows in the benchmark's order.
    ids: tuple[str, ...] | None = None
    #: Name of the file (without its suffix) each entry comes from; None where one file was given.
    subsets: tuple[str, ...] | None = None
    values: NDArray[np.float64] | None = None
    right: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    #: Whether several rows of the table were folded into one entry.
    folded: bool = False

    def __len__(self) -> int:
        """Number of entries, one per question."""
        return len(self.values) if self.values is not None else len(next(iter(self.right.values())))


@dataclass(frozen=True, eq=False)
class GivenEmbeddings:
    """Embeddings of images and captions that somebody else computed.

    `images` is (number of images, width) and `captions` (number of captions, width), as stored (float32 or
    float64, finite, no zero rows, not necessarily of unit length). Where ids are None the rows are in the
    benchmark's order.
    """

    identity: Identity
    images: Float[ndarray, "images width"]
    captions: Float[ndarray, "captions width"]
    image_ids: tuple[str, ...] | None = None
    caption_ids: tuple[str, ...] | None = None

    def compare(
        self, captions: Float[ndarray, "pairs width"], images: Float[ndarray, "pairs width"]
    ) -> Float[ndarray, "pairs"]:
        """Cosine of captions[i] with images[i] in float64, in [-1, 1]."""
        left, right = captions.astype(np.float64), images.astype(np.float64)
        dot = np.einsum("ij,ij->i", left, right)
        return dot / (np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1))


def load(argument: str, options: Options = DEFAULT) -> GivenTable:
    """The answers in a CSV, JSON, JSONL or Parquet file, or in a folder with a file per subset.

    `options.column` picks the column where the header leaves a choice. A run's own folder gives its
    `scores.parquet`. Raises `ScoreError` for headers that say nothing or too much, and for missing, doubled
    or non-finite scores; `DataError` for files that cannot be read.
    """
    path = Path(argument)
    files = _files(path)
    tables = [read_table(file) for file in files]
    layouts = [recognise(table, options.column) for table in tables]
    _same_layout(files, layouts)
    layout = layouts[0]
    parts = [parse(table, each) for table, each in zip(tables, layouts, strict=True)]
    several = path.is_dir() and files != [path / "scores.parquet"]
    identity = Identity(
        name=f"given:{argument}",
        weights=digest_value([[file.name, digest_file(file)] for file in files]),
        options={"kind": layout.kind, "columns": list(layout.columns)},
    )
    return GivenTable(
        identity=identity,
        table=_joined(tables, path) if several else tables[0],
        column=layout.columns,
        kind=layout.kind,
        described=f"{layout.described}; {len(files)} files" if several else layout.described,
        ids=_concatenated_ids(parts),
        subsets=tuple(file.stem for file, part in zip(files, parts, strict=True) for _ in range(part.size))
        if several
        else None,
        values=np.concatenate([part.values for part in parts if part.values is not None])
        if parts[0].values is not None
        else None,
        right={name: np.concatenate([part.right[name] for part in parts]) for name in parts[0].right},
        folded=layout.folded,
    )


def load_embeddings(argument: str, options: Options = DEFAULT) -> GivenEmbeddings:
    """The embeddings in an npz file; see `counterfoil.scorers.embeddings` for the names it may use."""
    from counterfoil.scorers.embeddings import read

    found = read(Path(argument))
    return GivenEmbeddings(
        identity=Identity(name=f"embeddings:{argument}", weights=digest_file(argument)),
        images=found.images,
        captions=found.captions,
        image_ids=found.image_ids,
        caption_ids=found.caption_ids,
    )


def _files(path: Path) -> list[Path]:
    """The tables to read at `path`: itself, a run's scores, or all tables of a folder by name."""
    if not path.exists():
        raise DataError("no such file or folder", where=path, hint="check the path after 'given:'")
    if not path.is_dir():
        return [path]
    if (path / "scores.parquet").is_file():
        return [path / "scores.parquet"]
    found = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file())
    if found:
        return found
    runs = sorted(str(file.parent) for file in path.glob("*/scores.parquet"))
    raise DataError(
        "the folder holds no table",
        where=path,
        allowed=f"files ending in {', '.join(SUFFIXES)}",
        hint=f"a run has a folder per benchmark: {', '.join(runs)}" if runs else None,
    )


def _same_layout(files: Sequence[Path], layouts: Sequence[Layout]) -> None:
    for file, layout in zip(files, layouts, strict=True):
        if (layout.kind, layout.columns, layout.id) != (layouts[0].kind, layouts[0].columns, layouts[0].id):
            raise ScoreError(
                "the files of a folder hold different things",
                where=file,
                given=layout.described,
                allowed=f"{layouts[0].described}, as in {files[0].name}",
                hint="name one file, or keep one scorer's tables alone in a folder",
            )


def _concatenated_ids(parts: Sequence[Parsed]) -> tuple[str, ...] | None:
    if any(part.ids is None for part in parts):
        return None
    return tuple(name for part in parts for name in part.ids or ())


def _joined(tables: Sequence[Table], path: Path) -> Table:
    """One table of all rows, with the columns that every file has."""
    shared = [name for name in tables[0].columns if all(name in table.columns for table in tables)]
    columns = {name: [value for table in tables for value in table.columns[name]] for name in shared}
    return Table(columns=columns, source=str(path))
