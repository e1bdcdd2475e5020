"""Claims about caption metrics: which numbers decide them, and which way round."""

from dataclasses import replace

import numpy as np
import pytest

from counterfoil.benchmarks.answers import Scores
from counterfoil.benchmarks.forms import Preference, Rated
from counterfoil.evaluation.compare import compare
from counterfoil.evaluation.findings import CLAIMS, Claim, caption_findings, measure_of, verdict
from counterfoil.world.benchmarks import clips
from counterfoil.world.ratings import preferences, rated
from evaluation.made_runs import evaluated

SURE = Claim("sure", "The oracle knows more than luck does.", "clip-s", "cider")


def truth(benchmark):
    questions = benchmark.judged
    if isinstance(questions, Preference):
        return np.eye(2)[questions.label]
    assert isinstance(questions, Rated)
    return questions.ratings[:, 0]


def comparison(benchmark, names, *, seed=0):
    """Two runs: the truth under the first name, luck under the second."""
    luck = np.random.default_rng(seed).normal(size=truth(benchmark).shape)
    both = zip(names, (truth(benchmark), luck), strict=True)
    return compare([evaluated(name, benchmark, Scores(values)) for name, values in both])[0]


@pytest.fixture(scope="module")
def three():
    return (
        comparison(rated(48, size=32, lazy=True), ("clip-s", "cider")),
        comparison(preferences(48, size=48, lazy=True), ("clip-s", "cider")),
        comparison(clips(15, size=32), ("em-score", "cider")),
    )


def test_a_claim_is_decided_on_pictures_and_reported_for_clips(three):
    (found,) = caption_findings(three, [SURE])
    assert found.verdict == verdict(found.evidence) == "holds"
    assert [(each.measure, each.decides) for each in found.differences] == [
        ("kendall_tau_b", True),
        ("accuracy", True),
        ("kendall_tau_b", False),
    ]
    for each, of in zip(found.differences, three, strict=True):
        values = [run.result.measures[measure_of(of)].value for run in of.runs]
        assert each.value == pytest.approx(values[0] - values[1])
    assert [each.value for each in found.levels if each.label == "clip-s"] == [1.0, 1.0]
    assert "On clips, em-score differs from cider by" in found.sentence


def test_the_other_way_round_it_does_not_hold(three):
    (found,) = caption_findings(three, [replace(SURE, ahead="cider", behind="clip-s")])
    assert found.verdict == "does not hold"
    (upright,) = caption_findings(three, [SURE])
    turned, known = found.differences[0], upright.differences[0]
    assert (turned.value, turned.low, turned.high) == (-known.value, -known.high, -known.low)
    assert turned.label == "cider − clip-s (tau-b)"


def test_luck_against_luck_is_undecided():
    benchmark = rated(48, size=48, lazy=True)
    luck = [
        comparison(benchmark, ("truth", name), seed=k).runs[1] for k, name in enumerate(("clip-s", "cider"))
    ]
    (found,) = caption_findings(compare(luck), [SURE])
    assert found.verdict == "undecided"


def test_claims_without_their_runs_are_left_out(three):
    assert [each.key for each in caption_findings(three)] == [CLAIMS[0].key]
    assert caption_findings(three[2:], [SURE]) == ()
