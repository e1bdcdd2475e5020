"""Images in cells, read when asked for; pairs to searches; BiVLC in all its layouts."""

from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers.questions import IdPositions, own_pairs, search
from counterfoil.benchmarks.readers.specs import read
from counterfoil.benchmarks.records import CellSource
from counterfoil.benchmarks.tables import open_rows, rows_of_files
from counterfoil.errors import DataError
from processes import python
from refusals import refuses


def test_any_row_of_any_row_group_and_files_that_went_away(tmp_path, jpeg, hub_parquet):
    path = hub_parquet(tmp_path / "a.parquet", {"image": [jpeg(n) for n in range(7)]}, rows_per_group=3)
    assert pq.ParquetFile(path).metadata.num_row_groups == 3
    for row in (6, 0, 3, 2, 5, 4, 1):
        assert CellSource(path, "image", row).read() == jpeg(row)
    path.unlink()
    refuses(r"a\.parquet, row 1, column 'image': image cannot be read", CellSource(path, "image", 0).read)


def test_in_other_processes(tmp_path, jpeg, hub_parquet):
    path = hub_parquet(tmp_path / "a.parquet", {"image": [jpeg(n) for n in range(4)]})
    table = rows_of_files([path], ("image",))
    assert table["image"][0].read() == jpeg(0)  # the parent has the file open already
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(CellSource.read, table["image"])) == [jpeg(n) for n in range(4)]


def test_several_threads_read_one_file(tmp_path):
    # In a process of its own: without the lock `one_reader`, Arrow ends it by signal 11.
    script = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from counterfoil.benchmarks.records import CellSource

for turn in range(6):
    file = Path(sys.argv[1]) / f"{turn}.parquet"
    cells = [{"bytes": bytes([row]) * 500, "path": None} for row in range(200)]
    pq.write_table(pa.table({"image": cells}), file, row_group_size=10)
    with ThreadPoolExecutor(8) as pool:
        read = list(pool.map(lambda row: CellSource(file, "image", row).read(), range(200)))
    assert read == [cell["bytes"] for cell in cells]
"""
    ended = python("-c", script, tmp_path)
    assert ended.returncode == 0, ended.stderr


def test_plain_bytes_paths_and_empty_cells(tmp_path, jpeg):
    (tmp_path / "beside.jpg").write_bytes(jpeg(2))
    paths = ("beside.jpg", "nowhere.jpg", None)
    cells = [{"bytes": jpeg(1), "path": paths[0]}, *({"bytes": None, "path": path} for path in paths), None]
    pq.write_table(pa.table({"image": cells, "plain": [jpeg(3)] * 5}), tmp_path / "a.parquet")
    path = tmp_path / "a.parquet"
    assert CellSource(path, "image", 0).read() == jpeg(1)
    assert CellSource(path, "image", 1).read() == jpeg(2)
    assert CellSource(path, "plain", 4).read() == jpeg(3)
    refuses(r"nowhere\.jpg: no such image file", CellSource(path, "image", 2).read)
    for row in (3, 4):
        with pytest.raises(DataError, match=rf"a\.parquet, row {row + 1}, column 'image': the cell holds no"):
            CellSource(path, "image", row).read()


def test_folders_of_several_tables(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("id\n1\n")
    refuses(r"several tables in this folder; given: a\.csv, b\.csv", open_rows, tmp_path, ())
    assert open_rows(tmp_path, (), names=("b.csv",)).source == str(tmp_path / "b.csv")
    (tmp_path / "dataset_dict.json").write_text("{}")
    refuses("saved by the library datasets; write each split with its to_parquet", open_rows, tmp_path, ())


@pytest.fixture(scope="module")
def small():
    """BiVLC's card for the five rows of the fixture."""
    counts = {"add": 2, "replace": 1, "swap": 2, "add_obj": 2, "replace_rel": 1, "swap_att": 2}
    return card("bivlc").model_copy(update={"size": 5, "counts": counts})


def _check(found, columns):
    """Questions, texts, groups and pixels are those of the five rows."""
    assert found.questions.ids == ("0", "1", "2", "3", "4")
    for row in range(5):
        own = [found.captions[i].text for i in found.questions.captions[row]]
        assert own == [columns["caption"][row], columns["negative_caption"][row]]
        images = [found.images[i] for i in found.questions.images[row]]
        assert [image.id for image in images] == [f"{row}_i0", f"{row}_i1"]
        assert [image.read() for image in images] == [columns["image"][row], columns["negative_image"][row]]
        assert images[0].decode().size == (24, 16)
    sizes = {name: int(mask.sum()) for name, mask in found.questions.groups().items()}
    assert sizes == {"add": 2, "replace": 1, "swap": 2, "add_obj": 2, "replace_rel": 1, "swap_att": 2}


def test_parquet_file_folder_and_two_shards_in_their_order(tmp_path, small, hub_parquet, bivlc_columns):
    file = hub_parquet(tmp_path / "data" / "test-00000-of-00001.parquet", bivlc_columns)
    for data in (file, tmp_path, tmp_path / "data"):
        _check(read(small, data, None), bivlc_columns)
    for part, rows in enumerate((slice(0, 3), slice(3, 5))):
        cut = {name: cells[rows] for name, cells in bivlc_columns.items()}
        hub_parquet(tmp_path / "two" / f"test-{part:05}-of-00002.parquet", cut)
    hub_parquet(tmp_path / "two" / "train-00000-of-00001.parquet", bivlc_columns)  # another split
    _check(read(small, tmp_path / "two", None), bivlc_columns)


def test_released_result_table(shared_data):
    """The counts of the paper: 2,933 in all, REPLACE 2,099, SWAP 359, ADD 475."""
    result = read(card("bivlc"), shared_data / "bivlc" / "ViT-B-32.csv", None)
    groups = {name: int(mask.sum()) for name, mask in result.questions.groups().items()}
    assert len(result) == 2933
    assert (groups["replace"], groups["swap"], groups["add"]) == (2099, 359, 475)
    assert not result.images_at_hand
    assert result.captions_at_hand
    # Questions that share a caption share a cluster: 818 and 830 share both of theirs.
    assert result.clusters[818] == result.clusters[830]
    assert len(np.unique(result.clusters)) < 2933


PAIRS = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 6)), min_size=1)


@given(PAIRS, st.randoms(use_true_random=False))
def test_pairs_in_any_order(pairs, random):
    """Gains go with their pairs; the queries of some rows keep theirs."""
    listed = list(pairs)
    random.shuffle(listed)
    query, item = (np.array(item, dtype=np.int64) for item in zip(*listed, strict=True))
    gains = (query * 7 + item + 1) / 100
    result = search(np.array([9, 8, 5, 2]), (query, item), gains, names="abcd", where="x")
    rows = np.repeat(np.arange(4), result.positives.counts)
    assert list(zip(rows.tolist(), result.positives.items.tolist(), strict=True)) == sorted(pairs)
    np.testing.assert_array_equal(result.positives.gains, (rows * 7 + result.positives.items + 1) / 100)
    last = result.take(np.array([3]))
    assert last.queries.tolist() == [2]
    assert last.positives.items.tolist() == sorted(i for q, i in pairs if q == 3)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "x: no query has a right answer"),
        ([(1, 4), (0, 2), (1, 4)], "x, query 'b': a right answer is listed twice"),
        ([(0, 2), (1, -1)], "x, query 'b': the gallery holds none of a query's right answers"),
        ([(0, -1), (0, -1), (1, -1)], "x, query 'a': 2 queries have right answers, none of which is in"),
    ],
)
def test_pairs_that_make_no_search(pairs, message):
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    refuses(message, search, np.array([0, 1]), (columns[0], columns[1]), names="ab", where="x")
    # Two that are absent are two, not one listed twice.
    kept = search(np.array([0]), (np.zeros(3, np.int64), np.array([-1, 3, -1])), names="a", where="x")
    assert kept.positives.absent.tolist() == [2]


@given(st.lists(st.integers(0, 50), unique=True, max_size=20), st.lists(st.integers(0, 50), max_size=20))
def test_places_are_those_of_a_dictionary(ids, asked):
    place = {item: i for i, item in enumerate(ids)}
    result = IdPositions(np.array(ids, dtype=np.int64), "image", "x").of(np.array(asked, dtype=np.int64))
    assert result.tolist() == [place.get(item, -1) for item in asked]


def test_an_id_twice():
    refuses("x: image id occurs twice; given: 7", IdPositions, np.array([7, 3, 7]), "image", "x")


@given(st.lists(st.integers(-1, 4), min_size=1, max_size=20))
def test_own_pairs(owners):
    i2t, t2i = own_pairs(np.array(owners, dtype=np.int64), 5)
    for search_, right in (
        (i2t, [[c for c, owner in enumerate(owners) if owner == image] for image in range(5)]),
        (t2i, [[owner] if owner >= 0 else [] for owner in owners]),
    ):
        starts, items = search_.positives.starts, search_.positives.items
        assert [items[a:b].tolist() for a, b in pairwise(starts.tolist())] == right
        assert len(search_) == len(right)
