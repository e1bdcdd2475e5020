"""Layouts of tables of given answers, by their header; scores come first, since outcomes follow from them."""

import re
from collections.abc import Iterator, Sequence
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
    "question", "question_id", "id", "label", "item_id", "item", "example_id", "example", "uid", "key",
    "index"
)  # fmt: skip
#: The column in which a folder of tables names the file a row is of.
SUBSET = "subset"
SCORES = ("score", "scores", "similarity", "sim", "cosine", "logit", "value")
SIDES = ("side", "candidate", "slot")
#: Columns that name the image (or video) and the caption of a row that is one pair, first the likeliest.
IMAGES = (
    "image_id", "imageid", "img_id", "image", "image_name", "image_file", "image_path", "filename",
    "file_name", "video_id", "video"
)  # fmt: skip
CAPTIONS = (
    "caption_id", "captionid", "cap_id", "candidate_id", "sentence_id", "sentid", "caption", "candidate",
    "sentence", "text"
)  # fmt: skip
OUTCOMES = ("accuracy", "correct", "is_correct", "right", "outcome", "hit", "acc")
#: The four single directions of a quad: ours, then the names of the tables BiVLC releases.
DIRECTIONS = {
    "ipos2t": ("ipos2t", "text_score_i0"),
    "ineg2t": ("ineg2t", "text_score_i1"),
    "tpos2i": ("tpos2i", "image_score_c0"),
    "tneg2i": ("tneg2i", "image_score_c1"),
}
POSITIVE_NEGATIVE = (
    ("positive_score", "negative_score"), ("score_positive", "score_negative"), ("positive", "negative"),
    ("pos_score", "neg_score"), ("score_pos", "score_neg"), ("pos", "neg"), ("true_score", "false_score"),
    ("caption_score", "negative_caption_score"), ("caption_score", "foil_score"),
)  # fmt: skip

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


def recognise(table: DataTable, column: str | None = None, *, whole_rows: bool = False) -> TableLayout:
    """What `table` holds, from its header; of several layouts the one with `column` in it.

    With `whole_rows` every row answers a question of its own, also where ids look like those of pairs.
    """
    if column is not None and column not in table:
        raise ScoreError("no such column", where=table.source, given=column, allowed=list(table.columns))
    identifier = first_column(table, IDS)
    layout = _recognised(table, identifier, column)
    if not whole_rows or layout.side is not None or not (layout.folded or layout.kind == "rated_scores"):
        return layout
    names = tuple(columns[0] for columns in item_columns(table) if columns)
    identifier = layout.id
    if identifier is not None and names and len({*map(str, table.columns[identifier])}) < len(table):
        # Beside those, a column called "label" or "item" is an id only where it could be one.
        identifier = None
    if identifier is not None or not names:
        return _layout("rated_scores", layout.columns, identifier, "a score per question")
    named = " and ".join(f"'{name}'" for name in names)
    described = f"a score per question in column {', '.join(layout.columns)}; questions by {named}"
    return TableLayout("rated_scores", layout.columns, None, described)


def item_columns(table: DataTable) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns that may name a row's image, and those that may name its caption or hold its text."""
    lower = _lower(table)
    images, captions = (tuple(lower[name] for name in names if name in lower) for names in (IMAGES, CAPTIONS))
    return images, captions


def _recognised(table: DataTable, identifier: str | None, column: str | None) -> TableLayout:
    layouts = list(_candidates(table, identifier))
    if column is not None:
        if chosen := next((layout for layout in layouts if column in layout.columns), None):
            return chosen
        if identifier not in (None, column) and PAIR_ID.fullmatch(str(table.columns[identifier][0]).strip()):
            return _pairs(table, str(identifier), column)
        if _is_truth(table.columns[column]):
            return _outcome(column, identifier)
        if not _is_number(table.columns[column]) or identifier == column:
            problem = "the column is neither true/false nor a score"
            where = f"{table.source}, column '{column}'"
            allowed = "true/false or a score per question, or a score with an id column such as '17_c0_i1'"
            hint = f"id columns are named {', '.join(IDS)}"
            raise ScoreError(problem, where=where, allowed=allowed, hint=hint)
        return _pairs(table, identifier, column)
    if layouts:
        first = layouts[0]
        equal = [layout for layout in layouts if (layout.kind, layout.folded) == (first.kind, first.folded)]
        if len(equal) == 1:
            return first
        named = [", ".join(layout.columns) for layout in equal]
    else:
        named = [name for name in table.columns if name != identifier and _is_truth(table.columns[name])]
        if len(named) == 1:
            return _outcome(named[0], identifier)
    if named:
        problem, hint = "several columns could be the answers", "choose one with --column"
        raise ScoreError(problem, where=table.source, given=" | ".join(named), hint=hint)
    raise ScoreError(
        "no scores or outcomes recognised in the header",
        where=table.source,
        given=", ".join(table.columns) or "(no columns)",
        allowed="id with c0_i0, c0_i1, c1_i0, c1_i1 (quads); positive_score, negative_score, or s0, s1, "
        "... (choices); ipos2t, ineg2t, tpos2i, tneg2i, or correct (right or wrong); or score (of a "
        "question, or of a pair by an id like 17_c0_i1)",
        hint="choose a column with --column",
    )


def _candidates(table: DataTable, identifier: str | None) -> Iterator[TableLayout]:
    if "text_pred" in table and "label" in table:
        # What detectors of synthetic captions and images gave, by BiVLC's authors.
        both = "img_pred" in table
        kind: Kind = "quad_outcomes" if both else "choice_outcome"
        columns: tuple[str, ...] = ("text_pred", "img_pred") if both else ("text_pred",)
        items = f"{'captions and images' if both else 'captions'} in columns {', '.join(columns)}"
        described = f"outputs of detectors of synthetic {items}, which item in 'label'; "
        described += "answers by the rule of two steps"
        yield TableLayout(kind, columns, None, described, folded=True, detected=True)
    yield from _scores(table, identifier)
    directions = [first_column(table, names) for names in DIRECTIONS.values()]
    if all(name is not None for name in directions):
        yield _layout("quad_outcomes", tuple(map(str, directions)), identifier, "outcomes of quads")
    first = "" if identifier is None else str(table.columns[identifier][0]).strip()
    of_pairs = bool(PAIR_ID.fullmatch(first) or ONE_ID.fullmatch(first))
    # Ones and zeros under the name of a score are outcomes, unless ids say which pair a row is of.
    scores = {name: cells for name, cells in table.columns.items() if name.lower() in SCORES}
    truths = () if of_pairs else tuple(name for name, cells in scores.items() if _is_truth(cells))
    for name, values in table.columns.items():
        if name in truths or (name.lower() in OUTCOMES and _is_truth(values, empty=True, parts=True)):
            yield _outcome(name, identifier)
    for name, values in scores.items():
        if name not in truths and _is_number(values):
            yield _pairs(table, identifier, name)


def _scores(table: DataTable, identifier: str | None) -> Iterator[TableLayout]:
    """Layouts with a column for each pair or candidate, or a row for each candidate."""
    lower = _lower(table)
    cells = {(match[1], match[2]): name for name, match in _matches(table, _CELL)}
    numbered = {int(match[1]): name for name, match in _matches(table, _CANDIDATE)}
    names = {name.lower() for name, _ in _matches(table, _CANDIDATE)}
    if not cells and names == {"s00", "s01", "s10", "s11"}:
        # s with the caption's number and the image's, as BiVLC's paper writes it.
        cells = {(c, i): lower[f"s{c}{i}"] for c in "01" for i in "01"}
    if len(cells) >= 4:
        columns = tuple(cells[c, i] for c in "01" for i in "01")
        yield _layout("quad_scores", columns, identifier, "scores of quads")
    if len(numbered) >= 2 and sorted(numbered) == list(range(len(numbered))):
        columns = tuple(numbered[slot] for slot in range(len(numbered)))
        yield _layout("choice_scores", columns, identifier, f"scores of {len(columns)} candidates")
    for good, bad in POSITIVE_NEGATIVE:
        if good in lower and bad in lower and _is_number(table.columns[lower[good]]):
            what = "scores of the right and the wrong candidate"
            yield _layout("choice_scores", (lower[good], lower[bad]), identifier, what)
    # The two candidates of a preference, as runs keep them: a and b, or a_d0, b_d0, a_d1, ...
    draws = {(match[1].lower(), int(match[2])): name for name, match in _matches(table, _DRAW)}
    count = len(draws) // 2
    if draws and draws.keys() == {(side, draw) for side in "ab" for draw in range(count)}:
        columns = tuple(draws[side, draw] for side in "ab" for draw in range(count))
        what = f"scores of two candidates in {count} draws of references"
        yield _layout("drawn_scores", columns, identifier, what)
    elif {"a", "b"} <= lower.keys():
        a, b = table.columns[lower["a"]], table.columns[lower["b"]]
        # Nothing but 0 and 1 is rather what models called a and b got right, unless a run says otherwise.
        if _is_number(a) and (identifier == "question" or not (_is_truth(a) and _is_truth(b))):
            columns = lower["a"], lower["b"]
            yield _layout("choice_scores", columns, identifier, "scores of two candidates")
    side_column = first_column(table, SIDES)
    if identifier and side_column and {str(cell) for cell in table.columns[side_column]} <= {"0", "1"}:
        for name in (name for name in table.columns if name.lower() in SCORES):
            what = f"scores of candidates in column {name}, which one in '{side_column}'"
            described = f"{what}; ids in '{identifier}'"
            yield TableLayout("choice_scores", (name,), identifier, described, folded=True, side=side_column)


def _matches(table: DataTable, pattern: re.Pattern[str]) -> list[tuple[str, re.Match[str]]]:
    return [(name, match) for name in table.columns if (match := pattern.fullmatch(name))]


def _outcome(column: str, identifier: str | None) -> TableLayout:
    return _layout("choice_outcome", (column,), identifier, "right or wrong per question")


def _pairs(table: DataTable, identifier: str | None, column: str) -> TableLayout:
    """A table of one row per pair, of quads or of choices as the first label says; else one per question."""
    first = "" if identifier is None else str(table.columns[identifier][0]).strip()
    if PAIR_ID.fullmatch(first):
        return _layout("quad_scores", (column,), identifier, "scores of pairs of quads", folded=True)
    if ONE_ID.fullmatch(first):
        return _layout("choice_scores", (column,), identifier, "scores of pairs of choices", folded=True)
    return _layout("rated_scores", (column,), identifier, "a score per question")


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
    return {name.lower(): name for name in table.columns}


def _is_truth(values: Sequence[object], *, empty: bool = False, parts: bool = False) -> bool:
    """Whether every value is true or false; some may be `empty`, or `parts`, shares between 0 and 1."""

    def fits(value: object) -> bool:
        with suppress(ValueError):
            if parts and isinstance(value, str | float) and 0 < float(value) < 1:
                return True
        return str(value).strip().lower() in _TRUTH

    cells = [value for value in values if not (empty and is_empty(value))]
    return bool(cells) and all(map(fits, cells))


def cell_text(cell: object) -> str:
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
