"""Leases: items that people have before them, blocks that are theirs, and how both go back to others.

All functions work within a writing transaction, which holds the whole database, so that what they read stays
true. An item's counts (`answered`, `leased`, `target`) change here and nowhere else.
"""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from counterfoil.annotate import assignment
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.forms.base import Role
from counterfoil.annotate.statements import PreparedStatement, RowsToCome, Together
from counterfoil.annotate.tables import answers, block_items, blocks, events, items, leases, people, sa


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


@dataclass
class Lessee:
    """A person who asks for items: how many were shown, how many answered, how many blocks are wanted."""

    id: str
    pages: int
    done: int
    wanted: int


# Statements that every answer runs are built once: to build one takes longer than to run it.
_COLUMNS = [leases.c[name] for name in Lease.__dataclass_fields__]
_ID, _PERSON = sa.bindparam("the_id", type_=sa.Text), sa.bindparam("the_person", type_=sa.Text)
_ITEM, _NOW = sa.bindparam("the_item", type_=sa.Integer), sa.bindparam("the_now", type_=sa.Float)
_FIND = PreparedStatement(sa.select(*_COLUMNS).where(leases.c.id == _ID, leases.c.person == _PERSON))
_UNANSWERED = PreparedStatement(
    sa.select(*_COLUMNS)
    .where(
        leases.c.person == _PERSON,
        leases.c.state != sa.literal_column("'answered'"),
        leases.c.role != "onboarding",
    )
    .order_by(leases.c.place)
)
_HAD = sa.select(leases.c.id).where(leases.c.person == _PERSON, leases.c.instance == items.c.instance)
_FREE = ~_HAD.exists(), sa.or_(items.c.author.is_(None), items.c.author != _PERSON)
_NEXT = PreparedStatement(
    sa.select(items.c.position).where(items.c.open == 1, *_FREE).order_by(items.c.rank).limit(1)
)
_GOLDEN = PreparedStatement(sa.select(items.c.position).where(items.c.role == "golden", *_FREE))
# A word in the text of the statement, so that the index of live leases serves it.
_OVER = sa.select(leases.c.id, leases.c.item, leases.c.role).where(
    leases.c.state == sa.literal_column("'live'"), leases.c.expires < _NOW, leases.c.block.is_(None)
)
#: Whether any lease has expired at the time `the_now`.
ANY_EXPIRED = sa.exists(_OVER)
_EXPIRED = PreparedStatement(_OVER)
_SET_STATE = PreparedStatement(sa.update(leases).where(leases.c.id == _ID).values(state=sa.bindparam("to")))
_EXTEND = PreparedStatement(
    sa.update(leases).where(leases.c.id == _ID).values(state="live", expires=sa.bindparam("to"))
)
_OF_ITEM = sa.update(items).where(items.c.position == _ITEM)
_LEASED = PreparedStatement(_OF_ITEM.values(leased=items.c.leased + sa.bindparam("more")))
_ANSWERED = PreparedStatement(_OF_ITEM.values(leased=items.c.leased - 1, answered=items.c.answered + 1))
_SHOWN = PreparedStatement(sa.update(people).where(people.c.id == _PERSON).values(pages=people.c.pages + 1))
_DONE = PreparedStatement(sa.update(people).where(people.c.id == _PERSON).values(done=people.c.done + 1))
_INSTANCE = sa.select(items.c.instance).where(items.c.position == _ITEM).scalar_subquery()
_ISSUE = PreparedStatement(
    sa.insert(leases)
    .values(instance=_INSTANCE, **{name: sa.bindparam(name) for name in Lease.__dataclass_fields__})
    .inline()
)
#: What is written of a lease that is new, and of one that was answered, by the role of its item.
_NEW = {"work": Together(_ISSUE, _LEASED, _SHOWN), "golden": Together(_ISSUE, _SHOWN), "onboarding": _ISSUE}
_FINISHED = {
    "work": Together(_SET_STATE, _DONE, _ANSWERED),
    "golden": Together(_SET_STATE, _DONE),
    "onboarding": _SET_STATE,
}


@dataclass(frozen=True)
class OpenItems:
    """What is read of a person's items before they get new ones: leases without an answer, the next item."""

    unanswered: RowsToCome
    next: RowsToCome


def open_items(connection: sa.Connection, campaign: Campaign, person: str) -> OpenItems | None:
    """The items of a person in a queue, to be read with the next statement; None where people do blocks."""
    if campaign.recipe.design == "blocks":
        return None
    return OpenItems(
        _UNANSWERED.soon(connection, the_person=person), _NEXT.soon(connection, the_person=person)
    )


def find_lease(connection: sa.Connection, person: str, lease: str) -> Lease | None:
    """A person's lease by its id; None for an unknown id and for another person's."""
    row = _FIND.first(connection, the_id=lease, the_person=person)
    return None if row is None else Lease(*row)


def lease_items(
    connection: sa.Connection,
    campaign: Campaign,
    lessee: Lessee,
    now: float,
    ahead: int,
    read: OpenItems | None = None,
) -> tuple[Lease, ...]:
    """The items that a person has before them, at most `ahead`, new ones leased where there are fewer.

    Leases that have expired are given back before, by `release_expired`. `read` is what `open_items` read of
    the person, where nothing was written since.
    """
    if campaign.recipe.design == "blocks":
        return _of_block(connection, campaign, lessee, now, ahead)
    read = read or open_items(connection, campaign, lessee.id)
    assert read is not None
    found = _kept(connection, campaign, read, now, ahead)
    # Of what was read the next item alone holds for the first lease.
    next_item = read.next.first if len(found) < ahead else None
    while len(found) < ahead:
        lease = _of_queue(connection, campaign, lessee, now, len(found), next_item)
        if lease is None:
            break
        found.append(lease)
        next_item = None
    return tuple(found)


def lease_onboarding(
    connection: sa.Connection, campaign: Campaign, person: str, now: float, ahead: int
) -> tuple[Lease, ...]:
    """The items of the test that a person has not answered rightly yet, at most `ahead`; none: passed.

    An item that was answered wrongly is leased once more, as the next attempt.
    """
    recipe, known = campaign.recipe, places_of(campaign, "onboarding")
    order = assignment.own_order([campaign.items[at] for at in known], recipe.seed, person, "onboarding")
    rows = connection.execute(
        sa.select(*_COLUMNS).where(leases.c.person == person, leases.c.role == "onboarding")
    )
    latest: dict[int, Lease] = {}
    for lease in sorted((Lease(*row) for row in rows), key=lambda lease: lease.attempt):
        latest[lease.item] = lease
    of_test = answers.c.person == person, answers.c.role == "onboarding", answers.c.right
    right = set(connection.execute(sa.select(answers.c.item).where(*of_test)).scalars())
    found: list[Lease] = []
    expires = now + 60 * recipe.lease_minutes
    for place, at in enumerate(order[: recipe.onboarding]):
        item = known[at]
        if item in right or len(found) == ahead:
            continue
        before = latest.get(item)
        if before is not None and before.state != "answered":
            found.append(_extended(connection, before, now, expires))
        else:
            lease = _new(campaign, person, item, place, now, expires)
            again = 0 if before is None else before.attempt + 1
            found.append(_issue(connection, replace(lease, attempt=again)))
    return tuple(found)


def release_expired(connection: sa.Connection, now: float) -> int:
    """Give items back whose leases have expired; how many. Blocks go back when another person needs one."""
    rows = _EXPIRED.all(connection, the_now=now)
    for row in rows:
        _return(connection, row.id, row.item, row.role)
    return len(rows)


def take_late(connection: sa.Connection, lease: Lease) -> bool:
    """Lease an item that was given back once more for a late answer; False where others have taken it."""
    if lease.role == "work":
        free = sa.update(items).where(items.c.position == lease.item, items.c.open == 1)
        if not connection.execute(free.values(leased=items.c.leased + 1)).rowcount:
            return False
    _SET_STATE.run(connection, the_id=lease.id, to="live")
    return True


def finish(connection: sa.Connection, campaign: Campaign, lease: Lease, now: float) -> None:
    """A lease was answered: count the answer, keep the block its person's, and ask for more where needed."""
    _FINISHED[lease.role].run(
        connection, the_id=lease.id, to="answered", the_person=lease.person, the_item=lease.item
    )
    if lease.role == "work" and campaign.recipe.design == "adaptive":
        _set_target(connection, campaign, lease.item)
    if lease.block is not None:
        _finish_block(connection, campaign, lease, now)


def set_aside(connection: sa.Connection, campaign: Campaign, person: str, *, block: int | None = None) -> int:
    """Count a person's answers no more, of one block or all, and give items and blocks back; how many."""
    mine = [leases.c.person == person]
    if block is not None:
        mine.append(leases.c.block == block)
    before = sa.select(leases.c.id, leases.c.item, leases.c.role).where(*mine, leases.c.state == "live")
    for row in connection.execute(before).all():
        _return(connection, row.id, row.item, row.role)
    given = answers.c.lease.in_(sa.select(leases.c.id).where(*mine))
    columns = answers.c.number, answers.c.item, answers.c.role
    counted = sa.select(*columns).where(answers.c.person == person, answers.c.counted, given)
    rows = connection.execute(counted).all()
    for row in rows:
        connection.execute(sa.update(answers).where(answers.c.number == row.number).values(counted=False))
        if row.role == "work":
            fewer = sa.update(items).where(items.c.position == row.item)
            connection.execute(fewer.values(answered=items.c.answered - 1))
            if campaign.recipe.design == "adaptive":
                _set_target(connection, campaign, row.item)
    own = blocks.c.person == person if block is None else blocks.c.id == block
    connection.execute(sa.update(blocks).where(own).values(person=None, expires=None, done=False))
    return len(rows)


def log(
    connection: sa.Connection, now: float, kind: str, person: str | None = None, detail: str = ""
) -> None:
    """Note what happened."""
    connection.execute(sa.insert(events).values(at=now, kind=kind, person=person, detail=detail))


@lru_cache(maxsize=64)
def places_of(campaign: Campaign, role: Role) -> tuple[int, ...]:
    """The places of the campaign's items of a role."""
    return tuple(at for at, item in enumerate(campaign.items) if item.role == role)


@lru_cache(maxsize=64)
def reach(campaign: Campaign) -> int:
    """About how many items one person can do, golden ones among them: a block, or one of each instance."""
    recipe = campaign.recipe
    if recipe.design == "blocks":
        return recipe.per_person
    apart = len({campaign.items[at].apart for at in places_of(campaign, "work")})
    golden = round(apart * recipe.golden_share / (1 - recipe.golden_share))
    most = apart + min(golden, len(places_of(campaign, "golden")))
    return min(recipe.per_person or most, most)


def _kept(
    connection: sa.Connection, campaign: Campaign, read: OpenItems, now: float, ahead: int
) -> list[Lease]:
    """What the person has before them already, and items given back that are still wanted."""
    found: list[Lease] = []
    expires = now + 60 * campaign.recipe.lease_minutes
    for row in read.unanswered.all():
        lease = Lease(*row)
        if len(found) < ahead and (lease.state == "live" or take_late(connection, lease)):
            found.append(_extended(connection, lease, now, expires))
    return found


def _of_queue(
    connection: sa.Connection,
    campaign: Campaign,
    lessee: Lessee,
    now: float,
    live: int,
    read: Callable[[], Any] | None,
) -> Lease | None:
    recipe = campaign.recipe
    if recipe.per_person and lessee.done + live >= recipe.per_person:
        return None
    row = _NEXT.first(connection, the_person=lessee.id) if read is None else read()
    # Golden items stand among the work, and are not shown for their own sake.
    if row is None:
        return None
    item = row.position
    if assignment.is_golden_place(recipe.seed, lessee.id, lessee.pages, recipe.golden_share):
        golden = _golden(connection, campaign, lessee.id)
        item = item if golden is None else golden
    expires = now + 60 * recipe.lease_minutes
    lease = _new(campaign, lessee.id, item, lessee.pages, now, expires)
    lessee.pages += 1
    return _issue(connection, lease)


def _golden(connection: sa.Connection, campaign: Campaign, person: str) -> int | None:
    known = places_of(campaign, "golden")
    order = assignment.own_order([campaign.items[at] for at in known], campaign.recipe.seed, person, "golden")
    free = {row.position for row in _GOLDEN.all(connection, the_person=person)}
    return next((known[at] for at in order if known[at] in free), None)


def _of_block(
    connection: sa.Connection, campaign: Campaign, lessee: Lessee, now: float, ahead: int
) -> tuple[Lease, ...]:
    mine = connection.execute(sa.select(blocks).where(blocks.c.person == lessee.id)).all()
    block = next((row.id for row in mine if not row.done), None)
    if block is None and len(mine) < lessee.wanted:
        block = _take_block(connection, campaign, lessee.id, now)
    if block is None:
        return ()
    expires = connection.execute(sa.select(blocks.c.expires).where(blocks.c.id == block)).scalar_one()
    rows = _UNANSWERED.all(connection, the_person=lessee.id)
    found = [lease for lease in (Lease(*row) for row in rows) if lease.block == block][:ahead]
    given = sa.select(sa.func.count()).where(leases.c.person == lessee.id, leases.c.block == block)
    place = connection.execute(given).scalar_one()
    members = sa.select(block_items.c.item).where(block_items.c.block == block, block_items.c.place >= place)
    ordered = members.order_by(block_items.c.place).limit(ahead - len(found))
    for item in connection.execute(ordered).scalars().all():
        lease = _new(campaign, lessee.id, item, place, now, expires)
        found.append(_issue(connection, replace(lease, block=block)))
        place += 1
    return tuple(found)


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
        n = set_aside(connection, campaign, row.person, block=row.id)
        lost = sa.update(people).where(people.c.id == row.person)
        connection.execute(lost.values(done=people.c.done - n))
        log(connection, now, "block returned", row.person, f"block {row.id}, {n} answers set aside")
    expires = now + 60 * campaign.recipe.block_minutes
    taken = sa.update(blocks).where(blocks.c.id == row.id)
    connection.execute(taken.values(person=person, expires=expires, done=False))
    return int(row.id)


def _finish_block(connection: sa.Connection, campaign: Campaign, lease: Lease, now: float) -> None:
    mine = leases.c.person == lease.person, leases.c.block == lease.block, leases.c.state == "answered"
    answered = connection.execute(sa.select(sa.func.count()).where(*mine)).scalar_one()
    members = sa.select(sa.func.count()).where(block_items.c.block == lease.block)
    size = connection.execute(members).scalar_one()
    # Who is at work keeps the block, however long it has taken.
    least = now + 60 * campaign.recipe.lease_minutes
    expires = sa.case((blocks.c.expires < least, least), else_=blocks.c.expires)
    change = sa.update(blocks).where(blocks.c.id == lease.block)
    connection.execute(change.values(done=answered == size, expires=expires))


def _new(campaign: Campaign, person: str, item: int, place: int, now: float, expires: float) -> Lease:
    role = campaign.items[item].role
    return Lease(secrets.token_hex(16), person, item, 0, role, place, None, now, expires, "live")


def _issue(connection: sa.Connection, lease: Lease) -> Lease:
    own = {"the_item": lease.item, "the_person": lease.person, "more": 1}
    _NEW[lease.role].run(connection, **vars(lease), **own)
    return lease


def _extended(connection: sa.Connection, lease: Lease, now: float, expires: float) -> Lease:
    """The lease with a new limit, written only where the old one is past its half."""
    if lease.expires - now > (expires - now) / 2:
        return lease
    _EXTEND.run(connection, the_id=lease.id, to=expires)
    return replace(lease, state="live", expires=expires)


def _return(connection: sa.Connection, lease: str, item: int, role: str) -> None:
    _SET_STATE.run(connection, the_id=lease, to="returned")
    if role == "work":
        _LEASED.run(connection, the_item=item, more=-1)


def _set_target(connection: sa.Connection, campaign: Campaign, item: int) -> None:
    """How many answers an item is to get, by those that it has."""
    rows = connection.execute(
        sa.select(answers.c.answer, people.c.right, people.c.wrong)
        .join(people, people.c.id == answers.c.person)
        .where(answers.c.item == item, answers.c.counted)
    )
    main = campaign.form.main
    votes: list[tuple[str, int, int]] = []
    for text, right, wrong in rows:
        value = json.loads(text).get(main)
        votes.append((value if isinstance(value, str) else json.dumps(value), right, wrong))
    wanted = assignment.still_needed(votes, _options(campaign, item, main), campaign.recipe)
    taken = items.c.answered + items.c.leased
    change = sa.update(items).where(items.c.position == item)
    connection.execute(change.values(target=sa.case((taken > wanted, taken), else_=wanted)))


def _options(campaign: Campaign, item: int, main: str) -> int:
    fields: Any = campaign.form.page(campaign.items[item]).fields
    return next((len(each.options) for each in fields if each.name == main and each.kind == "one"), 0)
