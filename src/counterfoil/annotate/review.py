"""Review of people's work: approved or rejected by a researcher, with a reason, as events that stay.

The answers of a rejected person leave the labels, and their items are open to others again (ECCV Caption,
appendix B.1: rejected work is done anew).
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from counterfoil.annotate.assignment import invalidate
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database
from counterfoil.annotate.participants import person_id
from counterfoil.annotate.platforms.prolific import (
    PROLIFIC,
    ProlificSubmission,
    Reconciled,
    Rejection,
    reconcile,
)
from counterfoil.annotate.tables import events, log_event, people, sa, set_person
from counterfoil.errors import InputError

Decision = Literal["approved", "rejected"]
DECISIONS: tuple[Decision, ...] = ("approved", "rejected")
#: Characters of a reason, at most.
_LONGEST = 2_000
#: Shown of a person's id, which is unique in a campaign of any size.
SHORT_ID = 10


@dataclass(frozen=True)
class Review:
    """A decision about a person's work: what, why, by whom and when (seconds since the epoch)."""

    person: str
    platform: str
    decision: Decision
    reason: str
    category: str
    by: str
    at: float


def reviews(db: Database) -> dict[str, Review]:
    """The latest decision about each person that there is one about, by the person's id."""
    query = (
        sa.select(events.c.person, people.c.platform, events.c.kind, events.c.detail, events.c.at)
        .join(people, people.c.id == events.c.person)
        .where(events.c.kind.in_(DECISIONS))
        .order_by(events.c.number)
    )
    with db.reading() as connection:
        rows = connection.execute(query).all()
    return {
        person: Review(person, platform, decision, **json.loads(detail), at=at)
        for person, platform, decision, detail, at in rows
    }


def person_like(db: Database, given: str) -> str:
    """The id of the one person whose id begins so."""
    start = given.strip().lower()
    like = sa.select(people.c.id).where(sa.func.substr(people.c.id, 1, len(start)) == start)
    with db.reading() as connection:
        ids = connection.execute(like.order_by(people.c.id).limit(2)).scalars().all()
    if not start or not ids:
        hint = "see their ids with: counterfoil annotate review"
        raise InputError("no such person", given=given, hint=hint)
    if len(ids) > 1 and ids[0] != start:
        raise InputError("several people's ids begin so", given=given, hint="give more of the id")
    return ids[0]


def approve(db: Database, chosen: Sequence[str], *, by: str, now: float, reason: str = "") -> int:
    """Approve the work of these people; returns how many were not approved before. Approves none where one is
    at work.
    """
    with db.writing() as connection:
        done = 0
        for person in chosen:
            row = _known(connection, person)
            if row.state in ("consent", "onboarding", "work") and row.finished is None:
                where = f"person {person[:SHORT_ID]}"
                raise InputError("is not done yet", where=where, given=row.state, hint="approve later")
            if _latest(connection, person) != "approved":
                _note(connection, person, "approved", now, reason=reason, category="", by=by)
                done += 1
    return done


def reject(
    db: Database, campaign: Campaign, person: str, *, reason: str, category: str = "", by: str, now: float
) -> int:
    """Reject the work of a person: their answers are set aside and their items are open again; returns how
    many answers.

    Raises `InputError` for a person decided before, and a reason that the person's platform would not take.
    """
    reason = " ".join(reason.split())
    with db.writing() as connection:
        platform = _known(connection, person).platform
        where = f"person {person[:SHORT_ID]}"
        before = _latest(connection, person)
        if before is not None:
            raise InputError(f"was {before} before", where=where, hint="a rejection is final on platforms")
        if not reason or len(reason) > _LONGEST:
            given = f"{len(reason):,} characters"
            raise InputError("a rejection needs a reason", where=where, given=given, allowed="1 to 2,000")
        if platform == "prolific":
            # Its rules are checked where its client checks them.
            Rejection(person[:SHORT_ID], reason, category)
        aside = invalidate(connection, campaign, person)
        set_person(connection, person, state="disqualified")
        _note(connection, person, "rejected", now, reason=reason, category=category, by=by)
    return aside


def _known(connection: sa.Connection, person: str) -> Any:
    row = connection.execute(sa.select(people).where(people.c.id == person)).first()
    if row is None:
        raise InputError("no such person", given=person)
    return row


def _latest(connection: sa.Connection, person: str) -> str | None:
    of_person = events.c.person == person, events.c.kind.in_(DECISIONS)
    latest = sa.select(events.c.kind).where(*of_person).order_by(events.c.number.desc()).limit(1)
    return connection.execute(latest).scalar()


def _note(connection: sa.Connection, person: str, decision: Decision, now: float, **detail: str) -> None:
    log_event(connection, now, decision, person, json.dumps(detail, ensure_ascii=False))


def reconciled(db: Database, campaign: Campaign, submissions: Iterable[ProlificSubmission]) -> Reconciled:
    """Submissions of the study beside those who entered the campaign from Prolific."""
    came = people.c.platform == PROLIFIC, people.c.state != "withdrawn"
    with db.reading() as connection:
        rows = connection.execute(sa.select(people.c.id, people.c.finished).where(*came)).all()
    return reconcile(
        tuple(submissions),
        {id: finished is not None for id, finished in rows},
        lambda worker: person_id(campaign, PROLIFIC, worker),
        {
            person: (review.reason, review.category)
            for person, review in reviews(db).items()
            if review.decision == "rejected"
        },
    )


def give_back(db: Database, campaign: Campaign, free: Iterable[str], now: float) -> int:
    """Let others do what these people left, whose answers no longer count, since they are not paid for; how
    many answers.
    """
    answers = 0
    with db.writing() as connection:
        for person in free:
            aside = invalidate(connection, campaign, person)
            if aside:
                log_event(connection, now, "place given back", person, f"{aside} answers set aside")
            answers += aside
    return answers
