"""The next items of a person: from the queue, from their block, or from the test before the work.

A block of items is one person's at a time, and goes to another where it was not finished.

All functions work within a writing transaction, which holds the whole database, so that what they read stays
true.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from counterfoil.annotate import assignment
from counterfoil.annotate.budget import positions_of
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.leases import (
    COLUMNS,
    EXPIRED,
    PERSON_ID,
    Lease,
    extend,
    invalidate,
    issue,
    new_lease,
    reclaim,
    release_expired,
)
from counterfoil.annotate.participants import Person
from counterfoil.annotate.tables import (
    answers,
    block_items,
    blocks,
    items,
    leases,
    log_event,
    people,
    sa,
    set_person,
)

_had = leases.alias("had")
_NEW = (
    ~sa.select(_had.c.id).where(_had.c.person == PERSON_ID, _had.c.instance == items.c.instance).exists(),
    sa.or_(items.c.author.is_(None), items.c.author != PERSON_ID),
)
#: The next item of the queue that is new to a person, and the golden items that are.
NEXT = sa.select(items.c.position).where(items.c.open == 1, *_NEW).order_by(items.c.rank).limit(1)
GOLDEN = sa.select(items.c.position).where(items.c.role == "golden", *_NEW)
#: A person's leases without an answer, in the order of their pages.
UNANSWERED = (
    sa.select(*COLUMNS)
    .where(
        leases.c.person == PERSON_ID,
        # Words in the text of the statement, so that the index of these leases serves it.
        leases.c.state != sa.literal_column("'answered'"),
        leases.c.role != sa.literal_column("'onboarding'"),
    )
    .order_by(leases.c.place)
)


def next_items(
    connection: sa.Connection, campaign: Campaign, person: Person, now: float, ahead: int
) -> tuple[Lease, ...]:
    """The items that a person has before them, at most `ahead`, new ones leased where there are fewer."""
    if connection.execute(EXPIRED, {"now": now}).first() is not None:
        release_expired(connection, now)
    unanswered = [Lease(*row) for row in connection.execute(UNANSWERED, {"person_id": person.id})]
    recipe = campaign.recipe
    if recipe.design == "blocks":
        return _items_of_block(connection, campaign, person, unanswered, now, ahead)
    before: list[Lease] = []
    expires = now + 60 * recipe.lease_minutes
    # What the person has before them already, and released items that are still wanted.
    for lease in unanswered:
        if len(before) < ahead and (lease.state == "live" or reclaim(connection, lease)):
            before.append(extend(connection, lease, now, expires))
    pages, most = person.pages, recipe.per_person or float("inf")
    while len(before) < ahead and person.done + len(before) < most:
        item = connection.execute(NEXT, {"person_id": person.id}).scalar()
        if item is None:
            break
        # Golden items stand among the work, and are not shown for their own sake.
        if assignment.is_golden_place(recipe.seed, person.id, pages, recipe.golden_share):
            known = positions_of(campaign, "golden")
            golden = [campaign.items[at] for at in known]
            order = assignment.own_order(golden, recipe.seed, person.id, "golden")
            free: set[Any] = set(connection.execute(GOLDEN, {"person_id": person.id}).scalars())
            item = next((known[at] for at in order if known[at] in free), item)
        lease = new_lease(campaign, person.id, item, pages, now, expires)
        before.append(issue(connection, lease))
        pages += 1
    return tuple(before)


def qualification_items(
    connection: sa.Connection, campaign: Campaign, person: str, now: float, ahead: int
) -> tuple[Lease, ...]:
    """The items of the test that a person has not answered rightly yet, at most `ahead`; none: passed.

    An item that was answered wrongly is leased once more, as the next attempt.
    """
    recipe, known = campaign.recipe, positions_of(campaign, "onboarding")
    order = assignment.own_order([campaign.items[at] for at in known], recipe.seed, person, "onboarding")
    own = sa.select(*COLUMNS).where(leases.c.person == person, leases.c.role == "onboarding")
    rows = connection.execute(own.order_by(leases.c.attempt))
    latest = {row.item: Lease(*row) for row in rows}
    of_test = answers.c.person == person, answers.c.role == "onboarding", answers.c.right
    right = set(connection.execute(sa.select(answers.c.item).where(*of_test)).scalars())
    before: list[Lease] = []
    expires = now + 60 * recipe.lease_minutes
    for place, at in enumerate(order[: recipe.onboarding]):
        item = known[at]
        if item in right or len(before) == ahead:
            continue
        lease = latest.get(item)
        if lease is not None and lease.state != "answered":
            before.append(extend(connection, lease, now, expires))
        else:
            attempt = 0 if lease is None else lease.attempt + 1
            again = replace(new_lease(campaign, person, item, place, now, expires), attempt=attempt)
            before.append(issue(connection, again))
    return tuple(before)


def _items_of_block(
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
        set_person(connection, row.person, done=people.c.done - n)
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
