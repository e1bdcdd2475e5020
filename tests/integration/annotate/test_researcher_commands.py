"""The researcher's commands on a campaign with answers: status, review, decisions, withdrawal, deletion."""

import csv
import json
from contextlib import closing

import pytest

from annotate.small_campaigns import Worker, make, pairs
from counterfoil.annotate.database import open_database
from counterfoil.annotate.participants import make_links, person_id
from faults.command import run


@pytest.fixture
def campaign(tmp_path):
    """Two people judged four pairs, and differ on one; ten would be needed for each."""
    made = make(tmp_path / "campaign", pairs(4, golden=2, kinds="ab"), overlap=3, keep_until="2030-01-31")
    with closing(open_database(made)) as db:
        Worker(db, made, 1).do()
        Worker(db, made, 2, judge=lambda item: "no" if item.id == "1" else "yes").do()
    return made


def printed(campaign, command, *more, name="campaign", code=0):
    """What a command on a campaign prints that must succeed, or end with another code."""
    ended = run(["annotate", command, name, *more], campaign.folder.parent)
    assert ended.code == code, ended.err
    return ended.out if code == 0 else ended.err


def facts(campaign, command, *more, name="campaign"):
    """What a command on a campaign gives as JSON."""
    return json.loads(printed(campaign, command, *more, "--json", "-", name=name))


def ids(campaign, name="campaign"):
    return [item["person"] for item in facts(campaign, "status", name=name)["persons"]]


def csv_of(campaign, name):
    return list(csv.DictReader((campaign.folder.parent / name).read_text().splitlines()))


def test_status_prints_facts_and_people(campaign):
    text = printed(campaign, "status", "--by-person")
    for words in ("0 of 4", "8, 4 still needed", "2 done", ids(campaign)[0][:10], "database.sqlite"):
        assert words in text


def test_a_person_is_let_in_from_another_browser(campaign):
    first, _ = ids(campaign)
    assert first[:10] in printed(campaign, "readmit", "--person", first[:8])
    for given in ((), ("--worker", "w", "--person", first), ("--worker", "unknown")):
        printed(campaign, "readmit", *given, code=2)


def test_reviews_are_listed_taken_and_exported(campaign):
    first, second = ids(campaign)
    assert "no signs of careless answers" in printed(campaign, "review")
    assert printed(campaign, "approve", first[:8], "--by", "ann").strip() == "1 approved"
    assert "4 answers set aside" in printed(campaign, "reject", second[:8], "--reason", "Wrong on item 1.")
    printed(campaign, "review", "--out", "reviews.csv")
    rows = {row["person"]: row for row in csv_of(campaign, "reviews.csv")}
    assert rows[first].items() >= {"decision": "approved", "by": "ann"}.items()
    assert rows[second].items() >= {"decision": "rejected", "reason": "Wrong on item 1."}.items()
    assert facts(campaign, "status")["needed"] == 8


def test_suggested_people_are_approved_in_one_go(campaign):
    for count in (2, 0):
        assert printed(campaign, "approve", "--suggested").strip() == f"{count} approved"


def test_disagreements_are_listed_and_decided(campaign):
    text = printed(campaign, "adjudicate")
    for words in ("1 for yes, 1 for no", "adjudicate CAMPAIGN ITEM ANSWER", "1 without a decision"):
        assert words in text
    assert printed(campaign, "adjudicate", "1", "no", "--note", "It is.").strip() == "item 1, match: no"
    (item,) = facts(campaign, "adjudicate")["items"]
    assert (item["item"], item["decided"]["answer"]) == ("1", "no")


def test_a_person_is_withdrawn_by_link_or_id(campaign):
    link = make_links(campaign, 1)[0]
    assert "4 answers deleted" in printed(campaign, "withdraw", "--worker", link)
    (left,) = set(ids(campaign)) - {person_id(campaign, "link", link)}
    assert "4 answers deleted" in printed(campaign, "withdraw", "--person", left)
    unknown = printed(campaign, "withdraw", "--worker", "another", code=2)
    assert "no such person in this campaign; given: another" in unknown


def test_everything_is_deleted_when_asked_twice(campaign):
    for option, words in (("--yes", "not to be deleted yet"), ("--now", "pass --yes")):
        assert words in printed(campaign, "delete-after", option, code=2)
    assert len(ids(campaign)) == 2
    assert "2 people and 8 answers deleted" in printed(campaign, "delete-after", "--now", "--yes")
    assert ids(campaign) == []


def test_a_simulated_campaign_is_kept_as_a_campaign_of_its_own(campaign):
    before = (campaign.folder / "database.sqlite").read_bytes()
    words = ("simulate", "--people", "5", "--quiet", "--keep", "tried")
    printed(campaign, *words, "--out", "tried.csv")
    assert (campaign.folder / "database.sqlite").read_bytes() == before
    status = facts(campaign, "status", name="tried")
    assert status["title"] == f"Simulated: {campaign.recipe.title}"
    assert (status["answers"], status["needed"]) == (12, 0)
    assert {row["person"] for row in csv_of(campaign, "tried.csv")} == {*ids(campaign, "tried")}
    # What was kept has answers, so nothing is written over it.
    for more in ((), ("--overwrite",)):
        printed(campaign, *words, *more, code=2)
    printed(campaign, "agreement", "--draws", "100", name="tried")


def test_a_release_states_the_campaigns_data_sheet(campaign):
    folder = campaign.folder.parent
    (folder / "pairs.csv").write_text("image,caption,negative_caption\np.png,caption,another\n")
    line = "benchmarks publish pairs --data pairs.csv --out release --licence CC-BY-4.0 --campaign"
    ended = run([*line.split(), "campaign"], folder)
    assert ended.code == 0, ended.err
    card = (folder / "release" / "README.md").read_text("utf-8")
    for words in ("2 people judged 4 items", "per hour of work in the median", "You can stop at any time"):
        assert words in card
    assert run([*line.split(), "pairs.csv"], folder).code == 2
