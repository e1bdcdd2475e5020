"""Votes until one answer has so many: exact chances against simulation, and Winoground's released shares."""

import json
from pathlib import Path

import numpy as np
import pytest

from counterfoil.errors import InputError
from counterfoil.studies.stopping_rule import expected_scores, fitted_chances, share_chances, share_votes
from counterfoil.tasks.annotate_study import annotate_study


def collected(p: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    """Shares of yes of votes that were drawn one by one until an answer had m."""
    yes = rng.random((*p.shape, 2 * m - 1)) < p[..., None]
    ayes, noes = yes.cumsum(-1), (~yes).cumsum(-1)
    last = np.argmax((ayes == m) | (noes == m), axis=-1)
    return np.take_along_axis(ayes, last[..., None], -1)[..., 0] / (last + 1)


@pytest.mark.parametrize("rule", ["first", "fixed"])
def test_chances_of_shares_sum_to_one(rule: str) -> None:
    shares, chances = share_chances(np.array([0.0, 0.2, 0.5, 1.0]), rule, 10)  # type: ignore[arg-type]
    assert chances.sum(axis=-1) == pytest.approx(1)
    assert (np.diff(shares) > 0).all()
    assert chances[0, 0] == chances[-1, -1] == 1


def test_expected_scores_are_those_of_drawn_votes() -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(0.7, 0.7, (40, 2, 2))
    drawn = [expected_scores(collected(p, 4, rng), None) for _ in range(1500)]
    found = expected_scores(p, "first", 4)
    for name in ("text", "image", "group", "tied"):
        mean = np.mean([getattr(each, name) for each in drawn])
        # Forty questions, 1,500 times: three standard errors of a mean of 60,000 are below 0.007.
        assert getattr(found, name) == pytest.approx(mean, abs=0.007)


def test_the_rule_makes_shares_more_extreme_and_a_fixed_number_does_not() -> None:
    p = np.full((1, 2, 2), 0.7)
    assert expected_scores(p, "first").bias > 0.005
    assert expected_scores(p, "fixed").bias == pytest.approx(0, abs=1e-12)
    assert 10 < expected_scores(p, "first").votes < 19


def test_a_share_of_no_votes_is_refused() -> None:
    with pytest.raises(InputError, match=r"no share of votes; given: 0\.123457"):
        share_votes(np.array([0.1234567]))


def test_fitted_chances_are_between_the_share_and_that_of_the_kind() -> None:
    found = share_votes(np.array([1.0] * 30 + [0.0] * 30 + [10 / 19]))
    belongs = np.array([True] * 30 + [False] * 30 + [True])
    p = fitted_chances(found, belongs)
    assert 0.9 < p[0] < 1
    assert 0 < p[30] < 0.1
    assert 10 / 19 < p[-1] < p[0]


def test_what_winoground_released_stops_at_ten(winoground_shares: Path) -> None:
    rows = [json.loads(line) for line in winoground_shares.read_text().splitlines()]
    found = share_votes(np.array([row["score"] for row in rows]))
    assert len(rows) == 1600
    assert int((found.more_frequent == 10).sum()) == 1506
    study = annotate_study("stopping-rule", data=winoground_shares)
    came = {row.name: row.value for row in study.rows}
    assert [came[f"{name}, released"] for name in ("text", "image", "group")] == [0.895, 0.885, 0.855]
    for world in ("chances fitted", "chances as released"):
        first, fixed = (came[f"group, {rule}, {world}"] for rule in ("first to ten", "fixed ten"))
        assert 0.02 < first - fixed < 0.04


@pytest.fixture
def winoground_shares(shared_data: Path) -> Path:
    """The shares that Winoground's authors released of its crowd."""
    path = shared_data / "winoground" / "scores" / "human.jsonl"
    if not path.is_file():
        pytest.skip("Winoground's human scores are not at hand")
    return path
