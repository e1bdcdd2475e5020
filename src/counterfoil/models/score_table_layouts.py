"""Layouts of tables of given answers, recognised by the header; `precomputed` reads the numbers.

Recognised, in this order where a header fits several: scores before outcomes, because outcomes follow from
scores and not the other way round.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from counterfoil.benchmarks.tables import DataTable
from counterfoil.errors import ScoreError

Kind = Literal[
    "quad_scores", "quad_outcomes", "choice_scores", "choice_outcome", "rated_scores", "drawn_scores"
]

#: Columns that name the question a row answers (or, with a score, the pair), first the likeliest.
IDS = (
    "question",
    "question_id",
    "id",
    "label",
    "item_id",
    "item",
    "example_id",
    "example",
    "uid",
    "key",
    "index",
)
#: The column in which a folder of tables names the file a row is of.
SUBSET = "subset"
#: Columns with one score per row, where a row is a pair.
SCORES = ("score", "scores", "similarity", "sim", "cosine", "logit", "value")
#: Columns that say which of two candidates a row is of, 0 or 1.
SIDES = ("side", "candidate", "slot")
#: Columns that name the image (or video) and the caption of a row that is one pair, first the likeliest.
IMAGES = (
    "image_id",
    "imageid",
    "img_id",
    "image",
    "image_name",
    "image_file",
    "image_path",
    "filename",
    "file_name",
    "video_id",
    "video",
)
CAPTIONS = (
    "caption_id",
    "captionid",
    "cap_id",
    "candidate_id",
    "sentence_id",
    "sentid",
    "caption",
    "candidate",
    "sentence",
    "text",
)
#: Columns with right or wrong per question.
OUTCOMES = ("accuracy", "correct", "is_correct", "right", "outcome", "hit", "acc")
#: The four single directions of a quad: ours, then the names of the tables BiVLC releases.
DIRECTIONS = {
    "ipos2t": ("ipos2t", "text_score_i0"),
    "ineg2t": ("ineg2t", "text_score_i1"),
    "tpos2i": ("tpos2i", "image_score_c0"),
    "tneg2i": ("tneg2i", "image_score_c1"),
}
#: The scores of a right and a wrong candidate.
POSITIVE_NEGATIVE = (
    ("positive_score", "negative_score"),
    ("score_positive", "score_negative"),
    ("positive", "negative"),
    ("pos_score", "neg_score"),
    ("score_pos", "score_neg"),
    ("pos", "neg"),
    ("caption_score", "negative_caption_score"),
    ("caption_score", "foil_score"),
    ("true_score", "false_score"),
)

_CELL = re.compile(r"[ctq]([01])_?i([01])", re.IGNORECASE)
_DRAW = re.compile(r"([ab])_d(\d+)", re.IGNORECASE)
_CANDIDATE = re.compile(r"s(\d+)", re.IGNORECASE)
#: Ids that say which pair of a quad, or which candidate of a choice, a row is of.
PAIR_ID = re.compile(r"(?P<id>.+)_c(?P<caption>[01])_i(?P<image>[01])")
ONE_ID = re.compile(r"(?P<id>.+)_[cis](?P<slot>\d+)")
_TRUTH = {"true", "false", "yes", "no", "1", "0", "1.0", "0.0"}


@dataclass(frozen=True)
class TableLayout:
    """What a table was recognised as; `columns` are in the order of their slots."""

    kind: Kind
    columns: tuple[str, ...]
    id: str | None
    described: str
    #: Whether a row is one pair, so that several rows make one question.
    folded: bool = False
    #: The column that says which candidate a row is of, where ids do not.
    side: str | None = None
    #: Whether the columns are outputs of detectors, a row per natural and per synthetic item.
    detected: bool = False
    #: Whether the columns hold free text that names letters of options.
    texts: bool = False


#: Free text of chat models, as ColorSwap released it: the responses about the first and the second image, and
#: beside them a log with both captions in the order shown and the right letter.
RESPONSES = ("response_image_1", "response_image_2")
LOGS = ("log_1", "log_2")
CAPTIONS_SHOWN = ("caption_1", "caption_2")
RIGHT_LETTER = "correct_answer"


def recognise(table: DataTable, column: str | None = None, *, whole_rows: bool = False) -> TableLayout:
    """What `table` holds, from its header; `column` says which column to use where there is a choice.

    A column that belongs to a set (`c0_i0` of the four scores of a quad) stands for the set. With
    `whole_rows` every row answers a question of its own, also where ids look like those of pairs. Raises
    `ScoreError` for headers in which nothing, or more than one thing of equal right, is recognised, listing
    the candidates.
    """
    if column is not None and column not in table:
        raise ScoreError("no such column", where=table.source, given=column, allowed=list(table.columns))
    identifier = first_column(table, IDS)
    layout = _recognised(table, identifier, column)
    if whole_rows and layout.side is None and (layout.folded or layout.kind == "rated_scores"):
        return _whole_rows(table, layout)
    return layout


def item_columns(table: DataTable) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns that may name a row's image, and those that may name its caption or hold its text."""
    lower = _lower(table)
    images, captions = (tuple(lower[name] for name in names if name in lower) for names in (IMAGES, CAPTIONS))
    return images, captions


def _whole_rows(table: DataTable, layout: TableLayout) -> TableLayout:
    """A score per row, each of an image and a caption where columns name those."""
    names = tuple(columns[0] for columns in item_columns(table) if columns)
    identifier = layout.id
    if identifier is not None and names:
        # Beside those, a column called "label" or "item" is an id only where it could be one.
        cells = [str(cell) for cell in table.columns[identifier]]
        identifier = identifier if len(set(cells)) == len(cells) else None
    if identifier is not None or not names:
        return _layout("rated_scores", layout.columns, identifier, "a score per question")
    named = " and ".join(f"'{name}'" for name in names)
    described = f"a score per question in column {', '.join(layout.columns)}; questions by {named}"
    return TableLayout("rated_scores", layout.columns, None, described)


def _recognised(table: DataTable, identifier: str | None, column: str | None) -> TableLayout:
    layouts = [layout for find in _FINDERS for layout in find(table, identifier)]
    if column is not None:
        chosen = [layout for layout in layouts if column in layout.columns]
        if chosen:
            return chosen[0]
        if identifier not in (None, column) and PAIR_ID.fullmatch(str(table.columns[identifier][0]).strip()):
            return _pairs(table, str(identifier), column)
        if _is_truth(table.columns[column]):
            return _outcome(column, identifier)
        if not _is_number(table.columns[column]) or identifier == column:
            raise ScoreError(
                "the column is neither true/false nor a score",
                where=f"{table.source}, column '{column}'",
                allowed="true/false per question, a score per question, or a score with an id column such as "
                "'17_c0_i1'",
                hint=f"id columns are named {', '.join(IDS)}",
            )
        return _pairs(table, identifier, column)
    if not layouts:
        candidates = [name for name in table.columns if name != identifier and _is_truth(table.columns[name])]
        if len(candidates) == 1:
            return _outcome(candidates[0], identifier)
        if candidates:
            raise _ambiguous(table, candidates)
        raise ScoreError(
            "no scores or outcomes recognised in the header",
            where=table.source,
            given=", ".join(table.columns) or "(no columns)",
            allowed="id with c0_i0, c0_i1, c1_i0, c1_i1 (quads); positive_score, negative_score, or s0, s1, "
            "... (choices); ipos2t, ineg2t, tpos2i, tneg2i, or correct (right or wrong); or score (of a "
            "question, or of a pair by an id like 17_c0_i1)",
            hint="choose a column with --column",
        )
    first = layouts[0]
    equal = [layout for layout in layouts if (layout.kind, layout.folded) == (first.kind, first.folded)]
    if len(equal) > 1:
        raise _ambiguous(table, [", ".join(layout.columns) for layout in equal])
    return first


def _quad_scores(table: DataTable, identifier: str | None) -> list[TableLayout]:
    matches = ((name, _CELL.fullmatch(name)) for name in table.columns)
    cells = {(match[1], match[2]): name for name, match in matches if match}
    numbers = {name.lower(): name for name in table.columns if _CANDIDATE.fullmatch(name)}
    if not cells and set(numbers) == {"s00", "s01", "s10", "s11"}:
        # s with the caption's number and the image's, as BiVLC's paper writes it.
        cells = {(name[1], name[2]): column for name, column in numbers.items()}
    if len(cells) < 4:
        return []
    columns = tuple(cells[c, i] for c in "01" for i in "01")
    return [_layout("quad_scores", columns, identifier, "scores of quads")]


def _choice_scores(table: DataTable, identifier: str | None) -> list[TableLayout]:
    layouts = []
    numbered = {int(m.group(1)): name for name in table.columns if (m := _CANDIDATE.fullmatch(name))}
    if len(numbered) >= 2 and sorted(numbered) == list(range(len(numbered))):
        columns = tuple(numbered[slot] for slot in range(len(numbered)))
        layouts.append(_layout("choice_scores", columns, identifier, f"scores of {len(columns)} candidates"))
    lower, what = _lower(table), "scores of the right and the wrong candidate"
    return layouts + [
        _layout("choice_scores", (lower[good], lower[bad]), identifier, what)
        for good, bad in POSITIVE_NEGATIVE
        if good in lower and bad in lower and _is_number(table.columns[lower[good]])
    ]


def _quad_outcomes(table: DataTable, identifier: str | None) -> list[TableLayout]:
    columns = tuple(first_column(table, names) for names in DIRECTIONS.values())
    named = tuple(name for name in columns if name is not None)
    return [_layout("quad_outcomes", named, identifier, "outcomes of quads")] if len(named) == 4 else []


def _choice_outcome(table: DataTable, identifier: str | None) -> list[TableLayout]:
    scores = () if _names_pairs(table, identifier) else SCORES
    return [
        _outcome(column, identifier)
        for column, cells in table.columns.items()
        if (column.lower() in OUTCOMES and _is_truth(cells, empty=True, parts=True))
        or (column.lower() in scores and _is_truth(cells))
    ]


def _outcome(column: str, identifier: str | None) -> TableLayout:
    return _layout("choice_outcome", (column,), identifier, "right or wrong per question")


def _pair_scores(table: DataTable, identifier: str | None) -> list[TableLayout]:
    truths = not _names_pairs(table, identifier)
    return [
        _pairs(table, identifier, column)
        for column, cells in table.columns.items()
        if column.lower() in SCORES and not (truths and _is_truth(cells)) and _is_number(cells)
    ]


def _two_scores(table: DataTable, identifier: str | None) -> list[TableLayout]:
    """Scores of the two candidates of a preference, as runs keep them: a and b, or a_d0, b_d0, a_d1, ..."""
    lower = _lower(table)
    matches = ((name, _DRAW.fullmatch(name)) for name in lower.values())
    draws = {(match[1].lower(), int(match[2])): name for name, match in matches if match}
    count = len(draws) // 2
    if draws and draws.keys() == {(side, draw) for side in "ab" for draw in range(count)}:
        columns = tuple(draws[side, draw] for side in "ab" for draw in range(count))
        what = f"scores of two candidates in {count} draws of references"
        return [_layout("drawn_scores", columns, identifier, what)]
    if not {"a", "b"} <= lower.keys() or not _is_number(table.columns[lower["a"]]):
        return []
    # Nothing but 0 and 1 would rather be what models called a and b got right, unless a run says otherwise.
    if identifier != "question" and all(_is_truth(table.columns[lower[side]]) for side in "ab"):
        return []
    return [_layout("choice_scores", (lower["a"], lower["b"]), identifier, "scores of two candidates")]


def _side_scores(table: DataTable, identifier: str | None) -> list[TableLayout]:
    """A row per candidate: the question's id, which of the two it is, and its score."""
    side = first_column(table, SIDES)
    if identifier is None or side is None or not {str(cell) for cell in table.columns[side]} <= {"0", "1"}:
        return []
    layouts = []
    for column in (column for column in table.columns if column.lower() in SCORES):
        what = f"scores of candidates in column {column}, which one in '{side}'; ids in '{identifier}'"
        layouts.append(TableLayout("choice_scores", (column,), identifier, what, folded=True, side=side))
    return layouts


def _detections(table: DataTable, identifier: str | None) -> list[TableLayout]:
    """What detectors of synthetic captions and images gave, as BiVLC's authors released it."""
    if "text_pred" not in table or "label" not in table:
        return []
    both = "img_pred" in table
    kind: Kind = "quad_outcomes" if both else "choice_outcome"
    columns = ("text_pred", "img_pred") if both else ("text_pred",)
    items = "captions and images" if both else "captions"
    what = f"outputs of detectors of synthetic {items} in columns {', '.join(columns)}, which item in 'label'"
    described = f"{what}; answers by the rule of two steps"
    return [TableLayout(kind, columns, None, described, folded=True, detected=True)]


def _texts(table: DataTable, identifier: str | None) -> list[TableLayout]:
    """Free text of a chat model that names the letter of a caption, as ColorSwap's authors released."""
    if not all(name in table for name in (*RESPONSES, *LOGS)):
        return []
    if not all(isinstance(table[name][0], Mapping) for name in LOGS if len(table)):
        return []
    what = "letters of captions in the free text of"
    described = f"{what} {', '.join(RESPONSES)}; ids in '{identifier}'" if identifier else what
    return [TableLayout("quad_outcomes", RESPONSES, identifier, described, texts=True)]


_FINDERS: tuple[Callable[[DataTable, str | None], list[TableLayout]], ...] = (
    _detections,
    _texts,
    _quad_scores,
    _choice_scores,
    _two_scores,
    _side_scores,
    _quad_outcomes,
    _choice_outcome,
    _pair_scores,
)


def _names_pairs(table: DataTable, identifier: str | None) -> bool:
    """Whether the ids say which pair of a question a row is of."""
    first = "" if identifier is None else str(table.columns[identifier][0]).strip()
    return bool(PAIR_ID.fullmatch(first) or ONE_ID.fullmatch(first))


def _pairs(table: DataTable, identifier: str | None, column: str) -> TableLayout:
    """A table of one row per pair, of quads or of choices as the first label says; else one per question."""
    first = "" if identifier is None else str(table.columns[identifier][0]).strip()
    if PAIR_ID.fullmatch(first):
        return _layout("quad_scores", (column,), identifier, "scores of pairs of quads", folded=True)
    if ONE_ID.fullmatch(first):
        return _layout("choice_scores", (column,), identifier, "scores of pairs of choices", folded=True)
    return _layout("rated_scores", (column,), identifier, "a score per question")


def _ambiguous(table: DataTable, candidates: Sequence[str]) -> ScoreError:
    return ScoreError(
        "several columns could be the answers",
        where=table.source,
        given=" | ".join(candidates),
        hint="choose one with --column",
    )


def _layout(
    kind: Kind, columns: tuple[str, ...], identifier: str | None, what: str, folded: bool = False
) -> TableLayout:
    many = "columns" if len(columns) > 1 else "column"
    rows = f"ids in '{identifier}'" if identifier else "no id column"
    return TableLayout(kind, columns, identifier, f"{what} in {many} {', '.join(columns)}; {rows}", folded)


def first_column(table: DataTable, names: Sequence[str]) -> str | None:
    """The column with the first of `names` that is there, upper and lower case alike."""
    lower = _lower(table)
    return next((lower[name] for name in names if name in lower), None)


def _lower(table: DataTable) -> dict[str, str]:
    """The columns by their names in lower case."""
    return {name.lower(): name for name in table.columns}


def _is_truth(values: Sequence[object], *, empty: bool = False, parts: bool = False) -> bool:
    """Whether every value is true or false (as such, in words, or as 1 and 0).

    Some may be `empty`, or `parts`: shares between 0 and 1 of several answers that are right.
    """
    cells = [value for value in values if not (empty and is_empty(value))]
    return bool(cells) and all(
        str(value).strip().lower() in _TRUTH or (parts and _is_part(value)) for value in cells
    )


def _is_part(value: object) -> bool:
    with suppress(ValueError):
        return isinstance(value, str | float) and 0 < float(value) < 1
    return False


def cell_text(cell: object) -> str:
    """A cell as a text; "" of null."""
    # Parquet written by data-frame libraries keeps whole numbers beside gaps as 17.0.
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return "" if cell is None else str(cell).strip()


def is_empty(cell: object) -> bool:
    """Whether a cell holds no answer: null, NaN, or a text of blanks or one that means null.

    >>> [is_empty(cell) for cell in (None, float("nan"), "", " NaN ", "null", False, 0, "no")]
    [True, True, True, True, True, False, False, False]
    """
    if cell is None or (isinstance(cell, float) and cell != cell):
        return True
    return isinstance(cell, str) and cell.strip().lower() in ("", "nan", "null", "none", "n/a", "na")


def _is_number(values: Sequence[object]) -> bool:
    """Whether the first value that there is, is a number, as itself or in words."""
    first = next((value for value in values if value is not None and str(value).strip()), None)
    with suppress(ValueError):
        float(str(first))
        return True
    return False
