"""The table of judgements: written, read, checked."""

import json

import pyarrow as pa
import pytest

from counterfoil.annotate.agreement import counted
from counterfoil.annotate.judgement_table import (
    SCHEMA,
    answer_cell,
    answer_value,
    judgement_rows,
    read_judgement_table,
    write_judgement_table,
)
from counterfoil.errors import CounterfoilError, InputError
from refusals import refuses

TABLE = pa.table(
    {
        "item": ["a", "a", "b", "=1+1"],
        "person": ["p", "q", "p", "p"],
        "question": ["match"] * 4,
        "answer": ["yes", "-no", '["colour", "size"]', ' two\nlines, "quoted" '],
        "seconds": [1.25, None, 0.0, 3.0],
        "golden": [None, True, False, None],
        "kind": ["swap", None, "=add", "swap"],
    }
)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_what_is_written_is_read(tmp_path, suffix):
    path = tmp_path / f"judged{suffix}"
    write_judgement_table(path, TABLE)
    result = read_judgement_table(path)
    # CSV holds no difference between a null and an empty cell of a column that is not looked at.
    assert result.select(SCHEMA.names).to_pylist() == TABLE.select(SCHEMA.names).to_pylist()
    assert [kind or None for kind in result["kind"].to_pylist()] == TABLE["kind"].to_pylist()
    assert result.schema.field("seconds").type == pa.float64()
    # A cell of CSV is no formula to a spreadsheet.
    assert suffix == ".parquet" or all(words in path.read_text() for words in ("'=1+1", '"wrong"'))


def test_answers_that_were_set_aside_do_not_count_and_json_may_hold_lists(tmp_path):
    (tmp_path / "judged.csv").write_text(
        "item,person,question,answer,role,counted\na,p,q,yes,work,true\na,r,q,no,work,false\nb,p,q,no,,\n"
    )
    assert counted(read_judgement_table(tmp_path / "judged.csv"))["answer"].to_pylist() == ["yes", "no"]
    rows = [{"item": 7, "person": "p", "question": "why", "answer": ["colour"], "golden": "right"}]
    (tmp_path / "judged.json").write_text(json.dumps(rows))
    (row,) = read_judgement_table(tmp_path / "judged.json").to_pylist()
    assert row == {**rows[0], "item": "7", "answer": '["colour"]', "seconds": None, "golden": True}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": ""}, "column 'answer', row 2: empty; leave rows without an answer out"),
        ({"item": ""}, "column 'item', row 2: empty"),
        ({"seconds": "-1"}, "column 'seconds', row 2: out of range; given: -1.0; allowed: 0 or more"),
        ({"golden": "maybe"}, "row 2, column 'golden': neither true nor false; given: maybe"),
        ({"item": "a", "person": "p"}, "row 2: answered before: item a, person p, question match"),
    ],
)
def test_bad_rows_are_named(tmp_path, change, message):
    good = {"item": "a", "person": "p", "question": "match", "answer": "yes", "seconds": "1", "golden": ""}
    lines = [good, {**good, "item": "b", "person": "q", **change}]
    path = tmp_path / "judged.csv"
    path.write_text("\n".join([",".join(good), *(",".join(line.values()) for line in lines)]))
    words = refuses(message.replace("(", r"\("), read_judgement_table, path, error=CounterfoilError)
    assert words.startswith(str(path))


def test_columns_that_are_needed_are_named_and_rows_may_not_leave_out_their_answer(tmp_path):
    (tmp_path / "judged.csv").write_text("item,question,answer\na,q,yes\n")
    refuses("no column 'person'", read_judgement_table, tmp_path / "judged.csv")
    refuses("unknown kind of table", write_judgement_table, tmp_path / "judged.xlsx", TABLE, error=InputError)
    assert not list(tmp_path.glob("*.xlsx"))
    refuses("row 1", judgement_rows, [{"item": "a", "person": "p", "question": "q"}], where="rows")


SPANS = [{"start": 0, "end": 3, "label": "object"}]


@pytest.mark.parametrize(("value", "kind"), [("[not a list]", "text"), ([], "many"), (SPANS, "spans")])
def test_answers_survive_their_cell(value, kind):
    assert answer_value(answer_cell(value), kind) == value


@pytest.mark.parametrize(("cell", "kind"), [("yes", "many"), ('{"a": 1}', "many"), ("[1]", "spans")])
def test_cells_of_another_kind_are_refused(cell, kind):
    refuses("", answer_value, cell, kind)
