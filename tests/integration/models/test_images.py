"""Workers: order, errors that arrive as themselves, and sizes computed as torchvision does."""

import multiprocessing
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch
from hypothesis import given, strategies as st

from counterfoil.benchmarks.records import FileSource, Image
from counterfoil.errors import DataError, InputError, ModelError
from counterfoil.models.base import Options
from counterfoil.models.images import ImageRoute, Resized, Untouched, inputs_of, prepared
from counterfoil.models.networks import CompiledTower, PicturePixels
from counterfoil.models.open_clip import load
from refusals import refuses


@pytest.mark.parametrize("workers", [0, 2])
def test_order_is_kept_and_a_missing_file_is_named(workers, drawn_images):
    batches = [drawn_images[start : start + 2] for start in range(0, 10, 2)] * 3
    expected = [np.asarray(image.decode()) for batch in batches for image in batch]
    missing = Image("gone", FileSource(Path("/nowhere/gone.jpg")))
    stream = prepared([*batches, [missing]], Untouched(), workers=workers)
    result = [array for _ in batches for array in next(stream)]
    assert len(result) == 30
    assert all(np.array_equal(one, other) for one, other in zip(result, expected, strict=True))
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
    resize = transforms.Resize((size, size) if mode == "squash" else size, kind)
    crop = [] if mode == "squash" else [transforms.CenterCrop(size)]
    peer = transforms.Compose([resize, *crop])
    assert np.array_equal(Resized(size, mode, interpolation)(picture), np.asarray(peer(picture)))


@pytest.mark.parametrize("preparation", [Untouched(), Resized(224)])
def test_a_picture_as_thin_as_a_line_takes_no_gigabytes(preparation, tmp_path):
    # Resized whole it would be 224 x 4,480,000 pixels: 3 GB.
    PIL.Image.new("RGB", (1, 20_000)).save(tmp_path / "line.png")
    assert (tmp_path / "line.png").stat().st_size < 200
    with pytest.raises(DataError, match=r"line.png: image too long for its width; given: 1 x 20000 pixels"):
        inputs_of(preparation, Image("line", FileSource(tmp_path / "line.png")))


def smooth(width, height, seed=0):
    coarse = PIL.Image.fromarray(np.random.default_rng(seed).integers(0, 256, (6, 8, 3), dtype=np.uint8))
    return coarse.resize((width, height), PIL.Image.Resampling.BICUBIC)


@pytest.mark.parametrize("mode", ["shortest", "squash"])
@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
@pytest.mark.parametrize("corner", ["even", "floor"])
def test_the_device_resizes_as_pillow_does(mode, interpolation, corner):
    resized = Resized(48, mode, interpolation, corner)
    sizes = [(331, 478), (478, 331), (48, 48), (47, 95), (20, 30), (331, 478)]
    pictures = [np.asarray(smooth(*size, seed)) for seed, size in enumerate(sizes)]
    result = PicturePixels(resized, (0.0,) * 3, (1.0,) * 3, list, resizes=True)(pictures)
    assert result.shape == (6, 3, 48, 48)
    for one, picture in zip(result, pictures, strict=True):
        expected = resized(PIL.Image.fromarray(picture)).astype(float)
        levels = (one * 255).permute(1, 2, 0).numpy()
        assert abs(levels - levels.round()).max() < 1e-3
        assert abs(levels - expected).max() <= 2.001
        assert abs(levels - expected).mean() < 0.5


def test_pixels_of_a_picture_that_fits_are_normalised_and_no_more():
    picture = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    picture.setflags(write=False)
    mean, std = (0.48, 0.45, 0.40), (0.26, 0.27, 0.28)
    result = PicturePixels(Resized(32), mean, std, list, resizes=True)([picture])
    levels = torch.from_numpy(picture.copy()).permute(2, 0, 1).float() / 255
    expected = levels - torch.tensor(mean)[:, None, None]
    assert torch.allclose(result[0], expected / torch.tensor(std)[:, None, None], atol=1e-6)


def test_the_reference_has_the_name_it_always_had(tiny_architectures, checkpoint):
    where = f"tiny/{checkpoint('tiny')}"
    plain = load(where, Options(device="cpu")).identity
    assert plain == load(where, Options(device="cpu", settings={"resize": "host", "compile": "no"})).identity
    assert set(plain.options) == {"activation", "device"}


#: To write a program of a tower and to compile it takes half a minute.
@pytest.mark.parametrize("real", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_compiled_tower_is_that_tower(real, tiny_architectures, checkpoint, drawn_images, monkeypatch):
    if not real:
        monkeypatch.setattr(torch, "compile", lambda tower, **_: tower)
    where = f"tiny/{checkpoint('tiny')}"
    plain, made = (load(where, Options(device="cpu", settings={"compile": mode})) for mode in ("no", "yes"))
    assert plain.identity.key != made.identity.key
    assert made.identity.options["compile"] == "yes"
    batches = [drawn_images[:4], drawn_images[4:6], drawn_images[6:]]
    for one, other in zip(plain.embed_images(batches), made.embed_images(batches), strict=True):
        assert one.shape == other.shape
        assert abs(one - other).max() < 1e-5


class Counting:
    """A tower that counts the sizes that it is called with."""

    def __init__(self):
        self.sizes = []

    def __call__(self, pixels):
        self.sizes.append(len(pixels))
        return pixels.flatten(1)[:, :4] + 1


def test_smaller_batches_are_filled_up(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda tower, **_: tower)
    tower = Counting()
    compiled = CompiledTower(tower, tolerance=1e-4, where="x")
    pixels = torch.arange(3 * 3 * 4.0).view(3, 3, 2, 2)
    for rows in (3, 1, 2):
        assert torch.equal(compiled(pixels[:rows]), pixels[:rows].flatten(1)[:, :4] + 1)
    # Twice the first time: as the program and as the tower that it is compared with.
    assert tower.sizes == [3, 3, 3, 3]


def test_a_program_that_disagrees_or_fails_is_refused(monkeypatch):
    def made(program):
        monkeypatch.setattr(torch, "compile", lambda tower, **_: program)
        return CompiledTower(Counting(), tolerance=1e-4, where="x")

    def failing(pixels):
        raise RuntimeError("no compiler\nfound")

    for program, words in (
        (lambda pixels: 2.01 * pixels.flatten(1)[:, :4], r"tower does not agree.*--set compile$"),
        (lambda pixels: pixels.flatten(1)[:, :4] * float("nan"), "does not agree"),
        (failing, "^x: the image tower cannot be compiled: RuntimeError no compiler"),
    ):
        refuses(words, made(program), torch.rand(2, 3, 2, 2), error=ModelError)


def test_a_model_with_a_preparation_of_its_own_resizes_nowhere_else():
    with pytest.raises(InputError, match="prepared by its library alone; given: resize=device"):
        ImageRoute(resize="device").preparation(Untouched(), where="s")
