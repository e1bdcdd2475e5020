"""BiVLC in all its layouts."""

import csv

import numpy as np
import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers.specs import read


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


def test_parquet_file_and_folder(tmp_path, small, hub_parquet, bivlc_columns):
    file = hub_parquet(tmp_path / "data" / "test-00000-of-00001.parquet", bivlc_columns)
    for data in (file, tmp_path, tmp_path / "data"):
        _check(read(small, data, None), bivlc_columns)


def test_parquet_in_two_shards_keeps_order(tmp_path, small, hub_parquet, bivlc_columns):
    for part, rows in enumerate((slice(0, 3), slice(3, 5))):
        cut = {name: cells[rows] for name, cells in bivlc_columns.items()}
        hub_parquet(tmp_path / f"test-{part:05}-of-00002.parquet", cut)
    hub_parquet(tmp_path / "train-00000-of-00001.parquet", bivlc_columns)  # another split is left alone
    _check(read(small, tmp_path, None), bivlc_columns)


def test_a_table_of_paths(tmp_path, small, bivlc_columns):
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    rows = [
        dict(zip(bivlc_columns, cells, strict=True)) for cells in zip(*bivlc_columns.values(), strict=True)
    ]
    for number, row in enumerate(rows):
        for column in ("image", "negative_image"):
            name = f"{number}_{column}.jpg"
            (pictures / name).write_bytes(row[column])
            row[column] = name
    path = tmp_path / "bivlc.csv"
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(bivlc_columns))
        writer.writeheader()
        writer.writerows(rows)
    _check(read(small, path, pictures), bivlc_columns)
    (pictures / "3_image.jpg").unlink()
    # A file that is not there is an image that is not at hand: the rest can still be measured.
    lacking = read(small, path, pictures)
    assert [image.id for image in lacking.images if image.source is None] == ["3_i0"]


@pytest.mark.models
def test_a_folder_saved_by_datasets(tmp_path, small, hub_parquet, bivlc_columns):
    datasets = pytest.importorskip("datasets")
    file = hub_parquet(tmp_path / "a.parquet", bivlc_columns)
    whole = datasets.Dataset.from_parquet(str(file), cache_dir=str(tmp_path / "cache"))
    whole.save_to_disk(str(tmp_path / "saved"))
    datasets.DatasetDict({"test": whole}).save_to_disk(str(tmp_path / "splits"))
    _check(read(small, tmp_path / "saved", None), bivlc_columns)
    _check(read(small, tmp_path / "splits", None), bivlc_columns)


def test_released_result_table(shared_data):
    """The counts of the paper: 2,933 in all, REPLACE 2,099, SWAP 359, ADD 475."""
    found = read(card("bivlc"), shared_data / "bivlc" / "ViT-B-32.csv", None)
    groups = {name: int(mask.sum()) for name, mask in found.questions.groups().items()}
    assert len(found) == 2933
    assert (groups["replace"], groups["swap"], groups["add"]) == (2099, 359, 475)
    assert not found.images_at_hand
    assert found.captions_at_hand
    # Questions that share a caption share a cluster: 818 and 830 share both of theirs.
    assert found.clusters[818] == found.clusters[830]
    assert len(np.unique(found.clusters)) < 2933
