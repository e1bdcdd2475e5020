"""The status of a campaign, from its judgements: counts, pace, pay, golden items; and its data sheet."""

import numpy as np
import pyarrow as pa
import pytest

from counterfoil.annotate.answers import Counts
from counterfoil.annotate.campaign import CampaignRecipe, create_folder
from counterfoil.annotate.export import data_sheet
from counterfoil.annotate.forms.base import WorkItem
from counterfoil.annotate.judgement_table import Submissions
from counterfoil.annotate.status import PersonProgress, campaign_status, facts_of

HOUR = 3600.0
NOW = 1_000 * HOUR


def campaign_of(folder, **recipe):
    """Four items to judge twice each, and a golden one; yes-no expects 4 seconds per item."""
    items = [WorkItem(f"{i}", {"image": "a", "caption": "A cat."}) for i in range(4)]
    items.append(WorkItem("g", {"image": "a", "caption": "A dog."}, "golden", {"match": ["no"]}))
    made = CampaignRecipe(form="yes-no", title="Cats", overlap=2, pay_per_hour=18.0, **recipe)
    return create_folder(folder, made, items, {"a": b""})


def rows(*given):
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
    *(("0", "ann", 4.0, 0.5, None), ("0", "bo", 8.0, 0.5, None), ("1", "ann", 4.0, 0.4, None)),
    *(("g", "ann", 4.0, 0.3, True), ("g", "bo", 16.0, 0.3, False)),
)
PEOPLE = [PersonProgress("ann", "working"), PersonProgress("bo", "done"), PersonProgress("cy", "done")]
#: One of four items has both of its answers, and another one of them.
COUNTS = Counts({}, answers=3, set_aside=0, items=4, complete=1, complete_answers=2, wanted=5, leased=0)


def status(campaign, table=TABLE, people=PEOPLE):
    return campaign_status(campaign, table, people, COUNTS, now=NOW, database="sqlite:///x")


@pytest.fixture
def campaign(tmp_path):
    return campaign_of(tmp_path / "campaign")


def test_it_counts_people_answers_what_is_needed_and_what_was_saved(campaign, tmp_path):
    result = status(campaign)
    assert result.people == {"working": 1, "done": 2}
    assert (result.items, result.finished, result.answers, result.needed, result.saved) == (4, 1, 3, 5, None)
    assert (result.golden_right, result.golden, result.seconds) == (1, 2, 4.0)
    assert status(campaign_of(tmp_path / "adaptive", design="adaptive", most=9)).saved == 7


@pytest.mark.parametrize(
    ("table", "pace"),
    [
        (TABLE, 6.0),  # 3 answers in the last half hour
        (rows(("0", "ann", 4.0, 10, None)), 0.1),
        (rows(("0", "ann", 4.0, 24 * 30, None)), None),
    ],
)
def test_the_end_is_what_is_needed_at_the_pace_of_late(campaign, table, pace):
    result = status(campaign, table)
    assert result.pace == (pace and pytest.approx(pace))
    assert result.ends == (pace and pytest.approx(NOW + HOUR * result.needed / pace))


def test_pay_is_what_items_pay_over_the_time_that_they_took(campaign):
    result = status(campaign)
    # An item pays what 4 seconds of 18 per hour are; ann takes 4 seconds, bo 12 on average.
    by = {item.person: item for item in result.persons}
    assert by["ann"].pay == pytest.approx(18.0)
    assert by["bo"].pay == result.pay_least == pytest.approx(6.0)
    assert result.pay == pytest.approx(12.0)
    assert (by["bo"].golden_right, by["bo"].golden, by["bo"].items, by["bo"].seconds) == (0, 1, 2, 12.0)
    assert by["cy"].items == 0
    assert by["cy"].pay is None


@pytest.mark.parametrize(("year", "overdue"), [(1970, True), (2170, False)])
def test_a_date_that_has_passed_is_overdue(tmp_path, year, overdue):
    assert status(campaign_of(tmp_path / "campaign", keep_until=f"{year}-02-01")).overdue is overdue


def test_the_data_sheet_says_who_judged_for_what_and_by_which_instructions(campaign):
    text = "\n".join(data_sheet(campaign, TABLE))
    for words in (
        *("2 people judged 2 items", "3 answers in all", "USD 12.00 per hour", "(set at 18.00 per hour)"),
        *("Answered on 1970-02-11.", "Of 2 answers to items of known answer 50.0 % were right."),
        *("order of the words", "You can stop at any time", "You are paid USD 18.00 per hour of work"),
    ):
        assert words in text
    assert not any(name in text for name in ("ann", "bo "))
    assert data_sheet(campaign, TABLE.slice(3)) == ("Campaign “Cats”: no answers.",)


def test_the_data_sheet_has_instructions_and_consent_in_every_language(tmp_path):
    campaign = campaign_of(tmp_path / "campaign", languages=("en", "de"))
    (campaign.folder / "consent.de.md").write_text("Ich stimme zu. {pay}")
    lines = data_sheet(campaign, TABLE)
    texts = [line.partition(" (digest")[0] for line in lines[-3:]]
    assert texts == ["Instructions", "Consent", "Consent, de"]
    assert lines[-1].endswith("Ich stimme zu. " + campaign.pay.sentence_in("de"))


def test_a_price_per_item_is_the_same_everywhere(tmp_path):
    """Recipe, status, data sheet and consent name one price."""
    campaign = campaign_of(tmp_path / "campaign", pay_per_item=0.015, entry="prolific", per_person=2)
    assert campaign.pay.per_hour == (3600 * 0.015 / campaign.form.seconds) == 13.5
    told = "You are paid USD 0.015 for each item; at 4 seconds for each that is USD 13.50 per hour."
    assert told in campaign.consent_in()
    text = "\n".join(data_sheet(campaign, TABLE))
    assert told in text
    assert "(set at 0.015 per item)" in text
    result = status(campaign, people=())
    # ann took 4 seconds for each of three items, bo 24 for two.
    paid = {"ann": 3600 * 0.015 * 3 / 12, "bo": 3600 * 0.015 * 2 / 24}
    assert {item.person: item.pay for item in result.persons} == pytest.approx(paid)
    assert result.pay == pytest.approx(float(np.median([*paid.values()])))
    assert (result.pay_item, result.pay_aim) == (0.015, 13.5)
    assert facts_of(result)["Pay per item"] == "USD 0.015"


LOW = {"pay_per_item": 0.005, "entry": "prolific"}


def test_pay_below_the_least_of_the_platform_is_warned_of(tmp_path):
    low = campaign_of(tmp_path / "low", **LOW)
    before, after = status(low, TABLE.slice(0, 0), ()), status(low, people=())
    least = "below the least that prolific allows, 8.00"
    assert before.pay_warning == f"pay per hour is USD 4.50 at the usual time, {least}"
    assert f"USD {after.pay:.2f} in the median" in after.pay_warning
    assert facts_of(after)["Too low"] == after.pay_warning


@pytest.mark.parametrize(
    ("change", "warned"),
    [
        ({"entry": "link"}, False),
        ({"currency": "EUR"}, False),
        ({"pay_per_item": 0.1}, False),
        # The recipe's own least goes before the platform's, and stands where there is none.
        ({"least_pay": 4.0}, False),
        ({"least_pay": 9.5}, True),
        ({"least_pay": 9.5, "entry": "link"}, True),
    ],
)
def test_what_the_least_pay_depends_on(tmp_path, change, warned):
    result = status(
        campaign_of(tmp_path / "campaign", **{**LOW, **change}), TABLE.slice(0, 0), ()
    ).pay_warning
    assert ("below the least that the recipe allows, 9.50" in result) == warned == bool(result)


def test_medians_by_person_are_numpys():
    rng = np.random.default_rng(0)
    drawn = ((f"{i}", f"p{rng.integers(7)}", float(rng.exponential(8)), 1.0, None) for i in range(200))
    table = rows(*drawn)
    result = Submissions.of(table)
    for place, name in enumerate(result.people):
        own = [row["seconds"] for row in table.to_pylist() if row["person"] == name]
        assert result.median_seconds[place] == pytest.approx(float(np.median(own)))
