"""From answers to numbers: what results say of how they came about, and of the length of captions."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from scipy.stats import pearsonr

from contracts import forms
from counterfoil import __version__, catalog
from counterfoil.benchmarks import Outcomes, Scores
from counterfoil.benchmarks.answers import versions
from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.forms import Rated
from counterfoil.benchmarks.readers import specs
from counterfoil.engine.join_scores import join_scores
from counterfoil.engine.session import Session, run
from counterfoil.errors import InputError, ScoreError, UnknownNameError
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.intervals import IntervalMethod
from counterfoil.evaluation.lengths import correlation, length_correlations, mean_words
from counterfoil.evaluation.result import Result, Run
from counterfoil.evaluation.run import load_run, save_run
from counterfoil.metrics.ties import Ties
from counterfoil.models import precomputed
from counterfoil.models.base import Identity, Options, identity_of
from counterfoil.report.comparison_tables import signature_of
from counterfoil.stats.dependence import Dependence
from counterfoil.stats.intervals import wilson
from counterfoil.world import gallery, quads, rated, ratings
from refusals import refuses


def test_independent_questions_get_wilson_intervals(quads):
    result = evaluate(quads(20), Scores(np.random.default_rng(1).normal(size=(20, 2, 2))), model="random")
    estimate = result.measures["i2t"]
    assert result.provenance["interval"]["method"] == "wilson"
    assert (estimate.low, estimate.high) == wilson(estimate.value * 20, 20)


def test_outcomes_leave_out_what_needs_scores_and_have_a_policy_that_is_not_known(quads):
    right = Outcomes({name: np.ones(4, dtype=bool) for name in ("ipos2t", "ineg2t", "tpos2i", "tneg2i")})
    result = evaluate(quads(4), right, model="s")
    assert "group_match" not in result.measures
    assert result.ties["rate"] is None
    benchmark = forms.quads()
    result = evaluate(benchmark, forms.outcomes_of(benchmark, forms.scores_of(benchmark)), model="s")
    assert result.signature("t2i") == f"t2i|ties:as-given|ci:wilson|v{__version__}"
    assert Result("toy", "s", {}).signature("group") == "group"


def test_ties_say_what_the_other_policies_would_give(quads):
    scores = np.tile(np.eye(2), (4, 1, 1))
    scores[0, 1, 0] = 1.0  # caption 1 with image 0 ties with both true pairs
    ties = evaluate(quads(4), Scores(scores), model="s").ties
    assert (ties["questions"], ties["measures"]["strict"]["group"]) == (1, 3 / 4)
    assert ties["measures"]["optimistic"]["group"] == 1.0
    # Two true pairs and one false one at the same level: the false one is last in a third of the orders.
    assert ties["measures"]["half"]["group"] == pytest.approx((3 + 1 / 3) / 4)


@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_no_number_names_its_question(quads, broken):
    scores = np.zeros((5, 2, 2))
    scores[3, 0, 1] = broken
    with pytest.raises(ScoreError, match=r"question '3', position \(0, 1\): score is not a finite number"):
        evaluate(quads(5), Scores(scores), model="s")


def test_wrong_shapes_and_unknown_measures_are_errors(quads):
    refuses("wrong shape", evaluate, quads(5), Scores(np.zeros((4, 2, 2))), error=ScoreError, model="s")
    with pytest.raises(UnknownNameError, match="did you mean 'group'"):
        evaluate(quads(5), Scores(np.zeros((5, 2, 2))), model="s", measures=["grup"])


def test_policies_and_intervals_may_be_named_by_strings(quads):
    """A constant model: 0, chance and 1 by policy, whether it is named by a member or by its name."""
    world = quads(20)
    flat = Scores(np.zeros((20, 2, 2)))
    for name, value in (("strict", 0.0), ("half", 1 / 6), ("optimistic", 1.0)):
        by_name = evaluate(world, flat, model="flat", ties=name, interval="wilson", draws=100)
        by_member = evaluate(
            world, flat, model="flat", ties=Ties(name), interval=IntervalMethod.WILSON, draws=100
        )
        assert by_name.measures["group"].value == pytest.approx(value)
        assert by_name == by_member
    with pytest.raises(UnknownNameError, match="unknown policy of ties; given: strickt; allowed: half"):
        evaluate(world, flat, model="flat", ties="strickt")
    with pytest.raises(UnknownNameError, match="unknown interval; given: exact"):
        evaluate(world, flat, model="flat", interval="exact")


def made(benchmark, *, draws=100, **how):
    scores = forms.scores_of(benchmark)
    return evaluate(benchmark, forms.answers_of(benchmark, scores), model="s", draws=draws, **how)


UNANSWERED = {"benchmark": {"limit": 5, "unanswered": {"questions": 2, "policy": "wrong"}}}
ALONE, OF_TWOS, MANY = forms.quads(), forms.quads(share=2), forms.quads(120, share=2)
CROSSED = {"interval": "crossed", "seed": 3}
PERCENTILES = "ci:bootstrap-percentiles|draws:100|clusters:image|seed:0"
CHOICES, RATED = forms.choices({"add": 6, "swap": 2}), forms.rated(forms.grades(200), per_image=2)


@pytest.mark.parametrize(
    ("benchmark", "how", "measure", "signed"),
    [
        (ALONE, {"ties": "half"}, "group", "ties:half|ci:wilson"),
        (MANY, {"seed": 3}, "group", "ties:strict|ci:clusters|clusters:image"),
        (MANY, {"seed": 3}, "", "ties:strict|ci:clusters|clusters:image"),
        # Crossed intervals draw nothing.
        (OF_TWOS, CROSSED, "group", "ties:strict|ci:crossed|clusters:image+caption"),
        # Means over groups have an interval of their own.
        (CHOICES, {}, "accuracy", "ties:strict|ci:wilson"),
        (CHOICES, {}, "accuracy_macro", "ties:strict|ci:clusters|clusters:question"),
        (CHOICES, {}, "", "ties:strict|ci:wilson|macro-ci:clusters|clusters:question"),
        # Correlations have no policy, and percentiles.
        (RATED, {"interval": "clusters"}, "spearman", PERCENTILES),
        (ALONE, {"provenance": UNANSWERED}, "group", "ties:strict|ci:wilson|limit:5|unanswered:wrong"),
    ],
)
def test_a_signature_has_all_that_a_number_depends_on(benchmark, how, measure, signed):
    result = made(benchmark, **how)
    expected = "|".join([*([measure] if measure else []), signed, f"v{__version__}"])
    assert result.signature(measure) == expected
    assert Result.from_json(result.to_json()).signature(measure) == expected
    assert result.to_json()["signature"] == result.signature()


@pytest.mark.parametrize("measure", ["i2t_recall_at_1", "mean_recall_at_1"])
def test_cut_rankings_are_part_of_it(measure):
    result = made(forms.gallery())
    drawn = f"ties:strict|ci:clusters|clusters:image|v{__version__}"
    assert result.signature(measure) == f"{measure}|{drawn}"
    gallery = {**result.provenance["gallery"], "cut": {"i2t": 3, "t2i": None}}
    cut = replace(result, provenance={**result.provenance, "gallery": gallery})
    assert cut.signature(measure) == f"{measure}|{drawn}".replace("|v", "|cut-i2t:3|v")
    assert cut.signature("t2i_recall_at_1") == f"t2i_recall_at_1|{drawn}"


def test_runs_share_a_line_or_have_one_each():
    benchmark = forms.quads()
    strict, half = (made(benchmark, ties=ties) for ties in ("strict", "half"))

    def run(name, result):
        return Run(name, benchmark, forms.answers_of(benchmark, forms.scores_of(benchmark)), {}, result, {})

    assert signature_of([run("a", strict), run("b", strict)], "group") == strict.signature("group")
    assert signature_of([run("a", strict), run("b", half)], "group") == (
        f"a: {strict.signature('group')}; b: {half.signature('group')}"
    )
    assert signature_of([run("a", strict)], "accuracy") == ""


@dataclass(eq=False)
class Linear:
    """Weighs the mean colour of a picture."""

    weights: np.ndarray
    identity: Identity = field(default_factory=lambda: Identity("linear"))

    def score(self, images, captions):
        means = np.stack([np.asarray(image.decode(), dtype=np.float64).mean((0, 1)) for image in images])
        return means @ self.weights


def test_a_run_saved_from_python_says_how_it_came_about(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["/home/someone/study.py", "--fast"])
    benchmark, model = quads(14, size=32), Linear(np.array([0.1, 0.2, 0.3]))
    answers = run(benchmark, model, session=Session(batch_size=5))
    result = evaluate(benchmark, answers, draws=200, seed=7)
    assert result.model == "linear"
    save_run(tmp_path / "run", benchmark, answers, result)
    manifest = load_run(tmp_path / "run").manifest
    # The weights that its identity does not name are digested.
    assert manifest["model"]["weights"] == identity_of(model).weights != ""
    assert (manifest["model"]["name"], manifest["versions"]) == ("linear", versions())
    assert {"counterfoil", "numpy", "python"} <= set(manifest["versions"])
    assert manifest["command"] == ["study.py", "--fast"]
    assert manifest["benchmark"]["digest"] == benchmark.digest
    assert manifest["benchmark"]["source"] == benchmark.source
    assert (manifest["machine"]["batch_size"], manifest["machine"]["device"]) == (5, "cpu")
    assert manifest["created"].startswith("20")
    assert result.provenance["model"] == manifest["model"]


@pytest.mark.parametrize(
    ("drawn", "model"),
    [
        (lambda: gallery(8, size=32), "pixels:colours"),
        (lambda: rated(8, size=32), "metric:cider"),
        (lambda: quads(7), "blind:random"),
    ],
    ids=("gallery", "rated", "quads"),
)
def test_every_kind_of_answers_is_signed(drawn, model):
    benchmark = drawn()
    result = evaluate(benchmark, run(benchmark, catalog.model(model, Options(seed=3))), draws=100)
    assert result.model == result.provenance["model"]["name"] == model
    assert result.provenance["benchmark"]["name"] == benchmark.name
    assert result.provenance["versions"] == versions()


def test_answers_of_ones_own_say_nothing_of_a_model(tmp_path):
    benchmark = quads(7)
    answers = Scores(np.zeros((7, 2, 2)))
    refuses("do not say which model gave them", evaluate, benchmark, answers, error=InputError)
    result = evaluate(benchmark, answers, model="mine", draws=100)
    assert "model" not in result.provenance
    saved = save_run(tmp_path, benchmark, answers, result, {"note": "by hand"})
    assert (saved.manifest["model"], saved.manifest["note"]) == ({"name": "mine"}, "by hand")


def test_pac_s_through_another_model_says_so(tmp_path):
    from counterfoil.models.captions import embedding
    from counterfoil.models.precomputed_galleries import PrecomputedEmbeddings

    given = PrecomputedEmbeddings(Identity("embeddings:a.npz", weights="a"), np.eye(4), np.eye(4))

    def title(name, **settings):
        options = Options(backbone="embeddings:a.npz", settings=settings)
        return embedding.load(name, options, lambda _: given).title

    assert title("pac-s") == "PAC-S formula through embeddings:a.npz"
    assert title("ref-pac-s") == "RefPAC-S formula through embeddings:a.npz"
    assert title("pac-s", model="pac-s") == title("clip-s") == ""


def alone(n):
    return Dependence(np.arange(n)[:, None], np.arange(n)[:, None])


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
    dependence = Dependence(images[:, None], np.arange(300)[:, None])
    covered = naive = 0
    for _ in range(200):
        lengths = np.round(10 + 3 * rng.standard_normal(60)[images] + rng.standard_normal(300))
        values = ((rng.standard_normal(60)[images] + 0.5 * rng.standard_normal(300)) > 0).astype(float)
        _, low, high, p = correlation(lengths, values, dependence)
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


# The ledger (tests/integration/report/reproduction) has the other models.
@pytest.mark.parametrize(("scores", "printed"), [("human", "0.20"), ("clip", "-0.22")])
def test_table_6_of_winoground(shared_data, tmp_path, scores, printed):
    # Released scores and the tags alone: no captions.
    benchmark = specs.read(card("winoground"), shared_data / "winoground", None)
    given = precomputed.load(str(shared_data / "winoground" / "scores" / f"{scores}.jsonl"))
    answers = join_scores(given, benchmark)
    save_run(tmp_path / "run", benchmark, answers, evaluate(benchmark, answers, model=scores, draws=100))
    run = load_run(tmp_path / "run")
    words = mean_words(run.benchmark, shared_data / "winoground")
    result = {item.measure: item for item in length_correlations(run, words=words)}
    assert f"{result['group'].value:.2f}" == printed
    assert result["group"].low < result["group"].value < result["group"].high
    refuses("captions are not at hand", mean_words, replace(benchmark, path=None))


def test_of_captions_at_hand_the_words_are_counted_in_ratings_and_preferences_too():
    benchmark = quads(12, seed=0)
    words = mean_words(benchmark)
    texts = [[benchmark.captions[i].text.split() for i in row] for row in benchmark.listed.captions]
    assert words.tolist() == [sum(map(len, pair)) / 2 for pair in texts]
    for benchmark in (ratings.rated(12, seed=0), ratings.preferences(12, seed=0)):
        words = mean_words(benchmark)
        assert words.dtype == np.float64
        texts = [len(caption.text.split()) for caption in benchmark.captions]
        of = benchmark.judged
        owners = np.arange(len(of)) if isinstance(of, Rated) else of.owners
        at = [of.captions[owners == k] for k in range(len(of))]
        assert words.tolist() == [sum(texts[j] for j in row) / len(row) for row in at]
