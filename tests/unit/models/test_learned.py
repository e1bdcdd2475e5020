"""Blind models that learn from other questions, against plain counts and a plain fit."""

from collections import Counter

import numpy as np
import PIL.Image
import pytest
from scipy.optimize import minimize

from contracts import forms
from counterfoil import catalog
from counterfoil.benchmarks import Benchmark, Caption, Card, Choice, Image
from counterfoil.benchmarks.contrasts import FOLDS, Contrasts
from counterfoil.benchmarks.records import words
from counterfoil.engine.session import run
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.models import baselines
from counterfoil.models.base import Options
from refusals import refuses


def choices(rows):
    """A question per (image, right caption, wrong caption)."""
    images = list(dict.fromkeys(image for image, _, _ in rows))
    return Benchmark(
        Card(name="made", title="made", form="choice"),
        tuple(map(Image, images)),
        tuple(Caption(f"{i}", text) for i, text in enumerate(text for row in rows for text in row[1:])),
        Choice(
            tuple(map(str, range(len(rows)))),
            query=np.array([images.index(image) for image, _, _ in rows]),
            candidates=np.arange(2 * len(rows)).reshape(-1, 2),
        ),
    )


def planted(n=60):
    """Wrong captions have the word "odd"; whole images share their right caption."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(n):
        thing = " ".join(rng.choice(list("abcdefghijklm"), 4))
        rows.append((f"image {i // 2}", f"{thing} {i // 2}", f"{thing} odd {i}"))
    return choices(rows)


@pytest.mark.parametrize("name", ["bag-of-words", "learned"])
def test_a_planted_word_is_learned(name):
    scores = run(planted(), catalog.model(f"blind:{name}")).scores
    assert (scores[:, 0] > scores[:, 1]).all()


@pytest.mark.parametrize("name", ["bag-of-words", "learned"])
def test_nothing_is_learned_of_a_question_from_itself(name):
    # Every caption is one of its own, so that only a question's own answer could tell.
    rows = [(f"{i}", f"right{i} x", f"wrong{i} x") for i in range(40)]
    scores = run(choices(rows), catalog.model(f"blind:{name}")).scores
    if name == "bag-of-words":
        assert (scores[:, 0] == scores[:, 1]).all()
    # The same two captions twice, of two images: they are of one cluster, or barred.
    twice = [(f"{i}/{k}", f"right{i} x", f"wrong{i} x") for i in range(20) for k in (0, 1)]
    scores = run(choices(twice), catalog.model("blind:bag-of-words")).scores
    assert (scores[:, 0] == scores[:, 1]).all()


def test_folds_keep_clusters_whole_and_bar_shared_captions():
    contrasts = Contrasts.of(planted())
    assert len(set(contrasts.folds.tolist())) == FOLDS
    for cluster in np.unique(contrasts.clusters):
        assert len(set(contrasts.folds[contrasts.clusters == cluster].tolist())) == 1
    # Clusters of single questions, though captions are shared: what shares one is not learned from.
    loose = Contrasts(contrasts.texts, contrasts.question, contrasts.truth, np.arange(len(contrasts)))
    texts = np.array([" ".join(words(text)) for text in loose.texts])
    for tested, learned_from in loose.splits():
        assert not (tested & learned_from).any()
        assert not set(texts[tested]) & set(texts[learned_from])


def test_unigram_counts_the_words_of_the_other_folds():
    contrasts = Contrasts.of(planted(30))
    result = baselines.log_frequencies(contrasts)
    fold = contrasts.folds[contrasts.question]
    for row in range(len(contrasts.texts)):
        others = {contrasts.texts[other] for other in np.flatnonzero(fold != fold[row])}
        counts = Counter(word for text in others for word in words(text))
        whole = sum(counts.values()) + len(counts) + 1
        expected = np.mean([np.log((counts[word] + 1) / whole) for word in words(contrasts.texts[row])])
        assert result[row] == pytest.approx(expected)


def test_the_fit_is_a_ridge_regression_of_right_against_wrong():
    rng = np.random.default_rng(1)
    contrasts = Contrasts(
        [" ".join(rng.choice(list("abcdef"), 3)) for _ in range(80)],
        np.repeat(np.arange(40), 2),
        np.tile([1.0, 0.0], 40),
        np.arange(40),
    )
    result = baselines.learned_scores(contrasts, ngrams=1, shape=False)
    names = sorted({word for tokens in contrasts.tokens for word in tokens})
    table = np.array([[name in tokens for name in names] for tokens in contrasts.tokens], dtype=float)
    for tested, learned_from in contrasts.splits():
        rows = [q for q in range(40) if learned_from[2 * q]]
        gaps = np.array([table[2 * q] - table[2 * q + 1] for q in rows]).reshape(-1, len(names))
        kept = (gaps != 0).sum(axis=0) >= baselines.LEAST

        def loss(weights, gaps=gaps):
            return float(np.logaddexp(0, -gaps @ weights).sum() + weights @ weights / 2)

        weights = minimize(loss, np.zeros(len(names)), tol=1e-10).x * kept
        np.testing.assert_allclose(result[tested], table[tested] @ weights, atol=1e-3)


def test_ratings_are_learned_by_least_squares():
    rng = np.random.default_rng(2)
    texts = [" ".join(rng.choice(list("abcde"), 4)) for _ in range(120)]
    truth = np.array([text.count("a") + 0.5 * text.count("b") for text in texts])
    contrasts = Contrasts(texts, np.arange(120), truth, np.arange(120), rated=True)
    assert np.corrcoef(baselines.learned_scores(contrasts, ngrams=1, shape=True), truth)[0, 1] > 0.8
    assert not len(contrasts.pairs)


def test_captions_of_the_same_words_tie():
    benchmark = choices([(str(i), f"a cat {i} bites a dog", f"a dog bites a cat {i}") for i in range(30)])
    assert Contrasts.of(benchmark).same_words.all()
    for name in ("unigram", "bag-of-words"):
        scores = run(benchmark, catalog.model(f"blind:{name}")).scores
        assert (scores[:, 0] == scores[:, 1]).all()


def test_quads_get_chance_and_galleries_are_refused():
    benchmark = forms.quads(6)
    for name in ("unigram", "bag-of-words", "learned"):
        model = catalog.model(f"blind:{name}")
        scores = run(benchmark, model).scores
        assert (scores[:, :, 0] == scores[:, :, 1]).all()
        words = "cannot answer questions of form 'gallery'"
        refuses(words, run, forms.gallery(images=range(3)), model, error=InputError)


def test_unigram_reads_a_file_of_captions(tmp_path):
    lines, table, coco = (tmp_path / name for name in ("c.txt", "c.csv", "c.json"))
    lines.write_text("a red cat\n\na red dog\n")
    table.write_text("image,caption,negative_caption\nx,a red cat,a red dog\n")
    coco.write_text('{"x": ["a red cat", "a red dog"]}')
    asked = [Caption(str(i), text) for i, text in enumerate(["a red", "a cat", "zebra"])]
    result = [
        catalog.model("blind:unigram", Options(settings={"captions": str(path)})).score(
            [Image("x")] * 3, asked
        )
        for path in (lines, table, coco)
    ]
    # Of six words, with four different ones: 2 + 1, 2 + 1, 1 + 1 of 6 + 4 + 1.
    expected = [np.log(3 / 11), (np.log(3 / 11) + np.log(2 / 11)) / 2, np.log(1 / 11)]
    for item in result:
        np.testing.assert_allclose(item, expected)
    odd = tmp_path / "odd.csv"
    odd.write_text("image,label\nx,1\n")
    refuses("no column of captions", catalog.model, "blind:unigram", Options(settings={"captions": str(odd)}))


def test_what_does_not_fit_is_one_line():
    for name, options, said, error in (
        ("blind:learned", {"settings": {"captions": "x.csv"}}, "setting", UnknownNameError),
        ("blind:unigram", {"settings": {"image": "x.png"}}, "setting", UnknownNameError),
        ("blind:lenght", {}, "did you mean 'length'", UnknownNameError),
        ("pixels:colors", {}, "did you mean 'colours'", UnknownNameError),
        ("blind:constant-image", {}, "needs a model that looks at the mean image", InputError),
        ("blind:constant-image", {"backbone": "blind:random"}, "that looks at images behind", InputError),
        ("blind:length", {"backbone": "open-clip:x/y"}, "--backbone is for caption metrics", InputError),
    ):
        refuses(said, catalog.model, name, Options(**options), error=error)
    refuses("its questions choose among no captions", Contrasts.of, forms.gallery(images=range(3)))


def test_one_image_stands_for_all(tmp_path):
    PIL.Image.new("RGB", (20, 10), (50, 150, 100)).save(tmp_path / "a.png")
    seen = []

    class Model:
        """A model of pairs that writes down what it sees."""

        identity = catalog.model("blind:length").identity
        does = ("scores_pairs",)

        def score(self, images, captions):
            seen.extend(image.decode().getpixel((5, 5)) for image in images)
            return np.array([len(caption.text or "") for caption in captions], dtype=float)

    model = baselines.constant_image(Model(), Options(settings={"image": str(tmp_path / "a.png")}))
    scores = run(forms.quads(3), model).scores
    assert (scores[:, :, 0] == scores[:, :, 1]).all()
    assert np.abs(np.array(seen) - [50, 150, 100]).max() <= 1
