"""Results of Mechanical Turk's requester site, and exports of Label Studio."""

import json
from dataclasses import replace

import pytest

from annotate.mturk_batches import PAIRS, hit, written
from counterfoil.annotate.platforms.label_studio import read_export
from counterfoil.annotate.platforms.mturk_files import HitLayout, read_results
from counterfoil.errors import InputError
from refusals import refuses

LAYOUT = HitLayout(
    ("Input.image{n}", "Input.caption{n}"),
    {"match": "Answer.match{n}", "why": "Answer.why{n}"},
    many=frozenset({"why"}),
    golden="Input.golden{n}",
)


@pytest.fixture
def read(tmp_path):
    """Reads a batch of these rows."""
    return lambda *rows, layout=LAYOUT, **more: read_results(
        written(tmp_path / "batch.csv", list(rows)), layout, **more
    )


def test_a_batch_of_hits_with_twenty_pairs(read):
    approved, rejected = ({"AssignmentStatus": state} for state in ("Approved", "Rejected"))
    batch = hit(1, "A1"), hit(1, "A2"), hit(2, "A1", **approved), hit(2, "A3", **rejected)
    judgements, left_out = read(*batch)
    assert left_out == {"rejected assignments": 1, "judged again": 0}
    table = judgements.to_pylist()
    match = [row for row in table if row["question"] == "match"]
    assert len(match) == 3 * PAIRS
    first = {"item": "i1-1|c1-1", "person": "A1", "question": "match", "answer": "Partially YES, but"}
    assert match[0] == {**first, "seconds": 570 / PAIRS, "golden": None, "assignment": "3A1A1"}
    # Pair 19 was answered "100% NO", pair 20 "100% YES": both wrong; 20 of 20 are asked for in order.
    assert [row["item"] for row in match[:PAIRS]] == [f"i1-{k}|c1-{k}" for k in range(1, PAIRS + 1)]
    assert [row["golden"] for row in match[:PAIRS]] == [None] * 18 + [False, False]
    why = [(row["answer"], row["golden"]) for row in table if row["question"] == "why"]
    assert why == [('["colour", "quantity"]', None)] * (3 * PAIRS // 4)


def test_golden_answers_may_be_one_of_several(read):
    answers = {"Answer.match19": "Partially YES, but", "Answer.match20": "100% NO"}
    judgements, _ = read(hit(1, "A1", **answers))
    golden = {row["item"]: row["golden"] for row in judgements.to_pylist() if row["golden"] is not None}
    assert golden == {"i1-19|c1-19": True, "i1-20|c1-20": True}


def test_a_pair_that_comes_again_counts_once_and_a_short_hit_has_fewer_items(read):
    again = {"Input.image1": "i1-1", "Input.caption1": "c1-1", "Answer.match1": "100% NO"}
    judgements, left_out = read(hit(1, "A1"), hit(2, "A1", **again))
    own = [row for row in judgements.to_pylist() if (row["item"], row["question"]) == ("i1-1|c1-1", "match")]
    assert [row["answer"] for row in own] == ["Partially YES, but"]
    assert left_out["judged again"] == 2
    short = {f"{side}{k}": "" for k in range(11, 21) for side in ("Input.image", "Input.caption")}
    judgements, _ = read(hit(1, "A1", **short))
    assert (len(judgements), set(judgements["seconds"].to_pylist())) == (10 + 3, {57.0})


@pytest.mark.parametrize(
    ("answers", "many", "cell"),
    [
        ({"Answer.match1": "-yes"}, False, "-yes"),
        ({"Answer.match1.yes": "true", "Answer.match1.no": "false"}, False, "yes"),
        ({f"Answer.match1.{name}": str(name != "c") for name in "abc"}, True, '["a", "b"]'),
        ({"Answer.match1.label": "yes"}, False, None),
        ({"Answer.taskAnswers": [{"match1": {"yes": True, "no": False}}]}, False, "yes"),
        ({"Answer.taskAnswers": [{"match1": {"label": "yes"}}]}, False, "yes"),
        ({"Answer.taskAnswers": [{"match1": "a free text"}]}, False, "a free text"),
        ({"Answer.taskAnswers": [{"match1": {"a": True, "b": True}}]}, True, '["a", "b"]'),
    ],
)
def test_answers_are_written_in_several_ways(read, answers, many, cell):
    row = {"HITId": "3H", "AssignmentId": "3A", "WorkerId": "A1", "AssignmentStatus": "Approved"}
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in answers.items()}
    questions = {"match": "Answer.match{n}"} if cell else {"match": "Answer.match{n}.label"}
    layout = HitLayout(questions=questions, many=frozenset({"match"} if many else ()))
    judgements, _ = read({**row, "Input.item1": "x", **texts}, layout=layout, identify=str.lower)
    (result,) = judgements.to_pylist()
    assert (result["answer"], result["person"], result["seconds"]) == (cell or "yes", "a1", None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"AssignmentStatus": "Pending"}, "column 'AssignmentStatus': unknown state; given: Pending"),
        ({"WorkerId": ""}, "row 1, column 'WorkerId': empty"),
        ({"WorkTimeInSeconds": "-3"}, "row 1, column 'WorkTimeInSeconds': no time; given: -3"),
        ({"Input.caption7": ""}, r"'Input.caption7': cannot be part of an item's id; given: \(empty\)"),
        ({"Input.caption7": "a|b"}, "column 'Input.caption7': cannot be part of an item's id; given: a|b"),
        ({"Answer.taskAnswers": "{"}, "column 'Answer.taskAnswers', line 1, column 2: not valid JSON"),
        ({"Answer.taskAnswers": '{"a": 1}'}, "not the answers of a task"),
        ({"Answer.taskAnswers": '[{"match1": {"a": true, "b": true}}]'}, "several options of a question"),
        ({"Answer.taskAnswers": '[{"match1": {"a": 3}}]'}, "not an answer that is known"),
    ],
)
def test_results_of_mechanical_turk_that_do_not_fit(read, tmp_path, change, message):
    assert refuses(message, read, hit(1, "A1", **change)).startswith(f"{tmp_path / 'batch.csv'}, row 1")


@pytest.mark.parametrize(
    ("layout", "status", "message"),
    [
        (None, "Approved", r"no column 'Input.item\{n\}'.*say which columns hold items"),
        (
            HitLayout(LAYOUT.item, {"match": "Answer.m{n}"}),
            "Approved",
            r"'Answer.m\{n\}'; given: Answer.match1",
        ),
        (replace(LAYOUT, golden="Input.gold{n}"), "Approved", r"no column 'Input\.gold1'"),
        (LAYOUT, "Rejected", "no answers"),
    ],
)
def test_columns_that_are_not_there(read, layout, status, message):
    refuses(message, read, hit(1, "A1", AssignmentStatus=status), layout=layout)


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({"item": ()}, "no columns"),
        ({"item": ("Input.image",)}, "some columns are numbered and some are not"),
        ({"many": frozenset({"why"})}, "unknown question; given: why; allowed: answer"),
    ],
)
def test_layouts_that_cannot_be(layout, message):
    refuses(message, HitLayout, error=InputError, **layout)


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
    rows = read_export(export(annotation(1, 7, *regions), data={"item": "a"}), MANY)[0].to_pylist()
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
        ({"type": "rectanglelabels"}, "is not supported; given: rectanglelabels; allowed: choices"),
        ({**choice("yes"), "type": "relation"}, "not supported; given: relation"),
        (region("match", "choices", choices="yes"), "control match: not a list of choices; given: yes"),
        (region("errors", "labels", start=5, end=2, labels=["object"]), "not a span of a text"),
        (region("errors", "labels", start="0", end=2, labels=["object"]), "not a span of a text"),
        (region("better", "pairwise", selected="both"), "not an answer of this control; given: both"),
        (region("stars", "rating", rating=True), "not an answer of this control"),
        (region("note", "textarea"), "not an answer of this control"),
    ],
)
def test_results_of_label_studio_that_do_not_fit(export, region, message):
    path = export(annotation(5, 7, region))
    assert refuses(message, read_export, path).startswith(f"{path}, task 17, annotation 5")


def test_questions_of_several_choices_are_there_and_controls_have_one_result(export):
    path = export(annotation(5, 7, choice("yes")))
    refuses("no such question; given: why; allowed: match", read_export, path, MANY)
    path = export(annotation(5, 7, choice("yes"), choice("no")))
    refuses("control match: two results of one control", read_export, path)


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
        ('[{"id": 1, "annotations": [{"result": [], "completed_by": 1, "lead_time": -1}]}]', "no time in"),
    ],
)
def test_files_that_are_no_export(tmp_path, content, message):
    (tmp_path / "export.json").write_text(content)
    refuses(message, read_export, tmp_path / "export.json")
