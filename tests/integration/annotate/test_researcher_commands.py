"""The researcher's commands on a campaign with answers: status, review, decisions, withdrawal, deletion."""

import csv
import json

import pytest

from annotate.small_campaigns import Worker, make, pairs
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import open_database
from counterfoil.annotate.participants import make_links, person_id
from faults.command import run


@pytest.fixture
def campaign(tmp_path):
    """Two people judged four pairs, and differ on one; ten would be needed for each."""
    made = make(tmp_path / "campaign", pairs(4, golden=2, kinds="ab"), overlap=3, keep_until="2030-01-31")
    db = open_database(made)
    Worker(db, made, 1).do()
    Worker(db, made, 2, judge=lambda item: "no" if item.id == "1" else "yes").do()
    db.close()
    return made


def ids(campaign: Campaign) -> list[str]:
    return [
        each["person"] for each in json.loads(said(campaign, "status", "campaign", "--json", "-"))["persons"]
    ]


def said(campaign: Campaign, *arguments: str) -> str:
    """What a command that must succeed prints."""
    ended = run(["annotate", *arguments], campaign.folder.parent)
    assert ended.code == 0, ended.err
    return ended.out


def refused(campaign: Campaign, *arguments: str) -> str:
    """What a command that must be refused says on standard error."""
    ended = run(["annotate", *arguments], campaign.folder.parent)
    assert ended.code == 2, arguments
    return ended.err


def test_status_prints_facts_and_people(campaign):
    text = said(campaign, "status", "campaign", "--people")
    assert "0 of 4" in text
    assert "8, 4 still needed" in text
    assert "2 done" in text
    assert ids(campaign)[0][:10] in text
    assert "database.sqlite" in text


def test_one_persons_answers_are_read_before_a_rejection(campaign):
    said_of = {}
    for person in ids(campaign):
        text = said(campaign, "review", "campaign", "--person", person[:8])
        assert "1, match" in text
        assert f"/research/people/{person}" in text
        found = json.loads(said(campaign, "review", "campaign", "--person", person, "--json", "-"))
        rows = {row["item"]: row for row in found["answers"]}
        assert sorted(rows) == ["0", "1", "2", "3"]
        assert (rows["1"]["known"], rows["1"]["right"], rows["1"]["counted"]) == ("", None, True)
        said_of[rows["1"]["answer"]] = person
    assert set(said_of) == {"yes", "no"}
    said(campaign, "review", "campaign", "--person", said_of["no"], "--out", "answers.csv")
    assert len((campaign.folder.parent / "answers.csv").read_text().splitlines()) == 5
    assert "no such person" in refused(campaign, "review", "campaign", "--person", "zz")


def test_a_person_is_let_in_from_another_browser(campaign):
    first, _ = ids(campaign)
    assert first[:10] in said(campaign, "readmit", "campaign", "--person", first[:8])
    for given in ((), ("--worker", "w", "--person", first), ("--worker", "unknown")):
        refused(campaign, "readmit", "campaign", *given)


def test_reviews_are_listed_taken_and_exported(campaign):
    first, second = ids(campaign)
    assert "no signs of careless answers" in said(campaign, "review", "campaign")
    assert said(campaign, "approve", "campaign", first[:8], "--by", "ann").strip() == "1 approved"
    out = said(campaign, "reject", "campaign", second[:8], "--reason", "Wrong on item 1.")
    assert "4 answers set aside" in out
    said(campaign, "review", "campaign", "--out", "reviews.csv")
    lines = (campaign.folder.parent / "reviews.csv").read_text().splitlines()
    rows = {row["person"]: row for row in csv.DictReader(lines)}
    assert (rows[first]["decision"], rows[first]["by"]) == ("approved", "ann")
    assert (rows[second]["decision"], rows[second]["reason"]) == ("rejected", "Wrong on item 1.")
    assert "8 still needed" in said(campaign, "status", "campaign")


def test_suggested_people_are_approved_in_one_go(campaign):
    assert said(campaign, "approve", "campaign", "--suggested").strip() == "2 approved"
    assert said(campaign, "approve", "campaign", "--suggested").strip() == "0 approved"


def test_disagreements_are_listed_and_decided(campaign):
    text = said(campaign, "adjudicate", "campaign")
    assert "1 × yes, 1 × no" in text
    assert "adjudicate CAMPAIGN ITEM ANSWER" in text
    assert "1 without a decision" in text
    decided = said(campaign, "adjudicate", "campaign", "1", "no", "--note", "It is.")
    assert decided.strip() == "item 1, match: no"
    found = json.loads(said(campaign, "adjudicate", "campaign", "--json", "-"))["items"]
    assert [(each["item"], each["decided"]["answer"]) for each in found] == [("1", "no")]


def test_a_person_is_withdrawn_by_link_or_id(campaign):
    link = make_links(campaign, 1)[0]
    assert "4 answers deleted" in said(campaign, "withdraw", "campaign", "--worker", link)
    (left,) = (each for each in ids(campaign) if each != person_id(campaign, "link", link))
    assert "4 answers deleted" in said(campaign, "withdraw", "campaign", "--person", left)
    unknown = refused(campaign, "withdraw", "campaign", "--worker", "another")
    assert "no such person in this campaign; given: another" in unknown


def test_everything_is_deleted_when_asked_twice(campaign):
    assert "answers are not to be deleted yet" in refused(campaign, "delete-after", "campaign", "--yes")
    assert "pass --yes" in refused(campaign, "delete-after", "campaign", "--now")
    assert len(ids(campaign)) == 2
    assert "2 people and 8 answers deleted" in said(campaign, "delete-after", "campaign", "--now", "--yes")
    assert ids(campaign) == []


def test_agreement_as_a_page_has_the_numbers_and_their_intervals(campaign):
    words = ("agreement", "campaign", "--draws", "100", "--html", "page.html", "--json", "numbers.json")
    said(campaign, *words)
    folder = campaign.folder.parent
    html = (folder / "page.html").read_text()
    of = json.loads((folder / "numbers.json").read_text())["questions"][0]
    raw, alpha = of["raw"], of["alpha"]
    assert f"<span>{100 * raw['value']:.2f}</span>" in html
    assert f"{100 * raw['low']:.1f} to {100 * raw['high']:.1f}" in html
    for end in (f"<span>{alpha['value']:.4f}", f"{alpha['low']:.4f} to {alpha['high']:.4f}"):
        assert end.replace("-", "−") in html
    assert "http" not in html.replace("http-equiv", "").replace("http://www.w3.org", "")
    (folder / "page.html").write_text("mine")
    refused(campaign, *words)
    assert (folder / "page.html").read_text() == "mine"


def test_a_simulated_campaign_is_kept_as_a_campaign_of_its_own(campaign):
    folder = campaign.folder.parent
    before = (campaign.folder / "database.sqlite").read_bytes()
    words = ("simulate", "campaign", "--people", "5", "--quiet", "--keep", "tried")
    said(campaign, *words, "--out", "tried.csv")
    assert (campaign.folder / "database.sqlite").read_bytes() == before
    found = json.loads(said(campaign, "status", "tried", "--json", "-"))
    assert found["title"] == f"Simulated: {campaign.recipe.title}"
    assert (found["answers"], found["needed"]) == (12, 0)
    rows = csv.DictReader((folder / "tried.csv").read_text().splitlines())
    assert {row["person"] for row in rows} == {each["person"] for each in found["persons"]}
    # What was kept has answers, so nothing is written over it.
    for more in ((), ("--overwrite",)):
        refused(campaign, *words, *more)
    said(campaign, "agreement", "tried", "--draws", "100")


def test_a_release_states_the_campaigns_data_sheet(campaign):
    folder = campaign.folder.parent
    rows = [f"p{at}.png,caption {at},another {at}" for at in range(4)]
    (folder / "pairs.csv").write_text("\n".join(["image,caption,negative_caption", *rows]), "utf-8")
    line = "benchmarks publish pairs --data pairs.csv --to folder:release --licence CC-BY-4.0 --campaign"
    ended = run([*line.split(), "campaign"], folder)
    assert ended.code == 0, ended.err
    card = (folder / "release" / "README.md").read_text("utf-8")
    assert "2 people judged 4 items" in card
    assert "per hour of work in the median of people" in card
    assert "You can stop at any time" in card
    assert run([*line.split(), "pairs.csv"], folder).code == 2
