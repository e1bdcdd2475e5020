"""What is saved or published was decoded as a picture first."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from counterfoil.benchmarks import folder as benchmarks
from counterfoil.benchmarks.publishing.tables import image_cell
from counterfoil.benchmarks.readers.own import read_pairs
from counterfoil.benchmarks.records import BytesSource, Caption, FileSource, Image, PixelSource
from counterfoil.benchmarks.training_rows import TrainingSet
from counterfoil.build.rows import read_rows
from counterfoil.build.step import StepContext
from counterfoil.catalog import benchmark_card
from counterfoil.errors import DataError
from counterfoil.world.training import save_training


@pytest.fixture
def secret(tmp_path):
    """A text file that is called as a picture."""
    path = tmp_path / "key.png"
    path.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    return path


def test_saved(secret):
    table = secret.with_name("mine.csv")
    table.write_text("image,caption,negative_caption\nkey.png,a cat,a dog\n")
    read = read_pairs(benchmark_card("pairs"), table, None)
    with pytest.raises(DataError, match=r"key\.png: not an image file"):
        benchmarks.save(read, secret.with_name("out"))
    assert not secret.with_name("out").exists()


def test_published(secret):
    with pytest.raises(DataError, match=r"key\.png: not an image file"):
        image_cell(Image("key.png", FileSource(secret)))


def test_rows_to_learn_from(secret, tmp_path):
    images = Image("a", PixelSource(np.zeros((8, 8, 3), np.uint8))), Image("key", FileSource(secret))
    captions = Caption("0", "a"), Caption("1", "b")
    rows = {"image": np.array([0, 1]), "caption": np.array([0, 1])}
    made = TrainingSet("t", images, captions, rows, {}, "t")
    with pytest.raises(DataError, match=r"key\.png: not an image file"):
        save_training(made, tmp_path / "out", share=0.5)
    assert not list((tmp_path / "out").glob("*"))


def test_rows_of_a_build(secret, tmp_path):
    table = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"image": [secret.read_bytes()], "caption": ["a cat"]}), table)
    with pytest.raises(DataError, match="an image of the rows: not an image file"):
        read_rows(table, StepContext(tmp_path / "build", seed=0))
    assert not (tmp_path / "build").exists()


def test_bytes_in_memory():
    with pytest.raises(DataError, match="image 'x': not an image file"):
        Image("x", BytesSource(b"%!PS-Adobe-3.0 EPSF-3.0\n")).checked()
