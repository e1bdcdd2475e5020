"""Tables of scores or outcomes that are there already; nothing here knows a benchmark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.benchmarks.forms.base import NO_CANDIDATE
from counterfoil.benchmarks.tables import DataTable, floats, read_table, shares_right
from counterfoil.errors import DataError, ScoreError
from counterfoil.inputs.files import digest_file, digest_value
from counterfoil.metrics.detection import by_label, likelier, two_steps
from counterfoil.models import precomputed_galleries as galleries, score_table_layouts as layouts
from counterfoil.models.base import DEFAULT, Identity, Options, reject_unused_options
from counterfoil.models.score_table_layouts import Kind, TableLayout


@dataclass(frozen=True, eq=False)
class PrecomputedTable:
    """Scores or outcomes of one model, one entry per question, by the `kind`:

    * `quad_scores`: `values` is (n, 2 captions, 2 images)
    * `choice_scores`: `values` is (n, k), the right candidates first, `NO_CANDIDATE` behind the last of a
      question that has fewer than others; of preferences (n, 2), in their order
    * `rated_scores`: `values` is (n,)
    * `drawn_scores`: `values` is (n, 2, draws), of preferences whose references were drawn
    * `quad_outcomes`: `right` maps directions to (n,) booleans, or to shares of several answers
    * `choice_outcome`: `right` maps `accuracy` to the same

    Tables of one row per pair ("17_c0_i1") are folded into one entry per question, in order of appearance.
    """

    does = ("given_scores",)

    identity: Identity
    #: The table as read; its rows are the entries, except where pairs were `folded`.
    table: DataTable
    #: The columns the numbers come from, in order: ("score",) or ("c0_i0", "c0_i1", "c1_i0", "c1_i1").
    column: tuple[str, ...]
    kind: Kind
    described: str
    #: One id per entry, unique within a subset; None where the table has none: rows in the benchmark's order.
    ids: tuple[str, ...] | None = None
    #: Each entry's cell in the column `subset` (in a folder: its file's name); None where there is none.
    subsets: tuple[str, ...] | None = None
    values: NDArray[np.float64] | None = None
    right: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    #: Of outcomes, which entries hold no answer, and count as wrong; None where all do.
    unanswered: NDArray[np.bool_] | None = None
    folded: bool = False
    #: Whether it may answer some of a benchmark's questions only, which are then those that are measured.
    partial: bool = False
    id: str | None = None
    side: str | None = None

    def __len__(self) -> int:
        return len(self.values) if self.values is not None else len(next(iter(self.right.values())))

    def take(self, rows: Int64[ndarray, "rows"]) -> "PrecomputedTable":
        table = self.table
        if not self.folded:
            columns = {name: [cells[row] for row in rows] for name, cells in table.columns.items()}
            table = DataTable(columns, table.source, table.kind)
        parts = {name: getattr(self, name) for name in ("ids", "subsets", "values", "unanswered")}
        taken: dict[str, Any] = {
            name: part[rows] if isinstance(part, ndarray) else tuple(part[row] for row in rows)
            for name, part in parts.items()
            if part is not None
        }
        right = {name: right[rows] for name, right in self.right.items()}
        return replace(self, table=table, right=right, **taken)


def load(
    argument: str, options: Options = DEFAULT
) -> PrecomputedTable | galleries.PrecomputedSimilarity | galleries.PrecomputedRankings:
    """The answers in a CSV, JSON, JSONL or Parquet file, in a folder with a file per subset, or of a run.

    An npy file is a similarity, a JSON object with "i2t" and "t2i" are rankings.
    """
    path, ending = Path(argument), Path(argument).suffix.lower()
    # Of what is no table no rows can be folded.
    other = replace(options, whole_rows=False, unanswered=DEFAULT.unanswered)
    if ending == ".npy":
        return galleries.load_similarity(argument, other)
    if galleries.holds_rankings(path):
        return galleries.load_rankings(argument, other)
    if ending == ".npz":
        hint = f"embeddings are given as embeddings:{argument}, similarities as npy"
        raise DataError("no table of scores", where=argument, given="an npz file", hint=hint)
    reject_unused_options(f"given:{argument}", options, "column", "whole_rows", "unanswered")
    if (path / "answers.parquet").is_file():
        path = path / "answers.parquet"
    elif runs := sorted(str(file.parent) for file in path.glob("*/answers.parquet")):
        problem, hint = "a run has a folder per benchmark, name one of them", "as in given:RUN/BENCHMARK"
        raise DataError(problem, where=path, allowed=runs, hint=hint)
    table = read_table(path, summaries=True)
    files = [Path(part.file) for part in table.parts] if path.is_dir() else [path]
    weights = digest_value([[file.name, digest_file(file)] for file in files])
    answers = from_table(table, f"given:{argument}", weights, options)
    described = f"{answers.described}; {len(files)} files" if path.is_dir() else answers.described
    return replace(answers, described=described)


def from_table(table: DataTable, name: str, weights: str, options: Options = DEFAULT) -> PrecomputedTable:
    layout = layouts.recognise(table, options.column, whole_rows=options.whole_rows)
    facts = {"kind": layout.kind, "columns": list(layout.columns)}
    identity = Identity(name, weights=weights, options=facts)
    described = "; ".join([layout.described, *(f"{key} is passed over" for key in table.passed_over)])
    recognised: dict[str, Any] = {"folded": layout.folded, "id": layout.id, "side": layout.side}
    given = PrecomputedTable(identity, table, layout.columns, layout.kind, described, **recognised)
    given = with_answers(given, layout, unanswered=options.unanswered)
    return given if given.subsets is None else replace(given, subsets=without_prefix(given.subsets))


def without_prefix(subsets: Sequence[str]) -> tuple[str, ...]:
    """Names of files without the word (of a model) that all begin with, up to a hyphen."""
    named = [name.partition("-") for name in subsets]
    alike = len({first for first, _, _ in named}) == 1 and all(hyphen for _, hyphen, _ in named)
    return tuple(rest for _, _, rest in named) if alike else tuple(subsets)


def with_answers(
    given: PrecomputedTable, layout: TableLayout, *, unanswered: str = "refuse"
) -> PrecomputedTable:
    """The same table with its answers, laid out as `recognise` found."""
    table = given.table
    if layout.detected:
        # Outputs of detectors as outcomes, by the rule of two steps; the k-th of each label is of question k.
        label = floats(table, "label")
        outputs = [by_label(floats(table, column), label) for column in layout.columns]
        if len(outputs) == 2:
            return replace(given, right=two_steps(outputs[0], outputs[1]))
        return replace(given, right={"accuracy": likelier(outputs[0]) == 1})
    if layout.folded:
        return _fold(given, layout)
    ids = _ids(table, layout.id)[1] if layout.id else None
    given = replace(given, ids=ids, subsets=_subsets(table, layout.id))
    if layout.kind in ("quad_outcomes", "choice_outcome"):
        names = tuple(layouts.DIRECTIONS) if layout.kind == "quad_outcomes" else ("accuracy",)
        empty_of = {
            name: np.array(list(map(layouts.is_empty, table[name])), dtype=bool) for name in layout.columns
        }
        empty = _unanswered(table, empty_of, unanswered)
        if empty is not None:
            table = _filled(table, empty_of, False)
        shares = [shares_right(table, column) for column in layout.columns]
        return replace(given, right=dict(zip(names, shares, strict=True)), unanswered=empty)
    if layout.kind == "choice_scores":
        return replace(given, values=_candidate_scores(table, layout.columns))
    values = np.stack([floats(table, column) for column in layout.columns], axis=1)
    shapes = {"quad_scores": (-1, 2, 2), "drawn_scores": (len(table), 2, -1), "rated_scores": (-1,)}
    return replace(given, values=values.reshape(shapes[layout.kind]))


def _filled(table: DataTable, empty_of: Mapping[str, ndarray], value: object) -> DataTable:
    cells = {
        name: [value if none else cell for none, cell in zip(rows.tolist(), table[name], strict=True)]
        for name, rows in empty_of.items()
    }
    return DataTable({**table.columns, **cells}, table.source, table.kind, table.parts)


def _candidate_scores(table: DataTable, columns: Sequence[str]) -> NDArray[np.float64]:
    """Scores of candidates; from the third on cells may be empty behind the last of a row's."""
    empty = [[cell is None or cell == "" for cell in table[name]] for name in columns]
    behind = np.logical_and.accumulate(np.array(empty).reshape(len(columns), -1)[::-1], axis=0)[::-1]
    behind[:2] = False
    without_places = _filled(table, dict(zip(columns, behind, strict=True)), 0.0)
    values = np.stack([floats(without_places, column) for column in columns], axis=1)
    return np.where(behind.T, NO_CANDIDATE, values)


def _unanswered(
    table: DataTable, empty_of: Mapping[str, NDArray[np.bool_]], policy: str
) -> NDArray[np.bool_] | None:
    empty: NDArray[np.bool_] = np.any([*empty_of.values()], axis=0)
    if not empty.any():
        return None
    if policy == "refuse":
        row = int(np.argmax(empty))
        column = next(name for name, rows in empty_of.items() if rows[row])
        where, given = table.where(row, column), f"{int(empty.sum()):,} of {len(table):,} without"
        hint = "say what becomes of them with --unanswered wrong or --unanswered leave-out"
        problem, allowed = "a question without an answer", "true or false"
        raise ScoreError(problem, where=where, given=given, allowed=allowed, hint=hint)
    return empty


def _subsets(
    table: DataTable, column: str | None, sides: Sequence[object] | None = None
) -> tuple[str, ...] | None:
    """Each row's subset; that is its split where the ids of one split are those of another."""
    name = layouts.SUBSET
    if name not in table and "split" in table and column is not None:
        ids = {(str(cell), sides and sides[row]) for row, cell in enumerate(table[column])}
        name = "split" if len(ids) < len(table) else layouts.SUBSET
    return tuple(str(cell) for cell in table[name]) if name in table else None


def _ids(
    table: DataTable, column: str, sides: Sequence[object] | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(subset, id) of every row, as two tuples; an id may occur once in a subset, or for each side."""
    subsets = _subsets(table, column, sides) or ("",) * len(table)
    names = []
    first: dict[tuple[str, str, object], int] = {}
    for row, cell in enumerate(table[column]):
        name = layouts.cell_text(cell)
        if not name or cell != cell:
            raise ScoreError("id is missing", where=table.where(row, column))
        before = first.setdefault((subsets[row], name, sides and sides[row]), row)
        if before != row:
            where, given = table.where(row, column), f"'{name}', also in {table.where(before)}"
            raise ScoreError("id occurs twice", where=where, given=given, hint="one row for each")
        names.append(name)
    return subsets, tuple(names)


def _fold(given: PrecomputedTable, layout: TableLayout) -> PrecomputedTable:
    """Rows of pairs, or of candidates, in any order, to one entry per question."""
    table = given.table
    assert layout.id is not None
    sides = None if layout.side is None else [int(str(cell)) for cell in table[layout.side]]
    subsets, labels = _ids(table, layout.id, sides)
    numbers = floats(table, layout.columns[0])
    quads = layout.kind == "quad_scores"
    slots_of: dict[tuple[str, str], dict[int, float]] = {}
    # Entries are in the order of their first pairs, or of their first candidates.
    for row in range(len(labels)) if sides is None else sorted(range(len(sides)), key=sides.__getitem__):
        subset, label = subsets[row], labels[row]
        if sides is not None:
            name, slot = label, sides[row]
        else:
            match = (layouts.PAIR_ID if quads else layouts.ONE_ID).fullmatch(label)
            if match is None:
                problem = "the id does not say which pair the score belongs to"
                allowed = f"ids such as '{labels[0]}'"
                raise ScoreError(problem, where=table.where(row, layout.id), given=label, allowed=allowed)
            name = match["id"]
            slot = 2 * int(match["caption"]) + int(match["image"]) if quads else int(match["slot"])
        slots_of.setdefault((subset, name), {})[slot] = float(numbers[row])
    width = 4 if quads else 2 if sides else max(max(slots) for slots in slots_of.values()) + 1
    for (_, name), slots in slots_of.items():
        # Of choices some may have fewer candidates than others.
        if len(slots) != width and (quads or len(slots) < 2 or max(slots) >= len(slots)):
            wanted = width if quads else max(2, max(slots) + 1)
            problem = f"question '{name}' has {len(slots)} of its {wanted} scores"
            where = f"{table.source}, column '{layout.columns[0]}'"
            raise ScoreError(problem, where=where, hint="give one row for every pair")
    rows = [[slots.get(slot, NO_CANDIDATE) for slot in range(width)] for slots in slots_of.values()]
    values = np.asarray(rows, dtype=np.float64)
    own_subsets, ids = zip(*slots_of, strict=True)
    values = values.reshape(-1, 2, 2) if quads else values
    return replace(given, ids=ids, subsets=own_subsets if any(own_subsets) else None, values=values)
