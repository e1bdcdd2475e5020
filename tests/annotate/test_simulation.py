"""Whole campaigns by simulated people: what was planned comes out, in a database of their own."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from counterfoil.annotate.campaign import DATABASE, Campaign, CampaignRecipe, create_folder
from counterfoil.annotate.forms.base import WorkItem
from counterfoil.annotate.simulated_people import KINDS, SimulatedPerson, crowd
from counterfoil.annotate.simulation import Simulation, simulate

ABLE = SimulatedPerson("able", accuracy=0.9, seconds=4.0)


def campaign(folder: Path, n: int = 30, truth: bool = True, **recipe: object) -> Campaign:
    """Pairs to judge, half of them right, with four golden ones and four for a test."""
    items = [
        WorkItem(
            str(at), {"image": "a.png", "caption": f"c{at}"}, truth=("yes", "no")[at % 2] if truth else ""
        )
        for at in range(n)
    ]
    for role in ("golden", "onboarding"):
        items += [
            WorkItem(
                f"{role}{at}",
                {"image": "a.png", "caption": f"k{at}"},
                role,
                {"match": [("yes", "no")[at % 2]]},
            )  # type: ignore[arg-type]
            for at in range(4)
        ]
    made = CampaignRecipe(form="yes-no", title="Pairs", **recipe)  # type: ignore[arg-type]
    return create_folder(folder, made, items, {"a.png": b"image"})


def answers(found: Simulation) -> list[tuple[str, str, str]]:
    """Item, person and answer of the work that counts, in the order in which it came."""
    rows = found.judgements.to_pylist()
    return [(r["item"], r["person"], r["answer"]) for r in rows if r["role"] == "work" and r["counted"]]


@pytest.mark.parametrize(
    "recipe",
    [{}, {"golden_share": 0.2}, {"design": "blocks", "per_person": 10, "golden_per_block": 2}],
    ids=["queue", "golden", "blocks"],
)
def test_every_item_gets_its_answers_by_different_people(tmp_path: Path, recipe: dict[str, object]) -> None:
    found = simulate(campaign(tmp_path / "c", **recipe), [replace(ABLE, name=f"p{at}") for at in range(16)])
    rows = answers(found)
    assert set(Counter(item for item, _, _ in rows).values()) == {3}
    assert len({(item, person) for item, person, _ in rows}) == len(rows) == 90
    assert found.counts.wanted == found.counts.leased == 0
    assert found.drawn == 0
    golden = [row for row in found.judgements.to_pylist() if row["role"] == "golden"]
    assert bool(golden) == bool(recipe)


def test_equal_seeds_give_equal_answers_and_other_seeds_others(tmp_path: Path) -> None:
    made = campaign(tmp_path / "c")
    people = [replace(ABLE, name=f"p{at}") for at in range(6)]
    first, again, other = (simulate(made, people, seed=seed) for seed in (1, 1, 2))
    assert first.judgements.equals(again.judgements)
    assert answers(first) != answers(other)


def test_people_are_right_as_often_as_they_were_made_to_be(tmp_path: Path) -> None:
    found = simulate(
        campaign(tmp_path / "c", 100, overlap=4), [replace(ABLE, name=f"p{at}") for at in range(8)]
    )
    right = np.mean([answer == found.truth[item] for item, _, answer in answers(found)])
    # 400 answers: three standard errors are 0.045.
    assert right == pytest.approx(0.9, abs=0.045)
    assert found.hours_worked == pytest.approx(400 * 4 / 3600, rel=0.1)


def test_the_campaigns_own_database_is_not_made(tmp_path: Path) -> None:
    made = campaign(tmp_path / "c")
    simulate(made, [ABLE])
    assert not (made.folder / DATABASE).exists()


def test_truths_that_are_not_known_are_drawn(tmp_path: Path) -> None:
    found = simulate(campaign(tmp_path / "c", truth=False), [replace(ABLE, name=f"p{at}") for at in range(4)])
    assert found.drawn == 30
    assert set(found.truth.values()) == {"yes", "no"}


def test_who_fails_the_test_does_no_work(tmp_path: Path) -> None:
    wrong = replace(KINDS["adversarial"], name="wrong", accuracy=0.0)
    found = simulate(
        campaign(tmp_path / "c", onboarding=4),
        [wrong, *(replace(ABLE, name=f"p{at}", accuracy=1.0) for at in range(3))],
    )
    states = {found.people[id].name: state for id, state in found.states.items()}
    assert states["wrong"] == "disqualified"
    bad = next(id for id, person in found.people.items() if person.name == "wrong")
    assert bad not in {person for _, person, _ in answers(found)}
    assert all(answer == found.truth[item] for item, _, answer in answers(found))


def test_an_adaptive_campaign_asks_more_of_items_that_are_disputed(tmp_path: Path) -> None:
    made = campaign(tmp_path / "c", 60, design="adaptive", overlap=2, most=7, certainty=0.97)
    found = simulate(made, crowd({"able": 0.7, "hasty": 0.3}, 20))
    per_item = Counter(item for item, _, _ in answers(found))
    split = {item for item in per_item if len({a for i, _, a in answers(found) if i == item}) == 2}
    assert split
    assert min(per_item.values()) >= 2
    assert max(per_item.values()) <= 7
    assert min(per_item[item] for item in split) > 2
    assert sum(per_item.values()) < 60 * 7
