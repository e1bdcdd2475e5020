"""Answering: what a person has before them, and their answers, taken once and for good.

An answer that comes twice, by its key, changes nothing and gets the same receipt, so that a page can send
again whatever it has no receipt for. Functions that take a connection work within a writing transaction.
"""

import json
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import BaseModel, Field, StrictBool, StrictInt

from counterfoil.annotate import assignment, item_order
from counterfoil.annotate.assignment import Lease
from counterfoil.annotate.campaign import Campaign, items_per_person, positions_of
from counterfoil.annotate.database import Database
from counterfoil.annotate.forms.base import NOT_VISIBLE, Role, WorkItem, WorkPage, check_answer
from counterfoil.annotate.golden import is_right
from counterfoil.annotate.participants import Person, person_by_id
from counterfoil.annotate.tables import Connection, log_event, meta_value, run, sa, set_meta_value, set_person
from counterfoil.errors import InputError

State = Literal[
    "consent", "onboarding", "work", "done", "paused", "disqualified", "full", "withdrawn", "ended"
]
#: Whether people get new items: "stopped" is for good, but for the researcher.
Running = Literal["open", "paused", "stopped"]

#: Longest comment on an item, in characters.
LONGEST_COMMENT = 2_000
_OTHER_ANSWER = "another answer was sent with this key"
_ERROR = "That was not right. Look at it once more."
_UNSEEN_TEST = "You need to see the items of the test. Load the page once more, or try another browser."
NOTICES: dict[str, str] = {
    "paused": "The study is paused. Come back later; your answers are kept.",
    "disqualified": "Thank you. You cannot go on with this study.",
    "full": "There is nothing left to do in this study at the moment.",
    "withdrawn": "You have withdrawn, and your answers were deleted.",
    "ended": "You have finished; what you did counts.",
}


@dataclass(frozen=True)
class Assignment:
    """An item before a person, counted from 1: its page as they see it, and the lease to answer with."""

    item: WorkItem
    page: WorkPage
    lease: str
    position: int
    role: Role


@dataclass(frozen=True)
class WorkState:
    """Where a person stands: what is before them, how many of how many are done, what they should know."""

    state: State
    assignments: tuple[Assignment, ...] = ()
    done: int = 0
    of: int = 0
    notice: str = ""
    code: str = ""


class SpanIn(BaseModel, extra="forbid"):
    """Characters [start, end) of the text and the place of their label."""

    start: StrictInt
    end: StrictInt
    label: StrictInt


class AnswerIn(BaseModel, extra="forbid"):
    """An answer to a leased item: options as places on the page, `key` the same however often it is sent.
    `replaces` is the key of the person's last answer where this one takes its place.
    """

    lease: str = Field(min_length=1, max_length=200)
    key: str = Field(min_length=8, max_length=100)
    answer: dict[str, StrictInt | str | list[StrictInt] | list[SpanIn]] = Field(max_length=50)
    seconds: float = Field(ge=0, le=7 * 24 * 3600, allow_inf_nan=False)
    unseen: StrictBool = False
    comment: str = Field(default="", max_length=LONGEST_COMMENT)
    replaces: str = Field(default="", max_length=100)


@dataclass(frozen=True)
class Receipt:
    """Whether an answer counts, whether it had come before, why not, and what is next."""

    accepted: bool
    repeated: bool
    notice: str
    work: WorkState


def work_state(
    connection: Connection, campaign: Campaign, person: Person, now: float, *, ahead: int = 2
) -> WorkState:
    """Where a person stands at a time; leases up to `ahead` items, the first of them to be answered next."""
    recipe = campaign.recipe
    of = items_per_person(campaign) * (person.wanted if recipe.design == "blocks" else 1)
    if person.state == "consent":
        return WorkState("consent", of=of)
    if person.state == "ended":
        return WorkState("ended", done=person.done, of=person.done, code=recipe.completion)
    if person.state in ("disqualified", "withdrawn"):
        state: Any = person.state
        return WorkState(state, done=person.done, of=of, notice=NOTICES[state])
    now_running = person.running or "open"
    if now_running == "paused":
        return WorkState("paused", done=person.done, of=of, notice=NOTICES["paused"])
    if person.state == "onboarding" and now_running == "open":
        test = assignment.qualification_items(connection, campaign, person.id, now, ahead)
        if test:
            n = min(recipe.onboarding, len(positions_of(campaign, "onboarding")))
            done = test[0].place
            return WorkState("onboarding", assignments(campaign, test, done), done, n)
        set_person(connection, person.id, state="work")
    leased = assignment.next_items(connection, campaign, person, now, ahead) if now_running == "open" else ()
    if leased:
        of = max(of, person.done + len(leased))
        return WorkState("work", assignments(campaign, leased, person.done), person.done, of)
    if not person.done:
        return WorkState("full", of=of, notice=NOTICES["full"])
    if person.finished is None:
        set_person(connection, person.id, finished=now)
        log_event(connection, now, "finished", person.id)
    return WorkState("done", done=person.done, of=person.done, code=recipe.completion)


def record_answer(
    connection: Connection, campaign: Campaign, person: Person, sent: AnswerIn, now: float
) -> Receipt:
    """Take a person's answer; raises `InputError` for a lease that is not theirs, and for what is no answer.

    Answers that come twice or too late, or of people who left, are not accepted, with the reason as notice.
    """
    lease = assignment.find_lease(connection, person.id, sent.lease)
    if lease is None:
        if person.state != "withdrawn":
            raise InputError("this item is not yours to answer", hint="load the page once more")
        # A page that had answers to send when its person withdrew in another one.
        return Receipt(False, False, NOTICES["withdrawn"], work_state(connection, campaign, person, now))
    item = campaign.items[lease.item]
    if sent.unseen:
        answer, right = {campaign.form.main: NOT_VISIBLE}, None
    else:
        answer = check_answer(shown_page(campaign, person.id, item), sent.model_dump()["answer"])
        campaign.form.check(item, answer)
        right = is_right(item, answer)
    if lease.state != "live":
        refused = _repeated_or_late(connection, person, lease, sent, answer, now)
        if refused is not None:
            return Receipt(*refused, work_state(connection, campaign, person, now))
    row = {
        "key": sent.key,
        "answer": json.dumps(answer, ensure_ascii=False),
        # A page cannot have looked at an item for longer than it had it.
        "seconds": min(sent.seconds, max(0.0, now - lease.issued)),
        "submitted": now,
        "right": right,
        "comment": sent.comment,
    }
    try:
        if lease.state == "answered":
            person = _replace_answer(connection, campaign, person, lease, row)
        else:
            assignment.store_answer(connection, campaign, lease, row)
            if lease.role != "onboarding":
                wrong = person.wrong + (lease.role == "golden" and right is False)
                person = replace(person, done=person.done + 1, wrong=wrong)
            if lease.block is not None:
                assignment.finish_in_block(connection, campaign, lease, now)
    except sa.exc.IntegrityError:
        raise InputError(_OTHER_ANSWER, given=sent.key) from None
    notice = ""
    misses = campaign.recipe.golden_misses
    if lease.role == "onboarding" and sent.unseen:
        notice = _UNSEEN_TEST
    elif lease.role == "onboarding" and not right:
        # Pointed out as often as the recipe says; then it is the end.
        errors = person.warned + 1
        set_person(connection, person.id, warned=errors)
        if errors > campaign.recipe.onboarding_warnings:
            why = f"{errors} errors in the test before the work"
            person = _disqualified(connection, campaign, person, now, why)
        else:
            log_event(connection, now, "warned", person.id, item.id)
            notice = _ERROR
    elif lease.role == "golden" and not right and 0 < misses <= person.wrong:
        person = _disqualified(connection, campaign, person, now, f"{person.wrong} golden answers were wrong")
    after = work_state(connection, campaign, person, now)
    return Receipt(True, False, notice, replace(after, notice=notice or after.notice))


def end_work(connection: Connection, person: Person, now: float) -> Person:
    """Let a person end with what they did; others get what was before them, a begun block whole."""
    at_work = "AND state IN ('onboarding', 'work')"
    if set_person(connection, person.id, at_work, state="ended", finished=now):
        assignment.release(connection, "person = :person", person=person.id)
        begun = "UPDATE blocks SET expires = :now WHERE person = :person AND NOT done"
        run(connection, begun, person=person.id, now=now)
        log_event(connection, now, "ended", person.id)
    return person_by_id(connection, person.id)


def withdraw(connection: Connection, campaign: Campaign, person: Person, now: float) -> Person:
    """Delete a person's answers and all that was shown to them; others get the items. It cannot be undone."""
    if person.state != "withdrawn":
        assignment.invalidate(connection, campaign, person.id)
        run(connection, "DELETE FROM answers WHERE person = :person", person=person.id)
        run(connection, "DELETE FROM leases WHERE person = :person", person=person.id)
        counted: dict[str, Any] = dict.fromkeys(("right", "wrong", "pages", "done"), 0)
        set_person(connection, person.id, state="withdrawn", parameters="{}", **counted)
        log_event(connection, now, "withdrew", person.id)
    return person_by_id(connection, person.id)


def running(db: Database) -> Running:
    """Whether people get new items."""
    with db.reading() as connection:
        state = meta_value(connection, "running")
    return "paused" if state == "paused" else "stopped" if state == "stopped" else "open"


def set_running(db: Database, state: Running, now: float) -> None:
    """Let people go on, pause, or stop: items before them can still be answered, no new ones are given."""
    with db.writing() as connection:
        set_meta_value(connection, "running", state)
        log_event(connection, now, state)


def shown_page(campaign: Campaign, person: str, item: WorkItem) -> WorkPage:
    """The page of an item with its options in the order in which a person sees them."""
    page, seed = campaign.form.page(item), campaign.recipe.seed
    fields = [field.ordered(item_order.shown_order(seed, person, item.id, field)) for field in page.fields]
    return replace(page, fields=tuple(fields))


def assignments(campaign: Campaign, leased: tuple[Lease, ...], done: int) -> tuple[Assignment, ...]:
    """Leased items with their pages, numbered after those that are done."""
    return tuple(
        Assignment(item, shown_page(campaign, lease.person, item), lease.id, position, lease.role)
        for position, lease in enumerate(leased, done + 1)
        for item in (campaign.items[lease.item],)
    )


def _repeated_or_late(
    connection: Connection, person: Person, lease: Lease, sent: AnswerIn, answer: dict[str, Any], now: float
) -> tuple[bool, bool, str] | None:
    """The receipt's beginning of an answer to a lease that is not live, None where the answer is taken."""
    stored = "SELECT lease, key, answer FROM answers WHERE person = :person"
    before = run(connection, f"{stored} AND key = :key", person=person.id, key=sent.key).first()
    if before is not None:
        if before.lease != lease.id or json.loads(before.answer) != answer:
            raise InputError(_OTHER_ANSWER, given=sent.key)
        return True, True, ""
    if person.state not in ("onboarding", "work"):
        return False, False, NOTICES.get(person.state, "Agree to take part first.")
    if lease.state == "answered" and not sent.replaces:
        return False, True, "You had answered this item; your first answer counts."
    if lease.state == "answered":
        # Only the person's last answer can be changed, and none of the test.
        last = run(connection, f"{stored} ORDER BY number DESC LIMIT 1", person=person.id).first()
        is_last = last is not None and (last.lease, last.key) == (lease.id, sent.replaces)
        if not is_last or lease.role == "onboarding" or now > lease.expires:
            return False, False, "That answer cannot be changed any more."
    elif lease.block is not None or not assignment.reclaim(connection, lease):
        return False, False, "This came too late: others have done it in the meantime."
    return None


def _replace_answer(
    connection: Connection, campaign: Campaign, person: Person, lease: Lease, row: dict[str, Any]
) -> Person:
    """Put an answer in the place of the one that the lease has; the person as counted since."""
    given = 'SELECT "right" FROM answers WHERE lease = :lease'
    before = run(connection, given, lease=lease.id).scalar_one()
    changes = ", ".join(f'"{name}" = :{name}' for name in row)
    run(connection, f"UPDATE answers SET {changes} WHERE lease = :lease", lease=lease.id, **row)
    if lease.role == "golden":
        # SQLite has numbers in place of truths.
        right, wrong = (int(row["right"] == outcome) - int(before == outcome) for outcome in (True, False))
        run(connection, assignment.COUNT_DONE, person=person.id, n=0, right=right, wrong=wrong)
        return replace(person, wrong=person.wrong + wrong)
    if campaign.recipe.design == "adaptive":
        assignment.set_target(connection, campaign, lease.item)
    return person


def _disqualified(connection: Connection, campaign: Campaign, person: Person, now: float, why: str) -> Person:
    """The person, whose answers no longer count and who gets no more items."""
    assignment.invalidate(connection, campaign, person.id)
    set_person(connection, person.id, state="disqualified")
    log_event(connection, now, "disqualified", person.id, why)
    return replace(person, state="disqualified")
