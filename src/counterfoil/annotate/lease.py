"""A lease: an item that a person has before them, from its issue to its answer or its return.

All functions work within a writing transaction, which holds the whole database, so that what was read stays
true. An item's counts (`answered`, `leased`) change here, and where answers are set aside (`returns`).
"""

import secrets
from dataclasses import dataclass, replace

from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.forms.base import Role
from counterfoil.annotate.statements import PreparedStatement, Together
from counterfoil.annotate.tables import ROUND, items, leases, people, sa


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


# Statements that every answer runs are built once: to build one takes longer than to run it.
#: The columns of a lease, in the order of its fields.
COLUMNS = tuple(leases.c[name] for name in Lease.__dataclass_fields__)
_ID, _PERSON = sa.bindparam("the_id", type_=sa.Text), sa.bindparam("the_person", type_=sa.Text)
_ITEM = sa.bindparam("the_item", type_=sa.Integer)
_FIND = PreparedStatement(sa.select(*COLUMNS).where(leases.c.id == _ID, leases.c.person == _PERSON))
_SET_STATE = PreparedStatement(sa.update(leases).where(leases.c.id == _ID).values(state=sa.bindparam("to")))
_EXTEND = PreparedStatement(
    sa.update(leases).where(leases.c.id == _ID).values(state="live", expires=sa.bindparam("to"))
)
_OF_ITEM = sa.update(items).where(items.c.position == _ITEM)
_MORE = sa.bindparam("more", type_=sa.Integer)
_LEASED = PreparedStatement(_OF_ITEM.values(leased=items.c.leased + _MORE, rank=items.c.rank + ROUND * _MORE))
_ANSWERED = PreparedStatement(_OF_ITEM.values(leased=items.c.leased - 1, answered=items.c.answered + 1))
_ONE_MORE = {"leased": items.c.leased + 1, "rank": items.c.rank + ROUND}
_OF_PERSON = sa.update(people).where(people.c.id == _PERSON)
_SHOWN = PreparedStatement(_OF_PERSON.values(pages=people.c.pages + 1))
_DONE = PreparedStatement(_OF_PERSON.values(done=people.c.done + 1))
_DONE_GOLDEN = PreparedStatement(
    _OF_PERSON.values(
        done=people.c.done + 1,
        right=people.c.right + sa.bindparam("is_right", type_=sa.Integer),
        wrong=people.c.wrong + sa.bindparam("is_wrong", type_=sa.Integer),
    )
)
_INSTANCE = sa.select(items.c.instance).where(items.c.position == _ITEM).scalar_subquery()
_ISSUE = PreparedStatement(
    sa.insert(leases)
    .values(instance=_INSTANCE, **{name: sa.bindparam(name) for name in Lease.__dataclass_fields__})
    .inline()
)
#: What is written of a lease that is new, and of one that was answered, by the role of its item.
#: What is asked of an answer (`situation.asked_with`) does not depend on leases that it does not know yet.
_NEW = {
    "work": Together(_ISSUE, _LEASED, _SHOWN, apart=True),
    "golden": Together(_ISSUE, _SHOWN, apart=True),
    "onboarding": _ISSUE,
}
_FINISHED = {
    "work": Together(_SET_STATE, _DONE, _ANSWERED),
    "golden": Together(_SET_STATE, _DONE_GOLDEN),
    "onboarding": _SET_STATE,
}


def find_lease(connection: sa.Connection, person: str, lease: str) -> Lease | None:
    """A person's lease by its id; None for an unknown id and for another person's."""
    row = _FIND.first(connection, the_id=lease, the_person=person)
    return None if row is None else Lease(*row)


def new_lease(campaign: Campaign, person: str, item: int, place: int, now: float, expires: float) -> Lease:
    """A lease that is yet to be issued."""
    role = campaign.items[item].role
    return Lease(secrets.token_hex(16), person, item, 0, role, place, None, now, expires, "live")


def issue(connection: sa.Connection, lease: Lease) -> Lease:
    """Store a new lease, and count it where its item and its person are counted."""
    own = {"the_item": lease.item, "the_person": lease.person, "more": 1}
    _NEW[lease.role].run(connection, **vars(lease), **own)
    return lease


def extended(connection: sa.Connection, lease: Lease, now: float, expires: float) -> Lease:
    """The lease with a new limit, written only where the old one is past its half."""
    if lease.expires - now > (expires - now) / 2:
        return lease
    _EXTEND.run(connection, the_id=lease.id, to=expires)
    return replace(lease, state="live", expires=expires)


def count_answer(connection: sa.Connection, lease: Lease, right: bool | None) -> None:
    """The lease was answered: count it, and of a golden item whether it was `right`."""
    _FINISHED[lease.role].run(
        connection,
        the_id=lease.id,
        to="answered",
        the_person=lease.person,
        the_item=lease.item,
        is_right=int(right is True),
        is_wrong=int(right is False),
    )


def give_back(connection: sa.Connection, lease: str, item: int, role: str) -> None:
    """Let others have the item of a live lease."""
    _SET_STATE.run(connection, the_id=lease, to="returned")
    if role == "work":
        _LEASED.run(connection, the_item=item, more=-1)


def take_late(connection: sa.Connection, lease: Lease) -> bool:
    """Lease an item that was given back once more for a late answer; False where others have taken it."""
    if lease.role == "work":
        free = sa.update(items).where(items.c.position == lease.item, items.c.open == 1)
        if not connection.execute(free.values(**_ONE_MORE)).rowcount:
            return False
    _SET_STATE.run(connection, the_id=lease.id, to="live")
    return True
