"""Decisions of a researcher about people's work, as events that stay, and about items that people dispute.

The answers of a rejected person leave the labels, and their items are open to others again (ECCV Caption,
appendix B.1: rejected work is done anew). Decisions about items stand beside the answers.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from counterfoil.annotate.assignment import invalidate
from counterfoil.annotate.campaign import SHORT_ID, Campaign
from counterfoil.annotate.database import Database
from counterfoil.annotate.forms.base import FormField
from counterfoil.annotate.labels import given_labels, of_question
from counterfoil.annotate.participants import person_id
from counterfoil.annotate.platforms.prolific import (
    PROLIFIC,
    ProlificSubmission,
    Reconciled,
    Rejection,
    reconcile,
)
from counterfoil.annotate.tables import Connection, insert, log_event, run, set_person
from counterfoil.errors import InputError
from counterfoil.stats.label_models import pooled_one_coin

Decision = Literal["approved", "rejected"]
DECISIONS: tuple[Decision, ...] = ("approved", "rejected")
#: Characters of a reason or a note, at most.
_LONGEST = 2_000


@dataclass(frozen=True)
class Review:
    """A decision about a person's work, `at` in seconds since the epoch."""

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
        "SELECT person, platform, kind, detail, at FROM events JOIN people ON people.id = person "
        f"WHERE kind IN {DECISIONS} ORDER BY number"
    )
    with db.reading() as connection:
        rows = run(connection, query).all()
    return {
        person: Review(person, platform, decision, **json.loads(detail), at=moment)
        for person, platform, decision, detail, moment in rows
    }


def person_like(db: Database, given: str) -> str:
    """The id of the one person whose id begins so."""
    start = given.strip().lower()
    like = "SELECT id FROM people WHERE substr(id, 1, :n) = :start ORDER BY id LIMIT 2"
    with db.reading() as connection:
        ids = run(connection, like, n=len(start), start=start).scalars().all()
    if not start or not ids:
        hint = "see their ids with: counterfoil annotate review"
        raise InputError("no such person", given=given, hint=hint)
    if len(ids) > 1 and ids[0] != start:
        raise InputError("several people's ids begin so", given=given, hint="give more of the id")
    return ids[0]


def approve(db: Database, chosen: Sequence[str], *, by: str, now: float, reason: str = "") -> int:
    """Approve the work of these people, of none where one is at work; how many were not approved before."""
    with db.writing() as connection:
        done = 0
        for person in chosen:
            row = _person_row(connection, person)
            if row.state in ("consent", "onboarding", "work") and row.finished is None:
                where = f"person {person[:SHORT_ID]}"
                raise InputError("is not done yet", where=where, given=row.state, hint="approve later")
            if _latest(connection, person) != "approved":
                detail = json.dumps({"reason": reason, "category": "", "by": by}, ensure_ascii=False)
                log_event(connection, now, "approved", person, detail)
                done += 1
    return done


def reject(
    db: Database, campaign: Campaign, person: str, *, reason: str, category: str = "", by: str, now: float
) -> int:
    """Set the answers of a person aside, whose items are open again; how many answers."""
    reason = " ".join(reason.split())
    with db.writing() as connection:
        platform = _person_row(connection, person).platform
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
        detail = {"reason": reason, "category": category, "by": by}
        log_event(connection, now, "rejected", person, json.dumps(detail, ensure_ascii=False))
    return aside


def _person_row(connection: Connection, person: str) -> Any:
    row = run(connection, "SELECT * FROM people WHERE id = :person", person=person).first()
    if row is None:
        raise InputError("no such person", given=person)
    return row


def _latest(connection: Connection, person: str) -> str | None:
    decisions = f"SELECT kind FROM events WHERE person = :person AND kind IN {DECISIONS}"
    return run(connection, f"{decisions} ORDER BY number DESC LIMIT 1", person=person).scalar()


def reconciled(db: Database, campaign: Campaign, submissions: Iterable[ProlificSubmission]) -> Reconciled:
    """Submissions of the study beside those who entered the campaign from Prolific."""
    came = "SELECT id, finished FROM people WHERE platform = :platform AND state <> 'withdrawn'"
    with db.reading() as connection:
        rows = run(connection, came, platform=PROLIFIC).all()
    rejected = {who: (of.reason, of.category) for who, of in reviews(db).items() if of.decision == "rejected"}
    done = {id: finished is not None for id, finished in rows}
    return reconcile(tuple(submissions), done, lambda worker: person_id(campaign, PROLIFIC, worker), rejected)


def release_items(db: Database, campaign: Campaign, free: Iterable[str], now: float) -> int:
    """Let others do what these people left, whose unpaid answers no longer count; how many answers."""
    aside = 0
    with db.writing() as connection:
        for person in free:
            if n := invalidate(connection, campaign, person):
                log_event(connection, now, "place given back", person, f"{n} answers set aside")
            aside += n
    return aside


@dataclass(frozen=True)
class AdjudicatedAnswer:
    """A researcher's decision about a question of an item: the value of an option, by whom, when, and why."""

    item: str
    question: str
    answer: str
    note: str
    by: str
    at: float


@dataclass(frozen=True)
class DisputedItem:
    """An item that people disagree on: votes by option, the posterior of each, and its entropy in bits."""

    item: str
    kind: str
    votes: Mapping[str, int]
    posterior: Mapping[str, float]
    entropy: float
    decided: AdjudicatedAnswer | None = None


def disputed_items(
    table: pa.Table, field: FormField, adjudicated: Mapping[tuple[str, str], AdjudicatedAnswer] | None = None
) -> tuple[DisputedItem, ...]:
    """Items with different answers, most undecided first by the one-coin model, decided ones last."""
    rows, values = of_question(table, field), field.values
    if field.kind != "one" or len(values) < 2:
        return ()
    rows = rows.filter(pc.is_in(rows.column("answer"), pa.array(values, pa.string())))
    if not len(rows):
        return ()
    names, given = given_labels(rows, field)
    posterior = pooled_one_coin(given).posterior
    # Sorted, so that the order of options moves no last digit.
    chances = np.sort(posterior, axis=1)
    logs = np.log2(chances, out=np.zeros_like(chances), where=chances > 0)
    entropy = np.minimum(-(chances * logs).sum(axis=1), math.log2(len(values)))
    split = (given.votes > 0).sum(axis=1) > 1
    done = adjudicated or {}
    positions = sorted(
        np.flatnonzero(split).tolist(),
        key=lambda i: ((names[i], field.name) in done, -round(float(entropy[i]), 9), names[i]),
    )
    kinds = {row["item"]: row.get("kind") for row in rows.to_pylist()}
    disputes = []
    for i in positions:
        votes = {value: n for value, n in zip(values, given.votes[i].astype(int).tolist(), strict=True) if n}
        likely = dict(zip(values, posterior[i].tolist(), strict=True))
        about = names[i], kinds[names[i]] or "", votes, likely, float(entropy[i])
        disputes.append(DisputedItem(*about, done.get((names[i], field.name))))
    return tuple(disputes)


def adjudicated(db: Database, campaign: Campaign) -> dict[tuple[str, str], AdjudicatedAnswer]:
    """Every decision, by item and question."""
    with db.reading() as connection:
        rows = run(connection, "SELECT * FROM adjudications ORDER BY decided").all()
    decisions = (AdjudicatedAnswer(campaign.items[place].id, *decision) for place, *decision in rows)
    return {(decision.item, decision.question): decision for decision in decisions}


def decided_answers(db: Database, campaign: Campaign) -> dict[tuple[str, str], str]:
    """The answer of every decision, by item and question."""
    return {key: decision.answer for key, decision in adjudicated(db, campaign).items()}


def adjudicate(
    db: Database, campaign: Campaign, item: str, answer: str, *, by: str, now: float, note: str = ""
) -> AdjudicatedAnswer:
    """Decide an item: the value of an option of the form's main question; it replaces an earlier decision."""
    place, question = campaign.positions.get(item), campaign.form.main
    if place is None:
        raise InputError("no such item in this campaign", given=item)
    field = next(f for f in campaign.form.page(campaign.items[place]).fields if f.name == question)
    if field.kind != "one":
        raise InputError("is not answered by one option", where=f"question '{question}'", given=field.kind)
    if answer not in field.values:
        where = f"item '{item}', question '{question}'"
        raise InputError("no such option", where=where, given=answer, allowed=field.values)
    note = " ".join(note.split())[:_LONGEST]
    before = "DELETE FROM adjudications WHERE item = :item AND question = :question"
    with db.writing() as connection:
        run(connection, before, item=place, question=question)
        row = {"item": place, "question": question, "answer": answer, "note": note, "by": by, "decided": now}
        insert(connection, "adjudications", row)
    return AdjudicatedAnswer(item, question, answer, note, by, now)
