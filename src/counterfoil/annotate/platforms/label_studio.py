"""Annotations of Label Studio as judgements: its exports, and the controls of its labelling configurations.

An export (JSON, not JSON-MIN) is a list of tasks with annotations, each with `completed_by`, `lead_time` and
a `result` of regions: one for a choice, a rating or a text, one for every span. An annotation that is marked
as ground truth is no person's judgement: the others are held to it, and it fills their column `golden`.

Source: labelstud.io, tags and task format.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.parsers import expat

import pyarrow as pa

from counterfoil.annotate.judgement_table import answer_cell, judgement_rows
from counterfoil.errors import DataError
from counterfoil.inputs.files import decoded, parse_json, read_bytes

#: Tags of controls that judgements have a place for.
_CONTROLS = ("Choices", "Labels", "Pairwise", "Rating", "TextArea")
#: What a result holds, by its type.
_TYPES = ("choices", "rating", "pairwise", "textarea", "labels")


def read_controls(text: str, *, where: object) -> dict[str, bool]:
    """The controls of a labelling configuration by name, and whether the answer to each is a list.

    Other tags are passed over. Raises `DataError` for a text that is no XML or has a document type, whose
    entities could grow without end or name files, and for controls that no table of judgements has a place
    for, such as boxes and brushes.

    >>> read_controls('<View><Choices name="match" toName="image"/></View>', where="labelling.xml")
    {'match': False}
    """
    controls: dict[str, bool] = {}

    def start(tag: str, given: Mapping[str, str]) -> None:
        if tag not in _CONTROLS:
            if "toName" in given:
                raise DataError("a control that is not supported", where=where, given=tag, allowed=_CONTROLS)
        elif not given.get("name") or not given.get("toName"):
            raise DataError("a control without name or toName", where=where, given=tag)
        else:
            controls[given["name"]] = tag == "Labels" or given.get("choice") == "multiple"

    def refuse(*_: object) -> None:
        raise DataError("has a document type, which is not read", where=where, hint="remove <!DOCTYPE ...>")

    parser = expat.ParserCreate("UTF-8")
    parser.StartElementHandler, parser.StartDoctypeDeclHandler = start, refuse
    try:
        parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        raise DataError(f"not valid XML: {error}", where=where) from None
    if not controls:
        raise DataError("no controls", where=where, allowed=_CONTROLS)
    return controls


def read_export(
    path: Path,
    controls: Mapping[str, bool] | None = None,
    *,
    identify: Callable[[str], str] = str,
) -> tuple[pa.Table, dict[str, int]]:
    """The judgements in an export (see the module), and what was left out; a task's `item` is its data's, or
    else its own id.

    Cancelled annotations were skipped by their people; of several by one person for one task the last counts.

    With `controls` (`read_controls`) results of others are refused, and they say which choices are lists;
    without them a control's are where any annotation has other than one. Raises `DataError` naming task and
    annotation for what does not fit.
    """
    tasks = parse_json(decoded(read_bytes(path), where=path), where=path)
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise DataError("not an export of Label Studio", where=path, allowed="a list of tasks (JSON)")
    if tasks and not any("annotations" in task for task in tasks):
        raise DataError(
            "tasks without annotations", where=path, hint="export as JSON, not as JSON-MIN, CSV or COCO"
        )
    answers: dict[tuple[str, str], tuple[dict[str, Any], float | None]] = {}
    truths: dict[str, dict[str, Any]] = {}
    people: dict[str, str] = {}
    cancelled = repeated = 0
    for at, task in enumerate(tasks, 1):
        name = str((task.get("data") or {}).get("item") or task.get("id") or "")
        where = f"{path}, task {name or at}"
        if not name:
            raise DataError("neither 'item' in its data nor an id", where=where)
        annotations = task.get("annotations", [])
        if not isinstance(annotations, list) or not all(isinstance(entry, dict) for entry in annotations):
            raise DataError("annotations are no list of objects", where=where)
        for annotation in sorted(annotations, key=lambda entry: str(entry.get("updated_at") or "")):
            if annotation.get("was_cancelled"):
                cancelled += 1
                continue
            spot = f"{where}, annotation {annotation.get('id', '?')}"
            answer = _answer(annotation.get("result"), controls, spot)
            if annotation.get("ground_truth"):
                truths[name] = answer
                continue
            # Label Studio gives a number, or an object with it.
            who, seconds = annotation.get("completed_by"), annotation.get("lead_time")
            who = who.get("id") if isinstance(who, dict) else who
            if isinstance(who, bool) or not isinstance(who, int | str) or who == "":
                raise DataError("no person in 'completed_by'", where=spot, given=who)
            person, number = str(who), isinstance(seconds, int | float) and not isinstance(seconds, bool)
            if seconds is not None and not (number and 0 <= seconds < 10**9):
                allowed = "seconds, 0 or more"
                raise DataError("no time in 'lead_time'", where=spot, given=seconds, allowed=allowed)
            repeated += (name, person) in answers
            people.setdefault(person, identify(person))
            answers[name, person] = answer, None if seconds is None else float(seconds)
    if controls is None:
        # Whose answers are lists: those that have other than one option anywhere, and spans.
        pairs = [pair for answer, _ in answers.values() for pair in answer.items()]
        lists = [(name, value) for name, value in pairs if isinstance(value, list)]
        controls = {name: True for name, value in lists if len(value) != 1 or isinstance(value[0], dict)}
    many = {control for control, is_list in controls.items() if is_list}
    rows = [
        {
            "item": name,
            "person": people[person],
            "question": question,
            "answer": answer_cell(value[0] if isinstance(value, list) and question not in many else value),
            "seconds": seconds,
            "golden": _unordered(value) == _unordered(truths[name][question])
            if question in truths.get(name, {})
            else None,
        }
        for (name, person), (answer, seconds) in answers.items()
        for question, value in answer.items()
        if value != [] or question in many
    ]
    if not rows:
        raise DataError("no annotations", where=path, given=f"{len(tasks):,} tasks")
    left_out = {"cancelled": cancelled, "annotated again": repeated}
    return judgement_rows(rows, where=path), left_out


def _answer(result: object, controls: Mapping[str, bool] | None, where: str) -> dict[str, Any]:
    """Answers by control: a text, a list of options, or a list of spans."""
    if not isinstance(result, list) or not all(isinstance(entry, dict) for entry in result):
        raise DataError("its result is no list of objects", where=where)
    answers: dict[str, Any] = {}
    for region in result:
        name, kind, value = region.get("from_name"), region.get("type"), region.get("value")
        if not isinstance(name, str) or kind not in _TYPES or not isinstance(value, dict):
            raise DataError(
                "a result that is not supported", where=where, given=kind or "(no type)", allowed=_TYPES
            )
        if controls is not None and name not in controls:
            raise DataError(
                "no such control in the labelling configuration", where=where, given=name, allowed=controls
            )
        answers[name] = _merged(answers.get(name), kind, value, f"{where}, control {name}")
    return answers


def _merged(before: Any, kind: str, value: Mapping[str, Any], where: str) -> Any:
    """What a control holds after one more region of it."""
    if kind == "labels":
        start, end, names = value.get("start"), value.get("end"), value.get("labels")
        whole = all(isinstance(at, int) and not isinstance(at, bool) for at in (start, end))
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
