"""Results of Mechanical Turk's requester site."""

import json

import pytest

from annotate.mturk_batches import PAIRS, hit, written
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
    judgements, left_out = read(
        hit(1, "A1"), hit(1, "A2"), hit(2, "A1", **approved), hit(2, "A3", **rejected)
    )
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
    judgements, _ = read(
        hit(1, "A1", **{"Answer.match19": "Partially YES, but", "Answer.match20": "100% NO"})
    )
    golden = {row["item"]: row["golden"] for row in judgements.to_pylist() if row["golden"] is not None}
    assert golden == {"i1-19|c1-19": True, "i1-20|c1-20": True}


def test_a_pair_that_comes_again_counts_once(read):
    again = {"Input.image1": "i1-1", "Input.caption1": "c1-1", "Answer.match1": "100% NO"}
    judgements, left_out = read(hit(1, "A1"), hit(2, "A1", **again))
    own = [row for row in judgements.to_pylist() if (row["item"], row["question"]) == ("i1-1|c1-1", "match")]
    assert [row["answer"] for row in own] == ["Partially YES, but"]
    assert left_out["judged again"] == 2


def test_a_short_hit_has_fewer_items(read):
    short = {f"{side}{k}": "" for k in range(11, 21) for side in ("Input.image", "Input.caption")}
    judgements, _ = read(hit(1, "A1", **short))
    assert len(judgements) == 10 + 3
    assert set(judgements["seconds"].to_pylist()) == {57.0}


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
    (found,) = judgements.to_pylist()
    assert (found["answer"], found["person"], found["seconds"]) == (cell or "yes", "a1", None)


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
def test_results_that_do_not_fit(read, tmp_path, change, message):
    words = refuses(message, read, hit(1, "A1", **change))
    assert words.startswith(f"{tmp_path / 'batch.csv'}, row 1")


_MATCH = {"match": "Answer.match{n}"}


@pytest.mark.parametrize(
    ("layout", "status", "message"),
    [
        (None, "Approved", r"no column 'Input.item\{n\}'.*say which columns hold items"),
        (
            HitLayout(LAYOUT.item, {"match": "Answer.m{n}"}),
            "Approved",
            r"'Answer.m\{n\}'; given: Answer.match1",
        ),
        (HitLayout(LAYOUT.item, _MATCH, golden="Input.gold{n}"), "Approved", r"no column 'Input\.gold1'"),
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
