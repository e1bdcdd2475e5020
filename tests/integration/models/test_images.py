"""Workers: order, errors that arrive as themselves, and sizes computed as torchvision does."""

import multiprocessing
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.benchmarks.records import FileSource, Image
from counterfoil.errors import DataError, InputError
from counterfoil.models.images import Resized, Untouched, inputs_of, prepared
from refusals import refuses


@pytest.mark.parametrize("workers", [0, 2])
def test_order_is_kept(workers, drawn_images):
    batches = [drawn_images[at : at + 2] for at in range(0, 10, 2)] * 3
    expected = [np.asarray(image.decode()) for batch in batches for image in batch]
    found = [array for batch in prepared(batches, Untouched(), workers=workers) for array in batch]
    assert len(found) == 30
    assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_missing_file_is_named(workers, drawn_images):
    missing = Image("gone", FileSource(Path("/nowhere/gone.jpg")))
    stream = prepared([drawn_images[:3], [missing]], Untouched(), workers=workers)
    assert len(next(stream)) == 3
    refuses(r"^/nowhere/gone\.jpg: no such image file", next, stream)


def test_stopping_early_stops_the_workers(drawn_images):
    stream = prepared([[image] for image in drawn_images] * 5, Untouched(), workers=2)
    next(stream)
    stream.close()
    assert not multiprocessing.active_children()


def test_a_killed_worker_is_an_error_not_a_wait(drawn_images):
    stream = prepared([[image] for image in drawn_images] * 20, Untouched(), workers=1)
    next(stream)
    (worker,) = multiprocessing.active_children()
    # As the system does when memory runs out.
    worker.kill()
    refuses(r"a process that decodes images stopped.*--workers 0", list, stream, error=InputError)


@given(
    width=st.integers(1, 90), height=st.integers(1, 90), size=st.integers(1, 40),
    mode=st.sampled_from(["shortest", "squash"]), interpolation=st.sampled_from(["bicubic", "bilinear"]),
)  # fmt: skip
def test_pixels_are_those_of_torchvision(width, height, size, mode, interpolation):
    """The peer is torchvision's Resize and CenterCrop, which open_clip's evaluation is made of."""
    transforms = pytest.importorskip("torchvision.transforms")
    rng = np.random.default_rng(width * 91 + height)
    picture = PIL.Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
    kind = transforms.InterpolationMode(interpolation)
    peer = (
        transforms.Resize((size, size), kind)
        if mode == "squash"
        else transforms.Compose([transforms.Resize(size, kind), transforms.CenterCrop(size)])
    )
    assert np.array_equal(Resized(size, mode, interpolation)(picture), np.asarray(peer(picture)))


@pytest.mark.parametrize("preparation", [Untouched(), Resized(224)])
def test_a_picture_as_thin_as_a_line_takes_no_gigabytes(preparation, tmp_path):
    # Resized whole it would be 224 x 4,480,000 pixels: 3 GB.
    PIL.Image.new("RGB", (1, 20_000)).save(tmp_path / "line.png")
    assert (tmp_path / "line.png").stat().st_size < 200
    with pytest.raises(DataError, match=r"line.png: image too long for its width; given: 1 x 20000 pixels"):
        inputs_of(preparation, Image("line", FileSource(tmp_path / "line.png")))
