"""Annotations of Label Studio, as it exports them (JSON, not JSON-MIN), as judgements.

An annotation that is marked as ground truth is no person's judgement: the others are held to it, and it fills
their column `golden`. Source: labelstud.io, tags and task format.
"""

from collections.abc import Callable, Iterator, Mapping, Set as AbstractSet
from pathlib import Path
from typing import Any

import pyarrow as pa

from counterfoil.annotate.judgement_table import answer_cell, judgement_rows
from counterfoil.errors import DataError
from counterfoil.inputs.files import decoded, parse_json, read_bytes

#: What a result holds, by its type.
_TYPES = ("choices", "rating", "pairwise", "textarea", "labels")


def read_export(
    path: Path, many: AbstractSet[str] = frozenset(), *, identify: Callable[[str], str] = str
) -> tuple[pa.Table, dict[str, int]]:
    """The judgements in an export, and what was left out; a task's `item` is its data's, or else its own id.

    Of several annotations by one person for one task the last counts. The answers of a control are lists
    where it marks spans, is one of `many`, or any annotation has other than one choice.
    """
    tasks = parse_json(decoded(read_bytes(path), where=path), where=path)
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise DataError("not an export of Label Studio", where=path, allowed="a list of tasks (JSON)")
    if tasks and not any("annotations" in task for task in tasks):
        hint = "export as JSON, not as JSON-MIN, CSV or COCO"
        raise DataError("tasks without annotations", where=path, hint=hint)
    answers: dict[tuple[str, str], tuple[dict[str, Any], float | None]] = {}
    truths: dict[str, dict[str, Any]] = {}
    people: dict[str, str] = {}
    cancelled = repeated = 0
    for item, annotation, where in _annotations(tasks, path):
        if annotation.get("was_cancelled"):
            cancelled += 1
            continue
        answer = _answer(annotation.get("result"), where)
        if annotation.get("ground_truth"):
            truths[item] = answer
            continue
        # Label Studio gives a number, or an object with it.
        who, seconds = annotation.get("completed_by"), annotation.get("lead_time")
        who = who.get("id") if isinstance(who, dict) else who
        if isinstance(who, bool) or not isinstance(who, int | str) or who == "":
            raise DataError("no person in 'completed_by'", where=where, given=who)
        person, number = str(who), isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if seconds is not None and not (number and 0 <= seconds < 10**9):
            allowed = "seconds, 0 or more"
            raise DataError("no time in 'lead_time'", where=where, given=seconds, allowed=allowed)
        repeated += (item, person) in answers
        people.setdefault(person, identify(person))
        answers[item, person] = answer, None if seconds is None else float(seconds)
    pairs = [pair for answer, _ in answers.values() for pair in answer.items()]
    if odd := many - {name for name, _ in pairs}:
        raise DataError("no such question", where=path, given=min(odd), allowed=sorted({*dict(pairs)}))
    lists = [(name, value) for name, value in pairs if isinstance(value, list)]
    many = many | {name for name, value in lists if len(value) != 1 or isinstance(value[0], dict)}
    rows = [
        {
            "item": item,
            "person": people[person],
            "question": question,
            "answer": answer_cell(value[0] if isinstance(value, list) and question not in many else value),
            "seconds": seconds,
            "golden": _unordered(value) == _unordered(truths[item][question])
            if question in truths.get(item, {})
            else None,
        }
        for (item, person), (answer, seconds) in answers.items()
        for question, value in answer.items()
    ]
    if not rows:
        raise DataError("no annotations", where=path, given=f"{len(tasks):,} tasks")
    return judgement_rows(rows, where=path), {"cancelled": cancelled, "annotated again": repeated}


def _annotations(tasks: list[dict[str, Any]], path: Path) -> Iterator[tuple[str, dict[str, Any], str]]:
    """(item, annotation, what errors call it) of every task, the annotations of one in the order of time."""
    for i, task in enumerate(tasks, 1):
        data = task.get("data")
        item = str((data.get("item") if isinstance(data, dict) else None) or task.get("id") or "")
        where = f"{path}, task {item or i}"
        if not item:
            raise DataError("neither 'item' in its data nor an id", where=where)
        annotations = task.get("annotations", [])
        if not isinstance(annotations, list) or not all(isinstance(entry, dict) for entry in annotations):
            raise DataError("annotations are no list of objects", where=where)
        for annotation in sorted(annotations, key=lambda entry: str(entry.get("updated_at") or "")):
            yield item, annotation, f"{where}, annotation {annotation.get('id', '?')}"


def _answer(result: object, where: str) -> dict[str, Any]:
    """Answers by control: a text, a list of options, or a list of spans."""
    if not isinstance(result, list) or not all(isinstance(entry, dict) for entry in result):
        raise DataError("its result is no list of objects", where=where)
    answers: dict[str, Any] = {}
    for region in result:
        name, kind, value = region.get("from_name"), region.get("type"), region.get("value")
        if not isinstance(name, str) or kind not in _TYPES or not isinstance(value, dict):
            given = kind or "(no type)"
            raise DataError("a result that is not supported", where=where, given=given, allowed=_TYPES)
        answers[name] = _merged(answers.get(name), kind, value, f"{where}, control {name}")
    return answers


def _merged(before: Any, kind: str, value: Mapping[str, Any], where: str) -> Any:
    """What a control holds after one more region of it."""
    if kind == "labels":
        start, end, names = value.get("start"), value.get("end"), value.get("labels")
        whole = all(isinstance(i, int) and not isinstance(i, bool) for i in (start, end))
        if not whole or not 0 <= start < end or not isinstance(names, list):  # type: ignore[operator]
            raise DataError("not a span of a text", where=where, given=dict(value))
        spans = [*(before or []), *({"start": start, "end": end, "label": str(label)} for label in names)]
        return sorted(spans, key=lambda span: (span["start"], span["end"], span["label"]))
    if before is not None:
        raise DataError("two results of one control", where=where)
    given: Any = value.get({"pairwise": "selected", "textarea": "text"}.get(kind, kind))
    if kind == "choices":
        if not isinstance(given, list) or not all(isinstance(label, str) for label in given):
            raise DataError("not a list of choices", where=where, given=given)
        return list(given)
    if kind == "rating" and isinstance(given, int | float) and not isinstance(given, bool):
        return f"{given:g}"
    if kind == "textarea" and isinstance(given, list):
        given = "\n".join(map(str, given))
    if not isinstance(given, str) or (kind == "pairwise" and given not in ("left", "right")):
        raise DataError("not an answer of this control", where=where, given=given)
    return given


def _unordered(value: Any) -> Any:
    """An answer whatever the order of its options."""
    return sorted(value, key=str) if isinstance(value, list) else value
