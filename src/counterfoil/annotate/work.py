"""Work: what a person has before them, and answers taken once and for good.

An answer that was acknowledged is on the disk. A submission that comes twice, by its key, changes nothing and
gets the same receipt, so that a page can send again whatever it has no receipt for.
"""

import json
import math
from dataclasses import dataclass, replace
from typing import Any, Literal

from counterfoil.annotate import assignment, leasing, returns
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database
from counterfoil.annotate.entry import Person
from counterfoil.annotate.forms.base import NOT_VISIBLE, Role, WorkItem, WorkPage, check_answer, is_right
from counterfoil.annotate.lease import Lease, give_back, take_late
from counterfoil.annotate.notes import log, set_value, value_of
from counterfoil.annotate.situation import Asked, Who, asked_with, situation_of
from counterfoil.annotate.statements import PreparedStatement
from counterfoil.annotate.tables import answers, blocks, leases, people, sa
from counterfoil.errors import InputError

State = Literal[
    "consent", "onboarding", "work", "done", "paused", "disqualified", "full", "withdrawn", "ended"
]
#: Whether people get new items: "stopped" is for good, but for the researcher.
Running = Literal["open", "paused", "stopped"]

#: Longest key of a submission, and the longest time that an item can take, in seconds.
_LONGEST_KEY, _LONGEST_TIME = 100, 7 * 24 * 3600.0
#: Built once, since every answer runs it.
_STORE = PreparedStatement(
    sa.insert(answers)
    .values(
        {each: sa.bindparam(each.name) for each in answers.c if each.name not in ("number", "counted")},
    )
    .inline()
)
#: Longest comment on an item, in characters.
LONGEST_COMMENT = 2_000
_ERROR = "That was not right. Look at it once more."
_UNSEEN_TEST = "You need to see the items of the test. Load the page once more, or try another browser."
_NOTICES: dict[str, str] = {
    "paused": "The study is paused. Come back later; your answers are kept.",
    "disqualified": "Thank you. You cannot go on with this study.",
    "full": "There is nothing left to do in this study at the moment.",
    "withdrawn": "You have withdrawn, and your answers were deleted.",
    "ended": "You have finished; what you did counts.",
}


@dataclass(frozen=True)
class Assigned:
    """An item before a person: its page in the order in which they see it, and the lease to answer with.

    `position` counts from 1 to `of`. `item` and `role` are for the server alone.
    """

    item: WorkItem
    page: WorkPage
    lease: str
    position: int
    of: int
    role: Role


@dataclass(frozen=True)
class Standing:
    """Where a person stands: what is before them, how many of how many are done, what they should know.

    `code` is the campaign's completion code, once the person is done.
    """

    state: State
    assigned: tuple[Assigned, ...] = ()
    done: int = 0
    of: int = 0
    notice: str = ""
    code: str = ""


@dataclass(frozen=True)
class Submission:
    """An answer as a page sends it: options by the places shown; `key` is the page's own for this answer.

    `answer` is `NOT_VISIBLE` where the person cannot see the item. `replaces` is the key of the person's last
    answer, where this one takes its place.
    """

    lease: str
    key: str
    answer: Any
    seconds: float
    comment: str = ""
    replaces: str = ""


@dataclass(frozen=True)
class Receipt:
    """Whether an answer counts, whether it had come before, why not, and what is next."""

    accepted: bool
    repeated: bool
    notice: str
    standing: Standing


def standing(db: Database, campaign: Campaign, person: Person, now: float, *, ahead: int = 2) -> Standing:
    """Where a person stands at a time; leases up to `ahead` items, the first of them to be answered next."""
    with db.writing() as connection:
        return stand(connection, campaign, Who(person.id), now, ahead=ahead)


def stand(connection: sa.Connection, campaign: Campaign, who: Who, now: float, *, ahead: int = 2) -> Standing:
    """`standing` within a writing transaction; raises `InputError` for a token that no person has."""
    found = situation_of(connection, campaign, who, now)
    person = found.person
    of = leasing.reach(campaign) * (found.wanted if campaign.recipe.design == "blocks" else 1)
    if found.state == "consent":
        return Standing("consent", of=of)
    if found.state == "ended":
        return Standing("ended", done=found.done, of=found.done, code=campaign.recipe.completion)
    if found.state in ("disqualified", "withdrawn"):
        return Standing(found.state, done=found.done, of=of, notice=_NOTICES[found.state])
    running = found.running or "open"
    if running == "paused":
        return Standing("paused", done=found.done, of=of, notice=_NOTICES["paused"])
    if found.state == "onboarding" and running == "open":
        test = leasing.lease_onboarding(connection, campaign, person, now, ahead)
        if test:
            n = min(campaign.recipe.onboarding, len(leasing.places_of(campaign, "onboarding")))
            assigned = _assigned(campaign, person, test, test[0].place, n)
            return Standing("onboarding", assigned, test[0].place, n)
        passed = sa.update(people).where(people.c.id == person)
        connection.execute(passed.values(state="work"))
    if found.expired:
        returns.release_expired(connection, now)
        found = situation_of(connection, campaign, who, now)
    leased = leasing.lease_items(connection, campaign, found, now, ahead) if running == "open" else ()
    if leased:
        of = max(of, found.done + len(leased))
        return Standing("work", _assigned(campaign, person, leased, found.done, of), found.done, of)
    if not found.done:
        return Standing("full", of=of, notice=_NOTICES["full"])
    if found.finished is None:
        ended = sa.update(people).where(people.c.id == person)
        connection.execute(ended.values(finished=now))
        log(connection, now, "finished", person)
    return Standing("done", done=found.done, of=found.done, code=campaign.recipe.completion)


def submit(
    db: Database, campaign: Campaign, person: Person, submission: Submission, now: float, *, ahead: int = 2
) -> Receipt:
    """Take an answer; it is on the disk when the receipt comes.

    Not accepted, with the reason as notice: an answer to an item that this person has answered, one that came
    so late that others have the item, one that is to replace another than the person's last answer or comes
    after the end of its lease, and one of a person who withdrew or was disqualified. Raises
    `InputError` for a lease that is not this person's, what is no answer to the page, and a key that
    another answer had.
    """
    with db.writing() as connection:
        return take(connection, campaign, Who(person.id), submission, now, ahead=ahead)


def take(
    connection: sa.Connection,
    campaign: Campaign,
    who: Who,
    submission: Submission,
    now: float,
    *,
    ahead: int = 2,
) -> Receipt:
    """`submit` within a writing transaction; on the disk once that has ended.

    Raises `InputError` for a token that no person has, too.
    """
    if not 0 < len(submission.key) <= _LONGEST_KEY:
        raise InputError(
            "no key of a submission", given=submission.key, allowed=f"1 to {_LONGEST_KEY} characters"
        )
    if not (math.isfinite(submission.seconds) and 0 <= submission.seconds <= _LONGEST_TIME):
        raise InputError("no time in seconds", given=submission.seconds, allowed=f"0 to {_LONGEST_TIME:,.0f}")
    asked = asked_with(connection, who, submission.lease, submission.key)
    lease, known = asked.lease, Who(asked.person)
    if lease is None:
        if asked.state == "withdrawn":
            # A page that had answers to send when its person withdrew in another one.
            after = stand(connection, campaign, known, now, ahead=ahead)
            return Receipt(False, False, after.notice, after)
        raise InputError("this item is not yours to answer", hint="load the page once more")
    item = campaign.items[lease.item]
    if submission.answer == NOT_VISIBLE:
        answer = {campaign.form.main: NOT_VISIBLE}
    else:
        answer = check_answer(shown_page(campaign, asked.person, item), submission.answer)
        campaign.form.check(item, answer)
    refused = _refusal(connection, asked, lease, submission, answer, now)
    if isinstance(refused, Receipt):
        return replace(refused, standing=stand(connection, campaign, known, now, ahead=ahead))
    notice = _take(connection, campaign, lease, submission, answer, now)
    after = stand(connection, campaign, known, now, ahead=ahead)
    return Receipt(True, False, notice, replace(after, notice=notice or after.notice))


def end_here(db: Database, person: Person, now: float) -> None:
    """Let a person end with what they did: it counts, and others get what was before them.

    A block that was begun waits for another person, and its answers are set aside once one takes it.
    """
    with db.writing() as connection:
        own = sa.update(people).where(people.c.id == person.id, people.c.state.in_(("onboarding", "work")))
        if not connection.execute(own.values(state="ended", finished=now)).rowcount:
            return
        columns = leases.c.id, leases.c.item, leases.c.role
        before = sa.select(*columns).where(leases.c.person == person.id, leases.c.state == "live")
        for row in connection.execute(before).all():
            give_back(connection, row.id, row.item, row.role)
        begun = sa.update(blocks).where(blocks.c.person == person.id, ~blocks.c.done)
        connection.execute(begun.values(expires=now))
        log(connection, now, "ended", person.id)


def release_expired(db: Database, now: float) -> int:
    """Give items back whose leases have expired, and say how many; people's pages do it as they ask."""
    with db.writing() as connection:
        return returns.release_expired(connection, now)


def running(db: Database) -> Running:
    """Whether people get new items."""
    with db.reading() as connection:
        found = value_of(connection, "running", "open")
    return "paused" if found == "paused" else "stopped" if found == "stopped" else "open"


def set_running(db: Database, state: Running, now: float) -> None:
    """Let people go on, pause, or stop: items before them can still be answered, no new ones are given."""
    with db.writing() as connection:
        set_value(connection, "running", state)
        log(connection, now, state)


def shown_page(campaign: Campaign, person: str, item: WorkItem) -> WorkPage:
    """The page of an item with its options in the order in which a person sees them."""
    page = campaign.form.page(item)
    seed = campaign.recipe.seed
    fields = [each.ordered(assignment.shown_order(seed, person, item.id, each)) for each in page.fields]
    return replace(page, fields=tuple(fields))


def _assigned(
    campaign: Campaign, person: str, found: tuple[Lease, ...], done: int, of: int
) -> tuple[Assigned, ...]:
    return tuple(
        Assigned(
            campaign.items[lease.item],
            shown_page(campaign, person, campaign.items[lease.item]),
            lease.id,
            done + at,
            of,
            lease.role,
        )
        for at, lease in enumerate(found, 1)
    )


def _refusal(
    connection: sa.Connection,
    asked: Asked,
    lease: Lease,
    submission: Submission,
    answer: dict[str, Any],
    now: float,
) -> Receipt | None:
    """The receipt of an answer that is not taken, None for one that is."""
    nowhere = Standing("work")
    if asked.before is not None:
        before, sent = asked.before
        if before != lease.id or json.loads(sent) != answer:
            raise InputError("another answer was sent with this key", given=submission.key)
        return Receipt(True, True, "", nowhere)
    if asked.state not in ("onboarding", "work"):
        return Receipt(False, False, _NOTICES.get(asked.state, "Agree to take part first."), nowhere)
    if lease.state == "answered" and submission.replaces:
        if not _is_last(connection, lease, submission.replaces) or now > lease.expires:
            return Receipt(False, False, "That answer cannot be changed any more.", nowhere)
        return None
    if lease.state == "answered":
        return Receipt(False, True, "You had answered this item; your first answer counts.", nowhere)
    if lease.state == "returned" and (lease.block is not None or not take_late(connection, lease)):
        return Receipt(False, False, "This came too late: others have done it in the meantime.", nowhere)
    return None


def _take(
    connection: sa.Connection,
    campaign: Campaign,
    lease: Lease,
    submission: Submission,
    answer: dict[str, Any],
    now: float,
) -> str:
    """Store an answer and what follows from it; what the person should know."""
    unseen = submission.answer == NOT_VISIBLE
    right = None if unseen else is_right(campaign.items[lease.item], answer)
    values = {
        "key": submission.key,
        "answer": json.dumps(answer, ensure_ascii=False),
        # A page cannot have looked at an item for longer than it had it.
        "seconds": min(submission.seconds, max(0.0, now - lease.issued)),
        "submitted": now,
        "right": right,
        "comment": submission.comment[:LONGEST_COMMENT],
    }
    if lease.state == "answered":
        _replace(connection, campaign, lease, values)
    else:
        own = {"person": lease.person, "item": lease.item, "attempt": lease.attempt, "role": lease.role}
        _STORE.run(connection, lease=lease.id, **own, **values)
        leasing.finish(connection, campaign, lease, now, right)
    if lease.role == "onboarding" and not right:
        return _UNSEEN_TEST if unseen else _err(connection, campaign, lease, now)
    misses = campaign.recipe.golden_misses
    if lease.role == "golden" and not right and misses:
        wrong = connection.execute(sa.select(people.c.wrong).where(people.c.id == lease.person)).scalar_one()
        if wrong >= misses:
            _disqualify(connection, campaign, lease.person, now, f"{wrong} golden answers were wrong")
    return ""


def _is_last(connection: sa.Connection, lease: Lease, key: str) -> bool:
    """Whether the person's last answer is to this lease, was sent with this key, and is no test's."""
    own = sa.select(answers.c.lease, answers.c.key).where(answers.c.person == lease.person)
    last = connection.execute(own.order_by(answers.c.number.desc()).limit(1)).first()
    return last == (lease.id, key) and lease.role != "onboarding"


def _replace(connection: sa.Connection, campaign: Campaign, lease: Lease, values: dict[str, Any]) -> None:
    """Put an answer in the place of the one that the lease has."""
    own = answers.c.lease == lease.id
    before = connection.execute(sa.select(answers.c.right).where(own)).scalar_one()
    connection.execute(sa.update(answers).where(own).values(values))
    if lease.role == "golden":
        right, wrong = (int(values["right"] is each) - int(before is each) for each in (True, False))
        counts = {"right": people.c.right + right, "wrong": people.c.wrong + wrong}
        connection.execute(sa.update(people).where(people.c.id == lease.person).values(counts))
    elif campaign.recipe.design == "adaptive":
        returns.set_target(connection, campaign, lease.item)


def _err(connection: sa.Connection, campaign: Campaign, lease: Lease, now: float) -> str:
    """An error in the test before the work: pointed out so often as the recipe says, then the end of it."""
    own = sa.update(people).where(people.c.id == lease.person)
    connection.execute(own.values(warned=people.c.warned + 1))
    errors = connection.execute(sa.select(people.c.warned).where(people.c.id == lease.person)).scalar_one()
    if errors > campaign.recipe.onboarding_warnings:
        _disqualify(connection, campaign, lease.person, now, f"{errors} errors in the test before the work")
        return ""
    log(connection, now, "warned", lease.person, campaign.items[lease.item].id)
    return _ERROR


def _disqualify(connection: sa.Connection, campaign: Campaign, person: str, now: float, why: str) -> None:
    returns.set_aside(connection, campaign, person)
    connection.execute(sa.update(people).where(people.c.id == person).values(state="disqualified"))
    log(connection, now, "disqualified", person, why)
