"""Captions that are mapped into memory: the same as Python's lists say, in any process."""

import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from counterfoil.benchmarks import training_files, training_parquet
from counterfoil.errors import DataError

WORDS = ("cat", "dog", " cat ", "katze\u00e9", "\u732b", "a cat")


def table(rows, seed, listed):
    """Captions of which many are equal, some but for blanks; photographs that occur several times."""
    rng = np.random.default_rng(seed)
    said = [str(WORDS[i]) for i in rng.integers(0, len(WORDS), rows)]
    wrong = [f"{WORDS[i]} {number % 17}" for number, i in enumerate(rng.integers(0, len(WORDS), rows))]
    columns = {
        "image_id": pa.array(rng.integers(0, 5, rows)),
        "caption": [[text, f"{text} too"][: 1 + at % 2] for at, text in enumerate(said)] if listed else said,
        "negative_caption": [[text] for text in wrong] if listed else pa.array(wrong, pa.large_string()),
        "subset": [None if at % 7 == 0 else f"kind {at % 3}" for at in range(rows)],
    }
    return pa.table(columns)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "images").mkdir()
    for number in range(5):
        (tmp_path / "images" / f"{number:012d}.jpg").touch()
    return tmp_path


def everything(data):
    images = [(image.id, str(image.source)) for image in data.images]
    captions = [(caption.id, caption.text) for caption in data.captions]
    rows = {role: positions.tolist() for role, positions in data.rows.items()}
    return data.name, data.source, images, captions, rows, dict(data.groupings)


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("files", [1, 3])
def test_the_same_as_python_objects(folder, listed, files, monkeypatch):
    (folder / "data").mkdir()
    for number in range(files):
        name = f"train-{number:05d}-of-{files:05d}.parquet"
        pq.write_table(table(150, number, listed), folder / "data" / name, row_group_size=40)
    monkeypatch.setattr(training_parquet, "_ROWS", 32)
    found = training_files.read(folder, images=folder / "images")
    assert isinstance(found.captions, training_parquet.StoredCaptions)
    monkeypatch.setattr(training_parquet.Columns, "suits", lambda self, columns: False)
    slow = training_files.read(folder, images=folder / "images")
    assert isinstance(slow.captions, tuple)
    assert everything(found) == everything(slow)
    assert len(found.captions) < 3 * 150 * files / 2


def text_of(captions, place):
    return str(captions[place].text)


def test_processes_share_one_file(folder):
    pq.write_table(table(60, 0, listed=False), folder / "train.parquet")
    read = {"images": folder / "images", "shelf": folder / "shelf"}
    first = training_files.read(folder / "train.parquet", **read)
    written = {path: path.stat().st_mtime_ns for path in (folder / "shelf").rglob("*") if path.is_file()}
    again = training_files.read(folder / "train.parquet", **read)
    assert everything(again) == everything(first)
    assert {path: path.stat().st_mtime_ns for path in written} == written
    assert first.captions.path == again.captions.path
    # A process gets the path of the file and not its texts.
    assert len(pickle.dumps(first.captions)) < 300
    with ProcessPoolExecutor(1) as other:
        assert other.submit(text_of, first.captions, 3).result() == first.captions[3].text
    # Rows are positions in files that are mapped, too.
    assert isinstance(first.rows["caption"], np.memmap)
    # Another table of this name is another set.
    pq.write_table(table(80, 1, listed=False), folder / "train.parquet")
    assert len(training_files.read(folder / "train.parquet", **read)) == 80


def test_without_a_shelf_nothing_stays(folder, tmp_path_factory, monkeypatch):
    place = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(place))
    pq.write_table(table(60, 0, listed=False), folder / "train.parquet")
    data = training_files.read(folder / "train.parquet", images=folder / "images")
    assert list(place.iterdir())
    assert data.captions[-1] == data.captions[len(data.captions) - 1]
    assert [c.text for c in data.captions[2:4]] == [data.captions[i].text for i in (2, 3)]
    with pytest.raises(IndexError):
        data.captions[len(data.captions)]
    del data
    assert not list(place.iterdir())


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["a", " \t", "b"], "row 2, column 'caption': empty text"),
        (["a", "b", None], "row 3, column 'caption': empty text; given: nothing"),
        ([["a"], [], ["b"]], "row 2, column 'caption': no caption"),
        ([["a"], ["b", ""], ["c"]], "row 2, column 'caption': empty text"),
    ],
)
def test_a_row_without_a_text_is_named(folder, cells, said):
    pq.write_table(pa.table({"image_id": [0] * 3, "caption": cells}), folder / "train.parquet")
    with pytest.raises(DataError, match=said):
        training_files.read(folder / "train.parquet", images=folder / "images", shelf=folder / "shelf")
    assert not list((folder / "shelf").glob("*/*.npy"))


NO_LABELS = (
    *map(pa.array, ([[1], [2]], [{"a": 1}] * 2, [1.5, 2.5])),
    *(pa.array([2**62] * 2, kind) for kind in (pa.timestamp("us"), pa.duration("s"))),
)


@pytest.mark.parametrize("cells", NO_LABELS, ids=lambda cells: str(cells.type))
def test_a_column_that_holds_no_labels_is_named(folder, cells):
    columns = {"image_id": [0, 1], "caption": ["a", "b"], "subset": cells}
    pq.write_table(pa.table(columns), folder / "train.parquet")
    with pytest.raises(DataError, match=r"train.parquet.*, column 'subset': not a (column of labels|label)"):
        training_files.read(folder / "train.parquet", images=folder / "images")
