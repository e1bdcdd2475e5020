"""Exports of Label Studio, and the controls of its configurations."""

import json
from pathlib import Path
from typing import Any

import pytest

from counterfoil.annotate.platforms.label_studio import read_controls, read_export
from counterfoil.errors import DataError

CONTROLS = {"match": False, "why": True, "stars": False, "better": False, "note": False, "errors": True}


def annotation(number: int, person: Any, *regions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": number, "completed_by": person, "result": list(regions), "lead_time": 2.5, **more}


def choice(*names: str, control: str = "match") -> dict[str, Any]:
    return {"from_name": control, "to_name": "image", "type": "choices", "value": {"choices": list(names)}}


def export(path: Path, *annotations: dict[str, Any], **task: Any) -> Path:
    path.write_text(
        json.dumps([{"id": 17, "data": {"image": "x"}, "annotations": list(annotations), **task}])
    )
    return path


def test_an_export_of_label_studio(tmp_path: Path) -> None:
    path = export(
        tmp_path / "export.json",
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


def region(name: str, kind: str, **value: Any) -> dict[str, Any]:
    return {"from_name": name, "to_name": "image", "type": kind, "value": value}


def test_answers_of_every_kind_of_control(tmp_path: Path) -> None:
    path = export(
        tmp_path / "export.json",
        annotation(
            1,
            7,
            choice("yes"),
            choice("colour", control="why"),
            region("stars", "rating", rating=3),
            region("better", "pairwise", selected="left"),
            region("note", "textarea", text=["two", "lines, <b>ü</b>"]),
            region("errors", "labels", start=8, end=9, labels=["other"]),
            region("errors", "labels", start=2, end=5, labels=["object"]),
        ),
        data={"item": "a"},
    )
    rows = read_export(path, CONTROLS)[0].to_pylist()
    assert {(row["item"], row["person"], row["seconds"]) for row in rows} == {("a", "7", 2.5)}
    assert {row["question"]: row["answer"] for row in rows} == {
        "match": "yes",
        "why": '["colour"]',
        "stars": "3",
        "better": "left",
        "note": "two\nlines, <b>ü</b>",
        "errors": '[{"start": 2, "end": 5, "label": "object"}, {"start": 8, "end": 9, "label": "other"}]',
    }


SPAN = {"from_name": "errors", "to_name": "caption", "type": "labels"}


@pytest.mark.parametrize(
    ("region", "message"),
    [
        (
            {"type": "rectanglelabels"},
            "a result that is not supported; given: rectanglelabels; allowed: choices",
        ),
        ({**choice("yes"), "type": "relation"}, "not supported; given: relation"),
        ({**choice("yes"), "from_name": "odd"}, "no such control in the labelling configuration; given: odd"),
        ({**choice("yes"), "value": {"choices": "yes"}}, "control match: not a list of choices; given: yes"),
        ({**SPAN, "value": {"start": 5, "end": 2, "labels": ["object"]}}, "not a span of a text"),
        ({**SPAN, "value": {"start": "0", "end": 2, "labels": ["object"]}}, "not a span of a text"),
        (
            {"from_name": "better", "type": "pairwise", "value": {"selected": "both"}},
            "not an answer of this control; given: both",
        ),
        (
            {"from_name": "stars", "type": "rating", "value": {"rating": True}},
            "not an answer of this control",
        ),
        ({"from_name": "note", "type": "textarea", "value": {}}, "not an answer of this control"),
    ],
)
def test_results_that_do_not_fit(tmp_path: Path, region: dict[str, Any], message: str) -> None:
    path = export(tmp_path / "export.json", annotation(5, 7, region))
    with pytest.raises(DataError, match=message) as caught:
        read_export(path, CONTROLS)
    assert str(caught.value).startswith(f"{path}, task 17, annotation 5")


def test_two_results_of_one_control_are_none(tmp_path: Path) -> None:
    path = export(tmp_path / "export.json", annotation(5, 7, choice("yes"), choice("no")))
    with pytest.raises(DataError, match="control match: two results of one control"):
        read_export(path)


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
        ("[", "not valid JSON"),
    ],
)
def test_files_that_are_no_export(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "export.json").write_text(content)
    with pytest.raises(DataError, match=message):
        read_export(tmp_path / "export.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('<View><Image name="i" value="$i"/></View>', "no controls; allowed: Choices"),
        ('<!DOCTYPE a [<!ENTITY f SYSTEM "file:///etc/passwd">]><a>&f;</a>', "has a document type"),
        ('<?xml version="1.0"?>\n<!DOCTYPE a>\n<a/>', "has a document type"),
        ("<a>&b;</a>", "not valid XML: undefined entity"),
        (
            '<View><RectangleLabels name="r" toName="i"/></View>',
            "a control that is not supported; given: Rectangle",
        ),
        ('<View><Choices name="c"><Choice value="a"/></Choices></View>', "a control without name or toName"),
        ("<View>", "not valid XML"),
    ],
)
def test_configurations_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_controls(text, where="labelling.xml")


def test_controls_of_a_configuration() -> None:
    text = """<View style="display: flex">
      <Style>.a { color: red }</Style>
      <View><Header value="Which is better?"/><Image name="left-image" value="$image1"/></View>
      <Image name="right-image" value="$image2"/>
      <Pairwise name="pw" toName="left-image,right-image"/>
      <Rating name="stars" toName="left-image" maxRating="4" required="true"/>
      <Choices name="kind" toName="left-image" choice="multiple" showInline="true"><View>
        <Choice value="Colour"/><Choice value="Size" alias="size"/></View></Choices>
      <Choices name="match" toName="left-image" choice="single"/>
      <Labels name="errors" toName="caption"><Label value="object"/></Labels>
      <TextArea name="note" toName="caption"/>
    </View>"""
    controls = read_controls(text, where="labelling.xml")
    assert sorted(controls) == ["errors", "kind", "match", "note", "pw", "stars"]
    assert {name for name, is_list in controls.items() if is_list} == {"kind", "errors"}
