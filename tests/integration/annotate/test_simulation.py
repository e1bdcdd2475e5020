"""Whole campaigns by simulated people: what was planned comes out, in a database of their own."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from counterfoil.annotate import simulation
from counterfoil.annotate.agreement import fields_of
from counterfoil.annotate.campaign import DATABASE, Campaign, CampaignRecipe, create_folder
from counterfoil.annotate.forms.base import WorkItem
from counterfoil.annotate.labels import label_outcomes
from counterfoil.annotate.simulation import SimulatedPerson, Simulation, crowd, simulate
from counterfoil.jobs.annotate_plan import annotate_simulate
from http_people import HttpClient

ABLE = SimulatedPerson("able", accuracy=0.9, seconds=4.0)


def campaign(folder: Path, n: int = 30, truth: bool = True, **recipe: object) -> Campaign:
    """Pairs to judge, half of them right, with four golden ones and four for a test."""
    items = []
    for at in range(n):
        right = ("yes", "no")[at % 2] if truth else ""
        items.append(WorkItem(str(at), {"image": "a.png", "caption": f"c{at}"}, truth=right))
    for role in ("golden", "onboarding"):
        for at in range(4):
            cells, golden = {"image": "a.png", "caption": f"k{at}"}, {"match": [("yes", "no")[at % 2]]}
            items.append(WorkItem(f"{role}{at}", cells, role, golden))  # type: ignore[arg-type]
    made = CampaignRecipe(form="yes-no", title="Pairs", **recipe)  # type: ignore[arg-type]
    # The salt orders items and people: with one of its own, each run of a test is another campaign.
    return create_folder(folder, made, items, {"a.png": b"image"}, salt="0" * 64)


def answers(found: Simulation) -> list[tuple[str, str, str]]:
    """Item, person and answer of the work that counts, in the order in which it came."""
    rows = found.judgements.to_pylist()
    return [(r["item"], r["person"], r["answer"]) for r in rows if r["role"] == "work" and r["counted"]]


@pytest.mark.parametrize(
    "recipe",
    [{}, {"golden_share": 0.2}, {"design": "blocks", "per_person": 10, "golden_per_block": 2}],
    ids=["queue", "golden", "blocks"],
)
def test_every_item_gets_its_answers_by_different_people(tmp_path, recipe):
    found = simulate(campaign(tmp_path / "c", **recipe), [replace(ABLE, name=f"p{at}") for at in range(16)])
    rows = answers(found)
    assert set(Counter(item for item, _, _ in rows).values()) == {3}
    assert len({(item, person) for item, person, _ in rows}) == len(rows) == 90
    assert found.counts.wanted == found.counts.leased == 0
    assert found.drawn == 0
    golden = [row for row in found.judgements.to_pylist() if row["role"] == "golden"]
    assert bool(golden) == bool(recipe)


def test_equal_seeds_give_equal_answers_and_other_seeds_others(tmp_path):
    made = campaign(tmp_path / "c")
    people = [replace(ABLE, name=f"p{at}") for at in range(6)]
    first, again, other = (simulate(made, people, seed=seed) for seed in (1, 1, 2))
    assert first.judgements.equals(again.judgements)
    assert answers(first) != answers(other)


def test_truths_that_are_not_known_are_drawn(tmp_path):
    found = simulate(campaign(tmp_path / "c", truth=False), [replace(ABLE, name=f"p{at}") for at in range(4)])
    assert found.drawn == 30
    assert set(found.truth.values()) == {"yes", "no"}


def test_over_http_the_same_people_give_the_same_answers(tmp_path, monkeypatch):
    made = campaign(tmp_path / "c", 20, onboarding=4, golden_share=0.2)
    people = crowd({"able": 0.7, "careless": 0.3}, 8, seconds=4.0)
    direct = simulate(made, people)
    monkeypatch.setattr(simulation, "CampaignClient", HttpClient)
    http = simulate(made, people)
    assert len(direct.judgements) > 60
    assert direct.judgements.equals(http.judgements)
    assert direct.states == http.states


def test_what_came_out_is_within_what_was_promised(tmp_path):
    made = campaign(tmp_path / "c", 100, golden_share=0.1)
    found = annotate_simulate(made.folder, people=8, accuracy=0.9)
    for promised, came in found.estimates.values():
        assert promised is not None
        assert came is not None
        assert promised.low <= came.value <= promised.high
    assert len(found.estimates) == 3
    hours, pay = found.hours, found.pay
    # Golden items are worked on and paid, too: the four that there are, by each of the eight.
    assert hours[0] == pytest.approx((100 * 3 + 4 * 8) * 4.0 / 3600)
    assert pay[1] == pytest.approx(pay[0], rel=0.02)
    assert hours[1] == pytest.approx(hours[0], rel=0.1)
    assert found.kinds[0].right == pytest.approx(0.9, abs=0.04)
    assert not (made.folder / DATABASE).exists()


def test_people_who_guess_are_found_and_weigh_less(tmp_path):
    made = campaign(tmp_path / "c", 200, golden_share=0.1)
    found = annotate_simulate(made.folder, people=20, mix={"able": 0.8, "careless": 0.2})
    kinds = {each.kind: each for each in found.kinds}
    assert kinds["careless"].flagged >= 3
    assert kinds["able"].flagged == 0
    right = {each.model: each.right for each in found.labels}
    assert right["one accuracy per person"] > right["majority"]
    promised, came = found.estimates["items whose label is right"]
    assert promised is not None
    assert came is not None
    # Who guesses is fast, and gives more than their share of a queue's answers.
    assert came.value < promised.value
    assert found.to_arrow(by="kind").column("people").to_pylist() == [16, 4]


def test_chances_of_labels_hold_where_people_err_as_the_model_says(tmp_path):
    made = campaign(tmp_path / "c", 150)
    people = [replace(ABLE, name=f"p{at}", accuracy=0.7 + 0.025 * at) for at in range(10)]
    found = simulate(made, people, seed=1)
    by_model = {
        each.model: each for each in label_outcomes(found.judgements, fields_of(made)["match"], found.truth)
    }
    assert by_model["one accuracy per person"].calibrated
    assert by_model["majority"].calibrated is None


def test_people_who_guess_get_labels_no_better_than_chance(tmp_path):
    found = annotate_simulate(campaign(tmp_path / "c", 100).folder, people=9, mix={"careless": 1.0})
    assert found.labels[0].low < 0.5 < found.labels[0].high
    assert not found.to_json()["calibrated"]["Dawid-Skene"]
