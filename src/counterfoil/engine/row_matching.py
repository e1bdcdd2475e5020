"""Rows of a given table matched to questions by the captions that the table carries.

Captions are compared in lower case and without blanks at their ends; file name and subset are taken in
where table and benchmark both have them, since a few questions differ in nothing else.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from pathlib import PurePath

import numpy as np
from jaxtyping import Int64
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
from counterfoil.engine.plan import Note
from counterfoil.errors import ScoreError
from counterfoil.scorers.given import GivenTable

#: Names of the columns with the captions of a question, by slot: of quads and of choices between two.
_TWO = (
    ("caption", "caption_0", "true_caption", "positive_caption"),
    ("negative_caption", "caption_1", "false_caption", "foil"),
)
#: The same where two of three are right (SugarCrepe++).
_THREE = (("caption", "caption_0"), ("caption2", "caption_1"), ("negative_caption", "caption_2"))
_FILES = ("filename", "file_name", "image_file", "image_id", "image")

Key = tuple[str, ...]


def captions_agree(given: GivenTable, benchmark: Benchmark, rows: Int64[ndarray, "n"]) -> ScoreError | None:
    """None where the captions of the table's `rows` are those of the questions, or cannot be compared.

    Otherwise the error that names the first row that differs, for the caller to raise.
    """
    theirs, ours = _captions(given, benchmark)
    for slot in sorted(theirs.keys() & ours.keys()):
        for question, row in enumerate(rows):
            if theirs[slot][row] not in ("", ours[slot][question]):
                differing = sum(theirs[slot][r] not in ("", ours[slot][q]) for q, r in enumerate(rows))
                return ScoreError(
                    f"a caption differs from that of question '{benchmark.questions.ids[question]}' "
                    f"of {benchmark.name}",
                    where=given.table.where(int(row)),
                    given=repr(theirs[slot][row]),
                    allowed=repr(ours[slot][question]),
                    hint=f"{differing} of {len(rows)} rows differ: is it the table of another benchmark, "
                    "or in another order?",
                )
    return _files_agree(given, benchmark, rows)


def _files_agree(given: GivenTable, benchmark: Benchmark, rows: Int64[ndarray, "n"]) -> ScoreError | None:
    """None where the images of the table's `rows` are those of the questions, or are called otherwise."""
    theirs = None if given.folded else _files(given)
    ours = _shared(theirs, _file_columns(benchmark))
    if theirs is None or ours is None or not set(ours) <= set(theirs):
        return None
    odd = [question for question, row in enumerate(rows.tolist()) if theirs[row] not in ("", ours[question])]
    if not odd:
        return None
    return ScoreError(
        f"the image differs from that of question '{benchmark.questions.ids[odd[0]]}' of {benchmark.name}",
        where=given.table.where(int(rows[odd[0]])),
        given=theirs[rows[odd[0]]],
        allowed=ours[odd[0]],
        hint=f"{len(odd)} of {len(rows)} rows differ: is the table in another order?",
    )


def matched_by_order(given: GivenTable, benchmark: Benchmark) -> bool:
    """Whether table and benchmark share no captions and no images, so that only the order of rows is left."""
    theirs, ours = _captions(given, benchmark)
    files = None if given.folded else _files(given)
    return not theirs.keys() & ours.keys() and _shared(files, _file_columns(benchmark)) is None


def can_match(given: GivenTable, benchmark: Benchmark) -> bool:
    """Whether every question could be told by captions: table and benchmark have the same slots of them."""
    theirs, ours = _captions(given, benchmark)
    return bool(ours) and theirs.keys() >= ours.keys()


def rows_in_order(given: GivenTable, benchmark: Benchmark) -> Int64[ndarray, "n"]:
    """For every question its row, where the table has one per question and no ids.

    Where table and benchmark both know subsets (a file per subset, or columns), the order is that within each
    subset: the files of a folder follow each other by name, the subsets of a benchmark as it was released.
    Raises `ScoreError` where a subset has another number of rows than questions.
    """
    theirs = _subsets(given)
    ours = _shared(theirs, _subset_columns(benchmark))
    if theirs is None or ours is None:
        return np.arange(len(benchmark), dtype=np.int64)
    rows, questions = Counter(theirs), Counter(ours)
    for subset in dict.fromkeys([*ours, *theirs]):
        if rows[subset] != questions[subset]:
            raise ScoreError(
                f"subset '{subset}' has another number of rows than of questions in {benchmark.name}",
                where=given.table.source,
                given=f"{rows[subset]} rows",
                allowed=str(questions[subset]),
            )
    order = np.empty(len(benchmark), dtype=np.int64)
    order[np.argsort(ours, kind="stable")] = np.argsort(theirs, kind="stable")
    return order


def rows_by_captions(given: GivenTable, benchmark: Benchmark, note: Note) -> Int64[ndarray, "n"]:
    """For every question the row of the table with its captions (and file name and subset, if any).

    Questions that agree in all of these are answered by their rows in order, and `note` is told; so it is
    where rows that belong to no question are dropped. A question without a row, or with more rows than there
    are questions like it, raises `ScoreError`.
    """
    theirs, ours = _keys(given, benchmark)
    rows_of: dict[Key, deque[int]] = defaultdict(deque)
    for row, key in enumerate(theirs):
        rows_of[key].append(row)
    wanted = Counter(ours)
    missing = [q for q, key in enumerate(ours) if len(rows_of[key]) < wanted[key]]
    if missing:
        ids = [benchmark.questions.ids[question] for question in missing]
        raise ScoreError(
            f"questions of {benchmark.name} have no row with their captions",
            where=given.table.source,
            given=f"{len(missing)} of {len(benchmark)} missing: "
            + ", ".join(f"'{name}'" for name in ids[:3])
            + (", ..." if len(ids) > 3 else ""),
            hint=f"the first asks about {' | '.join(repr(part) for part in ours[missing[0]])}",
        )
    doubled = next((key for key in wanted if len(rows_of[key]) > wanted[key]), None)
    if doubled is not None:
        first, second = rows_of[doubled][wanted[doubled] - 1], rows_of[doubled][wanted[doubled]]
        raise ScoreError(
            "a question is answered twice",
            where=f"{given.table.where(first)} and {given.table.where(second)}",
            given=" | ".join(repr(part) for part in doubled),
        )
    alike = sum(count for count in wanted.values() if count > 1)
    if alike:
        note(
            f"{given.table.source}: {alike} questions of {benchmark.name} have the captions of another; "
            "they are matched in order"
        )
    found = np.asarray([rows_of[key].popleft() for key in ours], dtype=np.int64)
    left = sorted(set(range(len(theirs))) - set(found.tolist()))
    if left:
        note(
            f"{given.table.where(left[0])}: {len(left)} of {len(theirs)} rows belong to no question of "
            f"{benchmark.name} and are left out; the first has {' | '.join(repr(p) for p in theirs[left[0]])}"
        )
    return found


def _captions(given: GivenTable, benchmark: Benchmark) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
    """Captions of the table by slot, and of the questions by slot, where they are at hand."""
    if given.folded:  # its rows are pairs, not questions
        return {}, {}
    questions = benchmark.listed
    if not questions.single:
        return {}, {}
    asked, _ = questions.slots()
    names: Sequence[Sequence[str]]
    if asked.shape[1] <= 2:
        names = _TWO[: asked.shape[1]]
    elif asked.shape[1] == 3 and questions.correct == 2:
        names = _THREE
    else:
        names = [(f"caption_{slot}",) for slot in range(asked.shape[1])]
    theirs: dict[int, list[str]] = {}
    ours: dict[int, list[str]] = {}
    for slot, candidates in enumerate(names):
        column = _column(given, candidates)
        if column is not None:
            theirs[slot] = [_plain(cell) for cell in column]
        texts = [benchmark.captions[position].text for position in asked[:, slot]]
        if all(text is not None for text in texts):
            ours[slot] = [_plain(text) for text in texts]
    return theirs, ours


def _keys(given: GivenTable, benchmark: Benchmark) -> tuple[list[Key], list[Key]]:
    """What tells rows apart, and the same of the questions."""
    theirs, ours = _captions(given, benchmark)
    columns = [(theirs[slot], ours[slot]) for slot in sorted(ours)]
    for left, rights in (
        (_files(given), _file_columns(benchmark)),
        (_subsets(given), _subset_columns(benchmark)),
    ):
        right = _shared(left, rights)
        if left is not None and right is not None:
            columns.append((left, right))
    return (
        list(zip(*(left for left, _ in columns), strict=True)),
        list(zip(*(right for _, right in columns), strict=True)),
    )


def _shared(theirs: Sequence[str] | None, ours: Sequence[list[str]]) -> list[str] | None:
    """The column of the benchmark that means what the table's does: they share values."""
    return next((column for column in ours if theirs and set(theirs) & set(column)), None)


def _files(given: GivenTable) -> list[str] | None:
    column = _column(given, _FILES)
    return None if column is None else ["" if cell is None else PurePath(str(cell)).name for cell in column]


def _file_columns(benchmark: Benchmark) -> list[list[str]]:
    first = benchmark.listed.slots()[1][:, 0]
    return [[PurePath(benchmark.images[position].id).name for position in first]]


def _subsets(given: GivenTable) -> list[str] | None:
    if given.subsets is not None:
        return list(given.subsets)
    subset, kind, subtype = (_column(given, (name,)) for name in ("subset", "type", "subtype"))
    if subset is not None:
        return [str(cell) for cell in subset]
    if kind is not None and subtype is not None:
        return [f"{a}_{b}" for a, b in zip(kind, subtype, strict=True)]
    return None


def _subset_columns(benchmark: Benchmark) -> list[list[str]]:
    """Where a benchmark may keep its subsets: before the slash of the ids, or as a grouping, or as two."""
    questions = benchmark.questions
    columns = [[name.split("/")[0] for name in questions.ids]] if all("/" in i for i in questions.ids) else []
    columns += [list(labels) for labels in questions.groupings.values()]
    if {"type", "subtype"} <= questions.groupings.keys():
        pairs = zip(questions.groupings["type"], questions.groupings["subtype"], strict=True)
        columns.append([f"{a}_{b}" for a, b in pairs])
    return columns


def _column(given: GivenTable, names: Sequence[str]) -> Sequence[object] | None:
    lower = {name.lower(): name for name in given.table.columns}
    found = next((lower[name] for name in names if name in lower), None)
    return None if found is None else given.table.columns[found]


def _plain(text: object) -> str:
    return "" if text is None else str(text).strip().lower()
