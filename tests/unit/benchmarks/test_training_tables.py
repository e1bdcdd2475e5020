"""Training data from tables, captions that are mapped into memory, and what a broken table says."""

import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from counterfoil.benchmarks import FileSource, training_files, training_parquet
from counterfoil.benchmarks.records import CellSource
from counterfoil.benchmarks.training_files import read
from counterfoil.errors import DataError
from refusals import refuses
from role_values import pictures, texts


def test_parquet_as_trohn_img_is_read_lazily(tmp_path, jpeg, hub_parquet):
    columns = {
        "image": [jpeg(i) for i in range(5)],
        "caption": [f"A cat {i}." for i in range(5)],
        "negative_caption": [f"A dog {i}." for i in range(5)],
        "negative_image": [jpeg(10 + i) for i in range(5)],
        "subset": ["replace_obj", "swap_att", "add_obj", "add_att", "swap_obj"],
        "faithful": ["yes", "no", "yes", "no", "yes"],
    }
    path = hub_parquet(tmp_path / "trohn-img.parquet", columns)
    data = read(path)
    assert len(data) == 5
    assert all(isinstance(image.source, CellSource) for image in data.images)
    assert pictures(data, "image") == columns["image"]
    assert pictures(data, "negative_image") == columns["negative_image"]
    assert texts(data, "negative_caption") == columns["negative_caption"]
    assert data.groupings == {name: tuple(columns[name]) for name in ("subset", "faithful")}
    # What a worker process gets is a path and a number, whatever the size of the picture.
    assert len(pickle.dumps(data.images[0].source)) < 400


def test_parquet_as_trohn_text_names_its_photographs(tmp_path, jpeg):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "000000000007.jpg").write_bytes(jpeg(7))
    captions = {"caption": ["A cat.", "Cats."], "negative_caption": ["A dog.", "Dogs."]}
    table = pa.table({"image_id": ["000000000007.jpg"] * 2, **captions})
    pq.write_table(table, tmp_path / "text.parquet")
    data = read(tmp_path / "text.parquet", images=tmp_path / "photos")
    assert [image.source for image in data.images] == [FileSource(tmp_path / "photos" / "000000000007.jpg")]
    assert data.rows["image"].tolist() == [0, 0]
    with pytest.raises(DataError, match=r"row 1, column 'image_id': an image that is only named.*--images"):
        read(tmp_path / "text.parquet")


def test_what_is_said_twice_is_kept_once(tmp_path, jpeg):
    (tmp_path / "images").mkdir()
    for name in "ab":
        (tmp_path / "images" / f"{name}.jpg").write_bytes(jpeg(ord(name)))
    rng = np.random.default_rng(0)
    rows = [
        {
            "image_id": f"{rng.choice(['a', 'b'])}.jpg",
            "caption": [f"text {i}" for i in rng.integers(0, 5, rng.integers(1, 4))],
            "negative_caption": f"text {rng.integers(0, 5)}",
        }
        for _ in range(30)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "mine.parquet")
    data = read(tmp_path / "mine.parquet")
    expected = [(row["image_id"], text, row["negative_caption"]) for row in rows for text in row["caption"]]
    names = [data.images[i].id for i in data.rows["image"]]
    assert list(zip(names, texts(data, "caption"), texts(data, "negative_caption"), strict=True)) == expected
    assert len(data.images) == 2
    assert len(data.captions) == len({text for _, *both in expected for text in both})


def test_lists_of_another_length_are_refused(tmp_path, jpeg, hub_parquet):
    columns = {
        "image": [jpeg(0), jpeg(1)],
        "captions": [["a", "b"], ["c", "d", "e"]],
        "negative_captions": [["a", "b"], ["c", "d"]],
    }
    with pytest.raises(DataError, match=r"row 2, column 'negative_captions': not as many .*given: 2"):
        read(hub_parquet(tmp_path / "mine.parquet", columns))


def test_ids_that_are_numbers_are_cocos(tmp_path, jpeg):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "000000000139.jpg").write_bytes(jpeg(1))
    pq.write_table(pa.table({"image_id": [139], "caption": ["A room."]}), tmp_path / "mine.parquet")
    assert pictures(read(tmp_path / "mine.parquet"), "image") == [jpeg(1)]


def test_a_list_of_captions_is_a_row_for_each(tmp_path, jpeg, hub_parquet):
    columns = {
        "image": [jpeg(0), jpeg(1)],
        "captions": [["one", "two", "three"], ["four"]],
        "generated_captions": [["a", "b", "c"], ["d"]],
        "type": ["x", "y"],
    }
    data = read(hub_parquet(tmp_path / "coco.parquet", columns))
    assert texts(data, "caption") == ["one", "two", "three", "four"]
    assert texts(data, "generated_caption") == ["a", "b", "c", "d"]
    assert data.rows["image"].tolist() == [0, 0, 0, 1]
    assert data.groupings == {"type": ("x", "x", "x", "y")}


def test_sentences_with_facts_beside_them(tmp_path, jpeg):
    sentences = [{"raw": text, "sentid": at} for at, text in enumerate(("one", "two"))]
    table = pa.table({"image": [{"bytes": jpeg(0), "path": None}], "sentences": [sentences]})
    pq.write_table(table, tmp_path / "coco.parquet")
    assert texts(read(tmp_path / "coco.parquet"), "caption") == ["one", "two"]


@pytest.mark.parametrize("row", [0, 3, 4])
def test_an_empty_image_cell_is_refused_when_it_is_read(tmp_path, jpeg, row):
    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    cells = [{"bytes": jpeg(i), "path": f"{i}.jpg"} for i in range(5)]
    cells[row] = None
    table = pa.table({"image": pa.array(cells, kind), "caption": list("abcde")})
    pq.write_table(table, tmp_path / "mine.parquet", row_group_size=2)
    data = read(tmp_path / "mine.parquet")
    refuses(f"mine.parquet, row {row + 1}, column 'image': the cell holds no image", data.images[row].decode)


def test_a_damaged_footer_ends_no_process(tmp_path):
    # Asked for a single column of such a file Arrow aborts, and this test with it: of these some are such.
    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    cells = [{"bytes": bytes(50), "path": f"{i}.jpg"} for i in range(5)]
    table = pa.table({"image": pa.array(cells, kind), "caption": list("abcde")})
    path = tmp_path / "mine.parquet"
    pq.write_table(table, path, row_group_size=2)
    sound = path.read_bytes()
    begin = len(sound) - 8 - int.from_bytes(sound[-8:-4], "little")
    refused, places = 0, range(begin, len(sound) - 8, 7)
    for at in places:
        damaged = bytearray(sound)
        damaged[at] = 9
        path.write_bytes(damaged)
        try:
            read(path)
        except DataError:
            refused += 1
    assert 0 < refused < len(places)


def test_a_table_without_captions_says_what_it_has(tmp_path):
    (tmp_path / "mine.csv").write_text("image,legend\na.jpg,a cat\n")
    refuses("no column of the captions; given: image, legend; allowed: caption", read, tmp_path / "mine.csv")


def test_a_csv_with_photographs_beside_it(tmp_path, jpeg):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.jpg").write_bytes(jpeg(0))
    (tmp_path / "mine.csv").write_text("filepath,title\na.jpg,a cat\nb.jpg,a dog\n")
    refuses(r"row 2, column 'filepath': no such image file; given: .*b.jpg", read, tmp_path / "mine.csv")
    kept = read(tmp_path / "mine.csv", missing="keep")
    assert [str(image.source) for image in kept.images] == [
        str(tmp_path / "images" / name) for name in ("a.jpg", "b.jpg")
    ]
    refuses(r"b\.jpg: no such image file", kept.images[1].decode)
    (tmp_path / "images" / "b.jpg").write_bytes(jpeg(1))
    assert kept.images[1].read() == jpeg(1)
    assert pictures(read(tmp_path / "mine.csv"), "image") == [jpeg(0), jpeg(1)]
    refuses("a file has no splits; given: validation", read, tmp_path / "mine.csv", split="validation")


def test_large_parquet_is_not_read_whole(tmp_path):
    # Eight megabytes of pictures in row groups of half a megabyte: reading the set, and then one picture,
    # takes two or three groups of Arrow's memory, and not sixteen.
    rng = np.random.default_rng(0)
    cells = [rng.bytes(1 << 16) for _ in range(128)]
    pq.write_table(
        pa.table({"image": pa.array(cells, pa.binary()), "caption": [f"c{i}" for i in range(128)]}),
        tmp_path / "large.parquet",
        row_group_size=8,
        compression="none",
    )
    del cells
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        data = read(tmp_path / "large.parquet")
        data.images[70].read()
        assert pool.max_memory() < 4 * 8 * (1 << 16)
    finally:
        pa.set_memory_pool(before)


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
