"""Given answers to a benchmark's questions: by ids where there are any, else by captions, else by row.

Numbers at the wrong question look like those of a weak model: what does not fit is an error.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, product
from operator import contains
from pathlib import PurePath, PurePosixPath
from typing import Any, Literal

import numpy as np
from jaxtyping import Float64, Int64
from numpy import ndarray

from counterfoil.benchmarks.answers import Answers, Outcomes, Scores
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms.base import NO_CANDIDATE
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.benchmarks.tables import shown
from counterfoil.engine.plan import Note, few, warn
from counterfoil.engine.session import Session, compare_rows, with_provenance
from counterfoil.errors import DataError, ScoreError
from counterfoil.models import score_table_layouts as layouts
from counterfoil.models.precomputed import PrecomputedTable, with_answers
from counterfoil.models.precomputed_galleries import PrecomputedEmbeddings, PrecomputedSimilarity

#: Names of the columns with the captions of a question, by slot: of quads and of choices between two.
_TWO = (
    ("caption", "caption_0", "true_caption", "positive_caption"),
    ("negative_caption", "caption_1", "false_caption", "foil"),
)
#: The same where two of three are right (SugarCrepe++).
_THREE = (("caption", "caption_0"), ("caption2", "caption_1"), ("negative_caption", "caption_2"))
_FILES = ("filename", "file_name", "image_file", "image_id", "image")


def answers_given(benchmark: Benchmark, given: Any, *, session: Session) -> Answers:
    """The answers that a table or embeddings give to a benchmark's questions."""
    return with_provenance(join_scores(given, benchmark, note=session.note), given, session=session)


def join_scores(
    given: PrecomputedTable | PrecomputedEmbeddings, benchmark: Benchmark, *, note: Note = warn
) -> Answers:
    """What `given` answers to every question of `benchmark`, in the order of its questions.

    A table is matched by its ids (with a file per subset: `subset/id`); else by captions with file name and
    subset, where both have those; else by row, within each subset if both know it, and captions must agree.
    Rated captions are matched by the questions' ids, or by image and caption; embeddings by ids, or in order.
    """
    if isinstance(given, PrecomputedEmbeddings):
        return _compare(given, benchmark)
    given, rows = _of_questions(given, benchmark, note)
    if given.values is not None:
        scores = given.values[rows]
        if given.kind == "choice_scores":
            scores = np.full(benchmark.listed.shape, NO_CANDIDATE)
            scores[:, : given.values.shape[1]] = given.values[rows]
            _check_candidates(given, benchmark, scores, rows)
        return Scores(scores).check(benchmark, where=given.table.source)
    return Outcomes({name: right[rows] for name, right in given.right.items()})


def matched(given: PrecomputedTable, benchmark: Benchmark, *, note: Note = warn) -> PrecomputedTable:
    given, rows = _of_questions(given, benchmark, note)
    return replace(given.take(rows), ids=benchmark.questions.ids, subsets=None)


def covered(given: PrecomputedTable, benchmark: Benchmark) -> Benchmark:
    """The questions that a table has answers to, by their ids; raises `ScoreError` where it has none."""
    ids = set(given.ids or ())
    rows = np.array([i for i, name in enumerate(benchmark.questions.ids) if name in ids], dtype=np.int64)
    if not len(rows):
        problem, allowed = f"answers no question of {benchmark.name}", few(list(benchmark.questions.ids))
        raise ScoreError(problem, where=given.table.source, given=few(list(given.ids or ())), allowed=allowed)
    if len(rows) == len(benchmark):
        return benchmark
    title = f"{benchmark.title} ({len(rows):,} of its {len(benchmark):,})"
    return benchmark.part(rows, title)


def answered(given: Any, benchmark: Benchmark, *, where: str = "") -> tuple[Any, Benchmark]:
    """A matched table, or the answers of a model, and the benchmark, without questions that have none."""
    if given.unanswered is None or not given.unanswered.any():
        return given, benchmark
    rows = np.flatnonzero(~given.unanswered)
    if not len(rows):
        raise ScoreError("no question is answered", where=where or given.table.source)
    title = f"{benchmark.title} (those answered of its {len(benchmark):,})"
    return given.take(rows), benchmark.part(rows, title)


def _of_questions(
    given: PrecomputedTable, benchmark: Benchmark, note: Note
) -> tuple[PrecomputedTable, Int64[ndarray, "n"]]:
    """The table as one of the kind that is asked for, and its entry for every question."""
    named = set(map(str.lower, given.column))
    outcomes = given.kind in benchmark.questions.given and named & set(layouts.OUTCOMES)
    one_score = given.kind != "rated_scores" and len(given.column) == 1 and given.side is None
    if benchmark.questions.row_per_question and one_score and not outcomes:
        layout = layouts.TableLayout("rated_scores", given.column, given.id, given.described)
        given = replace(with_answers(given, layout), kind=layout.kind, right={}, folded=False)
    questions = benchmark.listed
    if given.kind not in questions.given:
        problem = f"the table answers questions of another form than those of {benchmark.name}"
        raise ScoreError(problem, where=given.table.source, given=given.described, allowed=questions.given_as)
    if given.values is not None and given.kind != "drawn_scores":
        shape = questions.shape[1:]
        # Of questions with different numbers of candidates those at hand may be the ones with fewer.
        fewer = questions.filled is not None and given.values.shape[1:] < shape
        if given.values.shape[1:] != shape and not fewer:
            problem = f"the table has another number of candidates than {benchmark.name}"
            allowed = str(shape[0])
            raise ScoreError(problem, where=given.table.source, given=given.values.shape[1], allowed=allowed)
    return given, _rows(given, benchmark, note)


def _check_candidates(
    given: PrecomputedTable, benchmark: Benchmark, scores: Float64[ndarray, "n k"], rows: Int64[ndarray, "n"]
) -> None:
    filled = benchmark.listed.filled
    wanted = np.ones(scores.shape, dtype=bool) if filled is None else filled
    odd = ((scores != NO_CANDIDATE) != wanted).any(axis=1)
    if odd.any():
        i = int(np.argmax(odd))
        place = int(np.argmax((scores[i] != NO_CANDIDATE) != wanted[i]))
        separate = given.folded or place >= len(given.column)
        where = given.table.source if separate else given.table.where(int(rows[i]), given.column[place])
        where = f"{where}, question '{benchmark.questions.ids[i]}'"
        held, allowed = f"{(scores[i] != NO_CANDIDATE).sum()} scores", str(wanted[i].sum())
        raise ScoreError("not a score for each candidate", where=where, given=held, allowed=allowed)


def _rows(given: PrecomputedTable, benchmark: Benchmark, note: Note) -> Int64[ndarray, "n"]:
    names: Sequence[str] | None = given.ids
    question_ids = set(benchmark.questions.ids)
    if names is not None and given.subsets is not None:
        # Of a folder with a file per subset the benchmark's ids are `subset/id`, or those in the files.
        joined = [f"{subset}/{name}" for subset, name in zip(given.subsets, names, strict=True)]
        names = names if question_ids.isdisjoint(joined) and not question_ids.isdisjoint(names) else joined
    if benchmark.questions.row_per_question:
        # Ids that are those of the questions come first, then images and captions; else the order is left.
        if names is not None and (not any(layouts.item_columns(given.table)) or set(names) == question_ids):
            rows = _rows_by_id(names, benchmark, given.table.source, note)
            _check_pairs(given, benchmark, rows)
            return rows
        rows_of_pairs = _rows_by_pairs(given, benchmark, note)
        if rows_of_pairs is not None:
            return rows_of_pairs
    columns = _Columns(given, benchmark)
    of_table, of_questions = columns.captions
    # Ids of which none is a question's are the table's own numbering.
    has_ids = names is not None and not question_ids.isdisjoint(names)
    if not has_ids and of_questions and of_table.keys() >= of_questions.keys():
        return columns.rows_by_captions(note)
    if names is not None:
        rows = _rows_by_id(names, benchmark, given.table.source, note)
    elif len(given) != len(benchmark):
        problem = f"the table has another number of rows than {benchmark.name} has questions"
        where, allowed = given.table.source, f"{len(benchmark)}, in the benchmark's order"
        hint = "add a column 'id' with the ids of the questions, or columns caption and negative_caption"
        raise ScoreError(problem, where=where, given=f"{len(given)} rows", allowed=allowed, hint=hint)
    else:
        rows = columns.rows_in_order()
    columns.check(rows)
    if names is None and not of_table.keys() & of_questions.keys() and columns.files is None:
        note(
            f"{given.table.source}: no column of ids or captions; its rows are taken to be in the order of "
            f"{benchmark.name}"
        )
    return rows


def _rows_by_id(names: Sequence[str], benchmark: Benchmark, source: str, note: Note) -> Int64[ndarray, "n"]:
    question_ids = benchmark.questions.ids
    row_of = {name: row for row, name in enumerate(names)}
    if len(row_of) < len(names):
        doubled = [name for name, count in Counter(names).items() if count > 1]
        raise ScoreError("ids occur more than once", where=source, given=few(doubled), hint="one row each")
    missing = [name for name in question_ids if name not in row_of]
    wanted = set(question_ids)
    unknown = [name for name in names if name not in wanted]
    if missing:
        given = f"{len(missing)} of {len(question_ids)} questions are missing: {few(missing)}"
        if unknown:
            given += f"; {len(unknown)} of {len(names)} ids are unknown: {few(unknown)}"
        problem = f"the ids are not those of {benchmark.name}"
        hint = None
        if len(missing) < len(question_ids):
            hint = "--unanswered and --available do not cover missing rows: add them, or take their "
            hint += "questions out of the benchmark's data"
        allowed = f"every id once: {few(question_ids)}"
        raise ScoreError(problem, where=source, given=given, allowed=allowed, hint=hint)
    if unknown:
        note(
            f"{source}: {len(unknown):,} of {len(names):,} ids belong to no question of {benchmark.name} and "
            f"are left out: {few(unknown)}"
        )
    return np.asarray([row_of[name] for name in question_ids], dtype=np.int64)


def _compare(given: PrecomputedEmbeddings, benchmark: Benchmark) -> Scores:
    questions = benchmark.listed
    texts = questions.text_pairs()
    captions, others = texts or questions.pairs()
    used_captions, used_images = questions.used()
    images = None
    if texts is None:
        images = item_rows("image", benchmark.images, given, benchmark.name, used_images)
    rows = item_rows("caption", benchmark.captions, given, benchmark.name, used_captions)
    left, right = rows[captions.ravel()], (rows if images is None else images)[others.ravel()]
    embeddings = given.captions if images is None else given.images
    scores = compare_rows(given, given.captions, embeddings, left, right)
    collected = questions.collect(scores.reshape(captions.shape))
    return Scores(collected).check(benchmark, where=given.identity.name)


def item_rows(
    kind: Literal["image", "caption"],
    items: Sequence[Image] | Sequence[Caption],
    given: PrecomputedEmbeddings | PrecomputedSimilarity,
    whose: str,
    used: Int64[ndarray, "used"] | None = None,
) -> Int64[ndarray, "items"]:
    """For every item of `whose`, by name, its row of what is given; -1 only where it is not `used`."""
    names, where = [item.id for item in items], given.identity.name
    ids, rows = (given.image_ids, given.shape[0]) if kind == "image" else (given.caption_ids, given.shape[1])
    if ids is None:
        if rows != len(names):
            problem = f"the number of {kind} {given.held}s is not the number of {kind}s of {whose}"
            allowed, hint = f"{len(names)}, in their order", f"or an array '{kind}_ids' beside them"
            raise DataError(problem, where=where, given=f"{rows} rows", allowed=allowed, hint=hint)
        return np.arange(rows, dtype=np.int64)
    number = {name: row for row, name in enumerate(ids)}
    row_of = np.array([number.get(name, -1) for name in names], dtype=np.int64)
    wanted = range(len(names)) if used is None else used.tolist()
    missing = [names[i] for i in wanted if row_of[i] < 0]
    if missing:
        problem, hint = f"{kind}s of {whose} have no {given.held}", f"ids in the file look like {few(ids)}"
        counted = f"{len(missing)} of {len(wanted)} missing: {few(missing)}"
        raise DataError(problem, where=where, given=counted, hint=hint)
    return row_of


@dataclass(eq=False)
class _Columns:
    """Columns that a table and a benchmark both have, as what the rows hold and what the questions do."""

    given: PrecomputedTable
    benchmark: Benchmark

    @cached_property
    def captions(self) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
        questions = self.benchmark.listed
        of_table: dict[int, list[str]] = {}
        of_questions: dict[int, list[str]] = {}
        if self.given.folded or not questions.single:
            return of_table, of_questions
        caption_slots, _ = questions.slots()
        count = caption_slots.shape[1]
        names: Sequence[Sequence[str]] = _TWO[:count]
        if count > 2:
            three = count == 3 and questions.true_captions == 2
            names = _THREE if three else [(f"caption_{slot}",) for slot in range(count)]
        for slot, candidates in enumerate(names):
            column = self._column(candidates)
            if column is not None:
                of_table[slot] = [_plain(cell) for cell in column]
            positions = caption_slots[:, slot].tolist()
            texts = [self.benchmark.captions[i].text if i >= 0 else "" for i in positions]
            if all(text is not None for text in texts):
                of_questions[slot] = [_plain(text) for text in texts]
        return of_table, of_questions

    @cached_property
    def files(self) -> tuple[list[str], list[str]] | None:
        # Rows of a folded table are pairs, not questions.
        column = None if self.given.folded else self._column(_FILES)
        if column is None:
            return None
        of_table = ["" if cell is None else PurePath(str(cell)).name for cell in column]
        first = self.benchmark.listed.slots()[1][:, 0]
        return _shared(of_table, [[PurePath(self.benchmark.images[position].id).name for position in first]])

    @cached_property
    def subsets(self) -> tuple[list[str], list[str]] | None:
        """Subsets: of the benchmark before the slash of its ids, or as a grouping, or as two."""
        of_table = None if self.given.subsets is None else list(self.given.subsets)
        subset, kind, subtype = (self._column((name,)) for name in ("subset", "type", "subtype"))
        if of_table is None and subset is not None:
            of_table = [str(cell) for cell in subset]
        elif of_table is None and kind is not None and subtype is not None:
            of_table = _joined(kind, subtype)
        if of_table is None:
            return None
        ids, groupings = self.benchmark.questions.ids, self.benchmark.questions.groupings
        columns = [[name.split("/")[0] for name in ids]] if all("/" in name for name in ids) else []
        columns += [list(labels) for labels in groupings.values()]
        if {"type", "subtype"} <= groupings.keys():
            columns.append(_joined(groupings["type"], groupings["subtype"]))
        return _shared(of_table, columns)

    def _column(self, names: Sequence[str]) -> Sequence[object] | None:
        column = layouts.first_column(self.given.table, names)
        return None if column is None else self.given.table.columns[column]

    def check(self, rows: Int64[ndarray, "n"]) -> None:
        theirs, ours = self.captions
        columns = [("a caption", theirs[slot], ours[slot]) for slot in sorted(theirs.keys() & ours.keys())]
        if self.files is not None and set(self.files[1]) <= set(self.files[0]):
            columns.append(("the image", *self.files))
        for what, cells, names in columns:
            odd = [i for i, row in enumerate(rows.tolist()) if cells[row] not in ("", names[i])]
            if odd:
                row, question = int(rows[odd[0]]), self.benchmark.questions.ids[odd[0]]
                problem = f"{what} differs from that of question '{question}' of {self.benchmark.name}"
                where, given, allowed = self.given.table.where(row), repr(cells[row]), repr(names[odd[0]])
                hint = f"{len(odd)} of {len(rows)} rows differ: is it the table of another benchmark, "
                hint += "or in another order?"
                raise ScoreError(problem, where=where, given=given, allowed=allowed, hint=hint)

    def rows_in_order(self) -> Int64[ndarray, "n"]:
        """For every question its row in the benchmark's order, in each subset where both know those."""
        if self.subsets is None:
            return np.arange(len(self.benchmark), dtype=np.int64)
        of_table, of_questions = self.subsets
        rows, questions = Counter(of_table), Counter(of_questions)
        for subset in dict.fromkeys([*of_questions, *of_table]):
            if rows[subset] != questions[subset]:
                name = self.benchmark.name
                problem = f"subset '{subset}' has another number of rows than of questions in {name}"
                where, given = self.given.table.source, f"{rows[subset]} rows"
                raise ScoreError(problem, where=where, given=given, allowed=str(questions[subset]))
        order = np.empty(len(self.benchmark), dtype=np.int64)
        order[np.argsort(of_questions, kind="stable")] = np.argsort(of_table, kind="stable")
        return order

    def rows_by_captions(self, note: Note) -> Int64[ndarray, "n"]:
        """For every question the row with its captions, file name and subset; of equal ones in order."""
        table, benchmark = self.given.table, self.benchmark
        columns = [(self.captions[0][slot], texts) for slot, texts in sorted(self.captions[1].items())]
        columns += [column for column in (self.files, self.subsets) if column is not None]
        of_table, of_questions = (list(zip(*cells, strict=True)) for cells in zip(*columns, strict=True))
        rows_of: dict[tuple[str, ...], deque[int]] = defaultdict(deque)
        for row, key in enumerate(of_table):
            rows_of[key].append(row)
        wanted = Counter(of_questions)
        missing = [q for q, key in enumerate(of_questions) if len(rows_of[key]) < wanted[key]]
        if missing:
            ids = [benchmark.questions.ids[question] for question in missing]
            problem = f"questions of {benchmark.name} have no row with their captions"
            given = f"{len(missing)} of {len(benchmark)} missing: {few(ids)}"
            hint = f"the first asks about {_cells(of_questions[missing[0]])}"
            raise ScoreError(problem, where=table.source, given=given, hint=hint)
        doubled = next((key for key in wanted if len(rows_of[key]) > wanted[key]), None)
        if doubled is not None:
            first, second = rows_of[doubled][wanted[doubled] - 1], rows_of[doubled][wanted[doubled]]
            where = f"{table.where(first)} and {table.where(second)}"
            raise ScoreError("a question is answered twice", where=where, given=_cells(doubled))
        rows = np.asarray([rows_of[key].popleft() for key in of_questions], dtype=np.int64)
        alike = sum(count for count in wanted.values() if count > 1)
        if alike and (rows != np.arange(len(rows))).any():
            note(
                f"{table.source}: {alike} questions of {benchmark.name} have the captions of another; "
                "they are matched in order"
            )
        left = sorted(set(range(len(of_table))) - set(rows.tolist()))
        if left:
            note(
                f"{table.where(left[0])}: {len(left)} of {len(of_table)} rows belong to no question of "
                f"{benchmark.name} and are left out; the first has {_cells(of_table[left[0]])}"
            )
        return rows


def _shared(theirs: list[str], ours: Sequence[list[str]]) -> tuple[list[str], list[str]] | None:
    """The table's column and that of the benchmark which means the same: they share values."""
    return next(((theirs, column) for column in ours if set(theirs) & set(column)), None)


def _joined(kinds: Sequence[object], subtypes: Sequence[object]) -> list[str]:
    return [f"{kind}_{subtype}" for kind, subtype in zip(kinds, subtypes, strict=True)]


def _cells(texts: Sequence[str]) -> str:
    return " | ".join(map(repr, texts))


def _plain(text: object) -> str:
    return "" if text is None else " ".join(str(text).lower().split())


_NUMBER = re.compile(r".*?(\d{1,18})(?:\.[A-Za-z]\w{2,3})?")
#: Readings of an id; the first that keeps apart all ids and finds every id of the benchmark counts.
_READINGS: tuple[Callable[[str], Hashable], ...] = (
    str,
    lambda name: PurePosixPath(name.replace("\\", "/")).stem,
    lambda name: int(number[1]) if (number := _NUMBER.fullmatch(name)) else name,
)


@dataclass(frozen=True)
class _Column:
    name: str
    theirs: Sequence[Hashable]
    #: Per question what its item may be called: a text that was written of two images is one caption.
    ours: Sequence[tuple[Hashable, ...]]


def _rows_by_pairs(given: PrecomputedTable, benchmark: Benchmark, note: Note) -> Int64[ndarray, "n"] | None:
    """For every question the row of its image and caption; None where the table has no column of either."""
    if not any(layouts.item_columns(given.table)):
        return None
    images, captions = (_one_of(names, given, benchmark, *ids) for names, ids in _items(given, benchmark))
    used = [column for column in (images, captions) if column is not None]
    named = " and ".join(f"'{column.name}'" for column in used)
    if len(used) == 1 and len({names[0] for names in used[0].ours}) < len(used[0].ours):
        in_order = captions is not None and len(captions.theirs) == len(captions.ours)
        if captions is not None and in_order and all(map(contains, captions.ours, captions.theirs)):
            note(f"{given.table.source}: no column names images; rows are taken in the benchmark's order")
            return np.arange(len(benchmark), dtype=np.int64)
        problem = f"column {named} does not tell the questions of {benchmark.name} apart"
        allowed = "columns image_id and caption_id, or image and caption; or id, with the questions' ids"
        raise ScoreError(problem, where=given.table.source, allowed=allowed)
    ids = list(zip(*(column.theirs for column in used), strict=True))
    row_of: dict[tuple[Hashable, ...], int] = {}
    firsts = [row_of.setdefault(key, row) for row, key in enumerate(ids)]
    rows = np.full(len(benchmark), -1, dtype=np.int64)
    for question in range(len(benchmark)):
        keys = product(*(column.ours[question] for column in used))
        rows[question] = next((row_of[key] for key in keys if key in row_of), -1)
    missing = np.flatnonzero(rows < 0)
    if len(missing):
        names = [benchmark.questions.ids[question] for question in missing[:3]]
        raise ScoreError(
            f"questions of {benchmark.name} have no row with their image and caption",
            where=f"{given.table.source}, columns {named}",
            given=f"{len(missing):,} of {len(benchmark):,} missing: " + ", ".join(f"'{n}'" for n in names),
            hint="is it the table of another benchmark, or of another part of it?",
        )
    answering = set(rows.tolist())
    for row, first in enumerate(firsts):
        if first != row and first in answering:
            assert given.values is not None
            if given.values[row] != given.values[first]:
                where = f"{given.table.where(first)} and {given.table.where(row)}"
                scores = f"{given.values[first]:g} and {given.values[row]:g}"
                raise ScoreError("one image and caption with two scores", where=where, given=scores)
    left = sum(first not in answering for first in firsts)
    if left:
        note(
            f"{given.table.source}: {left:,} of {len(given):,} rows are of pairs that {benchmark.name} does "
            "not ask about, and are left out"
        )
    return rows


def _check_pairs(given: PrecomputedTable, benchmark: Benchmark, rows: Int64[ndarray, "n"]) -> None:
    """Raise `ScoreError` where images or captions in the table's `rows` are not those of the questions."""
    for columns, expected in _items(given, benchmark):
        for name in columns:
            column = _read(given, name, *expected)
            if column is None:
                continue
            odd = [q for q, row in enumerate(rows.tolist()) if column.theirs[row] not in column.ours[q]]
            if odd:
                row, question = int(rows[odd[0]]), benchmark.questions.ids[odd[0]]
                problem = f"the row has the id of question '{question}' of {benchmark.name}, "
                problem += "and another image or caption"
                where, hint = given.table.where(row, name), f"{len(odd):,} of {len(rows):,} rows differ"
                cell, allowed = shown(given.table[name][row]), shown(column.ours[odd[0]][0])
                raise ScoreError(problem, where=where, given=cell, allowed=allowed, hint=hint)


def _one_of(
    names: Sequence[str],
    given: PrecomputedTable,
    benchmark: Benchmark,
    ids: Sequence[tuple[str, ...]],
    texts: Sequence[tuple[str, ...]] | None,
) -> _Column | None:
    for name in names:
        column = _read(given, name, ids, texts)
        if column is not None:
            return column
    if not names:
        return None
    cells = {layouts.cell_text(cell) for cell in given.table[names[0]]}
    wanted = list(dict.fromkeys(own_names[0] for own_names in ids))
    missing = [own_names for own_names in wanted if own_names not in cells]
    example = (missing or wanted)[0]
    problem = f"the column does not hold the items of {benchmark.name}"
    where, first = f"{given.table.source}, column '{names[0]}'", shown(given.table[names[0]][0])
    lacking = f"{len(missing):,} of {len(wanted):,} missing, such as '{example}'; the first row has {first}"
    hint = "is it the table of another benchmark, or are ids written in another way?"
    raise ScoreError(problem, where=where, given=lacking, hint=hint)


def _read(
    given: PrecomputedTable,
    name: str,
    names: Sequence[tuple[str, ...]],
    texts: Sequence[tuple[str, ...]] | None,
) -> _Column | None:
    """The column under the first reading that finds every item; ids first, then texts."""
    cells = [layouts.cell_text(cell) for cell in given.table[name]]
    distinct, names_there = set(cells), set(chain(*names))
    for reading in _READINGS:
        read = {text: reading(text) for text in distinct | names_there}
        held = {read[cell] for cell in distinct}
        if (
            len(held) == len(distinct)
            and len({read[text] for text in names_there}) == len(names_there)
            and all(any(read[name] in held for name in own_names) for own_names in set(names))
        ):
            return _Column(
                name, [read[cell] for cell in cells], [tuple(read[e] for e in mine) for mine in names]
            )
    if texts is not None:
        spoken = list(map(_plain, cells))
        held = set(spoken)
        if all(mine[0] in held for mine in texts):
            return _Column(name, spoken, texts)
    return None


#: Per question what its item is called, and its text; None where texts are not at hand.
_Names = tuple[Sequence[tuple[str, ...]], Sequence[tuple[str, ...]] | None]


def _items(given: PrecomputedTable, benchmark: Benchmark) -> list[tuple[Sequence[str], _Names]]:
    """The table's columns of images, and of captions, each with what the questions' items are called."""
    captions, images = benchmark.listed.pairs()
    caption_names: list[tuple[str, ...]] = []
    for name, caption, image in zip(benchmark.questions.ids, captions, images, strict=True):
        id, prefix = benchmark.captions[caption].id, f"{benchmark.images[image].id}/"
        item_id = name.removeprefix(prefix)
        caption_names.append((item_id, id) if name.startswith(prefix) and item_id != id else (id,))
    words = [(_plain(text),) for i in captions if (text := benchmark.captions[i].text) is not None]
    image_columns, caption_columns = layouts.item_columns(given.table)
    return [
        (image_columns, ([(benchmark.images[i].id,) for i in images], None)),
        (caption_columns, (caption_names, words if len(words) == len(captions) else None)),
    ]
