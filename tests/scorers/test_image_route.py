"""Routes of pictures to a tower: what they read, how far they move pixels, and the names they have."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.data.records import BytesSource, Caption, Image, PixelSource
from counterfoil.errors import DataError, InputError, ModelError
from counterfoil.scorers.base import Options, ScorerSettings
from counterfoil.scorers.image_route import (
    EncodedPicture,
    ImageRoute,
    ReducedPicture,
    WholePicture,
    decode_reduced,
    is_jpeg,
)
from counterfoil.scorers.images import Resized, Untouched, prepared

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.models


def smooth(width: int, height: int, seed: int = 0) -> PIL.Image.Image:
    rng = np.random.default_rng(seed)
    coarse = PIL.Image.fromarray(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8))
    return coarse.resize((width, height), PIL.Image.Resampling.BICUBIC)


def encoded(picture: PIL.Image.Image, kind: str = "JPEG", **options: Any) -> Image:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return Image("drawn", BytesSource(buffer.getvalue(), "drawn"))


# -- decoding at a reduced size ---------------------------------------------------------------------------


@given(width=st.integers(1, 700), height=st.integers(1, 700), least=st.integers(1, 300))
def test_the_smallest_size_with_no_side_too_short(width: int, height: int, least: int) -> None:
    found = decode_reduced(encoded(smooth(width, height)), least).size
    scale = max([1, *(s for s in (2, 4, 8) if min(width, height) // s >= least)])
    assert found == (-(-width // scale), -(-height // scale))


def test_what_is_not_reduced() -> None:
    picture = smooth(640, 480)
    assert decode_reduced(encoded(picture, "PNG"), 32).size == (640, 480)
    jpeg = encoded(picture)
    # A crop counts pixels of the whole picture.
    crop = Image("part", jpeg.source, crop=(400, 300, 600, 400))
    assert np.array_equal(np.asarray(decode_reduced(crop, 32)), np.asarray(crop.decode()))
    inside = Image("inside", PixelSource(np.asarray(picture)))
    assert decode_reduced(inside, 32).size == (640, 480)


def test_colours_and_grey_become_rgb() -> None:
    for mode in ("L", "CMYK", "RGB"):
        image = encoded(smooth(400, 300).convert(mode))
        small = decode_reduced(image, 100)
        assert (small.mode, small.size) == ("RGB", (200, 150))
        near = np.asarray(image.decode().resize((200, 150), PIL.Image.Resampling.BOX), dtype=float)
        assert abs(np.asarray(small, dtype=float) - near).mean() < 2


def test_a_file_that_is_cut_off_is_named() -> None:
    whole = encoded(smooth(400, 300))
    assert isinstance(whole.source, BytesSource)
    broken = Image("half", BytesSource(whole.source.data[:2000], "half.jpg"))
    with pytest.raises(DataError, match=r"^half\.jpg: image cannot be decoded"):
        ReducedPicture(Resized(32)).of_image(broken)


@pytest.mark.parametrize("workers", [0, 2])
def test_workers_take_the_route(workers: int) -> None:
    images = [encoded(smooth(500, 375, seed)) for seed in range(6)]
    batches = [images[:3], images[3:]]
    found = [
        each for batch in prepared(batches, ReducedPicture(Resized(64)), workers=workers) for each in batch
    ]
    for image, array in zip(images, found, strict=True):
        expected = Resized(64)(decode_reduced(image, 64))
        assert np.array_equal(array, expected)
        # Other pixels than those of the whole picture, and near them.
        exact = Resized(64)(image.decode()).astype(float)
        assert 0 < abs(array - exact).mean() < 2
    wholes = [each for batch in prepared(batches, WholePicture(), workers=workers) for each in batch]
    assert [each.shape for each in wholes] == [(375, 500, 3)] * 6


# -- bytes for torchvision --------------------------------------------------------------------------------


def test_which_files_are_handed_on() -> None:
    picture = smooth(90, 70)

    def shape(image: Image) -> tuple[int, ...]:
        return EncodedPicture().of_image(image).shape

    assert len(shape(encoded(picture))) == 1
    assert len(shape(encoded(picture, progressive=True))) == 1
    for other in (
        encoded(picture, "PNG"),
        encoded(picture.convert("L")),
        encoded(picture.convert("CMYK")),
        Image("part", encoded(picture).source, crop=(0, 0, 90, 70)),
        Image("inside", PixelSource(np.asarray(picture))),
    ):
        assert shape(other) == (70, 90, 3)
    assert EncodedPicture()(picture).shape == (70, 90, 3)


@given(data=st.binary(max_size=40), start=st.booleans())
def test_no_bytes_are_too_odd_to_be_told_from_a_jpeg(data: bytes, start: bool) -> None:
    assert is_jpeg((b"\xff\xd8" if start else b"") + data) in (True, False)


# -- resizing on the device -------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["shortest", "squash"])
@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
@pytest.mark.parametrize("corner", ["even", "floor"])
def test_the_device_resizes_as_pillow_does(mode: Any, interpolation: Any, corner: Any) -> None:
    from counterfoil.scorers.device_pixels import DevicePixels

    resized = Resized(48, mode, interpolation, corner)
    sizes = [(331, 478), (478, 331), (48, 48), (47, 95), (20, 30), (331, 478)]
    pictures = [np.asarray(smooth(*size, seed)) for seed, size in enumerate(sizes)]
    pixels = DevicePixels(resized, (0.0,) * 3, (1.0,) * 3, torch.device("cpu"), torch.float32)
    found = pixels(pictures)
    assert found.shape == (6, 3, 48, 48)
    for one, picture in zip(found, pictures, strict=True):
        expected = resized(PIL.Image.fromarray(picture)).astype(float)
        levels = (one * 255).permute(1, 2, 0).numpy()
        assert abs(levels - levels.round()).max() < 1e-3
        assert abs(levels - expected).max() <= 2.001
        assert abs(levels - expected).mean() < 0.5


def test_pixels_of_a_picture_that_fits_are_normalised_and_no_more() -> None:
    from counterfoil.scorers.device_pixels import DevicePixels

    picture = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    picture.setflags(write=False)
    mean, std = (0.48, 0.45, 0.40), (0.26, 0.27, 0.28)
    found = DevicePixels(Resized(32), mean, std, torch.device("cpu"), torch.float32)([picture])
    expected = (
        torch.from_numpy(picture.copy()).permute(2, 0, 1).float() / 255 - torch.tensor(mean)[:, None, None]
    )
    assert torch.allclose(found[0], expected / torch.tensor(std)[:, None, None], atol=1e-6)


def test_torchvision_decodes_what_pillow_does() -> None:
    pytest.importorskip("torchvision")
    from counterfoil.scorers.device_pixels import DevicePixels

    images = [encoded(smooth(200, 150, seed), progressive=seed == 1) for seed in range(3)]
    images.append(encoded(smooth(200, 150), "PNG"))
    pixels = DevicePixels(Resized(64), (0.0,) * 3, (1.0,) * 3, torch.device("cpu"), torch.float32)
    found = pixels([EncodedPicture().of_image(image) for image in images])
    exact = pixels([np.asarray(image.decode()) for image in images])
    assert float((found - exact).abs().mean()) * 255 < 1
    with pytest.raises(DataError, match=r"cannot be decoded by torchvision.*decode=exact"):
        pixels([EncodedPicture().of_image(images[0])[:900]])


# -- rows that are waited for later -----------------------------------------------------------------------


@pytest.mark.parametrize("ahead", [None, 0, 1, 3])
def test_rows_come_in_order_however_far_ahead(ahead: int | None) -> None:
    from counterfoil.scorers.device_pixels import fetched

    launched: list[int] = []

    def launch(batch: int) -> Any:
        launched.append(batch)
        return torch.full((2, 3), float(batch))

    stream = fetched(iter(range(5)), launch, ahead=ahead)
    first = next(stream)
    assert launched == list(range(1 + (ahead or 0)))
    assert [float(first[0, 0]), *(float(each[0, 0]) for each in stream)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_rows_before_a_file_that_cannot_be_read_are_kept(ahead: int) -> None:
    from counterfoil.scorers.device_pixels import fetched

    def batches() -> Iterator[int]:
        yield from (0, 1)
        raise DataError("gone")

    stream = fetched(batches(), lambda batch: torch.full((1, 1), float(batch)), ahead=ahead)
    assert [float(next(stream)[0, 0]), float(next(stream)[0, 0])] == [0, 1]
    with pytest.raises(DataError, match="gone"):
        next(stream)


# -- scorers ----------------------------------------------------------------------------------------------


ROUTES = (
    {},
    {"decode": "reduced"},
    {"resize": "device"},
    {"decode": "reduced", "resize": "device"},
    {"decode": "torchvision", "resize": "device"},
)


@pytest.mark.parametrize("library", ["open-clip", "hf"])
def test_every_route_has_a_name_of_its_own_and_is_near_the_reference(
    library: str, request: pytest.FixtureRequest, photographs: list[Image]
) -> None:
    pytest.importorskip("torchvision")
    if library == "hf":
        from counterfoil.scorers.hf import load

        where = str(request.getfixturevalue("clip_folder"))
    else:
        from counterfoil.scorers.open_clip import load

        request.getfixturevalue("tiny_architectures")
        where = f"tiny/{request.getfixturevalue('checkpoint')('tiny')}"
    keys, rows = [], []
    for settings in ROUTES:
        scorer = load(where, Options(device="cpu", settings=settings))
        keys.append(scorer.identity.key)
        rows.append(np.concatenate(list(scorer.embed_images([photographs[:5], photographs[5:8]]))))
        assert {name: scorer.identity.options.get(name) for name in settings} == settings
        # A batch or two, alone or beside others: the same rows.
        again = np.concatenate(list(scorer.embed_images([[each] for each in photographs[:8]])))
        assert abs(again - rows[-1]).max() < 1e-5
    assert len(set(keys)) == len(ROUTES)
    for moved in rows[1:]:
        cosines = (moved * rows[0]).sum(axis=1)
        assert cosines.min() > 0.95
        assert abs(moved - rows[0]).max() > 1e-6


def test_the_reference_has_the_name_it_always_had(
    tiny_architectures: Any, checkpoint: Callable[[str], Path]
) -> None:
    from counterfoil.scorers.open_clip import load

    where = f"tiny/{checkpoint('tiny')}"
    plain = load(where, Options(device="cpu")).identity
    named = load(where, Options(device="cpu", settings={"decode": "exact", "compile": "no"})).identity
    assert plain == named
    assert set(plain.options) == {"activation", "device"}


def test_a_compiled_tower_is_that_tower(
    tiny_architectures: Any, checkpoint: Callable[[str], Path], drawn_images: list[Image]
) -> None:
    from counterfoil.scorers.open_clip import load

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

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, pixels: Any) -> Any:
        self.sizes.append(len(pixels))
        return pixels.flatten(1)[:, :4] + 1


def test_smaller_batches_are_filled_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from counterfoil.scorers.compiled import CompiledTower

    monkeypatch.setattr(torch, "compile", lambda tower, **_: tower)
    tower = Counting()
    compiled = CompiledTower(tower, "yes", device=torch.device("cpu"), tolerance=1e-4, where="x")
    pixels = torch.arange(3 * 3 * 4.0).view(3, 3, 2, 2)
    for rows in (3, 1, 2):
        assert torch.equal(compiled(pixels[:rows]), pixels[:rows].flatten(1)[:, :4] + 1)
    # Twice the first time: as the program and as the tower that it is compared with.
    assert tower.sizes == [3, 3, 3, 3]


def test_a_program_that_disagrees_or_fails_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from counterfoil.scorers.compiled import CompiledTower

    def made(program: Callable[[Any], Any]) -> Any:
        monkeypatch.setattr(torch, "compile", lambda tower, **_: program)
        return CompiledTower(Counting(), "yes", device=torch.device("cpu"), tolerance=1e-4, where="x")

    pixels = torch.rand(2, 3, 2, 2)
    with pytest.raises(ModelError, match=r"^x: the compiled image tower does not agree.*--set compile$"):
        made(lambda pixels: pixels.flatten(1)[:, :4] + 1.01 * pixels.flatten(1)[:, :4])(pixels)
    with pytest.raises(ModelError, match="does not agree"):
        made(lambda pixels: pixels.flatten(1)[:, :4] * float("nan"))(pixels)

    def failing(pixels: Any) -> Any:
        raise RuntimeError("no compiler\nfound")

    with pytest.raises(
        ModelError, match=r"^x: the image tower cannot be compiled: RuntimeError no compiler f"
    ):
        made(failing)(pixels)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"decode": "fast"}, r"^s: no such decode; given: fast; allowed: exact, reduced, torchvision$"),
        ({"decode": "torchvision"}, r"resized; given: decode=torchvision with resize=host; --set resize=dev"),
        ({"resize": ""}, r"no such resize; given: \(empty\)"),
    ],
)
def test_routes_that_are_none(settings: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ImageRoute.of(ScorerSettings("s", settings))


def test_what_a_route_cannot_be_used_for(
    tiny_architectures: Any, checkpoint: Callable[[str], Path], captions: list[Caption]
) -> None:
    from counterfoil.scorers.open_clip import load

    with pytest.raises(InputError, match="prepared by its library alone; given: decode=reduced"):
        ImageRoute(decode="reduced").preparation(Untouched(), where="s")
    with pytest.raises(InputError, match=r"CUDA graphs need a GPU; given: compile=graphs on cpu"):
        load(f"tiny/{checkpoint('tiny')}", Options(device="cpu", settings={"compile": "graphs"}))
    with pytest.raises(InputError, match="unknown setting"):
        load(f"tiny/{checkpoint('tiny')}", Options(device="cpu", settings={"colour": "red"}))
