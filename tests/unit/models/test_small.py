"""The small dual encoder: what its answers depend on, and that it can learn."""

import numpy as np
import pytest

pytestmark = pytest.mark.models

torch = pytest.importorskip("torch")

from counterfoil.errors import InputError  # noqa: E402
from counterfoil.models import small  # noqa: E402
from refusals import refuses  # noqa: E402

CAPTIONS = ["A red star is above a moon.", "Two blue boxes, and nothing else."]
TINY = small.Sizes(picture=32, channels=(4, 8), words=8, layers=2, hidden=16, width=12)


def pictures(n, side=32, seed=0):
    return list(np.random.default_rng(seed).integers(0, 256, (n, side, side, 3), dtype=np.uint8))


@pytest.fixture
def made():
    backbone = small.backbone(CAPTIONS, sizes=TINY, seed=3)
    backbone.network.eval()
    return backbone


def test_words_differ_by_letters_and_not_by_case(made):
    words = {
        word for caption in CAPTIONS for word in caption.lower().replace(".", " .").replace(",", " ,").split()
    }
    ids = made.tokens([" ".join(sorted(words))])[0].tolist()
    assert sorted(ids) == list(range(2, 2 + len(words)))
    assert made.tokens(["RED Star"]).tolist() == made.tokens(["red star"]).tolist()
    # What it never heard is one word to it, and nothing at all is that word too.
    assert made.tokens(["green", "purple", ""]).tolist() == [[1], [1], [1]]


def test_padding_changes_no_text(made):
    with torch.no_grad():
        alone = made.network.encode_texts(made.tokens(["a red star"])).points
        beside = made.network.encode_texts(made.tokens(["a red star", CAPTIONS[0] * 3])).points[:1]
    assert torch.allclose(alone, beside, atol=1e-6)


def test_the_order_of_words_and_the_place_of_things_matter(made):
    with torch.no_grad():
        one, other = made.network.encode_texts(
            made.tokens(["a red star above a moon", "a moon above a red star"])
        ).points
        picture = pictures(1)[0]
        upright, turned = made.network.encode_images(made.pixels([picture, picture[::-1]])).points
    assert not torch.allclose(one, other, atol=1e-4)
    assert not torch.allclose(upright, turned, atol=1e-4)


def test_pixels_are_centred_bytes(made):
    black, white = np.zeros((32, 32, 3), np.uint8), np.full((32, 32, 3), 255, np.uint8)
    values = made.pixels([black, white])
    assert tuple(values.shape) == (2, 3, 32, 32)
    assert values[0].unique().tolist() == [-2.0]
    assert values[1].unique().tolist() == [2.0]
    assert torch.equal(values, made.pixels(np.stack([black, white])))


def test_the_whole_and_its_places_come_from_one_pass(made):
    with torch.no_grad():
        local = made.network.local_images(made.pixels(pictures(2)))
        text = made.network.local_texts(made.tokens(["a red star", "a moon"]))
        assert torch.equal(local.whole, made.network.encode_images(made.pixels(pictures(2))).points)
    assert tuple(local.places.shape) == (2, 4 * 4, 8)
    assert text.nothing is not None
    assert text.nothing.tolist() == [[False, False, False], [False, False, True]]


def test_a_seed_decides_the_weights_and_touches_no_other_randomness():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, again, other = (small.backbone(CAPTIONS, sizes=TINY, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    for name, weights in first.network.named_parameters():
        assert torch.equal(weights, again.network.get_parameter(name)), name
    assert not torch.equal(first.network.projections()[0], other.network.projections()[0])


@pytest.mark.parametrize(("picture", "channels"), [(30, (4, 8)), (4, (4, 8)), (48, (4,))])
def test_pictures_that_cannot_be_cut_are_refused(picture, channels):
    refuses("cannot be cut into patches", small.Sizes, picture=picture, channels=channels, error=InputError)
