"""What a scorer gets right against the length of the captions: Winoground's Table 6, of any run."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import pearsonr

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers import specs
from counterfoil.engine.join_scores import join_scores
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.lengths import correlation, length_correlations, mean_words
from counterfoil.evaluation.run import load_run, save_run
from counterfoil.models import precomputed
from counterfoil.stats.dependence import Sharing
from counterfoil.world import ratings
from counterfoil.world.sample import quads
from refusals import refuses


def alone(n):
    return Sharing(np.arange(n)[:, None], np.arange(n)[:, None])


def test_the_value_is_pearsons_and_the_interval_that_of_many_normal_pairs():
    """Of normal pairs Fisher's interval is exact for large n: atanh r +- 1.96 / sqrt(n - 3)."""
    rng = np.random.default_rng(0)
    n, rho = 20_000, 0.4
    x = rng.standard_normal(n)
    y = rho * x + np.sqrt(1 - rho**2) * rng.standard_normal(n)
    r, low, high, p = correlation(x, y, alone(n))
    assert r == pytest.approx(pearsonr(x, y).statistic)
    ends = np.tanh(np.arctanh(r) + np.array([-1, 1]) * 1.96 / np.sqrt(n - 3))
    assert np.allclose([low, high], ends, atol=4e-4)
    assert p < 1e-100


def test_coverage_where_questions_share_images():
    """60 images of five questions, whose lengths and outcomes go together within an image, and not beyond."""
    rng = np.random.default_rng(1)
    images = np.repeat(np.arange(60), 5)
    sharing = Sharing(images[:, None], np.arange(300)[:, None])
    covered = naive = 0
    for _ in range(200):
        lengths = np.round(10 + 3 * rng.standard_normal(60)[images] + rng.standard_normal(300))
        ability = rng.standard_normal(60)[images] + 0.5 * rng.standard_normal(300)
        values = (ability > 0).astype(float)
        _, low, high, p = correlation(lengths, values, sharing)
        covered += low <= 0 <= high
        naive += pearsonr(lengths, values).pvalue > 0.05
        assert (p > 0.05) == (low <= 0 <= high)
    assert 0.91 <= covered / 200 <= 0.99
    assert naive / 200 < 0.87


@pytest.mark.parametrize("values", [np.zeros(9), np.ones(9)])
def test_what_does_not_vary_has_no_correlation(values):
    assert np.isnan(correlation(np.arange(9.0), values, alone(9))).all()
    assert np.isnan(correlation(values, np.arange(9.0), alone(9))).all()
    assert np.isnan(correlation(np.arange(3.0), np.array([0.0, 1, 0]), alone(3))).all()


def made(shared_data, scores):
    """A run on Winoground from released scores, with the tags alone: no captions."""
    benchmark = specs.read(card("winoground"), shared_data / "winoground", None)
    answers = join_scores(
        precomputed.load(str(shared_data / "winoground" / "scores" / f"{scores}.jsonl")), benchmark
    )
    return benchmark, answers, evaluate(benchmark, answers, scorer=scores, draws=100)


# The ledger (tests/integration/report/reproduction) has the other models.
@pytest.mark.parametrize(("scores", "printed"), [("human", "0.20"), ("clip", "-0.22")])
def test_table_6_of_winoground(shared_data, tmp_path, scores, printed):
    benchmark, answers, result = made(shared_data, scores)
    save_run(tmp_path / "run", benchmark, answers, result)
    run = load_run(tmp_path / "run")
    words = mean_words(run.benchmark, shared_data / "winoground")
    found = {each.measure: each for each in length_correlations(run, words=words)}
    assert f"{found['group'].value:.2f}" == printed
    assert found["group"].low < found["group"].value < found["group"].high
    refuses("captions are not at hand", mean_words, replace(benchmark, path=None))


def test_of_captions_at_hand_the_words_are_counted():
    benchmark = quads(12, seed=0)
    words = mean_words(benchmark)
    texts = [[benchmark.captions[at].text.split() for at in row] for row in benchmark.listed.captions]
    assert words.tolist() == [sum(map(len, pair)) / 2 for pair in texts]


def test_of_ratings_and_preferences_too():
    for benchmark in (ratings.rated(12, seed=0), ratings.preferences(12, seed=0)):
        words = mean_words(benchmark)
        assert words.dtype == np.float64
        texts = [len(caption.text.split()) for caption in benchmark.captions]
        of = benchmark.judged
        owners = np.arange(len(of)) if isinstance(of, Rated) else of.owners
        at = [of.captions[owners == k] for k in range(len(of))]
        assert words.tolist() == [sum(texts[j] for j in row) / len(row) for row in at]
