"""Human studies in the world: exact designs, intervals that have the truth, tests that turn people away."""

from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from counterfoil.annotate import entry
from counterfoil.annotate.campaign import Campaign, CampaignRecipe, create_folder
from counterfoil.annotate.forms.base import WorkItem
from counterfoil.annotate.simulation import scratch_database
from counterfoil.annotate.simulation_clients import direct_client, http_client
from counterfoil.errors import InputError
from counterfoil.studies.annotation import human_baseline, merged_positives, preference_order
from counterfoil.tasks.annotate_study import annotate_study


def check_design(found: object, questions: int, people: int) -> None:
    """Everyone has as many queries of each direction, and no two directions of one question."""
    person = found.person  # type: ignore[attr-defined]
    assert person.shape == (questions, 4)
    assert (np.sort(person, axis=1)[:, 1:] != np.sort(person, axis=1)[:, :-1]).all()
    for direction in range(4):
        assert np.bincount(person[:, direction]).tolist() == [questions // people] * people


def test_a_human_baseline_is_exact_and_its_intervals_have_the_truth() -> None:
    found = human_baseline(40, 8)
    check_design(found, 40, 8)
    for row in found.rows:
        assert row.low < row.value < row.high
        assert row.covered
    covered = found.coverage(400)
    # A nominal 95 %: three standard errors of 400 are 3.3 points.
    assert min(covered.values()) > 0.917


@pytest.mark.slow
def test_bivlcs_human_baseline_is_20_people_of_25_questions_in_each_direction() -> None:
    found = human_baseline()
    check_design(found, 500, 20)
    covered = found.coverage(1000)
    assert all(0.93 <= share <= 0.975 for share in covered.values())


def test_questions_that_do_not_divide_among_people_are_refused() -> None:
    with pytest.raises(InputError, match="41 among 8"):
        human_baseline(41, 8)


def test_strengths_of_rankings_come_back_in_their_order() -> None:
    found = preference_order((60, 25, 15), captions=40, people=6)
    assert [found.names[at] for at in found.order] == ["ranking 1", "ranking 2", "ranking 3"]
    assert found.low[0] < 60


def test_positives_of_people_who_guess_are_told_apart_by_golden_items() -> None:
    found = merged_positives(12)
    assert 0.2 < found.rejected < 0.5
    # Of those who guess a quarter passes two golden items of two sides.
    assert found.wrong < 0.42
    for name in ("strict", "lenient"):
        assert found.precision[name][0] > 2 * found.true[name]
        assert found.recall[name][0] <= found.recall_of_pool[name][0]


@pytest.mark.slow
def test_several_answers_make_positives_more_precise() -> None:
    one, three = (merged_positives(60, labels=n) for n in (1, 3))
    for found in (one, three):
        assert 0.27 <= found.rejected <= 0.37
    for name in ("strict", "lenient"):
        assert three.precision[name][0] > one.precision[name][0]
        assert three.recall_of_pool[name][0] > one.recall_of_pool[name][0]


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


def states(campaign: Campaign, patterns: list[tuple[bool, ...]], client: object) -> list[str]:
    """Where people are who err on the questions of the test that a pattern says; second tries are right."""
    found = []
    with scratch_database(campaign) as db, client(campaign, db) as way:  # type: ignore[operator]
        for who, link in enumerate(entry.make_links(campaign, len(patterns))):
            id = entry.person_id(campaign, "link", link)
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
    check_states(patterns, states(tested, patterns, direct_client))


def test_exactly_who_errs_twice_is_disqualified_over_http(tested: Campaign) -> None:
    patterns = few_errors(2)[::8]
    check_states(patterns, states(tested, patterns, http_client))


@pytest.mark.slow
def test_all_patterns_of_errors(tested: Campaign) -> None:
    patterns = list(product((False, True), repeat=10))
    check_states(patterns, states(tested, patterns, direct_client))


def test_a_study_says_which_data_it_needs() -> None:
    with pytest.raises(InputError, match=r"human\.jsonl"):
        annotate_study("stopping-rule")
    with pytest.raises(InputError, match="leave --data out"):
        annotate_study("preferences", data="votes.csv")
