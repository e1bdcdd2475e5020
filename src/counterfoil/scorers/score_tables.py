"""The answers in a table whose layout is known: one entry per question, whatever rows they came in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from counterfoil.data.tables import DataTable, booleans, floats
from counterfoil.errors import ScoreError
from counterfoil.metrics.detection import by_label, likelier, two_steps
from counterfoil.scorers.score_table_layouts import DIRECTIONS, ONE_ID, PAIR_ID, SUBSET, TableLayout, is_empty


@dataclass(frozen=True, eq=False)
class Parsed:
    """The answers of one table; see `counterfoil.scorers.given.GivenTable` for the fields."""

    ids: tuple[str, ...] | None
    subsets: tuple[str, ...] | None
    values: NDArray[np.float64] | None = None
    right: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    #: Which entries hold no answer, where some do not and the policy lets them.
    unanswered: NDArray[np.bool_] | None = None


def parse(table: DataTable, layout: TableLayout, *, unanswered: str = "refuse") -> Parsed:
    """The answers in `table`, laid out as `recognise` found.

    Raises `ScoreError` naming file, row (counted from 1, the header not counted) and column for values that
    are missing, not numbers, NaN or infinite, for doubled ids, and for questions that lack some pairs.
    Outcomes that are null or NaN are refused too, unless `unanswered` is "wrong" or "leave-out".
    """
    if layout.detected:
        return _detected(table, layout)
    if layout.side is not None:
        return _fold_sides(table, layout)
    if layout.folded:
        return _fold(table, layout)
    ids = _ids(table, layout.id)[1] if layout.id else None
    subsets = tuple(str(name) for name in table[SUBSET]) if SUBSET in table else None
    if layout.kind in ("quad_outcomes", "choice_outcome"):
        names = tuple(DIRECTIONS) if layout.kind == "quad_outcomes" else ("accuracy",)
        empty = _unanswered(table, layout.columns, unanswered)
        if empty is not None:
            table = _answered_wrong(table, layout.columns)
        right = {name: booleans(table, column) for name, column in zip(names, layout.columns, strict=True)}
        return Parsed(ids=ids, subsets=subsets, right=right, unanswered=empty)
    if layout.kind == "rated_scores":
        return Parsed(ids=ids, subsets=subsets, values=floats(table, layout.columns[0]))
    values = np.stack([floats(table, column) for column in layout.columns], axis=1)
    shape = {"quad_scores": (-1, 2, 2), "drawn_scores": (len(table), 2, -1)}.get(layout.kind, values.shape)
    return Parsed(ids=ids, subsets=subsets, values=values.reshape(shape))


def _unanswered(table: DataTable, columns: Sequence[str], policy: str) -> NDArray[np.bool_] | None:
    """The rows with an empty cell; None where there is none. Raises `ScoreError` where they are refused."""
    empty = np.array([any(is_empty(table[name][row]) for name in columns) for row in range(len(table))])
    if not empty.any():
        return None
    if policy == "refuse":
        row = int(np.argmax(empty))
        column = next(name for name in columns if is_empty(table[name][row]))
        raise ScoreError(
            "a question without an answer",
            where=table.where(row, column),
            given=f"{int(empty.sum()):,} of {len(table):,} without",
            allowed="true or false",
            hint="say what becomes of them with --unanswered wrong or --unanswered leave-out",
        )
    return empty


def _answered_wrong(table: DataTable, columns: Sequence[str]) -> DataTable:
    cells = {name: [False if is_empty(cell) else cell for cell in table[name]] for name in columns}
    return DataTable({**table.columns, **cells}, table.source, table.kind, table.parts)


def _detected(table: DataTable, layout: TableLayout) -> Parsed:
    """Outputs of detectors as outcomes, by the rule of two steps; the k-th of each label is of question k."""
    label = floats(table, "label")
    outputs = [by_label(floats(table, column), label) for column in layout.columns]
    if len(outputs) == 2:
        return Parsed(None, None, right=two_steps(outputs[0], outputs[1]))
    return Parsed(None, None, right={"accuracy": likelier(outputs[0]) == 1})


def _ids(table: DataTable, column: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(subset, id) of every row, as two tuples; an id may occur once in a subset."""
    subsets = tuple(str(name) for name in table[SUBSET]) if SUBSET in table else ("",) * len(table)
    names = []
    first: dict[tuple[str, str], int] = {}
    for row, cell in enumerate(table[column]):
        # Parquet written by data-frame libraries keeps whole numbers beside gaps as 17.0.
        whole = isinstance(cell, float) and cell.is_integer()
        name = str(int(cell)) if whole else str(cell).strip()
        if cell is None or not name or cell != cell:
            raise ScoreError("id is missing", where=table.where(row, column))
        before = first.setdefault((subsets[row], name), row)
        if before != row:
            raise ScoreError(
                "id occurs twice",
                where=table.where(row, column),
                given=f"'{name}', also in {table.where(before)}",
                hint="one row for each",
            )
        names.append(name)
    return subsets, tuple(names)


def _fold(table: DataTable, layout: TableLayout) -> Parsed:
    """Rows of pairs, in any order, to one entry per question."""
    assert layout.id is not None
    subsets, labels = _ids(table, layout.id)
    numbers = floats(table, layout.columns[0])
    quads = layout.kind == "quad_scores"
    slots_of: dict[tuple[str, str], dict[int, float]] = {}
    for row, (subset, label) in enumerate(zip(subsets, labels, strict=True)):
        match = (PAIR_ID if quads else ONE_ID).fullmatch(label)
        if match is None:
            raise ScoreError(
                "the id does not say which pair the score belongs to",
                where=table.where(row, layout.id),
                given=label,
                allowed=f"ids such as '{labels[0]}'",
            )
        slot = 2 * int(match["caption"]) + int(match["image"]) if quads else int(match["slot"])
        slots_of.setdefault((subset, match["id"]), {})[slot] = float(numbers[row])
    width = 4 if quads else max(max(slots) for slots in slots_of.values()) + 1
    for (_, name), slots in slots_of.items():
        if len(slots) != width:
            raise ScoreError(
                f"question '{name}' has {len(slots)} of its {width} scores",
                where=f"{table.source}, column '{layout.columns[0]}'",
                hint="give one row for every pair",
            )
    values = np.asarray(
        [[slots[slot] for slot in range(width)] for slots in slots_of.values()], dtype=np.float64
    )
    return Parsed(
        ids=tuple(name for _, name in slots_of),
        subsets=tuple(subset for subset, _ in slots_of) if SUBSET in table else None,
        values=values.reshape(-1, 2, 2) if quads else values,
    )


def _fold_sides(table: DataTable, layout: TableLayout) -> Parsed:
    """A row per candidate, in any order, to one entry per question."""
    assert layout.id is not None
    assert layout.side is not None
    numbers = floats(table, layout.columns[0])
    sides = [int(str(cell)) for cell in table[layout.side]]
    # A question is told by its id; which may occur once for each side.
    of_side: list[dict[tuple[str, str], float]] = [{}, {}]
    for side in (0, 1):
        rows = [row for row, own in enumerate(sides) if own == side]
        columns = {name: [table[name][row] for row in rows] for name in table.columns}
        subsets, labels = (
            _ids(DataTable(columns, table.source, table.kind, table.parts), layout.id) if rows else ((), ())
        )
        of_side[side] = dict(zip(zip(subsets, labels, strict=True), numbers[rows].tolist(), strict=True))
    odd = next(iter(of_side[0].keys() ^ of_side[1].keys()), None)
    if odd is not None:
        raise ScoreError(
            f"question '{odd[1]}' has one of its 2 scores",
            where=f"{table.source}, column '{layout.columns[0]}'",
            hint="give one row for either side",
        )
    keys = list(of_side[0])
    return Parsed(
        ids=tuple(name for _, name in keys),
        subsets=tuple(subset for subset, _ in keys) if SUBSET in table else None,
        values=np.asarray([[side[key] for side in of_side] for key in keys], dtype=np.float64),
    )
