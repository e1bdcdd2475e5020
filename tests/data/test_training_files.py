"""Training data from files: real files of every layout, and what a broken one says."""

import io
import json
import pickle
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from counterfoil.data import (
    Benchmark,
    BytesSource,
    Caption,
    Card,
    Choice,
    FileSource,
    Gallery,
    Image,
    Quad,
    Search,
)
from counterfoil.data.folder import save
from counterfoil.data.readers.rows import CellSource
from counterfoil.data.training import TrainingSet
from counterfoil.data.training_files import read, split
from counterfoil.data.training_rows import of_split
from counterfoil.data.training_shards import TarSource, expand
from counterfoil.errors import DataError, InputError
from counterfoil.metrics.ranks import Positives

Jpeg = Callable[..., bytes]


def _texts(data: TrainingSet, role: str) -> list[str | None]:
    return [data.captions[i].text for i in data.rows[role]]


def _bytes(data: TrainingSet, role: str) -> list[bytes]:
    return [data.images[i].read() for i in data.rows[role]]


# --- benchmarks that were saved


def _benchmark(questions: Quad | Choice | Gallery, jpeg: Jpeg, images: int, captions: int) -> Benchmark:
    return Benchmark(
        card=Card(name="mine", title="Mine", form=questions.form),
        images=tuple(Image(f"i{i}", BytesSource(jpeg(i))) for i in range(images)),
        captions=tuple(Caption(f"c{i}", f"caption {i}") for i in range(captions)),
        questions=questions,
    )


def test_a_saved_quad_gives_all_four_roles(tmp_path: Path, jpeg: Jpeg) -> None:
    quad = Quad(
        ("a", "b"),
        groupings={"type": ("swap", "add")},
        captions=np.array([[0, 1], [2, 3]]),
        images=np.array([[1, 0], [2, 3]]),
    )
    save(_benchmark(quad, jpeg, 4, 4), tmp_path / "quads")
    data = read(tmp_path / "quads")
    assert _texts(data, "caption") == ["caption 0", "caption 2"]
    assert _texts(data, "negative_caption") == ["caption 1", "caption 3"]
    assert _bytes(data, "image") == [jpeg(1), jpeg(2)]
    assert _bytes(data, "negative_image") == [jpeg(0), jpeg(3)]
    assert data.groupings == {"type": ("swap", "add")}
    with pytest.raises(InputError, match="has no splits; given: validation"):
        read(tmp_path / "quads", split="validation")


def test_a_saved_choice_gives_every_right_with_every_wrong_candidate(tmp_path: Path, jpeg: Jpeg) -> None:
    candidates = np.array([[0, 1, 2, 3], [4, 5, 6, 7]])
    choice = Choice(("a", "b"), query=np.array([1, 0]), candidates=candidates, correct=2)
    save(_benchmark(choice, jpeg, 2, 8), tmp_path / "choices")
    data = read(tmp_path / "choices")
    expected = [
        (query, right, wrong)
        for query, row in zip((1, 0), candidates.tolist(), strict=True)
        for right in row[:2]
        for wrong in row[2:]
    ]
    found = zip(*(data.rows[role].tolist() for role in ("image", "caption", "negative_caption")), strict=True)
    assert list(found) == expected
    assert "negative_image" not in data.rows


def test_a_choice_among_images_gives_negative_images(tmp_path: Path, jpeg: Jpeg) -> None:
    choice = Choice(("a",), query=np.array([0]), candidates=np.array([[2, 0]]), asks="caption")
    save(_benchmark(choice, jpeg, 3, 1), tmp_path / "choices")
    data = read(tmp_path / "choices")
    assert _bytes(data, "image") == [jpeg(2)]
    assert _bytes(data, "negative_image") == [jpeg(0)]
    assert set(data.rows) == {"image", "caption", "negative_image"}


@pytest.mark.parametrize("owned", [True, False])
def test_a_saved_gallery_gives_images_with_their_captions(tmp_path: Path, jpeg: Jpeg, owned: bool) -> None:
    # Caption 0 was written for image 1 and fits image 0 too, of which nobody says so where it is owned.
    gallery = Gallery(
        ("i2t/i0", "i2t/i1", "t2i/c0", "t2i/c1"),
        i2t=Search(np.array([0, 1]), Positives.of([[0], [0, 1]])),
        t2i=Search(np.array([0, 1]), Positives.of([[0, 1], [1]], [[1.0, 1.0], [0.5]])),
        owners=np.array([1, 1]) if owned else np.array([-1, -1]),
        n_images=2,
    )
    save(_benchmark(gallery, jpeg, 2, 2), tmp_path / "gallery")
    data = read(tmp_path / "gallery")
    pairs = list(zip(data.rows["image"].tolist(), data.rows["caption"].tolist(), strict=True))
    # Without owners: full matches only, and caption 1 matches in part.
    assert pairs == ([(1, 0), (1, 1)] if owned else [(0, 0), (1, 0)])


def test_a_benchmark_without_pictures_teaches_nothing(tmp_path: Path, jpeg: Jpeg) -> None:
    choice = Choice(("a",), query=np.array([0]), candidates=np.array([[0, 1]]))
    benchmark = Benchmark(
        card=Card(name="mine", title="Mine", form="choice"),
        images=(Image("lost.jpg"),),
        captions=(Caption("a", "a"), Caption("b", "b")),
        questions=choice,
    )
    save(benchmark, tmp_path / "choices")
    with pytest.raises(DataError, match=r"1 of 1 rows have no image at hand; given: image 'lost.jpg'"):
        read(tmp_path / "choices")
    kept = read(tmp_path / "choices", missing="keep")
    with pytest.raises(DataError, match=r"image 'lost.jpg' is not at hand"):
        kept.images[0].decode()


# --- Parquet


def test_parquet_as_trohn_img_is_read_lazily(
    tmp_path: Path, jpeg: Jpeg, hub_parquet: Callable[..., Path]
) -> None:
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
    assert _bytes(data, "image") == columns["image"]
    assert _bytes(data, "negative_image") == columns["negative_image"]
    assert _texts(data, "negative_caption") == columns["negative_caption"]
    assert data.groupings == {name: tuple(columns[name]) for name in ("subset", "faithful")}
    # What a worker process gets is a path and a number, whatever the size of the picture.
    assert len(pickle.dumps(data.images[0].source)) < 400


def test_parquet_as_trohn_text_names_its_photographs(tmp_path: Path, jpeg: Jpeg) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "000000000007.jpg").write_bytes(jpeg(7))
    table = pa.table(
        {
            "image_id": ["000000000007.jpg", "000000000007.jpg"],
            "caption": ["A cat.", "Cats."],
            "negative_caption": ["A dog.", "Dogs."],
        }
    )
    pq.write_table(table, tmp_path / "text.parquet")
    data = read(tmp_path / "text.parquet", images=tmp_path / "photos")
    assert [image.source for image in data.images] == [FileSource(tmp_path / "photos" / "000000000007.jpg")]
    assert data.rows["image"].tolist() == [0, 0]
    with pytest.raises(DataError, match=r"row 1, column 'image_id': an image that is only named.*--images"):
        read(tmp_path / "text.parquet")


def test_what_is_said_twice_is_kept_once(tmp_path: Path, jpeg: Jpeg) -> None:
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
    assert (
        list(zip(names, _texts(data, "caption"), _texts(data, "negative_caption"), strict=True)) == expected
    )
    assert len(data.images) == 2
    assert len(data.captions) == len({text for _, *both in expected for text in both})


def test_lists_of_another_length_are_refused(
    tmp_path: Path, jpeg: Jpeg, hub_parquet: Callable[..., Path]
) -> None:
    columns = {
        "image": [jpeg(0), jpeg(1)],
        "captions": [["a", "b"], ["c", "d", "e"]],
        "negative_captions": [["a", "b"], ["c", "d"]],
    }
    with pytest.raises(
        DataError, match=r"row 2, column 'negative_captions': not as many .*given: 2; allowed: 1 or 3"
    ):
        read(hub_parquet(tmp_path / "mine.parquet", columns))


def test_ids_that_are_numbers_are_cocos(tmp_path: Path, jpeg: Jpeg) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "000000000139.jpg").write_bytes(jpeg(1))
    pq.write_table(pa.table({"image_id": [139], "caption": ["A room."]}), tmp_path / "mine.parquet")
    assert _bytes(read(tmp_path / "mine.parquet"), "image") == [jpeg(1)]


def test_a_list_of_captions_is_a_row_for_each(
    tmp_path: Path, jpeg: Jpeg, hub_parquet: Callable[..., Path]
) -> None:
    columns = {
        "image": [jpeg(0), jpeg(1)],
        "captions": [["one", "two", "three"], ["four"]],
        "generated_captions": [["a", "b", "c"], ["d"]],
        "type": ["x", "y"],
    }
    data = read(hub_parquet(tmp_path / "coco.parquet", columns))
    assert _texts(data, "caption") == ["one", "two", "three", "four"]
    assert _texts(data, "generated_caption") == ["a", "b", "c", "d"]
    assert data.rows["image"].tolist() == [0, 0, 0, 1]
    assert data.groupings == {"type": ("x", "x", "x", "y")}


def test_sentences_with_facts_beside_them(tmp_path: Path, jpeg: Jpeg) -> None:
    rows = [
        {
            "image": {"bytes": jpeg(0), "path": None},
            "sentences": [{"raw": "one", "sentid": 1}, {"raw": "two", "sentid": 2}],
        }
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "coco.parquet")
    assert _texts(read(tmp_path / "coco.parquet"), "caption") == ["one", "two"]


def test_the_files_of_a_split(tmp_path: Path, jpeg: Jpeg, hub_parquet: Callable[..., Path]) -> None:
    for name, seeds in (
        ("train-00000-of-00002", (0, 1)),
        ("train-00001-of-00002", (2,)),
        ("validation-00000-of-00001", (3,)),
    ):
        columns = {"image": [jpeg(s) for s in seeds], "caption": [f"caption {s}" for s in seeds]}
        hub_parquet(tmp_path / "data" / f"{name}.parquet", columns)
    assert _texts(read(tmp_path), "caption") == ["caption 0", "caption 1", "caption 2"]
    assert _bytes(read(tmp_path, split="train"), "image") == [jpeg(s) for s in (0, 1, 2)]
    assert _texts(read(tmp_path, split="validation"), "caption") == ["caption 3"]
    assert _texts(read(tmp_path, split="val"), "caption") == ["caption 3"]
    with pytest.raises(DataError, match="no file of this split; given: test; allowed: train, validation"):
        read(tmp_path, split="test")


def test_folders_of_splits_and_tables_of_splits(tmp_path: Path, jpeg: Jpeg) -> None:
    for name, seed in (("train", 0), ("val", 1)):
        _tar(tmp_path / "shards" / name / "00000.tar", _pair("k", seed))
        table = pa.table({"image": [jpeg(seed)], "caption": [f"caption {seed}"]})
        (tmp_path / "parquet" / name).mkdir(parents=True)
        pq.write_table(table, tmp_path / "parquet" / name / "0.parquet")
        (tmp_path / "csv" / "images").mkdir(parents=True, exist_ok=True)
        (tmp_path / "csv" / "images" / f"{seed}.jpg").write_bytes(jpeg(seed))
        (tmp_path / "csv" / f"{name}.csv").write_text(f"image,caption\n{seed}.jpg,caption {seed}\n")
    for kind in ("shards", "parquet", "csv"):
        assert _texts(read(tmp_path / kind), "caption") == ["caption 0"]
        assert _texts(read(tmp_path / kind, split="validation"), "caption") == ["caption 1"]
    assert _bytes(read(tmp_path / "csv", split="val"), "image") == [jpeg(1)]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no data set in this folder"):
        read(tmp_path / "empty")
    with pytest.raises(DataError, match="no such file or folder"):
        read(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("train-00000-of-00010.parquet", "train"),
        ("train.parquet", "train"),
        ("train-000012.tar", "train"),
        ("train_3.tar", "train"),
        ("coco2017-val-01.tar", "coco2017-val"),
    ],
)
def test_which_split_a_file_is_of(name: str, of: str) -> None:
    assert of_split([Path(name)], of, where=Path()) == [Path(name)]
    with pytest.raises(DataError, match=f"allowed: {of}$"):
        of_split([Path(name)], "other", where=Path())


def test_files_of_no_split_are_all_read() -> None:
    files = [Path("00000.tar"), Path("00001.tar")]
    assert of_split(files, None, where=Path()) == files


@pytest.mark.parametrize(
    ("cells", "column", "says"),
    [
        ({"caption": ["a", None, "c"]}, "caption", "row 2, column 'caption': empty text; given: nothing"),
        ({"caption": ["a", "b", "  "]}, "caption", "row 3, column 'caption': empty text"),
        ({"caption": [["a"], [], ["b"]]}, "caption", "row 2, column 'caption': no caption"),
        (
            {"negative_caption": ["a", "", "c"]},
            "negative_caption",
            "row 2, column 'negative_caption': empty text",
        ),
    ],
)
def test_a_row_without_text_is_named(
    tmp_path: Path,
    jpeg: Jpeg,
    hub_parquet: Callable[..., Path],
    cells: dict[str, Any],
    column: str,
    says: str,
) -> None:
    columns = {"image": [jpeg(i) for i in range(3)], "caption": ["a", "b", "c"], **cells}
    with pytest.raises(DataError, match=says.replace("(", r"\(")):
        read(hub_parquet(tmp_path / "mine.parquet", columns))


@pytest.mark.parametrize("row", [0, 3, 4])
def test_an_empty_image_cell_is_found_before_training_starts(tmp_path: Path, jpeg: Jpeg, row: int) -> None:
    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    cells: list[Any] = [{"bytes": jpeg(i), "path": f"{i}.jpg"} for i in range(5)]
    cells[row] = None
    table = pa.table({"image": pa.array(cells, kind), "caption": list("abcde")})
    pq.write_table(table, tmp_path / "mine.parquet", row_group_size=2)
    with pytest.raises(DataError, match=f"mine.parquet, row {row + 1}, column 'image': no image"):
        read(tmp_path / "mine.parquet")


def test_a_damaged_footer_ends_no_process(tmp_path: Path) -> None:
    # Asked for a single column of such a file Arrow aborts, and this test with it: of these some are such.
    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    cells = [{"bytes": bytes(50), "path": f"{i}.jpg"} for i in range(5)]
    table = pa.table({"image": pa.array(cells, kind), "caption": list("abcde")})
    path = tmp_path / "mine.parquet"
    pq.write_table(table, path, row_group_size=2)
    sound = path.read_bytes()
    begin = len(sound) - 8 - int.from_bytes(sound[-8:-4], "little")
    refused, places = 0, range(begin, len(sound) - 8, 3)
    for at in places:
        damaged = bytearray(sound)
        damaged[at] = 9
        path.write_bytes(damaged)
        try:
            read(path)
        except DataError:
            refused += 1
    assert 0 < refused < len(places)


def test_a_table_without_captions_says_what_it_has(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("image,legend\na.jpg,a cat\n")
    with pytest.raises(DataError, match="no column of the captions; given: image, legend; allowed: caption"):
        read(tmp_path / "mine.csv")


def test_a_csv_with_photographs_beside_it(tmp_path: Path, jpeg: Jpeg) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.jpg").write_bytes(jpeg(0))
    (tmp_path / "mine.csv").write_text("filepath,title\na.jpg,a cat\nb.jpg,a dog\n")
    with pytest.raises(DataError, match=r"row 2, column 'filepath': no such image file; given: .*b.jpg"):
        read(tmp_path / "mine.csv")
    kept = read(tmp_path / "mine.csv", missing="keep")
    assert [str(image.source) for image in kept.images] == [
        str(tmp_path / "images" / name) for name in ("a.jpg", "b.jpg")
    ]
    with pytest.raises(DataError, match=r"b\.jpg: no such image file"):
        kept.images[1].decode()
    (tmp_path / "images" / "b.jpg").write_bytes(jpeg(1))
    assert kept.images[1].read() == jpeg(1)
    assert _bytes(read(tmp_path / "mine.csv"), "image") == [jpeg(0), jpeg(1)]
    with pytest.raises(DataError, match="a file has no splits; given: validation"):
        read(tmp_path / "mine.csv", split="validation")


def test_large_parquet_is_not_read_whole(tmp_path: Path) -> None:
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


# --- shards


def _png(seed: int) -> bytes:
    buffer = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (4, 5, 3), dtype=np.uint8)
    PIL.Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def _tar(path: Path, members: Sequence[tuple[str, bytes]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def _pair(key: str, seed: int) -> list[tuple[str, bytes]]:
    return [(f"{key}.jpg", _png(seed)), (f"{key}.txt", f"caption {seed}\n".encode())]


def test_shards_that_webdataset_wrote(tmp_path: Path) -> None:
    wds = pytest.importorskip("webdataset")
    with wds.TarWriter(str(tmp_path / "train-000.tar")) as sink:
        for i in range(3):
            sink.write(
                {
                    "__key__": f"sample{i:03d}",
                    "jpg": _png(i),
                    "txt": f"caption {i}",
                    "negative.jpg": _png(10 + i),
                    "negative.txt": f"negative {i}",
                    "json": {"subset": "swap_att", "faithful": i != 1, "url": "anything"},
                }
            )
    data = read(tmp_path / "train-000.tar")
    assert _texts(data, "caption") == ["caption 0", "caption 1", "caption 2"]
    assert _texts(data, "negative_caption") == ["negative 0", "negative 1", "negative 2"]
    assert _bytes(data, "image") == [_png(i) for i in range(3)]
    assert _bytes(data, "negative_image") == [_png(10 + i) for i in range(3)]
    assert data.groupings == {"subset": ("swap_att",) * 3, "faithful": ("yes", "no", "yes")}
    # The same samples as that library's own reader finds.
    with open(tmp_path / "train-000.tar", "rb") as file:
        stream = ({**each, "__url__": ""} for each in wds.tariterators.tar_file_iterator(file))
        theirs = list(wds.tariterators.group_by_keys(stream))
    assert [each["jpg"] for each in theirs] == _bytes(data, "image")
    source = pickle.loads(pickle.dumps(data.images[0].source))
    assert isinstance(source, TarSource)
    assert source.read() == _png(0)


def test_captions_in_the_json(tmp_path: Path) -> None:
    facts = {"captions": ["one", " two "], "negative_caption": "three"}
    data = read(_tar(tmp_path / "a.tar", [("x/a.png", _png(0)), ("x/a.json", json.dumps(facts).encode())]))
    assert _texts(data, "caption") == ["one", "two"]
    assert _texts(data, "negative_caption") == ["three", "three"]
    assert data.rows["image"].tolist() == [0, 0]


def test_patterns_and_folders_of_shards(tmp_path: Path) -> None:
    for i in range(3):
        _tar(tmp_path / "s" / f"train-{i:02d}.tar", _pair(f"k{i}", i))
    _tar(tmp_path / "s" / "val-00.tar", _pair("k", 9))
    assert _texts(read(tmp_path / "s" / "train-{01..02}.tar"), "caption") == ["caption 1", "caption 2"]
    assert _texts(read(tmp_path / "s" / "{val,train}-00.tar"), "caption") == ["caption 9", "caption 0"]
    assert len(read(tmp_path / "s")) == 3  # the training split, where there are several
    assert _texts(read(tmp_path / "s", split="validation"), "caption") == ["caption 9"]
    with pytest.raises(DataError, match=r"train-03.tar: no such shard"):
        read(tmp_path / "s" / "train-{02..03}.tar")


def test_patterns_mean_what_they_mean_to_webdataset() -> None:
    braceexpand = pytest.importorskip("braceexpand")
    for pattern in ("a.tar", "a-{000..011}.tar", "{a,b}-{0..2}.tar", "{x,y}/{08..10}-{p,q}.tar"):
        assert expand(pattern) == list(braceexpand.braceexpand(pattern))


def test_members_that_are_no_samples_are_left_alone(tmp_path: Path) -> None:
    members = [
        ("__meta__.json", b"{}"),
        ("README", b"x"),
        *_pair("a", 0),
        ("a.cls", b"3"),
        (".hidden.jpg", b""),
    ]
    data = read(_tar(tmp_path / "a.tar", members))
    assert _texts(data, "caption") == ["caption 0"]


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ([*_pair("a", 0), ("b.jpg", _png(1))], "a.tar, sample 'b': no caption"),
        ([*_pair("a", 0), ("b.txt", b"b")], "a.tar, sample 'b': no image"),
        (
            [*_pair("a", 0), *_pair("b", 0), ("b.negative.txt", b"c")],
            "sample 'b': a negative_caption that the first",
        ),
        ([*_pair("a", 0), ("a.negative.txt", b"c"), *_pair("b", 0)], "sample 'b': no negative_caption"),
        ([*_pair("a", 0), ("a.png", _png(0))], "sample 'a': two images for 'image'"),
        ([*_pair("a", 0), ("a.jpg", _png(0))], "a.tar, a.jpg: two members of one name"),
        ([("a.jpg", _png(0)), ("a.json", b"{")], "a.tar, a.json, line 1, column 2: not valid JSON"),
        ([("a.jpg", _png(0)), ("a.json", b"[]")], "a.tar, a.json: not a JSON object"),
        ([("a.jpg", _png(0)), ("a.json", b'{"caption": 3}')], "sample 'a', 'caption': not a text; given: 3"),
        ([("a.jpg", _png(0)), ("a.txt", b"\xff")], "a.tar, a.txt: not UTF-8"),
        ([("a.jpg", _png(0)), ("a.txt", b" \n")], "sample 'a', 'caption': empty text"),
        ([("a.cls", b"1")], "sample 'a': no image"),
    ],
)
def test_a_broken_sample_is_named(tmp_path: Path, members: list[tuple[str, bytes]], says: str) -> None:
    with pytest.raises(DataError, match=says):
        read(_tar(tmp_path / "a.tar", members))


def test_a_shard_that_was_cut_off_is_named_wherever_it_was_cut(tmp_path: Path) -> None:
    whole = _tar(tmp_path / "whole.tar", [*_pair("a", 0), *_pair("b", 1)]).read_bytes()
    end = max(at for at, byte in enumerate(whole) if byte) // 512 * 512 + 512
    cut = tmp_path / "cut.tar"
    for length in range(512, end + 1, 128):
        cut.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"cut.tar"):
            read(cut)
    cut.write_bytes(whole[: end + 512])
    assert len(read(cut)) == 2


def test_a_shard_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"no tar file at all" * 100)
    with pytest.raises(DataError, match=r"a.tar: not a readable tar file"):
        read(tmp_path / "a.tar")
    (tmp_path / "a.tar").rename(tmp_path / "a.tar.gz")
    with pytest.raises(DataError, match=r"a.tar.gz: a compressed shard"):
        read(tmp_path / "a.tar.gz")


def test_a_shard_that_changed_since_says_so(tmp_path: Path) -> None:
    path = _tar(tmp_path / "a.tar", _pair("a", 0))
    image = read(path).images[0]
    path.write_bytes(path.read_bytes()[:520])
    with pytest.raises(DataError, match=r"a.tar, a.jpg: the shard is cut off"):
        image.read()
    path.unlink()
    with pytest.raises(DataError, match=r"a.tar, a.jpg: image cannot be read: No such file"):
        image.read()


# --- COCO


def _coco(folder: Path, split: str = "train2017") -> Path:
    value = {
        "images": [
            {"id": 5, "file_name": "5.jpg"},
            {"id": 3, "file_name": "3.jpg"},
            {"id": 1, "file_name": "1.jpg"},
        ],
        "annotations": [
            {"id": 11, "image_id": 3, "caption": " A cat\non a mat. "},
            {"id": 10, "image_id": 5, "caption": "A dog."},
            {"id": 12, "image_id": 3, "caption": "Cats."},
        ],
    }
    path = folder / "annotations" / f"captions_{split}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def test_captions_of_coco_in_the_order_of_the_file(tmp_path: Path, jpeg: Jpeg) -> None:
    path = _coco(tmp_path)
    (tmp_path / "images" / "train2017").mkdir(parents=True)
    (tmp_path / "images" / "train2017" / "5.jpg").write_bytes(jpeg(5))
    with pytest.raises(DataError, match=r"1 of 2 photographs are not there; given: 3.jpg"):
        read(path)
    kept = read(path, missing="keep")
    with pytest.raises(DataError, match=r"3\.jpg: no such image file"):
        kept.images[int(kept.rows["image"][0])].decode()
    assert kept.images[int(kept.rows["image"][1])].read() == jpeg(5)
    (tmp_path / "images" / "train2017" / "3.jpg").write_bytes(jpeg(3))
    for data in (read(path), read(tmp_path), read(path, images=tmp_path / "images" / "train2017")):
        assert _texts(data, "caption") == ["A cat on a mat.", "A dog.", "Cats."]
        assert _bytes(data, "image") == [
            jpeg(3),
            jpeg(5),
            jpeg(3),
        ]  # image 1, which has no caption, is left out
        assert [data.images[i].id for i in data.rows["image"]] == ["3", "5", "3"]
    with pytest.raises(DataError, match="no captions of this split; given: validation; allowed: train2017"):
        read(tmp_path, split="validation")
    with pytest.raises(DataError, match="no such image folder"):
        read(path, images=tmp_path / "nowhere")


def test_real_photographs(shared_data: Path) -> None:
    folder = shared_data / "coco_mini"
    training, validation = read(folder), read(folder, split="validation")
    assert len(training) + len(validation) == 795
    assert len(training.images) + len(validation.images) == 159
    assert validation.images[0].decode().mode == "RGB"
    one = read(folder / "annotations" / "captions_train2017.json", images=folder / "images")
    assert _texts(one, "caption") == _texts(training, "caption")
    # A caption goes with its own photograph: what the file itself says.
    value = json.loads((folder / "annotations" / "captions_train2017.json").read_text())
    files = {image["id"]: image["file_name"] for image in value["images"]}
    for annotation, image in zip(value["annotations"], one.rows["image"], strict=True):
        source = one.images[image].source
        assert isinstance(source, FileSource)
        assert source.path.name == files[annotation["image_id"]]


# --- the split


@pytest.mark.models
@pytest.mark.parametrize(("n", "share", "seed"), [(795, 0.2, 42), (11, 0.5, 3), (7, 0.3, 0)])
def test_the_split_is_that_of_datasets(n: int, share: float, seed: int) -> None:
    datasets = pytest.importorskip("datasets")
    rows = {"image": np.arange(n), "caption": np.arange(n)}
    data = TrainingSet("n", (Image("a"),) * n, (Caption("b", "b"),) * n, rows)
    training, validation = split(data, share=share, seed=seed)
    theirs = datasets.Dataset.from_dict({"row": list(range(n))}).train_test_split(test_size=share, seed=seed)
    assert training.rows["image"].tolist() == theirs["train"]["row"]
    assert validation.rows["image"].tolist() == theirs["test"]["row"]


def test_the_split_of_coco_has_the_released_sizes() -> None:
    n = 591_753
    rows = {"image": np.zeros(n, dtype=np.int64), "caption": np.zeros(n, dtype=np.int64)}
    data = TrainingSet("coco", (Image("a"),), (Caption("b", "b"),), rows)
    assert [len(part) for part in split(data)] == [473_402, 118_351]


@pytest.mark.parametrize("share", [0, 1, -0.5, 0.95])
def test_a_split_that_leaves_nothing_is_refused(share: float) -> None:
    rows = {"image": np.zeros(4, dtype=np.int64), "caption": np.zeros(4, dtype=np.int64)}
    data = TrainingSet("four", (Image("a"),), (Caption("b", "b"),), rows)
    with pytest.raises(InputError, match="one side empty"):
        split(data, share=share)
