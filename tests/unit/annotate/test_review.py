"""Review of people's work and adjudication of items, on a database with real answers."""

import pytest

from annotate.small_campaigns import Worker, pairs
from counterfoil.annotate.agreement import fields_of
from counterfoil.annotate.answers import counts, judgement_table
from counterfoil.annotate.review import (
    adjudicate,
    adjudicated,
    approve,
    disputed_items,
    person_like,
    reject,
    reviews,
)
from counterfoil.annotate.tables import people, sa
from counterfoil.errors import InputError
from refusals import refuses

REASON = "Every item was answered within a second, and half of those of known answer were wrong. " * 2


@pytest.fixture
def study(opened):
    return opened(pairs(4, kinds="ab"), overlap=2)


@pytest.fixture
def both(study):
    """Two people who have done all that there is."""
    people = [Worker(*study, 1), Worker(*study, 2)]
    for worker in people:
        worker.do()
    return people


def test_a_rejected_persons_answers_leave_and_their_items_are_open_again(study, both):
    db, campaign = study
    first, second = both
    assert counts(db).wanted == 0
    assert reject(db, campaign, first.person.id, reason="Too fast.", by="ann", now=5.0) == 4
    assert counts(db).wanted == 4
    assert set(judgement_table(db, campaign).column("person").to_pylist()) == {second.person.id}
    assert Worker(db, campaign, 3).do().state == "done"
    assert counts(db).wanted == 0
    # Whoever was rejected gets nothing more to do.
    assert not first.state().assignments
    result = reviews(db)[first.person.id]
    assert (result.decision, result.reason, result.by, result.at) == ("rejected", "Too fast.", "ann", 5.0)


def test_decisions_are_taken_once(study, both):
    db, campaign = study
    ids = [worker.person.id for worker in both]
    assert approve(db, ids, by="ann", now=5.0) == 2
    assert approve(db, ids, by="ann", now=6.0) == 0
    assert reviews(db)[ids[0]].at == 5.0
    with pytest.raises(InputError, match="was approved before"):
        reject(db, campaign, ids[0], reason="No.", by="ann", now=7.0)
    assert counts(db).set_aside == 0


def test_who_is_at_work_is_not_approved_and_no_one_with_them(study):
    db, campaign = study
    first, second = Worker(db, campaign, 1), Worker(db, campaign, 2)
    first.do()
    second.do(1)
    with pytest.raises(InputError, match="is not done yet; given: work"):
        approve(db, [first.person.id, second.person.id], by="ann", now=5.0)
    assert not reviews(db)


def test_a_rejection_needs_a_reason_and_of_prolific_its_length_and_category(study):
    db, campaign = study
    worker = Worker(db, campaign, 1)
    worker.do()
    person = worker.person.id
    for platform, reason, category, message in (
        ("link", "  ", "", "a rejection needs a reason"),
        ("prolific", "Too fast.", "TOO_QUICKLY", "message is too short; given: 9 characters; allowed: 100"),
        ("prolific", REASON, "", r"unknown category; given: \(empty\)"),
    ):
        with db.writing() as connection:
            connection.execute(sa.update(people).values(platform=platform))
        with pytest.raises(InputError, match=message):
            reject(db, campaign, person, reason=reason, category=category, by="ann", now=5.0)
    assert counts(db).set_aside == 0
    assert reject(db, campaign, person, reason=REASON, category="LOW_EFFORT", by="ann", now=5.0) == 4
    assert reviews(db)[person].category == "LOW_EFFORT"


def test_people_are_found_by_the_beginning_of_their_id(study):
    db, campaign = study
    result = Worker(db, campaign, 1).person.id
    assert person_like(db, result[:10].upper()) == result
    for odd in ("", "zz", "%"):
        refuses("no such person", person_like, db, odd, error=InputError)


def test_items_with_different_answers_are_listed_most_undecided_first_and_decided(study):
    db, campaign = study
    Worker(db, campaign, 1).do()
    Worker(db, campaign, 2, judge=lambda item: "no" if item.id == "1" else "yes").do()
    field = fields_of(campaign)["match"]
    table = judgement_table(db, campaign)
    (result,) = disputed_items(table, field)
    assert (result.item, result.kind, result.votes) == ("1", "b", {"yes": 1, "no": 1})
    # All else is "yes", and so is this more likely than not; of two people neither is known to be the better.
    assert 0.7 < result.posterior["yes"] < 0.9
    assert 0 < result.entropy < 1
    assert sum(result.posterior.values()) == pytest.approx(1)
    adjudicate(db, campaign, "1", "yes", by="ann", now=5.0, note=" It is   there. ")
    adjudicate(db, campaign, "1", "no", by="bo", now=6.0)
    decided = adjudicated(db, campaign)
    assert list(decided) == [("1", "match")]
    assert (decided["1", "match"].answer, decided["1", "match"].by) == ("no", "bo")
    (after,) = disputed_items(table, field, decided)
    assert after.decided == decided["1", "match"]


@pytest.mark.parametrize(
    ("item", "answer", "message"),
    [
        ("99", "yes", "no such item in this campaign; given: 99"),
        ("1", "maybe", "item '1', question 'match': no such option; given: maybe; allowed: yes, no"),
    ],
)
def test_only_what_can_be_decided_is(study, item, answer, message):
    refuses(message, adjudicate, *study, item, answer, by="ann", now=5.0, error=InputError)
