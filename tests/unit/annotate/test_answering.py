"""Work: who gets which item, which answers are taken, and what ends a person's work."""

from collections import Counter

import pytest

from annotate.small_campaigns import Worker, pair, pairs
from counterfoil.annotate import answering, assignment, participants
from counterfoil.annotate.answers import counts, judgement_table
from counterfoil.annotate.assignment import release_expired
from counterfoil.annotate.forms.base import WorkItem
from counterfoil.annotate.tables import sa
from counterfoil.errors import InputError
from refusals import refuses


@pytest.fixture
def queue(opened):
    return opened(pairs(6, golden=2, kinds="ab"), overlap=2, golden_share=0.25)


def test_every_item_gets_its_answers_and_no_more(queue):
    db, campaign = queue
    ends = [Worker(db, campaign, number).do() for number in (1, 2, 3)]
    table = judgement_table(db, campaign)
    of_item = Counter(table.filter(table["role"].to_numpy(False) == "work")["item"].to_pylist())
    assert (set(of_item.values()), len(of_item)) == ({2}, 6)
    assert [end.state for end in ends] == ["done", "done", "full"]
    rows = list(zip(table["item"].to_pylist(), table["person"].to_pylist(), strict=True))
    assert len(set(rows)) == len(rows)
    result = counts(db)
    assert (result.answers, result.complete, result.wanted, result.leased) == (12, 6, 0, 0)


def test_a_queue_goes_round_all_items_before_it_begins_again(opened):
    """Where people leave early no item has two answers more than another, also after returns."""
    db, campaign = opened(pairs(12, kinds="ab"), overlap=5)
    for number in range(1, 8):
        # What the one before left without an answer has expired.
        worker = Worker(db, campaign, number, now=1_000.0 * number)
        for _ in range(4):
            worker.answer(worker.state().assignments[0])
        if number == 3:
            # Their answers are deleted, and what they had is free again.
            worker.withdraw()
    with db.writing() as connection:
        release_expired(connection, 1e9)
    of_item = Counter(judgement_table(db, campaign)["item"].to_pylist())
    assert sum(of_item.values()) == 24
    assert set(of_item.values()) == {2}


def test_a_repeated_submission_gets_the_same_receipt(queue):
    worker = Worker(*queue, 1)
    first = worker.state().assignments[0]
    assert worker.answer(first, "no", key="key-once").accepted
    again = worker.answer(first, "no", key="key-once")
    assert (again.accepted, again.repeated) == (True, True)
    with pytest.raises(InputError, match="another answer was sent with this key"):
        worker.answer(first, "yes", key="key-once")
    other = worker.answer(first, "yes", key="key-other")
    assert (other.accepted, other.notice) == (False, "You had answered this item; your first answer counts.")
    with pytest.raises(InputError, match="another answer was sent with this key"):
        worker.answer(worker.state().assignments[0], key="key-once")
    assert judgement_table(*queue)["answer"].to_pylist() == ["no"]


def test_another_persons_lease_is_refused_and_no_time_is_longer_than_the_lease(queue):
    mine, theirs = Worker(*queue, 1), Worker(*queue, 2)
    assigned = mine.state().assignments[0]
    refuses("not yours", theirs.answer, assigned, error=InputError)
    refuses("not yours", mine.answer, assigned, lease="' OR 1=1 --", error=InputError)
    mine.answer(assigned, seconds=5_000.0)
    assert judgement_table(*queue)["seconds"].to_pylist() == [4.0]


def test_what_expires_goes_to_others_and_a_late_answer_counts_only_where_wanted(opened):
    db, campaign = opened([pair("1")], overlap=1, lease_minutes=1)
    slow, other = Worker(db, campaign, 1), Worker(db, campaign, 2)
    late = slow.state().assignments[0]
    assert other.state().state == "full"
    taken = other.state(later=61).assignments[0]
    slow.now = other.now
    refused = slow.answer(late)
    assert (refused.accepted, refused.work.state) == (False, "full")
    assert "too late" in refused.notice
    # The other one lets it expire as well: now the late answer is wanted.
    with db.writing() as connection:
        assert release_expired(connection, other.now + 61) == 1
    slow.now = other.now + 61
    assert slow.answer(late, key="key-again").accepted
    assert not other.answer(taken).accepted
    assert counts(db).answers == 1


def test_instances_stay_apart(opened):
    items = [pair(f"{i}-{kind}", instance=str(i), kind=kind) for i in range(3) for kind in "ab"]
    db, campaign = opened(items, overlap=1)
    for number in (1, 2):
        Worker(db, campaign, number).do()
    rows = judgement_table(db, campaign).to_pylist()
    seen = Counter((row["person"], row["item"].split("-")[0]) for row in rows)
    assert (len(rows), set(seen.values())) == (6, {1})


@pytest.mark.parametrize(
    ("errors", "apart", "state"),
    [(0, False, "done"), (1, False, "done"), (2, False, "disqualified"), (2, True, "disqualified")],
)
def test_the_second_error_of_the_test_disqualifies(opened, errors, apart, state):
    """Whether it is another error about the same item, or of another one."""
    db, campaign = opened(pairs(4, onboarding=12), overlap=1, onboarding=10)
    worker = Worker(db, campaign, 1)
    result = worker.state()
    assert (result.state, result.of) == ("onboarding", 10)
    for error in range(errors):
        first = result.assignments[0]
        receipt = worker.answer(first, {"yes": "no", "no": "yes"}[first.item.golden["match"][0]])
        result = receipt.work
        assert receipt.accepted
        if error == 0:
            assert "not right" in receipt.notice
            assert result.assignments[0].item == first.item
            result = worker.answer(result.assignments[0]).work if apart else result
    assert worker.do().state == state
    assert len(judgement_table(db, campaign)) == (0 if errors == 2 else 4)
    everything = judgement_table(db, campaign, everything=True)
    assert everything["role"].to_pylist().count("onboarding") == (1 + apart if errors == 2 else 10)


def test_too_many_golden_misses_set_answers_aside_and_known_work_counts_against_nobody(opened):
    db, campaign = opened(pairs(6, golden=3), overlap=1, golden_share=0.5, golden_misses=2)
    wrong = lambda item: "no" if item.golden.get("match") == ["yes"] else "yes"  # noqa: E731
    assert Worker(db, campaign, 1, judge=wrong).do().state == "disqualified"
    assert len(judgement_table(db, campaign)) == 0
    assert counts(db).set_aside > 2
    assert Worker(db, campaign, 2).do().state == "done"
    result = counts(db)
    assert (result.answers, result.complete, result.people["disqualified"]) == (6, 6, 1)
    items = [pair("0", right="yes"), pair("1", right="yes"), pair("g", "golden", "yes")]
    db, campaign = opened(items, overlap=1, golden_share=0.5, golden_misses=1)
    worker = Worker(db, campaign, 1, judge=lambda item: "no" if item.role == "work" else "yes")
    assert worker.do().state == "done"
    assert counts(db).answers == 2


def test_places_are_counted_to_the_end(queue):
    worker = Worker(*queue, 1)
    result = worker.state()
    places = []
    while result.assignments:
        ahead = [item.position - result.done for item in result.assignments]
        assert ahead == [1, 2][: len(ahead)]
        places.append((result.assignments[0].position, result.of))
        result = worker.answer(result.assignments[0]).work
    # Six pairs, and a golden one in every four pages.
    assert places == [(i + 1, 8) for i in range(len(places))]
    assert result.done == len(places) in (7, 8)


def test_pausing_stops_new_items_at_once_and_takes_what_was_begun(queue):
    db, _ = queue
    worker = Worker(*queue, 1)
    first = worker.state().assignments[0]
    answering.set_running(db, "paused", worker.now)
    assert worker.state().state == "paused"
    receipt = worker.answer(first)
    assert (receipt.accepted, receipt.work.state, receipt.work.assignments) == (True, "paused", ())
    answering.set_running(db, "open", worker.now)
    assert worker.state().state == "work"
    answering.set_running(db, "stopped", worker.now)
    assert worker.state().state == "done"
    assert Worker(*queue, 2).state().state == "full"


def test_withdrawal_deletes_answers_and_gives_items_back(queue):
    db, campaign = queue
    worker = Worker(*queue, 1)
    first = worker.do(4).assignments[0]
    assert worker.withdraw().state == "withdrawn"
    assert len(judgement_table(db, campaign, everything=True)) == 0
    result = counts(db)
    assert (result.answers, result.wanted, result.leased) == (0, 12, 0)
    assert worker.state().state == "withdrawn"
    late = worker.answer(first)
    assert (late.accepted, late.notice) == (False, "You have withdrawn, and your answers were deleted.")
    assert Worker(db, campaign, 1).person.state == "withdrawn"


@pytest.mark.parametrize("design", ["queue", "blocks"])
def test_nobody_judges_what_they_made(opened, design):
    # The same salt gives the same person the same id in both campaigns.
    _, first = opened(pairs(2))
    author = participants.person_id(first, "link", participants.make_links(first, 1)[0])
    form = {"first_caption": "a", "second_caption": "b", "first_image": "a.png", "second_image": "a.png"}
    items = [WorkItem(str(i), {**form, "author": author if i else "another"}) for i in range(3)]
    db, campaign = opened(items, form="quad-validation", design=design, overlap=1, per_person=1)
    for number, expected in ((1, ["0"]), (2, ["1", "2"])):
        worker = Worker(db, campaign, number)
        before = worker.state()
        assert before.assignments[0].item.id in expected
    assert worker.person.id != author
    assert Worker(db, campaign, 1).person.id == author


def test_a_person_does_no_more_than_the_limit(opened):
    db, campaign = opened(pairs(10, golden=2), overlap=1, per_person=4, golden_share=0.5)
    end = Worker(db, campaign, 1).do()
    assert (end.state, end.done, end.of) == ("done", 4, 4)
    assert Counter(judgement_table(db, campaign)["role"].to_pylist()) == {"work": 2, "golden": 2}


def test_adaptive_asks_for_more_where_people_disagree(opened):
    items = [pair(str(i), truth="yes") for i in range(4)]
    db, campaign = opened(items, design="adaptive", overlap=3, most=5, certainty=0.9)
    for number in range(1, 7):
        # Person 1 answers items 0 and 1 another way than all others.
        odd = "01" if number == 1 else ()
        Worker(db, campaign, number, judge=lambda item, odd=odd: "no" if item.id in odd else "yes").do()
    # 2 to 1 at an accuracy of 0.8 is 0.8 likely, 3 to 1 is 16 / 17.
    assert Counter(judgement_table(db, campaign)["item"].to_pylist()) == {"0": 4, "1": 4, "2": 3, "3": 3}
    result = counts(db)
    assert (result.complete, result.complete_answers, result.wanted) == (4, 14, 0)


def test_blocks_are_one_persons_and_go_to_others_whole(opened):
    minutes = {"block_minutes": 1, "lease_minutes": 1}
    db, campaign = opened(pairs(4), design="blocks", overlap=1, per_person=2, **minutes)
    slow, second, third = (Worker(db, campaign, number) for number in (1, 2, 3))
    slow.answer(slow.state().assignments[0])
    assert second.do().state == "done"
    assert third.state().state == "full"
    # An answer keeps the block a minute longer.
    assert third.state(later=58).state == "full"
    end = third.do() if third.state(later=10).assignments else None
    assert (end.state, end.done) == ("done", 2)
    assert slow.state().state == "full"
    result = counts(db)
    assert (result.answers, result.set_aside, result.complete) == (4, 1, 4)


def test_who_comes_with_another_assignment_gets_another_block(opened):
    db, campaign = opened(pairs(4), design="blocks", overlap=1, per_person=2, entry="connect")

    def come(assignment):
        parameters = {"participantId": "W1", "assignmentId": assignment}
        worker = Worker(db, campaign, 1)
        with db.writing() as connection:
            by = {"worker": "W1", "platform": "connect", "parameters": parameters}
            worker.entered = participants.enter(connection, campaign, now=1.0, **by)
            participants.consent(connection, worker.person, 1.0)
        totals = []
        state = worker.state()
        while state.assignments:
            totals.append(state.of)
            state = worker.answer(state.assignments[0], key=f"key-{assignment}-{state.done:04}").work
        return totals

    assert [come("a"), come("a"), come("b"), come("c")] == [[2, 2], [], [4, 4], []]
    assert counts(db).complete == 4


def test_what_every_answer_asks_is_found_by_an_index(queue):
    db, _ = queue
    statements = [participants.BY_TOKEN, assignment.FIND, assignment.EXPIRED, assignment.UNANSWERED]
    statements += [assignment.NEXT, assignment.GOLD_ITEMS]
    with db.reading() as connection:
        for statement in statements:
            text = str(sa.text(statement).compile(db.engine))
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", ("x",) * text.count("?")).all()
            steps = [row.detail for row in rows]
            assert not [step for step in steps if step.startswith("SCAN")], steps
