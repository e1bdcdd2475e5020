"""Prepared pictures: kept or streamed the same, and what cannot be read is stopped at or left out."""

import io
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

torch = pytest.importorskip("torch")

import thumbnails  # noqa: E402
from counterfoil.benchmarks.records import BytesSource, FileSource, Image  # noqa: E402
from counterfoil.errors import DataError, InputError  # noqa: E402
from counterfoil.models.images import Untouched  # noqa: E402
from counterfoil.train.images import BatchImages, ImageStore, say_unreadable  # noqa: E402

pytestmark = pytest.mark.models


def image(name: str, value: int, *, size: tuple[int, int] = (9, 7), cut: bool = False) -> Image:
    buffer = io.BytesIO()
    PIL.Image.new("RGB", size, (value, value, value)).save(buffer, format="PNG")
    data = buffer.getvalue()
    return Image(name, BytesSource(data[: len(data) // 2] if cut else data, name))


@pytest.mark.parametrize(
    ("kept", "workers"), [(1 << 20, 0), (0, 0), (1 << 20, 2), pytest.param(0, 2, marks=pytest.mark.slow)]
)
def test_unreadable_images_are_all_found_beforehand_where_they_are_skipped(kept: int, workers: int) -> None:
    images = [image(f"{i}.png", 10 * i, cut=i in (0, 4)) for i in range(8)]
    # So long that resizing it would take gigabytes.
    images[6] = image("6.png", 60, size=(1, 400))
    pictures = ImageStore(
        images, np.arange(1, 8), thumbnails.Shrunk(), memory=kept, skip=True, workers=workers
    )
    # The first is not used, so it is not opened.
    assert pictures.unreadable == (4, 6)
    assert pictures.in_memory == (kept > 0)
    asked = [BatchImages(np.array([7, 2])), BatchImages(np.array([5]))]
    found = [[int(picture[0, 0, 0]) for picture in batch] for batch in pictures.batches(asked)]
    assert found == [[70, 20], [50]]


def test_what_is_left_out_is_counted_and_named() -> None:
    images = [image(f"{i}.png", 0, cut=True) for i in range(5)]
    said: list[str] = []
    say_unreadable(images, [0, 2, 3, 4], 9, said.append)
    assert len(said) == 1
    assert said[0].startswith(
        "4 images cannot be read, 9 rows are left out: 0.png, 2.png, 3.png, ... (0.png: "
    )


def test_what_is_not_there_is_counted_apart(tmp_path: Path) -> None:
    images = [image("0.png", 0, cut=True), Image("gone", FileSource(tmp_path / "gone.png")), Image("nowhere")]
    said: list[str] = []
    say_unreadable(images, [0, 1, 2], 3, said.append)
    assert said[0].startswith("3 images cannot be read (2 of them are not there), 3 rows are left out: ")


def test_images_that_cannot_be_read_at_all_are_an_error() -> None:
    images = [image(f"{i}.png", 0, cut=True) for i in range(3)]
    with pytest.raises(DataError, match=r"0\.png: not an image file"):
        ImageStore(images, np.arange(3), thumbnails.Shrunk())
    with pytest.raises(InputError, match="no image can be read; given: 3 images"):
        ImageStore(images, np.arange(3), thumbnails.Shrunk(), skip=True)


def test_pictures_of_different_shapes_are_streamed() -> None:
    images = [image("a", 1), image("b", 2, size=(4, 4))]
    pictures = ImageStore(images, np.arange(2), Untouched())
    assert not pictures.in_memory
    (batch,) = pictures.batches([BatchImages(np.array([1, 0]))])
    assert [picture.shape for picture in batch] == [(4, 4, 3), (7, 9, 3)]


def test_they_are_kept_only_where_all_of_them_fit() -> None:
    images = [image(str(i), i) for i in range(4)]
    size = 3 * thumbnails.SIZE**2
    assert ImageStore(images, np.arange(4), thumbnails.Shrunk(), memory=4 * size).in_memory
    assert not ImageStore(images, np.arange(4), thumbnails.Shrunk(), memory=4 * size - 1).in_memory
    assert ImageStore(images, np.arange(3), thumbnails.Shrunk(), memory=4 * size - 1).in_memory
