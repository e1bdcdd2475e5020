"""Results of Mechanical Turk's requester site: batches as it exports them, a row per worker and HIT.

A HIT may hold several items, as the 20 pairs of ECCV Caption's do (section 3.2); their columns are numbered.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from counterfoil.annotate.judgement_table import answer_cell, judgement_rows
from counterfoil.benchmarks.tables import DataTable, read_table
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.files import parse_json

STATUSES = ("Submitted", "Approved", "Rejected")
#: Between options of one answer, and between parts of an item's id.
SEPARATOR = "|"
_NUMBER = "{n}"


@dataclass(frozen=True)
class HitLayout:
    """What columns hold: names in which `{n}` stands for the number of an item in its HIT.

    `item` are the columns that together name an item. `golden` is a column with the right answer of the first
    question where it is known, several with "|" between them.
    """

    item: tuple[str, ...] = ("Input.item{n}",)
    questions: Mapping[str, str] = field(default_factory=lambda: {"answer": "Answer.answer{n}"})
    many: frozenset[str] = frozenset()
    golden: str | None = None

    def __post_init__(self) -> None:
        if not self.item or not self.questions:
            raise InputError("no columns", where="layout of a HIT", allowed="items and questions")
        names = *self.item, *self.questions.values()
        if len({_NUMBER in name for name in names}) > 1:
            what, allowed = "some columns are numbered and some are not", f"{_NUMBER} in all, or in none"
            raise InputError(what, where="layout of a HIT", given=", ".join(names), allowed=allowed)
        if odd := self.many - set(self.questions):
            questions = list(self.questions)
            raise InputError("unknown question", where="layout of a HIT", given=min(odd), allowed=questions)

    def numbers(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The numbers of the items in a HIT, as the columns write them, in order; "" where there are none."""
        if _NUMBER not in self.item[0]:
            return ("",)
        pattern = re.compile(re.escape(self.item[0]).replace(re.escape(_NUMBER), r"(\d+)"))
        matched = {match[1] for name in columns if (match := pattern.fullmatch(name))}
        return tuple(sorted(matched, key=lambda number: (int(number), number)))


def read_results(
    path: Path, layout: HitLayout | None = None, *, identify: Callable[[str], str] = str
) -> tuple[pa.Table, dict[str, int]]:
    """The judgements in a batch's results, and what was left out.

    Of an item that a worker judged again the first answer counts; its seconds are an even part of the
    assignment's. Answers are cells, options with a column each, or the JSON of `Answer.taskAnswers`.
    """
    layout = layout or HitLayout()
    table = read_table(path)
    statuses = [str(status).strip() for status in _column(table, "AssignmentStatus")]
    assignments, workers, _ = (_column(table, name) for name in ("AssignmentId", "WorkerId", "HITId"))
    numbers = layout.numbers(list(table.columns))
    if not numbers:
        given = ", ".join(table.columns)
        raise DataError(f"no column '{layout.item[0]}'", where=table.source, given=given, hint=_HINT)
    # An option may have a column of its own, so that the question's name is the beginning of several.
    names = {*table.columns, *(".".join(name.split(".")[:2]) for name in table.columns)}
    for question, column in () if "Answer.taskAnswers" in table else layout.questions.items():
        if not any(column.replace(_NUMBER, number) in names for number in numbers):
            where = f"{table.source}, question '{question}'"
            given = ", ".join(name for name in table.columns if name.startswith("Answer.")) or "no answers"
            raise DataError(f"no column '{column}'", where=where, given=given, hint=_HINT)
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    main, rejected, repeated = next(iter(layout.questions)), 0, 0
    for row, status in enumerate(statuses):
        if status not in STATUSES:
            where = table.where(row, "AssignmentStatus")
            raise DataError("unknown state", where=where, given=status, allowed=STATUSES)
        if status == "Rejected":
            rejected += 1
            continue
        answers = _answers(table, row)
        items = {number: item for number in numbers if (item := _item(table, row, layout, number))}
        seconds = _seconds(table, row)
        for number, item in items.items():
            for question, name in layout.questions.items():
                column = name.replace(_NUMBER, number)
                value = _value(table, row, answers, column, many=question in layout.many)
                if value is None:
                    continue
                # Of the first question the right answer may be known: one option, or several.
                gold = layout.golden if question == main else None
                truths = _parts(table[gold.replace(_NUMBER, number)][row]) if gold is not None else []
                right = set(value) == set(truths) if isinstance(value, list) else value in truths
                key = item, workers[row], question
                repeated += key in rows
                facts = {
                    "item": item,
                    "person": identify(workers[row]),
                    "question": question,
                    "answer": answer_cell(value),
                    "seconds": None if seconds is None else seconds / len(items),
                    "golden": right if truths else None,
                    "assignment": assignments[row],
                }
                rows.setdefault(key, facts)
    if not rows:
        raise DataError("no answers", where=table.source, given=", ".join(table.columns), hint=_HINT)
    names = pa.array([row["assignment"] for row in rows.values()])
    judgements = judgement_rows(list(rows.values()), where=table.source).append_column("assignment", names)
    return judgements, {"rejected assignments": rejected, "judged again": repeated}


_HINT = "say which columns hold items and answers; {n} stands for the number of an item in its HIT"


def _column(table: DataTable, name: str) -> list[str]:
    cells = ["" if cell is None else str(cell).strip() for cell in table[name]]
    if "" in cells:
        raise DataError("empty", where=table.where(cells.index(""), name))
    return cells


def _item(table: DataTable, row: int, layout: HitLayout, number: str) -> str:
    """The id of an item, empty where a HIT has fewer items than others."""
    names = [name.replace(_NUMBER, number) for name in layout.item]
    cells = [str(table[name][row] or "").strip() for name in names]
    if not any(cells):
        return ""
    for name, cell in zip(names, cells, strict=True):
        if not cell or (len(cells) > 1 and SEPARATOR in cell):
            what, allowed = "cannot be part of an item's id", f"a text without {SEPARATOR}"
            raise DataError(what, where=table.where(row, name), given=cell or "(empty)", allowed=allowed)
    return SEPARATOR.join(cells)


def _answers(table: DataTable, row: int) -> dict[str, Any]:
    """All answers of an assignment by the name of their column: cells, or whether each option was chosen."""
    answers: dict[str, Any] = {}
    for name in table.columns:
        if not name.startswith("Answer.") or table[name][row] in (None, ""):
            continue
        cell = str(table[name][row])
        if name == "Answer.taskAnswers":
            where = table.where(row, name)
            tasks = parse_json(cell, where=where)
            # Of the site's own form elements: a list with an object of answers by name.
            if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
                what, allowed = "not the answers of a task", "a list of objects"
                raise DataError(what, where=where, given=cell, allowed=allowed)
            answers |= {f"Answer.{question}": given for task in tasks for question, given in task.items()}
            continue
        answers[name] = cell
        # An option with a column of its own: Answer.match1.yes.
        question, _, option = name.removeprefix("Answer.").partition(".")
        if option and cell.lower() in ("true", "false"):
            options = answers.setdefault(f"Answer.{question}", {})
            if isinstance(options, dict):
                options[option] = cell.lower() == "true"
    return answers


def _value(table: DataTable, row: int, answers: Mapping[str, Any], name: str, *, many: bool) -> Any:
    """The answer to one question: a text, or a list where `many`; None where there is none."""
    given = answers.get(name)
    where = table.where(row, name)
    if isinstance(given, dict):
        if set(given) == {"label"}:  # A classifier of the site.
            return str(given["label"])
        if not all(isinstance(chosen, bool) for chosen in given.values()):
            raise DataError("not an answer that is known", where=where, given=given)
        chosen = [option for option, is_chosen in given.items() if is_chosen]
        if many:
            return chosen
        if len(chosen) > 1:
            raise DataError("several options of a question with one", where=where, given=", ".join(chosen))
        return chosen[0] if chosen else None
    if given is None or not str(given).strip():
        return None
    return _parts(given) if many else str(given)


def _parts(cell: object) -> list[str]:
    return [part.strip() for part in str(cell or "").split(SEPARATOR) if part.strip()]


def _seconds(table: DataTable, row: int) -> float | None:
    name = "WorkTimeInSeconds"
    cell = table[name][row] if name in table else None
    if cell in (None, ""):
        return None
    try:
        seconds = float(cell)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 10**9:
        raise DataError("no time", where=table.where(row, name), given=cell, allowed="seconds, 0 or more")
    return seconds
