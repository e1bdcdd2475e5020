"""Audits: a planted word is found and named, and where none is planted none is."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from counterfoil.benchmarks import Benchmark, Caption, Card, Choice, Image
from counterfoil.benchmarks.contrasts import Contrasts
from counterfoil.engine.session import run
from counterfoil.evaluation import audit as auditing
from counterfoil.evaluation.audit import LONGER, artefacts
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.intervals import one_sided
from counterfoil.evaluation.result import Estimate, Result
from counterfoil.jobs.audit import audit
from counterfoil.models.baselines import load_blind
from counterfoil.stats.intervals import wilson
from counterfoil.stats.tests import holm, tarone_holm
from counterfoil.world.sample import quads


def asked(world, rng, planted="", share=0.3):
    """A question about one image of each of the world's quads, drawn by a coin.

    With `planted`, so large a share of the wrong captions has that word in front.
    """
    side = rng.integers(2, size=len(world))
    form = world.paired
    texts = np.array([caption.text for caption in world.captions], dtype=object)
    n = np.arange(len(world))
    right, wrong = texts[form.captions[n, side]], texts[form.captions[n, 1 - side]]
    if planted:
        hit = rng.random(len(world)) < share
        wrong = np.where(hit, np.array([f"{planted} {text}" for text in wrong], dtype=object), wrong)
    captions = [Caption(str(i), text) for i, text in enumerate(np.stack([right, wrong], 1).reshape(-1))]
    images = tuple(Image(world.images[i].id) for i in form.images[n, side])
    questions = Choice(form.ids, query=n, candidates=np.arange(2 * len(world)).reshape(-1, 2))
    return Benchmark(Card(name="drawn", title="drawn", form="choice"), images, tuple(captions), questions)


def named(benchmark):
    return [item.word for item in artefacts(Contrasts.of(benchmark)) if item.p_adjusted <= auditing.LEVEL]


def test_a_planted_word_is_found_and_named():
    benchmark = asked(quads(200, seed=1, size=32, lazy=True), np.random.default_rng(1), "indeed")
    actual = artefacts(Contrasts.of(benchmark))[0]
    assert (actual.word, actual.right, actual.precision) == ("indeed", 0, 1)
    assert actual.p_adjusted < 1e-6
    texts = [caption.text for caption in benchmark.captions]
    assert all("indeed" in texts[2 * i + 1] for i in actual.examples)
    assert sum("indeed" in text for text in texts) == actual.wrong
    assert set(named(benchmark)) <= {"indeed", LONGER}
    # Half of the questions are answered by it or by chance.
    result = evaluate(benchmark, run(benchmark, load_blind("bag-of-words")), ties="half", draws=200)
    assert result["accuracy"].low > 0.5


def test_where_no_word_is_planted_none_is_named():
    # One benchmark in twenty may have one; the simulation below counts them.
    assert named(asked(quads(200, seed=1, size=32, lazy=True), np.random.default_rng(1))) == []


@pytest.mark.slow
def test_false_alarms_are_at_most_at_the_stated_rate():
    """In how many drawn benchmarks a word is named, and a learned model is above chance."""
    words, learned = 0, 0
    for seed in range(200):
        benchmark = asked(quads(80, seed=seed, size=32, lazy=True), np.random.default_rng(seed))
        words += bool(named(benchmark))
        result = evaluate(benchmark, run(benchmark, load_blind("learned")), ties="half", draws=400)
        learned += result["accuracy"].low > 0.5
    # At the level of 5 % more than 17 of 200 come once in a hundred times. What is learned in one fold rests
    # on the answers of the others, so that these are not quite independent: more than 2.5 % are above chance.
    assert words <= 17
    assert learned <= 20


def found_at(**accuracies):
    """Results of models with so large an accuracy over 400 questions of two captions."""
    result = []
    for name, value in accuracies.items():
        low, high = wilson(400 * value, 400)
        estimate = Estimate(value, low, high, 400, 0.5, 400.0)
        result.append(Result("drawn", name.replace("_", ":"), {"accuracy": estimate}))
    return result


def test_models_are_called_above_chance_after_holm_over_all_that_were_tried():
    # 0.5525 is 2.1 standard errors above chance: its interval excludes chance, and one of four lies so.
    alone = found_at(lm=0.5525)
    assert alone[0]["accuracy"].low > 0.5
    assert auditing.above_chance(alone, "accuracy") == [("lm", "accuracy")]
    assert auditing.above_chance(found_at(lm=0.5525, a=0.5, b=0.5, c=0.49), "accuracy") == []
    both = auditing.above_chance(found_at(lm=0.57, a=0.6, b=0.5, c=0.4), "accuracy")
    assert both == [("a", "accuracy"), ("lm", "accuracy")]
    below = auditing.above_chance(found_at(lm=0.57, a=0.6, b=0.4, c=0.1), "accuracy", above=False)
    assert below == [("c", "accuracy"), ("b", "accuracy")]
    # What is learned in one fold rests on the answers of the others.
    assert auditing.above_chance(found_at(blind_learned=0.5525), "accuracy") == []
    assert auditing.above_chance(found_at(blind_learned=0.62), "accuracy") == [("blind:learned", "accuracy")]


@pytest.mark.parametrize("right", [180, 205, 215, 230])
@pytest.mark.parametrize("above", [True, False])
def test_the_one_sided_test_is_the_binomial_one(right, above):
    (result,) = found_at(one=right / 400)
    exact = binomtest(right, 400, alternative="greater" if above else "less").pvalue
    expected = exact if (right > 200) == above else 1.0
    assert one_sided(result["accuracy"], above=above) == pytest.approx(expected, abs=0.02)


def test_a_language_model_is_shown_by_sum_and_by_mean(tmp_path):
    """Wrong captions are right ones with more words: the sum tells them all apart, the mean does not."""
    from tiny_families import save_gpt2

    save_gpt2(tmp_path / "gpt2")
    benchmark = asked(quads(30, seed=2, size=32, lazy=True), np.random.default_rng(2))
    texts = [item.text or "" for item in benchmark.captions]
    texts = [texts[i - 1] + " and more of it" if i % 2 else text for i, text in enumerate(texts)]
    captions = tuple(Caption(item.id, t) for item, t in zip(benchmark.captions, texts, strict=True))
    benchmark = replace(benchmark, captions=captions)
    name = f"lm:{tmp_path / 'gpt2'}"
    options = {"models": (name,), "pictures": False, "draws": 100, "cache": None, "quiet": True}
    (actual,) = audit(benchmark, **options).audits
    values = {result.model: result["accuracy"].value for result in actual.blind}
    assert values[name] == 1
    assert values[f"{name} (mean per token)"] < 1
    (actual,) = audit(benchmark, **options | {"settings": {"score": "perplexity"}}).audits
    assert [result.model for result in actual.blind if result.model.startswith("lm:")] == [name]


def sign_test(benchmark):
    """Each word's questions, and the sign test of clusters, without the code under test."""
    contrasts = Contrasts.of(benchmark)
    texts = [set((caption.text or "").lower().split()) for caption in benchmark.captions]
    result = {}
    for word in {word for text in texts for word in text}:
        signs = {}
        right = wrong = 0
        for question, (a, b) in enumerate(benchmark.choices.candidates):
            sign = int(word in texts[a]) - int(word in texts[b])
            right, wrong = right + (sign > 0), wrong + (sign < 0)
            cluster = contrasts.clusters[question]
            signs[cluster] = signs.get(cluster, 0) + sign
        up, down = (sum(np.sign(value) == way for value in signs.values()) for way in (1, -1))
        if right + wrong:
            result[word] = (right, wrong, binomtest(up, up + down).pvalue if up + down else 1.0)
    return result


def test_counts_and_p_values_are_those_of_a_plain_sign_test():
    benchmark = asked(quads(60, seed=3, size=32, lazy=True), np.random.default_rng(3), "indeed", 0.2)
    plain = str.maketrans("", "", ".,")
    captions = tuple(Caption(c.id, (c.text or "").translate(plain)) for c in benchmark.captions)
    benchmark = Benchmark(benchmark.card, benchmark.images, captions, benchmark.questions)
    expected = sign_test(benchmark)
    result = {item.word: item for item in artefacts(Contrasts.of(benchmark)) if item.word != LONGER}
    assert set(result) == set(expected)
    for word, (right, wrong, p) in expected.items():
        assert (result[word].right, result[word].wrong) == (right, wrong)
        assert result[word].p == pytest.approx(p)


def test_of_several_wrong_captions_one_is_drawn_since_all_are_no_coin():
    """Five captions of words by chance: of drawn pairs few are named, of all wrong ones together many."""
    rng = np.random.default_rng(8)
    vocabulary = np.array(["cat", *(f"w{i}" for i in range(15))])
    drawn = together = 0
    for _ in range(8):
        texts = [" ".join(rng.choice(vocabulary, 2)) for _ in range(5 * 160)]
        captions = tuple(Caption(str(i), text) for i, text in enumerate(texts))
        candidates = np.arange(800).reshape(160, 5)
        questions = Choice(tuple(map(str, range(160))), query=np.arange(160), candidates=candidates)
        images = tuple(Image(str(i)) for i in range(160))
        drawn += bool(named(Benchmark(Card(name="d", title="d", form="choice"), images, captions, questions)))
        words = [text.split() for text in texts]
        has = np.array([["cat" in own for own in words[start : start + 5]] for start in range(0, 800, 5)])
        sign = np.sign(has[:, 0].astype(float) - has[:, 1:].mean(axis=1))
        up, down = int((sign > 0).sum()), int((sign < 0).sum())
        together += binomtest(up, up + down).pvalue < 0.05 / len(vocabulary)
    assert drawn <= 2
    assert together >= 7


def test_a_family_of_tests_that_can_be_significant():
    p = np.array([0.001, 0.01, 0.2, 1.0, 1.0])
    # All could be: Holm's own.
    np.testing.assert_allclose(tarone_holm(p, np.full(5, 1e-9)), holm(p))
    # Only the first two could be: the family is of two.
    np.testing.assert_allclose(tarone_holm(p, np.array([1e-9, 1e-9, 0.1, 1, 1])), [0.002, 0.01, 1, 1, 1])
    assert tarone_holm(np.empty(0), np.empty(0)).size == 0
