"""Winoground's human row by simulated people: both rules are kept, and intervals have the truth."""

import numpy as np
import pytest

from counterfoil.studies.crowd_scores import CrowdScores, coverage, crowd_scores, drawn_chances
from counterfoil.studies.stopping_rule import Rule, expected_scores


@pytest.mark.parametrize("rule", ["first", "fixed"])
def test_a_pair_gets_as_many_answers_as_the_rule_says(rule: Rule) -> None:
    found = crowd_scores(rule, 6, votes=3, careless=0.3)
    assert found.lacking == 0
    assert found.stopped == 1
    assert (found.votes == 3) == (rule == "fixed")
    assert 3 <= found.votes < 5
    out, came = found.out["careless"]
    # Of people who guess one in a hundred has no two errors among ten.
    assert out >= came - 1
    assert found.out["able"][0] <= 1
    for row in found.rows:
        assert row.low <= row.value <= row.high
    assert found.rows[2].value <= min(found.rows[0].value, found.rows[1].value)


def test_intervals_have_what_such_answers_come_to() -> None:
    # Three standard errors of 400 at 95 % are 3.3 points; Wilson's interval is a little wide for high shares.
    for rule in ("first", "fixed"):
        found = coverage(rule, repeats=400)
        assert all(such >= 0.917 for such, _ in found.values())
        # Ten answers come to less than endlessly many: of the image score that shows.
        assert found["image"][1] < found["image"][0]


def test_expected_scores_are_those_of_the_campaigns_people() -> None:
    p = drawn_chances(3000, np.random.default_rng(0))
    assert p[:, 0, 0].mean() == pytest.approx(0.87, abs=0.01)
    assert p[:, 0, 1].mean() == pytest.approx(0.32, abs=0.01)
    first, fixed, endless = (expected_scores(p, rule) for rule in ("first", "fixed", None))
    assert fixed.group < first.group < endless.group


@pytest.mark.slow
def test_the_rows_of_a_whole_campaign_cover_what_is_to_be_expected() -> None:
    found: CrowdScores = crowd_scores("first")
    for row in found.rows:
        assert row.low <= getattr(found.expected, row.name) <= row.high
    assert found.votes == pytest.approx(found.expected.votes, abs=0.3)
