"""Random parts of pictures: as torchvision draws them, and by their key alone."""

import numpy as np
import pytest

from counterfoil.data.records import Image, PixelSource
from counterfoil.train.augmentation import crop, varied


@pytest.mark.parametrize(("width", "height"), [(64, 64), (100, 30), (1, 500), (7, 3)])
def test_parts_lie_within_the_picture(width: int, height: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        left, top, right, bottom = crop(width, height, rng=rng)
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height


@pytest.mark.models
def test_parts_are_distributed_as_torchvisions() -> None:
    transforms = pytest.importorskip("torchvision.transforms")
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    rng, blank = np.random.default_rng(0), torch.zeros(3, 80, 120)
    ours = np.array([crop(120, 80, rng=rng) for _ in range(4000)], dtype=float)
    theirs = np.array(
        [transforms.RandomResizedCrop.get_params(blank, [0.08, 1], [3 / 4, 4 / 3]) for _ in range(4000)],
        float,
    )
    # (top, left, height, width) there.
    left, top, right, bottom = ours.T
    for a, b in zip(
        (top, left, bottom - top, right - left, (bottom - top) * (right - left)),
        (*theirs.T, theirs[:, 2] * theirs[:, 3]),
        strict=True,
    ):
        spread = np.hypot(a.std(), b.std()) / np.sqrt(4000)
        assert abs(a.mean() - b.mean()) < 4 * spread
        assert abs(a.std() / b.std() - 1) < 0.08


def test_a_key_decides_everything() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (40, 60, 3)).astype(np.uint8)
    image = Image("a", PixelSource(pixels))

    def shown(*key: int) -> bytes:
        return varied(image, key=key, size=(16, 12)).decode().tobytes()

    assert shown(1, 2, 3) == shown(1, 2, 3)
    assert len({shown(1, 2, row) for row in range(50)}) == 50
    assert varied(image, key=(0,), size=(16, 12)).decode().size == (16, 12)


def test_every_second_picture_is_mirrored() -> None:
    # Darker to the right: a mirrored part is darker to the left.
    ramp = np.tile(np.linspace(255, 0, 64).astype(np.uint8)[None, :, None], (64, 1, 3))
    image = Image("ramp", PixelSource(ramp))
    mirrored = 0
    for key in range(400):
        shown = np.asarray(varied(image, key=(key,), size=(16, 16)).decode()).astype(int)
        mirrored += int(shown[:, -1].mean() > shown[:, 0].mean())
    # Of 400 fair draws, within four standard deviations.
    assert abs(mirrored - 200) < 40
