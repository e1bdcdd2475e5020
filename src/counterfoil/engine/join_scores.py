"""Given answers to a benchmark's questions: by ids where there are any, else by row, checked by captions.

Numbers that land at the wrong question look like numbers of a weak model, so nothing is guessed: what does
not fit is an error, and what is left out is said.

Captions are compared in lower case and without blanks at their ends; file name and subset are taken in
where table and benchmark both have them, since a few questions differ in nothing else.

Where captions of images are rated, a row is a pair. Pairs are told by the ids of image and caption, or by the
image's id and the caption's text. An id may be written as the benchmark does, as a path to a file of that
name, without the file's ending, or as the number at its end ("COCO_val2014_000000431431.jpg" for 431431): the
first reading that keeps apart all ids of both sides and finds every id of the benchmark counts.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from operator import contains
from pathlib import PurePath, PurePosixPath
from typing import Literal

import numpy as np
from jaxtyping import Float64, Int64
from numpy import ndarray

from counterfoil.benchmarks.answers import Answers, Outcomes, Scores
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms.base import NO_CANDIDATE
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.benchmarks.tables import shown
from counterfoil.engine.deduplicate import Note, few, warn
from counterfoil.errors import DataError, ScoreError
from counterfoil.models.precomputed import PrecomputedTable, with_answers
from counterfoil.models.precomputed_galleries import PrecomputedEmbeddings, PrecomputedSimilarity
from counterfoil.models.score_table_layouts import (
    OUTCOMES,
    TableLayout,
    cell_text,
    first_column,
    item_columns,
)

#: Numbers in one block of embeddings while pairs are compared.
_BLOCK = 1 << 23

#: Names of the columns with the captions of a question, by slot: of quads and of choices between two.
_TWO = (
    ("caption", "caption_0", "true_caption", "positive_caption"),
    ("negative_caption", "caption_1", "false_caption", "foil"),
)
#: The same where two of three are right (SugarCrepe++).
_THREE = (("caption", "caption_0"), ("caption2", "caption_1"), ("negative_caption", "caption_2"))
_FILES = ("filename", "file_name", "image_file", "image_id", "image")

Key = tuple[str, ...]


def join_scores(
    given: PrecomputedTable | PrecomputedEmbeddings, benchmark: Benchmark, *, note: Note = warn
) -> Answers:
    """What `given` answers to every question of `benchmark`, in the order of its questions.

    A table is matched by its ids (with a file per subset: `subset/id`), which must be exactly those of the
    questions. Without ids its rows are in the benchmark's order, or in that of each subset where both know
    subsets. Where both carry captions these must agree in every row; where the rows are of another order or
    number they are matched by their captions (with file name and subset where both have those). Rows that
    belong to no question are dropped only then, and `note` is told. Where neither ids nor captions say which
    row is which question, `note` is told that the order is believed.

    Scores of captions that people rated are matched by the questions' ids, or by image and caption
    (`rows_by_pairs`): their order is believed only where no column names either.

    Embeddings are matched by the ids of images and captions; without ids their rows are the benchmark's
    images and captions in order. A score is the cosine in float64.

    Returns scores in the shape of the questions, or outcomes where the table holds only those. Raises
    `ScoreError` where the table answers questions of another form, and where ids, rows or captions do not
    fit.
    """
    if isinstance(given, PrecomputedEmbeddings):
        return _compare(given, benchmark)
    if benchmark.questions.row_per_question:
        given = _per_question(given, benchmark)
    _check_form(given, benchmark)
    rows = _rows(given, benchmark, note)
    if given.values is not None:
        values = given.values[rows]
        if given.kind == "choice_scores":
            values = _of_candidates(given, benchmark, values, rows)
        return Scores(values).check(benchmark, where=given.table.source)
    return Outcomes({name: right[rows] for name, right in given.right.items()})


def matched(given: PrecomputedTable, benchmark: Benchmark, *, note: Note = warn) -> PrecomputedTable:
    """The table with one entry per question of `benchmark`, in the order of its questions.

    Raises what `join_scores` raises.
    """
    if benchmark.questions.row_per_question:
        given = _per_question(given, benchmark)
    _check_form(given, benchmark)
    rows = _rows(given, benchmark, note)
    return replace(given.take(rows), ids=benchmark.questions.ids, subsets=None)


def covered(given: PrecomputedTable, benchmark: Benchmark) -> Benchmark:
    """The questions that a table has answers to, by their ids; raises `ScoreError` where it has none."""
    known = set(given.ids or ())
    rows = np.array([at for at, name in enumerate(benchmark.questions.ids) if name in known], dtype=np.int64)
    if not len(rows):
        raise ScoreError(
            f"answers no question of {benchmark.name}",
            where=given.table.source,
            given=few(list(given.ids or ())),
            allowed=few(list(benchmark.questions.ids)),
        )
    if len(rows) == len(benchmark):
        return benchmark
    title = f"{benchmark.card.title} ({len(rows):,} of its {len(benchmark):,})"
    return benchmark.part(rows, title)


def answered(given: PrecomputedTable, benchmark: Benchmark) -> tuple[PrecomputedTable, Benchmark]:
    """A matched table and its benchmark without the questions that the table holds no answer to."""
    if given.unanswered is None or not given.unanswered.any():
        return given, benchmark
    rows = np.flatnonzero(~given.unanswered)
    if not len(rows):
        raise ScoreError("no question is answered", where=given.table.source)
    title = f"{benchmark.card.title} (those answered of its {len(benchmark):,})"
    return given.take(rows), benchmark.part(rows, title)


def _per_question(given: PrecomputedTable, benchmark: Benchmark) -> PrecomputedTable:
    """The same table as a score per question, where its header or its ids made it look like something else.

    Ids of pictures may end as those of pairs do, and scores may all be 0 or 1. Where right and wrong answer
    the questions too, a column that is called so stays what it is.
    """
    if given.kind in benchmark.questions.given and set(map(str.lower, given.column)) & set(OUTCOMES):
        return given
    if given.kind == "rated_scores" or len(given.column) != 1 or given.side is not None:
        return given
    layout = TableLayout("rated_scores", given.column, given.id, given.described)
    return replace(with_answers(given, layout), kind=layout.kind, right={}, folded=False)


def _check_form(given: PrecomputedTable, benchmark: Benchmark) -> None:
    """That the table answers the kind of question that is asked."""
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


def _of_candidates(
    given: PrecomputedTable,
    benchmark: Benchmark,
    values: Float64[ndarray, "n given"],
    rows: Int64[ndarray, "n"],
) -> Float64[ndarray, "n k"]:
    """The scores of candidates, in the shape of the questions; raises `ScoreError` where some are missing."""
    scores = np.full(benchmark.listed.shape, NO_CANDIDATE)
    scores[:, : values.shape[1]] = values
    filled = benchmark.listed.filled
    wanted = np.ones(scores.shape, dtype=bool) if filled is None else filled
    odd = ((scores != NO_CANDIDATE) != wanted).any(axis=1)
    if odd.any():
        at = int(np.argmax(odd))
        place = int(np.argmax((scores[at] != NO_CANDIDATE) != wanted[at]))
        apart = given.folded or place >= len(given.column)
        where = given.table.source if apart else given.table.where(int(rows[at]), given.column[place])
        raise ScoreError(
            "not a score for each candidate",
            where=f"{where}, question '{benchmark.questions.ids[at]}'",
            given=f"{int((scores[at] != NO_CANDIDATE).sum())} scores",
            allowed=f"{int(wanted[at].sum())}",
        )
    return scores


def _rows(given: PrecomputedTable, benchmark: Benchmark, note: Note) -> Int64[ndarray, "n"]:
    """For every question the entry of the table that answers it."""
    names = None if given.ids is None else _names(given.ids, given.subsets, benchmark)
    if benchmark.questions.row_per_question:
        # Ids that are those of the questions come first, then images and captions; else the order is left.
        columns, ids = any(item_columns(given.table)), set(benchmark.questions.ids)
        if names is not None and (not columns or set(names) == ids):
            rows = _rows_by_id(names, benchmark, given.table.source, note)
            if (mismatch := pairs_disagree(given, benchmark, rows)) is not None:
                raise mismatch
            return rows
        rows_of_pairs = rows_by_pairs(given, benchmark, note)
        if rows_of_pairs is not None:
            return rows_of_pairs
    by_captions = can_match(given, benchmark)
    if names is not None:
        if by_captions and set(benchmark.questions.ids).isdisjoint(names):
            # The ids are the table's own numbering; the captions identify the questions.
            return rows_by_captions(given, benchmark, note)
        rows = _rows_by_id(names, benchmark, given.table.source, note)
        if (mismatch := captions_agree(given, benchmark, rows)) is not None:
            raise mismatch
        return rows
    if len(given) == len(benchmark):
        rows = rows_in_order(given, benchmark)
        mismatch = captions_agree(given, benchmark, rows)
        if mismatch is None:
            if matched_by_order(given, benchmark):
                note(
                    f"{given.table.source}: no column of ids or captions; its rows are taken to be in the "
                    f"order of {benchmark.name}"
                )
            return rows
        if not by_captions:
            raise mismatch
        try:
            rows_of_pairs = rows_by_captions(given, benchmark, note)
        except ScoreError:
            raise mismatch from None
        note(
            f"{given.table.source}: rows are not in the order of {benchmark.name}; matched by their captions"
        )
        return rows_of_pairs
    if by_captions:
        return rows_by_captions(given, benchmark, note)
    raise ScoreError(
        f"the table has another number of rows than {benchmark.name} has questions",
        where=given.table.source,
        given=f"{len(given)} rows",
        allowed=f"{len(benchmark)}, in the benchmark's order",
        hint="add a column 'id' with the ids of the questions, or columns caption and negative_caption",
    )


def _names(ids: Sequence[str], subsets: Sequence[str] | None, benchmark: Benchmark) -> Sequence[str]:
    """The ids as the benchmark writes them: those of a folder with a file per subset are `subset/id`."""
    if subsets is None:
        return ids
    joined = [f"{subset}/{name}" for subset, name in zip(subsets, ids, strict=True)]
    question_ids = set(benchmark.questions.ids)
    return ids if question_ids.isdisjoint(joined) and not question_ids.isdisjoint(ids) else joined


def _rows_by_id(names: Sequence[str], benchmark: Benchmark, source: str, note: Note) -> Int64[ndarray, "n"]:
    question_ids = benchmark.questions.ids
    row_of = {name: row for row, name in enumerate(names)}
    if len(row_of) < len(names):
        seen: set[str] = set()
        doubled = list(dict.fromkeys(name for name in names if name in seen or seen.add(name)))  # type: ignore[func-returns-value]
        raise ScoreError("ids occur more than once", where=source, given=few(doubled), hint="one row each")
    missing = [name for name in question_ids if name not in row_of]
    unknown = sorted(set(row_of) - set(question_ids), key=row_of.__getitem__)
    if missing:
        problems = [
            f"{len(odd_ids)} of {total} {what}: {few(odd_ids)}"
            for odd_ids, total, what in (
                (missing, len(question_ids), "questions are missing"),
                (unknown, len(names), "ids are unknown"),
            )
            if odd_ids
        ]
        problem = f"the ids are not those of {benchmark.name}"
        given = "; ".join(problems)
        raise ScoreError(problem, where=source, given=given, allowed=f"every id once: {few(question_ids)}")
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
    # Captions with images, or with other captions.
    left, right = rows[captions.ravel()], (rows if images is None else images)[others.ravel()]
    embeddings = given.captions if images is None else given.images
    scores = np.empty(captions.size, dtype=np.float64)
    step = max(1, _BLOCK // given.captions.shape[1])
    for start in range(0, len(scores), step):
        block = slice(start, start + step)
        scores[block] = given.compare(given.captions[left[block]], embeddings[right[block]])
    collected = questions.collect(scores.reshape(captions.shape))
    return Scores(collected).check(benchmark, where=given.identity.name)


def item_rows(
    kind: Literal["image", "caption"],
    items: Sequence[Image] | Sequence[Caption],
    given: PrecomputedEmbeddings | PrecomputedSimilarity,
    whose: str,
    used: Int64[ndarray, "used"] | None = None,
) -> Int64[ndarray, "items"]:
    """For every image (or caption) of `whose`, by name, its row (or column) of what is given.

    Without ids the rows are all items in order. With them those of the items at `used`, by default all, must
    be there, and others may be -1.
    """
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
    missing = [names[at] for at in wanted if row_of[at] < 0]
    if missing:
        problem, hint = f"{kind}s of {whose} have no {given.held}", f"ids in the file look like {few(ids)}"
        counted = f"{len(missing)} of {len(wanted)} missing: {few(missing)}"
        raise DataError(problem, where=where, given=counted, hint=hint)
    return row_of


# -- rows of a table and questions --------------------------------------------------------------------------


def captions_agree(
    given: PrecomputedTable, benchmark: Benchmark, rows: Int64[ndarray, "n"]
) -> ScoreError | None:
    """None where captions and images of the table's `rows` are those of the questions, or cannot be compared.

    Otherwise the error that names the first row that differs, for the caller to raise.
    """
    theirs, ours = _captions(given, benchmark)
    columns = [("a caption", theirs[slot], ours[slot]) for slot in sorted(theirs.keys() & ours.keys())]
    their_files = _files(given)
    our_files = _shared(their_files, _file_columns(benchmark))
    if their_files is not None and our_files is not None and set(our_files) <= set(their_files):
        columns.append(("the image", their_files, our_files))
    for what, cells, own in columns:
        odd = [at for at, row in enumerate(rows.tolist()) if cells[row] not in ("", own[at])]
        if odd:
            return ScoreError(
                f"{what} differs from that of question '{benchmark.questions.ids[odd[0]]}' "
                f"of {benchmark.name}",
                where=given.table.where(int(rows[odd[0]])),
                given=repr(cells[rows[odd[0]]]),
                allowed=repr(own[odd[0]]),
                hint=f"{len(odd)} of {len(rows)} rows differ: is it the table of another benchmark, "
                "or in another order?",
            )
    return None


def matched_by_order(given: PrecomputedTable, benchmark: Benchmark) -> bool:
    """Whether table and benchmark share no captions and no images, so that only the order of rows is left."""
    theirs, ours = _captions(given, benchmark)
    return not theirs.keys() & ours.keys() and _shared(_files(given), _file_columns(benchmark)) is None


def can_match(given: PrecomputedTable, benchmark: Benchmark) -> bool:
    """Whether every question could be told by captions: table and benchmark have the same slots of them."""
    theirs, ours = _captions(given, benchmark)
    return bool(ours) and theirs.keys() >= ours.keys()


def rows_in_order(given: PrecomputedTable, benchmark: Benchmark) -> Int64[ndarray, "n"]:
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
            problem = f"subset '{subset}' has another number of rows than of questions in {benchmark.name}"
            allowed = str(questions[subset])
            raise ScoreError(problem, where=given.table.source, given=f"{rows[subset]} rows", allowed=allowed)
    order = np.empty(len(benchmark), dtype=np.int64)
    order[np.argsort(ours, kind="stable")] = np.argsort(theirs, kind="stable")
    return order


def rows_by_captions(given: PrecomputedTable, benchmark: Benchmark, note: Note) -> Int64[ndarray, "n"]:
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
            given=f"{len(missing)} of {len(benchmark)} missing: {few(ids)}",
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
    rows = np.asarray([rows_of[key].popleft() for key in ours], dtype=np.int64)
    left = sorted(set(range(len(theirs))) - set(rows.tolist()))
    if left:
        note(
            f"{given.table.where(left[0])}: {len(left)} of {len(theirs)} rows belong to no question of "
            f"{benchmark.name} and are left out; the first has {' | '.join(repr(p) for p in theirs[left[0]])}"
        )
    return rows


def _captions(
    given: PrecomputedTable, benchmark: Benchmark
) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
    """Captions of the table by slot, and of the questions by slot, where they are at hand."""
    questions = benchmark.listed
    if given.folded or not questions.single:
        return {}, {}
    caption_slots, _ = questions.slots()
    names: Sequence[Sequence[str]]
    if caption_slots.shape[1] <= 2:
        names = _TWO[: caption_slots.shape[1]]
    elif caption_slots.shape[1] == 3 and questions.true_captions == 2:
        names = _THREE
    else:
        names = [(f"caption_{slot}",) for slot in range(caption_slots.shape[1])]
    theirs: dict[int, list[str]] = {}
    ours: dict[int, list[str]] = {}
    for slot, candidates in enumerate(names):
        column = _column(given, candidates)
        if column is not None:
            theirs[slot] = [_plain(cell) for cell in column]
        texts = [benchmark.captions[at].text if at >= 0 else "" for at in caption_slots[:, slot].tolist()]
        if all(text is not None for text in texts):
            ours[slot] = [_plain(text) for text in texts]
    return theirs, ours


def _keys(given: PrecomputedTable, benchmark: Benchmark) -> tuple[list[Key], list[Key]]:
    """What tells rows apart, and the same of the questions."""
    theirs, ours = _captions(given, benchmark)
    columns = [(theirs[slot], ours[slot]) for slot in sorted(ours)]
    files, subsets = _files(given), _subsets(given)
    for left, rights in ((files, _file_columns(benchmark)), (subsets, _subset_columns(benchmark))):
        right = _shared(left, rights)
        if left is not None and right is not None:
            columns.append((left, right))
    ours_of, theirs_of = ([side[at] for side in columns] for at in (1, 0))
    return list(zip(*theirs_of, strict=True)), list(zip(*ours_of, strict=True))


def _shared(theirs: Sequence[str] | None, ours: Sequence[list[str]]) -> list[str] | None:
    """The column of the benchmark that means what the table's does: they share values."""
    return next((column for column in ours if theirs and set(theirs) & set(column)), None)


def _files(given: PrecomputedTable) -> list[str] | None:
    # Rows of a folded table are pairs, not questions.
    column = None if given.folded else _column(given, _FILES)
    return None if column is None else ["" if cell is None else PurePath(str(cell)).name for cell in column]


def _file_columns(benchmark: Benchmark) -> list[list[str]]:
    first = benchmark.listed.slots()[1][:, 0]
    return [[PurePath(benchmark.images[position].id).name for position in first]]


def _subsets(given: PrecomputedTable) -> list[str] | None:
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


def _column(given: PrecomputedTable, names: Sequence[str]) -> Sequence[object] | None:
    column = first_column(given.table, names)
    return None if column is None else given.table.columns[column]


def _plain(text: object) -> str:
    return "" if text is None else str(text).strip().lower()


_NUMBER = re.compile(r".*?(\d{1,18})(?:\.[A-Za-z]\w{2,3})?")


def _path(name: str) -> PurePosixPath:
    return PurePosixPath(name.replace("\\", "/"))


def _number(name: str) -> Hashable:
    number = _NUMBER.fullmatch(name)
    return name if number is None else int(number[1])


def _words(text: str) -> str:
    return " ".join(text.lower().split())


_READINGS: tuple[Callable[[str], Hashable], ...] = (
    str,
    lambda name: _path(name).name,
    lambda name: _path(name).stem,
    _number,
)


@dataclass(frozen=True)
class _Column:
    """One column of the table beside what the benchmark calls the same, read in one way."""

    name: str
    theirs: Sequence[Hashable]
    #: Per question what its item may be called: a text that was written of two images is one caption.
    ours: Sequence[tuple[Hashable, ...]]


def rows_by_pairs(given: PrecomputedTable, benchmark: Benchmark, note: Note) -> Int64[ndarray, "n"] | None:
    """For every question the row of its image and caption; None where the table has no column of either.

    Rows of pairs that are not asked about are left out, and `note` says how many. A table with captions
    alone may also follow the questions row by row, which is noted. Raises `ScoreError` where an id or a pair
    of the benchmark is missing, where one pair has two scores, and where the columns there are do not tell
    the questions apart.
    """
    image_columns, caption_columns = item_columns(given.table)
    if not image_columns and not caption_columns:
        return None
    images = _one_of(image_columns, given, benchmark, _image_names(benchmark))
    captions = _one_of(caption_columns, given, benchmark, _caption_names(benchmark), _texts(benchmark))
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
    theirs = list(zip(*(column.theirs for column in used), strict=True))
    row_of: dict[tuple[Hashable, ...], int] = {}
    firsts = [row_of.setdefault(key, row) for row, key in enumerate(theirs)]
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
                raise ScoreError(
                    "one image and caption with two scores",
                    where=f"{given.table.where(first)} and {given.table.where(row)}",
                    given=f"{given.values[first]:g} and {given.values[row]:g}",
                )
    left = sum(first not in answering for first in firsts)
    if left:
        note(
            f"{given.table.source}: {left:,} of {len(given):,} rows are of pairs that {benchmark.name} does "
            "not ask about, and are left out"
        )
    return rows


def pairs_disagree(
    given: PrecomputedTable, benchmark: Benchmark, rows: Int64[ndarray, "n"]
) -> ScoreError | None:
    """None where the images and captions in the table's `rows` are those of the questions, or unreadable.

    Otherwise the error that names the first row that differs, for the caller to raise.
    """
    image_columns, caption_columns = item_columns(given.table)
    for columns, readings in (
        (image_columns, (_image_names(benchmark),)),
        (caption_columns, (_caption_names(benchmark), _texts(benchmark))),
    ):
        for name in columns:
            column = _read(given, name, *readings)
            if column is None:
                continue
            odd = [q for q, row in enumerate(rows.tolist()) if column.theirs[row] not in column.ours[q]]
            if odd:
                question = benchmark.questions.ids[odd[0]]
                return ScoreError(
                    f"the row has the id of question '{question}' of {benchmark.name}, and another image or "
                    "caption",
                    where=given.table.where(int(rows[odd[0]]), name),
                    given=shown(given.table[name][int(rows[odd[0]])]),
                    allowed=shown(column.ours[odd[0]][0]),
                    hint=f"{len(odd):,} of {len(rows):,} rows differ",
                )
    return None


def _one_of(
    names: Sequence[str],
    given: PrecomputedTable,
    benchmark: Benchmark,
    *ours: Sequence[tuple[str, ...]] | None,
) -> _Column | None:
    """The first column that names every item of the benchmark; None where there is no column at all."""
    for name in names:
        column = _read(given, name, *ours)
        if column is not None:
            return column
    if not names:
        return None
    cells = {cell_text(cell) for cell in given.table[names[0]]}
    wanted = list(dict.fromkeys(own_names[0] for own_names in ours[0] or ()))
    missing = [own_names for own_names in wanted if own_names not in cells]
    example = (missing or wanted)[0]
    raise ScoreError(
        f"the column does not hold the items of {benchmark.name}",
        where=f"{given.table.source}, column '{names[0]}'",
        given=f"{len(missing):,} of {len(wanted):,} missing, such as '{example}'; the "
        f"first row has {shown(given.table[names[0]][0])}",
        hint="is it the table of another benchmark, or are ids written in another way?",
    )


def _read(given: PrecomputedTable, name: str, *ours: Sequence[tuple[str, ...]] | None) -> _Column | None:
    """The column under the first reading that finds every item; ids first, then texts."""
    cells = [cell_text(cell) for cell in given.table[name]]
    names, texts = ours[0], ours[1] if len(ours) > 1 else None
    assert names is not None
    distinct, own = set(cells), set(chain(*names))
    for reading in _READINGS:
        read = {text: reading(text) for text in distinct | own}
        held = {read[cell] for cell in distinct}
        if (
            len(held) == len(distinct)
            and len({read[text] for text in own}) == len(own)
            and all(any(read[name] in held for name in own_names) for own_names in set(names))
        ):
            return _Column(
                name, [read[cell] for cell in cells], [tuple(read[e] for e in mine) for mine in names]
            )
    if texts is not None:
        spoken = list(map(_words, cells))
        held = set(spoken)
        if all(mine[0] in held for mine in texts):
            return _Column(name, spoken, texts)
    return None


def _image_names(benchmark: Benchmark) -> list[tuple[str, ...]]:
    return [(benchmark.images[at].id,) for at in benchmark.listed.pairs()[1]]


def _caption_names(benchmark: Benchmark) -> list[tuple[str, ...]]:
    """What each question's caption is called: in ids "IMAGE/CAPTION" by its own name, which goes first."""
    caption_names: list[tuple[str, ...]] = []
    for name, caption, image in zip(benchmark.questions.ids, *benchmark.listed.pairs(), strict=True):
        id, prefix = benchmark.captions[caption].id, f"{benchmark.images[image].id}/"
        own = name.removeprefix(prefix)
        caption_names.append((own, id) if name.startswith(prefix) and own != id else (id,))
    return caption_names


def _texts(benchmark: Benchmark) -> list[tuple[str, ...]] | None:
    """The text of each question's caption; None where they are not at hand."""
    texts = [benchmark.captions[at].text for at in benchmark.listed.pairs()[0]]
    return [(_words(text),) for text in texts if text is not None] if None not in texts else None
