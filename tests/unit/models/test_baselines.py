"""Blind models: constants tie, random draws belong to pairs, length counts words, and no image is opened."""

import numpy as np
import PIL.Image
import pytest

from counterfoil.benchmarks.records import Caption, Image, PixelSource
from counterfoil.metrics.contrast import QUAD, group, i2t, quad_tied as tied
from counterfoil.metrics.ties import Ties
from counterfoil.models import baselines
from counterfoil.models.base import Model, Options
from counterfoil.models.baselines import ANCHORS, agreement, colour_words, load_pixels, shares
from counterfoil.world.sample import quads
from refusals import refuses


class Unreadable:
    """A source that fails the test when anybody reads it."""

    def read(self):
        raise AssertionError("a blind model opened an image")


IMAGES = [Image(f"image {i}", Unreadable()) for i in range(4)]
CAPTIONS = [
    Caption("a", "a cat"), Caption("b", "a cat on a mat"), Caption("c", "two  cats "), Caption("d", "dogs"),
]  # fmt: skip


@pytest.mark.parametrize("name", ["constant", "random", "length"])
def test_is_a_model_that_opens_nothing(name):
    model = baselines.load_blind(name)
    assert isinstance(model, Model)
    assert model.identity.name == f"blind:{name}"
    scores = model.score(IMAGES, CAPTIONS)
    assert (scores.shape, scores.dtype) == ((4,), np.float64)
    # Words between blanks.
    assert name != "length" or scores.tolist() == [2, 5, 2, 1]


def test_random_is_uniform_and_differs_by_seed_image_and_text_and_not_by_a_captions_name():
    result = [
        model.score([image] * 4, CAPTIONS).tolist()
        for model in (baselines.load_blind("random", Options(seed=seed)) for seed in (0, 1))
        for image in IMAGES
    ]
    assert len({draw for row in result for draw in row}) == 2 * 4 * 4
    one, other = baselines.load_blind("random").score(IMAGES[:1] * 2, [Caption(n, "a cat") for n in "xy"])
    assert one == other
    # 4,000 draws: the mean of a uniform is 1/2 with standard error 0.0046; ten of them allowed.
    captions = [Caption(str(i), f"caption {i}") for i in range(4000)]
    draws = baselines.load_blind("random").score([IMAGES[0]] * 4000, captions)
    assert abs(draws.mean() - 0.5) < 0.046
    assert draws.min() >= 0
    assert draws.max() < 1


def picture(*bands, side=64):
    """Horizontal bands of equal height, one per colour."""
    made = PIL.Image.new("RGB", (side, side))
    height = side // len(bands)
    for i, colour in enumerate(bands):
        made.paste(colour, (0, i * height, side, (i + 1) * height))
    return made


def image(*bands, name=""):
    return Image(name or "-".join(bands), PixelSource(np.asarray(picture(*bands))))


def score(images, texts):
    captions = [Caption(str(i), text) for i, text in enumerate(texts)]
    return load_pixels("colours").score(images, captions).tolist()


#: Colours between the anchors.
BETWEEN = {
    "red": ("#c42d3a", "#a81c24"), "orange": ("#f08628",), "yellow": ("#f6cd42",),
    "green": ("#1a8c5c", "#55aa44"), "blue": ("#3074ce", "#274b8f"), "purple": ("#68328a",),
    "pink": ("#f6a0be",), "brown": ("#7a4a21",), "grey": ("#777c7a",), "white": ("#f7f2e7",),
    "black": ("#15120f",),
}  # fmt: skip


@pytest.mark.parametrize("name", ANCHORS)
def test_every_anchor_bears_its_name_and_so_do_colours_near_it(name):
    for code in (*ANCHORS[name], *BETWEEN[name]):
        parts = shares(picture(code))
        assert parts[name] == sum(parts.values()) == 1.0


def test_shares_are_parts_of_the_pixels():
    parts = shares(picture("red", "red", "blue", "white"))
    assert (parts["red"], parts["blue"], parts["white"]) == (0.5, 0.25, 0.25)
    assert sum(parts.values()) == 1.0
    # A large picture is sampled: averaging lines of red and blue, a pixel each, would make purple of them.
    lines = np.zeros((2000, 600, 3), dtype=np.uint8)
    lines[::2, :, 0] = 255
    lines[1::2, :, 2] = 255
    assert shares(PIL.Image.fromarray(lines))["purple"] == 0.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A red ball.", ["red"]),
        ("BLUE, blue and more Blue", ["blue"]),
        ("a gray wall, a violet door", ["grey", "purple"]),
        ("a bored redhead on an orangery's greenhouse", []),
        ("a blue-green sea", ["blue", "green"]),
        ("", []),
    ],
)
def test_colour_words(text, words):
    assert colour_words(text) == words


def test_agreement_by_hand():
    # Red is there (+1) and green is not (-1); red is all the colour there is: coverage 1.
    assert agreement(["red", "green"], {"red": 0.1, "white": 0.9}) == 1.0
    # 0.25 % lies half-way between "not there" (0.1 %) and "there" (0.4 %): 2 * 0.5 - 1 = 0, and coverage 1.
    assert agreement(["red"], {"red": 0.0025, "white": 0.9975}) == pytest.approx(1.0)
    # A named neutral counts as colour: coverage 0.9 / (0.9 + 0.1).
    assert agreement(["white"], {"red": 0.1, "white": 0.9}) == 1.9
    # Nothing but unnamed neutrals: no coverage to speak of.
    assert agreement(["red"], {"white": 1.0}) == -1.0


def test_the_right_colour_wins_in_both_directions():
    one, two = image("red", "white"), image("blue", "white")
    s00, s01, s10, s11 = score(
        [one, two, one, two], ["a red square", "a red square", "a blue square", "a blue square"]
    )
    assert min(s00, s11) > max(s01, s10)
    # Less besides is a better match.
    fewer, more = score([image("red", "white"), image("red", "blue")], ["a red square"] * 2)
    assert fewer > more


def test_places_and_shapes_are_beyond_it():
    """The same colours elsewhere tie exactly, and so does any caption with the same colour words."""
    top, bottom = image("red", "blue"), image("blue", "red")
    texts = ["red above blue", "a blue cat above a red dog"]
    assert len(set(score([top, bottom, top, bottom], [texts[0], texts[0], texts[1], texts[1]]))) == 1
    # Without a colour word there is no opinion, and no image is opened.
    assert score([image("red"), Image("gone")], ["a cat", "a dog"]) == [0.0, 0.0]


def test_what_is_not_at_hand_is_named():
    refuses("image 'gone' is not at hand", score, [Image("gone")], ["a red cat"])
    refuses("caption 'c' is not at hand", load_pixels("colours").score, [image("red")], [Caption("c")])


def test_the_world_is_read_from_its_pixels():
    """It beats chance (1/6 for group) where colours change, and ties in I2T wherever things change places."""
    benchmark = quads(210, size=48)
    captions, images = (part.ravel() for part in benchmark.questions.pairs())
    scores = (
        load_pixels("colours")
        .score([benchmark.images[i] for i in images], [benchmark.captions[i] for i in captions])
        .reshape(-1, 2, 2)
    )
    groups = benchmark.questions.groups()
    # 30 questions: chance gives 5 right, more than 10 with odds below 1 in 100.
    assert group(scores[groups["replace_att"]]).sum() > 10
    for subset in ("swap_obj", "swap_att", "replace_rel"):
        part = scores[groups[subset]]
        assert tied(part).all()
        assert i2t(part).sum() == 0
        assert QUAD["ipos2t"](part, ties=Ties.HALF).mean() == 0.5
