"""Tables: what each layout becomes, which columns fit, and what a broken one says."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from counterfoil.benchmarks.tables import (
    DataTable,
    booleans,
    floats,
    integers,
    labels,
    read_table,
    stack,
    texts,
)
from counterfoil.errors import CounterfoilError, DataError, ScoreError
from counterfoil.inputs.files import parse_json
from refusals import refuses

KEYED = '{"7": {"b": "x"}, "9": {"b": "y"}}'


def _write(path, text):
    path.write_bytes(text.encode())
    return path


def test_csv_keeps_line_breaks_quotes_and_blanks_in_cells_and_parquet_images(tmp_path, hub_parquet, jpeg):
    table = read_table(_write(tmp_path / "a.csv", '\ufeffid,caption\n1,"two\nlines, ""quoted"" "\n2, x \n'))
    assert list(table.columns) == ["id", "caption"]  # the byte-order mark is not part of the name
    assert (list(table["caption"]), table.kind) == (['two\nlines, "quoted" ', " x "], "csv")
    assert len(table) == 2
    table = read_table(hub_parquet(tmp_path / "a.parquet", {"image": [jpeg(1)], "n": [3]}))
    assert (table["image"][0], table["n"][0]) == ({"bytes": jpeg(1), "path": None}, 3)


@pytest.mark.parametrize(
    ("name", "kind", "text", "columns", "last"),
    [
        ("a.tsv", "tsv", "id\tcaption\n1\ta, b\n", {"id": ["1"], "caption": ["a, b"]}, "row 1"),
        # A cell that a row does not have.
        ("a.json", "json", '[{"id": 1}, {"id": 2, "b": 0.5}]', {"id": [1, 2], "b": [None, 0.5]}, "row 2"),
        ("a.json", "keyed", KEYED, {"id": ["7", "9"], "b": ["x", "y"]}, "item '9'"),
        ("a.json", "keyed", '{"a": 0.25, "b": true}', {"id": ["a", "b"], "value": [0.25, True]}, "item 'b'"),
        # The blank line counts.
        ("a.jsonl", "jsonl", '{"label": "0"}\n\n{"label": "1"}\n', {"label": ["0", "1"]}, "line 3"),
        ("a.txt", "txt", "A dog.\n\n A cat. \n", {"caption": ["A dog.", "A cat."]}, "row 2"),
    ],
)
def test_layouts(tmp_path, name, kind, text, columns, last):
    table = read_table(_write(tmp_path / name, text))
    assert {column: list(cells) for column, cells in table.columns.items()} == columns
    assert table.kind == kind
    assert table.where(len(table) - 1, "x") == f"{tmp_path / name}, {last}, column 'x'"


def test_folder_stacks_its_files_by_name(tmp_path):
    _write(tmp_path / "swap_obj.csv", "id,correct\n0,1\n")
    _write(tmp_path / "add_obj.csv", "id,correct\n0,0\n1,1\n")
    _write(tmp_path / "notes.txt", "not a table")
    table = read_table(tmp_path)
    assert list(table["subset"]) == ["add_obj", "add_obj", "swap_obj"]
    assert list(table["correct"]) == ["0", "1", "1"]
    assert table.where(2, "id") == f"{tmp_path / 'swap_obj.csv'}, row 1, column 'id'"  # the file it came from


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "", "the table is empty"),
        ("a.csv", "id,score\n", "no rows"),
        ("a.csv", "id,score\n1,2\n3\n", "row 2 (line 3): ragged row; given: 1 cells; allowed: 2"),
        ("a.csv", "id,score,id\n1,2,3\n", "column name occurs twice; given: 'id'"),
        ("a.csv", 'id,score\n1,"2\n', "not valid CSV"),
        ("a.xlsx", "x", "unknown kind of table; given: .xlsx; allowed: .csv"),
        ("a.json", '[{"id": 1},', "line 1, column 12: not valid JSON"),
        ("a.json", "[]", "no rows"),
        ("a.json", "3", "not a table; given: 3"),
        ("a.json", "[1]", "row 1: not an object; given: 1"),
        ("a.json", '{"a": {"x": 1}, "b": 2}', "item 'a': items are of different kinds"),
        ("a.json", '{"a": 1, "a": 2}', "key occurs twice in a JSON object; given: 'a'"),
        ("a.json", '{"a": {"id": "b"}}', "item 'a': id differs from the key; given: b"),
        ("a.jsonl", '{"id": 1}\n{"id": 2\n', "line 2, column 9: not valid JSON"),
        ("a.jsonl", '{"id": 1}\n{"id": 2, "id": 3}\n', "line 2: key occurs twice"),
        ("a.jsonl", '{"id": 1}\n[2]\n', "line 2: not an object"),
        ("a.parquet", "PAR1 cut off", "not a readable Parquet file"),
    ],
)
def test_broken_tables_say_what_and_where(tmp_path, name, text, message):
    path = _write(tmp_path / name, text)
    words = refuses("", read_table, path)
    assert message in words
    assert str(path) in words


def test_folders_that_are_no_table(tmp_path):
    refuses("no such file", read_table, tmp_path / "nowhere.csv")
    refuses("no table in this folder", read_table, tmp_path)
    _write(tmp_path / "a.csv", "id,score\n1,2\n")
    _write(tmp_path / "b.csv", "id\n1\n")
    refuses(r"b\.csv: columns differ from those of a\.csv", read_table, tmp_path)
    (tmp_path / "b.csv").unlink()
    _write(tmp_path / "a.jsonl", '{"id": "1", "score": 1}\n')
    refuses("two files for one subset; given: a", read_table, tmp_path)


def test_columns_that_are_unknown_hidden_or_of_different_lengths():
    table = DataTable({"caption": ["a"], "negative_caption": ["b"]}, "a.csv")
    with pytest.raises(DataError, match=r"no column 'captoin'; given: caption, negative_caption"):
        table["captoin"]
    with pytest.raises(DataError, match="column 'subset' is taken"):
        stack([DataTable({"subset": ["x"]}, "a.csv")], source="folder", column="subset", values=["a"])
    refuses("different lengths", DataTable, {"a": [1, 2], "b": [1]}, "a.csv")


#: Letters that one of the layouts might lose: quotes, separators, blanks of all kinds, and others than ASCII.
LETTERS = "ab\"'\\,;:{}[] \t\n\x0b\x1f\x7f\x85\xa0\u2028\ufeff\u00e9\u0301\u732b\U0001f600"


@settings(max_examples=15)
@given(st.lists(st.tuples(st.text(LETTERS), st.floats(allow_nan=False)), min_size=1, max_size=8))
def test_every_layout_gives_the_same_cells(tmp_path_factory, rows):
    """What JSON, JSON Lines and Parquet hold comes back unchanged, whatever the text is."""
    folder = tmp_path_factory.mktemp("tables")
    objects = [{"caption": text, "score": number} for text, number in rows]
    _write(folder / "a.json", json.dumps(objects))
    _write(folder / "a.jsonl", "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in objects))
    pq.write_table(pa.Table.from_pylist(objects), folder / "a.parquet")
    for name in ("a.json", "a.jsonl", "a.parquet"):
        table = read_table(folder / name)
        assert list(zip(table["caption"], table["score"], strict=True)) == rows


def test_keys_that_nobody_asked_for_are_dropped():
    """At every depth, and what is doubled is still an error."""
    text = '{"a": [{"b": 1, "c": [{"b": 2, "d": 3}]}], "b": {"a": 4}}'
    assert parse_json(text, where="x", without=("b", "z")) == {"a": [{"c": [{"d": 3}]}]}
    assert parse_json(text, where="x") == json.loads(text)
    with pytest.raises(DataError, match="key occurs twice in a JSON object; given: 'b'"):
        parse_json('{"b": 1, "b": 2}', where="x", without=("b",))


def test_half_of_a_character_is_refused_where_it_stands(tmp_path):
    path = tmp_path / "swap_att.json"
    whole = {"0": {"caption": "a \U0001f600 of \\ud800"}}
    path.write_text(json.dumps(whole))
    assert list(read_table(path)["caption"]) == [whole["0"]["caption"]]
    path.write_text(json.dumps({**whole, "1": {"caption": "a \udc00"}}, indent=1))
    refuses(r"swap_att\.json, line 6: half of a character.*given: .udc00", read_table, path)


def _table(*cells):
    return DataTable({"x": cells}, "a.csv")


def test_floats_read_numbers_and_their_texts_and_long_cells_are_cut_in_messages():
    numbers = floats(_table("0.5", 2, -1.5, "1e-3", " 7 "), "x")
    np.testing.assert_array_equal(numbers, [0.5, 2.0, -1.5, 0.001, 7.0])
    assert len(refuses("", floats, _table("x" * 5000), "x", error=CounterfoilError)) < 150


@given(st.lists(st.floats(-1e100, 1e100), min_size=1))
def test_floats_lose_no_digit_through_text(numbers):
    np.testing.assert_array_equal(floats(_table(*map(repr, numbers)), "x"), numbers)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("nan", "a.csv, row 2, column 'x': not a finite number; given: nan"),
        (float("inf"), "a.csv, row 2, column 'x': not a finite number; given: inf"),
        ("high", "a.csv, row 2, column 'x': not a number; given: high"),
        ("", "a.csv, row 2, column 'x': not a number; given: (empty)"),
        (None, "a.csv, row 2, column 'x': not a number; given: nothing"),
        (True, "a.csv, row 2, column 'x': not a number; given: True"),
        ([1], "a.csv, row 2, column 'x': not a number; given: [1]"),
    ],
)
def test_floats_name_the_odd_cell(cell, message):
    assert refuses("", floats, _table(1.0, cell), "x", error=ScoreError) == message


def test_booleans_in_every_spelling():
    yes = ("True", "true", "TRUE", "1", 1, 1.0, "1.0", "yes", "Yes", True)
    no = ("False", "false", "0", 0, 0.0, "0.0", "no", "NO", False)
    assert booleans(_table(*yes), "x").all()
    assert not booleans(_table(*no), "x").any()


@pytest.mark.parametrize("cell", ["maybe", "", None, 2, 0.5, "nan"])
def test_booleans_name_the_odd_cell(cell):
    with pytest.raises(ScoreError, match=r"a\.csv, row 1, column 'x': neither true nor false"):
        booleans(_table(cell), "x")


def test_integers_texts_that_keep_blanks_and_labels():
    np.testing.assert_array_equal(integers(_table("3", 4, 5.0), "x"), [3, 4, 5])
    for cell in ("3.5", "x", None, float("nan")):
        refuses("not a whole number", integers, _table(cell), "x")
    assert texts(_table(" a ", "b"), "x") == (" a ", "b")
    for cell in ("", "  ", None, 3, {"a": 1}):
        refuses(r"a\.csv, row 2, column 'x': (empty|not a) text", texts, _table("a", cell), "x")
    assert labels(_table("a", 3, None, " b "), "x") == ("a", "3", "", "b")
    with pytest.raises(DataError, match=r"row 2, column 'x': unknown label; given: flip; allowed: add, swap"):
        labels(_table("add", "flip"), "x", ("add", "swap"))
    refuses("not a label", labels, _table(1.5), "x")
