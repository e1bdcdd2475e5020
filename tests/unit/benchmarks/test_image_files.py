"""Image cells stay inside the folder of images, whoever reads them."""

import os
from pathlib import Path

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from counterfoil.benchmarks import folder as benchmarks
from counterfoil.benchmarks.image_files import image_path, outside_allowed
from counterfoil.benchmarks.publishing.tables import image_cell
from counterfoil.benchmarks.readers.own import read_pairs
from counterfoil.benchmarks.records import (
    BytesSource,
    Caption,
    CellSource,
    FileSource,
    Image,
    Photos,
    PixelSource,
)
from counterfoil.benchmarks.training_files import read_rows as read_training
from counterfoil.benchmarks.training_rows import TrainingSet
from counterfoil.build.step import StepContext
from counterfoil.build.steps.read import read_rows
from counterfoil.catalog import benchmark_card
from counterfoil.errors import DataError
from counterfoil.world.training import save_training
from refusals import refuses


@pytest.fixture
def home(tmp_path):
    """A home with a secret, and a folder of images with a picture and links: one inside, one out."""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_rsa").write_text("secret")
    images = tmp_path / "work" / "images"
    images.mkdir(parents=True)
    PIL.Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(images / "a.png")
    os.symlink("a.png", images / "inside.png")
    os.symlink("../../.ssh/id_rsa", images / "out.png")
    os.symlink("../../.ssh", images / "folder")
    return tmp_path


def _outside(home):
    return ["../../.ssh/id_rsa", str(home / ".ssh" / "id_rsa"), "out.png", "folder/id_rsa"]


def _pairs(home, cell):
    table = home / "work" / "mine.csv"
    table.write_text(f"image,caption,negative_caption\n{cell},a cat,a dog\n")
    return table


INSIDE = ("a.png", "./a.png", "inside.png", "../images/a.png")


def test_pairs(home):
    card, images = benchmark_card("pairs"), home / "work" / "images"
    for cell in (*INSIDE, str(images / "a.png")):
        assert read_pairs(card, _pairs(home, cell), images).images[0].decode().size == (8, 8)
    for cell in _outside(home):
        with pytest.raises(DataError, match=r"mine.csv, row 1, column 'image': an image outside of"):
            read_pairs(card, _pairs(home, cell), images)
        with outside_allowed():
            assert read_pairs(card, _pairs(home, cell), images).images[0].read() == b"secret"
    # Scores that are given need no images, and tables name files of other machines.
    read = read_pairs(card, _pairs(home, "/data/coco/1.jpg"), images)
    assert read.images[0].source is None


def test_without_a_folder_the_table_s_own_is_the_root_and_a_build_takes_no_path(home):
    card = benchmark_card("pairs")
    assert read_pairs(card, _pairs(home, "images/a.png"), None).images[0].source is not None
    refuses("an image outside of", read_pairs, card, _pairs(home, "../.ssh/id_rsa"), None)
    assert Photos(None).source(str(home / ".ssh" / "id_rsa")) is None
    refuses("an image outside of", Photos(None, home / "work").source, str(home / ".ssh" / "id_rsa"))
    refuses("an image outside of", StepContext(home / "build", seed=0).image, str(home / ".ssh" / "id_rsa"))


def test_a_path_in_a_cell_of_parquet(home):
    file = home / "work" / "rows.parquet"
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    cells = [{"bytes": None, "path": "images/a.png"}, {"bytes": None, "path": "../.ssh/id_rsa"}]
    pq.write_table(pa.table({"image": pa.array(cells, kind)}), file)
    assert CellSource(file, "image", 0).read().startswith(b"\x89PNG")
    refuses("an image outside of", CellSource(file, "image", 1).read)
    with outside_allowed():
        kept = CellSource(file, "image", 1)
    assert kept.read() == b"secret"


def _training(home, cell):
    table = home / "work" / "rows.csv"
    table.write_text(f"image,caption\n{cell},a cat\n")
    return read_training(table, images=home / "work" / "images").images[0]


def _of_build(home, cell):
    return StepContext(home / "build", seed=0, photos=home / "work" / "images").image(cell, missing=True)


def _photo(home, cell):
    return Photos(home / "work" / "images").source(cell)


@pytest.mark.parametrize("read", [_photo, _training, _of_build])
def test_no_reader_leaves_the_folder(home, read):
    for cell in (*INSIDE, str(home / "work" / "images" / "a.png")):
        assert read(home, cell).read().startswith(b"\x89PNG")
    for cell in _outside(home):
        refuses("an image outside of", read, home, cell)


def test_a_link_in_a_benchmark_folder(home):
    benchmarks.save(read_pairs(benchmark_card("pairs"), _pairs(home, "images/a.png"), None), home / "saved")
    (kept,) = (home / "saved" / "images").iterdir()
    kept.unlink()
    os.symlink(home / ".ssh" / "id_rsa", kept)
    refuses("an image outside of", benchmarks.load, home / "saved", verify=False)


def test_places_at_a_distance():
    folder = Path("s3://bucket/images")
    assert image_path("a/b.jpg", folder) == folder / "a/b.jpg"
    for cell in ("/etc/passwd", "../other/b.jpg"):
        refuses("an image outside of", image_path, cell, folder)


@pytest.fixture
def secret(tmp_path):
    """A text file that is called as a picture."""
    path = tmp_path / "key.png"
    path.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    return path


def test_saved_published_and_in_memory(secret):
    table = secret.with_name("mine.csv")
    table.write_text("image,caption,negative_caption\nkey.png,a cat,a dog\n")
    read = read_pairs(benchmark_card("pairs"), table, None)
    refuses(r"key\.png: not an image file", benchmarks.save, read, secret.with_name("out"))
    assert not secret.with_name("out").exists()
    refuses(r"key\.png: not an image file", image_cell, Image("key.png", FileSource(secret)))
    refuses("image 'x': not an image file", Image("x", BytesSource(b"%!PS-Adobe-3.0 EPSF-3.0\n")).checked)


def test_rows_to_learn_from_and_of_a_build(secret, tmp_path):
    images = Image("a", PixelSource(np.zeros((8, 8, 3), np.uint8))), Image("key", FileSource(secret))
    captions = Caption("0", "a"), Caption("1", "b")
    rows = {"image": np.array([0, 1]), "caption": np.array([0, 1])}
    made = TrainingSet("t", images, captions, rows, {}, "t")
    refuses(r"key\.png: not an image file", save_training, made, tmp_path / "out", share=0.5)
    assert not list((tmp_path / "out").glob("*"))
    table = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"image": [secret.read_bytes()], "caption": ["a cat"]}), table)
    with pytest.raises(DataError, match="an image of the rows: not an image file"):
        read_rows(table, StepContext(tmp_path / "build", seed=0))
    assert not (tmp_path / "build").exists()
