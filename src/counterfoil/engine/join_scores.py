"""Given answers to a benchmark's questions: by ids where there are any, else by row, checked by captions.

Numbers that land at the wrong question look like numbers of a weak model, so nothing is guessed: what does
not fit is an error, and what is left out is said.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float64, Int64
from numpy import ndarray

from counterfoil.benchmarks.answers import Answers, Outcomes, Scores
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms.base import NO_CANDIDATE
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.engine.deduplicate import Note, warn
from counterfoil.engine.row_matching import (
    can_match,
    captions_agree,
    matched_by_order,
    pairs_disagree,
    rows_by_captions,
    rows_by_pairs,
    rows_in_order,
)
from counterfoil.errors import DataError, ScoreError
from counterfoil.models.precomputed import PrecomputedTable, with_answers
from counterfoil.models.precomputed_galleries import PrecomputedEmbeddings
from counterfoil.models.score_table_layouts import OUTCOMES, TableLayout, item_columns

#: Numbers in one block of embeddings while pairs are compared.
_BLOCK = 1 << 23


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
    (`counterfoil.engine.row_matching`): their order is believed only where no column names either.

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

    Raises what `align` raises.
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
            given=_few(list(given.ids or ())),
            allowed=_few(list(benchmark.questions.ids)),
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
        raise ScoreError(
            f"the table answers questions of another form than those of {benchmark.name}",
            where=given.table.source,
            given=given.described,
            allowed=questions.given_as,
        )
    if given.values is not None and given.kind != "drawn_scores":
        shape = questions.shape[1:]
        # Of questions with different numbers of candidates those at hand may be the ones with fewer.
        fewer = questions.filled is not None and given.values.shape[1:] < shape
        if given.values.shape[1:] != shape and not fewer:
            raise ScoreError(
                f"the table has another number of candidates than {benchmark.name}",
                where=given.table.source,
                given=given.values.shape[1],
                allowed=str(shape[0]),
            )


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


def _rated_rows(given: PrecomputedTable, benchmark: Benchmark, note: Note) -> Int64[ndarray, "n"] | None:
    """For every question that rates a caption the row that answers it; None where only the order is left.

    Ids that are those of the questions come first, then images and captions.
    """
    if given.ids is not None:
        names = _names(given.ids, given.subsets, benchmark)
        if not any(item_columns(given.table)) or set(names) == set(benchmark.questions.ids):
            rows = _rows_by_id(names, benchmark, given.table.source, note)
            if (mismatch := pairs_disagree(given, benchmark, rows)) is not None:
                raise mismatch
            return rows
    return rows_by_pairs(given, benchmark, note)


def _rows(given: PrecomputedTable, benchmark: Benchmark, note: Note) -> Int64[ndarray, "n"]:
    """For every question the entry of the table that answers it."""
    if benchmark.questions.row_per_question:
        rows_of_pairs = _rated_rows(given, benchmark, note)
        if rows_of_pairs is not None:
            return rows_of_pairs
    by_captions = can_match(given, benchmark)
    if given.ids is not None:
        names = _names(given.ids, given.subsets, benchmark)
        if by_captions and set(benchmark.questions.ids).isdisjoint(names):
            # The ids are the table's own numbering; the captions identify the questions.
            return rows_by_captions(given, benchmark, note)
        rows = _rows_by_id(names, benchmark, given.table.source, note)
        mismatch = captions_agree(given, benchmark, rows)
        if mismatch is not None:
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
        raise ScoreError("ids occur more than once", where=source, given=_few(doubled), hint="one row each")
    missing = [name for name in question_ids if name not in row_of]
    unknown = sorted(set(row_of) - set(question_ids), key=row_of.__getitem__)
    if missing:
        problems = [
            f"{len(odd_ids)} of {total} {what}: {_few(odd_ids)}"
            for odd_ids, total, what in (
                (missing, len(question_ids), "questions are missing"),
                (unknown, len(names), "ids are unknown"),
            )
            if odd_ids
        ]
        raise ScoreError(
            f"the ids are not those of {benchmark.name}",
            where=source,
            given="; ".join(problems),
            allowed=f"every id once: {_few(question_ids)}",
        )
    if unknown:
        note(
            f"{source}: {len(unknown):,} of {len(names):,} ids belong to no question of {benchmark.name} and "
            f"are left out: {_few(unknown)}"
        )
    return np.asarray([row_of[name] for name in question_ids], dtype=np.int64)


def _compare(given: PrecomputedEmbeddings, benchmark: Benchmark) -> Scores:
    questions = benchmark.listed
    texts = questions.text_pairs()
    captions, others = texts or questions.pairs()
    where, name = given.identity.name, benchmark.name
    used_captions, used_images = questions.used()
    other_rows, embeddings = None, given.captions
    if texts is None:
        embeddings = given.images
        other_rows = used_rows(
            "image", benchmark.images, used_images, given.image_ids, len(given.images), name, where
        )
    rows = used_rows(
        "caption", benchmark.captions, used_captions, given.caption_ids, len(given.captions), name, where
    )
    other_rows = rows if other_rows is None else other_rows
    values = _cosines(given, rows[captions.ravel()], other_rows[others.ravel()], embeddings)
    return Scores(questions.collect(values.reshape(captions.shape))).check(benchmark, where=where)


def _cosines(
    given: PrecomputedEmbeddings, captions: ndarray, others: ndarray, embeddings: ndarray
) -> Float64[ndarray, "pairs"]:
    """The cosine of captions with rows of `embeddings`, those of images or of captions."""
    scores = np.empty(len(captions), dtype=np.float64)
    step = max(1, _BLOCK // given.captions.shape[1])
    for start in range(0, len(scores), step):
        block = slice(start, start + step)
        scores[block] = given.compare(given.captions[captions[block]], embeddings[others[block]])
    return scores


def used_rows(
    kind: str,
    items: Sequence[Image] | Sequence[Caption],
    used: Int64[ndarray, "used"],
    ids: Sequence[str] | None,
    rows: int,
    whose: str,
    where: str,
) -> Int64[ndarray, "items"]:
    """For every image (or caption) in use its row of embeddings, and -1 for all others.

    Without ids the rows are all items in order, used or not.
    """
    names = [item.id for item in items]
    if ids is None:
        return item_rows(kind, names, None, rows, whose, where)
    row_of = np.full(len(names), -1, dtype=np.int64)
    row_of[used] = item_rows(kind, [names[position] for position in used], ids, rows, whose, where)
    return row_of


def item_rows(
    kind: str,
    item_ids: Sequence[str],
    ids: Sequence[str] | None,
    rows: int,
    whose: str,
    where: str,
    *,
    held: str = "embedding",
) -> Int64[ndarray, "items"]:
    """For every image (or caption) of `whose`, by name, its row of embeddings, or of what else is `held`."""
    if ids is None:
        if rows != len(item_ids):
            raise DataError(
                f"the number of {kind} {held}s is not the number of {kind}s of {whose}",
                where=where,
                given=f"{rows} rows",
                allowed=f"{len(item_ids)}, in their order",
                hint=f"or an array '{kind}_ids' beside them",
            )
        return np.arange(rows, dtype=np.int64)
    row_of = {name: row for row, name in enumerate(ids)}
    missing = [name for name in item_ids if name not in row_of]
    if missing:
        raise DataError(
            f"{kind}s of {whose} have no {held}",
            where=where,
            given=f"{len(missing)} of {len(item_ids)} missing: {_few(missing)}",
            hint=f"ids in the file look like {_few(ids)}",
        )
    return np.asarray([row_of[name] for name in item_ids], dtype=np.int64)


def _few(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:3]) + (", ..." if len(names) > 3 else "")
