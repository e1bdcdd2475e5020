"""Words left out and cells covered: against pictures painted and captions cut by hand."""

import re

import numpy as np
import PIL.Image
import pytest

import counterfoil as cf
from counterfoil.benchmarks import Caption, Image, PixelSource
from counterfoil.benchmarks.records import decode
from counterfoil.engine.explain import (
    ExplainedPair,
    Occlusion,
    PairToExplain,
    check_methods,
    explain,
    words_of,
)
from counterfoil.engine.session import Session
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.models.base import Identity
from counterfoil.models.baselines import load_blind, load_pixels
from engine import fakes
from refusals import refuses


def pictures(n=2, height=20, width=30):
    rng = np.random.default_rng(0)
    return [
        Image(f"i{k}", PixelSource(rng.integers(0, 256, (height, width, 3), dtype=np.uint8)))
        for k in range(n)
    ]


def asked(images, texts):
    return [
        PairToExplain(image, Caption(f"c{k}", text), words_of(text))
        for image in images
        for k, text in enumerate(texts)
    ]


def score(picture, text):
    """A number that every pixel and every letter moves, and not as a sum of both."""
    pixels = np.asarray(picture, dtype=np.float64) / 255
    weights = np.sin(np.arange(pixels.size)).reshape(pixels.shape)
    letters = sum(ord(letter) * (k + 1) for k, letter in enumerate(text)) / 1000
    return float(np.tanh((weights * pixels).sum() / 10 + 0.1 * letters))


def slow(pair, cells, mask):
    """Score, drops and occlusion by painting over arrays and joining words, one pair at a time."""
    picture, text = pair.image.decode(), pair.caption.text or ""
    # Captions of these tests are words between single blanks.
    words = text.split(" ")
    cut = [
        " ".join([*words[:k], *([] if mask is None else [mask]), *words[k + 1 :]]) for k in range(len(words))
    ]
    whole = score(picture, text)
    drops = [whole - score(picture, item) for item in cut]
    pixels = np.asarray(picture)
    height, width = pixels.shape[:2]
    colour = np.round(pixels.astype(float).mean(axis=(0, 1))).astype(np.uint8)
    heat, parts = np.zeros((cells, cells)), np.zeros((len(words), cells, cells))
    for row in range(cells):
        for column in range(cells):
            painted = pixels.copy()
            top, foot = round(row * height / cells), round((row + 1) * height / cells)
            left, right = round(column * width / cells), round((column + 1) * width / cells)
            painted[top:foot, left:right] = colour
            covered = PIL.Image.fromarray(painted)
            heat[row, column] = whole - score(covered, text)
            for k, item in enumerate(cut):
                parts[k, row, column] = heat[row, column] - (score(picture, item) - score(covered, item))
    return whole, drops, heat, parts


@pytest.mark.parametrize("mask", [None, "[MASK]"])
def test_a_function_is_explained_as_by_hand(mask, tmp_path):
    calls = []

    def function(images, texts):
        calls.append(len(texts))
        return [score(*pair) for pair in zip(images, texts, strict=True)]

    model = cf.as_model(function, name="tanh", version="1")
    pairs = asked(pictures(), ["a red cat", "two dogs"])
    session = Session(cache=tmp_path, batch_size=16)
    result = explain(model, pairs, occlusion=Occlusion(3), mask=mask, session=session)
    for pair, one in zip(pairs, result, strict=True):
        whole, drops, heat, parts = slow(pair, 3, mask)
        assert one.score == whole
        np.testing.assert_allclose(one.drops, drops, atol=1e-12)
        (occlusion,) = one.heats
        np.testing.assert_allclose(occlusion.whole, heat, atol=1e-12)
        np.testing.assert_allclose(occlusion.parts, parts, atol=1e-12)
    # Each picture in ten states with each caption in all of its.
    assert sum(calls) == 2 * 10 * (4 + 3)
    assert max(calls) == 16
    calls.clear()
    again = explain(model, pairs, occlusion=Occlusion(3), mask=mask, session=session)
    assert calls == []
    assert [one.score for one in again] == [one.score for one in result]


def test_a_dual_encoder_embeds_each_state_once_and_agrees_with_a_model_of_pairs():
    images = [Image(f"i{k}", PixelSource(np.full((4, 4, 3), 60 * k, np.uint8))) for k in range(2)]
    pairs = asked(images, ["a red cat", "a dog"])
    embedder, model = fakes.FakeEmbedder(), fakes.FakeModel()
    session = Session(batch_size=7)
    result, plain = (
        explain(item, pairs, occlusion=Occlusion(2), session=session) for item in (embedder, model)
    )
    # The last bits of the fake's numbers change with their batch.
    for one, other in zip(result, plain, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-3)
        np.testing.assert_allclose(one.drops, other.drops, atol=1e-3)
        np.testing.assert_allclose(one.heats[0].parts, other.heats[0].parts, atol=1e-3)
    # A picture of one colour is itself with any cell covered by its mean, but is named as what it is.
    assert len(embedder.images_seen) == len(set(embedder.images_seen)) == 2 * 5
    assert sorted(embedder.captions_seen) == sorted(
        {"a red cat", "red cat", "a cat", "a red", "a dog", "dog", "a"}
    )


def test_a_model_without_images_says_nothing_of_them():
    pairs = asked([Image("gone")], ["a red cat"])
    assert explain(load_blind("length"), pairs)[0].heats == ()
    (result,) = explain(load_blind("length"), pairs, methods=("occlusion",))
    assert result.drops.tolist() == [1.0, 1.0, 1.0]
    assert not result.heats[0].whole.any()
    assert not result.heats[0].parts.any()


def test_colours_lean_on_the_word_and_the_half_that_shows_it():
    pixels = np.full((40, 40, 3), (245, 245, 245), np.uint8)
    pixels[5:15, 5:15], pixels[25:35, 25:35] = (200, 20, 40), (30, 110, 230)
    pair = asked([Image("two", PixelSource(pixels))], ["a red thing on a blue one"])
    (result,) = explain(load_pixels("colours"), pair, occlusion=Occlusion(2))
    drops = dict(zip(result.words, result.drops.tolist(), strict=True))
    assert [word for word, drop in drops.items() if drop > 0] == ["red", "blue"]
    (heat,) = result.heats
    highest = {word: int(grid.argmax()) for word, grid in zip(result.words, heat.parts, strict=True)}
    assert (highest["red"], highest["blue"]) == (0, 3)
    assert not heat.parts[result.words.index("thing")].any()


def test_captions_may_have_no_words_and_spans_may_be_phrases():
    assert words_of("") == words_of("...") == ()
    (image,) = pictures(1)
    (result,) = explain(
        load_blind("length"), [PairToExplain(image, Caption("0", ""), ())], methods=("occlusion",)
    )
    assert isinstance(result, ExplainedPair)
    assert result.heats[0].parts.shape == (0, 7, 7)
    pair = PairToExplain(image, Caption("0", "a red cat sleeps"), ((0, 9),))
    (result,) = explain(load_blind("length"), [pair])
    assert (result.words, result.drops.tolist()) == (["a red cat"], [3.0])


def test_blur_and_mean_cover_a_cell_and_nothing_else():
    (image,) = pictures(1)
    before = np.asarray(image.decode())
    for fill in ("mean", "blur"):
        images, keys = Occlusion(2, fill).of(image, "key")
        assert len(set(keys)) == 4
        after = np.asarray(images[3].decode())
        changed = (after != before).any(axis=2)
        assert changed[10:, 15:].mean() > 0.9
        assert not changed[:10].any()
        assert not changed[:, :15].any()
        # The bytes are those of the picture.
        assert np.array_equal(np.asarray(decode(images[3].read(), where="png")), after)


def test_what_cannot_be_explained_is_refused():
    blind = load_blind("length")
    refuses("did you mean 'occlusion'", check_methods, blind, ["oclusion"], error=UnknownNameError)
    with pytest.raises(InputError, match=re.escape("blind:length: patch similarity needs a dual encoder")):
        check_methods(blind, ["patches"])
    refuses("cells to a side", Occlusion, 0, error=InputError)
    refuses("fill of covered cells", Occlusion, 7, "black", error=UnknownNameError)

    class Table:
        does = ("given_scores",)
        identity = Identity("given:scores.csv")

    with pytest.raises(InputError, match=r"given:scores\.csv: has no scores of new images and captions"):
        check_methods(Table(), [])
