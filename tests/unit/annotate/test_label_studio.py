"""Exports of Label Studio."""

import json

import pytest

from counterfoil.annotate.platforms.label_studio import read_export
from counterfoil.errors import DataError
from refusals import refuses

MANY = {"why"}


def annotation(number, person, *regions, **more):
    return {"id": number, "completed_by": person, "result": list(regions), "lead_time": 2.5, **more}


def region(name, kind, **value):
    return {"from_name": name, "to_name": "image", "type": kind, "value": value}


def choice(*names, control="match"):
    return region(control, "choices", choices=list(names))


@pytest.fixture
def export(tmp_path):
    """Writes a task with these annotations."""

    def write(*annotations, **task):
        tasks = [{"id": 17, "data": {"image": "x"}, "annotations": list(annotations), **task}]
        (tmp_path / "export.json").write_text(json.dumps(tasks))
        return tmp_path / "export.json"

    return write


def test_an_export_of_label_studio(export):
    path = export(
        annotation(1, {"id": 7, "email": "ann@example.org"}, choice("no"), updated_at="2026-01-02"),
        annotation(2, 7, choice("yes"), updated_at="2026-01-01"),
        annotation(3, 8, choice("yes"), choice("colour", control="why")),
        annotation(4, 9, was_cancelled=True),
        annotation(5, 1, choice("no"), ground_truth=True),
        annotation(6, 10, choice("no"), choice("colour", "size", control="why")),
        predictions=[{"result": [choice("yes")]}],
    )
    judgements, left_out = read_export(path)
    assert left_out == {"cancelled": 1, "annotated again": 1}
    rows = {(row["person"], row["question"]): row for row in judgements.to_pylist()}
    assert {key: row["answer"] for key, row in rows.items()} == {
        ("7", "match"): "no",  # The later one of two.
        ("8", "match"): "yes",
        ("8", "why"): '["colour"]',
        ("10", "match"): "no",
        ("10", "why"): '["colour", "size"]',
    }
    golden = {key: row["golden"] for key, row in rows.items() if row["golden"] is not None}
    assert golden == {("7", "match"): True, ("8", "match"): False, ("10", "match"): True}
    assert {row["item"] for row in rows.values()} == {"17"}
    assert "example.org" not in json.dumps(judgements.to_pylist())


def test_answers_of_every_kind_of_control(export):
    regions = (
        choice("yes"),
        choice("colour", control="why"),
        region("stars", "rating", rating=3),
        region("better", "pairwise", selected="left"),
        region("note", "textarea", text=["two", "lines, <b>ü</b>"]),
        region("errors", "labels", start=8, end=9, labels=["other"]),
        region("errors", "labels", start=2, end=5, labels=["object"]),
    )
    path = export(annotation(1, 7, *regions), data={"item": "a"})
    rows = read_export(path, MANY)[0].to_pylist()
    assert {(row["item"], row["person"], row["seconds"]) for row in rows} == {("a", "7", 2.5)}
    assert {row["question"]: row["answer"] for row in rows} == {
        "match": "yes",
        "why": '["colour"]',
        "stars": "3",
        "better": "left",
        "note": "two\nlines, <b>ü</b>",
        "errors": '[{"start": 2, "end": 5, "label": "object"}, {"start": 8, "end": 9, "label": "other"}]',
    }


@pytest.mark.parametrize(
    ("region", "message"),
    [
        (
            {"type": "rectanglelabels"},
            "a result that is not supported; given: rectanglelabels; allowed: choices",
        ),
        ({**choice("yes"), "type": "relation"}, "not supported; given: relation"),
        (region("match", "choices", choices="yes"), "control match: not a list of choices; given: yes"),
        (region("errors", "labels", start=5, end=2, labels=["object"]), "not a span of a text"),
        (region("errors", "labels", start="0", end=2, labels=["object"]), "not a span of a text"),
        (region("better", "pairwise", selected="both"), "not an answer of this control; given: both"),
        (region("stars", "rating", rating=True), "not an answer of this control"),
        (region("note", "textarea"), "not an answer of this control"),
    ],
)
def test_results_that_do_not_fit(export, region, message):
    path = export(annotation(5, 7, region))
    words = refuses(message, read_export, path)
    assert words.startswith(f"{path}, task 17, annotation 5")


def test_questions_of_several_choices_are_in_the_export(export):
    path = export(annotation(5, 7, choice("yes")))
    refuses("no such question; given: why; allowed: match", read_export, path, MANY)


def test_two_results_of_one_control_are_none(export):
    with pytest.raises(DataError, match="control match: two results of one control"):
        read_export(export(annotation(5, 7, choice("yes"), choice("no"))))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "not an export of Label Studio"),
        ('[{"image": "x", "match": "yes"}]', "export as JSON, not as JSON-MIN"),
        ('[{"annotations": []}]', "neither 'item' in its data nor an id"),
        ('[{"id": 1, "annotations": {}}]', "annotations are no list of objects"),
        ('[{"id": 1, "annotations": []}]', "no annotations; given: 1 tasks"),
        ('[{"id": 1, "annotations": [{"result": []}]}]', "no person in 'completed_by'"),
        ('[{"id": 1, "annotations": [{"result": {}, "completed_by": 1}]}]', "its result is no list"),
        (
            '[{"id": 1, "annotations": [{"result": [], "completed_by": 1, "lead_time": -1}]}]',
            "no time in 'lead_time'",
        ),
    ],
)
def test_files_that_are_no_export(tmp_path, content, message):
    (tmp_path / "export.json").write_text(content)
    refuses(message, read_export, tmp_path / "export.json")
