"""Leases: items that people have before them, from the issue of a lease to its answer or its release.

The next items of a person come from the queue, from their block, or from the test before the work. A block of
items is one person's at a time, and goes to another where it was not finished.

All functions work within a writing transaction, which holds the whole database, so that what was read stays
true. An item's counts (`answered`, `leased`) change here, and where all people are deleted (`privacy`).
"""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from counterfoil.annotate import assignment
from counterfoil.annotate.budget import positions_of
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.forms.base import NOT_VISIBLE, Role
from counterfoil.annotate.golden import is_golden_place, own_order
from counterfoil.annotate.participants import Person
from counterfoil.annotate.tables import (
    ROUND,
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


@dataclass(frozen=True)
class Lease:
    """An item before a person; `item` is its place in the campaign, `place` counts the person's pages."""

    id: str
    person: str
    item: int
    attempt: int
    role: Role
    place: int
    block: int | None
    issued: float
    expires: float
    state: str


#: The columns of a lease, in the order of its fields.
COLUMNS = tuple(leases.c[name] for name in Lease.__dataclass_fields__)
#: What is counted of a person.
_COUNTED = ("pages", "done", "right", "wrong")

# Statements that every answer runs are built once: to build one takes longer than to run it.
_LEASE_ID, _PERSON_ID = (sa.bindparam(name, type_=sa.Text) for name in ("lease_id", "person_id"))
_LEASED, _ANSWERED = (sa.bindparam(name, 0, sa.Integer) for name in ("leased_too", "answered_too"))
_FIND = sa.select(*COLUMNS).where(leases.c.id == _LEASE_ID, leases.c.person == _PERSON_ID)
_CHANGE = sa.update(leases).where(leases.c.id == _LEASE_ID)
_OF_ITEM = items.c.position == sa.bindparam("item_position")
_INSERT = sa.insert(leases).values(instance=sa.select(items.c.instance).where(_OF_ITEM).scalar_subquery())
_COUNTS = {"leased": items.c.leased + _LEASED, "answered": items.c.answered + _ANSWERED}
_COUNTS["rank"] = items.c.rank + ROUND * (_LEASED + _ANSWERED)
_COUNT_ITEM = sa.update(items).where(_OF_ITEM).values(_COUNTS)
_OF_PERSON = {name: people.c[name] + sa.bindparam(f"{name}_too", 0) for name in _COUNTED}
_COUNT_PERSON = sa.update(people).where(people.c.id == _PERSON_ID).values(_OF_PERSON)
# Words in the text of a statement, so that the indexes of open and of live leases serve it.
_LIVE = leases.c.state == sa.literal_column("'live'")
_LATE = leases.c.expires < sa.bindparam("now"), leases.c.block.is_(None)
_EXPIRED = sa.select(leases.c.id).where(_LIVE, *_LATE)
_OPEN = leases.c.state != sa.literal_column("'answered'"), leases.c.role != "onboarding"
_UNANSWERED = sa.select(*COLUMNS).where(leases.c.person == _PERSON_ID, *_OPEN).order_by(leases.c.place)
_had = leases.alias("had")
_NEW = (
    ~sa.select(_had.c.id).where(_had.c.person == _PERSON_ID, _had.c.instance == items.c.instance).exists(),
    sa.or_(items.c.author.is_(None), items.c.author != _PERSON_ID),
)
#: The next item of the queue that is new to a person, and the golden items that are.
NEXT = sa.select(items.c.position).where(items.c.open == 1, *_NEW).order_by(items.c.rank).limit(1)
GOLDEN = sa.select(items.c.position).where(items.c.role == "golden", *_NEW)


def find_lease(connection: sa.Connection, person: str, lease: str) -> Lease | None:
    """A person's lease by its id; None for an unknown id and for another person's."""
    row = connection.execute(_FIND, {"lease_id": lease, "person_id": person}).first()
    return None if row is None else Lease(*row)


def issue(
    connection: sa.Connection,
    campaign: Campaign,
    person: str,
    item: int,
    place: int,
    now: float,
    expires: float,
    *,
    attempt: int = 0,
    block: int | None = None,
) -> Lease:
    """A new lease, counted where its item and its person are counted."""
    number, role = secrets.token_hex(16), campaign.items[item].role
    lease = Lease(number, person, item, attempt, role, place, block, now, expires, "live")
    connection.execute(_INSERT, {**vars(lease), "item_position": item})
    if role != "onboarding":
        connection.execute(_COUNT_PERSON, {"person_id": person, "pages_too": 1})
    if role == "work":
        _count(connection, item, leased=1)
    return lease


def extend(connection: sa.Connection, lease: Lease, now: float, expires: float) -> Lease:
    """The lease with a new limit, written only where the old one is past its half."""
    if lease.expires - now > (expires - now) / 2:
        return lease
    _set_lease(connection, lease.id, state="live", expires=expires)
    return replace(lease, state="live", expires=expires)


def store_answer(connection: sa.Connection, campaign: Campaign, lease: Lease, row: dict[str, Any]) -> None:
    """Store the answer to a lease, and count it where its item and its person are counted.

    An item of an adaptive design may want more answers after it.
    """
    _set_lease(connection, lease.id, state="answered")
    own = {name: getattr(lease, name) for name in ("person", "item", "attempt", "role")}
    connection.execute(sa.insert(answers), {**row, **own, "lease": lease.id})
    if lease.role != "onboarding":
        # Work may have a known answer too, for the researcher alone: golden items count against a person.
        right, wrong = (int(lease.role == "golden" and row["right"] is way) for way in (True, False))
        counts = {"done_too": 1, "right_too": right, "wrong_too": wrong}
        connection.execute(_COUNT_PERSON, {"person_id": lease.person, **counts})
    if lease.role == "work":
        _count(connection, lease.item, leased=-1, answered=1)
        if campaign.recipe.design == "adaptive":
            set_target(connection, campaign, lease.item)


def _set_lease(connection: sa.Connection, lease: str, **values: Any) -> None:
    connection.execute(_CHANGE, {"lease_id": lease, **values})


def _count(connection: sa.Connection, item: int, *where: Any, leased: int = 0, answered: int = 0) -> bool:
    """Add to the counts of an item and to its rank, where further conditions hold; whether they did."""
    change = _COUNT_ITEM.where(*where) if where else _COUNT_ITEM
    counts = {"leased_too": leased, "answered_too": answered}
    return bool(connection.execute(change, {"item_position": item, **counts}).rowcount)


def release(connection: sa.Connection, *where: Any) -> int:
    """Let others have the items of live leases, all of them or those `where` conditions hold; how many."""
    live = sa.select(leases.c.id, leases.c.item, leases.c.role).where(_LIVE, *where)
    rows = connection.execute(live).all()
    for row in rows:
        _set_lease(connection, row.id, state="returned")
        if row.role == "work":
            _count(connection, row.item, leased=-1)
    return len(rows)


def release_expired(connection: sa.Connection, now: float) -> int:
    """Let others have the items of expired leases; how many. Blocks go back when another person needs one."""
    return release(connection, leases.c.expires < now, leases.c.block.is_(None))


def reclaim(connection: sa.Connection, lease: Lease) -> bool:
    """Make a lease that was released live again; False where others have taken its item."""
    if lease.role == "work" and not _count(connection, lease.item, items.c.open == 1, leased=1):
        return False
    _set_lease(connection, lease.id, state="live")
    return True


def invalidate(
    connection: sa.Connection, campaign: Campaign, person: str, *, block: int | None = None
) -> int:
    """Count a person's answers no more, of one block or all, and let others have the items; how many."""
    mine = [leases.c.person == person]
    if block is not None:
        mine.append(leases.c.block == block)
    release(connection, *mine)
    own = answers.c.lease.in_(sa.select(leases.c.id).where(*mine))
    counted = sa.select(answers.c.number, answers.c.item, answers.c.role)
    rows = connection.execute(counted.where(answers.c.person == person, answers.c.counted, own)).all()
    for row in rows:
        connection.execute(sa.update(answers).where(answers.c.number == row.number).values(counted=False))
        if row.role == "work":
            _count(connection, row.item, answered=-1)
            if campaign.recipe.design == "adaptive":
                set_target(connection, campaign, row.item)
    own_blocks = blocks.c.person == person if block is None else blocks.c.id == block
    connection.execute(sa.update(blocks).where(own_blocks).values(person=None, expires=None, done=False))
    return len(rows)


def set_target(connection: sa.Connection, campaign: Campaign, item: int) -> None:
    """Set how many answers an item of an adaptive design is to get, by those that it has."""
    rows = connection.execute(
        sa.select(answers.c.answer, people.c.right, people.c.wrong)
        .join(people, people.c.id == answers.c.person)
        .where(answers.c.item == item, answers.c.counted)
    )
    main = campaign.form.main
    votes: list[tuple[str, int, int]] = []
    for text, right, wrong in rows:
        value = json.loads(text).get(main)
        if value != NOT_VISIBLE:
            votes.append((value if isinstance(value, str) else json.dumps(value), right, wrong))
    fields = [field for field in campaign.form.page(campaign.items[item]).fields if field.name == main]
    n_options = len(fields[0].options) if fields and fields[0].kind == "one" else 0
    wanted = assignment.still_needed(votes, n_options, campaign.recipe)
    taken = items.c.answered + items.c.leased
    target = sa.case((taken > wanted, taken), else_=wanted)
    connection.execute(sa.update(items).where(items.c.position == item).values(target=target))


def next_items(
    connection: sa.Connection, campaign: Campaign, person: Person, now: float, ahead: int
) -> tuple[Lease, ...]:
    """The items that a person has before them, at most `ahead`, new ones leased where there are fewer."""
    recipe = campaign.recipe
    if connection.execute(_EXPIRED, {"now": now}).first() is not None:
        release_expired(connection, now)
    rows = connection.execute(_UNANSWERED, {"person_id": person.id})
    unanswered = [Lease(*row) for row in rows]
    if recipe.design == "blocks":
        return _items_of_block(connection, campaign, person, unanswered, now, ahead)
    before: list[Lease] = []
    expires = now + 60 * recipe.lease_minutes
    # What the person has before them already, and released items that are still wanted.
    for lease in unanswered:
        if len(before) < ahead and (lease.state == "live" or reclaim(connection, lease)):
            before.append(extend(connection, lease, now, expires))
    most = recipe.per_person or float("inf")
    for pages in range(person.pages, person.pages + ahead - len(before)):
        item = connection.execute(NEXT, {"person_id": person.id}).scalar()
        if item is None or not person.done + len(before) < most:
            break
        # Golden items stand among the work, and are not shown for their own sake.
        if is_golden_place(recipe.seed, person.id, pages, recipe.golden_share):
            known = positions_of(campaign, "golden")
            golden = [campaign.items[at] for at in known]
            order = own_order(golden, recipe.seed, person.id, "golden")
            free: set[Any] = set(connection.execute(GOLDEN, {"person_id": person.id}).scalars())
            item = next((known[at] for at in order if known[at] in free), item)
        before.append(issue(connection, campaign, person.id, item, pages, now, expires))
    return tuple(before)


def qualification_items(
    connection: sa.Connection, campaign: Campaign, person: str, now: float, ahead: int
) -> tuple[Lease, ...]:
    """The items of the test that a person has not answered rightly yet, at most `ahead`; none: passed.

    An item that was answered wrongly is leased once more, as the next attempt.
    """
    recipe, known = campaign.recipe, positions_of(campaign, "onboarding")
    order = own_order([campaign.items[at] for at in known], recipe.seed, person, "onboarding")
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
            before.append(issue(connection, campaign, person, item, place, now, expires, attempt=attempt))
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
    for at, item in enumerate(connection.execute(ordered).scalars().all(), place):
        before.append(issue(connection, campaign, person.id, item, at, now, expires, block=block))
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
