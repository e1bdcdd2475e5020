"""A changed last answer, what cannot be seen, comments and an early end: once, and in every table."""

import pytest

from annotate.small_campaigns import Worker, pairs
from counterfoil.annotate import participants
from counterfoil.annotate.agreement import campaign_agreement, counted
from counterfoil.annotate.answers import counts, judgement_table
from counterfoil.annotate.export import JudgedCampaign, exported
from counterfoil.annotate.forms.base import NOT_VISIBLE
from counterfoil.annotate.quality import people_quality
from counterfoil.annotate.review import approve
from counterfoil.annotate.tables import people, sa

pytestmark = pytest.mark.usefixtures("few_draws")


@pytest.fixture
def campaign_of(opened, new_database):
    """Makes a campaign with its database, of both kinds."""
    return lambda items, **recipe: opened(items, new_database(), **recipe)[::-1]


def rows(db, campaign):
    """Item, answer and comment of every judgement."""
    table = judgement_table(db, campaign, everything=True)
    return [(row["item"], row["answer"], row["comment"]) for row in table.to_pylist()]


def test_the_last_answer_can_be_changed_and_no_other(campaign_of):
    campaign, db = campaign_of(pairs(3), overlap=1)
    person = Worker(db, campaign, 1)
    first, second = person.state().assignments
    person.answer(first, "yes", key="one-0001")
    changed = {"key": "two-0002", "replaces": "one-0001", "comment": "I had not seen the cat."}
    receipt = person.answer(first, "no", **changed)
    assert (receipt.accepted, receipt.repeated, receipt.work.done) == (True, False, 1)
    stored = [(first.item.id, "no", "I had not seen the cat.")]
    assert rows(db, campaign) == stored
    # Sent again it is the same; what it replaced is late, whatever brings it.
    assert person.answer(first, "no", **changed).repeated
    assert not person.answer(first, "yes", key="one-0001").accepted
    assert not person.answer(first, "yes", key="other-03", replaces="one-0001").accepted
    assert rows(db, campaign) == stored
    person.answer(second, "yes", key="three-03")
    assert not person.answer(first, "yes", key="four-004", replaces="two-0002").accepted
    assert [answer for _, answer, _ in rows(db, campaign)] == ["no", "yes"]
    assert counts(db).answers == 2


def test_an_answer_is_changed_within_its_lease_also_when_all_is_done(campaign_of):
    campaign, db = campaign_of(pairs(2), overlap=1, lease_minutes=10.0)
    person = Worker(db, campaign, 1)
    _, last = person.state().assignments
    assert person.do().state == "done"
    person.now += 300
    assert person.answer(last, "no", key="changed1", replaces=f"key-{person.sent:04}").accepted
    person.now += 400
    assert not person.answer(last, "yes", key="changed2", replaces="changed1").accepted
    assert [answer for _, answer, _ in rows(db, campaign)][-1] == "no"


def test_golden_counts_and_adaptive_targets_follow_a_change(campaign_of):
    campaign, db = campaign_of(pairs(1, golden=2), overlap=1, golden_share=0.9, golden_misses=2)
    person = Worker(db, campaign, 1)
    while (golden := person.state().assignments[0]).role == "work":
        person.answer(golden)
    (right,) = golden.item.golden["match"]
    person.answer(golden, "no" if right == "yes" else "yes", key="golden-1")
    assert person.answer(golden, right, key="golden-2", replaces="golden-1").accepted
    with db.reading() as connection:
        assert connection.execute(sa.select(people.c.right, people.c.wrong)).one() == (1, 0)
    campaign, db = campaign_of(pairs(1), design="adaptive", overlap=2, most=5, certainty=0.9)
    one, two = Worker(db, campaign, 1), Worker(db, campaign, 2)
    one.answer(one.state().assignments[0], "yes")
    mine = two.state().assignments[0]
    two.answer(mine, "no", key="two-0001")
    assert counts(db).wanted == 1
    two.answer(mine, "yes", key="two-0002", replaces="two-0001")
    assert counts(db).wanted == 0


def test_what_cannot_be_seen_is_no_answer_in_every_table(campaign_of):
    campaign, db = campaign_of(pairs(2, golden=1), overlap=2, golden_share=0.9, golden_misses=1)
    for number in (1, 2):
        person = Worker(db, campaign, number)
        while assigned := person.state().assignments:
            one = assigned[0]
            unseen = one.item.id == "0" or one.role == "golden" or (one.item.id, number) == ("1", 2)
            assert person.answer(one, **({"unseen": True, "comment": "black"} if unseen else {})).accepted
        # A golden item that cannot be seen is not answered wrong.
        assert person.state().state == "done"
    table = judgement_table(db, campaign)
    unseen = [row for row in table.to_pylist() if row["answer"] == NOT_VISIBLE]
    facts = {(row["item"], row["golden"], row["comment"]) for row in unseen}
    assert facts == {(item, None, "black") for item in ("0", "1", "golden-0")}
    assert counted(table).column("item").to_pylist() == ["1"]
    assert campaign_agreement(table).questions[0].people.items == 0
    judged = JudgedCampaign.of(campaign, table)
    labels = {row.pop("item"): row for row in exported(judged)["labels"].to_pylist()}
    names = ("label", "answers", "not_visible")
    assert [labels["1"][name] for name in names] == ["yes", 1, 1]
    assert [labels["0"][name] for name in (*names, "posterior")] == [NOT_VISIBLE, 0, 2, None]
    assert exported(judged)["scores"].column("id").to_pylist() == ["1"]
    assert "comment" not in exported(judged, people=False)["judgements"].column_names
    assert sorted(item.not_visible for item in people_quality(table, campaign)) == [2, 3]


def test_a_test_item_that_cannot_be_seen_is_no_error(campaign_of):
    campaign, db = campaign_of(pairs(1, onboarding=1), onboarding=1, onboarding_warnings=0)
    person = Worker(db, campaign, 1)
    receipt = person.answer(person.state().assignments[0], unseen=True)
    assert (receipt.accepted, receipt.work.state) == (True, "onboarding")
    assert person.answer(receipt.work.assignments[0]).work.state == "work"


def test_who_ends_early_keeps_what_counts_and_others_get_the_rest(campaign_of):
    campaign, db = campaign_of(pairs(4), overlap=1, completion="DONE")
    person, other = Worker(db, campaign, 1), Worker(db, campaign, 2)
    person.answer(person.state().assignments[0])
    ahead = person.state().assignments[0]
    assert counts(db).leased == 2
    person.end()
    person.end()
    state = person.state()
    assert (state.state, state.done, state.of, state.code) == ("ended", 1, 1, "DONE")
    assert counts(db).leased == 0
    assert not person.answer(ahead).accepted
    assert other.do().done == 3
    assert counts(db).answers == 4
    assert approve(db, [person.person.id], by="r", now=person.now) == 1
    # One who withdrew, or has not agreed, has nothing to end.
    other.withdraw()
    other.end()
    assert other.state().state == "withdrawn"


def test_a_block_that_was_left_early_goes_to_another(campaign_of):
    campaign, db = campaign_of(pairs(2), design="blocks", per_person=2, overlap=1)
    person, other = Worker(db, campaign, 1), Worker(db, campaign, 2)
    person.answer(person.state().assignments[0])
    person.end()
    assert counts(db).answers == 1
    other.now += 10
    assert (other.do().state, counts(db).answers) == ("done", 2)


def test_who_comes_back_to_their_block_goes_on_with_it(campaign_of):
    campaign, db = campaign_of(pairs(3), design="blocks", per_person=3, overlap=1)
    person = Worker(db, campaign, 1)
    person.answer(person.state().assignments[0])
    person.end()
    link = participants.make_links(campaign, 1)[-1]
    with db.writing() as connection:
        again = {"worker": link, "platform": "link", "parameters": {"assignment": "another"}}
        assert participants.enter(connection, campaign, now=person.now, **again).person.state == "work"
    assert (person.do(5).state, counts(db).answers) == ("done", 3)
