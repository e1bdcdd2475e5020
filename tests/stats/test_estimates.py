"""Intervals against slow twins, printed values, and the edges where formulas break."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterfoil.errors import InputError
from counterfoil.metrics import contrast
from counterfoil.stats.estimates import (
    cluster_bootstrap,
    difference_bootstrap,
    macro_bootstrap,
    macro_weights,
    spread,
    t_over_folds,
    wilson,
)
from counterfoil.stats.intervals import tango_score, wilson_score
from counterfoil.stats.resampling import cluster_draws
from counterfoil.stats.sharing import Sharing

DRAWS = 400


def example(n: int = 60, m: int = 3, n_clusters: int = 15, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Values with ties in them and clusters of unequal sizes, every cluster in use."""
    rng = np.random.default_rng(seed)
    clusters = np.concatenate([np.arange(n_clusters), rng.integers(0, n_clusters, n - n_clusters)])
    leaning = rng.random((n_clusters, 1))[clusters]
    values = (rng.random((n, m)) < leaning).astype(np.float64)
    values[rng.random((n, m)) < 0.1] = 1 / 6
    return values, clusters


def drawn_means(
    values: np.ndarray,
    clusters: np.ndarray,
    seed: int,
    groups: np.ndarray | None = None,
    shares: np.ndarray | None = None,
) -> np.ndarray:
    """The slow twin: for each draw, list the drawn questions and take their mean (or mean of group means)."""
    names = np.unique(clusters)
    replicates = []
    for row in np.concatenate(list(cluster_draws(len(names), DRAWS, seed=seed))):
        times = dict(zip(names.tolist(), row.astype(int).tolist(), strict=True))
        rows = np.repeat(np.arange(len(values)), [times[cluster] for cluster in clusters.tolist()])
        if groups is None:
            replicates.append(values[rows].mean(axis=0))
        else:
            drawn = groups[rows]
            replicates.append(
                np.average(
                    [values[rows][drawn == g].mean(axis=0) for g in np.unique(drawn)],
                    axis=0,
                    weights=None if shares is None else shares[np.unique(drawn)],
                )
            )
    return np.array(replicates)


#: Student's t quantile for 14 degrees of freedom, from a table.
T_14 = 2.144787


# ---------------------------------------------------------------------------------------------- Wilson


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # z**2 = 3.841459; 0 of n: (0, z**2 / (n + z**2)); n of n: (n / (n + z**2), 1).
        (0, 10, 0.0, 3.841459 / 13.841459),
        (10, 10, 10 / 13.841459, 1.0),
        # Half: centre 1/2, half width sqrt(z**2 / (n + z**2)) / 2.
        (5, 10, 0.5 - (3.841459 / 13.841459) ** 0.5 / 2, 0.5 + (3.841459 / 13.841459) ** 0.5 / 2),
        # Newcombe 1998, table I, method 3: 81 of 263 and 15 of 148.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
    ],
)
def test_wilson_by_hand_and_as_published(successes: int, n: int, low: float, high: float) -> None:
    assert wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


def test_wilson_takes_half_points_and_other_levels() -> None:
    low, high = wilson(7.5, 10)
    assert wilson(7, 10)[0] < low < wilson(8, 10)[0]
    wide, narrow = wilson(7.5, 10, level=0.99), wilson(7.5, 10, level=0.5)
    assert wide[0] < low < narrow[0] < 0.75 < narrow[1] < high < wide[1]


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (-1, 5), (6, 5), (float("nan"), 5)])
def test_wilson_refuses_what_is_no_proportion(successes: float, n: float) -> None:
    with pytest.raises(InputError, match="no proportion"):
        wilson(successes, n)


# ---------------------------------------------------------------------------------- clustered bootstrap


def test_cluster_bootstrap_equals_a_slow_twin() -> None:
    values, clusters = example()
    low, high = cluster_bootstrap(values, clusters, seed=3, draws=DRAWS)
    p = values.mean(axis=0)
    variance = drawn_means(values, clusters, seed=3).var(axis=0) * 15 / 14
    expected = wilson_score(p, p * (1 - p) / variance, np.full(3, T_14))
    assert low == pytest.approx(expected[0], abs=1e-6)
    assert high == pytest.approx(expected[1], abs=1e-6)


def test_the_variance_of_the_draws_is_the_textbook_one() -> None:
    # Clusters of equal size k: the mean's variance is that of C cluster means over C; with C / (C - 1) for
    # the bootstrap's bias it is their sample variance over C. 20,000 draws know it to about 1 %.
    rng = np.random.default_rng(0)
    values = (rng.random((40, 4)) < rng.random((40, 1))).astype(np.float64)
    low, high = cluster_bootstrap(values.reshape(-1, 1), np.repeat(np.arange(40), 4), seed=0, draws=20_000)
    p, variance = values.mean(), values.mean(axis=1).var(ddof=1) / 40
    expected = wilson_score(
        np.array([p]), np.array([p * (1 - p) / variance]), np.array([2.022691])
    )  # t, 39 df
    assert (low[0], high[0]) == pytest.approx((expected[0][0], expected[1][0]), rel=0.01)


def test_without_clusters_it_is_wilson_but_for_the_noise_of_drawing() -> None:
    values = np.repeat([[1.0], [0.0]], [700, 300], axis=0)
    low, high = cluster_bootstrap(values, np.arange(1000), seed=0)
    assert (low[0], high[0]) == pytest.approx(wilson(700, 1000), abs=1.5e-3)


def test_copies_of_a_question_add_no_certainty() -> None:
    values = np.repeat([[1.0], [0.0]], [70, 30], axis=0)
    once = cluster_bootstrap(values, np.arange(100), seed=0)
    copied = cluster_bootstrap(np.repeat(values, 10, axis=0), np.repeat(np.arange(100), 10), seed=0)
    assert copied[0] == pytest.approx(once[0])
    assert copied[1] == pytest.approx(once[1])


@pytest.mark.parametrize("constant", [0.0, 1.0, 0.5, 1 / 6, 0.123])
def test_a_column_that_does_not_vary_never_claims_certainty(constant: float) -> None:
    # 30 questions in 10 clusters: as sure as 10 independent questions make one.
    low, high = cluster_bootstrap(np.full((30, 1), constant), np.arange(30) % 10, seed=0, draws=50)
    assert (low[0], high[0]) == pytest.approx(wilson(10 * constant, 10))


def test_mirrored_questions_that_cancel_out_do_not_claim_certainty_either() -> None:
    # One of the two questions of every cluster is right: drawing clusters always gives one half.
    low, high = cluster_bootstrap(
        np.array([[1.0], [0.0]] * 10), np.repeat(np.arange(10), 2), seed=0, draws=50
    )
    assert (low[0], high[0]) == pytest.approx(wilson(5, 10))


def test_one_cluster_is_one_question() -> None:
    low, high = cluster_bootstrap(np.array([[1.0], [0.0], [1.0]]), np.zeros(3, dtype=int), seed=0, draws=20)
    assert (low[0], high[0]) == pytest.approx(wilson(2 / 3, 1))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 40))
def test_intervals_are_in_range_and_contain_the_mean(seed: int, n_clusters: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.choice([0, 1, 0.5, 1 / 6], size=(n, 4), p=[0.1, 0.7, 0.1, 0.1])
    clusters = rng.integers(0, n_clusters, n)
    low, high = cluster_bootstrap(values, clusters, seed=seed, draws=50)
    assert (low >= 0).all()
    assert (high <= 1).all()
    assert (low < high).all()
    assert (low <= values.mean(axis=0) + 1e-12).all()
    assert (values.mean(axis=0) <= high + 1e-12).all()


def test_the_seed_decides_and_cluster_numbers_do_not() -> None:
    values, clusters = example()
    first = cluster_bootstrap(values, clusters, seed=1, draws=DRAWS)
    # Other numbers in the same order, and one column alone: the same bits.
    again = cluster_bootstrap(values[:, [1]], clusters * 7 - 3, seed=1, draws=DRAWS)
    assert first[0][1] == again[0][0]
    assert first[1][1] == again[1][0]
    assert cluster_bootstrap(values, clusters, seed=2, draws=DRAWS)[0].tolist() != first[0].tolist()


@pytest.mark.parametrize(
    ("values", "what"),
    [
        (np.zeros((0, 1)), "no questions"),
        (np.array([[1.5]]), "in \\[0, 1\\]"),
        (np.array([[np.nan]]), "in \\[0, 1\\]"),
    ],
)
def test_refuses_no_questions_and_values_out_of_range(values: np.ndarray, what: str) -> None:
    with pytest.raises(InputError, match=what):
        cluster_bootstrap(values, np.zeros(len(values), dtype=int), seed=0)


BITS = """
import numpy as np
from counterfoil.stats.estimates import cluster_bootstrap, difference_bootstrap
from counterfoil.stats.tests import paired_permutation
rng = np.random.default_rng(0)
values, clusters = rng.random((3000, 12)), rng.integers(0, 700, 3000)
values[:, :6] = values[:, :6] < 0.7
pairs = np.array([(a, b) for a in range(12) for b in range(a)])
found = [*cluster_bootstrap(values, clusters, seed=1, draws=600)]
found += [*difference_bootstrap(values, clusters, pairs, seed=1, draws=600)]
found += [paired_permutation(values, clusters, pairs, seed=1, draws=600)]
print(np.concatenate(found).tobytes().hex())
"""


def test_the_same_bits_at_any_number_of_threads() -> None:
    def run(threads: int) -> str:
        names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**os.environ, **{name: str(threads) for name in names}}
        return subprocess.run(
            [sys.executable, "-c", BITS], env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert len({run(threads) for threads in (1, 2, 4)}) == 1


# ------------------------------------------------------------------------------------------------ macro


def test_macro_bootstrap_equals_a_slow_twin_also_where_draws_miss_a_group() -> None:
    values, clusters = example(n=40, m=1)
    # Group 2 lies in a single cluster, which a third of the draws misses; group 0 spreads over many.
    groups = np.where(clusters == 4, 2, np.arange(40) % 2)
    value, low, high = macro_bootstrap(values[:, 0], groups, clusters, seed=5, draws=DRAWS)
    p = np.mean([values[groups == g, 0].mean() for g in range(3)])
    variance = drawn_means(values, clusters, seed=5, groups=groups).var() * 15 / 14
    expected = wilson_score(np.array([p]), np.array([p * (1 - p) / variance]), np.array([T_14]))
    assert value == pytest.approx(p)
    assert (low, high) == pytest.approx((expected[0][0], expected[1][0]), abs=1e-6)


def test_groups_of_unequal_weight_equal_a_slow_twin() -> None:
    values, clusters = example(n=40, m=2)
    groups = np.where(clusters == 4, 2, np.arange(40) % 2)
    shares = np.array([0.5, 0.3, 0.2])
    found = spread(values, clusters, groups=groups, shares=shares, seed=5, draws=DRAWS)
    means = np.array([values[groups == g].mean(axis=0) for g in range(3)])
    assert found.value == pytest.approx(shares @ means)
    variance = drawn_means(values, clusters, seed=5, groups=groups, shares=shares).var(axis=0) * 15 / 14
    assert found.variance == pytest.approx(variance)
    same = spread(values, clusters, groups=groups, shares=np.full(3, 1 / 3), seed=5, draws=DRAWS)
    plain = spread(values, clusters, groups=groups, seed=5, draws=DRAWS)
    assert same.variance == pytest.approx(plain.variance)
    # Where images and captions are crossed and none is shared, the variance of independent means.
    own = np.arange(40)[:, None]
    crossed = spread(values, Sharing(own, own, True), groups=groups, shares=shares, seed=0)
    assert crossed.value == pytest.approx(shares @ means)
    moved = sum(shares[g] ** 2 * values[groups == g].var(axis=0) / (groups == g).sum() for g in range(3))
    assert crossed.variance == pytest.approx(moved * 40 / 39, rel=0.15)


def test_macro_over_one_group_is_micro_and_negative_groups_do_not_count() -> None:
    values, clusters = example(m=1)
    groups = np.where(np.arange(60) < 50, 3, -1)
    value, low, high = macro_bootstrap(values[:, 0], groups, clusters, seed=1, draws=DRAWS)
    inside = cluster_bootstrap(values[:50], clusters[:50], seed=1, draws=DRAWS)
    assert value == pytest.approx(values[:50].mean())
    assert (low, high) == (inside[0][0], inside[1][0])


def test_macro_weights_make_the_mean_of_group_means() -> None:
    rng = np.random.default_rng(0)
    values, groups = rng.random(50), rng.integers(-1, 5, 50)
    expected = np.mean([values[groups == g].mean() for g in range(5)])
    assert macro_weights(groups) @ values == pytest.approx(expected)


# ------------------------------------------------------------------------------------------ differences


def test_difference_bootstrap_equals_a_slow_twin() -> None:
    values, clusters = example(m=4)
    pairs = np.array([[0, 1], [2, 0], [3, 3]])
    low, high = difference_bootstrap(values, clusters, pairs, seed=3, draws=DRAWS)
    replicates = drawn_means(values, clusters, seed=3)
    gap = values[:, [0, 2]] - values[:, [1, 0]]
    d, discord = gap.mean(axis=0), np.abs(gap).mean(axis=0)
    variance = (replicates[:, [0, 2]] - replicates[:, [1, 0]]).var(axis=0) * 15 / 14
    expected = tango_score(d, discord, (discord - d * d) / variance, np.full(2, T_14))
    assert low[:2] == pytest.approx(expected[0], abs=1e-6)
    assert high[:2] == pytest.approx(expected[1], abs=1e-6)
    # A column against itself: as sure as 15 questions without a difference, +- z**2 / (n + z**2).
    assert (low[2], high[2]) == pytest.approx((-3.841459 / 18.841459, 3.841459 / 18.841459), abs=1e-6)


def test_macro_difference_equals_a_slow_twin() -> None:
    values, clusters = example(m=2)
    groups = np.arange(60) % 3 - (np.arange(60) == 7) * 9
    low, high = difference_bootstrap(values, clusters, np.array([[0, 1]]), seed=3, draws=DRAWS, groups=groups)
    inside = groups >= 0
    replicates = drawn_means(values[inside], clusters[inside], seed=3, groups=groups[inside])
    gap = values[:, 0] - values[:, 1]
    d = np.mean([gap[groups == g].mean() for g in range(3)])
    discord = np.mean([np.abs(gap[groups == g]).mean() for g in range(3)])
    variance = (replicates[:, 0] - replicates[:, 1]).var() * 15 / 14
    expected = tango_score(
        np.array([d]), np.array([discord]), np.array([(discord - d * d) / variance]), np.array([T_14])
    )
    assert (low[0], high[0]) == pytest.approx((expected[0][0], expected[1][0]), abs=1e-6)


def test_swapping_a_pair_turns_the_interval_round() -> None:
    values, clusters = example(m=2)
    low, high = difference_bootstrap(values, clusters, np.array([[0, 1], [1, 0]]), seed=0, draws=DRAWS)
    assert low[0] == pytest.approx(-high[1], abs=1e-9)
    assert high[0] == pytest.approx(-low[1], abs=1e-9)


def test_pairing_makes_the_difference_of_twins_narrower_than_that_of_strangers() -> None:
    rng = np.random.default_rng(0)
    first = (rng.random(400) < 0.6).astype(np.float64)
    twin = np.where(rng.random(400) < 0.02, 1 - first, first)
    stranger = rng.permutation(first)
    low, high = difference_bootstrap(
        np.stack([first, twin, stranger], 1), np.arange(400), np.array([[0, 1], [0, 2]]), seed=0, draws=DRAWS
    )
    assert (high - low)[0] < 0.4 * (high - low)[1]


def test_no_pairs_give_no_intervals() -> None:
    values, clusters = example()
    low, high = difference_bootstrap(values, clusters, np.zeros((0, 2), dtype=int), seed=0, draws=10)
    assert (len(low), len(high)) == (0, 0)


# ---------------------------------------------------------------------------------------- t over folds


def test_t_over_folds_by_hand() -> None:
    # Eight questions in shuffled quarters of two; with three degrees of freedom the quantile is 3.182446.
    values = np.array([1.0, 1, 0, 1, 1, 0, 0, 1])
    order = list(range(8))
    random.Random(0).shuffle(order)
    means = np.array([(values[order[2 * i]] + values[order[2 * i + 1]]) / 2 for i in range(4)])
    half = 3.182446 * means.std(ddof=1) / 2
    assert t_over_folds(values) == pytest.approx((max(0, 0.625 - half), min(1, 0.625 + half)), abs=1e-6)


def test_folds_that_do_not_divide_the_questions() -> None:
    values = np.array([1.0, 0, 1, 1, 0, 1, 1])
    for folds in range(2, 8):
        low, high = t_over_folds(values, folds=folds)
        assert 0 <= low <= values.mean() <= high <= 1


@pytest.mark.parametrize(("n", "folds"), [(3, 4), (10, 1), (0, 4)])
def test_too_few_questions_for_the_folds(n: int, folds: int) -> None:
    with pytest.raises(InputError, match="cut into folds"):
        t_over_folds(np.ones(n), folds=folds)


#: Winoground appendix A, table 1: text, image and group score with their intervals.
APPENDIX_A = {
    "human": "89.50 [80.83,98.17] 88.50 [79.00,98.00] 85.50 [73.84,97.16]",
    "vinvl": "37.75 [28.71,46.79] 17.75 [11.21,24.29] 14.50 [6.65,22.35]",
    "uniter_base": "32.25 [25.84,38.66] 13.25 [7.68,18.82] 10.00 [7.75,12.25]",
    "visualbert": "15.50 [9.34,21.66] 2.50 [0.00,6.29] 1.50 [0.00,3.55]",
    "vilt": "34.75 [29.03,40.47] 14.00 [8.49,19.51] 9.25 [6.53,11.97]",
    "lxmert": "19.25 [16.53,21.97] 7.00 [3.10,10.90] 4.00 [2.70,5.30]",
    "unit": "19.50 [14.73,24.27] 6.25 [0.53,11.97] 4.00 [2.70,5.30]",
    "flava_itm": "32.25 [20.04,44.46] 20.50 [14.34,26.66] 14.25 [8.53,19.97]",
    "clip": "30.75 [25.03,36.47] 10.50 [6.29,14.71] 8.00 [4.56,11.44]",
    "vse_coco_resnet_ft": "22.75 [19.22,26.28] 8.00 [6.70,9.30] 4.00 [1.40,6.60]",
    "vsrn_coco": "17.50 [9.54,25.46] 7.00 [1.19,12.81] 3.75 [0.00,8.50]",
}


@pytest.mark.parametrize("model", APPENDIX_A)
def test_winoground_appendix_a_to_the_printed_digit(model: str, shared_data: Path) -> None:
    scores = np.zeros((400, 2, 2))
    for line in (shared_data / "winoground" / "scores" / f"{model}.jsonl").read_text().splitlines():
        row = json.loads(line)
        question, caption, image = row["label"].split("_")
        scores[int(question), int(caption[1]), int(image[1])] = row["score"]
    cells = []
    for measure in (contrast.i2t, contrast.t2i, contrast.group):
        values = measure(scores)
        low, high = t_over_folds(values)
        cells.append(f"{100 * values.mean():.2f} [{100 * low:.2f},{100 * high:.2f}]")
    assert " ".join(cells) == APPENDIX_A[model]
