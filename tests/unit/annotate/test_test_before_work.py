"""The test before the work turns away exactly those who err twice."""

from itertools import combinations, product
from pathlib import Path

import pytest

from counterfoil.annotate import participants
from counterfoil.annotate.campaign import Campaign, CampaignRecipe, create_folder
from counterfoil.annotate.forms.base import WorkItem
from counterfoil.annotate.simulation import direct_client, scratch_database


@pytest.fixture
def tested(tmp_path: Path) -> Campaign:
    """A campaign with a test of ten before the work (Winoground, appendix E)."""

    def pair(name: str, role: str, right: str) -> WorkItem:
        golden = {"match": (right,)} if role == "onboarding" else {}
        return WorkItem(name, {"image": "a.png", "caption": name}, role, golden, truth=right)  # type: ignore[arg-type]

    items = [
        pair(f"{role} {at}", role, ("yes", "no")[at % 2])
        for role in ("work", "onboarding")
        for at in range(10)
    ]
    recipe = CampaignRecipe(form="yes-no", title="Test", onboarding=10, overlap=1)
    return create_folder(tmp_path / "c", recipe, items, {"a.png": b"image"})


def states(campaign: Campaign, patterns: list[tuple[bool, ...]]) -> list[str]:
    """Where people are who err on the questions of the test that a pattern says; second tries are right."""
    found = []
    with scratch_database(campaign) as db, direct_client(campaign, db) as way:
        for who, link in enumerate(participants.make_links(campaign, len(patterns))):
            id = participants.person_id(campaign, "link", link)
            way.enter(link, 1000.0 * who)
            seen, now, tried = way.look(id, 1000.0 * who), 1000.0 * who, set()
            while seen.state == "onboarding":
                right = ("yes", "no").index(seen.item.golden["match"][0])
                err = seen.item.id not in tried and patterns[who][len(tried)]
                tried.add(seen.item.id)
                now += 3
                seen = way.answer(id, seen.lease, {"match": 1 - right if err else right}, 2.0, now)
            found.append(seen.state)
    return found


def few_errors(most: int) -> list[tuple[bool, ...]]:
    return [
        tuple(at in wrong for at in range(10))
        for n in range(most + 1)
        for wrong in combinations(range(10), n)
    ]


def check_states(patterns: list[tuple[bool, ...]], found: list[str]) -> None:
    for pattern, state in zip(patterns, found, strict=True):
        assert (state == "disqualified") == (sum(pattern) >= 2), pattern
        assert state in ("disqualified", "work", "done", "full")


def test_exactly_who_errs_twice_is_disqualified(tested: Campaign) -> None:
    patterns = few_errors(1) + few_errors(10)[11::29]
    check_states(patterns, states(tested, patterns))


@pytest.mark.slow
def test_all_patterns_of_errors(tested: Campaign) -> None:
    patterns = list(product((False, True), repeat=10))
    check_states(patterns, states(tested, patterns))
