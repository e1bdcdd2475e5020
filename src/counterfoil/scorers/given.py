"""Answers that are already there: tables of scores or outcomes, and files of embeddings.

The header of a table names what it holds (`counterfoil.scorers.score_table_layouts`). Which row answers which
question of a benchmark is decided elsewhere, by ids, captions or row order; nothing here knows a benchmark.
Scores of all images with all captions, and rankings, have modules of their own (`given_arrays`, `rankings`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int64
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.data.tables import DataTable, read_table
from counterfoil.errors import DataError
from counterfoil.scorers.base import DEFAULT, Ability, Identity, Options, reject_unused_options
from counterfoil.scorers.given_arrays import GivenSimilarity, load_similarity, read_embeddings
from counterfoil.scorers.rankings import GivenRankings, holds_rankings, load_rankings
from counterfoil.scorers.score_table_layouts import Kind, recognise
from counterfoil.scorers.score_tables import parse
from counterfoil.store import digest_file, digest_value


@dataclass(frozen=True, eq=False)
class GivenTable:
    """Scores or outcomes of one scorer, one entry per question.

    `kind` says which of the two is there and in what shape:

    * `quad_scores`: `values` is (n, 2 captions, 2 images), as in `counterfoil.data.Scores`
    * `choice_scores`: `values` is (n, k), the right candidates first; of preferences (n, 2), in their order
    * `rated_scores`: `values` is (n,), one score per question
    * `drawn_scores`: `values` is (n, 2, draws), of preferences whose references were drawn
    * `quad_outcomes`: `right` maps `ipos2t`, `ineg2t`, `tpos2i`, `tneg2i` to (n,) booleans
    * `choice_outcome`: `right` maps `accuracy` to (n,) booleans

    Tables of one row per pair ("17_c0_i1") are folded into one entry per question, in order of appearance.
    """

    does: ClassVar[tuple[Ability, ...]] = ("given_scores",)

    identity: Identity
    #: The table as read, with whatever captions and groups it carries. Its rows are the entries, except where
    #: pairs were folded (`folded`). A folder's files follow each other in order of their names.
    table: DataTable
    #: The columns the numbers come from, in order: ("score",) or ("c0_i0", "c0_i1", "c1_i0", "c1_i1").
    column: tuple[str, ...]
    kind: Kind
    #: What was recognised, in words for people: "scores of pairs of quads in column score; ids in 'label'".
    described: str
    #: One id per entry, unique within a subset; None where the table has none: rows in the benchmark's order.
    ids: tuple[str, ...] | None = None
    #: Each entry's cell in the column `subset` (in a folder: its file's name); None where there is none.
    subsets: tuple[str, ...] | None = None
    values: NDArray[np.float64] | None = None
    right: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    #: Of outcomes, which entries hold no answer, and count as wrong; None where all do.
    unanswered: NDArray[np.bool_] | None = None
    #: Whether several rows of the table were folded into one entry.
    folded: bool = False
    #: The columns that ids, and the sides of two candidates, were read from.
    id: str | None = None
    side: str | None = None

    def __len__(self) -> int:
        """Number of entries, one per question."""
        return len(self.values) if self.values is not None else len(next(iter(self.right.values())))

    def take(self, rows: Int64[ndarray, "rows"]) -> "GivenTable":
        """The chosen entries, in this order."""
        whole = self.table
        if not self.folded:
            columns = {name: [cells[row] for row in rows] for name, cells in whole.columns.items()}
            whole = DataTable(columns, whole.source, whole.kind)
        return replace(
            self,
            table=whole,
            ids=None if self.ids is None else tuple(self.ids[row] for row in rows),
            subsets=None if self.subsets is None else tuple(self.subsets[row] for row in rows),
            values=None if self.values is None else self.values[rows],
            right={name: right[rows] for name, right in self.right.items()},
            unanswered=None if self.unanswered is None else self.unanswered[rows],
        )


@dataclass(frozen=True, eq=False)
class GivenEmbeddings:
    """Embeddings of images and captions computed elsewhere.

    `images` is (number of images, width) and `captions` (number of captions, width), as stored (float32 or
    float64, finite, no zero rows, not necessarily of unit length). Where ids are None the rows are in the
    benchmark's order.
    """

    does: ClassVar[tuple[Ability, ...]] = ("given_embeddings",)

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


def load(argument: str, options: Options = DEFAULT) -> GivenTable | GivenSimilarity | GivenRankings:
    """The answers in a CSV, JSON, JSONL or Parquet file, or in a folder with a file per subset.

    An npy file is a similarity (see `given_arrays`); a JSON object with "i2t" and "t2i", and an npz file, are
    rankings (see `rankings`). `options.column` picks the column where the header leaves a choice. A run's own
    folder gives its `answers.parquet`. Raises `ScoreError` for headers that say nothing or too much, and for
    missing, doubled or non-finite scores; `DataError` for files that cannot be read.
    """
    # Of what is no table no rows can be folded.
    other = replace(options, whole_rows=False, unanswered=DEFAULT.unanswered)
    if Path(argument).suffix.lower() == ".npy":
        return load_similarity(argument, other)
    if holds_rankings(Path(argument)):
        return load_rankings(argument, other)
    reject_unused_options(f"given:{argument}", options, "column", "whole_rows", "unanswered")
    path = _table_at(Path(argument))
    table = read_table(path)
    layout = recognise(table, options.column, whole_rows=options.whole_rows)
    parsed = parse(table, layout, unanswered=options.unanswered)
    files = [Path(part.file) for part in table.parts] if path.is_dir() else [path]
    return GivenTable(
        identity=Identity(
            name=f"given:{argument}",
            weights=digest_value([[file.name, digest_file(file)] for file in files]),
            options={"kind": layout.kind, "columns": list(layout.columns)},
        ),
        table=table,
        column=layout.columns,
        kind=layout.kind,
        described=f"{layout.described}; {len(files)} files" if path.is_dir() else layout.described,
        ids=parsed.ids,
        subsets=None if parsed.subsets is None else without_prefix(parsed.subsets),
        values=parsed.values,
        right=parsed.right,
        unanswered=parsed.unanswered,
        folded=layout.folded,
        id=layout.id,
        side=layout.side,
    )


def load_embeddings(argument: str, options: Options = DEFAULT) -> GivenEmbeddings:
    """The embeddings in an npz file; see `counterfoil.scorers.given_arrays` for the names it may use."""
    reject_unused_options(f"embeddings:{argument}", options)
    found = read_embeddings(Path(argument))
    return GivenEmbeddings(
        identity=Identity(name=f"embeddings:{argument}", weights=digest_file(argument)),
        images=found.images,
        captions=found.captions,
        image_ids=found.image_ids,
        caption_ids=found.caption_ids,
    )


def without_prefix(subsets: Sequence[str]) -> tuple[str, ...]:
    """Names of files without the word that all begin with, up to a hyphen: released answers name the model.

    >>> without_prefix(["gpt4v-add_att", "gpt4v-swap_obj", "gpt4v-add_att"])
    ('add_att', 'swap_obj', 'add_att')
    """
    first = {name.partition("-")[0] for name in subsets}
    if len(first) != 1 or not all("-" in name for name in subsets):
        return tuple(subsets)
    return tuple(name.partition("-")[2] for name in subsets)


def _table_at(path: Path) -> Path:
    """The table to read at `path`: itself, or the scores of a run where it is the run's own folder."""
    if not path.is_dir():
        return path
    if (path / "answers.parquet").is_file():
        return path / "answers.parquet"
    runs = sorted(str(file.parent) for file in path.glob("*/answers.parquet"))
    if runs:
        raise DataError(
            "a run has a folder per benchmark, name one of them",
            where=path,
            allowed=runs,
            hint="as in given:RUN/BENCHMARK",
        )
    return path
