"""Footers read by hand against Arrow's reading of them, and damaged ones, which must end nothing."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from counterfoil.errors import DataError
from counterfoil.inputs.columns import groups
from refusals import refuses


def table(rows=40):
    rng = np.random.default_rng(0)
    cells = [None if gone else {"bytes": b"x" * 9, "path": None} for gone in rng.random(rows) < 0.2]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return pa.table(
        {
            "image": pa.array(cells, kind),
            "caption": [None if gone else f"é {k}" for k, gone in enumerate(rng.random(rows) < 0.3)],
            "number": rng.integers(0, 9, rows),
            "real": rng.random(rows),
            "true": pa.array([None, True] * (rows // 2)),
            "listed": [["a", None]] * rows,
        }
    )


def as_arrow_says(path):
    found = []
    facts = pq.ParquetFile(path).metadata
    for group in (facts.row_group(at) for at in range(facts.num_row_groups)):
        columns = [group.column(at) for at in range(group.num_columns)]
        said = {each.path_in_schema: each.statistics for each in columns}
        nulls = {name: each.null_count for name, each in said.items() if each and each.has_null_count}
        found.append((group.num_rows, nulls))
    return found


def complaint(path):
    """What is said of a file; "" where it can be read. Anything but a `DataError` comes through."""
    try:
        groups(path)
    except DataError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"row_group_size": 7},
        {"write_statistics": False},
        {"write_statistics": ["caption"], "compression": "zstd"},
        {"write_page_index": True, "data_page_version": "2.0", "use_dictionary": False},
    ],
    ids=str,
)
def test_groups_are_what_arrow_says_of_a_sound_file(tmp_path, how):
    path = tmp_path / "sound.parquet"
    pq.write_table(table(), path, **how)
    found = [(group.rows, dict(group.nulls)) for group in groups(path)]
    assert found == as_arrow_says(path)
    assert sum(rows for rows, _ in found) == 40


def test_many_columns_make_long_lists(tmp_path):
    # A list of fifteen and more has its length in bytes of its own.
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table({f"c{k}": pa.array([None, k]) for k in range(300)}), path)
    (group,) = groups(path)
    assert group.nulls == {f"c{k}": 1 for k in range(300)}


def test_no_damage_is_more_than_an_error_in_a_line(tmp_path):
    path = tmp_path / "damaged.parquet"
    pq.write_table(table(), path, row_group_size=10)
    sound = path.read_bytes()
    begin = len(sound) - 8 - int.from_bytes(sound[-8:-4], "little")
    rng = np.random.default_rng(0)
    said = 0
    for _ in range(200):
        damaged = bytearray(sound)
        for at in rng.integers(begin, len(sound), rng.integers(1, 5)):
            damaged[at] = rng.integers(256)
        path.write_bytes(damaged[: rng.integers(begin, len(sound))] if rng.random() < 0.1 else damaged)
        said += complaint(path).startswith(f"{path}: not a readable Parquet file: ")
    assert said > 50


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1PAR1", b"no table at all", b"\xff" * 4 + b"PAR1"])
def test_what_is_no_parquet_file(tmp_path, content):
    path = tmp_path / "none.parquet"
    path.write_bytes(content)
    refuses("not a readable Parquet file: no footer at its end", groups, path)


def test_a_footer_that_nests_without_end(tmp_path):
    # A struct in a struct in a struct, and lists of lists.
    for deep in (b"\x1c" * 100_000, b"\x19" + b"\x19" * 100_000):
        path = tmp_path / "deep.parquet"
        path.write_bytes(b"PAR1" + deep + len(deep).to_bytes(4, "little") + b"PAR1")
        refuses("nests too deep", groups, path)
