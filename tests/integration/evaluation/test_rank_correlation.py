"""Rank correlations against a twin that writes every draw out."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from contracts import forms
from contracts.forms import grades, preferred, rated
from counterfoil.benchmarks.answers import Scores
from counterfoil.benchmarks.forms import Gallery
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.evaluation.rank_correlation import perfect, rank_correlation
from counterfoil.metrics.weighted_correlation import MEASURES
from counterfoil.stats.bootstrap import cluster_draws
from evaluation.made_runs import correlations, evaluated, gallery_items, run
from refusals import refuses


def by_hand(benchmark, values, copies):
    """A measure where each query stands as often as `copies` says: directions, then parts, then queries."""
    questions = benchmark.questions
    gallery = isinstance(questions, Gallery)
    directions = questions.directions if gallery else np.zeros(len(values), int)
    parts = questions.query_parts if gallery else np.zeros(len(values), int)
    of_directions = []
    for direction in (0, 1):
        means = []
        for part in range(int(parts.max()) + 1):
            rows = np.flatnonzero((directions == direction) & (parts == part) & ~np.isnan(values))
            written_out = np.repeat(values[rows], copies[rows])
            if len(written_out):
                means.append(written_out.mean())
        if means:
            of_directions.append(np.mean(means))
    return float(np.mean(of_directions))


def test_values_and_intervals_equal_those_of_draws_written_out(mixed):
    draws, seed = 12, 3
    result = rank_correlation(mixed, draws=draws, seed=seed)
    assert [c.name for c in result.columns] == [
        "whole:i2t_map_at_r", "whole:t2i_map_at_r", "whole:mean_map_at_r", "whole:mean_recall_at_1",
        "some:i2t_map_at_r", "some:t2i_map_at_r", "some:mean_map_at_r",
        "toy:i2t", "toy:t2i", "toy:group",
    ]  # fmt: skip
    by_name = {(r.benchmark.name, r.name): r for r in mixed}
    # Families: the galleries (numbered by the later of them) have twelve images; quads share images in twos.
    streams = np.random.SeedSequence(seed).generate_state(3).tolist()
    of_images = np.concatenate(list(cluster_draws(12, draws, seed=streams[1]))).astype(int)
    of_quads = np.concatenate(list(cluster_draws(5, draws, seed=streams[2]))).astype(int)
    of_models = np.concatenate(list(cluster_draws(5, draws, seed=seed))).astype(int)

    def value(column, model, draw):
        c = result.columns[column]
        r = by_name[c.benchmark, model]
        if c.benchmark == "toy":
            copies = np.ones(9, int) if draw is None else of_quads[draw][np.arange(9) // 2]
        else:
            owners = [int(name.split("/")[1].split("_")[0]) - 100 for name in r.benchmark.questions.ids]
            copies = np.ones(len(owners), int) if draw is None else of_images[draw][owners]
        return by_hand(r.benchmark, r.items[c.measure], copies)

    expected = np.array([[value(c, m, None) for c in range(10)] for m in result.models])
    np.testing.assert_allclose(result.values, expected, atol=1e-12)
    drawn = np.array([[[value(c, m, d) for c in range(10)] for m in result.models] for d in range(draws)])
    assert len(result.pairs) == 45
    for pair in result.pairs:
        a, b = (next(i for i, c in enumerate(result.columns) if c.name == name) for name in (pair.a, pair.b))
        assert pair.models == 5
        assert pair.tau == pytest.approx(kendalltau(expected[:, a], expected[:, b]).statistic, abs=1e-12)
        assert pair.rho == pytest.approx(spearmanr(expected[:, a], expected[:, b]).statistic, abs=1e-12)
        taus, rhos = [], []
        for d in range(draws):
            # The measures of whole numbers tie exactly; rounding must not order them.
            x, y = (np.repeat(drawn[d, :, c], of_models[d]).round(12) for c in (a, b))
            if np.ptp(x) and np.ptp(y):
                tau, rho, _ = correlations(x, y)
                taus.append(tau)
                rhos.append(rho)
        assert pair.tau_low == pytest.approx(min(np.quantile(taus, 0.025), perfect(5)), abs=1e-9)
        assert pair.tau_high == pytest.approx(max(np.quantile(taus, 0.975), -perfect(5)), abs=1e-9)
        least = 6 / np.pi * np.arcsin(np.sin(np.pi * perfect(5) / 2) / 2)
        assert pair.rho_low == pytest.approx(min(np.quantile(rhos, 0.025), least), abs=1e-9)
        assert pair.rho_high == pytest.approx(max(np.quantile(rhos, 0.975), -least), abs=1e-9)


def test_copies_of_one_column_agree_exactly_but_not_beyond_doubt():
    # CxC's R@1 orders models as COCO 5K's does (ECCV Caption section 4.2): each draw agrees with itself.
    world = forms.gallery("g", range(40))
    runs = []
    for number in range(6):
        values = (np.random.default_rng(number).random(120) < 0.2 + 0.1 * number).astype(float)
        runs.append(run(world, f"m{number}", {"mean_recall_at_1": values, "mean_recall_at_2": values}))
    (pair,) = rank_correlation(runs, draws=200).pairs
    assert (pair.tau, pair.tau_high, pair.rho) == (1, 1, 1)
    # 6! = 720 orders: p ** log2(720) = 0.025 for p = exp(log(0.025) / 9.4918) = 0.678, and tau = 2 p - 1.
    assert pair.tau_low == pytest.approx(0.3560, abs=1e-4)
    assert pair.sure


def test_common_images_move_together():
    """Two galleries of the same images and values are one column twice, in every draw."""
    first, second = forms.gallery("first", range(30)), forms.gallery("second", range(30))
    apart = forms.gallery("apart", range(100, 130))
    rng = np.random.default_rng(0)
    runs = []
    for number in range(8):
        values = rng.random(90) * 0.9 + 0.01 * number
        runs += [run(world, f"m{number}", {"mean_recall_at_1": values}) for world in (first, second, apart)]
    shared, other, _ = rank_correlation(runs, draws=100).pairs
    # With the same draws only whole agreement is possible; with draws of their own, luck differs.
    assert (shared.tau, shared.tau_low) == (1, pytest.approx(perfect(8)))
    assert other.tau == 1
    assert other.tau_low < perfect(8) - 0.1


def test_models_missing_on_a_benchmark(quads, choices):
    pairs, options = quads(8), choices({"add": 8})
    rng = np.random.default_rng(0)
    names = ("a", "b", "c", "d")
    on_pairs = [run(pairs, name, {"i2t": rng.random(8), "group": rng.random(8)}) for name in names]
    on_options = [run(options, name, {"accuracy": rng.random(8)}) for name in ("d", "b", "e", "a")]
    result = rank_correlation([*on_pairs, *on_options], draws=50)
    assert result.models == ("a", "b", "c", "d", "e")
    i2t, group, accuracy = "toy:i2t", "toy:group", "toy-choice:accuracy"
    expected = [(i2t, group, 4), (i2t, accuracy, 3), (group, accuracy, 3)]
    assert [(p.a, p.b, p.models) for p in result.pairs] == expected
    assert np.isnan(result.values[2, 2])
    assert np.isnan(result.values[4, :2]).all()
    x, y = result.values[[0, 1, 3]][:, [1, 2]].T
    assert result.pairs[2].tau == pytest.approx(kendalltau(x, y).statistic)
    # Two models in common: both columns stay, their agreement is not defined.
    fewer = rank_correlation([*on_pairs, *on_options[1:]], draws=50)
    assert [(p.a, p.b) for p in fewer.pairs] == [("toy:i2t", "toy:group")]
    assert fewer.pair(fewer.columns[0], fewer.columns[2]) is None
    # A column of two models goes.
    assert rank_correlation([*on_pairs, *on_options[2:]], draws=50).few == ("toy-choice:accuracy",)
    # A model that lacks one of the measures lacks that column alone.
    on_pairs[0] = run(pairs, "a", {"group": rng.random(8)})
    part = rank_correlation(on_pairs, draws=50)
    assert np.isnan(part.values[0]).tolist() == [True, False]
    assert part.pairs[0].models == 3


def test_what_cannot_be_correlated_is_refused(quads, choices):
    values = np.linspace(0, 1, 8)
    a, b, c = (run(quads(8), name, {"i2t": values, "group": values}) for name in "abc")
    other = run(choices({"add": 8}), "d", {"accuracy": values})
    with pytest.raises(InputError, match=r"too few models to correlate their order; given: a, b; allowed: 3"):
        rank_correlation([a, b])
    with pytest.raises(InputError, match=r"fewer than two columns .*; given: toy: a, b; toy-choice: d"):
        rank_correlation([a, b, other])
    with pytest.raises(InputError, match=r"fewer than two columns .*; choose more measures"):
        rank_correlation([a, b, c], measures=["group"])
    refuses("two runs on toy have one name; given: a", rank_correlation, [a, a, b, c], error=InputError)
    with pytest.raises(InputError, match="ask different questions"):
        rank_correlation([a, b, run(quads(9), "c", {"i2t": np.ones(9)})])
    with pytest.raises(InputError, match="count ties differently"):
        rank_correlation([a, b, run(quads(8), "c", {"i2t": values}, ties="half")])
    hole = np.where(np.arange(8) == 5, np.nan, values)
    with pytest.raises(InputError, match=r"values for different queries; given: '[abc]' differs at '5'"):
        rank_correlation([a, b, run(quads(8), "c", {"i2t": hole, "group": values})])


def test_a_measure_that_does_not_tell_models_apart_is_undefined(quads):
    runs = [run(quads(6), n, {"i2t": np.ones(6), "group": np.eye(6)[i]}) for i, n in enumerate("abcd")]
    (pair,) = rank_correlation(runs, draws=20).pairs
    assert np.isnan([pair.tau, pair.tau_low, pair.rho]).all()
    assert not pair.sure
    assert rank_correlation(runs, draws=20).to_json()["pairs"][0]["tau"] is None


def test_perfect_agreement_says_more_the_more_models_there_are():
    ends = [perfect(m) for m in range(3, 40)]
    assert all(a < b for a, b in pairwise(ends))
    # At 5 models one order in 120 agrees by luck, less than the tail; at 4 one in 24, more.
    assert ends[1] < 0 < ends[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("models", "questions", "repetitions", "least", "most"),
    [
        # Of three or four models nothing can be said.
        (3, 40, 500, 1.0, 1.0),
        (4, 40, 500, 1.0, 1.0),
        # Few questions are noise that is drawn twice: too wide, the lesser fault.
        (6, 40, 1000, 0.95, 1.0),
        (10, 40, 1000, 0.95, 1.0),
        # Four standard deviations of a proportion of 0.95 over 400 repetitions are 0.044.
        (20, 1000, 400, 0.95 - 0.044, 0.95 + 0.044),
    ],
)
def test_intervals_of_independent_columns_cover_0(
    quads, choices, models, questions, repetitions, least, most
):
    """Skills on two benchmarks that have nothing to do with each other."""
    worlds, covered = (quads(questions), choices({"add": questions})), 0
    for repetition in range(repetitions):
        rng = np.random.default_rng(repetition)
        runs = []
        for number in range(models):
            for world, measure in zip(worlds, ("i2t", "accuracy"), strict=True):
                values = (rng.random(questions) < rng.uniform(0.2, 0.9)).astype(float)
                runs.append(run(world, str(number), {measure: values}))
        (pair,) = rank_correlation(runs, measures=["i2t", "accuracy"], draws=200, seed=repetition).pairs
        covered += not pair.sure
    assert least <= covered / repetitions <= most


def test_metrics_are_ordered_by_their_correlations_with_ratings():
    """Ratings beside preferences; in every draw the correlation is that of the captions written out."""
    rng = np.random.default_rng(0)
    ratings = grades(60)
    benchmark, votes = rated(ratings, per_image=3), rng.integers(0, 9, (40, 2)).astype(float)
    pairs = preferred(votes)
    runs, scores = [], {}
    for name, noise in (("a", 0.2), ("b", 1.0), ("c", 3.0), ("constant", None)):
        values = np.zeros(60) if noise is None else np.round(ratings[:, 0] + noise * rng.normal(size=60), 1)
        of_pairs = np.zeros((40, 2)) if noise is None else votes + 3 * noise * rng.normal(size=(40, 2))
        scores[name] = values
        runs += [evaluated(name, benchmark, Scores(values)), evaluated(name, pairs, Scores(of_pairs))]
    draws, seed = 20, 2
    result = rank_correlation(runs, measures=("kendall_tau_b", "accuracy"), draws=draws, seed=seed)
    assert [c.name for c in result.columns] == ["toy-rated:kendall_tau_b", "toy-preference:accuracy"]
    taus = [kendalltau(scores[m], ratings[:, 0]).statistic for m in "abc"]
    assert result.values[:3, 0] == pytest.approx(taus)
    # A model that says the same of everything has no correlation, and is not ordered by it.
    assert np.isnan(result.values[3, 0])
    assert result.pairs[0].models == 3
    assert {c.measure for c in rank_correlation(runs, draws=5).columns} == {*MEASURES, "accuracy"}
    families = np.random.SeedSequence(seed).generate_state(3).tolist()
    of_images = np.concatenate(list(cluster_draws(20, draws, seed=families[0]))).astype(int)
    of_questions = np.concatenate(list(cluster_draws(20, draws, seed=families[1]))).astype(int)
    of_models = np.concatenate(list(cluster_draws(4, draws, seed=seed))).astype(int)
    taus = []
    by_name = {(r.benchmark.name, r.name): r for r in runs}
    for draw in range(draws):
        rows = np.repeat(np.arange(60), of_images[draw][np.arange(60) // 3])
        asked = np.repeat(np.arange(40), of_questions[draw][np.arange(40) // 2])
        first, second = [], []
        for k, model in enumerate("abc"):
            first += [correlations(scores[model][rows], ratings[rows, 0])[0]] * of_models[draw][k]
            second += [by_name["toy-preference", model].items["accuracy"][asked].mean()] * of_models[draw][k]
        tau = kendalltau(np.round(first, 12), np.round(second, 12)).statistic if len(first) > 1 else np.nan
        taus.append(tau)
    defined = np.array(taus)[~np.isnan(taus)]
    least = perfect(3)
    low, high = np.quantile(defined, [0.025, 0.975])
    assert result.pairs[0].tau_low == pytest.approx(min(low, least))
    assert result.pairs[0].tau_high == pytest.approx(max(high, -least))


def test_columns_can_be_chosen(mixed):
    def names(*measures):
        return [c.name for c in rank_correlation(mixed, measures=measures, draws=10).columns]

    assert names("map_at_r") == ["whole:mean_map_at_r", "some:mean_map_at_r"]
    assert names("some:i2t_recall_at_1", "toy:group") == ["some:i2t_recall_at_1", "toy:group"]
    assert names("toy:*2*") == ["toy:i2t", "toy:t2i"]
    with pytest.raises(UnknownNameError, match=r"toy: unknown measure; given: grup; allowed: .*'group'"):
        names("toy:grup")
    with pytest.raises(UnknownNameError, match="measure 'ecc:map_at_r': unknown benchmark; given: ecc"):
        names("ecc:map_at_r")


def test_a_gallery_of_one_direction_has_the_measures_of_that_direction():
    both = forms.gallery("g", range(30), measures=("map_at_r", "recall_at_1"))
    rows = np.arange(30)
    runs = []
    for number in range(4):
        items = gallery_items(both, np.random.default_rng(number), 0.4 + 0.1 * number)
        kept = {name: values[rows] for name, values in items.items() if name.startswith("i2t_")}
        runs.append(run(both.select(rows), f"m{number}", kept))
    assert len(runs[0].benchmark.gallery.t2i) == 0
    result = rank_correlation(runs, draws=10)
    assert [c.measure for c in result.columns] == ["i2t_map_at_r", "i2t_recall_at_1"]
    assert result.values[2, 1] == pytest.approx(np.nanmean(runs[2].items["i2t_recall_at_1"]))
    chosen = rank_correlation(runs, measures=["recall_at_1", "map_at_r"], draws=10)
    assert [c.measure for c in chosen.columns] == ["i2t_recall_at_1", "i2t_map_at_r"]
