"""Training data by path: COCO's captions, the files of a split, and rows that are split."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from counterfoil.benchmarks import Caption, Image
from counterfoil.benchmarks.training_files import read, split
from counterfoil.benchmarks.training_rows import TrainingSet, of_split
from counterfoil.errors import DataError, InputError
from refusals import refuses
from role_values import pictures, texts
from tar_shards import pair, write_tar


def test_the_files_of_a_split(tmp_path, jpeg, hub_parquet):
    for name, seeds in (
        ("train-00000-of-00002", (0, 1)),
        ("train-00001-of-00002", (2,)),
        ("validation-00000-of-00001", (3,)),
    ):
        columns = {"image": [jpeg(s) for s in seeds], "caption": [f"caption {s}" for s in seeds]}
        hub_parquet(tmp_path / "data" / f"{name}.parquet", columns)
    assert texts(read(tmp_path), "caption") == ["caption 0", "caption 1", "caption 2"]
    assert pictures(read(tmp_path, split="train"), "image") == [jpeg(s) for s in (0, 1, 2)]
    assert texts(read(tmp_path, split="validation"), "caption") == ["caption 3"]
    assert texts(read(tmp_path, split="val"), "caption") == ["caption 3"]
    refuses("no file of this split; given: test; allowed: train, validation", read, tmp_path, split="test")


def test_folders_of_splits_and_tables_of_splits(tmp_path, jpeg):
    for name, seed in (("train", 0), ("val", 1)):
        write_tar(tmp_path / "shards" / name / "00000.tar", pair("k", seed))
        table = pa.table({"image": [jpeg(seed)], "caption": [f"caption {seed}"]})
        (tmp_path / "parquet" / name).mkdir(parents=True)
        pq.write_table(table, tmp_path / "parquet" / name / "0.parquet")
        (tmp_path / "csv" / "images").mkdir(parents=True, exist_ok=True)
        (tmp_path / "csv" / "images" / f"{seed}.jpg").write_bytes(jpeg(seed))
        (tmp_path / "csv" / f"{name}.csv").write_text(f"image,caption\n{seed}.jpg,caption {seed}\n")
    for kind in ("shards", "parquet", "csv"):
        assert texts(read(tmp_path / kind), "caption") == ["caption 0"]
        assert texts(read(tmp_path / kind, split="validation"), "caption") == ["caption 1"]
    assert pictures(read(tmp_path / "csv", split="val"), "image") == [jpeg(1)]
    (tmp_path / "empty").mkdir()
    refuses("no data set in this folder", read, tmp_path / "empty")
    refuses("no such file or folder", read, tmp_path / "nowhere")


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
def test_which_split_a_file_is_of(name, of):
    assert of_split([Path(name)], of, where=Path()) == [Path(name)]
    refuses(f"allowed: {of}$", of_split, [Path(name)], "other", where=Path())


def test_files_of_no_split_are_all_read():
    files = [Path("00000.tar"), Path("00001.tar")]
    assert of_split(files, None, where=Path()) == files


def _coco(folder, split="train2017"):
    value = {
        "images": [{"id": number, "file_name": f"{number}.jpg"} for number in (5, 3, 1)],
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


def test_captions_of_coco_in_the_order_of_the_file(tmp_path, jpeg):
    path = _coco(tmp_path)
    (tmp_path / "images" / "train2017").mkdir(parents=True)
    (tmp_path / "images" / "train2017" / "5.jpg").write_bytes(jpeg(5))
    refuses(r"1 of 2 photographs are not there; given: 3.jpg", read, path)
    kept = read(path, missing="keep")
    refuses(r"3\.jpg: no such image file", kept.images[int(kept.rows["image"][0])].decode)
    assert kept.images[int(kept.rows["image"][1])].read() == jpeg(5)
    (tmp_path / "images" / "train2017" / "3.jpg").write_bytes(jpeg(3))
    for data in (read(path), read(tmp_path), read(path, images=tmp_path / "images" / "train2017")):
        assert texts(data, "caption") == ["A cat on a mat.", "A dog.", "Cats."]
        # Image 1, which has no caption, is left out.
        assert pictures(data, "image") == [jpeg(3), jpeg(5), jpeg(3)]
        assert [data.images[i].id for i in data.rows["image"]] == ["3", "5", "3"]
    with pytest.raises(DataError, match="no captions of this split; given: validation; allowed: train2017"):
        read(tmp_path, split="validation")
    refuses("no such image folder", read, path, images=tmp_path / "nowhere")


def test_real_photographs(shared_data):
    folder = shared_data / "coco_mini"
    training, validation = read(folder), read(folder, split="validation")
    assert len(training) + len(validation) == 795
    assert len(training.images) + len(validation.images) == 159
    assert validation.images[0].decode().mode == "RGB"
    one = read(folder / "annotations" / "captions_train2017.json", images=folder / "images")
    assert texts(one, "caption") == texts(training, "caption")
    # A caption goes with its own photograph: what the file itself says.
    value = json.loads((folder / "annotations" / "captions_train2017.json").read_text())
    files = {image["id"]: image["file_name"] for image in value["images"]}
    for annotation, image in zip(value["annotations"], one.rows["image"], strict=True):
        source = one.images[image].source
        assert source.path.name == files[annotation["image_id"]]


@pytest.mark.models
@pytest.mark.parametrize(("n", "share", "seed"), [(795, 0.2, 42), (11, 0.5, 3), (7, 0.3, 0)])
def test_the_split_is_that_of_datasets(n, share, seed):
    datasets = pytest.importorskip("datasets")
    rows = {"image": np.arange(n), "caption": np.arange(n)}
    data = TrainingSet("n", (Image("a"),) * n, (Caption("b", "b"),) * n, rows)
    training, validation = split(data, share=share, seed=seed)
    theirs = datasets.Dataset.from_dict({"row": list(range(n))}).train_test_split(test_size=share, seed=seed)
    assert training.rows["image"].tolist() == theirs["train"]["row"]
    assert validation.rows["image"].tolist() == theirs["test"]["row"]


def test_the_split_of_coco_has_the_released_sizes():
    n = 591_753
    rows = {"image": np.zeros(n, dtype=np.int64), "caption": np.zeros(n, dtype=np.int64)}
    data = TrainingSet("coco", (Image("a"),), (Caption("b", "b"),), rows)
    assert [len(part) for part in split(data)] == [473_402, 118_351]


@pytest.mark.parametrize("share", [0, 1, -0.5, 0.95])
def test_a_split_that_leaves_nothing_is_refused(share):
    rows = {"image": np.zeros(4, dtype=np.int64), "caption": np.zeros(4, dtype=np.int64)}
    data = TrainingSet("four", (Image("a"),), (Caption("b", "b"),), rows)
    refuses("one side empty", split, data, share=share, error=InputError)
