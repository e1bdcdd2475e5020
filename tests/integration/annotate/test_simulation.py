"""Whole campaigns by simulated people: what was planned comes out, in a database of their own."""

from dataclasses import replace

import pytest

from annotate.small_campaigns import make, pairs
from counterfoil.annotate import simulation
from counterfoil.annotate.agreement import fields_of
from counterfoil.annotate.campaign import DATABASE
from counterfoil.annotate.labels import label_outcomes
from counterfoil.annotate.simulation import SimulatedPerson, crowd, simulate
from counterfoil.jobs.annotate_simulate import annotate_simulate
from http_people import HttpClient

ABLE = SimulatedPerson("able", accuracy=0.9, seconds=4.0)


def campaign(folder, n, truth=True, **recipe):
    """Pairs to judge, half of them right, with four golden ones and four for a test."""
    items = pairs(n, golden=4, onboarding=4)
    if truth:
        items[:n] = [replace(item, truth=("yes", "no")[i % 2]) for i, item in enumerate(items[:n])]
    return make(folder, items, **recipe)


def able(n):
    return [replace(ABLE, name=f"p{i}") for i in range(n)]


def test_equal_seeds_give_equal_answers_and_other_seeds_others(tmp_path):
    made = campaign(tmp_path / "c", 10)
    first, again, other = (simulate(made, able(6), seed=seed) for seed in (1, 1, 2))
    assert first.judgements.equals(again.judgements)
    assert first.judgements["answer"] != other.judgements["answer"]
    assert first.drawn == first.counts.wanted == first.counts.leased == 0
    # Truths that are not known are drawn.
    unknown = simulate(campaign(tmp_path / "d", 10, truth=False), able(4))
    assert (unknown.drawn, set(unknown.truth.values())) == (10, {"yes", "no"})


def test_over_http_the_same_people_give_the_same_answers(tmp_path, monkeypatch):
    made = campaign(tmp_path / "c", 12, onboarding=4, golden_share=0.2)
    people = crowd({"able": 0.7, "careless": 0.3}, 6, seconds=4.0)
    direct = simulate(made, people)
    monkeypatch.setattr(simulation, "CampaignClient", HttpClient)
    http = simulate(made, people)
    assert len(direct.judgements) > 40
    assert direct.judgements.equals(http.judgements)
    assert direct.states == http.states


def test_hours_and_pay_are_those_of_the_budget_and_labels_those_of_able_people(tmp_path):
    made = campaign(tmp_path / "c", 100, golden_share=0.1)
    result = annotate_simulate(made.folder, people=8, accuracy=0.9)
    # Of three answers that are right in 90 % two or three are.
    majority = result.labels[0]
    assert majority.low < 0.9**3 + 3 * 0.9**2 * 0.1 < majority.high
    # Golden items are worked on and paid, too: the four that there are, by each of the eight.
    assert result.hours[0] == pytest.approx((100 * 3 + 4 * 8) * 4.0 / 3600)
    for (planned, came), within in ((result.hours, 0.1), (result.pay, 0.02)):
        assert came == pytest.approx(planned, rel=within)
    assert result.kinds[0].right == pytest.approx(0.9, abs=0.04)
    assert not (made.folder / DATABASE).exists()


def test_people_who_guess_are_found_and_weigh_less(tmp_path):
    made = campaign(tmp_path / "c", 200, golden_share=0.1)
    result = annotate_simulate(made.folder, people=20, mix={"able": 0.8, "careless": 0.2})
    kinds = {item.kind: item for item in result.kinds}
    assert kinds["careless"].flagged >= 3
    assert kinds["able"].flagged == 0
    right = {item.model: item.right for item in result.labels}
    assert right["one-coin"] > right["majority"]
    # Of three answers by 80 % able people and 20 % who guess: each is right in 86 %. Who guesses is fast, and
    # gives more than their share of a queue's answers.
    assert right["majority"] < 0.86**3 + 3 * 0.86**2 * 0.14
    assert result.to_arrow(by="kind").column("people").to_pylist() == [16, 4]


def test_chances_of_labels_hold_where_people_err_as_the_model_says(tmp_path):
    made = campaign(tmp_path / "c", 150)
    people = [replace(person, accuracy=0.7 + 0.025 * i) for i, person in enumerate(able(10))]
    result = simulate(made, people, seed=1)
    outcomes = label_outcomes(result.judgements, fields_of(made)["match"], result.truth)
    by_model = {item.model: item for item in outcomes}
    assert by_model["one-coin"].calibrated
    assert by_model["majority"].calibrated is None


def test_people_who_guess_get_labels_no_better_than_chance(tmp_path):
    result = annotate_simulate(campaign(tmp_path / "c", 50).folder, people=9, mix={"careless": 1.0})
    assert result.labels[0].low < 0.5 < result.labels[0].high
    assert not result.to_json()["calibrated"]["dawid-skene"]
