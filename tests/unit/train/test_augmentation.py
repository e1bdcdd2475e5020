"""Random parts and patches of pictures, as torchvision draws them, fewer words, all by their key alone."""

import numpy as np
import pytest

from counterfoil.benchmarks.records import Image, PixelSource
from counterfoil.train.images import ERASED, Variation, crop, erased, varied, without_words


@pytest.mark.parametrize(("width", "height"), [(64, 64), (100, 30), (1, 500), (7, 3)])
def test_parts_lie_within_the_picture(width, height):
    rng = np.random.default_rng(0)
    for _ in range(500):
        left, top, right, bottom = crop(width, height, rng=rng)
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height


@pytest.mark.models
@pytest.mark.parametrize("draw", [crop, erased])
def test_parts_and_patches_are_distributed_as_torchvisions(draw):
    transforms = pytest.importorskip("torchvision.transforms")
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    rng, blank, n = np.random.default_rng(0), torch.zeros(3, 80, 120), 2000
    ours = np.array([box for _ in range(n) if (box := draw(120, 80, rng=rng)) is not None], dtype=float)
    if draw is crop:
        made = [transforms.RandomResizedCrop.get_params(blank, [0.08, 1], [3 / 4, 4 / 3]) for _ in range(n)]
    else:
        limits = {"scale": (0.02, 1 / 3), "ratio": (0.3, 1 / 0.3)}
        made = [transforms.RandomErasing.get_params(blank, **limits, value=[0.0])[:4] for _ in range(n)]
        # One that fits nowhere is the whole picture there.
        made = [box for box in made if box[2:] != (80, 120)]
        assert abs(len(ours) - len(made)) <= 4
        assert (ours[:, 3] - ours[:, 1]).max() < 80
    # (top, left, height, width) there.
    theirs = np.array(made, dtype=float)
    left, top, right, bottom = ours.T
    for a, b in zip(
        (top, left, bottom - top, right - left, (bottom - top) * (right - left)),
        (*theirs.T, theirs[:, 2] * theirs[:, 3]),
        strict=True,
    ):
        assert abs(a.mean() - b.mean()) < 4 * np.hypot(a.std(), b.std()) / np.sqrt(n)
        assert abs(a.std() / b.std() - 1) < 0.1


def test_a_key_decides_everything():
    image = Image("a", PixelSource(np.random.default_rng(0).integers(0, 256, (40, 60, 3)).astype(np.uint8)))

    def shown(*key):
        return varied(image, key=key, size=(16, 12)).decode().tobytes()

    assert shown(1, 2, 3) == shown(1, 2, 3)
    assert len({shown(1, 2, row) for row in range(50)}) == 50
    assert varied(image, key=(0,), size=(16, 12)).decode().size == (16, 12)


def test_every_second_picture_is_mirrored():
    # Darker to the right: a mirrored part is darker to the left.
    ramp = np.tile(np.linspace(255, 0, 64).astype(np.uint8)[None, :, None], (64, 1, 3))
    image = Image("ramp", PixelSource(ramp))
    mirrored = 0
    for key in range(400):
        shown = np.asarray(varied(image, key=(key,), size=(16, 16)).decode()).astype(int)
        mirrored += int(shown[:, -1].mean() > shown[:, 0].mean())
    # Of 400 fair draws, within four standard deviations.
    assert abs(mirrored - 200) < 40


def test_a_patch_of_some_pictures_is_erased_and_the_rest_left_alone():
    white = np.full((40, 60, 3), 255, dtype=np.uint8)
    image, n, share = Image("white", PixelSource(white)), 1000, 0.2
    touched = 0
    for key in range(n):
        shown = np.asarray(
            varied(image, key=(key,), size=(16, 16), variation=Variation(erasing=share)).decode()
        )
        # Not cropped: the picture's own size, for the model's own transform.
        assert shown.shape == white.shape
        patch = (shown != 255).any(axis=2)
        assert (shown[patch] == ERASED).all()
        rows, columns = patch.any(axis=1).sum(), patch.any(axis=0).sum()
        assert patch.sum() == rows * columns
        touched += bool(patch.any())
    assert abs(touched - share * n) < 4 * np.sqrt(n * share * (1 - share))
    assert (white == 255).all()


def test_what_is_erased_is_next_to_nothing_once_normalised():
    # The means and standard deviations of CLIP's pictures and of ImageNet's.
    for mean, std in (
        ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
        ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ):
        assert np.abs((np.array(ERASED) / 255 - mean) / std).max() < 0.02


def test_erasing_draws_after_the_crop_and_changes_no_crop():
    image = Image("a", PixelSource(np.random.default_rng(0).integers(0, 256, (40, 60, 3)).astype(np.uint8)))
    for key in range(20):
        plain, patched = (
            np.asarray(varied(image, key=(key,), size=(16, 12), variation=item).decode())
            for item in (Variation(crops=True), Variation(crops=True, erasing=1.0))
        )
        other = (plain != patched).any(axis=2)
        assert (patched[other] == ERASED).all()
        assert other.any()


def test_words_are_left_out_with_the_probability_asked_for_and_never_all():
    words = [f"w{number}" for number in range(12)]
    n, share = 2000, 0.1
    left = [without_words(" ".join(words), key=(7, row), share=share).split() for row in range(n)]
    # In their order, and each as often as any other.
    assert all(item == [word for word in words if word in item] for item in left)
    for word in words:
        gone = n - sum(word in item for item in left)
        assert abs(gone - share * n) < 4.5 * np.sqrt(n * share * (1 - share))
    assert without_words(" ".join(words), key=(7, 3), share=share).split() == left[3]
    assert {without_words("a red dog", key=(row,), share=1.0) for row in range(50)} == {"a", "red", "dog"}
    assert without_words("dog", key=(0,), share=1.0) == "dog"
    assert without_words("", key=(0,), share=1.0) == ""
    assert without_words("as  it stands", key=(0,), share=0.0) == "as it stands"
