"""Marks: every form of file is known again by the command that wrote it, and no longer once it was edited."""

import io
import json
from pathlib import Path

import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from counterfoil.outputs import marked, marked_table, writer, writer_of


def _picture(kind: str) -> bytes:
    raw = io.BytesIO()
    PIL.Image.linear_gradient("L").save(raw, format=kind)
    return raw.getvalue()


_CONTENTS = {
    "html": b"<!doctype html><html><p>numbers</p></html>",
    "latex": b"\\begin{table}\n\\end{table}\n",
    "json": json.dumps({"benchmark": "pairs", "measures": {"i2t": 0.25}}, indent=2).encode() + b"\n",
    "png": _picture("PNG"),
    "jpeg": _picture("JPEG"),
}


@pytest.mark.parametrize("form", _CONTENTS)
def test_a_marked_file_is_known_again(form: str) -> None:
    content = _CONTENTS[form]
    made = marked(content, form, "captions score")
    assert made != content
    assert writer(made, form) == "captions score"
    assert writer(content, form) is None


@pytest.mark.parametrize("form", _CONTENTS)
def test_every_changed_byte_makes_it_another_file(form: str) -> None:
    """Whatever single byte is changed, the file is no longer one that this command wrote."""
    made = marked(_CONTENTS[form], form, "compare")
    for at in range(0, len(made), max(1, len(made) // 150)):
        other = made[:at] + bytes([made[at] ^ 1]) + made[at + 1 :]
        assert writer(other, form) != "compare", at
    assert writer(made + b"more", form) is None
    assert writer(made[:-1], form) is None


@pytest.mark.parametrize("form", ["png", "jpeg"])
def test_marked_pictures_are_still_the_same_pictures(form: str) -> None:
    plain = PIL.Image.open(io.BytesIO(_CONTENTS[form]))
    with PIL.Image.open(io.BytesIO(marked(_CONTENTS[form], form, "pool"))) as picture:
        picture.load()
        assert picture.tobytes() == plain.tobytes()
        said = picture.info["Software"] if form == "png" else picture.info["comment"].decode()
        assert said.startswith("counterfoil pool ")


def test_marked_json_is_the_same_value_with_a_key_more() -> None:
    value = json.loads(marked(_CONTENTS["json"], "json", "evaluate"))
    assert value.pop("written_by").startswith("counterfoil evaluate ")
    assert value == json.loads(_CONTENTS["json"])
    assert marked(b"[\n  1\n]\n", "json", "evaluate") == b"[\n  1\n]\n"  # a list has no place for it


def test_marked_tables(tmp_path: Path) -> None:
    path = tmp_path / "pool.parquet"
    table = pa.table({"pair": [1, 2], "image": ["a", "b"]})
    pq.write_table(marked_table(table, "pool"), path)
    assert writer_of(path, "parquet") == "pool"
    assert pq.read_table(path).equals(table)
    # Answers that people filled in make it a table of theirs, even where the metadata are kept.
    judged = pq.read_table(path).append_column("answer", pa.array(["100% YES", "100% NO"]))
    pq.write_table(judged, path)
    assert writer_of(path, "parquet") is None
    path.write_bytes(b"no table")
    assert writer_of(path, "parquet") is None
    assert writer_of(tmp_path / "missing.parquet", "parquet") is None
