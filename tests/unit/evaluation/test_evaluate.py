"""From answers to numbers."""

import numpy as np
import pytest

from counterfoil.benchmarks import Outcomes, Scores
from counterfoil.errors import ScoreError, UnknownNameError
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.intervals import IntervalMethod
from counterfoil.metrics.ties import Ties
from counterfoil.stats.intervals import wilson
from refusals import refuses


def test_independent_questions_get_wilson_intervals(quads):
    benchmark = quads(20)
    rng = np.random.default_rng(1)
    result = evaluate(benchmark, Scores(rng.normal(size=(20, 2, 2))), scorer="random")
    estimate = result.measures["i2t"]
    assert result.provenance["interval"]["method"] == "wilson"
    assert (estimate.low, estimate.high) == wilson(estimate.value * 20, 20)


def test_outcomes_leave_out_what_needs_scores(quads):
    right = Outcomes({name: np.ones(4, dtype=bool) for name in ("ipos2t", "ineg2t", "tpos2i", "tneg2i")})
    result = evaluate(quads(4), right, scorer="s")
    assert "group_match" not in result.measures
    assert result.ties["rate"] is None


def test_ties_say_what_the_other_policies_would_give(quads):
    scores = np.tile(np.eye(2), (4, 1, 1))
    scores[0, 1, 0] = 1.0  # caption 1 with image 0 ties with both true pairs
    ties = evaluate(quads(4), Scores(scores), scorer="s").ties
    assert ties["questions"] == 1
    assert ties["measures"]["strict"]["group"] == 3 / 4
    assert ties["measures"]["optimistic"]["group"] == 1.0
    # Two true pairs and one false one at the same level: the false one is last in a third of the orders.
    assert ties["measures"]["half"]["group"] == pytest.approx((3 + 1 / 3) / 4)


@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_no_number_names_its_question(quads, broken):
    scores = np.zeros((5, 2, 2))
    scores[3, 0, 1] = broken
    with pytest.raises(ScoreError, match=r"question '3', position \(0, 1\): score is not a finite number"):
        evaluate(quads(5), Scores(scores), scorer="s")


def test_wrong_shapes_and_unknown_measures_are_errors(quads):
    refuses("wrong shape", evaluate, quads(5), Scores(np.zeros((4, 2, 2))), error=ScoreError, scorer="s")
    with pytest.raises(UnknownNameError, match="did you mean 'group'"):
        evaluate(quads(5), Scores(np.zeros((5, 2, 2))), scorer="s", measures=["grup"])


def test_policies_and_intervals_may_be_named_by_strings(quads):
    """A constant scorer: 0, chance and 1 by policy, whether it is named by a member or by its name."""
    world = quads(20)
    flat = Scores(np.zeros((20, 2, 2)))
    for name, value in (("strict", 0.0), ("half", 1 / 6), ("optimistic", 1.0)):
        by_name = evaluate(world, flat, scorer="flat", ties=name, interval="wilson", draws=100)
        by_member = evaluate(
            world, flat, scorer="flat", ties=Ties(name), interval=IntervalMethod.WILSON, draws=100
        )
        assert by_name.measures["group"].value == pytest.approx(value)
        assert by_name == by_member
    with pytest.raises(UnknownNameError, match="unknown policy of ties; given: strickt; allowed: half"):
        evaluate(world, flat, scorer="flat", ties="strickt")
    with pytest.raises(UnknownNameError, match="unknown interval; given: exact"):
        evaluate(world, flat, scorer="flat", interval="exact")
