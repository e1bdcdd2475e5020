"""Label Studio: configurations and tasks out, exports in, and both ways round."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from counterfoil.annotate.forms.base import FormField, Option, Shown, WorkItem, WorkPage
from counterfoil.annotate.forms.registry import WORK_FORMS
from counterfoil.annotate.judgement_table import judgement_rows
from counterfoil.annotate.platforms.label_studio import (
    LabelledObject,
    LabellingConfig,
    LabellingControl,
    config_of,
    embedded,
    local_file,
    read_config,
    tasks_of,
)
from counterfoil.annotate.platforms.label_studio_answers import annotated, read_export
from counterfoil.errors import DataError, InputError

MATCH = FormField(
    "match",
    'Does it "match"?',
    options=(
        Option("yes", "100% YES"),
        Option("a, b", "Partially YES, but <...>"),
        Option("no", "100% NO"),
    ),
    level="ordinal",
)
PAGE = WorkPage(
    (Shown("image", "a.png", "Image"), Shown("text", "A cat & a dog.", "Caption")),
    (
        MATCH,
        FormField("why", "Why?", "many", (Option("colour"), Option("size")), when={"match": ("no",)}),
        FormField("note", "Remarks", "text", required=False, when={"match": ("a, b",)}),
        FormField("spans", "Mark errors", "spans", (Option("object"), Option("other")), text="Caption"),
    ),
)
CONFIG = LabellingConfig(
    (LabelledObject("image", "image", key="image"), LabelledObject("caption", "text", key="caption")),
    (
        LabellingControl("match", "one", ("image",), options=(("yes", "Yes"), ("no", "No"))),
        LabellingControl("why", "many", ("image",), options=(("colour", "Colour"), ("size", "Size"))),
        LabellingControl("stars", "rating", ("caption",), most=4),
        LabellingControl("better", "pairwise", ("image", "caption")),
        LabellingControl("note", "text", ("caption",), required=False),
        LabellingControl("errors", "spans", ("caption",), options=(("object", "Object"), ("other", "Other"))),
    ),
)
ROWS = [
    ("a", "p", "match", "yes", 4.5),
    ("a", "p", "why", '["colour", "size"]', 4.5),
    ("a", "p", "stars", "3", 4.5),
    ("a", "p", "better", "left", 4.5),
    ("a", "p", "note", "two\nlines, <b>ü</b>", 4.5),
    (
        "a",
        "p",
        "errors",
        '[{"start": 2, "end": 5, "label": "object"}, {"start": 8, "end": 9, "label": "other"}]',
        4.5,
    ),
    ("a", "q", "match", "no", None),
    ("a", "q", "why", "[]", None),
    ("b", "q", "match", "no", 1.0),
]


def judged() -> Any:
    names = ("item", "person", "question", "answer", "seconds")
    return judgement_rows([dict(zip(names, row, strict=True)) for row in ROWS], where="rows")


def test_configurations_are_read_again() -> None:
    assert read_config(CONFIG.xml()) == CONFIG
    made = config_of(PAGE)
    assert read_config(made.xml()) == made
    assert read_config(made.xml().encode()) == made


def test_a_page_becomes_objects_and_controls() -> None:
    made = config_of(PAGE)
    assert [(each.name, each.kind) for each in made.objects] == [("image", "image"), ("caption", "text")]
    match, why, note, spans = made.controls
    assert match.options == (
        ("yes", "100% YES"),
        ("a, b", "Partially YES, but <...>"),
        ("no", "100% NO"),
    )
    assert (why.kind, why.when, why.required) == ("many", ("match", ("no",)), True)
    # A comma would end the value: the field is always shown.
    assert (note.when, note.required) == (None, False)
    assert (spans.kind, spans.to) == ("spans", ("caption",))


#: Cells of forms whose columns are not all filled at once.
CELLS: dict[str, dict[str, Any]] = {
    "choose": {"images": ["a.png"], "captions": ["A cat.", "A dog."]},
    "preference": {
        "first": "one",
        "second": "another",
        "caption": "A cat.",
        "first_images": ["a.png", "b.png"],
        "second_images": ["b.png", "a.png"],
    },
}


@pytest.mark.parametrize("name", list(WORK_FORMS))
def test_every_form_of_work_has_a_configuration(name: str) -> None:
    kinds = {"image": "a.png", "text": "A cat.", "images": ["a.png", "b.png"], "texts": ["A cat.", "A dog."]}
    form = WORK_FORMS[name].form({}, where=name)
    item = WorkItem("1", CELLS.get(name) or {column: kinds[kind] for column, kind in form.columns.items()})
    page = form.page(item)
    config, (task,) = tasks_of([("1", page)], lambda image: f"/data/{image}")
    assert read_config(config.xml()) == config
    assert {each.key for each in config.objects} | {"item"} == set(task["data"])
    assert [each.name for each in config.controls] == [each.name for each in page.fields]


def test_tasks_hold_what_is_shown_and_no_answer(tmp_path: Path) -> None:
    form = WORK_FORMS["best-of-k"].form({}, where="test")
    items = [
        WorkItem(name, {"caption": f"Caption {name}.", "images": ["a.png", "b.png"]}, golden={"best": ("1",)})
        for name in ("x", "y")
    ]
    config, tasks = tasks_of([(item.id, form.page(item)) for item in items], lambda image: f"/d/{image}")
    assert tasks[1]["data"] == {
        "item": "y",
        "description": "Caption y.",
        "best_0": "/d/a.png",
        "best_1": "/d/b.png",
    }
    assert config.controls[0].options[-1] == ("none", "None of them fits")
    more = WorkItem("z", {"caption": "Caption z.", "images": ["a.png", "b.png", "c.png"]})
    with pytest.raises(InputError, match="item 'z': its page has other parts than that of item 'x'"):
        tasks_of([(item.id, form.page(item)) for item in (*items, more)], str)
    with pytest.raises(InputError, match="no items"):
        tasks_of([], str)


def test_two_things_of_one_label_have_two_names() -> None:
    page = WorkPage(
        (Shown("text", "a", "Item"), Shown("text", "b", "Item"), Shown("text", "c", "match")), (MATCH,)
    )
    config, (task,) = tasks_of([("1", page)], str)
    assert task["data"] == {"item": "1", "item_2": "a", "item_3": "b", "match_2": "c"}
    assert len({each.name for each in config.objects}) == 3


def test_images_by_address(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    file = tmp_path / "images" / "a b.png"
    file.write_bytes(b"\x89PNG")
    assert local_file(file, tmp_path) == "/data/local-files/?d=images/a%20b.png"
    assert embedded(file) == "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()
    with pytest.raises(InputError, match="not below Label Studio's document root"):
        local_file(file, tmp_path / "elsewhere")


def test_judgements_survive_both_ways(tmp_path: Path) -> None:
    tasks = [{"data": {"item": name, "image": "x", "caption": "y"}} for name in ("a", "b")]
    made, people = annotated(tasks, judged(), CONFIG)
    (tmp_path / "export.json").write_text(json.dumps(made))
    found = read_export(tmp_path / "export.json", CONFIG, identify=lambda number: people[int(number) - 1])
    assert found.judgements.to_pylist() == judged().to_pylist()
    assert (found.tasks, found.people, found.cancelled, found.repeated) == (2, ("1", "2"), 0, 0)
    # Equal judgements give equal files.
    assert annotated(tasks, judged(), CONFIG)[0] == made


def test_judgements_of_other_items_are_no_annotations() -> None:
    with pytest.raises(DataError, match="no task of this item; given: a"):
        annotated([{"data": {"item": "z"}}], judged(), CONFIG)
    other = judgement_rows([{"item": "a", "person": "p", "question": "odd", "answer": "x"}], where="rows")
    with pytest.raises(DataError, match="no such control in the labelling configuration; given: odd"):
        annotated([{"data": {"item": "a"}}], other, CONFIG)


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
    found = read_export(path)
    assert (found.cancelled, found.repeated, found.golden, found.people) == (1, 1, 1, ("8", "10", "7"))
    rows = {(row["person"], row["question"]): row for row in found.judgements.to_pylist()}
    assert {key: row["answer"] for key, row in rows.items()} == {
        ("7", "match"): "no",  # The later one of two.
        ("8", "match"): "yes",
        ("8", "why"): '["colour"]',
        ("10", "match"): "no",
        ("10", "why"): '["colour", "size"]',
    }
    assert {key: row["golden"] for key, row in rows.items()} == {
        ("7", "match"): True,
        ("8", "match"): False,
        ("8", "why"): None,
        ("10", "match"): True,
        ("10", "why"): None,
    }
    assert {row["item"] for row in rows.values()} == {"17"}
    assert "example.org" not in json.dumps(found.judgements.to_pylist())


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
        read_export(path, CONFIG)
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
        (
            '<View><RectangleLabels name="r" toName="i"/></View>',
            "a control that is not supported; given: Rectangle",
        ),
        ('<View><Choices name="c"><Choice value="a"/></Choices></View>', "a control without name or toName"),
        ('<View><Rating name="r" toName="i" maxRating="many"/></View>', "maxRating is no number"),
        ('<!DOCTYPE View [<!ENTITY a "b">]><View>&a;</View>', "has a document type"),
        ("<View>", "not valid XML"),
    ],
)
def test_configurations_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_config(text)


def test_a_configuration_of_others_is_read() -> None:
    text = """<View style="display: flex">
      <Style>.a { color: red }</Style>
      <View><Header value="Which is better?"/><Image name="left-image" value="$image1"/></View>
      <Image name="right-image" value="$image2"/>
      <Pairwise name="pw" toName="left-image,right-image"/>
      <Rating name="stars" toName="left-image" maxRating="4" required="true"/>
      <Choices name="kind" toName="left-image" choice="multiple" showInline="true"><View>
        <Choice value="Colour"/><Choice value="Size" alias="size"/></View></Choices>
    </View>"""
    found = read_config(text)
    assert [(each.name, each.key) for each in found.objects] == [
        ("left-image", "image1"),
        ("right-image", "image2"),
    ]
    pairwise, stars, kind = found.controls
    assert (pairwise.kind, pairwise.to) == ("pairwise", ("left-image", "right-image"))
    assert (stars.kind, stars.most, stars.required) == ("rating", 4, True)
    assert kind.options == (("Colour", "Colour"), ("size", "Size"))
