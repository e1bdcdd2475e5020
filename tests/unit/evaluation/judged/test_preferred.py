"""Which of two candidates people preferred: scorers of known answers, ties, draws of references."""

import json

import numpy as np
import pytest

from contracts.forms import preferred
from counterfoil.benchmarks.answers import Outcomes, Scores
from counterfoil.errors import ScoreError
from counterfoil.evaluation.evaluate import chance, evaluate, main_measures, of, per_item
from counterfoil.metrics.contrast import preference_accuracy
from counterfoil.metrics.ties import Ties
from refusals import refuses


def _votes(n, seed=0):
    first = np.random.default_rng(seed).permutation(np.r_[np.zeros(n // 2), np.ones(n - n // 2)])
    return np.stack([first, 1 - first], axis=1) * 7 + 2


def test_an_oracle_and_its_opposite():
    votes = _votes(40)
    benchmark = preferred(votes, groups=4, macro=True)
    result = evaluate(benchmark, Scores(votes / 9), scorer="oracle", draws=200)
    assert {name: e.value for name, e in result.measures.items()} == {"accuracy": 1.0, "accuracy_macro": 1.0}
    assert result.measures["accuracy"].low > 0.8
    assert list(result.groups) == ["HC", "HI", "HM", "MM"]
    assert evaluate(benchmark, Scores(-votes), scorer="no", draws=20).measures["accuracy"].value == 0
    assert main_measures(benchmark) == ("accuracy",)
    assert of(benchmark).measure_names(benchmark) == ("accuracy", "accuracy_macro")
    assert chance(benchmark) == {"accuracy": 0.5, "accuracy_macro": 0.5}
    json.dumps(result.to_json(), allow_nan=False)


def test_ties_by_every_policy_and_by_polos():
    votes = _votes(40)
    benchmark = preferred(votes)
    result = evaluate(benchmark, Scores(np.ones((40, 2))), scorer="blind:constant", draws=20)
    assert result.measures["accuracy"].value == 0
    by_policy = {name: by["accuracy"] for name, by in result.ties["measures"].items()}
    assert by_policy == {"strict": 0.0, "half": 0.5, "optimistic": 1.0}
    # Polos takes the second candidate, which is preferred in half of the questions.
    assert result.ties["second"] == {"accuracy": 0.5}
    assert (result.ties["questions"], result.ties["rate"]) == (40, 1.0)
    half = evaluate(benchmark, Scores(np.ones((40, 2))), scorer="s", ties="half", draws=20)
    assert half.measures["accuracy"].value == 0.5


def test_draws_of_references_are_averaged():
    votes = _votes(12)
    benchmark = preferred(votes, sample=2, draws=3)
    scores = np.random.default_rng(2).integers(0, 3, (12, 2, 3)).astype(float)
    preferred_second = (votes[:, 1] > votes[:, 0]).astype(int)
    expected = preference_accuracy(scores, preferred_second, ties=Ties.HALF)
    np.testing.assert_array_equal(per_item(benchmark, Scores(scores), ties=Ties.HALF)["accuracy"], expected)
    result = evaluate(benchmark, Scores(scores), scorer="s", draws=50)
    assert result.ties["rate"] == pytest.approx((scores[:, 0] == scores[:, 1]).mean())
    assert result.ties["questions"] == (scores[:, 0] == scores[:, 1]).any(axis=1).sum()
    assert result.measures["accuracy"].value == pytest.approx(result.ties["measures"]["strict"]["accuracy"])


def test_intervals_know_that_questions_share_an_image():
    votes = _votes(40)
    scores = Scores(np.random.default_rng(3).normal(size=(40, 2)))
    results = [evaluate(preferred(votes, per_image=k), scores, scorer="s", draws=50) for k in (1, 2)]
    method = [result.provenance["interval"]["method"] for result in results]
    assert method == ["wilson", "clusters"]


def test_right_and_wrong_may_be_given():
    benchmark = preferred(_votes(4), per_image=1)
    result = evaluate(benchmark, Outcomes({"accuracy": np.array([1, 1, 0, 1], bool)}), scorer="s")
    assert result.measures["accuracy"].value == 0.75
    refuses("wrong shape", evaluate, benchmark, Scores(np.ones((4, 3))), error=ScoreError, scorer="s")
    refuses("no outcomes for 'accuracy'", evaluate, benchmark, Outcomes({}), error=ScoreError, scorer="s")
