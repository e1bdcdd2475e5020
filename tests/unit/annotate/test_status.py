"""The status of a campaign, from its judgements: counts, pace, pay, golden items; and its data sheet."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from counterfoil.annotate.campaign import Campaign, CampaignRecipe, create_folder
from counterfoil.annotate.data_sheet import data_sheet
from counterfoil.annotate.forms.base import WorkItem
from counterfoil.annotate.platforms.prolific_campaign import plan_of
from counterfoil.annotate.platforms.prolific_study import StudyChoices
from counterfoil.annotate.status import (
    TIME_BINS,
    CampaignStatus,
    Storage,
    WorkerRow,
    campaign_status,
    facts_of,
)
from counterfoil.annotate.submissions import Submissions
from counterfoil.jobs.annotate_plan import annotate_plan

HOUR = 3600.0
NOW = 1_000 * HOUR


def campaign_of(folder: Path, **recipe: object) -> Campaign:
    """Four items to judge twice each, and a golden one; yes-no expects 4 seconds per item."""
    items = [WorkItem(f"{at}", {"image": "a", "caption": "A cat."}) for at in range(4)]
    items.append(WorkItem("g", {"image": "a", "caption": "A dog."}, "golden", {"match": ["no"]}))
    made = CampaignRecipe(form="yes-no", title="Cats", overlap=2, pay_per_hour=18.0, **recipe)  # type: ignore[arg-type]
    return create_folder(folder, made, items, {"a": b""})


def rows(*given: tuple[str, str, float, float, bool | None]) -> pa.Table:
    """Judgements: item, person, seconds, hours ago, right."""
    rows = [
        {"item": item, "person": person, "question": "match", "answer": "yes", "seconds": seconds}
        | {"golden": right, "role": "work" if right is None else "golden", "submitted": NOW - HOUR * ago}
        for item, person, seconds, ago, right in given
    ]
    schema = pa.Table.from_pylist(rows).schema
    golden = schema.get_field_index("golden")
    return pa.Table.from_pylist(rows, schema.set(golden, pa.field("golden", pa.bool_())))


TABLE = rows(
    ("0", "ann", 4.0, 0.5, None),
    ("0", "bo", 8.0, 0.5, None),
    ("1", "ann", 4.0, 0.4, None),
    ("g", "ann", 4.0, 0.3, True),
    ("g", "bo", 16.0, 0.3, False),
)


def status(campaign: Campaign, table: pa.Table = TABLE, **more: object) -> CampaignStatus:
    people = [WorkerRow("ann", "working"), WorkerRow("bo", "done"), WorkerRow("cy", "done")]
    return campaign_status(campaign, table, people, now=NOW, storage=Storage("sqlite"), **more)  # type: ignore[arg-type]


def test_it_counts_people_answers_and_what_is_needed(tmp_path: Path) -> None:
    found = status(campaign_of(tmp_path / "campaign"))
    assert found.people == {"working": 1, "done": 2}
    assert (found.items, found.finished, found.answers, found.needed, found.saved) == (4, 1, 3, 5, None)
    assert (found.golden_right, found.golden) == (1, 2)
    assert found.seconds == 4.0
    assert sum(found.times) == 3
    assert found.times[TIME_BINS.index(4)] == 2


def test_the_end_is_what_is_needed_at_the_pace_of_the_last_hour(tmp_path: Path) -> None:
    found = status(campaign_of(tmp_path / "campaign"))
    assert found.pace == pytest.approx(6.0)  # 3 answers in the last half hour
    assert found.ends == pytest.approx(NOW + HOUR * 5 / 6)
    old = status(campaign_of(tmp_path / "other"), rows(("0", "ann", 4.0, 10, None)))
    assert old.pace == pytest.approx(0.1)
    older = status(campaign_of(tmp_path / "third"), rows(("0", "ann", 4.0, 24 * 30, None)))
    assert older.pace is None
    assert older.ends is None


def test_pay_is_what_items_pay_over_the_time_that_they_took(tmp_path: Path) -> None:
    found = status(campaign_of(tmp_path / "campaign"))
    # An item pays what 4 seconds of 18 per hour are; ann takes 4 seconds, bo 12 on average.
    by = {each.person: each for each in found.persons}
    assert by["ann"].pay == pytest.approx(18.0)
    assert by["bo"].pay == found.pay_least == pytest.approx(6.0)
    assert found.pay == pytest.approx(12.0)
    assert (by["bo"].golden_right, by["bo"].golden, by["bo"].items, by["bo"].seconds) == (0, 1, 2, 12.0)
    assert by["cy"].items == 0
    assert by["cy"].pay is None


def test_answers_that_were_set_aside_are_needed_again(tmp_path: Path) -> None:
    aside = TABLE.append_column("counted", pa.array([True, False, True, True, True]))
    found = status(campaign_of(tmp_path / "campaign"), aside)
    assert (found.answers, found.finished, found.needed) == (2, 0, 6)


def test_an_adaptive_campaign_says_what_it_saved(tmp_path: Path) -> None:
    found = status(campaign_of(tmp_path / "campaign", design="adaptive", most=9), open_items=3)
    assert (found.finished, found.saved) == (1, 7)
    assert found.needed == 5


def test_a_date_that_has_passed_is_overdue(tmp_path: Path) -> None:
    assert status(campaign_of(tmp_path / "campaign", keep_until="1970-02-01")).overdue
    assert not status(campaign_of(tmp_path / "other", keep_until="2170-02-01")).overdue


def test_medians_by_person_are_numpys() -> None:
    rng = np.random.default_rng(0)
    table = rows(
        *((f"{at}", f"p{rng.integers(7)}", float(rng.exponential(8)), 1.0, None) for at in range(200))
    )
    found = Submissions.of(table)
    for place, name in enumerate(found.people):
        own = [row["seconds"] for row in table.to_pylist() if row["person"] == name]
        assert found.median_seconds[place] == pytest.approx(float(np.median(own)))


def test_the_data_sheet_says_who_judged_for_what_and_by_which_instructions(tmp_path: Path) -> None:
    lines = data_sheet(campaign_of(tmp_path / "campaign"), TABLE)
    text = "\n".join(lines)
    for words in (
        *("2 people judged 2 items", "3 answers in all", "USD 12.00 per hour", "(set at 18.00 per hour)"),
        *("Answered on 1970-02-11.", "Of 2 answers to items of known answer 50.0 % were right."),
        *("order of the words", "You can stop at any time", "You are paid USD 18.00 per hour of work"),
    ):
        assert words in text
    assert not any(name in text for name in ("ann", "bo "))


def test_the_data_sheet_has_instructions_and_consent_in_every_language(tmp_path: Path) -> None:
    campaign = campaign_of(tmp_path / "campaign", languages=("en", "de"))
    (campaign.folder / "consent.de.md").write_text("Ich stimme zu. {pay}")
    lines = data_sheet(campaign, TABLE)
    assert [line.partition(" (digest")[0] for line in lines[-3:]] == [
        "Instructions",
        "Consent",
        "Consent, de",
    ]
    assert lines[-1].endswith("Ich stimme zu. " + campaign.pay.sentence_in("de"))


def test_a_price_per_item_is_the_same_everywhere(tmp_path: Path) -> None:
    """Recipe, plan, status, data sheet, consent and Prolific's reward name one price."""
    campaign = campaign_of(tmp_path / "campaign", pay_per_item=0.015, entry="prolific", per_person=2)
    by_hour = 3600 * 0.015 / campaign.form.seconds
    assert campaign.pay.per_hour == by_hour == 13.5
    told = "You are paid USD 0.015 for each item; at 4 seconds for each that is USD 13.50 per hour."
    assert told in campaign.consent_in()
    text = "\n".join(data_sheet(campaign, TABLE))
    assert told in text
    assert "(set at 0.015 per item)" in text
    found = campaign_status(campaign, TABLE, (), now=NOW, storage=Storage("here"))
    seconds = {
        name: [r["seconds"] for r in TABLE.to_pylist() if r["person"] == name] for name in ("ann", "bo")
    }
    paid = {name: 3600 * 0.015 * len(each) / sum(each) for name, each in seconds.items()}
    assert {each.person: each.pay for each in found.persons} == pytest.approx(paid)
    assert found.pay == pytest.approx(float(np.median([*paid.values()])))
    assert (found.pay_item, found.pay_aim) == (0.015, 13.5)
    assert facts_of(found)["Pay per item"] == "USD 0.015"
    plan = annotate_plan("yes-no", items=4, labels=2, pay_per_item=0.015, fee=0.5)
    assert (plan.pay, plan.cost) == (13.5, pytest.approx(4 * 2 * 0.015 * 1.5))
    assert any("at 0.015 per item, which is 13.50 per hour" in note for note in plan.notes)
    study = plan_of(campaign, StudyChoices(address="https://study.example"), {"completed": "C"})
    assert study.reward == 3


def test_pay_below_the_least_of_the_platform_is_warned_of(tmp_path: Path) -> None:
    low = campaign_of(tmp_path / "low", pay_per_item=0.005, entry="prolific")
    before = campaign_status(low, TABLE.slice(0, 0), (), now=NOW, storage=Storage("here"))
    assert before.pay_warning == (
        "pay per hour is USD 4.50 at the usual time, below the least that prolific allows, 8.00"
    )
    after = campaign_status(low, TABLE, (), now=NOW, storage=Storage("here"))
    assert f"USD {after.pay:.2f} in the median" in after.pay_warning
    assert facts_of(after)["Too low"] == after.pay_warning
    for change in ({"entry": "link"}, {"currency": "EUR"}, {"pay_per_item": 0.1}):
        other = {"pay_per_item": 0.005, "entry": "prolific", **change}
        made = campaign_of(tmp_path / "-".join(change), **other)
        assert campaign_status(made, TABLE, (), now=NOW, storage=Storage("here")).pay_warning == ""
    # The recipe's own least goes before the platform's, whichever is higher, and stands where there is none.
    for entry, least, warned in (("prolific", 4.0, False), ("prolific", 9.5, True), ("link", 9.5, True)):
        own = {"pay_per_item": 0.005, "entry": entry, "least_pay": least}
        made = campaign_of(tmp_path / f"{entry}-{least}", **own)
        found = campaign_status(made, TABLE.slice(0, 0), (), now=NOW, storage=Storage("here")).pay_warning
        assert ("below the least that the recipe allows, 9.50" in found) == warned == bool(found)


def test_the_data_sheet_of_no_answers_is_one_line(tmp_path: Path) -> None:
    assert data_sheet(campaign_of(tmp_path / "campaign"), TABLE.slice(3)) == ("Campaign “Cats”: no answers.",)
