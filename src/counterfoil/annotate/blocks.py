"""Blocks of items: each is one person's at a time, and goes to another where it was not finished.

All functions work within a writing transaction, which holds the whole database.
"""

from collections.abc import Sequence
from dataclasses import replace

from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.leases import Lease, invalidate, issue, new_lease, reclaim
from counterfoil.annotate.participants import Person
from counterfoil.annotate.tables import block_items, blocks, items, leases, log_event, people, sa


def items_of_block(
    connection: sa.Connection,
    campaign: Campaign,
    person: Person,
    unanswered: Sequence[Lease],
    now: float,
    ahead: int,
) -> tuple[Lease, ...]:
    """The next items of a person's block, at most `ahead`; of a new block where one is wanted and free.

    `unanswered` are the person's leases without an answer.
    """
    mine = connection.execute(sa.select(blocks).where(blocks.c.person == person.id)).all()
    block = next((row.id for row in mine if not row.done), None)
    if block is None and len(mine) < person.wanted:
        block = _take_block(connection, campaign, person.id, now)
    if block is None:
        return ()
    expires = connection.execute(sa.select(blocks.c.expires).where(blocks.c.id == block)).scalar_one()
    # Those of a person who ended early and came back are theirs again, as long as the block is.
    before = [
        replace(lease, state="live")
        for lease in unanswered
        if lease.block == block and (lease.state == "live" or reclaim(connection, lease))
    ][:ahead]
    issued = sa.select(sa.func.count()).where(leases.c.person == person.id, leases.c.block == block)
    place = connection.execute(issued).scalar_one()
    members = sa.select(block_items.c.item).where(block_items.c.block == block, block_items.c.place >= place)
    ordered = members.order_by(block_items.c.place).limit(ahead - len(before))
    for item in connection.execute(ordered).scalars().all():
        lease = new_lease(campaign, person.id, item, place, now, expires)
        before.append(issue(connection, replace(lease, block=block)))
        place += 1
    return tuple(before)


def _take_block(connection: sa.Connection, campaign: Campaign, person: str, now: float) -> int | None:
    """A block without what the person had or made: a free one, else one that is overdue."""
    members = (
        sa.select(block_items.c.item)
        .join(items, items.c.position == block_items.c.item)
        .where(block_items.c.block == blocks.c.id)
    )
    of_person = sa.and_(leases.c.person == person, leases.c.instance == items.c.instance)
    had, own = members.join(leases, of_person), members.where(items.c.author == person)
    late = sa.and_(blocks.c.expires < now, blocks.c.person != person, ~blocks.c.done)
    row = connection.execute(
        sa.select(blocks.c.id, blocks.c.person)
        .where(sa.or_(blocks.c.person.is_(None), late), ~had.exists(), ~own.exists())
        .order_by(blocks.c.person.is_not(None), blocks.c.expires, blocks.c.id)
        .limit(1)
    ).first()
    if row is None:
        return None
    if row.person is not None:
        n = invalidate(connection, campaign, row.person, block=row.id)
        lost = sa.update(people).where(people.c.id == row.person)
        connection.execute(lost.values(done=people.c.done - n))
        log_event(connection, now, "block returned", row.person, f"block {row.id}, {n} answers set aside")
    expires = now + 60 * campaign.recipe.block_minutes
    taken = sa.update(blocks).where(blocks.c.id == row.id)
    connection.execute(taken.values(person=person, expires=expires, done=False))
    return int(row.id)


def finish_in_block(connection: sa.Connection, campaign: Campaign, lease: Lease, now: float) -> None:
    """An item of a block was answered: the block stays its person's, and is done with its last item."""
    mine = leases.c.person == lease.person, leases.c.block == lease.block, leases.c.state == "answered"
    answered = connection.execute(sa.select(sa.func.count()).where(*mine)).scalar_one()
    members = sa.select(sa.func.count()).where(block_items.c.block == lease.block)
    size = connection.execute(members).scalar_one()
    # Who is at work keeps the block, however long it has taken.
    least = now + 60 * campaign.recipe.lease_minutes
    expires = sa.case((blocks.c.expires < least, least), else_=blocks.c.expires)
    change = sa.update(blocks).where(blocks.c.id == lease.block)
    connection.execute(change.values(done=answered == size, expires=expires))
