"""Work: what a person has before them, and answers taken once and for good.

An answer that was acknowledged is on the disk. A submission that comes twice, by its key, changes nothing and
gets the same receipt, so that a page can send again whatever it has no receipt for.
"""

import json
import math
from dataclasses import dataclass, replace
from typing import Any, Literal

from counterfoil.annotate import assignment, leasing
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database, set_value, value_of
from counterfoil.annotate.entry import Person
from counterfoil.annotate.forms.base import Role, WorkItem, WorkPage, check_answer, is_right
from counterfoil.annotate.leasing import Lease, log
from counterfoil.annotate.statements import PreparedStatement
from counterfoil.annotate.tables import answers, meta, people, sa
from counterfoil.errors import InputError

State = Literal["consent", "onboarding", "work", "done", "paused", "disqualified", "full", "withdrawn"]
#: Whether people get new items: "stopped" is for good, but for the researcher.
Running = Literal["open", "paused", "stopped"]

#: Longest key of a submission, and the longest time that an item can take, in seconds.
_LONGEST_KEY, _LONGEST_TIME = 100, 7 * 24 * 3600.0
# Statements that every answer runs are built once: to build one takes longer than to run it.
_RUNNING = sa.select(meta.c.value).where(meta.c.key == "running").scalar_subquery().label("running")
_PERSON = PreparedStatement(
    sa.select(people, _RUNNING, leasing.ANY_EXPIRED.label("expired")).where(
        people.c.id == sa.bindparam("the_person")
    )
)
_BY_KEY = PreparedStatement(
    sa.select(people.c.state, answers.c.lease, answers.c.answer)
    .outerjoin(answers, (answers.c.person == people.c.id) & (answers.c.key == sa.bindparam("the_key")))
    .where(people.c.id == sa.bindparam("the_person"))
)
_STORE = PreparedStatement(
    sa.insert(answers)
    .values(
        {each: sa.bindparam(each.name) for each in answers.c if each.name not in ("number", "counted")},
    )
    .inline()
)
_ERROR = "That was not right. Look at it once more."
_NOTICES: dict[str, str] = {
    "paused": "The study is paused. Come back later; your answers are kept.",
    "disqualified": "Thank you. You cannot go on with this study.",
    "full": "There is nothing left to do in this study at the moment.",
    "withdrawn": "You have withdrawn, and your answers were deleted.",
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
    """An answer as a page sends it: options by the places shown; `key` is the page's own for this answer."""

    lease: str
    key: str
    answer: Any
    seconds: float


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
        return stand(connection, campaign, person, now, ahead=ahead)


def stand(
    connection: sa.Connection, campaign: Campaign, person: Person, now: float, *, ahead: int = 2
) -> Standing:
    """`standing` within a writing transaction."""
    return _standing(connection, campaign, person.id, now, ahead)


def submit(
    db: Database, campaign: Campaign, person: Person, submission: Submission, now: float, *, ahead: int = 2
) -> Receipt:
    """Take an answer; it is on the disk when the receipt comes.

    Not accepted, with the reason as notice: an answer to an item that this person has answered, one that came
    so late that others have the item, and one of a person who withdrew or was disqualified. Raises
    `InputError` for a lease that is not this person's, what is no answer to the page, and a key that
    another answer had.
    """
    with db.writing() as connection:
        return take(connection, campaign, person, submission, now, ahead=ahead)


def take(
    connection: sa.Connection,
    campaign: Campaign,
    person: Person,
    submission: Submission,
    now: float,
    *,
    ahead: int = 2,
) -> Receipt:
    """`submit` within a writing transaction; on the disk once that has ended."""
    if not 0 < len(submission.key) <= _LONGEST_KEY:
        raise InputError(
            "no key of a submission", given=submission.key, allowed=f"1 to {_LONGEST_KEY} characters"
        )
    if not (math.isfinite(submission.seconds) and 0 <= submission.seconds <= _LONGEST_TIME):
        raise InputError("no time in seconds", given=submission.seconds, allowed=f"0 to {_LONGEST_TIME:,.0f}")
    before = _BY_KEY.soon(connection, the_person=person.id, the_key=submission.key)
    lease = leasing.find_lease(connection, person.id, submission.lease)
    if lease is None:
        if _row(connection, person.id, now).state == "withdrawn":
            # A page that had answers to send when its person withdrew in another one.
            after = _standing(connection, campaign, person.id, now, ahead)
            return Receipt(False, False, after.notice, after)
        raise InputError("this item is not yours to answer", hint="load the page once more")
    item = campaign.items[lease.item]
    page = shown_page(campaign, person.id, item)
    answer = check_answer(page, submission.answer)
    campaign.form.check(item, answer)
    refused = _refusal(connection, before.first(), lease, submission, answer)
    if isinstance(refused, Receipt):
        return replace(refused, standing=_standing(connection, campaign, person.id, now, ahead))
    notice = _take(connection, campaign, lease, submission, answer, now)
    after = _standing(connection, campaign, person.id, now, ahead)
    return Receipt(True, False, notice, replace(after, notice=notice or after.notice))


def release_expired(db: Database, now: float) -> int:
    """Give items back whose leases have expired, and say how many; people's pages do it as they ask."""
    with db.writing() as connection:
        return leasing.release_expired(connection, now)


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


def _standing(connection: sa.Connection, campaign: Campaign, person: str, now: float, ahead: int) -> Standing:
    read = leasing.open_items(connection, campaign, person)
    row = _row(connection, person, now)
    of = leasing.reach(campaign) * (row.wanted if campaign.recipe.design == "blocks" else 1)
    if row.state == "consent":
        return Standing("consent", of=of)
    if row.state in ("disqualified", "withdrawn"):
        return Standing(row.state, done=row.done, of=of, notice=_NOTICES[row.state])
    state = row.running or "open"
    if state == "paused":
        return Standing("paused", done=row.done, of=of, notice=_NOTICES["paused"])
    if row.state == "onboarding" and state == "open":
        test = leasing.lease_onboarding(connection, campaign, person, now, ahead)
        if test:
            n = min(campaign.recipe.onboarding, len(leasing.places_of(campaign, "onboarding")))
            assigned = _assigned(campaign, person, test, test[0].place, n)
            return Standing("onboarding", assigned, test[0].place, n)
        passed = sa.update(people).where(people.c.id == person)
        connection.execute(passed.values(state="work"))
    lessee = leasing.Lessee(person, row.pages, row.done, row.wanted)
    if row.expired:
        leasing.release_expired(connection, now)
    if row.expired or row.state != "work":
        read = None
    found = leasing.lease_items(connection, campaign, lessee, now, ahead, read) if state == "open" else ()
    if found:
        of = max(of, row.done + len(found))
        return Standing("work", _assigned(campaign, person, found, row.done, of), row.done, of)
    if not row.done:
        return Standing("full", of=of, notice=_NOTICES["full"])
    if row.finished is None:
        ended = sa.update(people).where(people.c.id == person)
        connection.execute(ended.values(finished=now))
        log(connection, now, "finished", person)
    return Standing("done", done=row.done, of=row.done, code=campaign.recipe.completion)


def _row(connection: sa.Connection, person: str, now: float) -> Any:
    """A person, whether the campaign runs, and whether any lease has expired."""
    return _PERSON.first(connection, the_person=person, the_now=now)


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
    connection: sa.Connection, before: Any, lease: Lease, submission: Submission, answer: dict[str, Any]
) -> Receipt | None:
    """The receipt of an answer that is not taken, None for one that is; `before` is what had its key."""
    nowhere = Standing("work")
    if before.lease is not None:
        if before.lease != lease.id or json.loads(before.answer) != answer:
            raise InputError("another answer was sent with this key", given=submission.key)
        return Receipt(True, True, "", nowhere)
    if before.state not in ("onboarding", "work"):
        return Receipt(False, False, _NOTICES.get(before.state, "Agree to take part first."), nowhere)
    if lease.state == "answered":
        return Receipt(False, True, "You had answered this item; your first answer counts.", nowhere)
    if lease.state == "returned" and (lease.block is not None or not leasing.take_late(connection, lease)):
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
    right = is_right(campaign.items[lease.item], answer)
    _STORE.run(
        connection,
        person=lease.person,
        item=lease.item,
        attempt=lease.attempt,
        role=lease.role,
        key=submission.key,
        lease=lease.id,
        answer=json.dumps(answer, ensure_ascii=False),
        # A page cannot have looked at an item for longer than it had it.
        seconds=min(submission.seconds, max(0.0, now - lease.issued)),
        submitted=now,
        right=right,
    )
    if lease.role == "golden":
        own = sa.update(people).where(people.c.id == lease.person)
        connection.execute(
            own.values(right=people.c.right + int(right is True), wrong=people.c.wrong + int(right is False))
        )
    leasing.finish(connection, campaign, lease, now)
    if lease.role == "onboarding" and not right:
        return _err(connection, campaign, lease, now)
    misses = campaign.recipe.golden_misses
    if lease.role == "golden" and not right and misses:
        wrong = connection.execute(sa.select(people.c.wrong).where(people.c.id == lease.person)).scalar_one()
        if wrong >= misses:
            _disqualify(connection, campaign, lease.person, now, f"{wrong} golden answers were wrong")
    return ""


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
    leasing.set_aside(connection, campaign, person)
    connection.execute(sa.update(people).where(people.c.id == person).values(state="disqualified"))
    log(connection, now, "disqualified", person, why)
