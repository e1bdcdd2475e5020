"""Returns: how items and blocks go back to others, and answers are set aside.

All functions work within a writing transaction, which holds the whole database.
"""

import json
from typing import Any

from counterfoil.annotate import assignment
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.forms.base import NOT_VISIBLE
from counterfoil.annotate.lease import give_back
from counterfoil.annotate.situation import EXPIRED
from counterfoil.annotate.tables import ROUND, answers, blocks, items, leases, people, sa


def release_expired(connection: sa.Connection, now: float) -> int:
    """Give items back whose leases have expired; how many. Blocks go back when another person needs one."""
    rows = EXPIRED.all(connection, the_now=now)
    for row in rows:
        give_back(connection, row.id, row.item, row.role)
    return len(rows)


def set_aside(connection: sa.Connection, campaign: Campaign, person: str, *, block: int | None = None) -> int:
    """Count a person's answers no more, of one block or all, and give items and blocks back; how many."""
    mine = [leases.c.person == person]
    if block is not None:
        mine.append(leases.c.block == block)
    before = sa.select(leases.c.id, leases.c.item, leases.c.role).where(*mine, leases.c.state == "live")
    for row in connection.execute(before).all():
        give_back(connection, row.id, row.item, row.role)
    given = answers.c.lease.in_(sa.select(leases.c.id).where(*mine))
    columns = answers.c.number, answers.c.item, answers.c.role
    counted = sa.select(*columns).where(answers.c.person == person, answers.c.counted, given)
    rows = connection.execute(counted).all()
    for row in rows:
        connection.execute(sa.update(answers).where(answers.c.number == row.number).values(counted=False))
        if row.role == "work":
            fewer = sa.update(items).where(items.c.position == row.item)
            connection.execute(fewer.values(answered=items.c.answered - 1, rank=items.c.rank - ROUND))
            if campaign.recipe.design == "adaptive":
                set_target(connection, campaign, row.item)
    own = blocks.c.person == person if block is None else blocks.c.id == block
    connection.execute(sa.update(blocks).where(own).values(person=None, expires=None, done=False))
    return len(rows)


def set_target(connection: sa.Connection, campaign: Campaign, item: int) -> None:
    """How many answers an item of an adaptive design is to get, by those that it has."""
    rows = connection.execute(
        sa.select(answers.c.answer, people.c.right, people.c.wrong)
        .join(people, people.c.id == answers.c.person)
        .where(answers.c.item == item, answers.c.counted)
    )
    main = campaign.form.main
    votes: list[tuple[str, int, int]] = []
    for text, right, wrong in rows:
        value = json.loads(text).get(main)
        if value == NOT_VISIBLE:
            continue
        votes.append((value if isinstance(value, str) else json.dumps(value), right, wrong))
    wanted = assignment.still_needed(votes, _options(campaign, item, main), campaign.recipe)
    taken = items.c.answered + items.c.leased
    change = sa.update(items).where(items.c.position == item)
    connection.execute(change.values(target=sa.case((taken > wanted, taken), else_=wanted)))


def _options(campaign: Campaign, item: int, main: str) -> int:
    fields: Any = campaign.form.page(campaign.items[item]).fields
    return next((len(each.options) for each in fields if each.name == main and each.kind == "one"), 0)
