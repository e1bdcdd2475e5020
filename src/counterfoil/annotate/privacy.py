"""Privacy of people: withdrawal asked of the researcher, and the end of the time for which answers are kept.

People are known by hashes of their ids alone, keyed by a salt that lies beside the database and not in it.
What identifies no person stays when answers are deleted: items, decisions of researchers, what happened when.
"""

from dataclasses import dataclass

from counterfoil.annotate import entry
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database
from counterfoil.annotate.leasing import log
from counterfoil.annotate.status import kept_too_long
from counterfoil.annotate.tables import answers, blocks, events, items, leases, people, sa, tokens
from counterfoil.annotate.work import set_running
from counterfoil.errors import InputError


@dataclass(frozen=True)
class Deletion:
    """How many people were deleted, and how many answers of theirs."""

    people: int
    answers: int


def withdraw_person(db: Database, campaign: Campaign, person: str, now: float) -> int:
    """Withdraw a person as they could do themselves: their answers are deleted, their items open again.

    Returns how many answers were deleted. Raises `InputError` for an id that no person has.
    """
    with db.reading() as connection:
        row = connection.execute(sa.select(people).where(people.c.id == person)).first()
        count = connection.execute(
            sa.select(sa.func.count()).select_from(answers).where(answers.c.person == person)
        ).scalar_one()
    if row is None:
        raise InputError("no such person in this campaign", given=person)
    known = entry.Person(row.id, row.state, row.warned, row.language, row.platform)
    entry.withdraw(db, campaign, known, now)
    return int(count)


def delete_people(db: Database, campaign: Campaign, now: float, *, early: bool = False) -> Deletion:
    """Delete all answers and all people, and stop the campaign.

    Decisions about items stay, and a line that says when this was done. What SQLite has deleted is
    overwritten in its file. Raises `InputError` where answers may still be kept, unless `early`.
    """
    until = campaign.recipe.keep_until
    if not early and not kept_too_long(until, now):
        raise InputError(
            "answers are not to be deleted yet" if until else "no date after which answers are to be deleted",
            where=f"{campaign.folder}, key 'keep_until'",
            given=until or None,
            hint="delete them all the same with --now",
        )
    set_running(db, "stopped", now)
    with db.writing() as connection:
        count = Deletion(
            *(
                int(connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())
                for table in (people, answers)
            )
        )
        connection.execute(sa.delete(answers))
        connection.execute(sa.update(blocks).values(person=None, expires=None, done=False))
        connection.execute(sa.delete(leases))
        connection.execute(sa.update(items).values(answered=0, leased=0))
        connection.execute(sa.delete(tokens))
        connection.execute(sa.delete(events).where(events.c.person.is_not(None)))
        connection.execute(sa.delete(people))
        log(connection, now, "deleted", detail=f"{count.people} people, {count.answers} answers")
    if db.is_sqlite:
        # Deleted rows were overwritten where they lay; what they left in the log goes with it.
        with db.engine.connect() as connection:
            raw = connection.connection.driver_connection
            assert raw is not None
            raw.execute("VACUUM")
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return count
