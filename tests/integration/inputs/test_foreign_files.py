"""Files of others that are odd, broken or made to harm: a line each, at once, whatever they claim."""

import json
import os
import threading
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from counterfoil.benchmarks.tables import integers, read_table
from counterfoil.errors import DataError, InputError
from counterfoil.inputs import limits
from counterfoil.inputs.arrays import read_npy, read_npz
from counterfoil.inputs.columns import ColumnSchema, Schema, read_columns, read_parquet
from counterfoil.inputs.files import MAX_DEPTH, parse_json, parse_toml, read_bytes, read_json, read_text
from counterfoil.inputs.limits import RANGES, check_amount
from faults.files import encrypted, nested, npy_of, npz
from refusals import refuses


@pytest.mark.parametrize("kind", ["list", "object"])
def test_json_may_be_nested_so_deep_and_no_deeper(kind):
    parse_json(nested(MAX_DEPTH, kind), where="x")
    for depth in (MAX_DEPTH + 1, 500, 100_000):
        line = f"x: JSON nested too deeply; allowed: at most {MAX_DEPTH} levels"
        refuses(line, parse_json, nested(depth, kind), where="x")


def test_many_brackets_side_by_side_are_not_deep():
    assert len(parse_json("[" + ",".join(["[{}]"] * 1000) + "]", where="x")) == 1000
    assert parse_json(json.dumps(["[" * 1000]), where="x") == ["[" * 1000]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("9" * 5000, "x: a number in the JSON has thousands of digits"),
        ('{"a": 1, "b": 2, "a": 3}', "x: key occurs twice in a JSON object; given: 'a'"),
        ("[NaN]", "x: not valid JSON: not a finite number; given: NaN"),
        ("[-Infinity]", "x: not valid JSON: not a finite number; given: -Infinity"),
        ("[1", r"x, line 1, column 3: not valid JSON: .*; is the file cut off\?"),
        ("", "x, line 1, column 1: not valid JSON"),
    ],
)
def test_json_that_is_none(text, line):
    refuses(line, parse_json, text, where="x", finite=True)


def test_toml_that_is_none():
    for text in ("a = " + nested(200), "a = 2020-13-01", "a = " + "9" * 5000, "a = 1\na = 2", "[[["):
        refuses(r"x\.toml: ", parse_toml, text, where="x.toml")


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("a caption".encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
        ("a caption".encode("utf-32"), "is UTF-32 text; save it as UTF-8"),
        ("caf\xe9".encode("latin1"), r"not UTF-8 text \(byte 3\); save it as UTF-8"),
        (b"one\ntwo\0\0\0", "line 2: not a text: it holds NUL characters"),
        (bytes(1000), "line 1: not a text: it holds NUL characters"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_texts_that_are_none(tmp_path, data, line, ending):
    (tmp_path / f"x.{ending}").write_bytes(data)
    refuses(line, read_table, tmp_path / f"x.{ending}")


def test_marks_of_byte_order_are_no_text(tmp_path):
    (tmp_path / "x.json").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_json(tmp_path / "x.json") == {"a": 1}


READERS = dict.fromkeys(("csv", "json", "jsonl", "parquet"), read_table)
READERS |= {"npy": read_npy, "npz": read_npz, "toml": read_text}


@pytest.mark.parametrize("ending", READERS)
def test_what_is_no_file_is_a_line_at_once(tmp_path, ending):
    path, read = tmp_path / f"x.{ending}", READERS[ending]

    def refused(line):
        result = []

        def attempt():
            try:
                read(path)
            except DataError as error:
                result.append(str(error))

        thread = threading.Thread(target=attempt, daemon=True)
        thread.start()
        thread.join(20)
        assert result, "it hangs, or was read"
        assert line in result[0]
        path.unlink()

    os.mkfifo(path)
    refused("is a pipe; write what comes out of it to a file first")
    path.symlink_to("/dev/zero")
    refused("is a device; name a file")
    path.symlink_to(path.name)
    refused("is a loop of links")
    if ending != "toml":  # an empty text is one
        path.write_bytes(b"")
        refused(path.name)


def test_names_that_no_file_has(tmp_path):
    for path, line in ((tmp_path / ("x" * 300), "longer than a name"), (tmp_path / "a\0b", "NUL character")):
        refuses(line, read_bytes, path)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (npy_of("(1000000, 1000000)"), "holds less than its header says; .*allowed: 4,000.0 GB"),
        (npy_of("(3,)", data=bytes(8)), "holds less than its header says; given: 8 bytes of numbers"),
        (npy_of("(-1,)"), "not a shape"),
        (npy_of("(2,)", "'|O'", bytes(16)), "not plain data; given: object; allowed: numbers or strings"),
        (npy_of("(2,)", "[('a', '<f4')]", bytes(8)), "not plain data"),
        (npy_of("(2,)", "'<M8[D]'", bytes(16)), "not plain data; given: datetime64"),
        (npy_of("(2,)", "'nothing'"), "not a readable npy file"),
        (npy_of("(" * 3000), "not a readable npy file"),
        (npy_of(f"({'9' * 30},)"), "claims more than any file holds"),
        (b"\x93NUMPY\x09\x00" + bytes(100), "an npy file of another version; given: 9.0"),
        (b"\x80\x04K\x01.", "not an npy file"),
        (npz({"x.npy": npy_of("(1,)", data=bytes(4))}), "is an npz file, not one array"),
    ],
)
def test_npy_files_that_are_none(tmp_path, data, line):
    (tmp_path / "x.npy").write_bytes(data)
    for mapped in (False, True):
        refuses(line, read_npy, tmp_path / "x.npy", mapped=mapped)


_ONE = npy_of("(2,)", data=bytes(8))


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (encrypted(npz({"a.npy": _ONE})), "array 'a': is encrypted; save it without a password"),
        (npz({"a.npy": npy_of("(1000000, 1000000)")}), "'a': holds another amount than its header says"),
        (npz({"a.npy": _ONE, "notes.txt": b"x"}), r"holds a member that is no array; given: notes\.txt"),
        (npz({"a.npy": _ONE[:-1]}), "holds another amount than its header says"),
        (npz({"a.npy": npy_of("(1,)", "'|O'", bytes(8))}), "array 'a': not plain data; given: object"),
        (npz({"a.npy": _ONE})[:-10], "not a readable npz file"),
        (_ONE, "holds one array, not several"),
        (b"PK\x03\x04" + bytes(50), "not a readable npz file"),
    ],
)
def test_npz_files_that_are_none(tmp_path, data, line):
    (tmp_path / "x.npz").write_bytes(data)
    refuses(line, read_npz, tmp_path / "x.npz")


def test_an_archive_that_unpacks_to_more_than_there_is(tmp_path, monkeypatch):
    packed = npz({"a.npy": npy_of("(2500000,)", data=bytes(10**7))}, method=zipfile.ZIP_DEFLATED)
    assert len(packed) < 20_000
    (tmp_path / "x.npz").write_bytes(packed)
    assert read_npz(tmp_path / "x.npz")["a"].shape == (2_500_000,)
    monkeypatch.setattr(limits, "available", lambda: 5 * 10**6)
    words = r"unpacks to does not fit into memory; given: 10\.0 MB needed, 5\.0 MB"
    refuses(words, read_npz, tmp_path / "x.npz")


def test_a_table_that_unpacks_to_more_than_there_is(tmp_path, monkeypatch):
    """A text that repeats a million times is a file of a few kilobytes."""
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10**6, np.int32)), pa.array(["x" * 100]))
    pq.write_table(pa.table({"a": column}), tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_size < 20_000
    monkeypatch.setattr(limits, "available", lambda: 10**6)
    with pytest.raises(DataError, match="a table of 1,000,000 rows and 1 columns does not fit into memory"):
        read_parquet(tmp_path / "x.parquet")


@pytest.mark.parametrize("kind", ["date", "timestamp", "duration", "text"])
def test_cells_that_python_has_no_value_for(tmp_path, kind):
    cells = {
        "date": pa.array([2**31 - 1], pa.int32()).view(pa.date32()),
        "timestamp": pa.array([2**62], pa.int64()).view(pa.timestamp("ms")),
        "duration": pa.array([2**62], pa.int64()).view(pa.duration("ms")),
        "text": pa.array([b"\xff\xfe"], pa.binary()).view(pa.string()),
    }
    pq.write_table(pa.table({"a": cells[kind]}), tmp_path / "x.parquet")
    refuses(r"x\.parquet, column 'a': a cell of type .* cannot be read", read_table, tmp_path / "x.parquet")


def test_texts_of_ours_are_looked_at(tmp_path):
    column = pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"a": column}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"column 'a': cannot be read: .*UTF8"):
        read_columns(tmp_path / "x.parquet", Schema({"a": ColumnSchema("text")}))


def test_whole_numbers_keep_their_digits(tmp_path):
    (tmp_path / "x.csv").write_text("a\n9007199254740993\n")
    assert integers(read_table(tmp_path / "x.csv"), "a").tolist() == [9007199254740993]
    for text in ("1e300", "9223372036854775808", "-" + "9" * 400):
        (tmp_path / "x.csv").write_text(f"a\n{text}\n")
        refuses("a whole number out of range", integers, read_table(tmp_path / "x.csv"), "a")


def test_amounts_end_where_they_say():
    for name, (low, high) in RANGES.items():
        check_amount(name, low)
        check_amount(name, high)
        for value in (low - 1, high + 1, 10**400, float("nan"), float("inf")):
            line = f"{name}: out of range; given: .*; allowed: {low:,} to {high:,}"
            refuses(line, check_amount, name, value, error=InputError)


def test_networks_of_a_million_layers_are_not_built(tmp_path):
    pytest.importorskip("torch")
    from counterfoil.models.hf_loading import check_place

    for key, value in (("num_hidden_layers", 10**6), ("hidden_size", 10**9), ("image_size", 10**6)):
        (tmp_path / "config.json").write_text(json.dumps({"model_type": "clip", "text_config": {key: value}}))
        with pytest.raises(InputError, match=rf"config\.json, key '{key}': out of range; given: {value}"):
            check_place(str(tmp_path), "hf:x")
    (tmp_path / "config.json").write_text("{")
    refuses(r"config\.json, line 1, column 2: not valid JSON", check_place, str(tmp_path), "hf:x")


@pytest.mark.parametrize("crop", [(0, 0, 10**6, 10**6), (5, 5, 5, 9), (9, 0, 3, 4), (100, 100, 120, 120)])
def test_crops_that_are_no_part_of_a_picture(crop):
    from counterfoil.benchmarks.records import Image, PixelSource

    picture = Image("a", PixelSource(np.zeros((8, 16, 3), np.uint8)), crop)
    refuses(r"the crop is no part of the picture; given: .*within 16 x 8 pixels", picture.decode)
