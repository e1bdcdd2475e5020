"""Do 95 % intervals cover 95 %, and are p-values uniform where there is no difference?

Every study draws many data sets at once: the columns of one array are data sets of their own over the same
clusters of questions, as many as there are repetitions. A share of R repetitions is known to about
sqrt(0.95 * 0.05 / R); the bounds below are 4 such standard errors wide, so that a correct method fails once
in some ten thousand seeds.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from counterfoil.stats.bootstrap import cluster_draws, cluster_sums
from counterfoil.stats.intervals import cluster_interval, spread, wilson
from counterfoil.stats.tests import mcnemar
from paired_columns import difference_interval


def margin(share, repetitions):
    return 4 * float(np.sqrt(share * (1 - share) / repetitions))


def coverage(interval, truth):
    low, high = interval
    return float(((low <= truth) & (truth <= high)).mean())


def sizes(n_clusters, mean, rng):
    """Clusters of 1 question and more, `mean` on average (SugarCrepe has 4.8 questions to an image)."""
    return np.repeat(np.arange(n_clusters), 1 + rng.poisson(mean - 1, n_clusters))


def beta_binomial(clusters, p, icc, repetitions, rng):
    """Right and wrong answers whose probability is a cluster's own, beta with mean `p`; correlation `icc`."""
    strength = (1 - icc) / icc
    own = rng.beta(p * strength, (1 - p) * strength, size=(clusters.max() + 1, repetitions))
    return (rng.random((len(clusters), repetitions)) < own[clusters]).astype(np.float64)


def paired(clusters, p, icc, repetitions, rng):
    """Answers of two models, (n, 2, repetitions), alike through clusters and questions they find hard."""

    def normal(rows, both):
        return rng.normal(size=(rows, 1 if both else 2, repetitions))

    c, n = int(clusters.max()) + 1, len(clusters)
    of_cluster = np.sqrt(icc / 2) * (normal(c, True) + normal(c, False))[clusters]
    of_question = np.sqrt((1 - icc) / 2) * (normal(n, True) + normal(n, False))
    return (of_cluster + of_question < ndtri(np.array(p))[:, None]).astype(np.float64)


def side_by_side(answers):
    """(n, 2, repetitions) answers as columns, and the pairs of columns that belong together."""
    n, _, repetitions = answers.shape
    first = np.arange(repetitions)
    return answers.reshape(n, 2 * repetitions), np.stack([first, first + repetitions], axis=1)


# -------------------------------------------------------------------------------------------- coverage


@pytest.mark.parametrize(("p", "icc"), [(0.8, 0.3), (0.9, 0.1)])
def test_clustered_intervals_cover_95_percent_and_wilson_does_not(p, icc):
    """SugarCrepe's shape: about five questions to an image, answered alike."""
    rng = np.random.default_rng(1)
    clusters = sizes(300, 4.8, rng)
    values = beta_binomial(clusters, p, icc, 1000, rng)
    assert coverage(cluster_interval(values, clusters), p) == pytest.approx(0.95, abs=margin(0.95, 1000))
    # What clusters are for. With m questions to a cluster of correlation icc the variance is 1 + (m - 1) icc
    # as large (more where sizes differ), so Wilson's interval is sqrt of that too narrow: at icc 0.1 and 0.3
    # it covers about 89 and 81 %.
    n = len(clusters)
    naive = np.array([wilson(float(column.sum()), n) for column in values.T[:400]])
    assert coverage((naive[:, 0], naive[:, 1]), p) < (0.85 if icc == 0.3 else 0.92)


def test_few_clusters_with_nearly_all_right_are_covered_where_percentiles_are_not():
    rng = np.random.default_rng(2)
    clusters = sizes(25, 5, rng)
    values = beta_binomial(clusters, 0.95, 0.3, 1000, rng)
    assert coverage(cluster_interval(values, clusters), 0.95) > 0.95 - 0.015 - margin(0.95, 1000)
    sums, counts = cluster_sums(values, clusters), np.bincount(clusters)
    weights = np.concatenate(list(cluster_draws(len(counts), 1000, seed=0))).astype(np.float64)
    low, high = np.quantile(weights @ sums / (weights @ counts)[:, None], [0.025, 0.975], axis=0)
    assert coverage((low, high), 0.95) < 0.90


def test_macro_means_over_groups_that_share_images_are_covered():
    rng = np.random.default_rng(4)
    clusters = sizes(120, 5, rng)
    # Three groups of very different sizes and difficulty, spread over all clusters.
    groups = rng.choice(3, p=[0.75, 0.2, 0.05], size=len(clusters))
    p = np.array([0.9, 0.6, 0.4])
    repetitions, hits = 100, 0
    for _ in range(repetitions):
        own = rng.normal(size=120)[clusters]
        right = (0.5 * own + np.sqrt(0.75) * rng.normal(size=len(clusters)) < ndtri(p)[groups]).astype(float)
        low, high = spread(right[:, None], clusters, groups=groups).wilson()
        hits += bool(low[0] <= p.mean() <= high[0])
    assert hits / repetitions == pytest.approx(0.95, abs=margin(0.95, repetitions))


@pytest.mark.parametrize(("n_clusters", "p"), [(150, (0.75, 0.7)), (60, (0.97, 0.95)), (25, (0.8, 0.75))])
def test_intervals_of_differences_cover_95_percent(n_clusters, p):
    rng = np.random.default_rng(5)
    clusters = sizes(n_clusters, 5, rng)
    values, pairs = side_by_side(paired(clusters, p, 0.3, 600, rng))
    covered = coverage(difference_interval(values, clusters, pairs)[:2], p[0] - p[1])
    assert covered == pytest.approx(0.95, abs=margin(0.95, 600))


# ------------------------------------------------------------------------------------------- p-values

ALPHAS = (0.01, 0.05, 0.1, 0.25, 0.5)


@pytest.mark.parametrize("n_clusters", [30, 300])
def test_p_values_are_uniform_without_a_difference(n_clusters):
    """Continuous values have no ties: uniform at every level."""
    rng, repetitions = np.random.default_rng(6), 1000
    clusters = sizes(n_clusters, 5, rng)
    # Two models, one law: clusters lean one way or the other, which makes neighbours alike.
    leaning = rng.normal(size=(n_clusters, 2, repetitions))[clusters]
    values, pairs = side_by_side(ndtr(leaning + rng.normal(size=(len(clusters), 2, repetitions))))
    p = difference_interval(values, clusters, pairs)[2]
    for alpha in ALPHAS:
        assert (p <= alpha).mean() == pytest.approx(alpha, abs=0.005 + margin(alpha, repetitions))


@pytest.mark.parametrize(("n_clusters", "icc"), [(60, 0.3), (300, 0.1)])
def test_p_values_of_right_and_wrong_are_valid_and_no_more_conservative_than_discrete(n_clusters, icc):
    rng, repetitions = np.random.default_rng(7), 1000
    clusters = sizes(n_clusters, 5, rng)
    values, pairs = side_by_side(paired(clusters, (0.7, 0.7), icc, repetitions, rng))
    p = difference_interval(values, clusters, pairs)[2]
    # The sum takes whole values with the probability of two steps of a normal with its standard deviation: by
    # as much the rejections may be off alpha.
    gaps = cluster_sums(values[:, :repetitions] - values[:, repetitions:], clusters)
    spread = np.sqrt((gaps**2).sum(axis=0)).mean()
    for alpha in ALPHAS:
        step = 2 * np.exp(-(ndtri(1 - alpha / 2) ** 2) / 2) / np.sqrt(2 * np.pi) / spread
        assert float((p <= alpha).mean()) == pytest.approx(alpha, abs=step + margin(alpha, repetitions))


def test_mcnemar_is_valid_for_independent_questions_and_not_for_clusters():
    rng, repetitions = np.random.default_rng(8), 1000
    alone = paired(np.arange(400), (0.7, 0.7), 0.3, repetitions, rng)
    p = np.array([mcnemar(alone[:, 0, i], alone[:, 1, i]) for i in range(repetitions)])
    # Exact and therefore conservative: with about 110 discordant questions one step is worth at most 0.02 at
    # alpha = 0.05 and 0.15 in the middle.
    for alpha in ALPHAS:
        assert (p <= alpha).mean() <= alpha + margin(alpha, repetitions)
    assert (p <= 0.05).mean() >= 0.05 - 0.02 - margin(0.05, repetitions)

    together = paired(np.repeat(np.arange(80), 5), (0.7, 0.7), 0.6, repetitions, rng)
    p = np.array([mcnemar(together[:, 0, i], together[:, 1, i]) for i in range(repetitions)])
    assert (p <= 0.05).mean() > 0.1


PATH = Path(__file__).parents[3] / "benchmarks" / "coverage.py"


@pytest.fixture(scope="module")
def module():
    """What benchmarks/coverage.py prints: images are unequal and captions repeat."""
    spec = importlib.util.spec_from_file_location("coverage_benchmark", PATH)
    result = importlib.util.module_from_spec(spec)
    sys.modules["coverage_benchmark"] = result
    spec.loader.exec_module(result)
    return result


@pytest.mark.parametrize(
    ("form", "captions", "effect"),
    [
        ("choice", 400, "images"),
        ("choice", 40, "neither"),
        ("choice", 40, "captions"),
        ("quad", 200, "both"),
        ("quad", 40, "both"),
    ],
)
def test_intervals_cover_and_p_values_are_uniform(module, form, captions, effect):
    """400 questions of 200 images."""
    repetitions = 250
    result = module.measured(module.Setting(form, 200, 2, captions, effect, 0.8), repetitions=repetitions)
    for covered in (result.mean, result.difference):
        assert covered > 0.95 - 0.015 - margin(0.95, repetitions)
    assert result.p05 < 0.05 + 0.01 + margin(0.05, repetitions)
    # Right and wrong make p-values of steps, which the median of them shows most.
    assert 0.5 - 0.1 - margin(0.5, repetitions) < result.p50 < 0.5 + 0.02 + margin(0.5, repetitions)
    assert result.given == 0


def test_clusters_that_run_together_say_nothing_where_crossed_factors_do(module):
    setting = module.Setting("choice", 200, 2, 40, "neither", 0.8)
    rng = np.random.default_rng(0)
    dependence = module.dependence_of(setting, rng)
    values = module.answers(dependence, setting, 1, rng)[:, 0]
    assert np.bincount(dependence.components).max() > 0.95 * len(dependence)
    low, high = module.spread(values, dependence).wilson()
    assert high[0] - low[0] < 0.12
    wide = module.spread(values, dependence.components).wilson()
    assert wide[1][0] - wide[0][0] > 0.5


def test_54_images_of_40_to_1_questions(module):
    """Sums of squares over images, without corrections, cover 90 %."""
    repetitions = 800
    result = module.acceptance(repetitions, 1)
    for covered in (result.mean, result.difference):
        assert abs(covered - 0.95) < 0.01 + margin(0.95, repetitions)
    assert result.p05 == pytest.approx(1 - result.difference, abs=1e-9)
